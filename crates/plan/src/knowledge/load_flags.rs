//! What the flags of other serving clients mean to `isobench load`.

use std::collections::BTreeMap;

use isobench_schema::tool::Tool;
use serde::Deserialize;

use super::table;

/// The clients whose flags are understood.
pub const CLIENTS: [Tool; 3] = [Tool::VllmBenchServe, Tool::SglangBenchServing, Tool::BenchmarkServing];

/// What several flags of a client say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Where the server is.
    Url,
    /// The path of requests, and with it perhaps the interface.
    Endpoint,
    /// The model and the name it is served by.
    Model,
    /// How often each adapter is asked for.
    LoraShares,
    /// Where prompts come from.
    Dataset,
    /// How long random prompts and their answers are.
    RandomLengths,
    /// How large generated images are.
    ImageSize,
    /// How many requests share prefixes.
    SharedPrefix,
    /// Whether answers go on past their end.
    EndOfSequence,
    /// When requests are sent.
    Arrival,
    /// The file of the result.
    ResultFile,
    /// What a good request keeps.
    Goodput,
}

/// A row of the table as it is written.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Row {
    names: Vec<String>,
    becomes: Option<String>,
    body: Option<String>,
    dataset_option: Option<String>,
    part_of: Option<Part>,
    ignored: Option<String>,
    refused: Option<String>,
    #[serde(default)]
    of_datasets: Vec<String>,
    #[serde(default)]
    values: BTreeMap<String, String>,
    #[serde(default)]
    harmless: Vec<String>,
    note: Option<String>,
}

/// What a flag means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// The value of a flag of `isobench load`.
    Becomes(String),
    /// A field of each request's body; an empty name: all fields of its object.
    Body(String),
    /// An option of the dataset; an empty name: the same name.
    DatasetOption(String),
    /// A part of what several flags say together.
    PartOf(Part),
    /// Nothing that is measured, and why.
    Ignored(String),
    /// Something that can't be done, and why.
    Refused(String),
}

/// A flag of other clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFlag {
    /// Its names, with dashes.
    pub names: Vec<String>,
    /// What it means.
    pub meaning: Meaning,
    /// The datasets that it counts for; empty: all.
    pub of_datasets: Vec<String>,
    /// What its values become; empty: they stay as they are.
    pub values: BTreeMap<String, String>,
    /// With these values a refused flag changes nothing.
    pub harmless: Vec<String>,
    /// What differs all the same.
    pub note: Option<String>,
}

/// The table as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Written {
    source: String,
    flag: Vec<Row>,
    datasets: BTreeMap<String, String>,
}

/// The table `knowledge/load-flags.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadFlags {
    /// Where the rows come from.
    pub source: String,
    /// The flags.
    pub flags: Vec<LoadFlag>,
    /// Datasets by their names in those clients, and here.
    pub datasets: BTreeMap<String, String>,
}

impl LoadFlags {
    pub(super) fn embedded() -> Self {
        let written: Written = table("load-flags.toml", include_str!("../../../../knowledge/load-flags.toml"));
        let Written { source, flag, datasets } = written;
        Self { source, flags: flag.into_iter().map(LoadFlag::from).collect(), datasets }
    }

    /// Returns the flag with this name, which begins with dashes.
    pub fn get(&self, name: &str) -> Option<&LoadFlag> {
        self.flags.iter().find(|flag| flag.names.iter().any(|known| known == name))
    }

    /// Returns the field of a request's body that a flag becomes; empty: all fields of its object.
    pub fn body_field(&self, name: &str) -> Option<&str> {
        match &self.get(name)?.meaning {
            Meaning::Body(field) => Some(field),
            Meaning::Becomes(_)
            | Meaning::DatasetOption(_)
            | Meaning::PartOf(_)
            | Meaning::Ignored(_)
            | Meaning::Refused(_) => None,
        }
    }
}

impl From<Row> for LoadFlag {
    fn from(row: Row) -> Self {
        let Row {
            names,
            becomes,
            body,
            dataset_option,
            part_of,
            ignored,
            refused,
            of_datasets,
            values,
            harmless,
            note,
        } = row;
        let meaning = None
            .or(becomes.map(Meaning::Becomes))
            .or(body.map(Meaning::Body))
            .or(dataset_option.map(Meaning::DatasetOption))
            .or(part_of.map(Meaning::PartOf))
            .or(ignored.map(Meaning::Ignored))
            .or(refused.map(Meaning::Refused));
        // A test reads every row, so that a program with a row without a meaning is never built.
        let meaning = meaning.unwrap_or_else(|| unreachable!("knowledge/load-flags.toml: {names:?} has no meaning"));
        Self { names, meaning, of_datasets, values, harmless, note }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::knowledge::Options;

    #[test]
    fn every_flag_of_every_version_of_the_clients_has_one_row() {
        let (flags, options) = (LoadFlags::embedded(), Options::embedded());
        let mut known = BTreeSet::new();
        for name in flags.flags.iter().flat_map(|flag| &flag.names) {
            assert!(known.insert(name.clone()), "`{name}` has two rows");
        }
        let mut used = BTreeSet::new();
        for tool in CLIENTS {
            let program = options.program(tool).expect("each client has a table");
            for option in &program.option {
                let name = option.names.first().expect("an option has a name");
                assert!(known.contains(name), "`{name}` of {tool} has no row");
                used.insert(name.clone());
            }
        }
        let unused: Vec<&String> = known.difference(&used).collect();
        assert!(unused.is_empty(), "no client has {unused:?}");
    }
}
