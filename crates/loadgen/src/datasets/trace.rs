//! Traces: requests with the lengths, and if asked with the times, of those that a service once had. `burstgpt` and `azure`
//! are tables, `mooncake` and `timed` are JSON lines that may say which parts of prompts are the same.

mod moment;
mod table;
mod timed;

use super::reader::{Choice, Parsed, RowReader};
use super::{Context, DatasetError, ExactText, Input, Maker, Options, Source, Times};
use crate::schedule::draw::Draws;
use crate::schedule::{Content, Request};

const RULE: &str = "a row must have a prompt and an answer of at least one token each, and pass the options";

/// One request of a trace.
#[derive(Debug, Clone, PartialEq)]
struct Traced {
    /// Its time in nanoseconds since some moment.
    at_ns: u64,
    input_tokens: u32,
    output_tokens: u32,
    /// The names of the blocks that its prompt begins with.
    blocks: Vec<u64>,
    /// Its prompt, if the trace has it.
    prompt: Option<String>,
}

/// How rows are read.
#[derive(Debug)]
enum Format {
    Table(table::Columns),
    Json(timed::Fields),
}

/// Which rows are requests.
#[derive(Debug)]
struct Rules {
    format: Format,
    /// The length of every answer, if it isn't the one of the trace.
    asked: Option<u32>,
    most_input: u32,
    most_total: u32,
}

impl Rules {
    fn read(&self, bytes: &[u8]) -> Parsed<Traced> {
        let parsed = match &self.format {
            Format::Table(columns) => columns.row(bytes),
            Format::Json(fields) => fields.row(bytes),
        };
        let Parsed::Row(mut traced) = parsed else { return parsed };
        traced.output_tokens = self.asked.unwrap_or(traced.output_tokens);
        let is_empty = traced.prompt.is_none() && traced.input_tokens == 0;
        let no_answer = self.asked.is_none() && traced.output_tokens == 0;
        let total = traced.input_tokens.saturating_add(traced.output_tokens);
        if is_empty || no_answer || traced.input_tokens > self.most_input || total > self.most_total {
            return Parsed::LeftOut;
        }
        Parsed::Row(traced)
    }
}

/// The requests of a trace.
pub(super) struct Trace {
    reader: RowReader,
    rules: Rules,
    text: Texts,
    clock: Clock,
}

/// Which trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    BurstGpt,
    Azure,
    Mooncake,
    Timed,
}

impl Trace {
    /// Opens it.
    ///
    /// By the times of the trace its requests come in its order, and begin again at the time of the last one if there are
    /// too few; else those of `burstgpt` are shuffled, as in vLLM. Prompts of more than `max-input-len` tokens, or with their
    /// answers more than `max-total-len`, are left out. Lengths of prompts count the tokens that the server adds.
    pub(super) fn open(kind: Kind, options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let output = options.tokens(&["output-len"], 0)?;
        let most_input = options.whole(&["max-input-len"], 1, u32::MAX)?.unwrap_or(u32::MAX);
        let most_total = options.whole(&["max-total-len"], 1, u32::MAX)?.unwrap_or(u32::MAX);
        let (choice, head) = match kind {
            Kind::BurstGpt => (Choice::Shuffled, 1),
            Kind::Azure => (Choice::InOrder, 1),
            Kind::Mooncake | Kind::Timed => (Choice::InOrder, 0),
        };
        let (name, defaults) = match kind {
            Kind::BurstGpt => ("burstgpt", timed::TIMED),
            Kind::Azure => ("azure", timed::TIMED),
            Kind::Mooncake => ("mooncake", timed::MOONCAKE),
            Kind::Timed => ("timed", timed::TIMED),
        };
        let model = if kind == Kind::BurstGpt { options.text(&["burstgpt-model"])?.unwrap_or("GPT-4") } else { "any" };
        let fields = match kind {
            Kind::BurstGpt | Kind::Azure => None,
            Kind::Mooncake | Kind::Timed => Some(timed::Fields::open(options, defaults)?),
        };
        let tokenizer = context.tokenizer(name)?;
        let mut reader = RowReader::open(options, context, choice, head)?;
        let format = if let Some(fields) = fields {
            Format::Json(fields)
        } else {
            let head = reader.head()?;
            Format::Table(table::Columns::of(&head, kind, model).map_err(|what| reader.not_this(what))?)
        };
        let block = match &format {
            Format::Table(_) => 0,
            Format::Json(fields) => fields.block(),
        };
        let text = Texts {
            special: context.special_tokens(tokenizer)?,
            maker: Maker::new(tokenizer)?,
            draws: context.draws("trace text"),
            seed: context.seed,
            part: context.part.as_str(),
            block,
        };
        let asked = context.asked(Some(output));
        let rules = Rules { format, asked, most_input, most_total };
        Ok(Self { reader, rules, text, clock: Clock::new(context.times) })
    }
}

impl Source for Trace {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let Self { reader, rules, clock, .. } = self;
        let (traced, round) = reader.next(RULE, |bytes| Ok(rules.read(bytes)))?;
        let at_ns = match clock.at(traced.at_ns, round) {
            Ok(at_ns) => at_ns,
            Err(what) => return Err(reader.bad_last(what)),
        };
        let output_tokens = traced.output_tokens;
        let (text, input_tokens) = self.text.of(traced)?;
        Ok(Request { at_ns, ..Request::new(Content::Text(text), input_tokens, output_tokens) })
    }

    fn left_out(&self) -> u64 {
        self.reader.left_out()
    }

    fn again(&self) -> u64 {
        self.reader.again()
    }

    fn timed_requests(&mut self) -> Result<Option<u64>, DatasetError> {
        let Self { reader, rules, .. } = self;
        reader.count(|bytes| rules.read(bytes)).map(Some)
    }

    fn file(&self) -> Option<Input> {
        Some(self.reader.input())
    }
}

/// The times of a trace, from its first request that is sent.
struct Clock {
    times: Times,
    round: u32,
    first_ns: Option<u64>,
    before_ns: u64,
    /// When this round began.
    began_ns: u64,
    last_ns: u64,
}

impl Clock {
    fn new(times: Times) -> Self {
        Self { times, round: 0, first_ns: None, before_ns: 0, began_ns: 0, last_ns: 0 }
    }

    fn at(&mut self, traced_ns: u64, round: u32) -> Result<Option<u64>, String> {
        match self.times {
            Times::Process => return Ok(None),
            Times::Trace => {}
        }
        if round != self.round {
            (self.round, self.first_ns, self.began_ns, self.before_ns) = (round, None, self.last_ns, 0);
        }
        if traced_ns < self.before_ns {
            return Err("its time is before that of the row above it: sort the file by time".to_owned());
        }
        self.before_ns = traced_ns;
        let first = *self.first_ns.get_or_insert(traced_ns);
        self.last_ns = self.began_ns.saturating_add(traced_ns - first);
        Ok(Some(self.last_ns))
    }
}

/// Makes the texts of prompts.
struct Texts {
    maker: Maker,
    draws: Draws,
    seed: u64,
    part: &'static str,
    /// Tokens of a block.
    block: u32,
    special: u32,
}

impl Texts {
    /// Returns the prompt of a request and its length: the trace's own, or a drawn one of the traced length whose blocks
    /// are the same wherever their names are.
    fn of(&mut self, traced: Traced) -> Result<(String, u32), DatasetError> {
        if let Some(prompt) = traced.prompt {
            let tokens = self.maker.tokenizer().count(&prompt)? + self.special;
            return Ok((prompt, tokens));
        }
        let mut left = traced.input_tokens.saturating_sub(self.special).max(1);
        let mut text = ExactText::default();
        for name in traced.blocks {
            let tokens = left.min(self.block);
            let mut draws = Draws::new(self.seed, &format!("block/{}/{name}", self.part));
            self.maker.extend(&mut text, tokens, &mut draws)?;
            left -= tokens;
        }
        self.maker.extend(&mut text, left, &mut self.draws)?;
        self.maker.check(&text)?;
        let tokens = text.tokens() + self.special;
        Ok((text.into_text(), tokens))
    }
}
