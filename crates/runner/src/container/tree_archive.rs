//! Trees as tar archives, on their way into containers and out of them.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};

use isobench_schema::ids::Digest;

use crate::environment::Entry;
use crate::environment::safe_path::to_text;

/// What stands at a place of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packed {
    /// A file with bytes of this digest.
    File(Digest),
    /// A link to there.
    Link(String),
    /// A folder, or what no tree of git holds.
    Else,
}

/// Packs a tree below `folder`, which is absolute: as root's, with the times that the files have, in the order of the names.
pub(super) fn pack(tree: &Path, entries: &BTreeMap<String, Entry>, folder: &str) -> io::Result<Vec<u8>> {
    let below = PathBuf::from(folder.trim_start_matches('/'));
    let mut archive = tar::Builder::new(Vec::new());
    archive.follow_symlinks(false);
    let mut above = PathBuf::new();
    for part in below.components() {
        above.push(part);
        archive.append_data(&mut header(tar::EntryType::Directory, 0o755, 0), &above, io::empty())?;
    }
    for (path, entry) in entries {
        let (from, to) = (tree.join(path), below.join(path));
        match entry {
            Entry::Folder => {
                archive.append_data(&mut header(tar::EntryType::Directory, 0o755, 0), &to, io::empty())?;
            }
            Entry::Link { .. } => {
                let target = std::fs::read_link(&from)?;
                archive.append_link(&mut header(tar::EntryType::Symlink, 0o777, 0), &to, target)?;
            }
            Entry::File { mode, .. } => {
                let bytes = std::fs::read(&from)?;
                let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                archive.append_data(&mut header(tar::EntryType::Regular, *mode, size), &to, bytes.as_slice())?;
            }
            Entry::Other => {}
        }
    }
    archive.into_inner()
}

fn header(kind: tar::EntryType, mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_size(size);
    // The oldest time that zip archives can hold, as exported trees have it.
    header.set_mtime(315_532_800);
    header
}

/// Reads what an archive holds below its first folder.
pub(super) fn read(archive: impl Read) -> io::Result<BTreeMap<String, Packed>> {
    let mut archive = tar::Archive::new(archive);
    let mut found = BTreeMap::new();
    for entry in archive.entries()? {
        let mut entry = entry?;
        let path = below_first(&entry.path()?);
        let kind = entry.header().entry_type();
        let target = entry.link_name()?;
        let packed = if kind.is_symlink() {
            Packed::Link(target.map(|target| to_text(&target)).unwrap_or_default())
        } else if kind.is_hard_link() {
            // The other name of a file that came before.
            let first = target.and_then(|target| found.get(&below_first(&target)).cloned());
            first.unwrap_or(Packed::Else)
        } else if kind.is_file() {
            let digest = Digest::of_written(|write| io::copy(&mut entry, write).map(drop));
            Packed::File(digest?)
        } else {
            Packed::Else
        };
        found.insert(path, packed);
    }
    Ok(found)
}

fn below_first(path: &Path) -> String {
    let parts: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    to_text(&parts.components().skip(1).collect::<PathBuf>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::scan;

    #[test]
    fn a_tree_is_packed_and_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let long = "d".repeat(120);
        std::fs::create_dir_all(folder.path().join(&long)).unwrap();
        std::fs::write(folder.path().join(&long).join("a.py"), "a").unwrap();
        std::fs::write(folder.path().join("other"), "b").unwrap();
        std::os::unix::fs::symlink("other", folder.path().join("link")).unwrap();
        let entries = scan(folder.path()).unwrap();
        let packed = pack(folder.path(), &entries, "/source").unwrap();
        let found = read(packed.as_slice()).unwrap();
        assert_eq!(found.get(&format!("{long}/a.py")), Some(&Packed::File(Digest::of(b"a"))));
        assert_eq!(found.get("link"), Some(&Packed::Link("other".to_owned())));
        assert_eq!(found.get("other"), Some(&Packed::File(Digest::of(b"b"))));
    }
}
