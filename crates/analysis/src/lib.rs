//! From stored evidence to numbers, validity and verdicts. Pure: bytes in, numbers out.
//!
//! [`measure`] reads the request records of one launch, [`validity`] says which checks the launch breaks, [`block`]
//! decides whether a block counts or runs again, and [`judge`] turns all launches of a run into verdicts with
//! [`stats`].

pub mod block;
pub mod judge;
pub mod launch;
pub mod measure;
pub mod stats;
pub mod validity;
