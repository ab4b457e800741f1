//! Makes things happen: environments, servers, load and blocks of launches.

pub mod block;
pub mod command;
pub mod engine;
pub mod environment;
pub mod git;
pub mod host;
pub mod images;
pub mod inputs;
pub mod inventory;
pub mod lease;
pub mod server;
pub mod sink;

mod caches;
mod elsewhere;
mod launch;
mod live;
mod load;
mod log_evidence;
