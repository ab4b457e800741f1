//! Numbers of a command: what is given and can't be used is an error, and a default counts only where nothing is given.

use serde_json::Value;

use super::Draft;
use crate::command::GivenOption;
use crate::command::options::{number, whole};
use crate::knowledge::options::ValueKind;
use crate::lint::ids;

/// The most requests of a window, of what goes before it, and under way at once.
pub(super) const MOST_REQUESTS: u32 = 1_000_000;

/// The most tokens of a prompt or of an answer.
pub(super) const MOST_TOKENS: u32 = 10_000_000;

/// Fields of a request's body that are numbers, with the least and the most.
const FIELDS: [(&str, f64, f64); 10] = [
    ("top_p", f64::MIN_POSITIVE, 1.0),
    ("top_k", -1.0, 1e9),
    ("min_p", 0.0, 1.0),
    ("logprobs", 0.0, 1e9),
    ("best_of", 1.0, 1e6),
    ("n", 1.0, 1e6),
    ("frequency_penalty", -2.0, 2.0),
    ("presence_penalty", -2.0, 2.0),
    ("repetition_penalty", f64::MIN_POSITIVE, 1e9),
    ("temperature", 0.0, 1e9),
];

impl Draft<'_, '_> {
    /// Returns an option's whole number between `least` and `most`: as given, or else the program's default.
    pub(super) fn count(&mut self, name: &str, least: u32, most: u32) -> Option<u32> {
        // The default of an option that takes several values is a tuple.
        let text = self.value(name)?.trim_matches(['(', ')', '[', ']', ',']).to_owned();
        let found = whole(&text).and_then(|number| u32::try_from(number).ok());
        let found = found.filter(|number| (least..=most).contains(number));
        if found.is_none() && self.values(name).is_some() {
            self.unusable(name, &text, &format!("a whole number from {least} to {most}"));
        }
        found
    }

    /// Returns an option's number: as given, or else the program's default.
    pub(super) fn rate(&self, name: &str) -> Option<f64> {
        number(self.value(name)?)
    }

    /// Returns an option's number if `fits` holds for it; a given one for which it doesn't is an error.
    pub(super) fn number(&mut self, name: &str, needed: &str, fits: impl Fn(f64) -> bool) -> Option<f64> {
        let found = self.rate(name).filter(|number| fits(*number));
        if found.is_none()
            && let Some(values) = self.values(name)
        {
            let text = values.join(" ");
            self.unusable(name, &text, needed);
        }
        found
    }

    /// Returns the product of two numbers of requests, if there aren't too many.
    pub(super) fn product(&mut self, [(a_name, a), (b_name, b)]: [(&str, u32); 2]) -> Option<u32> {
        let found = a.checked_mul(b).filter(|all| *all <= MOST_REQUESTS);
        if found.is_none() {
            let all = u64::from(a) * u64::from(b);
            let message = format!(
                "`{a_name}` of {a} and `{b_name}` of {b} are {all} requests, and isobench sends at most {MOST_REQUESTS}"
            );
            self.error(ids::VALUE_REFUSED, a_name, message, "ask for fewer requests");
        }
        found
    }

    /// Finds lengths and counts of prompts that no prompts can have.
    pub(super) fn check_lengths(&mut self) {
        let options: Vec<(String, String)> = self
            .fitted
            .client
            .iter()
            .filter(|option| super::fate::is_of_prompts(&option.name))
            .filter(|option| option.spec.is_some_and(|spec| spec.kind == ValueKind::Whole))
            .flat_map(|option| option.values.iter().map(|value| (option.name.clone(), value.clone())))
            .collect();
        for (name, value) in options {
            if !whole(&value).is_some_and(|number| (0..=i64::from(MOST_TOKENS)).contains(&number)) {
                self.unusable(&name, &value, &format!("a whole number from 0 to {MOST_TOKENS}"));
            }
        }
        let ratio = self.values("--random-range-ratio").and_then(|values| number(values.first()?));
        if let Some(ratio) = ratio.filter(|ratio| !(0.0..=1.0).contains(ratio)) {
            self.unusable("--random-range-ratio", &ratio.to_string(), "a number from 0 to 1");
        }
    }

    /// Returns the value of a field of a request's body.
    pub(super) fn field(&mut self, field: &str, option: &GivenOption<'_>, text: &str) -> Option<Value> {
        let Some((_, least, most)) = FIELDS.into_iter().find(|(known, ..)| *known == field) else {
            return Some(serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())));
        };
        let found = number(text).filter(|number| (least..=most).contains(number));
        if found.is_none() {
            let least = if least > 0.0 && least < 1.0 { "above 0".to_owned() } else { format!("from {least}") };
            self.unusable(&option.name, text, &format!("a number {least} to {most}"));
        }
        whole(text).map(Value::from).or_else(|| found.map(Value::from)).filter(|_| found.is_some())
    }

    /// Finds a value that is given and can't be used.
    pub(super) fn unusable(&mut self, name: &str, value: &str, needed: &str) {
        let message = format!("`{name} {value}` can't be used: isobench needs {needed}");
        self.error(ids::VALUE_REFUSED, name, message, &format!("give `{name}` {needed}, or leave it out"));
    }
}
