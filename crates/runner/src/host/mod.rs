//! Where engines run: what every host shares, and the process host. Containers are in `crate::container`.

pub mod client_thread;
pub(crate) mod engine_host;
pub mod guard;
pub mod in_network;
pub mod network_trap;
pub(crate) mod process_host;
pub mod process_table;
pub mod reaper;
pub mod removal;
pub mod seen_root;
pub mod shared_folders;
