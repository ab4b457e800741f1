//! Registries of images: a fake one that lies as told, and Debian's real one.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod encrypted;
mod entry;
mod hostile;
mod hub;
mod limits;
mod listing;
mod looking;
mod moving;
mod real;
mod resuming;
mod support;
