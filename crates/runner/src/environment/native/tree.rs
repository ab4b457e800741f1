//! The native tree of a revision: the files that are compiled or decide how, with the arm's patch on them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::Digest;

use super::super::manifest::{Entry, look_at};
use super::super::safe_path::{relative, to_text};
use super::super::{EnvironmentError, Stop};

/// What stands at each path of a native tree.
#[derive(Debug)]
pub(super) struct NativeTree(BTreeMap<PathBuf, Entry>);

impl NativeTree {
    /// Reads what `source` holds of these paths. A path that the revision doesn't have is left out.
    pub(super) fn read(source: &Path, paths: &[String]) -> Result<Self, Stop> {
        let mut entries = BTreeMap::new();
        for path in paths {
            let path = checked(path)?;
            let mut waiting = vec![path.to_owned()];
            while let Some(path) = waiting.pop() {
                let place = source.join(&path);
                match place.symlink_metadata() {
                    Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                    Err(error) => return Err(EnvironmentError::read(&place)(error).into()),
                    Ok(_) => {}
                }
                let entry = look_at(&place)?;
                match &entry {
                    Entry::Folder => {
                        let read_error = EnvironmentError::read(&place);
                        for inner in fs::read_dir(&place).map_err(&read_error)? {
                            waiting.push(path.join(inner.map_err(&read_error)?.file_name()));
                        }
                    }
                    Entry::File { .. } | Entry::Link { .. } => {}
                    Entry::Other => {
                        let message = format!("`{}` of the native tree can't be read", to_text(&path));
                        return Err(Failure::new(FailureStage::Acquire, FailureClass::TreeUnsafe, message).into());
                    }
                }
                entries.insert(path, entry);
            }
        }
        if entries.is_empty() {
            let message = format!("the revision has nothing of its native tree: {}", paths.join(", "));
            return Err(Failure::new(FailureStage::Build, FailureClass::BuildFailed, message).into());
        }
        Ok(Self(entries))
    }

    /// Returns the digest over every path, mode and content: equal digests, equal native trees.
    pub(super) fn digest(&self) -> Result<Digest, serde_json::Error> {
        let entries: BTreeMap<String, &Entry> = self.0.iter().map(|(path, entry)| (to_text(path), entry)).collect();
        Digest::of_json(&entries)
    }

    /// Copies it from `source`, which it was read from, into the new folder `to`.
    pub(super) fn copy(&self, source: &Path, to: &Path) -> Result<(), EnvironmentError> {
        for (path, entry) in &self.0 {
            let (from, to) = (source.join(path), to.join(path));
            let folder = if *entry == Entry::Folder { Some(to.as_path()) } else { to.parent() };
            if let Some(folder) = folder {
                fs::create_dir_all(folder).map_err(EnvironmentError::write(folder))?;
            }
            match entry {
                Entry::File { .. } => drop(fs::copy(&from, &to).map_err(EnvironmentError::write(&to))?),
                Entry::Link { .. } => {
                    let target = fs::read_link(&from).map_err(EnvironmentError::read(&from))?;
                    symlink(target, &to).map_err(EnvironmentError::write(&to))?;
                }
                Entry::Folder | Entry::Other => {}
            }
        }
        Ok(())
    }
}

/// Returns whether a file of the revision belongs to the native tree.
pub(super) fn holds(paths: &[String], file: &Path) -> bool {
    paths.iter().any(|path| file.starts_with(path.trim_end_matches('/')))
}

fn checked(path: &str) -> Result<&Path, Failure> {
    relative(path.trim_end_matches('/').as_bytes()).map_err(|reason| {
        let message = format!("the path `{path}` of the native tree {reason}");
        Failure::new(FailureStage::Dataset, FailureClass::TreeUnsafe, message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(change: impl FnOnce(&Path)) -> Digest {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for (path, content) in [("csrc/a.c", "a"), ("csrc/deep/b.h", "b"), ("setup.py", "s"), ("engine/x.py", "x")] {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), content).unwrap();
        }
        change(root);
        NativeTree::read(root, &["csrc/".to_owned(), "setup.py".to_owned(), "missing".to_owned()])
            .unwrap()
            .digest()
            .unwrap()
    }

    #[test]
    fn only_what_belongs_to_a_native_tree_decides_its_digest() {
        let plain = digest(|_| {});
        assert_eq!(digest(|root| fs::write(root.join("engine/x.py"), "other").unwrap()), plain);
        assert_eq!(digest(|root| fs::write(root.join("README.md"), "new").unwrap()), plain);
        let changes: [fn(&Path); 4] = [
            |root| fs::write(root.join("csrc/deep/b.h"), "B").unwrap(),
            |root| fs::write(root.join("csrc/new.c"), "").unwrap(),
            |root| fs::remove_file(root.join("csrc/a.c")).unwrap(),
            |root| symlink("a.c", root.join("csrc/link.c")).unwrap(),
        ];
        for change in changes {
            assert_ne!(digest(change), plain);
        }
        assert!(holds(&["csrc/".to_owned()], Path::new("csrc/deep/b.h")));
        assert!(!holds(&["csrc".to_owned()], Path::new("csrc2/a.c")));
    }

    #[test]
    fn a_native_tree_is_copied_whole_and_alone() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        fs::create_dir_all(from.join("csrc/empty")).unwrap();
        fs::write(from.join("csrc/a.c"), "a").unwrap();
        fs::write(from.join("other"), "").unwrap();
        symlink("a.c", from.join("csrc/link.c")).unwrap();
        let tree = NativeTree::read(&from, &["csrc".to_owned()]).unwrap();
        tree.copy(&from, &to).unwrap();
        assert_eq!(NativeTree::read(&to, &["csrc".to_owned()]).unwrap().digest().unwrap(), tree.digest().unwrap());
        assert!(to.join("csrc/empty").is_dir() && !to.join("other").exists());
    }
}
