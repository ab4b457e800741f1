//! What is sent in each phase, and when: a pure function of the workload, a seed, and what its dataset holds.

mod arrivals;
mod bodies;
mod body;
mod check;
pub(crate) mod draw;
mod error;
mod making;
mod phases;
pub mod prepared;
mod prompts;
mod request;
mod stages;
pub(crate) mod words;

use std::io;

use isobench_schema::ids::Digest;
use isobench_schema::record::{Phase, Turn};
use isobench_schema::workload::{Api, TokenCounter, Workload};

use serde::{Deserialize, Serialize};

use bodies::{Bodies, Span};
pub use body::is_reserved;
pub use error::ScheduleError;
pub use phases::Schedules;
pub use request::{Content, Request};

pub use crate::datasets::{DatasetError, Input, Resources};

/// The longest prompt and the most output tokens of the first request.
pub(crate) const FIRST_TOKENS: u32 = 8;

/// How requests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Pace {
    /// So many are under way; one that ends starts the next. The loop is filled evenly over `ramp_ns`.
    Closed {
        /// Requests (of conversations: sessions) under way.
        concurrency: u32,
        /// Over how long the loop is filled, in nanoseconds.
        ramp_ns: u64,
    },
    /// Each has its own time.
    Open {
        /// The most under way, if there is a bound.
        max_in_flight: Option<u32>,
    },
}

/// One request of a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// Its intended time in nanoseconds since the phase's start; for a turn after the first that of its conversation. 0 in
    /// a closed loop.
    pub offset_ns: u64,
    /// How long after the answer of the turn before it is sent, in nanoseconds.
    pub think_ns: u64,
    /// The prompt's length in tokens (in words for worded prompts).
    pub input_tokens: u32,
    /// Tokens asked of the answer.
    pub output_tokens: u32,
    /// Its place in a conversation.
    pub turn: Option<Turn>,
    /// The place of its model among the schedule's models, if it isn't the load's.
    model: Option<u16>,
    /// Its body without the model: for a turn, only its own messages.
    body: Span,
    /// For a turn, what comes after the messages.
    tail: Span,
}

/// Everything that is sent in one phase.
#[derive(Debug)]
pub struct Schedule {
    phase: Phase,
    api: Api,
    counter: TokenCounter,
    pace: Pace,
    models: Vec<String>,
    entries: Vec<Entry>,
    bodies: Bodies,
    /// The file that its requests were made from.
    input: Option<Input>,
    /// Rows of that file that were left out.
    left_out: u64,
    /// Requests that were made of rows that had been sent before.
    again: u64,
    /// Of everything but the load's model and the server's address.
    digest: Digest,
}

impl Schedule {
    /// Returns the schedule of one phase of a workload.
    ///
    /// Warm-up and window have random streams of their own, derived from `seed`. The first request and the probes don't
    /// depend on `seed`, so that their answers can be compared across blocks; the probes after the window are the same
    /// as those before it, and greedy whatever the workload's temperature is. First request and probes go one at a time;
    /// where prompts are those of a dataset, they are short texts of words.
    ///
    /// # Errors
    /// Returns what in the workload can't be sent, or can't be sent with these resources.
    pub fn new(workload: &Workload, seed: u64, phase: Phase, resources: &Resources) -> Result<Self, ScheduleError> {
        making::schedule(workload, seed, phase, resources)
    }

    /// Returns how many requests the workload's dataset has before they begin again, where each has a time of its own, as in
    /// a trace; `None` for other datasets and for prompts that are drawn.
    ///
    /// # Errors
    /// As [`Schedule::new`].
    pub fn timed_requests(workload: &Workload, seed: u64, resources: &Resources) -> Result<Option<u64>, ScheduleError> {
        making::timed_requests(workload, seed, resources)
    }

    /// Returns the phase.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Returns the interface.
    pub fn api(&self) -> Api {
        self.api
    }

    /// Returns how tokens are counted.
    pub fn counter(&self) -> TokenCounter {
        self.counter
    }

    /// Returns how requests follow each other.
    pub fn pace(&self) -> Pace {
        self.pace
    }

    /// Returns the requests, in the order in which they are sent.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the file that its requests were made from, if they were.
    pub fn input(&self) -> Option<&Input> {
        self.input.as_ref()
    }

    /// Returns how many rows of that file were left out, because the dataset's rules or its options say so.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns how many requests are of rows that earlier requests are of too, because the file has fewer.
    pub fn again(&self) -> u64 {
        self.again
    }

    /// Returns the model that `entry` asks for, if it isn't the load's.
    pub fn model(&self, entry: &Entry) -> Option<&str> {
        self.models.get(usize::from(entry.model?)).map(String::as_str)
    }

    /// Appends the JSON body of `entry` to `out`. `model` is the load's; `history` are the messages of the turns before it,
    /// each followed by a comma.
    ///
    /// # Errors
    /// Returns an error if the prepared bytes can't be read back.
    pub fn write_body(&self, entry: &Entry, model: &str, history: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.extend_from_slice(b"{\"model\":");
        serde_json::to_writer(&mut *out, self.model(entry).unwrap_or(model))?;
        if entry.turn.is_some() {
            out.extend_from_slice(b",\"messages\":[");
            out.extend_from_slice(history);
            self.bodies.read(entry.body, out)?;
            out.push(b']');
            self.bodies.read(entry.tail, out)
        } else {
            self.bodies.read(entry.body, out)
        }
    }

    /// Appends the messages of `entry`, and a comma, to the history of its conversation.
    ///
    /// # Errors
    /// Returns an error if the prepared bytes can't be read back.
    pub fn write_message(&self, entry: &Entry, history: &mut Vec<u8>) -> io::Result<()> {
        self.bodies.read(entry.body, history)?;
        history.push(b',');
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests;
