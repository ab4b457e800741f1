//! Reads one file of a launch in one pass and keeps what it shows: the first line of each signature, and the lines that look
//! like errors but are known by none.

use std::collections::BTreeMap;

use memchr::memmem;

use super::line::{self, Level, Line};
use super::matcher::{Matcher, Phrase, Phrases, Row};
use super::scan::{Found, Scan};
use super::table::{Accepts, Ending, FileRole};
use super::tracebacks::{Place, Tracebacks};
use super::words::{REQUESTS, Word};
use crate::text::clean;

/// The longest text of a line that is kept, in characters.
const LONGEST_TEXT: usize = 500;

/// How many unknown exceptions, and other lines that look like errors, are kept of each end of a file.
const KEPT: usize = 3;

/// Where in a line the words stand that begin a request, in bytes.
const HEAD: usize = 160;

/// Names of exceptions that say how something ended, not why.
const NOT_TELLING: &[&str] = &["SystemExit", "KeyboardInterrupt", "CancelledError"];

/// A line that shows something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Shown {
    /// The line, from 1.
    pub(super) line: u64,
    /// The byte at which its segment begins.
    pub(super) offset: u64,
    /// What it says, shortened.
    pub(super) text: String,
    /// The chain of exceptions that it belongs to.
    pub(super) chain: u64,
}

/// The first line of a signature in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hit {
    /// The row of the table.
    pub(super) row: usize,
    /// The line.
    pub(super) shown: Shown,
    /// Whether it counts as a symptom at most: it was written as a warning, or after the program was told to end.
    pub(super) demoted: bool,
    /// The cause, with what the line says of it.
    pub(super) cause: String,
    /// What would mend it, with what the line says of it.
    pub(super) advice: String,
}

/// What one file shows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileFindings {
    /// Its name.
    pub file: String,
    /// Bytes that were read.
    pub bytes: u64,
    pub(super) hits: Vec<Hit>,
    /// The first exceptions that no signature knows, one of each chain.
    pub(super) exceptions: Vec<Shown>,
    /// The first and the last other lines that look like errors.
    pub(super) errors: Vec<Shown>,
    /// Whether the program said that it is ready.
    pub(super) ready: bool,
}

/// A push reader of one file. It needs the same memory however long the file is.
#[derive(Debug)]
pub struct LogReader<'m> {
    matcher: &'m Matcher,
    scan: Scan,
    state: State,
}

impl<'m> LogReader<'m> {
    pub(super) fn new(matcher: &'m Matcher, file: impl Into<String>) -> Self {
        let file = file.into();
        let role = Some(FileRole::of(&file));
        let state = State { hits: vec![None; matcher.rows.len()], file, role, ..State::default() };
        Self { matcher, scan: Scan::default(), state }
    }

    /// Reads the next bytes of the file. How it is cut into pieces doesn't matter.
    pub fn feed(&mut self, bytes: &[u8]) {
        let (matcher, state) = (self.matcher, &mut self.state);
        self.scan.feed(&matcher.triggers, bytes, |found| state.segment(matcher, found));
    }

    /// Returns what the file shows.
    pub fn finish(self) -> FileFindings {
        let Self { matcher, scan, mut state } = self;
        let mut last = None;
        let keep = |found: Found<'_>| last = Some((found.line, found.offset, clean(found.bytes).into_owned()));
        let bytes = scan.finish(&matcher.triggers, |found| state.segment(matcher, found), keep);
        if let Some((number, offset, text)) = last {
            state.last(matcher, &Place { line: number, offset }, &text);
        }
        state.findings(bytes)
    }
}

/// What the words of a line say, whatever signature it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// Nothing.
    Nothing,
    /// That something went wrong.
    Error,
}

/// What was seen so far.
#[derive(Debug, Default)]
struct State {
    file: String,
    role: Option<FileRole>,
    hits: Vec<Option<Hit>>,
    exceptions: Vec<Shown>,
    first_errors: Vec<Shown>,
    last_errors: Vec<Shown>,
    tracebacks: Tracebacks,
    /// Phrases of the line that is looked at.
    here: Phrases,
    /// Rows that the line may belong to.
    asked: Vec<usize>,
    /// Phrases that stood on any line so far.
    context: Phrases,
    remembered: BTreeMap<&'static str, u64>,
    ready: bool,
    ending: bool,
}

impl State {
    fn segment(&mut self, matcher: &Matcher, found: Found<'_>) {
        let head = found.bytes.get(..HEAD.min(found.bytes.len())).unwrap_or_default();
        if REQUESTS.iter().any(|request| memmem::find(head, request).is_some()) {
            return;
        }
        let text = clean(found.bytes);
        let text = match line::after_bars(&text) {
            None => &*text,
            Some(rest) => {
                self.note_phrases(matcher, &text);
                rest
            }
        };
        if !text.trim().is_empty() {
            self.line(matcher, &Place { line: found.line, offset: found.offset }, line::read(text));
        }
    }

    fn line(&mut self, matcher: &Matcher, place: &Place, mut line: Line<'_>) {
        self.note_phrases(matcher, line.body);
        self.remember(matcher, &line);
        let mut says = if line.level == Level::Error && !line.body.is_empty() { Says::Error } else { Says::Nothing };
        for (_, word) in matcher.words.iter().filter(|(phrase, _)| self.here.has(*phrase)) {
            match word {
                Word::Echo => return,
                Word::GoesOn => line.level = line.level.min(Level::Warning),
                Word::Error => says = Says::Error,
                Word::Traceback => self.tracebacks.note_traceback(&line, place),
                Word::Chain => self.tracebacks.note_chain(&line),
                Word::Ignored => self.tracebacks.note_ignored(&line),
            }
        }
        self.statement(matcher, place, &line, says);
    }

    /// Reads a line that is the program's own.
    fn statement(&mut self, matcher: &Matcher, place: &Place, line: &Line<'_>, says: Says) {
        if self.tracebacks.is_frame(line) {
            return;
        }
        if self.says(&matcher.ready) {
            self.survive();
            return;
        }
        self.ending |= self.says(&matcher.ending);
        let name = line::exception(line.body);
        let (chain, handled) = self.tracebacks.belongs(line, place);
        let shown = |text: &str| Shown { line: place.line, offset: place.offset, text: shorten(text), chain };
        let is_known = self.claim(matcher, line, handled, &shown);
        if name.is_some() {
            self.tracebacks.close(line);
        }
        if is_known || handled {
            return;
        }
        let is_telling = |name: &str| !NOT_TELLING.iter().any(|end| name.ends_with(end));
        match name {
            Some(name) if is_telling(name) => self.note_exception(shown(line.body)),
            None if says == Says::Error => self.note_error(shown(line.body)),
            Some(_) | None => {}
        }
    }

    /// Finds the phrases of a text, and keeps that they were there.
    fn note_phrases(&mut self, matcher: &Matcher, text: &str) {
        self.here.clear();
        self.asked.clear();
        for found in matcher.phrases.find_overlapping_iter(text) {
            let phrase = found.pattern().as_usize();
            self.here.insert(Phrase::try_from(phrase).unwrap_or(Phrase::MAX));
            self.asked.extend(matcher.rows_of.get(phrase).into_iter().flatten());
        }
        self.asked.sort_unstable();
        self.asked.dedup();
        self.context.extend(&self.here);
    }

    fn says(&self, phrases: &[Phrase]) -> bool {
        phrases.iter().any(|&phrase| self.here.has(phrase))
    }

    fn remember(&mut self, matcher: &Matcher, line: &Line<'_>) {
        for memory in matcher.memories.iter().filter(|memory| self.here.has(memory.phrase)) {
            let value = memory.pattern.captures(line.body).and_then(|found| found.name("value")?.as_str().parse().ok());
            if let Some(value) = value {
                self.remembered.insert(memory.name, value);
            }
        }
    }

    /// Notes that the program is ready: whatever it wrote before, it went on.
    fn survive(&mut self) {
        self.ready = true;
        self.hits.iter_mut().for_each(|hit| *hit = None);
        self.exceptions.clear();
        self.first_errors.clear();
        self.last_errors.clear();
        self.tracebacks = Tracebacks::default();
    }

    /// Keeps the line for each signature that it shows; returns whether there is one.
    fn claim(&mut self, matcher: &Matcher, line: &Line<'_>, handled: bool, shown: &impl Fn(&str) -> Shown) -> bool {
        let mut is_known = false;
        for at in 0..self.asked.len() {
            let Some((number, row)) = self.asked.get(at).and_then(|&number| Some((number, matcher.rows.get(number)?)))
            else {
                continue;
            };
            let demoted = handled || self.ending;
            let is_allowed = !handled || row.signature.accepts == Accepts::Any;
            if !is_allowed || row.signature.ending == Ending::Last || !self.fits(row) {
                continue;
            }
            let better =
                self.hits.get(number).is_some_and(|hit| hit.as_ref().is_none_or(|hit| hit.demoted && !demoted));
            if !better {
                is_known = true;
            } else if let Some(hit) = self.hit(number, row, line.body, shown) {
                is_known = true;
                if let Some(place) = self.hits.get_mut(number) {
                    *place = Some(Hit { demoted, ..hit });
                }
            }
        }
        is_known
    }

    /// Returns whether the phrases of the line and those before it are what a signature asks for.
    fn fits(&self, row: &Row) -> bool {
        let (here, context) = (&self.here, &self.context);
        row.all.iter().all(|&phrase| here.has(phrase))
            && (row.any.is_empty() || row.any.iter().any(|&phrase| here.has(phrase)))
            && !row.not.iter().any(|&phrase| here.has(phrase))
            && (row.signature.file.is_none() || row.signature.file == self.role)
            && row.after.iter().all(|phrases| phrases.iter().any(|&phrase| context.has(phrase)))
            && !row.unless_after.iter().any(|&phrase| context.has(phrase))
    }

    /// Returns what a signature's pattern finds in a line, if it fits.
    fn hit(&self, number: usize, row: &Row, body: &str, shown: &impl Fn(&str) -> Shown) -> Option<Hit> {
        let captures = match &row.pattern {
            Some(pattern) => Some(pattern.captures(body)?),
            None => None,
        };
        if let Some(limit) = &row.signature.fewer_than
            && let Some(count) = captures.as_ref()?.name("count")
            && count.as_str().parse::<u64>().ok()? >= *self.remembered.get(limit.as_str())?
        {
            return None;
        }
        let named = |name: &str| match name.strip_prefix("asked:") {
            Some(memory) => self.remembered.get(memory).map(u64::to_string),
            None => Some(captures.as_ref()?.name(name)?.as_str().trim().to_owned()),
        };
        let cause = fill(&row.signature.cause, named);
        let advice = fill(&row.signature.fix.advice, named);
        Some(Hit { row: number, shown: shown(body), demoted: false, cause, advice })
    }

    fn note_exception(&mut self, shown: Shown) {
        let is_new = self.exceptions.iter().all(|before| before.chain != shown.chain);
        if is_new && self.exceptions.len() < KEPT {
            self.exceptions.push(shown);
        }
    }

    fn note_error(&mut self, shown: Shown) {
        if self.first_errors.len() < KEPT {
            self.first_errors.push(shown);
            return;
        }
        if self.last_errors.len() == KEPT {
            self.last_errors.remove(0);
        }
        self.last_errors.push(shown);
    }

    /// Looks at the last line for signatures that nothing may follow.
    fn last(&mut self, matcher: &Matcher, place: &Place, text: &str) {
        self.note_phrases(matcher, text);
        let shown = |text: &str| Shown { line: place.line, offset: place.offset, text: shorten(text), chain: 0 };
        for at in 0..self.asked.len() {
            let Some((number, row)) = self.asked.get(at).and_then(|&number| Some((number, matcher.rows.get(number)?)))
            else {
                continue;
            };
            if row.signature.ending == Ending::Last && self.fits(row) {
                let hit = self.hit(number, row, text.trim(), &shown);
                if let Some(slot) = self.hits.get_mut(number) {
                    *slot = hit;
                }
            }
        }
    }

    fn findings(self, bytes: u64) -> FileFindings {
        let mut hits: Vec<Hit> = self.hits.into_iter().flatten().collect();
        hits.sort_by_key(|hit| (hit.shown.offset, hit.row));
        let mut errors = self.first_errors;
        errors.extend(self.last_errors);
        FileFindings { file: self.file, bytes, hits, exceptions: self.exceptions, errors, ready: self.ready }
    }
}

/// Returns a text, at most [`LONGEST_TEXT`] characters of it.
fn shorten(text: &str) -> String {
    text.chars().take(LONGEST_TEXT).collect()
}

/// The longest part of a line that becomes part of a sentence, in characters.
const LONGEST_PART: usize = 160;

/// Returns a template as people read it where there is no log: `{option}` becomes `OPTION`, and `{option|an option}` becomes
/// `an option`.
pub fn without_places(template: &str) -> String {
    // Only a place with nothing to say instead is named.
    fill(template, |name| template.contains(&format!("{{{name}}}")).then(|| name.to_uppercase()))
}

/// Returns a template with its places filled: `{name}` by what was found, `{name|else}` by `else` if nothing was. A place that
/// stays empty takes the space before it along.
pub(super) fn fill(template: &str, named: impl Fn(&str) -> Option<String>) -> String {
    let mut filled = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, tail)) = rest.split_once('{') {
        filled.push_str(before);
        let Some((place, after)) = tail.split_once('}') else { break };
        let (name, default) = place.split_once('|').unwrap_or((place, ""));
        match named(name).filter(|found| !found.is_empty()) {
            Some(found) => filled.extend(found.chars().take(LONGEST_PART)),
            None if default.is_empty() && filled.ends_with(' ') => {
                filled.pop();
            }
            None => filled.push_str(default),
        }
        rest = after;
    }
    filled.push_str(rest);
    filled
}
