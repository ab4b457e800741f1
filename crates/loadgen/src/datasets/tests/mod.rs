//! Tests of datasets through schedules: what is sent, and what is refused.

mod drawn;
mod files;
mod traces;

use std::collections::BTreeMap;

use isobench_schema::record::Phase;
use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};
use serde_json::Value;

use super::*;
use crate::schedule::{Entry, Schedule, ScheduleError};
use crate::tokenizer::tests::Sample;

/// A file's folder that goes away at the end.
struct Scene {
    folder: tempfile::TempDir,
    resources: Resources,
    workload: Workload,
    seed: u64,
}

impl Scene {
    fn new(dataset: &str, requests: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let resources = Resources { tokenizer: Some(Sample::Bytes.tokenizer()), folder: folder.path().to_owned() };
        let workload = Workload {
            kind: WorkloadKind::Serving,
            api: Api::Completions,
            requests,
            prompts: Prompts::Dataset { name: dataset.to_owned(), options: BTreeMap::new() },
            output_tokens: 0,
            ignore_eos: true,
            temperature: 0.0,
            arrival: Arrival::closed(4),
            max_in_flight: None,
            warm_up_requests: 3,
            probes: Probes { count: 2, output_tokens: 5 },
            counter: TokenCounter::Tokenizer,
            extra_body: BTreeMap::new(),
            script: None,
        };
        Self { folder, resources, workload, seed: 7 }
    }

    fn api(mut self, api: Api) -> Self {
        self.workload.api = api;
        self
    }

    fn tokenizer(mut self, kind: Sample) -> Self {
        self.resources.tokenizer = Some(kind.tokenizer());
        self
    }

    fn whole(self, option: &str, value: u32) -> Self {
        self.option(option, OptionValue::Whole(i64::from(value)))
    }

    fn text(self, option: &str, value: &str) -> Self {
        self.option(option, OptionValue::Text(value.to_owned()))
    }

    fn option(mut self, option: &str, value: OptionValue) -> Self {
        let Prompts::Dataset { options, .. } = &mut self.workload.prompts else { unreachable!() };
        options.insert(option.to_owned(), value);
        self
    }

    /// Gives the dataset this file.
    fn file(self, bytes: impl AsRef<[u8]>) -> Self {
        std::fs::write(self.folder.path().join("data"), bytes).unwrap();
        self.text("dataset-path", "data")
    }

    fn traced(mut self) -> Self {
        self.workload.arrival = Arrival::Trace { speed: 1.0 };
        self
    }

    fn count(&self, text: &str) -> u32 {
        self.resources.tokenizer.as_ref().unwrap().count(text).unwrap()
    }

    fn schedule(&self, phase: Phase) -> Result<Schedule, ScheduleError> {
        Schedule::new(&self.workload, self.seed, phase, &self.resources)
    }

    fn timed_requests(&self) -> Option<u64> {
        Schedule::timed_requests(&self.workload, self.seed, &self.resources).unwrap()
    }

    /// Returns the requests of the window with their bodies.
    fn sent(&self) -> Vec<(Entry, Value)> {
        self.sent_in(Phase::Measure)
    }

    fn sent_in(&self, phase: Phase) -> Vec<(Entry, Value)> {
        bodies(&self.schedule(phase).unwrap())
    }

    /// Returns why nothing can be sent, with the file's path shortened.
    fn refusal(&self) -> String {
        let path = self.folder.path().join("data").display().to_string();
        self.schedule(Phase::Measure).unwrap_err().to_string().replace(&path, "data")
    }
}

fn bodies(schedule: &Schedule) -> Vec<(Entry, Value)> {
    let body = |entry: &Entry| {
        let mut bytes = Vec::new();
        schedule.write_body(entry, "m", &[], &mut bytes).unwrap();
        (*entry, serde_json::from_slice(&bytes).unwrap())
    };
    schedule.entries().iter().map(body).collect()
}

fn prompts(sent: &[(Entry, Value)]) -> Vec<&str> {
    sent.iter().map(|(_, body)| body["prompt"].as_str().unwrap()).collect()
}

#[test]
fn an_unknown_dataset_is_refused_with_those_that_there_are() {
    assert_eq!(
        Scene::new("sharegtp", 1).refusal(),
        "there is no dataset `sharegtp`: the names are `random`, `sharegpt`, `sonnet`, `custom`, `prefix-repetition`, \
         `prefix-tree`, `sessions`, `image`, `burstgpt`, `azure`, `mooncake`, `timed`"
    );
}

#[test]
fn a_missing_tokenizer_is_said_with_how_to_give_one() {
    for (name, api) in [("image", Api::Chat), ("sonnet", Api::Completions)] {
        let mut scene = Scene::new(name, 1).api(api);
        scene.resources = Resources::default();
        let expected = format!(
            "dataset `{name}` needs the model's tokenizer: give the model's folder or its `tokenizer.json` as tokenizer"
        );
        assert_eq!(scene.refusal(), expected);
    }
}

#[test]
fn first_request_and_probes_are_short_words_and_need_no_tokenizer() {
    for name in ["random", "sharegpt", "sessions"] {
        let mut scene = Scene::new(name, 1).api(Api::Chat);
        scene.resources = Resources::default();
        let words = |phase| {
            let sent = scene.sent_in(phase);
            sent.iter()
                .map(|(_, body)| body["messages"][0]["content"].as_str().unwrap().split(' ').count())
                .collect::<Vec<_>>()
        };
        assert_eq!(words(Phase::First), [8]);
        assert_eq!(words(Phase::ProbeBefore), [64, 64]);
        assert_eq!(scene.sent_in(Phase::First)[0].1["max_tokens"], 8);
        assert_eq!(scene.sent_in(Phase::ProbeAfter)[0].1["max_tokens"], 5);
    }
}

#[test]
fn the_tokenizer_is_part_of_the_digest() {
    let digest = |kind| {
        let scene = Scene::new("random", 2).tokenizer(kind);
        crate::schedule::Schedules::new(&scene.workload, 1, &scene.resources).unwrap().digest()
    };
    assert_eq!(digest(Sample::Bytes), digest(Sample::Bytes));
    assert_ne!(digest(Sample::Bytes), digest(Sample::Plain));
}
