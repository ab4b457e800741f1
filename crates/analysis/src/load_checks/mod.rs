//! What is checked of a load beyond its numbers: whether the client was good enough ([`audit`]), whether the server was
//! steady and kept up ([`steady`]), where it saturates ([`sweep`]), and what two servers differ by ([`paired`]).
//!
//! Inputs are plain times and numbers, results are those of [`isobench_schema::load_checks`]. Nothing claims more than its
//! data: each check has an outcome for too few of them.

pub mod audit;
pub mod paired;
mod series;
pub mod steady;
pub mod sweep;

#[cfg(test)]
mod draws;
