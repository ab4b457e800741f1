//! A run on a disk that is really full: a small file system in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{chain, create_with_a_block, events};
use crate::samples::{block_ended, block_started, facts, noise, plan, run_id};
use crate::{RunStore, is_disk_full, layout, verify, write_atomically};

/// Names the small file system to the test that runs again inside the mount namespace.
const DISK: &str = "ISOBENCH_TEST_DISK";

#[test]
fn a_full_disk_is_named_and_leaves_the_record_intact() {
    if let Some(disk) = std::env::var_os(DISK) {
        return on_the_small_disk(&PathBuf::from(disk).join("run"));
    }
    let dir = tempfile::tempdir().unwrap();
    let mount = "mount -t tmpfs -o size=512k none \"$0\"";
    let unshare = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script]).arg(dir.path());
        command
    };
    if !unshare(mount).output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: this machine lets nobody mount a file system in a namespace of its own");
        return;
    }
    let name = "tests::disk_full::a_full_disk_is_named_and_leaves_the_record_intact";
    let mut inside = unshare(&format!("{mount} && exec \"$1\" --exact {name} --nocapture"));
    let output = inside.arg(std::env::current_exe().unwrap()).env(DISK, dir.path()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

fn on_the_small_disk(run: &Path) {
    let mut store = create_with_a_block(run);
    let derived = store.derived().unwrap().join("report.json");
    write_atomically(&derived, b"old").unwrap();
    store.append(block_started(1, 1)).unwrap();

    // Evidence that doesn't fit.
    let error = store.put_bytes(&noise(1_000_000)).unwrap_err();
    let expected = format!("no space is left to write `{}`", run.join(layout::ARTIFACTS).display());
    assert!(chain(&error).starts_with(&expected), "{}", chain(&error));
    assert!(is_disk_full(&error));
    assert!(store.put_bytes(b"small").is_ok(), "what didn't fit must be gone again");

    // A file that doesn't fit, in place of one that is there.
    assert!(is_disk_full(&write_atomically(&derived, &noise(1_000_000)).unwrap_err()));
    assert_eq!(fs::read(&derived).unwrap(), b"old");

    // Events, until the last page is full.
    let filler = run.parent().unwrap().join("filler");
    let mut kept = events(&store);
    let mut written = noise(600_000);
    while fs::write(&filler, &written).is_err() {
        written.truncate(written.len() - 4096);
    }
    let error = (2..6).find_map(|attempt| {
        store.append(block_ended(1, attempt - 1)).and_then(|_| store.append(block_started(1, attempt))).err()
    });
    let error = error.expect("half a megabyte is soon full");
    assert!(is_disk_full(&error), "{}", chain(&error));
    let left = events(&store);
    assert!(left.len() >= kept.len());
    kept = left;
    drop(store);

    let mut store = RunStore::create(run, &run_id(), &plan(), &facts())
        .or_else(|_full| {
            fs::remove_file(&filler).unwrap();
            RunStore::create(run, &run_id(), &plan(), &facts())
        })
        .unwrap();
    assert_eq!(events(&store), kept);
    assert_eq!(store.torn_bytes(), 0, "the half-written line was taken back at once");
    fs::remove_file(&filler).ok();
    let (open, _) = store.open_attempts().remove(0);
    store.append(block_ended(open.block, open.attempt)).unwrap();
    drop(store);
    let damage = verify(run).unwrap().into_iter().find(|finding| finding.severity() == crate::Severity::Damage);
    assert_eq!(damage, None);
}
