//! What is read from the output of benchmark tools, by samples of every layout, and by what becomes of them when logs are
//! cut, coloured, interleaved and fed in pieces.

#![allow(clippy::panic, clippy::indexing_slicing, reason = "a test that panics fails, as it should")]

mod bindings;
mod corpus;
mod cuts;
mod disturbances;
mod problems;
mod support;
