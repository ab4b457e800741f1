//! Where the prompts of a command come from, and how long answers are.

use std::collections::BTreeMap;

use isobench_schema::task::OptionValue;
use isobench_schema::tool::{Tool, ToolKind};
use isobench_schema::workload::Prompts;

use super::numbers::MOST_TOKENS;
use super::{Draft, fate, server};
use crate::defaults;

impl Draft<'_, '_> {
    /// Returns the name of the data set that prompts come from.
    pub(super) fn dataset(&self) -> String {
        if self.fitted.tool == Tool::BenchmarkPrefixCaching {
            return "prefix-caching".to_owned();
        }
        let fixed = match self.fitted.tool.kind() {
            ToolKind::OfflineLatency => true,
            ToolKind::OfflineThroughput => {
                let file = self.given("--dataset") || self.given("--dataset-path");
                // Without a file the throughput benchmark makes its own prompts, whatever name is given.
                !file && self.given("--input-len")
            }
            ToolKind::Serving | ToolKind::Server => self.fitted.tool == Tool::SglangBenchOneBatchServer,
        };
        if fixed {
            return "random".to_owned();
        }
        self.value("--dataset-name").unwrap_or("sharegpt").to_owned()
    }

    /// Returns the prompts and the length of answers; 0 where each prompt has its own.
    pub(super) fn prompts(&mut self) -> Option<(Prompts, u32)> {
        let dataset = self.dataset();
        let [input, output] = match dataset.as_str() {
            "sonnet" => ["--sonnet-input-len", "--sonnet-output-len"],
            "sharegpt" => ["", "--sharegpt-output-len"],
            "random" if self.fitted.options.get("--random-input-len").is_some() && !self.given("--input-len") => {
                ["--random-input-len", "--random-output-len"]
            }
            "hf" => ["", "--hf-output-len"],
            "custom" => ["", "--custom-output-len"],
            _ => ["--input-len", "--output-len"],
        };
        let input_tokens = self.one_shape(input, MOST_TOKENS).ok()?;
        let output_tokens = match self.one_shape(output, MOST_TOKENS).ok()? {
            // An offline benchmark gives one length to all answers if it is told to, and a server's client may too.
            None => self.one_shape("--output-len", MOST_TOKENS).ok()?.or(self.server_default(&dataset)).unwrap_or(0),
            Some(length) => length,
        };
        if let (true, Some(input_tokens), Some(vocabulary_size)) =
            (dataset == "random" && self.exact(), input_tokens, self.vocabulary_size)
        {
            let first_id = defaults::FIRST_TOKEN_ID.min(vocabulary_size / 2);
            return Some((Prompts::TokenIds { input_tokens, vocabulary_size, first_id }, output_tokens));
        }
        let mut options = BTreeMap::new();
        for option in &self.fitted.client {
            if fate::is_of_prompts(&option.name) {
                options.insert(bare(&option.name), server::value(option));
            }
        }
        for (name, length) in [(input, input_tokens), (output, Some(output_tokens).filter(|length| *length > 0))] {
            if let (false, Some(length)) = (name.is_empty(), length) {
                options.insert(bare(name), OptionValue::Whole(i64::from(length)));
            }
        }
        if let ("random", Some(ratio)) = (dataset.as_str(), self.rate("--random-range-ratio")) {
            options.entry("random-range-ratio".to_owned()).or_insert(OptionValue::Number(ratio));
        }
        Some((Prompts::Dataset { name: dataset, options }, output_tokens))
    }

    /// Answers to random prompts have this length in SGLang's benchmark of one batch unless it is told another.
    fn server_default(&self, dataset: &str) -> Option<u32> {
        /// `BenchArgs.output_len` of `sglang.bench_one_batch`.
        const ONE_BATCH: u32 = 16;
        (dataset == "random" && self.fitted.tool == Tool::SglangBenchOneBatch).then_some(ONE_BATCH)
    }

    /// Returns whether all random prompts have the same length.
    fn exact(&mut self) -> bool {
        let prefix = ["--random-prefix-len", "--prefix-len"]
            .iter()
            .any(|name| self.count(name, 0, MOST_TOKENS).is_some_and(|length| length > 0));
        let ratio = self.rate("--random-range-ratio");
        let fixed = matches!(self.fitted.tool.kind(), ToolKind::OfflineLatency)
            || self.fitted.tool == Tool::SglangBenchOneBatchServer
            // Before ratios there was one length only.
            || self.fitted.options.get("--random-range-ratio").is_none();
        let same = match (ratio, self.exact_ratio) {
            (Some(ratio), Some(exact)) => (ratio - exact).abs() < f64::EPSILON,
            // The throughput benchmark has no ratio unless it is given one.
            (None, _) => self.fitted.tool.kind() == ToolKind::OfflineThroughput,
            (Some(_), None) => false,
        };
        !prefix && (fixed || same)
    }
}

/// Returns an option's name without its dashes.
pub(super) fn bare(name: &str) -> String {
    name.trim_start_matches('-').to_owned()
}
