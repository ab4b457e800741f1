//! Makes things happen: environments, servers, load and blocks of launches.

pub mod command;
pub mod host;
