//! From stored evidence to numbers, validity and verdicts. Pure.
