//! What is sent in each phase, and when: a pure function of the workload and a seed.

mod arrivals;
mod bodies;
mod body;
mod draw;
mod prompts;
mod request;
mod words;

use std::io;
use std::sync::Arc;

use isobench_schema::ids::Digest;
use isobench_schema::record::{Phase, Turn};
use isobench_schema::workload::{Api, Arrival, Prompts, TokenCounter, Workload};
use sha2::{Digest as _, Sha256};

use arrivals::Arrivals;
use bodies::{Bodies, Span};
use body::BodyFields;
use draw::Draws;
use prompts::Drawn;
pub use request::{Content, Request};

/// The seed of everything that must not change from block to block: the probes and the first request.
const FIXED_SEED: u64 = 0x1507_be2c;

/// The longest prompt and the most output tokens of the first request.
pub(crate) const FIRST_TOKENS: u32 = 8;

/// Why a workload can't be sent.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A number that makes no sense.
    #[error("the workload's `{field}` is {value}, but it must be {rule}")]
    Number {
        /// The field.
        field: &'static str,
        /// What it holds.
        value: String,
        /// What it must be.
        rule: &'static str,
    },
    /// A field of the extra body is one that the load client sets itself, or that would change how answers are read.
    #[error("the workload's extra body sets `{field}`, which the load client controls")]
    ReservedField {
        /// The field.
        field: String,
    },
    /// Token ids can't be sent to the chat interface.
    #[error(
        "prompts of token ids can't be sent to the chat interface: use `words` prompts or the completions interface"
    )]
    IdsInChat,
    /// The prompts are those of a dataset, which this client can't draw.
    #[error("prompts of the dataset `{name}` can't be drawn: use `words` or `token-ids` prompts")]
    Dataset {
        /// The dataset.
        name: String,
    },
    /// The prepared requests can't be kept.
    #[error("failed to keep the prepared requests in the folder for temporary files")]
    Keep {
        /// The cause.
        #[source]
        source: io::Error,
    },
}

/// How requests follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// Its intended time in nanoseconds since the phase's start. 0 in a closed loop.
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
    /// Its body without the model: for a turn, only its own message.
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
    /// Of everything but the models' names and the server's address.
    hasher: Sha256,
}

impl Schedule {
    /// Returns the schedule of one phase of a workload.
    ///
    /// Warm-up and window have random streams of their own, derived from `seed`. The first request and the probes don't
    /// depend on `seed`, so that their answers can be compared across blocks; the probes after the window are the same
    /// as those before it, and greedy whatever the workload's temperature is. First request and probes go one at a time.
    ///
    /// # Errors
    /// Returns what in the workload can't be sent.
    pub fn new(workload: &Workload, seed: u64, phase: Phase) -> Result<Self, ScheduleError> {
        check(workload)?;
        let kind = Drawn::of(&workload.prompts)?;
        let (count, arrival, output_tokens, purpose) = match phase {
            Phase::First => (1, ONE_AT_A_TIME, workload.output_tokens.min(FIRST_TOKENS), "first"),
            Phase::ProbeBefore | Phase::ProbeAfter => {
                (workload.probes.count, ONE_AT_A_TIME, workload.probes.output_tokens, "probe")
            }
            Phase::WarmUp => (workload.warm_up_requests, workload.arrival.clone(), workload.output_tokens, "warm-up"),
            Phase::Measure => (workload.requests, workload.arrival.clone(), workload.output_tokens, "measure"),
        };
        let (seed, temperature) = match phase {
            Phase::First | Phase::ProbeBefore | Phase::ProbeAfter => (FIXED_SEED, 0.0),
            Phase::WarmUp | Phase::Measure => (seed, workload.temperature),
        };
        let prompts = match phase {
            Phase::First => kind.shortened(),
            Phase::ProbeBefore | Phase::ProbeAfter | Phase::WarmUp | Phase::Measure => kind,
        };
        let fields = BodyFields {
            api: workload.api,
            counter: workload.counter,
            temperature,
            ignore_eos: workload.ignore_eos,
            extra_body: workload.extra_body.clone(),
        };
        let mut schedule = Self::empty(phase, pace(&arrival, workload.max_in_flight), &fields, &arrival);
        let mut contents = Draws::new(seed, &format!("prompts/{purpose}"));
        let mut times = Arrivals::new(arrival, Draws::new(seed, &format!("arrivals/{purpose}")));
        for _ in 0..count {
            let request = Request::new(prompts.draw(&mut contents), prompts.input_tokens(), output_tokens);
            let offset_ns = times.next_ns(request.at_ns);
            schedule.push(&request, offset_ns, &fields).map_err(|source| ScheduleError::Keep { source })?;
        }
        Ok(schedule)
    }

    /// Returns a schedule without requests.
    fn empty(phase: Phase, pace: Pace, fields: &BodyFields, arrival: &Arrival) -> Self {
        let mut schedule = Self {
            phase,
            api: fields.api,
            counter: fields.counter,
            pace,
            models: Vec::new(),
            entries: Vec::new(),
            bodies: Bodies::default(),
            hasher: Sha256::new(),
        };
        schedule.feed(b"isobench schedule 2");
        schedule.feed(phase.as_str().as_bytes());
        schedule.feed(fields.api.as_str().as_bytes());
        schedule.feed(fields.counter.as_str().as_bytes());
        schedule.feed(format!("{arrival:?} {pace:?}").as_bytes());
        schedule
    }

    /// Adds a request to the end.
    fn push(&mut self, request: &Request, offset_ns: u64, fields: &BodyFields) -> io::Result<()> {
        let body::Rendered { body, tail } = body::render(fields, request);
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

    /// Returns the model that `entry` asks for, if it isn't the load's.
    pub fn model(&self, entry: &Entry) -> Option<&str> {
        self.models.get(usize::from(entry.model?)).map(String::as_str)
    }

    /// Appends the JSON body of `entry` to `out`. `model` is the load's, as JSON; `history` are the messages of the turns
    /// before it, each followed by a comma.
    ///
    /// # Errors
    /// Returns an error if the prepared bytes can't be read back.
    pub fn write_body(&self, entry: &Entry, model: &str, history: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        out.extend_from_slice(b"{\"model\":");
        match self.model(entry) {
            Some(name) => serde_json::to_writer(&mut *out, name)?,
            None => serde_json::to_writer(&mut *out, model)?,
        }
        if entry.turn.is_some() {
            out.extend_from_slice(b",\"messages\":[");
            out.extend_from_slice(history);
            self.bodies.read(entry.body, out)?;
            out.push(b']');
            self.bodies.read(entry.tail, out)?;
        } else {
            self.bodies.read(entry.body, out)?;
        }
        Ok(())
    }

    /// Appends the message of `entry`, and a comma, to the history of its conversation.
    ///
    /// # Errors
    /// Returns an error if the prepared bytes can't be read back.
    pub fn write_message(&self, entry: &Entry, history: &mut Vec<u8>) -> io::Result<()> {
        self.bodies.read(entry.body, history)?;
        history.push(b',');
        Ok(())
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

/// The schedules of all phases of one launch.
#[derive(Debug)]
pub struct Schedules {
    first: Arc<Schedule>,
    probe_before: Arc<Schedule>,
    warm_up: Arc<Schedule>,
    measure: Arc<Schedule>,
    probe_after: Arc<Schedule>,
}

impl Schedules {
    /// Returns the schedules of every phase.
    ///
    /// # Errors
    /// Returns what in the workload can't be sent.
    pub fn new(workload: &Workload, seed: u64) -> Result<Self, ScheduleError> {
        let of = |phase| Schedule::new(workload, seed, phase).map(Arc::new);
        Ok(Self {
            first: of(Phase::First)?,
            probe_before: of(Phase::ProbeBefore)?,
            warm_up: of(Phase::WarmUp)?,
            measure: of(Phase::Measure)?,
            probe_after: of(Phase::ProbeAfter)?,
        })
    }

    /// Returns the schedule of `phase`.
    pub fn phase(&self, phase: Phase) -> &Arc<Schedule> {
        match phase {
            Phase::First => &self.first,
            Phase::ProbeBefore => &self.probe_before,
            Phase::WarmUp => &self.warm_up,
            Phase::Measure => &self.measure,
            Phase::ProbeAfter => &self.probe_after,
        }
    }

    /// Returns the digest of all prompts, lengths, times and sampling fields of warm-up and window.
    ///
    /// It is equal for all arms of a block; the model's name and the server's address are no part of it.
    pub fn digest(&self) -> Digest {
        let mut hasher = Sha256::new();
        for schedule in [&self.warm_up, &self.measure] {
            hasher.update(Digest::finish(schedule.hasher.clone()).as_str());
        }
        Digest::finish(hasher)
    }
}

const ONE_AT_A_TIME: Arrival = Arrival::Closed { concurrency: 1, ramp_s: None };

const POSITIVE: &str = "a finite number above 0";

fn check(workload: &Workload) -> Result<(), ScheduleError> {
    let number = |field, value: &dyn std::fmt::Display, rule| {
        Err(ScheduleError::Number { field, value: value.to_string(), rule })
    };
    match &workload.arrival {
        Arrival::Closed { concurrency: 0, .. } => return number("concurrency", &0, "at least 1"),
        Arrival::Closed { ramp_s: Some(seconds), .. } if !(seconds.is_finite() && *seconds >= 0.0) => {
            return number("ramp-s", seconds, "a finite number that is not negative");
        }
        Arrival::Open { rate_per_s, .. } | Arrival::Constant { rate_per_s } if !is_positive(*rate_per_s) => {
            return number("rate-per-s", rate_per_s, POSITIVE);
        }
        Arrival::Open { burstiness, .. } if !is_positive(*burstiness) => {
            return number("burstiness", burstiness, POSITIVE);
        }
        Arrival::Bursts { size: 0, .. } => return number("size", &0, "at least 1"),
        Arrival::Bursts { period_s, .. } if !is_positive(*period_s) => return number("period-s", period_s, POSITIVE),
        Arrival::Trace { speed } if !is_positive(*speed) => return number("speed", speed, POSITIVE),
        Arrival::Closed { .. }
        | Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::AllAtOnce => {}
    }
    if workload.max_in_flight == Some(0) {
        return number("max-in-flight", &0, "at least 1");
    }
    if workload.prompts.input_tokens() == Some(0) {
        return number("input-tokens", &0, "at least 1");
    }
    if workload.output_tokens == 0 {
        return number("output-tokens", &0, "at least 1");
    }
    if workload.probes.count > 0 && workload.probes.output_tokens == 0 {
        return number("probes.output-tokens", &0, "at least 1");
    }
    if !(workload.temperature.is_finite() && workload.temperature >= 0.0) {
        return number("temperature", &workload.temperature, "a finite number that is not negative");
    }
    if let Prompts::TokenIds { vocabulary_size, first_id, .. } = workload.prompts {
        if first_id >= vocabulary_size {
            return number("first-id", &first_id, "below the vocabulary size");
        }
        match workload.api {
            Api::Chat => return Err(ScheduleError::IdsInChat),
            Api::Completions | Api::Embeddings => {}
        }
    }
    match workload.extra_body.keys().find(|field| body::is_reserved(field)) {
        Some(field) => Err(ScheduleError::ReservedField { field: field.clone() }),
        None => Ok(()),
    }
}

fn is_positive(value: f64) -> bool {
    value.is_finite() && value > 0.0
}

#[cfg(test)]
mod tests {
    use super::words::WORDS;
    use super::*;
    use isobench_schema::workload::{Probes, WorkloadKind};
    use serde_json::{Value, json};

    fn workload() -> Workload {
        Workload {
            kind: WorkloadKind::Serving,
            api: Api::Completions,
            requests: 20,
            prompts: Prompts::Words { input_tokens: 12 },
            output_tokens: 16,
            ignore_eos: true,
            temperature: 0.5,
            arrival: Arrival::closed(4),
            max_in_flight: None,
            warm_up_requests: 3,
            probes: Probes { count: 2, output_tokens: 5 },
            counter: TokenCounter::Whitespace,
            extra_body: [("top_p".to_owned(), json!(0.9))].into(),
        }
    }

    fn bodies(workload: &Workload, seed: u64, phase: Phase) -> Vec<Value> {
        let schedule = Schedule::new(workload, seed, phase).unwrap();
        let body = |entry| {
            let mut bytes = Vec::new();
            schedule.write_body(entry, "m", &[], &mut bytes).unwrap();
            serde_json::from_slice(&bytes).unwrap()
        };
        schedule.entries().iter().map(body).collect()
    }

    #[test]
    fn the_list_has_enough_different_words() {
        let sorted: std::collections::BTreeSet<_> = WORDS.iter().collect();
        assert_eq!(sorted.len(), WORDS.len());
        assert!(WORDS.len() >= 300);
        assert!(WORDS.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
        let digest = |seed| Schedules::new(&workload(), seed).unwrap().digest();
        assert_eq!(digest(1), digest(1));
        assert_ne!(digest(1), digest(2));
        let mut longer = workload();
        longer.output_tokens += 1;
        assert_ne!(Schedules::new(&longer, 1).unwrap().digest(), digest(1));
        assert_eq!(bodies(&workload(), 1, Phase::Measure), bodies(&workload(), 1, Phase::Measure));
    }

    #[test]
    fn probes_are_greedy_and_the_same_before_and_after_in_every_block() {
        let before = bodies(&workload(), 1, Phase::ProbeBefore);
        assert_eq!(before, bodies(&workload(), 2, Phase::ProbeAfter));
        assert_eq!(before.len(), 2);
        assert_eq!((&before[0]["temperature"], &before[0]["max_tokens"]), (&json!(0.0), &json!(5)));
    }

    #[test]
    fn warm_up_and_window_share_no_prompt() {
        let warm_up = bodies(&workload(), 1, Phase::WarmUp);
        let measure = bodies(&workload(), 1, Phase::Measure);
        assert!(measure.iter().all(|body| warm_up.iter().all(|other| other["prompt"] != body["prompt"])));
    }

    #[test]
    fn a_completions_body_asks_for_exact_lengths_and_usage() {
        let body = &bodies(&workload(), 1, Phase::Measure)[0];
        let prompt = body["prompt"].as_str().unwrap();
        assert_eq!(prompt.split(' ').count(), 12);
        let expected = json!({
            "model": "m", "prompt": prompt, "max_tokens": 16, "min_tokens": 16, "ignore_eos": true,
            "temperature": 0.5, "top_p": 0.9, "stream": true, "stream_options": {"include_usage": true},
        });
        assert_eq!(body, &expected);
    }

    #[test]
    fn a_chat_body_has_one_message_and_no_fields_beyond_those_asked_for() {
        let workload = Workload {
            api: Api::Chat,
            ignore_eos: false,
            counter: TokenCounter::TokenIds,
            extra_body: [].into(),
            ..workload()
        };
        let body = &bodies(&workload, 1, Phase::First)[0];
        let content = body["messages"][0]["content"].as_str().unwrap();
        assert_eq!(content.split(' ').count(), 8);
        let expected = json!({
            "model": "m", "messages": [{"role": "user", "content": content}], "max_tokens": 8, "temperature": 0.0,
            "stream": true, "stream_options": {"include_usage": true}, "return_token_ids": true,
        });
        assert_eq!(body, &expected);
    }

    #[test]
    fn token_ids_stay_in_their_range_and_go_out_as_numbers() {
        let prompts = Prompts::TokenIds { input_tokens: 50, vocabulary_size: 20, first_id: 10 };
        let bodies = bodies(&Workload { prompts, ..workload() }, 1, Phase::Measure);
        let ids: Vec<u64> =
            bodies.iter().flat_map(|b| b["prompt"].as_array().unwrap()).map(|id| id.as_u64().unwrap()).collect();
        assert_eq!(ids.len(), 1000);
        assert_eq!((ids.iter().min(), ids.iter().max()), (Some(&10), Some(&19)));
    }

    #[test]
    fn open_loop_times_rise_at_the_rate_asked_for() {
        for burstiness in [0.5, 1.0, 4.0] {
            let arrival = Arrival::Open { rate_per_s: 50.0, burstiness };
            let schedule =
                Schedule::new(&Workload { arrival, requests: 20_000, ..workload() }, 9, Phase::Measure).unwrap();
            let times: Vec<u64> = schedule.entries().iter().map(|entry| entry.offset_ns).collect();
            assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
            let last_s = std::time::Duration::from_nanos(*times.last().unwrap()).as_secs_f64();
            assert!((last_s / 400.0 - 1.0).abs() < 0.03, "{burstiness}: {last_s}");
        }
    }

    fn check_refused(change: impl FnOnce(&mut Workload), expected: &str) {
        let mut workload = workload();
        change(&mut workload);
        assert_eq!(Schedules::new(&workload, 1).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_workload_that_cannot_be_sent_is_refused_by_name() {
        check_refused(
            |w| w.arrival = Arrival::closed(0),
            "the workload's `concurrency` is 0, but it must be at least 1",
        );
        check_refused(
            |w| w.arrival = Arrival::Open { rate_per_s: -1.0, burstiness: 1.0 },
            "the workload's `rate-per-s` is -1, but it must be a finite number above 0",
        );
        check_refused(
            |w| w.arrival = Arrival::Open { rate_per_s: 1.0, burstiness: f64::NAN },
            "the workload's `burstiness` is NaN, but it must be a finite number above 0",
        );
        check_refused(
            |w| w.prompts = Prompts::TokenIds { input_tokens: 1, vocabulary_size: 5, first_id: 5 },
            "the workload's `first-id` is 5, but it must be below the vocabulary size",
        );
        check_refused(|w| w.output_tokens = 0, "the workload's `output-tokens` is 0, but it must be at least 1");
        for field in ["stream", "max_tokens", "prompt", "n", "echo", "max_completion_tokens"] {
            check_refused(
                |w| drop(w.extra_body.insert(field.to_owned(), json!(1))),
                &format!("the workload's extra body sets `{field}`, which the load client controls"),
            );
        }
        check_refused(
            |w| {
                w.api = Api::Chat;
                w.prompts = Prompts::TokenIds { input_tokens: 1, vocabulary_size: 5, first_id: 0 };
            },
            "prompts of token ids can't be sent to the chat interface: use `words` prompts or the completions interface",
        );
    }
}
