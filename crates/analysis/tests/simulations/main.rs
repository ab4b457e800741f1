//! Error rates, power and cost by simulation: what the documents print is what comes out, and it keeps its bounds.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test that meets the unexpected fails")]

#[path = "../judging/support.rs"]
mod support;

mod agreement;
mod book;
mod documents;
mod same_judge;
