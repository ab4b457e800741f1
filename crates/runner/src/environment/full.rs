//! Full disks that a command meets before isobench does: the step is lost and can be tried again, and no arm is blamed.

use std::io;
use std::path::Path;

use super::EnvironmentError;
use crate::command::{Ending, Finished};
use crate::disk::free_bytes;

/// With less room than this a command that failed isn't believed to have failed by itself.
const FULL_BYTES: u64 = 64 << 10;
/// Programs that fail on a full disk often remove what they had written: with less room than this they are believed if they
/// say that there was none. More than what a compiler or an installer writes at once.
const NEARLY_FULL_BYTES: u64 = 1 << 30;
/// How programs say it, in lower case.
const SIGNS: &[&str] = &["no space left on device", "disk quota exceeded", "(os error 28)", "(os error 122)"];

/// Checks that a command which failed didn't fail because one of the disks that it writes to is full.
///
/// What a command prints is a claim: a stranger's build that says so on a disk with room has failed all the same.
pub(super) fn check_room(finished: &Finished, places: &[&Path]) -> Result<(), EnvironmentError> {
    match finished.ending {
        Ending::Exited(0) | Ending::Cancelled | Ending::DeadlinePassed => return Ok(()),
        Ending::Exited(_) | Ending::Signalled(_) => {}
    }
    let says = || {
        let mut lines = finished.tail.lines().into_iter().map(|(_, line)| line.to_lowercase());
        lines.any(|line| SIGNS.iter().any(|sign| line.contains(sign)))
    };
    let room = places.iter().filter_map(|place| Some((free_bytes(place).ok()?, *place)));
    let Some((free, place)) = room.min_by_key(|(free, _)| *free) else { return Ok(()) };
    if free < FULL_BYTES || (free < NEARLY_FULL_BYTES && says()) {
        let source = io::Error::from(io::ErrorKind::StorageFull);
        return Err(EnvironmentError::Write { path: place.to_owned(), source });
    }
    Ok(())
}
