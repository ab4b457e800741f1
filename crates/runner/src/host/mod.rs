//! The process host: engines as bare processes of this machine.

pub mod client_thread;
pub mod guard;
pub mod network_trap;
pub mod process_table;
pub mod reaper;
pub mod removal;
pub mod shared_folders;
