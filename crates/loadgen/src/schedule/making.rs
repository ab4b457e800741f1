//! Making a schedule: requests from their source, times from their process, bytes into their place.

use std::io;

use isobench_schema::ids::Digest;
use isobench_schema::record::Phase;
use isobench_schema::workload::{Api, Arrival, Prompts, TokenCounter, Workload};
use sha2::{Digest as _, Sha256};

use super::arrivals::Arrivals;
use super::bodies::Bodies;
use super::body::{self, BodyFields};
use super::draw::Draws;
use super::prompts::{Drawn, DrawnSource};
use super::{Content, Entry, FIRST_TOKENS, Pace, Request, Schedule, ScheduleError, check};
use crate::datasets::{self, Context, Part, Resources, Source, Times};

/// The seed of everything that must not change from block to block: the probes and the first request.
const FIXED_SEED: u64 = 0x1507_be2c;

/// Words of a probe where the prompts are those of a dataset.
const PROBE_WORDS: u32 = 64;

const ONE_AT_A_TIME: Arrival = Arrival::Closed { concurrency: 1, ramp_s: None };

/// Returns the schedule of one phase.
pub(super) fn schedule(
    workload: &Workload,
    seed: u64,
    phase: Phase,
    resources: &Resources,
) -> Result<Schedule, ScheduleError> {
    check::check(workload)?;
    let (count, purpose) = match phase {
        Phase::First => (1, "first"),
        Phase::ProbeBefore | Phase::ProbeAfter => (workload.probes.count, "probe"),
        Phase::WarmUp => (workload.warm_up_requests, "warm-up"),
        Phase::Measure => (workload.requests, "measure"),
    };
    let (seed, temperature, arrival) = match phase {
        Phase::First | Phase::ProbeBefore | Phase::ProbeAfter => (FIXED_SEED, 0.0, ONE_AT_A_TIME),
        Phase::WarmUp | Phase::Measure => (seed, workload.temperature, workload.arrival.clone()),
    };
    let fields = BodyFields {
        api: workload.api,
        counter: workload.counter,
        temperature,
        ignore_eos: workload.ignore_eos,
        extra_body: workload.extra_body.clone(),
    };
    let pace = pace(&arrival, workload.max_in_flight);
    let mut making = Making::new(phase, pace, &arrival, fields);
    let is_dataset = matches!(workload.prompts, Prompts::Dataset { .. });
    if let Some(tokenizer) = &resources.tokenizer
        && (is_dataset || workload.counter == TokenCounter::Tokenizer)
    {
        making.feed(tokenizer.digest()?.as_str().as_bytes());
    }
    if count == 0 {
        return Ok(making.finish(None));
    }
    let is_traced = matches!(arrival, Arrival::Trace { .. });
    let mut source = source(workload, seed, phase, resources)?;
    let mut times = Arrivals::new(arrival, Draws::new(seed, &format!("arrivals/{purpose}")));
    let mut offset_ns = 0;
    for _ in 0..count {
        let request = source.next()?;
        if is_traced && request.at_ns.is_none() {
            return Err(ScheduleError::NoTimes { prompts: shown(&workload.prompts) });
        }
        // A conversation arrives as a whole.
        if request.turn.is_none_or(|turn| turn.turn == 0) {
            offset_ns = times.next_ns(request.at_ns);
        }
        making.push(&request, offset_ns)?;
    }
    Ok(making.finish(Some(&*source)))
}

/// Returns how many requests the dataset has, where they have times of their own.
pub(super) fn timed_requests(
    workload: &Workload,
    seed: u64,
    resources: &Resources,
) -> Result<Option<u64>, ScheduleError> {
    check::check(workload)?;
    Ok(source(workload, seed, Phase::Measure, resources)?.timed_requests()?)
}

/// Returns where the requests of a phase come from.
fn source(
    workload: &Workload,
    seed: u64,
    phase: Phase,
    resources: &Resources,
) -> Result<Box<dyn Source>, ScheduleError> {
    let drawn = match &workload.prompts {
        Prompts::Words { input_tokens } => Some(Drawn::Words { input_tokens: *input_tokens }),
        Prompts::TokenIds { input_tokens, vocabulary_size, first_id } => Some(Drawn::TokenIds {
            input_tokens: *input_tokens,
            vocabulary_size: *vocabulary_size,
            first_id: *first_id,
        }),
        Prompts::Dataset { .. } => None,
    };
    let of_words = |kind: Drawn, output_tokens, purpose: &str| -> Box<dyn Source> {
        let output_tokens = if workload.api == Api::Embeddings { 0 } else { output_tokens };
        Box::new(DrawnSource { kind, output_tokens, draws: Draws::new(seed, &format!("prompts/{purpose}")) })
    };
    let part = match phase {
        Phase::First => {
            let kind = drawn.unwrap_or(Drawn::Words { input_tokens: FIRST_TOKENS }).shortened();
            let output_tokens = match workload.output_tokens {
                0 => FIRST_TOKENS,
                asked => asked.min(FIRST_TOKENS),
            };
            return Ok(of_words(kind, output_tokens, "first"));
        }
        Phase::ProbeBefore | Phase::ProbeAfter => {
            let kind = drawn.unwrap_or(Drawn::Words { input_tokens: PROBE_WORDS });
            return Ok(of_words(kind, workload.probes.output_tokens, "probe"));
        }
        Phase::WarmUp => Part::WarmUp,
        Phase::Measure => Part::Measure,
    };
    let Prompts::Dataset { name, options } = &workload.prompts else {
        let kind = drawn.unwrap_or(Drawn::Words { input_tokens: FIRST_TOKENS });
        return Ok(of_words(kind, workload.output_tokens, part.as_str()));
    };
    let context = Context {
        resources,
        api: workload.api,
        seed,
        part,
        requests: match part {
            Part::WarmUp => workload.warm_up_requests,
            Part::Measure => workload.requests,
        },
        output_tokens: workload.output_tokens,
        times: match workload.arrival {
            Arrival::Trace { .. } => Times::Trace,
            Arrival::Closed { .. }
            | Arrival::Open { .. }
            | Arrival::Constant { .. }
            | Arrival::Stages { .. }
            | Arrival::Bursts { .. }
            | Arrival::AllAtOnce => Times::Process,
        },
    };
    Ok(datasets::open(name, options, &context)?)
}

fn shown(prompts: &Prompts) -> String {
    match prompts {
        Prompts::Words { .. } => "prompts of words".to_owned(),
        Prompts::TokenIds { .. } => "prompts of token ids".to_owned(),
        Prompts::Dataset { name, .. } => format!("the requests of dataset `{name}`"),
    }
}

fn pace(arrival: &Arrival, max_in_flight: Option<u32>) -> Pace {
    match arrival {
        Arrival::Closed { concurrency, ramp_s } => {
            let ramp = ramp_s.and_then(|seconds| std::time::Duration::try_from_secs_f64(seconds).ok());
            Pace::Closed { concurrency: *concurrency, ramp_ns: ramp.map_or(0, crate::clock::nanoseconds) }
        }
        Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::AllAtOnce => Pace::Open { max_in_flight },
    }
}

/// A schedule that is being made.
struct Making {
    phase: Phase,
    pace: Pace,
    fields: BodyFields,
    models: Vec<String>,
    entries: Vec<Entry>,
    bodies: Bodies,
    hasher: Sha256,
}

impl Making {
    fn new(phase: Phase, pace: Pace, arrival: &Arrival, fields: BodyFields) -> Self {
        let mut making = Self {
            phase,
            pace,
            fields,
            models: Vec::new(),
            entries: Vec::new(),
            bodies: Bodies::default(),
            hasher: Sha256::new(),
        };
        making.feed(b"isobench schedule 2");
        making.feed(phase.as_str().as_bytes());
        making.feed(making.fields.api.as_str().as_bytes());
        making.feed(making.fields.counter.as_str().as_bytes());
        making.feed(format!("{arrival:?} {pace:?}").as_bytes());
        making
    }

    /// Adds a request to the end.
    fn push(&mut self, request: &Request, offset_ns: u64) -> Result<(), ScheduleError> {
        match (&request.content, self.fields.api) {
            (Content::Messages(_) | Content::Turn(_), Api::Completions | Api::Embeddings) => {
                let request = u32::try_from(self.entries.len()).unwrap_or(u32::MAX);
                return Err(ScheduleError::MessagesOutsideChat { request, api: self.fields.api.as_str() });
            }
            (Content::Ids(_), Api::Chat) => return Err(ScheduleError::IdsInChat),
            (Content::Ids(_) | Content::Text(_), _) | (Content::Messages(_) | Content::Turn(_), Api::Chat) => {}
        }
        self.keep(request, offset_ns).map_err(|source| ScheduleError::Keep { source })
    }

    fn keep(&mut self, request: &Request, offset_ns: u64) -> io::Result<()> {
        let body::Rendered { body, tail } = body::render(&self.fields, request);
        self.feed(&body);
        self.feed(&tail);
        self.feed(&offset_ns.to_le_bytes());
        self.feed(&request.think_ns.to_le_bytes());
        let model = match &request.model {
            None => None,
            Some(name) => {
                self.feed(name.as_bytes());
                let known = self.models.iter().position(|model| model == name);
                let place = known.unwrap_or_else(|| {
                    self.models.push(name.clone());
                    self.models.len() - 1
                });
                Some(u16::try_from(place).map_err(|_too_many| io::Error::other("more than 65,536 models"))?)
            }
        };
        self.entries.push(Entry {
            offset_ns,
            think_ns: request.think_ns,
            input_tokens: request.input_tokens,
            output_tokens: request.output_tokens,
            turn: request.turn,
            model,
            body: self.bodies.push(&body)?,
            tail: self.bodies.push(&tail)?,
        });
        Ok(())
    }

    /// Feeds a part with its length, so that no two schedules feed alike.
    fn feed(&mut self, part: &[u8]) {
        self.hasher.update((part.len() as u64).to_le_bytes());
        self.hasher.update(part);
    }

    fn finish(self, source: Option<&dyn Source>) -> Schedule {
        Schedule {
            phase: self.phase,
            api: self.fields.api,
            counter: self.fields.counter,
            pace: self.pace,
            models: self.models,
            entries: self.entries,
            bodies: self.bodies,
            input: source.and_then(Source::file),
            left_out: source.map_or(0, Source::left_out),
            again: source.map_or(0, Source::again),
            digest: Digest::finish(self.hasher),
        }
    }
}
