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
        /// The isolation level.
        Isolation = "isolation",
        /// The recipes and packages.
        Recipes = "recipes",
        /// The state of caches at the start.
        Caches = "caches",
    }
);

/// Everything that must be equal before two measurements may be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ComparabilityKey(pub BTreeMap<KeyField, String>);

impl ComparabilityKey {
    /// Returns the fields in which the keys differ, or which only one of them has.
    pub fn differences(&self, other: &Self) -> Vec<KeyField> {
        KeyField::ALL.iter().copied().filter(|field| self.0.get(field) != other.0.get(field)).collect()
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
    fn the_differing_field_is_named() {
        let a = ComparabilityKey([(KeyField::Host, "x".to_owned()), (KeyField::Seed, "1".to_owned())].into());
        let b = ComparabilityKey([(KeyField::Host, "y".to_owned())].into());
        assert_eq!(a.differences(&b), [KeyField::Host, KeyField::Seed]);
        assert_eq!(a.without(KeyField::Seed).differences(&b), [KeyField::Host]);
        assert!(a.differences(&a).is_empty());
    }
}
