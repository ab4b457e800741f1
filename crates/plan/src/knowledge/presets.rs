//! The table `knowledge/presets.toml`: workloads with names.

use std::collections::BTreeMap;

use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::environment::EngineKind;
use isobench_schema::task::Limits;
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Arrival, Prompts, Workload, WorkloadKind};
use serde::Deserialize;

use super::table;
use crate::defaults;
use crate::nearest::hint;

/// A workload with a name.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Preset {
    /// Its name.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// The kind of benchmark.
    pub kind: WorkloadKind,
    /// Measured requests.
    pub requests: u32,
    /// Tokens in each prompt.
    pub input_tokens: u32,
    /// Tokens asked of each answer.
    pub output_tokens: u32,
    /// When requests are sent.
    pub arrival: Arrival,
    /// Requests before the window.
    pub warm_up_requests: u32,
    /// The deadline of the load, if it has one of its own.
    #[serde(default)]
    pub workload_s: Option<Seconds>,
    /// Where it comes from.
    pub source: String,
}

/// A name that no preset has.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no workload is named `{name}`{hint}; there are {known}")]
pub struct UnknownPresetError {
    /// The name.
    pub name: String,
    /// `; did you mean ..?`, or nothing.
    pub hint: String,
    /// Every name.
    pub known: String,
}

/// The presets.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Presets {
    /// The presets.
    pub preset: Vec<Preset>,
}

impl Presets {
    pub(super) fn embedded() -> Self {
        table("presets.toml", include_str!("../../../../knowledge/presets.toml"))
    }

    /// Returns the preset of a name.
    ///
    /// # Errors
    /// Returns the nearest name and all names, if there is none.
    pub fn find(&self, name: &str) -> Result<&Preset, UnknownPresetError> {
        self.preset.iter().find(|preset| preset.name == name).ok_or_else(|| {
            let names = || self.preset.iter().map(|preset| preset.name.as_str());
            let known: Vec<String> = names().map(|known| format!("`{known}`")).collect();
            UnknownPresetError { name: name.to_owned(), hint: hint(name, names()), known: known.join(", ") }
        })
    }
}

impl Preset {
    /// Returns the workload: with random token ids where the engine takes ids and the model's vocabulary is known, else with as
    /// many words.
    pub fn workload(&self, engine: EngineKind, vocabulary: Option<u32>) -> Workload {
        let input_tokens = self.input_tokens;
        let prompts = match (engine, vocabulary.filter(|size| *size > defaults::FIRST_TOKEN_ID)) {
            (EngineKind::Vllm | EngineKind::Sglang, Some(vocabulary_size)) => {
                Prompts::TokenIds { input_tokens, vocabulary_size, first_id: defaults::FIRST_TOKEN_ID }
            }
            (EngineKind::Vllm | EngineKind::Sglang | EngineKind::Generic, _) => Prompts::Words { input_tokens },
        };
        Workload {
            kind: self.kind,
            api: defaults::API,
            requests: self.requests,
            prompts,
            output_tokens: self.output_tokens,
            ignore_eos: defaults::IGNORE_EOS,
            temperature: defaults::TEMPERATURE,
            arrival: self.arrival.clone(),
            max_in_flight: None,
            warm_up_requests: self.warm_up_requests,
            probes: defaults::PROBES,
            counter: defaults::counter(engine),
            extra_body: BTreeMap::new(),
            script: None,
        }
    }

    /// Returns limits with the preset's own deadline of the load put over them.
    #[must_use]
    pub fn limits(&self, limits: Limits) -> Limits {
        let workload_s = self.workload_s.unwrap_or(limits.workload_s);
        let request_s = if limits.request_s > workload_s { workload_s } else { limits.request_s };
        let stall_s = if limits.stall_s > request_s { request_s } else { limits.stall_s };
        Limits { workload_s, request_s, stall_s, ..limits }
    }

    /// Returns the difference from a dataset whose row has no command.
    pub fn deviation(&self) -> Deviation {
        Deviation {
            kind: DeviationKind::WorkloadChosen,
            subject: "workload".to_owned(),
            asked: "nothing".to_owned(),
            run: format!("{} ({})", self.name, self.title),
            reason: "the row has no command, and this workload was named for such rows".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_standard_local_test_is_what_the_runs_used() {
        let presets = Presets::embedded();
        let preset = presets.find("seed-local").unwrap();
        let workload = preset.workload(EngineKind::Vllm, Some(128_256));
        assert_eq!((workload.requests, workload.output_tokens, workload.warm_up_requests), (100, 64, 10));
        assert_eq!(workload.arrival, Arrival::closed(16));
        assert_eq!(
            workload.prompts,
            Prompts::TokenIds { input_tokens: 512, vocabulary_size: 128_256, first_id: defaults::FIRST_TOKEN_ID }
        );
        assert_eq!(preset.workload_s.map(Seconds::get), Some(600.0));
        assert_eq!(preset.deviation().kind, DeviationKind::WorkloadChosen);
        assert_eq!(preset.workload(EngineKind::Vllm, None).prompts, Prompts::Words { input_tokens: 512 });
    }

    #[test]
    fn a_presets_deadline_bounds_every_shorter_wait() {
        let presets = Presets::embedded();
        let s = |number| Seconds::new(number).unwrap();
        let limits = Limits {
            build_s: s(1.0),
            ready_s: s(2.0),
            request_s: s(900.0),
            stall_s: s(700.0),
            workload_s: s(3600.0),
            stop_s: s(3.0),
            log_bytes: 1,
            failed_requests: 0,
        };
        let bounded = presets.find("seed-local").unwrap().limits(limits);
        assert_eq!((bounded.workload_s, bounded.request_s, bounded.stall_s), (s(600.0), s(600.0), s(600.0)));
        assert_eq!(presets.find("throughput-1k").unwrap().limits(limits), limits);
    }

    #[test]
    fn an_unknown_name_gets_the_nearest_and_all() {
        let error = Presets::embedded().find("seed-locl").unwrap_err().to_string();
        assert!(
            error.starts_with("no workload is named `seed-locl`; did you mean `seed-local`?; there are `"),
            "{error}"
        );
    }

    #[test]
    fn every_preset_asks_for_something_and_names_its_source() {
        let presets = Presets::embedded().preset;
        for (place, preset) in presets.iter().enumerate() {
            assert!(preset.requests > 0 && preset.input_tokens > 0 && preset.output_tokens > 0, "{}", preset.name);
            assert!(!preset.source.is_empty() && !preset.title.is_empty(), "{}", preset.name);
            assert!(presets[..place].iter().all(|other| other.name != preset.name), "{}", preset.name);
        }
    }
}
