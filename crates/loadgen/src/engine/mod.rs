//! The engine of the load client: threads that send requests at their times and read answers, each with its own sockets.
//!
//! A worker is one thread around one `epoll`. It does nothing but sending, reading and taking times: prompts were prepared
//! before, and records are counted and stored by the thread that takes them. Each read of a socket has one time, taken
//! from the kernel's receive stamp where there is one, before anything in the bytes is looked at.
//!
//! The rule for connections: one that the server keeps is used again after its answer was read to the end. If such a
//! connection turns out to be closed before a single byte of the next answer has come, the request is sent once more on
//! a fresh one; its intended time stays, so the loss counts in its latency, and the phase's audit counts it. Nothing
//! else is ever sent twice.

mod connecting;
mod connection;
mod exchange;
mod flight;
mod frames;
mod lag;
mod phase;
mod processor;
mod reading;
mod realtime;
mod releases;
mod socket;
mod table;
mod work;
mod worker;

use isobench_schema::record::RequestRecord;

use crate::cancel::Cancel;
use crate::client::LoadOptions;
use crate::clock::Clock;
use crate::gauge::Gauge;
use crate::target::Target;

pub(crate) use lag::Lag;
pub(crate) use processor::retransmits;
pub(crate) use work::{GettingReady, Work};
pub(crate) use worker::{Worker, WorkerReport};

/// What all requests of a client have in common.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) target: Target,
    pub(crate) clock: Clock,
    pub(crate) options: LoadOptions,
    pub(crate) cancel: Cancel,
    pub(crate) gauge: Gauge,
}

/// Where records go as requests end.
pub(crate) type Records = tokio::sync::mpsc::UnboundedSender<RequestRecord>;
