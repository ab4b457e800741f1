//! Whole folders: created, killed at any moment, opened again, taken in, verified.

mod blocks;
mod checks;
mod disk_full;
mod library;
mod resume;

use std::error::Error;
use std::path::Path;

use isobench_schema::event::Event;

use crate::RunStore;
use crate::samples::{block_ended, block_started, facts, plan, run_id, run_started};

/// Creates the sample run in a folder.
fn create(dir: &Path) -> RunStore {
    RunStore::create(dir, &run_id(), &plan(), &facts()).unwrap()
}

/// Creates the sample run with its first block.
fn create_with_a_block(dir: &Path) -> RunStore {
    let mut store = create(dir);
    for kind in [run_started(), block_started(0, 1), block_ended(0, 1)] {
        store.append(kind).unwrap();
    }
    store
}

fn events(store: &RunStore) -> Vec<Event> {
    store.events().unwrap().map(Result::unwrap).collect()
}

/// Returns an error's text and those of its causes.
fn chain(error: &dyn Error) -> String {
    match error.source() {
        Some(cause) => format!("{error}: {}", chain(cause)),
        None => error.to_string(),
    }
}
