//! Run directories: plan, append-only events and content-addressed evidence.
//!
//! A run's folder holds `plan.json`, `facts.json`, `events.jsonl`, `artifacts/`, `lock`, `work/` and `derived/`
//! ([`layout`]). Whatever is in it was written whole and reached the disk, or isn't there: a process that is killed at
//! any moment leaves a folder that opens again. `derived/` can be deleted at will. [`NoiseLibrary`] is a file beside all runs.

mod artifacts;
mod atomic;
mod attempts;
mod block;
mod events;
pub mod layout;
mod library;
mod list;
mod lock;
mod reader;
mod record;
mod run;
mod take_in;
mod verify;

#[cfg(test)]
mod samples;
#[cfg(test)]
mod tests;

pub use artifacts::{ArtifactReader, Artifacts, ReadArtifactError};
pub use atomic::{
    StoreError, WriteFile, is_disk_full, write_atomically, write_atomically_with, write_named, write_new_atomically,
    write_together,
};
pub use attempts::AttemptError;
pub use block::{BlockStore, OpenBlockError};
pub use events::{AppendError, Events, ReadEventsError, now_ms};
pub use library::{LibraryContents, LibraryError, LibraryProblem, NoiseLibrary};
pub use list::{RunEntry, RunSummary, list};
pub use lock::{LockError, LockHolder, is_locked};
pub use reader::{ReadRunError, RunReader};
pub use run::{OpenRunError, RunStore};
pub use take_in::{TakeInError, TakenIn, take_in};
pub use verify::{Finding, Severity, verify};
