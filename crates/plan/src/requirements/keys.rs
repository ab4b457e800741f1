//! Reads the keys of a model's `config.json`, with errors that name the key.

use serde_json::Value;

/// The largest number that a key may have: beyond it the config is broken, and sums below stay exact.
const LARGEST: u64 = 1_000_000_000;

/// Why a model's config can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It isn't an object.
    #[error("the config of `{model}` is no JSON object")]
    NoObject {
        /// The model.
        model: String,
    },
    /// A key that the size depends on is missing.
    #[error("the config of `{model}` has no `{key}`, from which its size follows")]
    Missing {
        /// The model.
        model: String,
        /// The key.
        key: &'static str,
    },
    /// A key's value is none that can be reckoned with.
    #[error("`{key}` in the config of `{model}` is {found}, and not {expected}")]
    Wrong {
        /// The model.
        model: String,
        /// The key.
        key: String,
        /// Its value, shortened.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
    /// How the parameters of such a model are counted isn't known.
    #[error("how the size of a model of type `{kind}` (`{model}`) follows from its config is not known")]
    UnknownKind {
        /// The model.
        model: String,
        /// Its `model_type`, or its architecture.
        kind: String,
    },
    /// How its weights are quantised isn't known.
    #[error("the size of weights quantised with `{method}` (`{model}`) is not known")]
    UnknownQuantization {
        /// The model.
        model: String,
        /// The method.
        method: String,
    },
}

/// The keys of one object of a config.
#[derive(Clone, Copy)]
pub(super) struct Keys<'a> {
    model: &'a str,
    value: &'a Value,
}

impl<'a> Keys<'a> {
    pub(super) fn new(model: &'a str, value: &'a Value) -> Result<Self, ConfigError> {
        if value.is_object() {
            Ok(Self { model, value })
        } else {
            Err(ConfigError::NoObject { model: model.to_owned() })
        }
    }

    pub(super) fn model(&self) -> &'a str {
        self.model
    }

    /// Returns a value that is neither absent nor null.
    pub(super) fn get(&self, key: &str) -> Option<&'a Value> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.get(key).and_then(Value::as_str)
    }

    /// Returns a nested object; whatever else stands there counts as none.
    pub(super) fn object(&self, key: &str) -> Option<Keys<'a>> {
        let value = self.get(key).filter(|value| value.is_object())?;
        Some(Keys { model: self.model, value })
    }

    pub(super) fn list(&self, key: &str) -> Option<&'a [Value]> {
        self.get(key).and_then(Value::as_array).map(Vec::as_slice)
    }

    pub(super) fn switch(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(Value::as_bool)
    }

    /// Returns a whole number, if the key is there.
    pub(super) fn number(&self, key: &'static str) -> Result<Option<f64>, ConfigError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        match value.as_u64().filter(|number| *number <= LARGEST).and_then(|number| u32::try_from(number).ok()) {
            Some(number) => Ok(Some(f64::from(number))),
            None => Err(self.wrong(key, value, "a whole number from 0 to 10^9")),
        }
    }

    /// Returns a whole number above 0 that must be there.
    pub(super) fn needed(&self, key: &'static str) -> Result<f64, ConfigError> {
        match self.number(key)? {
            Some(number) if number >= 1.0 => Ok(number),
            Some(_) => Err(self.wrong(key, &Value::from(0), "at least 1")),
            None => Err(ConfigError::Missing { model: self.model.to_owned(), key }),
        }
    }

    /// Returns the first of several spellings that is there.
    pub(super) fn first(&self, keys: &[&'static str]) -> Result<Option<f64>, ConfigError> {
        for key in keys {
            if let Some(number) = self.number(key)? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Returns the first of several spellings, of which one must be there.
    pub(super) fn needed_first(&self, keys: &[&'static str]) -> Result<f64, ConfigError> {
        let present = keys.iter().find(|key| self.get(key).is_some()).or(keys.first());
        match present {
            Some(key) => self.needed(key),
            None => Err(ConfigError::Missing { model: self.model.to_owned(), key: "size" }),
        }
    }

    pub(super) fn wrong(&self, key: &str, value: &Value, expected: &'static str) -> ConfigError {
        let found = value.to_string().chars().take(60).collect();
        ConfigError::Wrong { model: self.model.to_owned(), key: key.to_owned(), found, expected }
    }
}
