//! What isobench writes down: tasks, plans, events, outcomes, measurements and verdicts.
//!
//! Everything that is stored, sent to a worker or printed as JSON is defined here and nowhere else. The crate is pure:
//! it has no files, no clock, no network and no randomness of its own.

pub mod assessment;
pub mod block;
pub mod cause;
pub mod check;
pub mod commit_task;
pub mod comparability;
pub mod confirmation;
pub mod container;
pub mod coverage;
pub mod deviation;
pub mod environment;
pub mod event;
pub mod facts;
pub mod failure;
pub mod format;
pub mod ids;
pub mod images;
pub mod input;
pub mod legacy;
pub mod load_checks;
pub mod load_result;
pub mod measurement;
pub mod noise;
pub mod old_tables;
pub mod order;
pub mod outcome;
pub mod plan;
pub mod reading;
pub mod recipe;
pub mod record;
pub mod script;
pub mod suite;
pub mod task;
pub mod tool;
pub mod units;
pub mod verdict;
pub mod workload;
