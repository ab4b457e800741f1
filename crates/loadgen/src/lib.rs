//! A load generator for servers with OpenAI's interface. It records and computes nothing.
//!
//! A [`schedule::Schedule`] says what is sent and when; a [`client::Client`] sends it to a [`target::Target`] and hands
//! out one [`isobench_schema::record::RequestRecord`] for each request; a [`record::RecordWriter`] stores them. Every
//! time in a record is taken once for each read of a socket, before anything in the bytes is looked at.
//!
//! Everything runs on one thread of a tokio runtime with timers and sockets enabled.

pub mod answer;
pub mod cancel;
pub mod client;
pub mod clock;
pub mod get;
pub mod http;
pub mod http2;
pub mod record;
pub mod schedule;
pub mod sse;
pub mod target;
pub mod tls;

mod connection;
mod event;
mod exchange;
mod failing;
mod json;
mod pace;
