//! Requests that ask for adapters (`LoRA`) in place of the model, in turn or at random; a conversation keeps its own.

use super::{Context, DatasetError, Input, Options, Source};
use crate::schedule::Request;
use crate::schedule::draw::Draws;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Assignment {
    RoundRobin,
    Random,
}

/// A source whose requests ask for adapters.
pub(super) struct Adapters {
    source: Box<dyn Source>,
    names: Vec<String>,
    assignment: Assignment,
    draws: Draws,
    /// Requests and conversations so far.
    count: usize,
    now: Option<String>,
}

impl Adapters {
    /// Puts the adapters that the options name over a source: `lora-modules`, with commas or spaces between the names, and
    /// `lora-assignment`.
    pub(super) fn over(
        source: Box<dyn Source>,
        options: &mut Options<'_>,
        context: &Context<'_>,
    ) -> Result<Box<dyn Source>, DatasetError> {
        let modules = options.text(&["lora-modules"])?;
        let assignment = options
            .choice("lora-assignment", &[("round-robin", Assignment::RoundRobin), ("random", Assignment::Random)])?;
        let Some(modules) = modules else { return Ok(source) };
        let is_between = |sign: char| sign == ',' || sign.is_whitespace();
        let names: Vec<String> = modules.split(is_between).filter(|name| !name.is_empty()).map(str::to_owned).collect();
        if names.is_empty() {
            return Err(options.refuse("lora-modules", modules, "the names of adapters, with commas between them"));
        }
        Ok(Box::new(Self { source, names, assignment, draws: context.draws("adapters"), count: 0, now: None }))
    }
}

impl Source for Adapters {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let mut request = self.source.next()?;
        if request.turn.is_none_or(|turn| turn.turn == 0) {
            let length = self.names.len();
            let place = match self.assignment {
                Assignment::RoundRobin => self.count % length.max(1),
                Assignment::Random => self.draws.below(u32::try_from(length).unwrap_or(u32::MAX)) as usize,
            };
            self.now = self.names.get(place).cloned();
            self.count += 1;
        }
        request.model = request.model.or_else(|| self.now.clone());
        Ok(request)
    }

    fn left_out(&self) -> u64 {
        self.source.left_out()
    }

    fn again(&self) -> u64 {
        self.source.again()
    }

    fn timed_requests(&mut self) -> Result<Option<u64>, DatasetError> {
        self.source.timed_requests()
    }

    fn file(&self) -> Option<Input> {
        self.source.file()
    }
}
