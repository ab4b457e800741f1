//! Results of earlier systems: read, checked, grouped as their reports did, and the published tables recomputed.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected fails")]

mod categories;
mod damage;
mod flags;
mod shapes;
mod tables;

use std::fs;
use std::path::{Path, PathBuf};

use isobench_analysis::legacy::{LegacyFile, ReadLegacyError, read};
use isobench_schema::legacy::{LegacyFlag, LegacyRecord};

/// The folder of published results.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/iso-bench/legacy")
}

fn bytes(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
}

/// Reads a published file.
fn file(name: &str) -> LegacyFile {
    read(&bytes(name), name).unwrap()
}

/// Reads a text as a file of that name.
fn text(text: &str, name: &str) -> Result<LegacyFile, ReadLegacyError> {
    read(text.as_bytes(), name)
}

fn flags(record: &LegacyRecord) -> Vec<LegacyFlag> {
    record.remarks.iter().map(|remark| remark.flag).collect()
}
