//! The records of a load, read line by line into the numbers of one launch.

mod answer;
mod answer_digests;
mod digest;
pub(crate) mod gaps;
mod lines;
mod metrics;
mod request;
mod sample;

use std::collections::BTreeSet;

use isobench_schema::check::Check;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::format::ReadFormatError;
use isobench_schema::ids::LaunchId;
use isobench_schema::order::derive_seed;
use isobench_schema::outcome::evidence;
use isobench_schema::record::{Phase, PhaseAudit, RecordLine, RequestRecord, ServerSample};

pub(crate) use answer::agreement;
pub use answer::{Answer, Tokens};
pub use answer_digests::{AnswerDigests, InvalidAnswerDigestsError};
pub use digest::LaunchDigest;
pub(crate) use gaps::Gaps;
pub(crate) use lines::{Item, RecordLines};
pub use request::RequestNumbers;
pub(crate) use sample::{Sample, elapsed_ms};

use crate::validity::phases::Spans;
use crate::validity::{self, LaunchRules};

/// The version of what is kept of a launch: digests that another one computed are computed again.
pub const DIGEST_VERSION: u32 = 4;

/// Measured requests whose answers are kept.
pub const ANSWERS_KEPT: u32 = 16;
/// Tokens that are kept of each measured answer; the digest of the whole stands for the rest.
const ANSWER_TOKENS: usize = 32;
/// Tokens that are kept of each probe's answer.
const PROBE_TOKENS: usize = 256;

/// Why the records of a launch can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadRecordsError {
    /// There isn't even a header.
    #[error("the request records are empty")]
    Empty,
    /// The first line is no header of a known version.
    #[error("line 1 of the request records is no header")]
    Header {
        /// What is wrong with it.
        #[source]
        source: ReadFormatError,
    },
    /// A line isn't a request record.
    #[error("line {line} of the request records is no request record")]
    Record {
        /// The line, from 1.
        line: u64,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    /// A record whose chunks have no matching token counts.
    #[error("line {line} of the request records has {times} chunk times but {counts} token counts")]
    Chunks {
        /// The line, from 1.
        line: u64,
        /// How many times it has.
        times: usize,
        /// How many counts it has.
        counts: usize,
    },
    /// A request that is recorded twice.
    #[error("line {line} of the request records repeats {phase} request {index}")]
    Repeated {
        /// The line, from 1.
        line: u64,
        /// The phase.
        phase: Phase,
        /// The request's number in the phase.
        index: u32,
    },
    /// The last line has no end, so that it may be cut.
    #[error("line {line} of the request records is cut")]
    Cut {
        /// The line, from 1.
        line: u64,
    },
}

impl ReadRecordsError {
    /// Returns the failure of the launch whose records these are.
    pub fn failure(&self) -> Failure {
        let mut message = self.to_string();
        if let Some(source) = std::error::Error::source(self) {
            message = format!("{message}: {source}");
        }
        Failure::new(FailureStage::Parse, FailureClass::EvidenceUnreadable, message).breaking(Check::RecordsReadable)
    }
}

/// Everything that was read and matters for the numbers and checks of a launch.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    /// The requests of the window.
    pub(crate) window: Vec<Sample>,
    /// The probes before and after it.
    pub(crate) probes: Vec<Sample>,
    /// Requests of the warm-up that failed.
    pub(crate) warm_up_failed: Vec<Sample>,
    /// When each phase was under way.
    pub(crate) spans: Spans,
    /// The gaps between chunks of completed requests of the window.
    pub(crate) gaps: Gaps,
    /// What the client saw of itself, by phase.
    pub(crate) audits: Vec<PhaseAudit>,
    /// What the server said of itself.
    pub(crate) server: Vec<ServerSample>,
}

/// Reads `requests.jsonl`, fed in pieces of any size.
#[derive(Debug)]
pub struct RecordReader {
    launch: LaunchId,
    lines: RecordLines,
    taken: Taken,
}

impl RecordReader {
    /// Returns a reader of one launch's records, which will be checked against `rules`.
    pub fn new(launch: LaunchId, rules: LaunchRules) -> Self {
        Self { launch, lines: RecordLines::default(), taken: Taken::new(rules) }
    }

    /// Takes the next bytes. The first thing wrong is kept for [`RecordReader::finish`], and what follows it is
    /// ignored.
    pub fn feed(&mut self, bytes: &[u8]) {
        let Self { lines, taken, .. } = self;
        lines.feed(bytes, |item| taken.item(item));
    }

    /// Returns the numbers of the launch and the checks that it breaks.
    ///
    /// # Errors
    /// Returns the first line that can't be read.
    pub fn finish(self) -> Result<LaunchDigest, ReadRecordsError> {
        let Self { launch, lines, taken } = self;
        let header = lines.finish()?;
        let measurement = metrics::measurement(launch, &taken.samples);
        let findings = validity::findings(&taken.rules, &taken.samples, &measurement);
        let sorted = |mut answers: Vec<Answer>| {
            answers.sort_by_key(|answer| answer.index);
            answers
        };
        Ok(LaunchDigest {
            measurement,
            client: header.client,
            seed: header.seed,
            workload: header.workload,
            probes_before: sorted(taken.probes_before),
            probes_after: sorted(taken.probes_after),
            answers: sorted(taken.answers),
            answer_digests: taken.answer_digests,
            audits: taken.samples.audits,
            findings,
        })
    }
}

/// What was read so far.
#[derive(Debug)]
struct Taken {
    rules: LaunchRules,
    drawn: BTreeSet<u32>,
    samples: Samples,
    probes_before: Vec<Answer>,
    probes_after: Vec<Answer>,
    answers: Vec<Answer>,
    answer_digests: AnswerDigests,
}

impl Taken {
    fn new(rules: LaunchRules) -> Self {
        Self {
            rules,
            drawn: BTreeSet::new(),
            samples: Samples::default(),
            probes_before: Vec::new(),
            probes_after: Vec::new(),
            answers: Vec::new(),
            answer_digests: AnswerDigests::default(),
        }
    }

    fn item(&mut self, item: Item<'_>) {
        match item {
            Item::Header(header) => self.drawn = drawn(header.seed, self.rules.requests),
            Item::Line(line, RecordLine::Request(record)) => self.request(line, &record),
            Item::Line(_, RecordLine::Audit(audit)) => self.samples.audits.push(audit),
            Item::Line(_, RecordLine::Server(sample)) => self.samples.server.push(sample),
        }
    }

    fn request(&mut self, line: u64, record: &RequestRecord) {
        let sample = Sample::of(record, line);
        self.samples.spans.take(record);
        let answer = |tokens| record.failure.is_none().then(|| Answer::of(record, line, tokens));
        match record.phase {
            Phase::First => {}
            Phase::WarmUp => self.samples.warm_up_failed.extend(Some(sample).filter(|sample| sample.failure.is_some())),
            Phase::ProbeBefore => {
                self.probes_before.extend(answer(PROBE_TOKENS));
                self.samples.probes.push(sample);
            }
            Phase::ProbeAfter => {
                self.probes_after.extend(answer(PROBE_TOKENS));
                self.samples.probes.push(sample);
            }
            Phase::Measure => {
                if self.drawn.contains(&record.index) {
                    self.answers.extend(answer(ANSWER_TOKENS));
                }
                if record.failure.is_none() {
                    if record.index < self.rules.requests {
                        self.answer_digests.take(record);
                    }
                    self.samples.gaps.take(record, |_| {});
                }
                self.samples.window.push(sample);
            }
        }
    }
}

/// Returns the requests of a window whose answers are kept: one from each of [`ANSWERS_KEPT`] equal parts of it, drawn by the
/// seed, or all of them if there are no more than that.
fn drawn(seed: u64, requests: u32) -> BTreeSet<u32> {
    let start_of = |part: u32| u64::from(requests) * u64::from(part) / u64::from(ANSWERS_KEPT);
    let draw = |part: u32| {
        let (from, to) = (start_of(part), start_of(part + 1));
        let place = derive_seed(seed, &format!("answers/{part}")).checked_rem(to - from)?;
        u32::try_from(from + place).ok()
    };
    (0..ANSWERS_KEPT).filter_map(draw).collect()
}

/// Returns a line of evidence from the request records.
pub(crate) fn evidence_line(line: u64, text: &str) -> isobench_schema::failure::EvidenceLine {
    isobench_schema::failure::EvidenceLine::new(evidence::REQUESTS, Some(line), text)
}

#[cfg(test)]
pub(crate) mod tests;
