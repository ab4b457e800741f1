//! Judging from made-up launches: verdicts, the output check, properties, and error rates.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected fails")]

mod belief;
mod causes;
mod looks;
mod output;
mod properties;
mod rates;
mod sentinel;
mod support;
mod verdicts;
