//! The files and folders of this machine that an engine reads beside its own tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::LaunchContext;
use crate::environment::Prepared;

/// Returns the virtual environment, and the models, tokenizers and other inputs that are here, with what links in them lead
/// to: a repository's folder holds links to verified files elsewhere.
pub(super) fn reads(context: &LaunchContext<'_>, prepared: &Prepared) -> Vec<PathBuf> {
    let spec = context.spec;
    let named = spec.inputs.keys().map(PathBuf::from).chain([PathBuf::from(&spec.server.model)]);
    let named = named.filter(|path| path.is_absolute() && path.exists());
    let mut found: BTreeSet<PathBuf> = prepared.venv_folder().map(Path::to_owned).into_iter().collect();
    for path in named.chain(context.ready.inputs.folders.values().cloned()) {
        add_linked(&path, &mut found);
        found.insert(path);
    }
    // What lies in a folder that is read is read with it.
    let below = |path: &&PathBuf| path.ancestors().skip(1).any(|folder| found.contains(folder));
    found.iter().filter(|path| !below(path)).cloned().collect()
}

/// Adds what links below a folder lead to. One that leads nowhere adds nothing.
fn add_linked(folder: &Path, found: &mut BTreeSet<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            add_linked(&path, found);
        } else if kind.is_symlink()
            && path.exists()
            && let Ok(target) = fs::read_link(&path)
        {
            found.insert(if target.is_absolute() { target } else { clean(&folder.join(target)) });
        }
    }
}

/// Returns a path without `..`, as a container's own files have to be named.
fn clean(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_links_lead_to_is_read_as_well() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for folder in ["snapshot/sub", "blobs"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in ["blobs/one", "blobs/two", "snapshot/plain"] {
            fs::write(root.join(file), "").unwrap();
        }
        symlink(root.join("blobs/one"), root.join("snapshot/config.json")).unwrap();
        symlink("../../blobs/two", root.join("snapshot/sub/model")).unwrap();
        symlink(root.join("blobs/gone"), root.join("snapshot/broken")).unwrap();
        let mut found = BTreeSet::new();
        add_linked(&root.join("snapshot"), &mut found);
        assert_eq!(found, ["blobs/one", "blobs/two"].map(|file| root.join(file)).into());
    }
}
