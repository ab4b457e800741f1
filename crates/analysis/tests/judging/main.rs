//! Judging from made-up launches: verdicts, the output check, and properties.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected fails")]

mod causes;
mod looks;
mod output;
mod properties;
mod sentinel;
mod support;
mod verdicts;
