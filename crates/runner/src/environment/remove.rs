//! Removes folders that measured code could write into, whatever it made of them.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::EnvironmentError;

/// What the names of folders that are on their way out begin with.
const EVICTED: &str = "evicted-";
/// Folders whose path below the root is longer than this, in bytes, are moved up, so that no path becomes too long to use.
const LONGEST: usize = 512;

/// Takes a folder out of its place at once, so that whoever looks meanwhile finds nothing or all of it, and removes it.
///
/// What can't be removed stays aside, is never used again, and is tried again the next time.
///
/// # Errors
/// Returns an error if the folder is still in its place.
pub(crate) fn discard(folder: &Path) -> Result<(), EnvironmentError> {
    let Some(parent) = folder.parent() else { return Ok(()) };
    match move_aside(folder, parent) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) => remove_tree(folder).or_else(absent_is_fine).map_err(EnvironmentError::write(folder))?,
    }
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(EVICTED) {
            // It is in nobody's way any more.
            let _ = remove_tree(&entry.path());
        }
    }
    Ok(())
}

fn move_aside(folder: &Path, parent: &Path) -> io::Result<()> {
    folder.symlink_metadata()?;
    // A free name in the same folder: a move elsewhere would need the right to write into what is moved.
    let aside = tempfile::Builder::new().prefix(EVICTED).tempdir_in(parent)?.keep();
    // Whoever sweeps meanwhile may be faster.
    fs::remove_dir(&aside).or_else(absent_is_fine)?;
    fs::rename(folder, aside)
}

fn absent_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Removes what stands at `root` and all that is in it: also below folders that were closed, and however deep it is. Links
/// aren't followed.
///
/// # Errors
/// Returns the first error; everything else was removed all the same.
pub(crate) fn remove_tree(root: &Path) -> io::Result<()> {
    if !root.symlink_metadata()?.is_dir() {
        return fs::remove_file(root);
    }
    // One folder after the other, not one inside the other: a stranger decides how deep they are.
    let mut found = Found { root, folders: vec![root.to_owned()], raised: 0, first: None };
    let mut next = 0;
    while let Some(folder) = found.folders.get(next).cloned() {
        next += 1;
        let emptied = found.empty(&folder);
        found.note(emptied);
    }
    // Each folder was found after the one that it is in.
    while let Some(folder) = found.folders.pop() {
        found.note(fs::remove_dir(&folder).or_else(absent_is_fine));
    }
    found.first.map_or(Ok(()), Err)
}

/// The folders that were found so far.
struct Found<'a> {
    root: &'a Path,
    folders: Vec<PathBuf>,
    /// How many names in the root were given to folders that were too deep.
    raised: u64,
    first: Option<io::Error>,
}

impl Found<'_> {
    fn note(&mut self, result: io::Result<()>) {
        if let Err(error) = result {
            self.first.get_or_insert(error);
        }
    }

    /// Removes the files of a folder and takes note of the folders in it.
    fn empty(&mut self, folder: &Path) -> io::Result<()> {
        open_folder(folder)?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = entry.path();
            if entry.file_type()?.is_dir() {
                let found = self.within_reach(path);
                self.note(found);
            } else {
                self.note(fs::remove_file(&path).or_else(absent_is_fine));
            }
        }
        Ok(())
    }

    /// Takes note of a folder; one that is deep is moved into the root.
    fn within_reach(&mut self, folder: PathBuf) -> io::Result<()> {
        if folder.as_os_str().len() - self.root.as_os_str().len() <= LONGEST {
            self.folders.push(folder);
            return Ok(());
        }
        open_folder(&folder)?;
        loop {
            let place = self.root.join(self.raised.to_string());
            self.raised += 1;
            match fs::rename(&folder, &place) {
                Ok(()) => {
                    self.folders.push(place);
                    return Ok(());
                }
                Err(error) if is_taken(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory
    )
}

/// Takes back the right to list and empty a folder. Only a real folder that is ours: a link would lead elsewhere.
fn open_folder(folder: &Path) -> io::Result<()> {
    let metadata = folder.symlink_metadata()?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_dir() && is_ours && metadata.mode() & 0o700 != 0o700 {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::super::fixture::dig;
    use super::*;

    /// Makes a cache with an entry by `make`, which is also given a folder outside, and discards it.
    fn check(name: &str, make: fn(entry: &Path, outside: &Path)) {
        let place = tempfile::tempdir().unwrap();
        let [cache, outside] = ["cache", "outside"].map(|name| place.path().join(name));
        let entry = cache.join("entry");
        fs::create_dir(&cache).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("kept"), "").unwrap();
        fs::set_permissions(&outside, Permissions::from_mode(0o500)).unwrap();
        make(&entry, &outside);
        for _ in 0..2 {
            discard(&entry).unwrap();
            assert_eq!(fs::read_dir(&cache).unwrap().count(), 0, "{name}");
        }
        assert!(outside.join("kept").is_file(), "{name}");
        assert_eq!(outside.metadata().unwrap().permissions().mode() & 0o777, 0o500, "{name}");
    }

    #[test]
    fn an_entry_is_discarded_whatever_it_is_and_nothing_outside_is_touched() {
        check("deep", |entry, _| {
            fs::create_dir(entry).unwrap();
            dig(entry, 5000);
        });
        check("closed", |entry, _| {
            fs::create_dir_all(entry.join("folder/inner")).unwrap();
            for closed in ["folder/inner", "folder", ""] {
                fs::set_permissions(entry.join(closed), Permissions::from_mode(0o000)).unwrap();
            }
        });
        check("with the names that deep folders are given", |entry, _| {
            fs::create_dir_all(entry.join("0/1")).unwrap();
            fs::create_dir(entry.join("2")).unwrap();
            fs::write(entry.join("1"), "").unwrap();
            dig(entry, 1000);
        });
        check("with a link to elsewhere", |entry, outside| {
            fs::create_dir(entry).unwrap();
            symlink(outside, entry.join("link")).unwrap();
        });
        check("a link to elsewhere", |entry, outside| symlink(outside, entry).unwrap());
        check("a file", |entry, _| fs::write(entry, "").unwrap());
        check("absent", |_, _| {});
        check("left by another", |entry, _| fs::create_dir_all(entry.with_file_name("evicted-x/inner")).unwrap());
    }
}
