//! Options as Python's `argparse` reads them, against the options that a program has at a moment.

use isobench_schema::ids::Moment;

use super::GivenOption;
use super::words::Word;
use crate::knowledge::options::{OptionSpec, Program, Takes, ValueKind};

/// The options that a program has at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table<'k> {
    specs: Vec<&'k OptionSpec>,
    underscores: bool,
}

/// Arguments as a program's parser reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parsed<'k> {
    /// Options that the parser takes.
    pub given: Vec<GivenOption<'k>>,
    /// Words that belong to no option.
    pub operands: Vec<String>,
    /// Options that the parser refuses, each with why.
    pub refused: Vec<Refused<'k>>,
}

/// An option that a parser refuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused<'k> {
    /// The option.
    pub option: GivenOption<'k>,
    /// Why.
    pub why: Refusal,
}

/// Why a parser refuses an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such option.
    Unknown,
    /// It is short for several.
    Ambiguous(Vec<String>),
    /// It needs a value and has none.
    ValueMissing,
    /// It takes no value and has one.
    ValueUnexpected,
    /// Its value isn't of the kind that it takes.
    ValueKind(ValueKind),
    /// Its value is none of those that it allows.
    NotAmong(Vec<String>),
}

impl<'k> Table<'k> {
    /// Returns the options that a program has at a moment.
    pub fn at(program: &'k Program, moment: &Moment) -> Self {
        Self { specs: program.options_at(moment).collect(), underscores: program.underscores_at(moment) }
    }

    /// Returns every option that any of these programs ever had, as it was last; of programs that share a name the first.
    pub fn ever(programs: &[&'k Program]) -> Self {
        let mut specs: Vec<&'k OptionSpec> = Vec::new();
        for program in programs {
            let mut last: Vec<&'k OptionSpec> = Vec::new();
            for spec in &program.option {
                match last.iter_mut().find(|known| known.names.first() == spec.names.first()) {
                    Some(known) if known.since < spec.since => *known = spec,
                    Some(_) => {}
                    None => last.push(spec),
                }
            }
            let is_new = |spec: &&OptionSpec| !specs.iter().any(|known| known.names.first() == spec.names.first());
            last.retain(is_new);
            specs.append(&mut last);
        }
        Self { specs, underscores: true }
    }

    /// Returns the options of a program that has none.
    pub fn empty() -> Self {
        Self { specs: Vec::new(), underscores: false }
    }

    /// Returns the option with exactly this name.
    pub fn get(&self, name: &str) -> Option<&'k OptionSpec> {
        self.specs.iter().find(|spec| has_name(spec, name)).copied()
    }

    /// Returns every option.
    pub fn specs(&self) -> &[&'k OptionSpec] {
        &self.specs
    }

    /// Returns every name.
    pub fn names(&self) -> impl Iterator<Item = &'k str> {
        self.specs.iter().flat_map(|spec| spec.names.iter().map(String::as_str))
    }

    /// Returns the option with a name and values, or why the parser refuses it.
    ///
    /// # Errors
    /// Returns the refusal.
    pub fn make(&self, name: &str, values: Vec<String>) -> Result<GivenOption<'k>, Refused<'k>> {
        let spec = self.get(name);
        let name = spec.map_or_else(|| name.to_owned(), |spec| main_name(spec, name.to_owned()));
        let option = GivenOption { written: String::new(), name, values, spec };
        match spec {
            None => Err(Refused { option, why: Refusal::Unknown }),
            Some(spec) => match refusal(spec, &option.values) {
                None => Ok(option),
                Some(why) => Err(Refused { option, why }),
            },
        }
    }

    /// Reads a program's arguments.
    pub fn parse(&self, words: &[Word]) -> Parsed<'k> {
        let mut parsed = Parsed::default();
        let mut rest = words;
        let mut only_operands = false;
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if only_operands || !self.is_option(&first.text) {
                parsed.operands.push(first.text.clone());
            } else if first.text == "--" {
                only_operands = true;
            } else {
                rest = self.option(&mut parsed, &first.text, after);
            }
        }
        parsed
    }

    /// Returns whether the parser reads a word as an option.
    fn is_option(&self, word: &str) -> bool {
        if !word.starts_with('-') || word.len() == 1 {
            return false;
        }
        // `argparse` takes `-1` and `-.5` for values, and what has a blank unless it begins with an option's name and `=`.
        let negative = word.get(1..).is_some_and(|number| {
            number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') && number.parse::<f64>().is_ok()
        });
        let name = word.split_once('=').map_or(word, |(name, _)| name);
        !negative && (!word.contains(' ') || self.get(&self.spelt(name)).is_some())
    }

    /// Returns a name as the parser spells it.
    fn spelt(&self, name: &str) -> String {
        match name.strip_prefix("--") {
            Some(bare) if self.underscores => format!("--{}", bare.replace('_', "-")),
            _ => name.to_owned(),
        }
    }

    /// Reads one option and its values; returns the words after it.
    fn option<'w>(&self, parsed: &mut Parsed<'k>, word: &str, after: &'w [Word]) -> &'w [Word] {
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (self.spelt(name), Some(value.to_owned())),
            None => (self.spelt(word), None),
        };
        let (name, spec, attached) = match self.find(&name) {
            Found::One(name, spec) => (name, spec, attached),
            Found::Short(name, spec, value) => (name, spec, Some(value)),
            Found::Several(names) => {
                return self.refuse(parsed, (word, name, attached), after, Refusal::Ambiguous(names));
            }
            Found::None => return self.refuse(parsed, (word, name, attached), after, Refusal::Unknown),
        };
        let free = after.iter().take_while(|word| !self.is_option(&word.text)).count();
        let used = match (attached.is_some(), spec.takes) {
            (true, _) | (_, Takes::Nothing | Takes::NothingOrNo) => 0,
            (_, Takes::One | Takes::AtMostOne) => free.min(1),
            (_, Takes::OneOrMore | Takes::Any) => free,
        };
        let (own, mut rest) = after.split_at(used);
        let has_value = attached.is_some();
        let mut written = written(word, own);
        let mut values: Vec<String> = attached.into_iter().chain(own.iter().map(|word| word.text.clone())).collect();
        let mut why = refusal(spec, &values);
        let switch = matches!(spec.takes, Takes::Nothing | Takes::NothingOrNo);
        // A word after a switch is nobody's: the parser refuses it, and people mean it for the switch.
        if let (true, false, Some((extra, others))) = (switch, has_value, rest.split_first())
            && is_truth(&extra.text)
        {
            written = format!("{written} {}", extra.text);
            values.push(extra.text.clone());
            why = Some(Refusal::ValueUnexpected);
            rest = others;
        }
        let option = GivenOption { written, name: main_name(spec, name), values, spec: Some(spec) };
        match why {
            None => parsed.given.push(option),
            Some(why) => parsed.refused.push(Refused { option, why }),
        }
        rest
    }

    /// Notes an option that the parser doesn't know, with the words up to the next one.
    fn refuse<'w>(
        &self,
        parsed: &mut Parsed<'k>,
        (word, name, attached): (&str, String, Option<String>),
        after: &'w [Word],
        why: Refusal,
    ) -> &'w [Word] {
        let free = after.iter().take_while(|word| !self.is_option(&word.text)).count();
        let (own, rest) = after.split_at(if attached.is_some() { 0 } else { free });
        let values = attached.into_iter().chain(own.iter().map(|word| word.text.clone())).collect();
        let option = GivenOption { written: written(word, own), name, values, spec: None };
        parsed.refused.push(Refused { option, why });
        rest
    }

    /// Finds an option by its name or a part of it that no other option begins with.
    fn find(&self, name: &str) -> Found<'k> {
        if let Some(spec) = self.get(name) {
            return Found::One(name.to_owned(), spec);
        }
        // A part of a JSON option: `--compilation-config.level`.
        if let Some((base, _)) = name.split_once('.')
            && let Some(spec) = self.get(base).filter(|spec| spec.kind == ValueKind::Json)
        {
            return Found::One(name.to_owned(), spec);
        }
        let mut near: Vec<(String, &'k OptionSpec)> = Vec::new();
        for spec in &self.specs {
            for known in &spec.names {
                if known.starts_with(name) {
                    near.push((known.clone(), spec));
                }
                if let Some(negative) = negative(spec, known)
                    && negative.starts_with(name)
                    && !spec.names.contains(&negative)
                {
                    near.push((negative, spec));
                }
            }
        }
        match near.as_slice() {
            [] => self.find_short(name),
            [(known, spec)] => Found::One(known.clone(), spec),
            several => Found::Several(several.iter().map(|(name, _)| name.clone()).collect()),
        }
    }

    /// Finds an option of one letter with its value attached: `-O3`.
    fn find_short(&self, name: &str) -> Found<'k> {
        let end = name.char_indices().nth(2).map(|(end, _)| end);
        let Some((short, value)) = end.and_then(|end| name.split_at_checked(end)) else { return Found::None };
        if short.starts_with("--") {
            return Found::None;
        }
        match self.get(short) {
            Some(spec) => Found::Short(short.to_owned(), spec, value.to_owned()),
            None => Found::None,
        }
    }
}

/// What a name stands for.
enum Found<'k> {
    None,
    One(String, &'k OptionSpec),
    Short(String, &'k OptionSpec, String),
    Several(Vec<String>),
}

/// Returns the name that switches an option off, if it has one.
fn negative(spec: &OptionSpec, name: &str) -> Option<String> {
    let bare = name.strip_prefix("--").filter(|_| spec.takes == Takes::NothingOrNo)?;
    (!bare.starts_with("no-")).then(|| format!("--no-{bare}"))
}

/// Returns the main name of an option that is given by any of its names, unless it is switched off or only a part of it is given.
fn main_name(spec: &OptionSpec, name: String) -> String {
    match spec.names.first() {
        Some(main) if !name.starts_with("--no-") && !name.contains('.') => main.clone(),
        _ => name,
    }
}

fn has_name(spec: &OptionSpec, name: &str) -> bool {
    spec.names.iter().any(|known| known == name)
        || (spec.takes == Takes::NothingOrNo
            && name
                .strip_prefix("--no-")
                .is_some_and(|bare| spec.names.iter().any(|known| known.strip_prefix("--") == Some(bare))))
}

fn written(word: &str, values: &[Word]) -> String {
    let words: Vec<&str> = std::iter::once(word).chain(values.iter().map(|word| word.text.as_str())).collect();
    words.join(" ")
}

/// Returns whether a text is a truth value as people write it after a switch.
pub(super) fn is_truth(text: &str) -> bool {
    ["true", "false"].iter().any(|truth| text.eq_ignore_ascii_case(truth))
}

/// Returns why a parser refuses these values of an option.
fn refusal(spec: &OptionSpec, values: &[String]) -> Option<Refusal> {
    match spec.takes {
        Takes::Nothing | Takes::NothingOrNo if !values.is_empty() => return Some(Refusal::ValueUnexpected),
        Takes::One | Takes::OneOrMore if values.is_empty() => return Some(Refusal::ValueMissing),
        Takes::One | Takes::AtMostOne if values.len() > 1 => return Some(Refusal::ValueUnexpected),
        Takes::Nothing | Takes::NothingOrNo | Takes::One | Takes::AtMostOne | Takes::OneOrMore | Takes::Any => {}
    }
    if values.iter().any(|value| !is_of_kind(spec.kind, value)) {
        return Some(Refusal::ValueKind(spec.kind));
    }
    let allowed =
        |value: &String| spec.choices.is_empty() || spec.choices.iter().any(|choice| same(spec, choice, value));
    (!values.iter().all(allowed)).then(|| Refusal::NotAmong(spec.choices.clone()))
}

fn same(spec: &OptionSpec, choice: &str, value: &str) -> bool {
    match spec.kind {
        ValueKind::Whole => whole(choice).is_some() && whole(choice) == whole(value),
        ValueKind::Text | ValueKind::Number | ValueKind::Bool | ValueKind::Json => choice == value,
    }
}

fn is_of_kind(kind: ValueKind, value: &str) -> bool {
    match kind {
        ValueKind::Text | ValueKind::Bool => true,
        ValueKind::Whole => whole(value).is_some(),
        ValueKind::Number => number(value).is_some(),
        ValueKind::Json => serde_json::from_str::<serde_json::Value>(value).is_ok(),
    }
}

/// Returns the whole number that Python's `int()` makes of a text.
pub(super) fn whole(text: &str) -> Option<i64> {
    digits(text.trim())?.parse().ok()
}

/// Returns the number that Python's `float()` makes of a text.
pub(super) fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    // Rust also reads these words, in any case; nothing else in it has letters but the exponent.
    digits(text)?.parse().ok()
}

/// Takes out the underscores that Python allows between digits.
fn digits(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |index: Option<usize>| index.and_then(|index| bytes.get(index)).is_some_and(u8::is_ascii_digit);
    for (index, byte) in bytes.iter().enumerate() {
        if *byte == b'_' && !(is_digit(index.checked_sub(1)) && is_digit(Some(index + 1))) {
            return None;
        }
    }
    Some(text.replace('_', ""))
}

#[cfg(test)]
mod tests;
