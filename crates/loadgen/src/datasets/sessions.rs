//! `sessions`: conversations of several turns, each with the model's own answers to those before it; drawn, or with the
//! questions of a file.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use isobench_schema::record::Turn;
use isobench_schema::workload::Api;
use serde::Deserialize;
use serde_json::{Value, json};

use super::random::{Meaning, Span};
use super::reader::{Choice, Parsed, RowReader};
use super::{Context, DatasetError, Input, Maker, Options, PATHS, Source};
use crate::clock::nanoseconds;
use crate::schedule::draw::Draws;
use crate::schedule::{Content, Request};
use crate::tokenizer::Tokenizer;

/// Turns of a conversation, and tokens of its parts, where nothing else is asked for.
const TURNS: u32 = 4;
const PART: u32 = 128;

/// The longest time that a user may think, in seconds: a day.
const LONGEST_THINK: f64 = 86_400.0;

const RULE: &str = "a conversation must have a question and an answer to it, of at least one token each";

/// Conversations, turn by turn.
pub(super) struct Sessions {
    questions: Questions,
    think: Think,
    session: u32,
    /// The turns of this conversation that are still to come.
    turns: VecDeque<Request>,
}

enum Questions {
    Drawn(Box<DrawnQuestions>),
    File(Box<FileQuestions>),
}

struct DrawnQuestions {
    maker: Maker,
    draws: Draws,
    lengths: Draws,
    /// What all conversations begin with.
    system: Option<(String, u32)>,
    turns: Span,
    input: Span,
    output: Span,
}

struct FileQuestions {
    reader: RowReader,
    tokenizer: Arc<Tokenizer>,
    asked: Option<u32>,
    most_turns: usize,
    most_tokens: u32,
}

/// How long users think.
struct Think {
    draws: Draws,
    mean_s: f64,
    /// The shape of the gamma distribution; all times are the same without it.
    shape: Option<f64>,
}

/// What is said in a conversation.
struct Said {
    system: Option<(String, u32)>,
    /// Questions with their length, and the length asked of the answer.
    turns: Vec<(String, u32, u32)>,
}

impl Sessions {
    /// Opens it.
    ///
    /// Drawn conversations have `session-turns` turns of `session-input-len` tokens, answers of `session-output-len`, all of
    /// them within `session-range-ratio` around that, and begin with the same `session-system-len` tokens. With a file they
    /// are its questions, up to `session-max-turns` and `session-max-tokens`, and answers are as long as those there. A user
    /// thinks `think-time-s` before each turn after the first, gamma-distributed with shape `think-time-shape` if that is
    /// given.
    pub(super) fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        if context.api != Api::Chat {
            return Err(DatasetError::Interface {
                dataset: "sessions".to_owned(),
                api: context.api.as_str(),
                instead: "the chat interface",
            });
        }
        let think = Think {
            draws: context.draws("think"),
            mean_s: options.number("think-time-s", 0.0, LONGEST_THINK)?.unwrap_or(0.0),
            shape: options.number("think-time-shape", 1e-3, 1e6)?,
        };
        let questions = if options.text(PATHS)?.is_some() {
            Questions::File(Box::new(FileQuestions::open(options, context)?))
        } else {
            Questions::Drawn(Box::new(DrawnQuestions::open(options, context)?))
        };
        Ok(Self { questions, think, session: 0, turns: VecDeque::new() })
    }

    /// Lays out a conversation.
    fn lay_out(&mut self, said: Said) {
        let mut before = 0;
        let mut system = said.system;
        for (turn, (question, tokens, output_tokens)) in (0..).zip(said.turns) {
            let content = match system.take() {
                Some((text, length)) => {
                    before += length;
                    json!([{ "role": "system", "content": text }, { "role": "user", "content": question }])
                }
                None => Value::String(question),
            };
            before += tokens;
            let think_ns = if turn == 0 { 0 } else { self.think.next_ns() };
            self.turns.push_back(Request {
                turn: Some(Turn { session: self.session, turn }),
                think_ns,
                ..Request::new(Content::Turn(content), before, output_tokens)
            });
            before += output_tokens;
        }
        self.session += 1;
    }
}

impl Source for Sessions {
    fn next(&mut self) -> Result<Request, DatasetError> {
        loop {
            if let Some(request) = self.turns.pop_front() {
                return Ok(request);
            }
            let said = match &mut self.questions {
                Questions::Drawn(drawn) => drawn.next()?,
                Questions::File(file) => file.next()?,
            };
            self.lay_out(said);
        }
    }

    fn left_out(&self) -> u64 {
        match &self.questions {
            Questions::Drawn(_) => 0,
            Questions::File(file) => file.reader.left_out(),
        }
    }

    fn again(&self) -> u64 {
        match &self.questions {
            Questions::Drawn(_) => 0,
            Questions::File(file) => file.reader.again(),
        }
    }

    fn file(&self) -> Option<Input> {
        match &self.questions {
            Questions::Drawn(_) => None,
            Questions::File(file) => Some(file.reader.input()),
        }
    }
}

impl Think {
    fn next_ns(&mut self) -> u64 {
        let seconds = match self.shape {
            Some(shape) => self.draws.gamma(shape, self.mean_s),
            None => self.mean_s,
        };
        Duration::try_from_secs_f64(seconds).map_or(u64::MAX, nanoseconds)
    }
}

impl DrawnQuestions {
    fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let turns = options.whole(&["session-turns"], 1, 100_000)?.unwrap_or(TURNS);
        let input = options.tokens(&["session-input-len", "input-len"], PART)?;
        let output = options.whole(&["session-output-len", "output-len"], 0, u32::MAX / 4)?;
        let system_tokens = options.tokens(&["session-system-len"], PART)?;
        let ratio = options.number("session-range-ratio", 0.0, 1.0)?.unwrap_or(0.0);
        let mut maker = Maker::new(context.tokenizer("sessions")?)?;
        let system = match system_tokens {
            0 => None,
            tokens => Some((maker.text(tokens, &mut context.shared_draws("session system"))?.into_text(), tokens)),
        };
        let span = |length| Span::new(length, ratio, Meaning::Around).at_least(1);
        Ok(Self {
            maker,
            draws: context.draws("session text"),
            lengths: context.draws("session lengths"),
            system,
            turns: span(turns),
            input: span(input),
            output: span(context.output_tokens(output, PART)),
        })
    }

    fn next(&mut self) -> Result<Said, DatasetError> {
        let mut turns = Vec::new();
        for _ in 0..self.turns.draw(&mut self.lengths) {
            let text = self.maker.text(self.input.draw(&mut self.lengths), &mut self.draws)?;
            let tokens = text.tokens();
            turns.push((text.into_text(), tokens, self.output.draw(&mut self.lengths)));
        }
        Ok(Said { system: self.system.clone(), turns })
    }
}

/// A conversation of a file: the form of `ShareGPT` or that of chat messages.
#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    conversations: Vec<Spoken>,
    #[serde(default)]
    messages: Vec<Spoken>,
}

#[derive(Deserialize)]
struct Spoken {
    #[serde(alias = "role")]
    from: String,
    #[serde(alias = "content")]
    value: String,
}

enum Speaker {
    System,
    User,
    Model,
}

impl Spoken {
    fn speaker(&self) -> Option<Speaker> {
        match self.from.as_str() {
            "system" => Some(Speaker::System),
            "human" | "user" => Some(Speaker::User),
            "gpt" | "assistant" | "chatgpt" | "bing" | "bard" => Some(Speaker::Model),
            _ => None,
        }
    }
}

impl FileQuestions {
    fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let output = options.tokens(&["session-output-len", "output-len"], 0)?;
        let most_turns = options.whole(&["session-max-turns"], 1, u32::MAX)?.unwrap_or(u32::MAX);
        let most_tokens = options.whole(&["session-max-tokens"], 1, u32::MAX)?.unwrap_or(u32::MAX);
        let tokenizer = Arc::clone(context.tokenizer("sessions")?);
        let reader = RowReader::open(options, context, Choice::Shuffled, 0)?;
        let most_turns = usize::try_from(most_turns).unwrap_or(usize::MAX);
        Ok(Self { reader, tokenizer, asked: context.asked(Some(output)), most_turns, most_tokens })
    }

    fn next(&mut self) -> Result<Said, DatasetError> {
        let Self { reader, tokenizer, asked, most_turns, most_tokens } = self;
        let parse = |bytes: &[u8]| {
            let row: Row = match serde_json::from_slice(bytes) {
                Ok(row) => row,
                Err(error) => return Ok(Parsed::Bad(format!("it is no conversation: {error}"))),
            };
            let spoken = if row.conversations.is_empty() { row.messages } else { row.conversations };
            let mut said = Said { system: None, turns: Vec::new() };
            let (mut question, mut all) = (None, 0_u32);
            for one in spoken {
                match one.speaker() {
                    None => return Ok(Parsed::Bad(format!("`{}` is no speaker that is known", one.from))),
                    Some(Speaker::System) if said.turns.is_empty() && question.is_none() => {
                        let tokens = tokenizer.count(&one.value)?;
                        all = tokens;
                        said.system = Some((one.value, tokens)).filter(|_| tokens > 0);
                    }
                    Some(Speaker::User) => question = Some(one.value),
                    Some(Speaker::Model) => {
                        let Some(question) = question.take() else { continue };
                        let input = tokenizer.count(&question)?;
                        let output = match asked {
                            Some(asked) => *asked,
                            None => tokenizer.count(&one.value)?,
                        };
                        all = all.saturating_add(input).saturating_add(output);
                        if input == 0 || output == 0 || all > *most_tokens || said.turns.len() >= *most_turns {
                            break;
                        }
                        said.turns.push((question, input, output));
                    }
                    // What the system says later is about a state of the conversation that isn't reached.
                    Some(Speaker::System) => break,
                }
            }
            Ok(if said.turns.is_empty() { Parsed::LeftOut } else { Parsed::Row(said) })
        };
        Ok(reader.next(RULE, parse)?.0)
    }
}
