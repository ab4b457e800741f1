//! Makes things happen: environments, servers, load and blocks of launches.

pub mod block;
pub mod cache_entries;
pub mod cache_use;
pub mod command;
pub mod container;
pub mod disk;
pub mod engine;
pub mod environment;
pub mod git;
pub mod host;
pub mod images;
pub mod inputs;
pub mod inventory;
pub mod lease;
pub mod run_images;
pub mod server;
pub mod sink;
pub mod wheels;

mod caches;
mod elsewhere;
mod https;
mod launch;
mod launch_inputs;
mod live;
mod load;
mod log_evidence;
mod script;
