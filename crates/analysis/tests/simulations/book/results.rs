//! What was simulated, as it is kept beside the page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isobench_analysis::judge;
use isobench_analysis::simulation::Tally;
use serde::{Deserialize, Serialize};

/// The seed of the numbers in the documents; each cell's own follows from it and its name.
pub(crate) const SEED: u64 = 20_261_128;

/// The counts of every cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Results {
    /// The seed.
    pub(crate) seed: u64,
    /// The version of the rules by which sessions were judged.
    pub(crate) rules: String,
    /// By the cells' names.
    pub(crate) cells: BTreeMap<String, Tally>,
}

impl Results {
    pub(crate) fn new() -> Self {
        Self { seed: SEED, rules: judge::RULES.to_owned(), cells: BTreeMap::new() }
    }

    pub(crate) fn get(&self, name: &str) -> &Tally {
        self.cells.get(name).unwrap_or_else(|| unreachable!("no cell `{name}`: simulate anew"))
    }

    pub(crate) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap()
    }

    /// Returns JSON with a cell on each line, so that what changed can be seen.
    pub(crate) fn write(&self) -> String {
        let mut text = format!("{{\n  \"seed\": {},\n  \"rules\": \"{}\",\n  \"cells\": {{\n", self.seed, self.rules);
        for (place, (name, tally)) in self.cells.iter().enumerate() {
            let comma = if place + 1 < self.cells.len() { "," } else { "" };
            writeln!(text, "    \"{name}\": {}{comma}", serde_json::to_string(tally).unwrap()).unwrap();
        }
        text.push_str("  }\n}\n");
        text
    }

    /// Returns how many runs there are of all cells.
    pub(crate) fn runs(&self) -> u64 {
        self.cells.values().map(|tally| u64::from(tally.runs)).sum()
    }
}
