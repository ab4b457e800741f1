//! Runs as a person has them: gone on with, refused, checked, run elsewhere, compared, chosen from, and fed with rubbish.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod causes;
mod choosing;
mod comparing;
mod confirming;
mod devices;
mod elsewhere;
mod exporting;
mod full_disk;
mod hostile;
mod integrity;
mod looks;
mod patches;
mod resuming;
#[path = "../support/mod.rs"]
mod support;
