//! From stored evidence to numbers, validity and verdicts. Pure.

pub mod stats;
