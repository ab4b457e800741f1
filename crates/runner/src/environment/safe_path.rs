//! Paths of strangers: which may be written inside a tree, and where links lead.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

/// The longest file name that file systems take, in bytes.
const LONGEST_NAME: usize = 255;
/// The longest path inside a tree, in bytes: with the tree's own it must stay below the 4096 that Linux takes.
const LONGEST_PATH: usize = 2048;
/// How many links are followed before a chain counts as endless, as in Linux.
const MOST_LINKS: u32 = 40;

/// Returns the relative path that `bytes` name, or why it may not be written inside a tree.
pub(crate) fn relative(bytes: &[u8]) -> Result<&Path, &'static str> {
    if bytes.is_empty() {
        return Err("is empty");
    }
    if bytes.starts_with(b"/") {
        return Err("is absolute");
    }
    if bytes.len() > LONGEST_PATH {
        return Err("is longer than 2048 bytes");
    }
    for name in bytes.split(|byte| *byte == b'/') {
        match name {
            b"" => return Err("has an empty component"),
            b"." | b".." => return Err("has a component `.` or `..`"),
            _ if name.contains(&0) => return Err("has a zero byte"),
            _ if name.eq_ignore_ascii_case(b".git") => return Err("has a component `.git`"),
            _ if name.len() > LONGEST_NAME => return Err("has a component of more than 255 bytes"),
            _ => {}
        }
    }
    Ok(Path::new(OsStr::from_bytes(bytes)))
}

/// Returns `path` as text without loss: backslashes are doubled and bytes that are not UTF-8 are written `\xNN`.
pub(crate) fn to_text(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        text.push_str(&chunk.valid().replace('\\', "\\\\"));
        for byte in chunk.invalid() {
            text.extend(["\\x", hex_digit(byte >> 4), hex_digit(byte & 15)]);
        }
    }
    text
}

fn hex_digit(value: u8) -> &'static str {
    "0123456789abcdef".get(usize::from(value)..=usize::from(value)).unwrap_or_default()
}

/// Returns whether the link at `path` inside the folder `root` leads to a place inside `root`, as far as the links that are
/// on the way exist. What doesn't exist counts as an ordinary file or folder.
pub(crate) fn link_stays_inside(root: &Path, path: &Path, target: &OsStr) -> io::Result<bool> {
    let mut place: Vec<OsString> = match path.parent() {
        Some(parent) => parent.iter().map(OsStr::to_owned).collect(),
        None => Vec::new(),
    };
    let mut links = 1;
    let mut left = Vec::new();
    if !push_reversed(&mut left, Path::new(target)) {
        return Ok(false);
    }
    while let Some(name) = left.pop() {
        if name == ".." {
            if place.pop().is_none() {
                return Ok(false);
            }
            continue;
        }
        place.push(name);
        let here: PathBuf = root.iter().chain(place.iter().map(OsString::as_os_str)).collect();
        match std::fs::read_link(&here) {
            Ok(next) => {
                links += 1;
                place.pop();
                if links > MOST_LINKS || !push_reversed(&mut left, &next) {
                    return Ok(false);
                }
            }
            // It is no link, or isn't there.
            Err(error) if is_no_link(&error) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn is_no_link(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Puts the components of a link's target on the stack of what is still to be walked; says no if it is absolute.
fn push_reversed(left: &mut Vec<OsString>, target: &Path) -> bool {
    for component in target.components().rev() {
        match component {
            Component::Normal(name) => left.push(name.to_owned()),
            Component::ParentDir => left.push("..".into()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

/// Returns the first folder on the way to `path` inside `root` that is a link.
pub(crate) fn link_on_the_way(root: &Path, path: &Path) -> Option<PathBuf> {
    let mut ancestors: Vec<&Path> = path.ancestors().skip(1).filter(|way| !way.as_os_str().is_empty()).collect();
    ancestors.reverse();
    ancestors.into_iter().find(|way| root.join(way).is_symlink()).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_plain_relative_paths_may_be_written() {
        let (long, deep) = ([b'a'; 256], b"a/".repeat(1025));
        for (bytes, expected) in [
            (b"a/b.py".as_slice(), None),
            (b"a b/\xff\n\\".as_slice(), None),
            (b"...".as_slice(), None),
            (b".gitignore".as_slice(), None),
            (b"".as_slice(), Some("is empty")),
            (b"/a".as_slice(), Some("is absolute")),
            (b"a//b".as_slice(), Some("has an empty component")),
            (b"a/".as_slice(), Some("has an empty component")),
            (b"a/../b".as_slice(), Some("has a component `.` or `..`")),
            (b"./a".as_slice(), Some("has a component `.` or `..`")),
            (b"a/.GiT/hooks/x".as_slice(), Some("has a component `.git`")),
            (b"a\0b".as_slice(), Some("has a zero byte")),
            (deep.as_slice(), Some("is longer than 2048 bytes")),
            (long.as_slice(), Some("has a component of more than 255 bytes")),
        ] {
            assert_eq!(relative(bytes).err(), expected, "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn texts_of_paths_are_never_ambiguous() {
        for (bytes, expected) in
            [(b"a/b".as_slice(), "a/b"), (b"\xff".as_slice(), "\\xff"), (b"\\xff".as_slice(), "\\\\xff")]
        {
            assert_eq!(to_text(Path::new(OsStr::from_bytes(bytes))), expected);
        }
    }

    #[test]
    fn a_link_is_followed_through_other_links_before_it_counts_as_inside() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        std::fs::create_dir_all(root.join("deep/er")).unwrap();
        std::fs::create_dir(root.join("top")).unwrap();
        symlink("../../top", root.join("deep/er/up")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        symlink("/etc", root.join("etc")).unwrap();
        for (path, target, expected) in [
            ("x", "top", true),
            ("x", "missing/../top", true),
            ("deep/x", "../top/file", true),
            ("deep/er/x", "./../../deep", true),
            ("x", "..", false),
            ("x", "/etc/passwd", false),
            ("deep/x", "../../y", false),
            ("x", "deep/er/up/..", true),
            // Read as text this stays inside; the link on the way leads it out.
            ("x", "deep/er/up/../..", false),
            ("x", "etc/passwd", false),
            ("x", "loop", false),
        ] {
            let found = link_stays_inside(root, Path::new(path), OsStr::new(target)).unwrap();
            assert_eq!(found, expected, "{path} -> {target}");
        }
    }
}
