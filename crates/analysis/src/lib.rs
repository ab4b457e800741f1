//! From stored evidence to numbers, causes, validity and verdicts. Pure: bytes in, numbers out.
//!
//! [`measure`] reads the request records of one launch, [`validity`] says which checks the launch breaks, [`block`]
//! decides whether a block counts or runs again, and [`judge`] turns all launches of a run into verdicts with
//! [`stats`], and [`suite`] says what the tasks say together; [`simulation`] holds judging against made-up machines.
//! [`load_report`] makes the result of a load alone, whose goodput asks for an [`objective`]. [`parse`] reads
//! what benchmark tools print and write, [`classify`] says why something failed, both on [`text`]; [`legacy`] reads the
//! results of earlier systems, and [`coverage`] counts how far things came.
//! [`script`] reads what an engine's own benchmark script says of itself. [`load_checks`] says of a load whether its client was good enough, whether the server was steady and kept up, where it
//! saturates, and what two servers differ by. [`noise`] says what earlier runs tell of a spread, and what a design finds in it.

pub mod block;
pub mod classify;
pub mod coverage;
pub mod judge;
pub mod launch;
pub mod legacy;
pub mod load_checks;
pub mod load_report;
pub mod measure;
pub mod noise;
pub mod objective;
pub mod parse;
pub mod script;
pub mod simulation;
pub mod stats;
pub mod suite;
pub mod text;
pub mod validity;
