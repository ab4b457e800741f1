//! The options of a dataset, by name, each asked for once; one that nobody asks for is an error.

use std::collections::BTreeMap;
use std::path::PathBuf;

use isobench_schema::task::OptionValue;
use serde_json::Value;

use super::{Context, DatasetError};

/// The most tokens of one part of a prompt, or of an answer.
const MOST_TOKENS: u32 = 10_000_000;

/// The options of one dataset.
#[derive(Debug)]
pub(crate) struct Options<'a> {
    dataset: &'a str,
    given: &'a BTreeMap<String, OptionValue>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    /// Returns the options of `dataset`.
    pub(crate) fn new(dataset: &'a str, given: &'a BTreeMap<String, OptionValue>) -> Self {
        Self { dataset, given, known: Vec::new() }
    }

    /// Returns a length in tokens, by the first of these names that is given.
    pub(crate) fn tokens(&mut self, names: &[&'static str], default: u32) -> Result<u32, DatasetError> {
        Ok(self.whole(names, 0, MOST_TOKENS)?.unwrap_or(default))
    }

    /// Returns a whole number by the first of these names that is given.
    pub(crate) fn whole(&mut self, names: &[&'static str], least: u32, most: u32) -> Result<Option<u32>, DatasetError> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        let number = match value {
            OptionValue::Whole(number) => u32::try_from(*number).ok(),
            OptionValue::Text(text) => text.trim().parse().ok(),
            OptionValue::Switch(_) | OptionValue::Number(_) => None,
        };
        match number.filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(name, value, format!("a whole number from {least} to {most}"))),
        }
    }

    /// Returns a whole number that may be negative, by the first of these names that is given.
    pub(crate) fn signed(&mut self, names: &[&'static str]) -> Result<Option<i64>, DatasetError> {
        let Some((name, value)) = self.find(names) else { return Ok(None) };
        let number = match value {
            OptionValue::Whole(number) => Some(*number),
            OptionValue::Text(text) => text.trim().parse().ok(),
            OptionValue::Switch(_) | OptionValue::Number(_) => None,
        };
        number.map(Some).ok_or_else(|| self.wrong(name, value, "a whole number".to_owned()))
    }

    /// Returns a number from `least` to `most`.
    pub(crate) fn number(&mut self, name: &'static str, least: f64, most: f64) -> Result<Option<f64>, DatasetError> {
        let Some((name, value)) = self.find(&[name]) else { return Ok(None) };
        match as_number(value).filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(name, value, format!("a number from {least} to {most}"))),
        }
    }

    /// Returns a ratio for prompts and one for answers, from 0 to 1: one number for both, or a JSON object with `input` and
    /// `output`.
    pub(crate) fn ratios(&mut self, name: &'static str) -> Result<Option<(f64, f64)>, DatasetError> {
        let Some((name, value)) = self.find(&[name]) else { return Ok(None) };
        let both = match (as_number(value), value) {
            (Some(number), _) => Some((number, number)),
            (None, OptionValue::Text(text)) => {
                let object: Option<Value> = serde_json::from_str(text).ok();
                let part = |name: &str| object.as_ref()?.get(name)?.as_f64();
                part("input").zip(part("output"))
            }
            (None, OptionValue::Switch(_) | OptionValue::Whole(_) | OptionValue::Number(_)) => None,
        };
        let is_ratio = |ratio: f64| (0.0..=1.0).contains(&ratio);
        let rule = "a number from 0 to 1, or two of them as {\"input\": .., \"output\": ..}";
        let both = both.filter(|(input, output)| is_ratio(*input) && is_ratio(*output));
        both.map(Some).ok_or_else(|| self.wrong(name, value, rule.to_owned()))
    }

    /// Returns a text by the first of these names that is given.
    pub(crate) fn text(&mut self, names: &[&'static str]) -> Result<Option<&'a str>, DatasetError> {
        match self.find(names) {
            None => Ok(None),
            Some((_, OptionValue::Text(text))) => Ok(Some(text)),
            Some((name, value)) => Err(self.wrong(name, value, "a text".to_owned())),
        }
    }

    /// Returns which of `choices` is given; the first if none is.
    pub(crate) fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Result<T, DatasetError> {
        let given = self.text(&[name])?;
        let found = match given {
            None => choices.first(),
            Some(text) => choices.iter().find(|(choice, _)| *choice == text),
        };
        let names = || choices.iter().map(|(name, _)| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
        found.map(|(_, choice)| *choice).ok_or_else(|| DatasetError::Option {
            dataset: self.dataset.to_owned(),
            option: name.to_owned(),
            value: given.unwrap_or_default().to_owned(),
            rule: names(),
        })
    }

    /// Returns a switch.
    pub(crate) fn switch(&mut self, name: &'static str, default: bool) -> Result<bool, DatasetError> {
        match self.find(&[name]) {
            None => Ok(default),
            Some((_, OptionValue::Switch(switch))) => Ok(*switch),
            Some((name, value)) => match shown(value).as_str() {
                "true" => Ok(true),
                "false" => Ok(false),
                _ => Err(self.wrong(name, value, "true or false".to_owned())),
            },
        }
    }

    /// Returns the path of the dataset's file, if one is given.
    pub(crate) fn path(&mut self, context: &Context<'_>) -> Result<Option<PathBuf>, DatasetError> {
        Ok(self.text(PATHS)?.map(|path| context.resources.folder.join(path)))
    }

    /// Returns the path of the dataset's file.
    pub(crate) fn needed_path(&mut self, context: &Context<'_>) -> Result<PathBuf, DatasetError> {
        self.path(context)?.ok_or_else(|| DatasetError::MissingOption {
            dataset: self.dataset.to_owned(),
            option: "dataset-path",
            what: "the file that its requests are read from",
        })
    }

    /// Returns the error for an option with a value that makes no sense beside others.
    pub(crate) fn refuse(&self, option: &str, value: impl std::fmt::Display, rule: &str) -> DatasetError {
        DatasetError::Option {
            dataset: self.dataset.to_owned(),
            option: option.to_owned(),
            value: value.to_string(),
            rule: rule.to_owned(),
        }
    }

    /// Refuses what nobody asked for.
    pub(crate) fn finish(self) -> Result<(), DatasetError> {
        let is_known = |name: &str| name == "dataset-name" || self.known.contains(&name);
        match self.given.keys().find(|name| !is_known(name)) {
            None => Ok(()),
            Some(option) => Err(DatasetError::UnknownOption {
                dataset: self.dataset.to_owned(),
                option: option.clone(),
                known: self.known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
            }),
        }
    }

    fn find(&mut self, names: &[&'static str]) -> Option<(&'static str, &'a OptionValue)> {
        self.known.extend(names);
        names.iter().find_map(|name| Some((*name, self.given.get(*name)?)))
    }

    fn wrong(&self, option: &str, value: &OptionValue, rule: String) -> DatasetError {
        DatasetError::Option { dataset: self.dataset.to_owned(), option: option.to_owned(), value: shown(value), rule }
    }
}

/// The names of the option that names the file; the second one is older.
pub(crate) const PATHS: &[&str] = &["dataset-path", "dataset"];

fn as_number(value: &OptionValue) -> Option<f64> {
    match value {
        OptionValue::Number(number) => Some(*number),
        OptionValue::Whole(number) => i32::try_from(*number).ok().map(f64::from),
        OptionValue::Text(text) => text.trim().parse().ok(),
        OptionValue::Switch(_) => None,
    }
}

fn shown(value: &OptionValue) -> String {
    match value {
        OptionValue::Switch(switch) => switch.to_string(),
        OptionValue::Whole(number) => number.to_string(),
        OptionValue::Number(number) => number.to_string(),
        OptionValue::Text(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, OptionValue)]) -> BTreeMap<String, OptionValue> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
    }

    fn text(text: &str) -> OptionValue {
        OptionValue::Text(text.to_owned())
    }

    #[test]
    fn numbers_are_read_from_numbers_and_from_text() {
        let given = given(&[
            ("a", OptionValue::Whole(5)),
            ("b", text(" 7 ")),
            ("c", text("0.25")),
            ("d", text(r#"{"input": 0.1, "output": 0.5}"#)),
            ("e", OptionValue::Whole(1)),
        ]);
        let mut options = Options::new("random", &given);
        assert_eq!(options.tokens(&["x", "a"], 1).unwrap(), 5);
        assert_eq!(options.tokens(&["b"], 1).unwrap(), 7);
        assert_eq!(options.tokens(&["y"], 1).unwrap(), 1);
        assert_eq!(options.number("c", 0.0, 1.0).unwrap(), Some(0.25));
        assert_eq!(options.ratios("d").unwrap(), Some((0.1, 0.5)));
        assert_eq!(options.ratios("e").unwrap(), Some((1.0, 1.0)));
        options.finish().unwrap();
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let given = given(&[
            ("len", OptionValue::Whole(-1)),
            ("ratio", text("much")),
            ("meaning", text("sideways")),
            ("shuffle", OptionValue::Whole(2)),
            ("path", OptionValue::Switch(true)),
        ]);
        let mut options = Options::new("random", &given);
        let errors = [
            options.tokens(&["len"], 1).unwrap_err().to_string(),
            options.ratios("ratio").unwrap_err().to_string(),
            options.choice("meaning", &[("up", 1), ("down", 2)]).unwrap_err().to_string(),
            options.switch("shuffle", true).unwrap_err().to_string(),
            options.text(&["path"]).unwrap_err().to_string(),
        ];
        let expected = [
            "option `len` of dataset `random` is `-1`, but it must be a whole number from 0 to 10000000",
            "option `ratio` of dataset `random` is `much`, but it must be a number from 0 to 1, or two of them as \
             {\"input\": .., \"output\": ..}",
            "option `meaning` of dataset `random` is `sideways`, but it must be `up` or `down`",
            "option `shuffle` of dataset `random` is `2`, but it must be true or false",
            "option `path` of dataset `random` is `true`, but it must be a text",
        ];
        assert_eq!(errors, expected);
    }

    #[test]
    fn an_option_that_nobody_asks_for_is_refused_with_those_that_there_are() {
        let given = given(&[("dataset-name", text("random")), ("inputlen", OptionValue::Whole(3))]);
        let mut options = Options::new("random", &given);
        options.tokens(&["random-input-len", "input-len"], 1).unwrap();
        let expected = "dataset `random` has no option `inputlen`: it has `random-input-len`, `input-len`";
        assert_eq!(options.finish().unwrap_err().to_string(), expected);
    }
}
