//! What a program demands beyond its parser's refusals: required options, files of data sets, lengths.

use isobench_schema::assessment::Finding;
use isobench_schema::deviation::DeviationKind;
use isobench_schema::environment::EngineKind;
use isobench_schema::tool::{Tool, ToolKind};

use super::repair::{shown, subject};
use super::{Fitter, SHAREGPT, finding, label, last};
use crate::command::options::Table;
use crate::knowledge::translations::Side;
use crate::lint::ids;

/// The file of sonnets in vLLM's repository.
const SONNETS: &str = "benchmarks/sonnet.txt";

/// Data that a program demands, with the value that can be given.
struct Missing {
    rule: &'static str,
    message: String,
    name: &'static str,
    value: Option<String>,
    reason: &'static str,
}

impl<'k> Fitter<'k, '_> {
    /// Finds what the benchmark program demands and isn't given, and adds what can be added.
    pub(super) fn meet_demands(&mut self) {
        let Some(client) = self.client.clone() else { return };
        self.meet_required(&client);
        self.keep_default_dataset(&client);
        if let Some(missing) = self.missing_data(&client) {
            self.demand((missing.rule, missing.message), missing.name, missing.value, missing.reason);
        }
    }

    /// Returns the data that the command lacks as it stands, before anything is repaired.
    pub(super) fn lack(&self) -> Option<Finding> {
        if self.named != self.fitted.tool {
            return None;
        }
        let Missing { rule, message, name, .. } = self.missing_data(self.client.as_ref()?)?;
        let mut found = finding(rule, name, message, "it is there after the other repairs".to_owned());
        found.repaired = true;
        Some(found)
    }

    /// Lists what was lacking and is there now, because of a repair of something else.
    pub(super) fn list_filled(&mut self, lack: Option<Finding>) {
        if let Some(lack) = lack.filter(|lack| self.fitted.findings.iter().all(|found| found.rule != lack.rule)) {
            self.fitted.findings.push(lack);
        }
    }

    /// Returns the data set or the lengths that the program demands and isn't given.
    fn missing_data(&self, client: &Table<'k>) -> Option<Missing> {
        match self.fitted.tool.kind() {
            ToolKind::Serving => self.missing_dataset(client),
            ToolKind::OfflineThroughput if self.fitted.tool != Tool::BenchmarkPrefixCaching => {
                self.missing_lengths(client)
            }
            ToolKind::OfflineThroughput | ToolKind::OfflineLatency | ToolKind::Server => None,
        }
    }

    fn has(&self, name: &str) -> bool {
        self.fitted.client.iter().any(|option| option.name == name)
    }

    /// Options without which the parser refuses everything.
    fn meet_required(&mut self, client: &Table<'k>) {
        for spec in client.specs().iter().filter(|spec| spec.required) {
            let Some(name) = spec.names.first() else { continue };
            if spec.names.iter().any(|name| self.has(name)) {
                continue;
            }
            let model = self.fitted.model().map(ToOwned::to_owned);
            let (value, reason) = match name.as_str() {
                "--model" | "--model-path" => (model, "it is the model that the server holds"),
                "--tokenizer" => (model, "the model's own tokenizer is meant, as later versions take it by themselves"),
                "--dataset" => (
                    Some(SHAREGPT.to_owned()),
                    "the program reads prompts in ShareGPT's form only, and its README names this public file",
                ),
                _ => (None, ""),
            };
            let tool = self.fitted.tool;
            let message = format!("`{tool}` at {} needs `{name}`, which isn't given", label(self.revision()));
            self.demand((ids::OPTION_MISSING, message), name, value, reason);
        }
    }

    /// A program that stands in for another one has another default data set, maybe: the one that was meant is named.
    fn keep_default_dataset(&mut self, client: &Table<'k>) {
        let mentioned = self.has("--dataset-name") || self.has("--dataset");
        if self.named == self.fitted.tool || mentioned || self.named.kind() != ToolKind::Serving {
            return;
        }
        let named = self.program(self.named).into_iter().flat_map(|program| &program.option);
        let meant = named
            .filter(|spec| spec.names.iter().any(|name| name == "--dataset-name"))
            .filter_map(|spec| spec.default.clone())
            .next_back();
        let here = client.get("--dataset-name").and_then(|spec| spec.default.clone());
        let Some(meant) = meant.filter(|meant| here.as_ref() != Some(meant)) else { return };
        let message = format!(
            "`{}` takes the data set `{meant}` where none is named, and `{}` takes another one",
            self.named, self.fitted.tool
        );
        let reason = "it is the data set of the program that the command names";
        self.demand((ids::OPTION_MISSING, message), "--dataset-name", Some(meant), reason);
    }

    /// A data set that is a file needs the file.
    fn missing_dataset(&self, client: &Table<'k>) -> Option<Missing> {
        // SGLang's client fetches ShareGPT by itself.
        if self.fitted.tool.engine() == EngineKind::Sglang || self.has("--dataset-path") || self.has("--dataset") {
            return None;
        }
        let spec = client.get("--dataset-name")?;
        let refused = |name: &str| self.fitted.refused.iter().any(|option| option.name == name);
        client.get("--dataset-path")?;
        if refused("--dataset-name") || refused("--dataset-path") {
            return None;
        }
        let (dataset, how) = match (last(&self.fitted.client, "--dataset-name"), &spec.default) {
            (Some(given), _) => (given.to_owned(), "is asked for"),
            (None, Some(default)) => (default.clone(), "is the program's default"),
            (None, None) => return None,
        };
        let (value, reason) = match dataset.as_str() {
            "sharegpt" => (Some(SHAREGPT), "the engine's own README and tests name this public file for it"),
            "sonnet" => (Some(SONNETS), "the file is in the repository"),
            "burstgpt" | "hf" | "custom" | "blazedit" => (None, ""),
            _ => return None,
        };
        let message = format!("the data set `{dataset}` {how}, and no file is named for it with `--dataset-path`");
        Some(Missing {
            rule: ids::DATASET_FILE_MISSING,
            message,
            name: "--dataset-path",
            value: value.map(ToOwned::to_owned),
            reason,
        })
    }

    /// A throughput benchmark needs a file or lengths.
    fn missing_lengths(&self, client: &Table<'k>) -> Option<Missing> {
        if self.has("--dataset") || self.has("--dataset-path") || self.fitted.tool.engine() == EngineKind::Sglang {
            return None;
        }
        let names_sets = client.get("--dataset-path").is_some();
        let name = if names_sets { "--dataset-path" } else { "--dataset" };
        if let Some(dataset @ ("sharegpt" | "sonnet")) = last(&self.fitted.client, "--dataset-name") {
            let message = format!("the data set `{dataset}` is asked for, and no file is named for it with `{name}`");
            let (file, reason) = if dataset == "sharegpt" {
                (SHAREGPT, "the engine's own README names this public file for it")
            } else {
                (SONNETS, "the file is in the repository")
            };
            return Some(Missing {
                rule: ids::DATASET_FILE_MISSING,
                message,
                name,
                value: Some(file.to_owned()),
                reason,
            });
        }
        client.get("--input-len")?;
        let length = |name: &str| self.has(name) || client.get(name).is_some_and(|spec| spec.default.is_some());
        // Since the program knows data sets by name, random answers have a default length.
        if length("--input-len") && (names_sets || length("--output-len")) {
            return None;
        }
        let tool = self.fitted.tool;
        if self.has("--input-len") || self.has("--output-len") {
            let name = if self.has("--input-len") { "--output-len" } else { "--input-len" };
            let message = format!("`{tool}` needs `{name}` where no data set is given");
            return Some(Missing { rule: ids::LENGTHS_MISSING, message, name, value: None, reason: "" });
        }
        let at = label(self.revision());
        let message =
            format!("`{tool}` at {at} needs a data set or the lengths of prompts and answers, and has neither");
        let reason = "the program's only data set is a file in ShareGPT's form, its README names this public file, and \
                      later versions take ShareGPT where no data set is named";
        Some(Missing { rule: ids::LENGTHS_MISSING, message, name, value: Some(SHAREGPT.to_owned()), reason })
    }

    /// Notes a demand, and adds the option if its value is known.
    fn demand(&mut self, (rule, message): (&str, String), name: &str, value: Option<String>, reason: &str) {
        let made = value.and_then(|value| self.client.as_ref()?.make(name, vec![value]).ok());
        let fix = match &made {
            Some(option) => format!("add `{}`", shown(name, &option.values)),
            None => format!("add `{name}` with the value that the commit was measured with"),
        };
        let mut found = finding(rule, name, message, fix);
        if let Some(option) = made {
            found.repaired = true;
            let run = format!("`{}`", shown(name, &option.values));
            self.repair(DeviationKind::OptionAdded, &subject(Side::Client, name), ("nothing", &run), reason);
            self.fitted.client.push(option);
        }
        self.fitted.findings.push(found);
    }

    /// Guessing the next tokens from the prompt needs the longest n-gram that is looked for.
    pub(super) fn check_speculation(&mut self) {
        const NEEDED: &str = "--ngram-prompt-lookup-max";
        /// The length that the engine's own example and tests of it take.
        const LENGTH: &str = "4";
        let guesses = |side: Side| {
            let options = if side == Side::Client { &self.fitted.client } else { &self.fitted.server };
            last(options, "--speculative-model") == Some("[ngram]") && last(options, NEEDED).is_none()
        };
        let sides: Vec<Side> = [Side::Client, Side::Server].into_iter().filter(|side| guesses(*side)).collect();
        if sides.is_empty() {
            return;
        }
        let message =
            format!("`--speculative-model [ngram]` needs `{NEEDED}`, without which the engine fails at its start");
        let mut found = finding(ids::FEATURE_CONFLICT, NEEDED, message, format!("add `{NEEDED} {LENGTH}`"));
        // A program that doesn't take it can't be given it, but the server that stands in for it can, or has it already.
        found.repaired = last(&self.fitted.server, NEEDED).is_some();
        for side in sides {
            if let Some(Ok(made)) = self.table(side).map(|table| table.make(NEEDED, vec![LENGTH.to_owned()])) {
                found.repaired = true;
                self.options(side).push(made);
                let reason =
                    "the engine has no default for it; 4 is what its own example of this way of speculating takes";
                let run = format!("`{} {NEEDED} {LENGTH}`", self.tool(side));
                self.repair(DeviationKind::OptionAdded, &subject(side, NEEDED), ("nothing", &run), reason);
            }
        }
        self.fitted.findings.push(found);
    }
}
