//! Wheels: what their names say, where indexes keep them, how they get here, and whether what came is what it says.
//!
//! Nothing of a wheel is executed or unpacked here. Installing stays with uv and pip, which are given a file that was
//! looked through, or a hash.

pub mod archive;
pub mod fetch;
pub mod index;
pub mod name;

mod address;
mod record;
#[cfg(test)]
mod tests;

pub use address::file_name;
