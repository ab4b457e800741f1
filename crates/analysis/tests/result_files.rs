//! What the result files of the corpus say, whole, cut at any byte, and changed in ways that happen.

#![allow(clippy::panic, clippy::indexing_slicing, reason = "a sample that is missing is a failed test")]

#[path = "result_files/corpus.rs"]
mod corpus;
#[path = "result_files/traps.rs"]
mod traps;
