//! What is evidence, and what an engine has made of it.

use std::os::unix::fs::symlink;

use isobench_schema::ids::Digest;

use super::*;
use crate::launch::write_json;

#[test]
fn a_link_or_folder_in_the_place_of_evidence_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path(evidence::SERVER_STDOUT), "").unwrap();
    fs::create_dir(path(evidence::REQUESTS)).unwrap();
    symlink("/etc/hostname", path(evidence::SERVER_STDERR)).unwrap();
    symlink(path("nowhere"), path(evidence::LIVE_PROOF)).unwrap();
    let names: Vec<_> = evidence_in(folder.path()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, [evidence::SERVER_STDOUT]);
}

#[test]
fn records_that_are_not_what_was_written_are_the_engines_doing() {
    let artifact = |text: &str| Artifact { digest: Digest::of(text.as_bytes()), bytes: text.len() as u64 };
    let (written, other) = (artifact("written"), artifact("other"));
    assert_eq!(altered(Some(&written), Some(&written.clone())), None);
    for (kept, shown) in [(None, "found: nothing"), (Some(&other), "found: 5 bytes")] {
        let failure = altered(Some(&written), kept).unwrap();
        assert_eq!((failure.stage, failure.class), (FailureStage::Validity, FailureClass::EvidenceAltered));
        assert!(failure.evidence[0].text.starts_with("written: 7 bytes"), "{failure:?}");
        assert!(failure.evidence[1].text.starts_with(shown), "{failure:?}");
    }
}

#[test]
fn a_file_that_was_taken_away_is_charged_to_the_engine_and_a_full_disk_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let taken = folder.path().join(evidence::LIVE_PROOF);
    fs::create_dir(&taken).unwrap();
    for path in [taken, folder.path().join("gone").join(evidence::LIVE_PROOF)] {
        let failure = taken_away(write_json(&path, &1).unwrap_err()).unwrap();
        assert_eq!(failure.class, FailureClass::EvidenceAltered, "{}", path.display());
    }
    let source = io::Error::from_raw_os_error(rustix::io::Errno::NOSPC.raw_os_error());
    let full = RunBlockError::Scratch { path: folder.path().to_owned(), source };
    assert!(taken_away(full).unwrap_err().is_disk_full());
}
