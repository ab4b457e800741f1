//! What several tests need: the options that revisions' own sources define, and what argparse says of an argument list.
#![allow(dead_code, reason = "not every test uses all of it")]
#![allow(clippy::indexing_slicing, clippy::panic, clippy::unwrap_used, reason = "a broken fixture must fail the test")]
#![allow(unreachable_pub, reason = "the items are public to the tests that hold this module")]

pub mod argparse;
pub mod baselines;
