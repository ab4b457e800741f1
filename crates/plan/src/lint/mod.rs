//! Rules that say what is wrong with a task before a device is used.

pub mod ids;
pub mod registry;
