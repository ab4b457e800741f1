//! The comparability key: everything that must be equal before two measurements may be compared.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::failure::spelt_enum;

spelt_enum!(
    /// One field of the comparability key.
    KeyField {
        /// The host's fingerprint.
        Host = "host",
        /// The accelerators.
        Device = "device",
        /// Their driver.
        Driver = "driver",
        /// The load client and its version.
        Client = "client",
        /// The workload: prompts, lengths and arrivals, with the block's seed left out.
        Workload = "workload",
        /// The seed of the prompts and arrival times.
        Seed = "seed",
        /// The server's command, options and variables.
        Server = "server",
        /// The model, the tokenizer and the dataset.
        Inputs = "inputs",
        /// The definitions of the metrics.
        Definition = "definition",
        /// The isolation level, and with containers their image, bounds and devices.
        Isolation = "isolation",
        /// The recipes and packages.
        Recipes = "recipes",
        /// The image that native files are built in, where they are built in one.
        Toolkit = "toolkit",
        /// The state of caches at the start.
        Caches = "caches",
    }
);

/// Everything that must be equal before two measurements may be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ComparabilityKey(pub BTreeMap<KeyField, String>);

/// A field in which two keys differ, with the value of each; absent where a key doesn't have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyDifference {
    /// The field.
    pub field: KeyField,
    /// Its value in the first key.
    pub left: Option<String>,
    /// Its value in the second key.
    pub right: Option<String>,
}

impl ComparabilityKey {
    /// Returns the fields in which the keys differ, or which only one of them has, with both values.
    pub fn differences(&self, other: &Self) -> Vec<KeyDifference> {
        let differing = KeyField::ALL.iter().copied().filter(|field| self.0.get(field) != other.0.get(field));
        let values = |field: KeyField| KeyDifference {
            field,
            left: self.0.get(&field).cloned(),
            right: other.0.get(&field).cloned(),
        };
        differing.map(values).collect()
    }

    /// Returns the key without one field, for example without the seed to compare over blocks.
    #[must_use]
    pub fn without(&self, field: KeyField) -> Self {
        let mut key = self.clone();
        key.0.remove(&field);
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_differing_field_is_named_with_both_values() {
        let a = ComparabilityKey([(KeyField::Host, "x".to_owned()), (KeyField::Seed, "1".to_owned())].into());
        let b = ComparabilityKey([(KeyField::Host, "y".to_owned())].into());
        let value = |text: &str| Some(text.to_owned());
        let host = KeyDifference { field: KeyField::Host, left: value("x"), right: value("y") };
        let seed = KeyDifference { field: KeyField::Seed, left: value("1"), right: None };
        assert_eq!(a.differences(&b), [host.clone(), seed]);
        assert_eq!(a.without(KeyField::Seed).differences(&b), [host]);
        assert!(a.differences(&a).is_empty());
    }
}
