//! Makes things happen: environments, servers, load and blocks of launches.

pub mod command;
pub mod engine;
pub mod host;
pub mod lease;
mod log_evidence;
