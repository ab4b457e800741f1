//! Judging from made-up launches: verdicts, the output check, and properties.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected fails")]

mod belief;
mod causes;
mod looks;
mod output;
mod properties;
mod sentinel;
mod suite;
mod support;
mod verdicts;
