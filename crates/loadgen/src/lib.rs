//! A load generator for servers with OpenAI's interface. It records and computes nothing.
//!
//! A [`schedule::Schedule`] says what is sent and when; a [`client::Client`] sends it to a [`target::Target`] and hands
//! out one [`isobench_schema::record::RequestRecord`] for each request; a [`record::RecordWriter`] stores them. Every
//! time in a record is taken once for each read of a socket, before anything in the bytes is looked at.
//!
//! Requests are sent and answers read on threads of their own, which do nothing else.

pub mod answer;
pub mod cancel;
pub mod client;
pub mod clock;
pub mod counting;
pub mod gauge;
pub mod get;
pub mod http;
pub mod http2;
pub mod record;
pub mod schedule;
pub mod scrape;
pub mod sse;
pub mod target;
pub mod tls;
pub mod tokenizer;

mod datasets;
mod engine;
mod event;
mod failing;
mod json;
