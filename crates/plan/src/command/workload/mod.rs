//! From a fitted command to a typed workload and the server's options, with what became of each option.

mod fate;
mod numbers;
mod prompts;
mod server;

use std::collections::BTreeMap;

use isobench_schema::assessment::{Finding, Severity};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::environment::EngineKind;
use isobench_schema::task::OptionValue;
use isobench_schema::tool::{Tool, ToolKind};
use isobench_schema::workload::{Api, Arrival, Workload, WorkloadKind};
use serde_json::Value;

use self::numbers::MOST_REQUESTS;
use super::fit::{deviation, finding};
use super::{Fate, Fitted};
use crate::defaults;
use crate::knowledge::Clients;
use crate::knowledge::clients::{IgnoreEos, OwnApi, Sampling};
use crate::lint::ids;

/// What a fitted command asks of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Derived {
    /// The load; absent if a finding says what of it can't be had.
    pub workload: Option<Workload>,
    /// The model.
    pub model: Option<String>,
    /// The server's options, without dashes.
    pub server: BTreeMap<String, OptionValue>,
    /// Variables for the server.
    pub variables: BTreeMap<String, String>,
    /// What became of each option that the commands give.
    pub fates: Vec<Fate>,
    /// What differs from the command, each with its reason.
    pub repairs: Vec<Deviation>,
    /// What isobench's own client can't do, and what may be meant otherwise.
    pub findings: Vec<Finding>,
}

/// Derives the workload and the server's options.
///
/// Random prompts of one length are token ids if the vocabulary's size is known, so that their lengths are exact.
pub fn derive(fitted: &Fitted<'_>, clients: &Clients, vocabulary_size: Option<u32>) -> Derived {
    let mut draft = Draft {
        fitted,
        sampling: clients.sampling(fitted.tool, &fitted.moment),
        exact_ratio: clients.exact_ratio(fitted.tool, &fitted.moment),
        vocabulary_size,
        repairs: Vec::new(),
        findings: Vec::new(),
    };
    let workload = draft.workload();
    let server = draft.server_options();
    let fates = draft.fates();
    let errors = draft.findings.iter().any(|found| found.severity == Severity::Error);
    Derived {
        workload: workload.filter(|_| !errors),
        model: fitted.model().map(ToOwned::to_owned),
        server,
        variables: fitted.variables.clone(),
        fates,
        repairs: draft.repairs,
        findings: draft.findings,
    }
}

/// An option asks for several workloads at once, as a finding says.
struct SeveralShapes;

struct Draft<'f, 'k> {
    fitted: &'f Fitted<'k>,
    sampling: Option<&'f Sampling>,
    exact_ratio: Option<f64>,
    vocabulary_size: Option<u32>,
    repairs: Vec<Deviation>,
    findings: Vec<Finding>,
}

impl Draft<'_, '_> {
    fn workload(&mut self) -> Option<Workload> {
        let engine = self.fitted.tool.engine();
        let kind = match self.fitted.tool.kind() {
            ToolKind::Serving => WorkloadKind::Serving,
            ToolKind::OfflineThroughput => WorkloadKind::Throughput,
            ToolKind::OfflineLatency => WorkloadKind::Latency,
            ToolKind::Server => return None,
        };
        self.note_offline();
        self.check_lengths();
        let (prompts, output_tokens) = self.prompts()?;
        let api = self.api();
        let (requests, warm_up_requests) = self.requests()?;
        let arrival = self.arrival(requests)?;
        Some(Workload {
            kind,
            api,
            requests,
            ignore_eos: self.ignore_eos(),
            temperature: self.temperature(),
            prompts,
            output_tokens,
            arrival,
            max_in_flight: None,
            warm_up_requests,
            probes: defaults::PROBES,
            counter: defaults::counter(engine),
            extra_body: self.body(),
            script: None,
        })
    }

    /// Returns whether an option is given.
    fn given(&self, name: &str) -> bool {
        self.fitted.client.iter().any(|option| option.name == name)
    }

    /// Returns an option's values as given; none if it isn't.
    fn values(&self, name: &str) -> Option<&[String]> {
        self.fitted.client.iter().rev().find(|option| option.name == name).map(|option| option.values.as_slice())
    }

    /// Returns an option's only value: as given, or else the program's default.
    fn value(&self, name: &str) -> Option<&str> {
        match self.values(name) {
            Some(values) => values.first().map(String::as_str),
            None => self.fitted.options.get(name)?.default.as_deref(),
        }
    }

    fn error(&mut self, rule: &str, subject: &str, message: String, fix: &str) {
        let found = finding(rule, subject, message, fix.to_owned());
        if !self.findings.contains(&found) {
            self.findings.push(found);
        }
    }

    fn repair(&mut self, kind: DeviationKind, subject: &str, asked_and_run: (&str, &str), reason: &str) {
        self.repairs.push(deviation(kind, subject, asked_and_run, reason));
    }

    fn note_offline(&mut self) {
        let tool = self.fitted.tool;
        if tool.kind() == ToolKind::Serving {
            return;
        }
        let asked = format!("`{tool}`, which holds the engine itself");
        let run = "the same engine behind its server, loaded by isobench's own client";
        let reason = "an offline benchmark runs through the server, since what measures must lie outside of what is measured; what the server adds is the same in every arm";
        self.repair(DeviationKind::OfflineThroughServer, "workload", (&asked, run), reason);
    }

    /// Requests of the window, and before it.
    fn requests(&mut self) -> Option<(u32, u32)> {
        let tool = self.fitted.tool;
        let found = match tool {
            Tool::BenchmarkLatency | Tool::VllmBenchLatency => {
                let batch = self.count("--batch-size", 1, MOST_REQUESTS)?;
                let iterations = self.count("--num-iters", 1, MOST_REQUESTS)?;
                // Before it was an option, the batch ran once before the measured iterations.
                let warm_up = self.count("--num-iters-warmup", 0, MOST_REQUESTS).unwrap_or(1);
                (
                    self.product([("--batch-size", batch), ("--num-iters", iterations)])?,
                    self.product([("--batch-size", batch), ("--num-iters-warmup", warm_up)])?,
                )
            }
            Tool::SglangBenchOneBatch | Tool::SglangBenchOneBatchServer => {
                let batch = self.one_shape("--batch-size", MOST_REQUESTS).ok()?.unwrap_or(1);
                (batch, if self.given("--skip-warmup") { 0 } else { batch })
            }
            Tool::BenchmarkPrefixCaching => {
                let prompts = self.count("--num-prompts", 1, MOST_REQUESTS).unwrap_or(1);
                let repeated = self.count("--repeat-count", 1, MOST_REQUESTS).unwrap_or(1);
                let all = self.product([("--num-prompts", prompts), ("--repeat-count", repeated)])?;
                // The program sends everything once before it measures.
                (all, all)
            }
            Tool::BenchmarkServing
            | Tool::BenchmarkThroughput
            | Tool::VllmBenchServe
            | Tool::VllmBenchThroughput
            | Tool::SglangBenchServing
            | Tool::SglangBenchOfflineThroughput => {
                let none = tool == Tool::SglangBenchOfflineThroughput && self.given("--skip-warmup");
                let warm_up = self.count("--num-warmups", 0, MOST_REQUESTS);
                let warm_up = warm_up.or_else(|| self.count("--warmup-requests", 0, MOST_REQUESTS));
                let warm_up = if none { 0 } else { warm_up.unwrap_or(defaults::WARM_UP_REQUESTS) };
                (self.count("--num-prompts", 1, MOST_REQUESTS)?, warm_up)
            }
            Tool::VllmServe | Tool::SglangLaunchServer => return None,
        };
        if found.0 == 0 {
            self.error(
                ids::VALUE_REFUSED,
                "workload.requests",
                "the command sends no request".to_owned(),
                "ask for at least one",
            );
            return None;
        }
        Some(found)
    }

    /// Returns the only value of an option that takes several, each of which is a workload of its own.
    fn one_shape(&mut self, name: &str, most: u32) -> Result<Option<u32>, SeveralShapes> {
        if let Some(several @ [_, _, ..]) = self.values(name) {
            let message = format!("`{name} {}` asks for several workloads", several.join(" "));
            self.error(ids::FEATURE_CONFLICT, name, message, "make a task of each");
            return Err(SeveralShapes);
        }
        Ok(self.count(name, 1, most))
    }

    fn arrival(&mut self, requests: u32) -> Option<Arrival> {
        match self.fitted.tool.kind() {
            ToolKind::OfflineThroughput => return Some(Arrival::AllAtOnce),
            ToolKind::OfflineLatency => {
                let concurrency = self.count("--batch-size", 1, MOST_REQUESTS).unwrap_or(1);
                return Some(Arrival::closed(concurrency));
            }
            ToolKind::Serving | ToolKind::Server => {}
        }
        if self.fitted.tool == Tool::SglangBenchOneBatchServer {
            return Some(Arrival::closed(requests));
        }
        // The programs keep no bound where it is 0.
        let concurrency = self.count("--max-concurrency", 0, MOST_REQUESTS).filter(|concurrency| *concurrency > 0);
        let burstiness =
            self.number("--burstiness", "a finite number above 0", |shape| shape.is_finite() && shape > 0.0);
        let rate = self.rate("--request-rate").filter(|rate| *rate != f64::INFINITY);
        match (rate, concurrency) {
            (None, None) => Some(Arrival::AllAtOnce),
            (None, Some(concurrency)) => Some(Arrival::closed(concurrency)),
            (Some(rate_per_s), None) if rate_per_s > 0.0 => {
                Some(Arrival::Open { rate_per_s, burstiness: burstiness.unwrap_or(defaults::BURSTINESS) })
            }
            (Some(rate), None) => {
                let message = format!("`--request-rate {rate}` is no rate at which requests could arrive");
                self.error(ids::VALUE_REFUSED, "--request-rate", message, "give a rate above 0, or `inf`");
                None
            }
            (Some(rate), Some(concurrency)) => {
                let message = format!(
                    "`--request-rate {rate}` and `--max-concurrency {concurrency}` together: isobench's own client keeps \
                     either a rate or a number of requests under way"
                );
                self.error(ids::FEATURE_CONFLICT, "--request-rate", message, "leave one of the two out");
                None
            }
        }
    }

    fn api(&mut self) -> Api {
        let backend = self.value("--backend").or_else(|| self.value("--endpoint-type")).unwrap_or_default().to_owned();
        let endpoint = self.value("--endpoint").unwrap_or_default().to_owned();
        let engine = self.fitted.tool.engine();
        let own_name = match engine {
            EngineKind::Sglang => ["sglang", "sglang-native", "srt", "engine", "runtime", ""],
            EngineKind::Vllm | EngineKind::Generic => ["vllm", "", "", "", "", ""],
        };
        let open = ["openai", "openai-comp", "sglang-oai", "vllm", "vllm-chat", "openai-chat", "sglang-oai-chat"];
        if !own_name.contains(&backend.as_str()) && !open.contains(&backend.as_str()) {
            let message = format!(
                "the backend `{backend}` isn't this engine's, or no interface that isobench's own client speaks"
            );
            self.error(ids::FEATURE_CONFLICT, "--backend", message, "name the engine's own backend");
        }
        let chat = backend.contains("chat") || endpoint.ends_with("/chat/completions");
        let own = self.sampling.and_then(|sampling| sampling.api_of).filter(|_| own_name.contains(&backend.as_str()));
        if let Some(own) = own {
            let asked = match own {
                OwnApi::Demo => "`/generate` of the demonstration server",
                OwnApi::Native => "the engine's own `/generate`",
            };
            let reason = "isobench's own client speaks OpenAI's interface, which the same engine serves";
            self.repair(DeviationKind::OptionTranslated, "client.backend", (asked, "`/v1/completions`"), reason);
        }
        if chat { Api::Chat } else { Api::Completions }
    }

    fn ignore_eos(&self) -> bool {
        let asked = self.given("--ignore-eos");
        match self.sampling.map(|sampling| sampling.ignore_eos) {
            Some(IgnoreEos::Always) => true,
            Some(IgnoreEos::Never) => false,
            Some(IgnoreEos::IfAsked) | None => asked,
            Some(IgnoreEos::RandomOrAsked) => asked || self.dataset().starts_with("random"),
            Some(IgnoreEos::UnlessRefused) => !self.given("--disable-ignore-eos"),
        }
    }

    fn temperature(&mut self) -> f64 {
        let usable = |given: f64| given.is_finite() && given >= 0.0;
        if let Some(given) = self.number("--temperature", "a finite number from 0", usable) {
            return given;
        }
        if self.given("--use-beam-search") {
            return 0.0;
        }
        if let Some(sent) = self.sampling.and_then(|sampling| sampling.temperature) {
            return sent;
        }
        let reason = "the program sends no temperature, so that the model's own settings count; a fixed one is the same for every arm";
        self.repair(DeviationKind::OptionAdded, "workload.temperature", ("the model's own", "1"), reason);
        1.0
    }

    /// Fields of each request's body.
    fn body(&mut self) -> BTreeMap<String, Value> {
        let mut body = BTreeMap::new();
        let fitted = self.fitted;
        for option in &fitted.client {
            let Some(field) = fate::body_field(&option.name) else { continue };
            let Some(text) = option.values.first() else {
                body.insert(field.to_owned(), Value::Bool(true));
                continue;
            };
            if !field.is_empty() {
                body.extend(self.field(field, option, text).map(|value| (field.to_owned(), value)));
                continue;
            }
            match serde_json::from_str(text) {
                Ok(Value::Object(fields)) => body.extend(fields),
                Ok(_) | Err(_) => self.unusable(&option.name, text, "a JSON object"),
            }
        }
        body
    }
}

#[cfg(test)]
mod tests;
