//! From the flags of other clients to words of our own.

use std::collections::BTreeSet;

use isobench_loadgen::schedule::is_reserved;
use isobench_plan::command::GivenOption;
use isobench_plan::command::options::Table;
use isobench_plan::knowledge::Knowledge;
use isobench_plan::knowledge::load_flags::{LoadFlag, LoadFlags, Meaning, Part};
use isobench_plan::knowledge::options::Takes;
use isobench_schema::tool::Tool;
use serde_json::Value;

use super::datasets::is_of_each_file;
use super::split::{Split, is_url};
use super::{Fate, FlagRow};

/// What a command line means.
#[derive(Debug)]
pub(super) struct Meant {
    /// It, in our own words.
    pub(super) words: Vec<String>,
    /// What each word was taken for.
    pub(super) rows: Vec<FlagRow>,
    /// What can't be done.
    pub(super) problems: Vec<String>,
}

/// Our flags that may be given several times.
const REPEATED: [&str; 3] = ["--header", "--extra-body", "--dataset-option"];

/// What a client reports unasked doesn't take away from what we report.
const NO_DEFAULTS: [&str; 1] = ["--metric-percentiles"];

/// Returns what a split command line means.
pub(super) fn mean(split: Split<'_>, knowledge: &Knowledge) -> Meant {
    let Split { own, foreign, tool, table, rows, problems } = split;
    let named: BTreeSet<String> = own.iter().filter(|word| word.starts_with('-')).map(|word| bare_flag(word)).collect();
    let flags = &knowledge.load_flags;
    let (typed, words) = (BTreeSet::new(), Vec::new());
    let mut draft = Draft { flags, knowledge, tool, given: foreign, named, typed, own, words, rows, problems };
    if tool.is_some() {
        draft.add_defaults(&table);
    }
    draft.typed = draft.typed();
    draft.mean();
    let Draft { own, words, rows, problems, .. } = draft;
    Meant { words: own.into_iter().chain(words).collect(), rows, problems }
}

fn bare_flag(word: &str) -> String {
    word.split_once('=').map_or(word, |(name, _)| name).to_owned()
}

/// A command line whose meaning is being put together.
pub(super) struct Draft<'k> {
    pub(super) flags: &'k LoadFlags,
    pub(super) knowledge: &'k Knowledge,
    /// The client whose whole command it is.
    pub(super) tool: Option<Tool>,
    /// Flags of other clients; what such a client does unasked was not written.
    given: Vec<GivenOption<'k>>,
    /// Our own flags that have a value by now.
    named: BTreeSet<String>,
    /// Our own flags that something typed becomes: what a client does unasked gives way to it.
    typed: BTreeSet<String>,
    pub(super) own: Vec<String>,
    words: Vec<String>,
    rows: Vec<FlagRow>,
    problems: Vec<String>,
}

impl<'k> Draft<'k> {
    /// Adds what the client does where it isn't told otherwise.
    fn add_defaults(&mut self, table: &Table<'k>) {
        for spec in table.specs() {
            let Some(name) = spec.names.first() else { continue };
            let one = matches!(spec.takes, Takes::One | Takes::AtMostOne);
            let (Some(default), true) = (&spec.default, one && !self.has(name)) else { continue };
            // An option whose row is gone was replaced by another one.
            if spec.until.is_some() && self.tool != Some(Tool::BenchmarkServing) {
                continue;
            }
            let counts = self.flags.get(name).is_some_and(|flag| match &flag.meaning {
                Meaning::Becomes(_) | Meaning::PartOf(_) => true,
                // What is nothing, once or off is so here too.
                Meaning::DatasetOption(_) => {
                    !flag.of_datasets.is_empty() && !matches!(default.as_str(), "0" | "1" | "1.0" | "False")
                }
                Meaning::Body(_) | Meaning::Ignored(_) | Meaning::Refused(_) => false,
            });
            if counts && !NO_DEFAULTS.contains(&name.as_str()) {
                let values = vec![default.clone()];
                self.given.push(GivenOption { written: String::new(), name: name.clone(), values, spec: Some(spec) });
            }
        }
    }

    /// Returns what the flags become that were typed and count.
    fn typed(&self) -> BTreeSet<String> {
        let typed = self.given.iter().filter(|option| !option.written.is_empty());
        let flags = typed.filter_map(|option| self.flags.get(&option.name));
        let counting = flags.filter(|flag| !self.is_of_another_dataset(flag));
        let own = counting.filter_map(|flag| match &flag.meaning {
            Meaning::Becomes(own) => Some(own.clone()),
            Meaning::Body(_)
            | Meaning::DatasetOption(_)
            | Meaning::PartOf(_)
            | Meaning::Ignored(_)
            | Meaning::Refused(_) => None,
        });
        own.collect()
    }

    fn mean(&mut self) {
        // Parts come first, because a part may say what a single flag says less exactly.
        let mut parts: Vec<Part> = Vec::new();
        for option in &self.given {
            if let Some(Meaning::PartOf(part)) = self.flags.get(&option.name).map(|flag| &flag.meaning)
                && !parts.contains(part)
            {
                parts.push(*part);
            }
        }
        if self.tool.is_some() {
            parts.extend(
                [Part::EndOfSequence, Part::Url, Part::Arrival]
                    .iter()
                    .filter(|part| !parts.contains(part))
                    .copied()
                    .collect::<Vec<_>>(),
            );
        }
        for part in parts {
            self.part(part);
        }
        for index in 0..self.given.len() {
            let Some(option) = self.given.get(index).cloned() else { continue };
            let is_last = !self.given.iter().skip(index + 1).any(|later| later.name == option.name);
            if is_last {
                self.flag(&option);
            } else {
                self.note(&option, Fate::Ignored, Some(format!("`{}` comes later", option.name)));
            }
        }
        self.temperature();
    }

    /// Takes in one flag that means something by itself.
    fn flag(&mut self, option: &GivenOption<'k>) {
        let flags = self.flags;
        let Some(flag) = flags.get(&option.name) else {
            self.refuse(option, "no such flag is known");
            return;
        };
        if self.is_of_another_dataset(flag) {
            let datasets = flag.of_datasets.join("`, `");
            self.note(
                option,
                Fate::Ignored,
                Some(format!("it counts for the dataset `{datasets}` only, as in that client")),
            );
            return;
        }
        match &flag.meaning {
            Meaning::Becomes(own) => self.becomes(option, flag, own),
            Meaning::Body(field) => self.body(option, field),
            Meaning::DatasetOption(_) if !is_of_each_file(flag) && self.asked_dataset().is_none() => {
                self.refuse(option, "name the dataset too, with `--dataset-name`");
            }
            Meaning::DatasetOption(name) => {
                let name = if name.is_empty() { option.name.trim_start_matches('-') } else { name };
                let value = option.values.first().map_or("true", String::as_str);
                self.say(option, "--dataset-option", Some(format!("{name}={value}")), flag.note.clone());
            }
            // Done together with the others of its part.
            Meaning::PartOf(_) => {}
            Meaning::Ignored(why) => self.note(option, Fate::Ignored, Some(why.clone())),
            Meaning::Refused(_) if flag.harmless.contains(&option.values.concat()) => {
                self.note(option, Fate::Ignored, Some("with this value it changes nothing".to_owned()));
            }
            Meaning::Refused(why) => self.refuse(option, why),
        }
    }

    fn becomes(&mut self, option: &GivenOption<'k>, flag: &LoadFlag, own: &str) {
        let note = flag.note.clone();
        if own == "--header" {
            for value in option.values.clone() {
                self.say(option, own, Some(value), note.clone());
            }
            return;
        }
        if option.values.is_empty() {
            self.say(option, own, None, note);
            return;
        }
        let value = if own == "--lora" { option.values.join(",") } else { option.values.concat() };
        if flag.values.is_empty() {
            self.say(option, own, Some(value), note);
            return;
        }
        if let Some(ours) = flag.values.get(&value) {
            // Only the chat interface takes images.
            let is_of_images = ours == "completions" && self.asked_dataset().is_some_and(|name| name == "image");
            let ours = if is_of_images { "chat" } else { ours };
            let differs = ours != value && !value.starts_with("openai");
            self.say(option, own, Some(ours.to_owned()), note.filter(|_| differs));
        } else {
            let known: Vec<&str> = flag.values.keys().map(String::as_str).collect();
            self.refuse(option, &format!("`{value}` isn't spoken here; known are {}", known.join(", ")));
        }
    }

    fn body(&mut self, option: &GivenOption<'k>, field: &str) {
        if !field.is_empty() {
            let value = option.values.first().map_or("true", String::as_str);
            self.body_field(option, field, value);
            return;
        }
        match serde_json::from_str(&option.values.concat()) {
            Ok(Value::Object(fields)) => {
                for (key, value) in fields {
                    self.body_field(option, &key, &value.to_string());
                }
            }
            Ok(_) | Err(_) => self.refuse(option, "give a JSON object, such as `{\"top_p\": 0.9}`"),
        }
    }

    fn body_field(&mut self, option: &GivenOption<'k>, field: &str, value: &str) {
        match (field, value) {
            ("temperature", _) => self.say(option, "--temperature", Some(value.to_owned()), None),
            ("ignore_eos", "true") => {
                self.note(option, Fate::Becomes(Vec::new()), Some("`ignore_eos` is the default".to_owned()));
            }
            ("ignore_eos", "false") => self.say(option, "--stop-at-eos", None, None),
            ("n" | "best_of", "1") => {
                let why = format!("`{field}` is 1 in any case");
                self.note(option, Fate::Ignored, Some(why));
            }
            _ if is_reserved(field) => {
                self.refuse(option, &format!("the field `{field}` of requests is controlled by the load client"));
            }
            _ => self.say(option, "--extra-body", Some(format!("{field}={value}")), None),
        }
    }

    /// Returns a flag of other clients as it was given last.
    pub(super) fn option(&self, name: &str) -> Option<GivenOption<'k>> {
        self.given.iter().rev().find(|option| option.name == name).cloned()
    }

    /// Returns a flag's value: as it was given last.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let option = self.given.iter().rev().find(|option| option.name == name)?;
        option.values.first().map(String::as_str)
    }

    /// Returns whether a flag of other clients is given.
    pub(super) fn has(&self, name: &str) -> bool {
        self.given.iter().any(|option| option.name == name)
    }

    /// Returns whether one of our own flags has a value.
    pub(super) fn is_said(&self, flag: &str) -> bool {
        self.named.contains(flag)
    }

    /// Returns the value of one of our own flags, where it was typed.
    pub(super) fn own_value(&self, flag: &str) -> Option<&str> {
        let at = self.own.iter().position(|word| bare_flag(word) == flag)?;
        match self.own.get(at)?.split_once('=') {
            Some((_, value)) => Some(value),
            None => self.own.get(at + 1).map(String::as_str),
        }
    }

    /// Returns whether our own words name a server.
    pub(super) fn has_url(&self) -> bool {
        self.own.iter().any(|word| is_url(word)) || self.is_said("--against")
    }

    /// Returns whether a key that is set by a repeated flag of ours was set by us.
    pub(super) fn is_set(&self, flag: &str, value: &str) -> bool {
        let Some((key, _)) = value.split_once('=') else { return false };
        let is_same = |text: &str| text.split_once('=').is_some_and(|(known, _)| known.trim() == key);
        self.own.iter().enumerate().any(|(at, word)| {
            let follows = at.checked_sub(1).and_then(|before| self.own.get(before)).is_some_and(|word| word == flag);
            let attached = word.strip_prefix(flag).and_then(|rest| rest.strip_prefix('='));
            attached.is_some_and(is_same) || (follows && is_same(word))
        })
    }

    /// Says what a flag means in words of ours, unless our own flag is given too.
    pub(super) fn say(&mut self, option: &GivenOption<'k>, flag: &str, value: Option<String>, note: Option<String>) {
        let is_unasked = option.written.is_empty();
        let is_said = if REPEATED.contains(&flag) {
            value.as_deref().is_some_and(|value| self.is_set(flag, value))
        } else {
            self.is_said(flag) || (is_unasked && self.typed.contains(flag))
        };
        if is_said {
            self.note(option, Fate::Ignored, Some(format!("`{flag}` is said already")));
            return;
        }
        let words: Vec<String> = match value {
            // A value that begins with a dash would be read as a flag.
            Some(value) if value.starts_with('-') => vec![format!("{flag}={value}")],
            value => std::iter::once(flag.to_owned()).chain(value).collect(),
        };
        self.named.insert(flag.to_owned());
        self.words.extend(words.iter().cloned());
        self.note(option, Fate::Becomes(words), note);
    }

    /// Adds words of ours that no flag in particular stands for.
    pub(super) fn add(&mut self, words: &[&str]) {
        self.named.extend(words.iter().filter(|word| word.starts_with("--")).map(ToString::to_string));
        self.words.extend(words.iter().map(ToString::to_string));
    }

    /// Says that a flag can't be done.
    pub(super) fn refuse(&mut self, option: &GivenOption<'k>, why: &str) {
        self.problems.push(format!("`{}`: {why}", shown(option)));
        self.note(option, Fate::Refused, Some(why.to_owned()));
    }

    /// Notes what became of a flag. What a client does unasked and we do too isn't worth a line.
    pub(super) fn note(&mut self, option: &GivenOption<'k>, fate: Fate, note: Option<String>) {
        if option.written.is_empty() && fate == Fate::Ignored {
            return;
        }
        let written = shown(option);
        let same = self.rows.last_mut().filter(|row| row.written == written);
        match (same.map(|row| &mut row.fate), fate) {
            (Some(Fate::Becomes(words)), Fate::Becomes(more)) => words.extend(more),
            (_, fate) => self.rows.push(FlagRow { written, fate, note }),
        }
    }
}

/// Returns a flag as it was written, or as its client has it unasked.
fn shown(option: &GivenOption<'_>) -> String {
    if !option.written.is_empty() {
        return option.written.clone();
    }
    format!("{} {} (unasked)", option.name, option.values.join(" "))
}
