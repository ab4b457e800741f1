//! One request under way, and the run that it is part of.

use std::io::{self, Write as _};

use isobench_schema::failure::FailureClass;
use isobench_schema::record::{RequestFailure, RequestRecord, Turn};

use super::Context;
use super::reading::{Reading, State};
use super::work::Work;
use crate::answer::{Answer, Lengths, Progress};
use crate::client::LoadOptions;
use crate::clock::nanoseconds;
use crate::failing::failure;

/// How long the end of a body is waited for after `[DONE]`, before the connection is given up, in nanoseconds.
const DRAIN_NS: u64 = 250_000_000;

/// A request, or a conversation at one of its turns.
#[derive(Debug)]
pub(crate) struct Run {
    /// The request.
    pub(crate) index: u32,
    /// The messages of the turns before it, each followed by a comma.
    pub(crate) history: Vec<u8>,
}

impl Run {
    pub(crate) fn new(index: u32) -> Self {
        Self { index, history: Vec::new() }
    }
}

/// One request under way.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) run: Run,
    pub(crate) state: State,
    pub(crate) reading: Reading,
}

impl Flight {
    /// Returns the flight of a run whose request should be sent at `intended_ns` and is begun now.
    pub(crate) fn new(work: &Work, run: Run, intended_ns: u64, now_ns: u64) -> Self {
        let schedule = &work.schedule;
        let entry = work.entry(run.index);
        let input_tokens = entry.map_or(0, |entry| entry.input_tokens);
        let output_tokens = entry.map_or(0, |entry| entry.output_tokens);
        let turn: Option<Turn> = entry.and_then(|entry| entry.turn);
        let record = RequestRecord {
            input_tokens,
            output_tokens_asked: output_tokens,
            released_ns: Some(now_ns),
            turn,
            model: entry.and_then(|entry| schedule.model(entry)).map(str::to_owned),
            ..RequestRecord::intended(schedule.phase(), run.index, intended_ns)
        };
        let answer = Answer::new(
            schedule.counter(),
            Lengths { input_tokens, output_tokens, exact: work.context.options.exact_lengths },
        );
        let state = State { record, answer, end_ns: None, quiet_since_ns: None };
        Self { run, state, reading: Reading::new(schedule.api()) }
    }

    /// Returns the failure of a request that has missed one of its deadlines by now.
    pub(crate) fn overdue(&self, options: &LoadOptions, now_ns: u64) -> Option<RequestFailure> {
        let LoadOptions { request_timeout, stall_timeout, .. } = options;
        let deadline_ns = self.state.record.intended_ns.saturating_add(nanoseconds(*request_timeout));
        if now_ns >= deadline_ns {
            let message =
                format!("the answer wasn't complete {} s after its intended send", request_timeout.as_secs_f64());
            return Some(failure(FailureClass::RequestTimeout, message));
        }
        let stalled_ns = self.state.quiet_since_ns?.saturating_add(nanoseconds(*stall_timeout));
        if now_ns >= stalled_ns {
            let message = format!("the stream brought no event for {} s", stall_timeout.as_secs_f64());
            return Some(failure(FailureClass::StreamStalled, message));
        }
        None
    }

    /// Returns whether the answer is whole and its body doesn't end: only the connection isn't worth keeping.
    pub(crate) fn is_drained(&self, now_ns: u64) -> bool {
        let last_ns = self.state.answer.last_event_ns().unwrap_or(now_ns);
        self.state.answer.progress() == Progress::Done && now_ns.saturating_sub(last_ns) >= DRAIN_NS
    }

    /// Appends the body of the request to `out`.
    ///
    /// # Errors
    /// Returns an error if the prepared bytes can't be read back.
    pub(crate) fn write_body(&self, work: &Work, out: &mut Vec<u8>) -> io::Result<()> {
        let Some(entry) = work.entry(self.run.index) else { return Ok(()) };
        work.schedule.write_body(entry, work.context.target.model(), &self.run.history, out)
    }

    /// Appends the bytes of the request in HTTP/1.1 to `out`; `scratch` is used on the way.
    ///
    /// # Errors
    /// Returns an error if the prepared bytes can't be read back.
    pub(crate) fn write_request(&self, work: &Work, scratch: &mut Vec<u8>, out: &mut Vec<u8>) -> io::Result<()> {
        scratch.clear();
        self.write_body(work, scratch)?;
        out.extend_from_slice(&work.head);
        write!(out, "{}\r\n\r\n", scratch.len())?;
        out.extend_from_slice(scratch);
        Ok(())
    }

    /// Returns what came of the request, and its run.
    pub(crate) fn land(self, context: &Context) -> (RequestRecord, Run) {
        let State { mut record, answer, end_ns, .. } = self.state;
        answer.write(&mut record, end_ns.unwrap_or_else(|| context.clock.now_ns()));
        (record, self.run)
    }
}
