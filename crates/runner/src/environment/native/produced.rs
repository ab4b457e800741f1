//! What a native build must have made: found by pattern, and proven by what the files are, not by what the build says.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

use super::super::overlay::is_native;
use super::super::safe_path::{relative, to_text};
use super::super::{EnvironmentError, Stop};
use super::elf;

/// The coarsest time stamps of file systems in use: a file of this much before the start may be of just after it.
const COARSE: Duration = Duration::from_secs(2);
/// Lines of evidence about files.
const EVIDENCE_LINES: usize = 20;

/// Returns the files at these patterns in the tree, relative to it, none of which may be there before a build.
pub(super) fn check_absent(tree: &Path, patterns: &[String]) -> Result<(), Stop> {
    for pattern in patterns {
        if let Some(found) = find(tree, pattern)?.first() {
            let message = format!("the revision holds `{}`, which the native build is to make", to_text(found));
            return Err(Failure::new(FailureStage::Build, FailureClass::BuildFailed, message).into());
        }
    }
    Ok(())
}

/// Returns the files that a build made in `tree` since `started`, all of them proven: there for each pattern, plain files,
/// newer than the start, and native ones whole and of this platform.
pub(super) fn prove(tree: &Path, patterns: &[String], started: SystemTime) -> Result<BTreeSet<PathBuf>, Stop> {
    let mut made = BTreeSet::new();
    let mut faults = Vec::new();
    for pattern in patterns {
        let found = find(tree, pattern)?;
        if found.is_empty() {
            faults.push(format!("`{pattern}`: there is no such file"));
        }
        for path in found {
            let place = tree.join(&path);
            if let Some(fault) = fault(&place, started).map_err(EnvironmentError::read(&place))? {
                faults.push(format!("`{}` {fault}", to_text(&path)));
            }
            made.insert(path);
        }
    }
    let Some(first) = faults.first() else { return Ok(made) };
    let message = format!("the native build's commands ended well, but it has not made what it must: {first}");
    let lines = faults.iter().take(EVIDENCE_LINES).map(|fault| EvidenceLine::new("native build", None, fault));
    Err(Failure::new(FailureStage::Build, FailureClass::BuildFailed, message).with_evidence(lines).into())
}

fn fault(place: &Path, started: SystemTime) -> io::Result<Option<String>> {
    let metadata = place.symlink_metadata()?;
    if !metadata.is_file() {
        return Ok(Some("is no plain file".to_owned()));
    }
    if metadata.modified()? + COARSE < started {
        return Ok(Some("is older than the build: it was not made by it".to_owned()));
    }
    if is_native(place) {
        return elf::fault(place);
    }
    // A program, or a generated file of Python.
    Ok(if metadata.len() > 0 && starts_as_native(place)? { elf::fault(place)? } else { None })
}

fn starts_as_native(place: &Path) -> io::Result<bool> {
    use std::io::Read as _;
    let mut first = Vec::new();
    fs::File::open(place)?.take(4).read_to_end(&mut first)?;
    Ok(first == b"\x7fELF")
}

/// Returns what stands at a pattern below `tree`, relative to it. Links to folders aren't followed.
pub(super) fn find(tree: &Path, pattern: &str) -> Result<Vec<PathBuf>, Stop> {
    let path = relative(pattern.as_bytes()).map_err(|reason| {
        let message = format!("the file `{pattern}` that a native build is to make {reason}");
        Failure::new(FailureStage::Dataset, FailureClass::TreeUnsafe, message)
    })?;
    let mut found = vec![PathBuf::new()];
    for part in path {
        let part = part.to_string_lossy();
        let mut next = Vec::new();
        for folder in found {
            let here = tree.join(&folder);
            if !here.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
                continue;
            }
            let read_error = EnvironmentError::read(&here);
            for entry in fs::read_dir(&here).map_err(&read_error)? {
                let name = entry.map_err(&read_error)?.file_name();
                if matches(part.as_bytes(), name.to_string_lossy().as_bytes()) {
                    next.push(folder.join(name));
                }
            }
        }
        found = next;
    }
    found.sort_unstable();
    Ok(found)
}

/// Returns whether a name fits a pattern, in which `*` stands for any bytes.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|at| matches(rest, name.get(at..).unwrap_or_default())),
        Some((byte, rest)) => name.split_first().is_some_and(|(first, name)| first == byte && matches(rest, name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_part_of_a_name() {
        for (pattern, name, expected) in [
            ("_C*.so", "_C.so", true),
            ("_C*.so", "_C.cpython-311-x86_64-linux-gnu.so", true),
            ("_C*.so", "_moe_C.so", false),
            ("*", "anything", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("plain", "plain", true),
            ("plain", "plainer", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn what_a_build_must_make_is_proven_by_the_files() {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path();
        let started = SystemTime::now();
        let library = std::fs::read("/proc/self/exe").unwrap();
        fs::create_dir(tree.join("engine")).unwrap();
        let put = |name: &str, bytes: &[u8]| fs::write(tree.join("engine").join(name), bytes).unwrap();
        put("_C.cpython-311.so", &library);
        put("_version.py", b"");
        put("text.so", b"not native");
        put("half.so", &library[..library.len() / 2]);
        put("old.so", &library);
        let old = fs::OpenOptions::new().write(true).open(tree.join("engine/old.so")).unwrap();
        old.set_modified(started - Duration::from_secs(60)).unwrap();
        std::os::unix::fs::symlink("_C.cpython-311.so", tree.join("engine/link.so")).unwrap();
        for (patterns, expected) in [
            (&["engine/_C*.so", "engine/_version.py"][..], None),
            (&["engine/_C*.so", "engine/_D*.so"], Some("`engine/_D*.so`: there is no such file")),
            (&["engine/text.so"], Some("`engine/text.so` is no native file: it has no ELF header")),
            (&["engine/half.so"], Some("`engine/half.so` is cut off")),
            (&["engine/old.so"], Some("`engine/old.so` is older than the build: it was not made by it")),
            (&["engine/link.so"], Some("`engine/link.so` is no plain file")),
        ] {
            let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
            match (prove(tree, &patterns, started), expected) {
                (Ok(made), None) => assert_eq!(made.len(), patterns.len()),
                (Err(Stop::Failed(failure)), Some(expected)) => {
                    assert_eq!(failure.class, FailureClass::BuildFailed);
                    assert!(failure.evidence[0].text.starts_with(expected), "{failure}");
                }
                (found, expected) => panic!("{patterns:?}: {found:?}, not {expected:?}"),
            }
        }
        assert!(matches!(check_absent(tree, &["engine/_C*.so".to_owned()]), Err(Stop::Failed(_))));
        assert!(check_absent(tree, &["engine/_D*.so".to_owned()]).is_ok());
        assert!(matches!(find(tree, "../x"), Err(Stop::Failed(_))));
    }
}
