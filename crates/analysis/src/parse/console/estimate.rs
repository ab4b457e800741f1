//! Reads the progress bar of vLLM's `LLM.generate`, which says how fast it went, if nothing else does.

use std::collections::BTreeMap;

use isobench_schema::reading::{MetricValue, ToolFamily};

use super::found::Found;
use super::line::Line;
use super::template::{self, Template};
use super::value::Value;
use crate::parse::binding::VersionRange;

/// What the bar begins with.
const CAPTION: &str = "Processed prompts: ";

/// What stands in its brackets after the time.
const RATES: &[(Template, VersionRange)] = &[
    (
        Template::new(
            "{request_throughput_est}it/s, est. speed input: {input_throughput_est} toks/s, output: \
             {output_throughput_est} toks/s]",
        ),
        VersionRange::from("v0.5.0.post1"),
    ),
    (
        Template::new("{request_throughput_est}it/s, Generation Speed: {output_throughput_est} toks/s]"),
        VersionRange::between("v0.4.3", "v0.5.0"),
    ),
    // Below one prompt in a second, the bar has the seconds for each.
    (
        Template::new(
            "{seconds}s/it, est. speed input: {input_throughput_est} toks/s, output: {output_throughput_est} toks/s]",
        ),
        VersionRange::from("v0.5.0.post1"),
    ),
    (
        Template::new("{seconds}s/it, Generation Speed: {output_throughput_est} toks/s]"),
        VersionRange::between("v0.4.3", "v0.5.0"),
    ),
];

/// Returns what a bar says that has come to its end. One that hasn't says only how fast it went so far.
pub(super) fn read(line: &Line<'_>) -> Option<Found> {
    let (_, bar) = line.text.split_once(CAPTION)?;
    let (_, bar) = bar.split_once("| ")?;
    let (counts, bar) = bar.split_once(" [")?;
    let (done, of) = counts.split_once('/')?;
    if done != of || done.parse::<u64>().ok()? == 0 {
        return None;
    }
    let (_, rates) = bar.split_once(", ")?;
    let rates = rates.get(..=rates.find(']')?)?.trim_start();
    let (filled, versions) = RATES.iter().find_map(|(template, versions)| {
        let filled = template::fill(template, rates, true).filter(|filled| filled.is_whole)?;
        Some((filled, *versions))
    })?;
    let mut metrics = BTreeMap::new();
    for (name, value) in filled.values.iter().filter(|(name, _)| *name != "seconds") {
        match value {
            Value::Number(number) => metrics.insert((*name).to_owned(), MetricValue::Number(*number)),
            Value::Percent(_) | Value::NotSet | Value::NotANumber(_) => return None,
        };
    }
    Some(Found {
        format: "vllm-generate-bar",
        tool: ToolFamily::VllmGenerate,
        versions,
        printed_by: versions,
        lines: metrics.keys().map(|name| (name.clone(), line.number)).collect(),
        metrics,
        problem: None,
        asked: None,
        line: line.number,
        is_whole: true,
    })
}
