//! What else the published data show.

use isobench_schema::legacy::HardClass;

use super::human::{GAIN_PCT, Gain, gains};
use super::rows::{Primary, PublishedUnit, ResultRow};
use super::{Data, percent, ttft};
use crate::legacy::rules::{AgentRun, hard_class, is_hard_success};

pub(super) fn remarks(data: &Data) -> Vec<String> {
    let mut remarks = Vec::new();
    let gains = gains(data);
    remarks.extend(null_agent(&gains));
    remarks.extend(no_gain(&gains));
    remarks.extend(ratios(&data.results));
    remarks.extend(latency_throughputs(data));
    remarks.extend(rounding(data));
    remarks
}

fn projects<'d>(gains: &[Gain<'d>]) -> Vec<&'d str> {
    let mut projects: Vec<&str> = gains.iter().map(|gain| gain.project).collect();
    projects.dedup();
    projects
}

/// Returns the difference to the human side in percent of an agent that changes nothing.
fn null_difference(gain: &Gain<'_>) -> f64 {
    let human = gain.human_pct / 100.0;
    // Published gains are shares of the baseline's value; the classes are of shares of the human's.
    let ratio = if gain.metric == "throughput" { 1.0 / (1.0 + human) - 1.0 } else { 1.0 - 1.0 / (1.0 - human) };
    100.0 * ratio
}

/// An agent that changes nothing measures as the baseline does.
fn null_agent(gains: &[Gain<'_>]) -> Option<String> {
    let line = |project: &str| {
        let of: Vec<&Gain<'_>> = gains.iter().filter(|gain| gain.project == project).collect();
        let class = |gain: &&&Gain<'_>| hard_class(Some(null_difference(gain)), GAIN_PCT, AgentRun::Ran);
        let hits = of.iter().filter(|gain| is_hard_success(class(gain))).count();
        let beats = of.iter().filter(|gain| class(gain) == HardClass::Beats).count();
        format!("{hits} of {} in {project} ({:.0} %), {beats} of them as `beats`", of.len(), percent(hits, of.len()))
    };
    let lines: Vec<String> = projects(gains).into_iter().map(line).collect();
    (!lines.is_empty()).then(|| {
        format!(
            "An agent that changes nothing would measure as the baseline does. By `threshold:5%` it would be a hard success \
             at {}, among the commits whose human side was compared with its baseline.",
            lines.join(", and at ")
        )
    })
}

fn no_gain(gains: &[Gain<'_>]) -> Option<String> {
    let line = |project: &str| {
        let of: Vec<&Gain<'_>> = gains.iter().filter(|gain| gain.project == project).collect();
        let none = of.iter().filter(|gain| gain.human_pct <= GAIN_PCT).count();
        format!("{none} of {} in {project}", of.len())
    };
    let lines: Vec<String> = projects(gains).into_iter().map(line).collect();
    (!lines.is_empty()).then(|| {
        format!(
            "At {} the human change itself isn't better than its baseline by more than 5 %: there is nothing to beat.",
            lines.join(" and ")
        )
    })
}

fn ratios(results: &[ResultRow]) -> Option<String> {
    let rows: Vec<&ResultRow> = results.iter().filter(|row| row.unit == PublishedUnit::Ratio).collect();
    let mut agents: Vec<&str> = rows.iter().map(|row| row.agent.as_str()).collect();
    agents.sort_unstable();
    agents.dedup();
    let worse = rows.iter().filter(|row| row.agent_vs_human_pct.is_some_and(|value| value < 0.0)).count();
    (!rows.is_empty()).then(|| {
        format!(
            "{} rows, of {}, were published as a hundred times the ratio in columns of differences in percent: {worse} of \
             them, printed as some 90 to 99, are losses. The tables here take the corrected differences.",
            rows.len(),
            agents.join(", ")
        )
    })
}

/// The latency scripts print no throughput.
fn latency_throughputs(data: &Data) -> Option<String> {
    let is_latency = |row: &&ResultRow| {
        row.primary == Primary::Throughput
            && data.kinds.get(&(row.project.clone(), row.commit.clone())).is_some_and(|kind| kind == "latency")
    };
    let mut commits: Vec<&str> = data.results.iter().filter(is_latency).map(|row| row.commit.as_str()).collect();
    commits.sort_unstable();
    commits.dedup();
    let results = data.results.iter().filter(is_latency).count();
    (!commits.is_empty()).then(|| {
        let named: Vec<String> = commits.iter().map(|commit| format!("`{commit}`")).collect();
        format!(
            "{results} results of {} tasks ({}) are judged by a throughput, though the task's command measures a latency and \
             prints none. It can only be the engine's own log line, which counts whole prompts in ten seconds (multiples of \
             51.2 tokens/s at 512 tokens a prompt): hence steps such as +50 %, −50 % and +25 %.",
            commits.len(),
            named.join(", ")
        )
    })
}

/// The same differences in two files, one of them from rounded times.
fn rounding(data: &Data) -> Option<String> {
    let (mut compared, mut within, mut beyond) = (0_usize, 0_usize, Vec::new());
    for row in &data.ttft {
        let delta = data.deltas.iter().find(|delta| delta.commit == row.commit && delta.metric == "ttft");
        let (Some(baseline), Some(human), Some(delta)) = (row.baseline_ms, row.human_ms, delta) else { continue };
        let agent = delta.agents_pct.iter().find(|(name, _)| name == "claude_code").and_then(|(_, value)| *value);
        let pairs = [(Some(human), delta.human_pct), (row.agent_ms, agent)];
        for (time, percent) in pairs.into_iter().filter_map(|(time, percent)| time.zip(percent)) {
            compared += 1;
            if ttft::is_within_rounding(baseline, time, percent) {
                within += 1;
            } else {
                beyond.push(format!("`{}`", row.commit));
            }
        }
    }
    let others = if beyond.is_empty() { String::new() } else { format!("; not those of {}", beyond.join(", ")) };
    (compared > 0).then(|| {
        format!(
            "{within} of {compared} differences of times to the first token that two of the files give agree as far as the \
             rounding of the times to a tenth of a millisecond allows{others}."
        )
    })
}
