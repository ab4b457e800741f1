//! The files that let this program be the first process of a container of any image: itself, with the loader and the
//! libraries that it runs on here, since an image may have others or none.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::init::ARGUMENT;
use crate::host::process_table;

/// Where the files are in a container: in a folder that is always in memory, so that an image which is made of the container
/// has no trace of them.
const FOLDER: &str = "/dev/isobench";

/// The files, and how the program is started with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct InitFiles {
    /// Files of this machine, and where they are in the container.
    pub(super) files: Vec<(PathBuf, PathBuf)>,
    /// The beginning of the command, up to the deadline.
    pub(super) command: Vec<String>,
}

impl InitFiles {
    /// Returns the files of `program`, which runs on the same libraries as this process.
    pub(super) fn of(program: &Path) -> Self {
        Self::with(program, &process_table::mapped_libraries(std::process::id()))
    }

    fn with(program: &Path, mapped: &BTreeSet<PathBuf>) -> Self {
        let inside = |name: &str| PathBuf::from(FOLDER).join(name);
        let own = inside("isobench");
        let mut files = vec![(program.to_owned(), own.clone())];
        let mut loader = None;
        for library in mapped.iter().filter(|library| is_library(library)) {
            for name in names(library) {
                if is_loader(&name) && loader.is_none() {
                    loader = Some(inside(&name));
                }
                files.push((library.clone(), inside(&name)));
            }
        }
        let mut command = Vec::new();
        // A program that is linked as a whole needs none.
        if let Some(loader) = loader {
            command.extend([loader.display().to_string(), "--library-path".to_owned(), FOLDER.to_owned()]);
        }
        command.extend([own.display().to_string(), ARGUMENT.to_owned()]);
        Self { files, command }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

fn is_library(path: &Path) -> bool {
    file_name(path).contains(".so")
}

fn is_loader(name: &str) -> bool {
    name.starts_with("ld-") || name.starts_with("ld64") || name.starts_with("ld.so")
}

/// Returns the names under which a library stands in its folder: programs ask for one that may be a link to the file.
fn names(library: &Path) -> BTreeSet<String> {
    let mut names = BTreeSet::from([file_name(library)]);
    let stem = file_name(library).split(['.', '-']).next().unwrap_or_default().to_owned();
    let entries = library.parent().into_iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    for entry in entries {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if is_link
            && name.starts_with(&stem)
            && is_library(&entry.path())
            && fs::canonicalize(entry.path()).is_ok_and(|target| target == library)
        {
            names.insert(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_library_is_there_under_each_of_its_names() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let path = |name: &str| folder.join(name);
        for name in ["libc-2.31.so", "ld-2.31.so", "isobench", "other.txt"] {
            fs::write(path(name), "").unwrap();
        }
        symlink("libc-2.31.so", path("libc.so.6")).unwrap();
        symlink("ld-2.31.so", path("ld-linux-x86-64.so.2")).unwrap();
        let mapped = ["libc-2.31.so", "ld-2.31.so", "isobench"].map(path).into();
        let found = InitFiles::with(&path("isobench"), &mapped);
        let inside: BTreeSet<_> = found.files.iter().map(|(_, inside)| file_name(inside)).collect();
        let expected = ["isobench", "ld-2.31.so", "ld-linux-x86-64.so.2", "libc-2.31.so", "libc.so.6"];
        assert_eq!(inside, expected.map(str::to_owned).into());
        let command = ["/dev/isobench/ld-2.31.so", "--library-path", FOLDER, "/dev/isobench/isobench", ARGUMENT];
        assert_eq!(found.command, command);
    }

    #[test]
    fn a_program_that_is_linked_as_a_whole_needs_no_loader() {
        let found = InitFiles::with(Path::new("/usr/bin/isobench"), &["/usr/bin/isobench"].map(PathBuf::from).into());
        assert_eq!(found.command, ["/dev/isobench/isobench", ARGUMENT]);
        assert_eq!(found.files.len(), 1);
    }
}
