//! What is checked of a load, in sentences for any page.

use std::cmp::Ordering;

use isobench_schema::failure::FailureClass;
use isobench_schema::load_checks::{
    Audit, AuditVerdict, Bounds, Flow, FlowState, FullLoop, Halves, LittlesLaw, RateBounds, SearchEnd, Spread,
    SteadyState, StepState, SweepBy, SweepReport, WarmUp,
};
use isobench_schema::load_result::LoadResult;
use isobench_schema::workload::Arrival;

use crate::number::{counted, percent, significant};
use crate::text::clean;
use crate::words::Tone;

/// Returns what the audit comes to, and its tone.
pub(crate) fn verdict(audit: &Audit) -> (&'static str, Tone) {
    match audit.verdict {
        AuditVerdict::Ok => ("good enough", Tone::Good),
        AuditVerdict::ClientBound => ("not good enough", Tone::Bad),
        AuditVerdict::Unproven => ("not shown to be good enough", Tone::Unsure),
    }
}

/// Returns what the client saw of itself, in a few lines. Broken bounds aren't among them.
pub(crate) fn audit_lines(audit: &Audit) -> Vec<String> {
    let spread = |name: &str, found: Spread| {
        let [p50, p99, max] = [found.p50, found.p99, found.max].map(small);
        format!("{name} p50 {p50} p99 {p99} max {max} ms")
    };
    let mut lines: Vec<String> = audit.unknown.iter().map(|unknown| format!("? {}", clean(unknown))).collect();
    let stamped = audit.stamped_share.map(|share| format!("{} of the reads have the kernel's stamp", percent(share)));
    match (audit.lag, stamped) {
        (Some(lag), Some(stamped)) => lines.push(format!("{}; {stamped}", spread("lag", lag.lag_ms))),
        (Some(lag), None) => lines.push(spread("lag", lag.lag_ms)),
        (None, stamped) => lines.extend(stamped),
    }
    lines.extend(audit.lateness_ms.map(|late| spread("released late by", late)));
    if let Some(turnaround) = audit.turnaround_ms {
        let idle = audit.idle_share.map(|share| format!("; places were empty for {} of their time", percent(share)));
        lines.push(spread("from an answer to the next request", turnaround) + &idle.unwrap_or_default());
    }
    lines.extend(audit.ttft_bias.map(|bias| {
        let (mean, p99) = (change(bias.mean), change(bias.p99));
        format!("the client's own delay changes the TTFT by {mean} in the mean, by {p99} in the p99")
    }));
    if let Some(pacing) = audit.pacing {
        let asked = pacing.asked_per_s.map(|rate| format!("{} req/s asked, ", significant(rate))).unwrap_or_default();
        let (drawn, sent) = (significant(pacing.drawn_per_s), significant(pacing.sent_per_s));
        lines.push(format!("{asked}{drawn} drawn, {sent} sent ({})", change(pacing.rate_error)));
    }
    let mut parts = Vec::new();
    parts.extend(audit.busy_share.map(|share| format!("busiest thread busy {}", percent(share))));
    parts.extend(audit.waited_share.map(|share| format!("waited for a processor {}", percent(share))));
    parts
        .extend([counted(audit.workers, "worker"), counted(audit.connections, "connection") + " opened in the window"]);
    parts.extend((audit.reconnects > 0).then(|| counted(audit.reconnects, "reconnect")));
    parts.extend(audit.retransmits.map(|times| counted(times, "retransmit")));
    lines.push(parts.join(", "));
    lines
}

/// Returns milliseconds; those under a microsecond are only called that.
fn small(ms: f64) -> String {
    if ms > 0.0 && ms < 0.001 { "<0.001".to_owned() } else { significant(ms) }
}

/// Returns what was checked of the server and of the loop: a word for each check, and a sentence.
pub(crate) fn lines(result: &LoadResult) -> Vec<(&'static str, String)> {
    let is_behind = result.findings.iter().any(|finding| finding.class == FailureClass::OverSaturated);
    let mut lines = Vec::new();
    lines.extend(result.warm_up.map(|found| ("warm-up", warm_up(found))));
    lines.extend(result.full_loop.map(|found| ("loop", full_loop(found))));
    let bound = result
        .workload
        .max_in_flight
        .filter(|bound| result.metrics.get("max_concurrent_requests").is_some_and(|most| *most >= f64::from(*bound)));
    let bound = bound.map(|bound| format!(", with no more than {bound} let under way")).unwrap_or_default();
    lines.extend(result.flow.map(|found| ("server", flow(found, is_behind) + &bound)));
    let name = main_series(result);
    lines.extend(result.halves_change.map(|found| ("halves", halves(found, name))));
    lines.extend(result.littles_law.and_then(little).map(|text| ("law", text)));
    lines
}

fn warm_up(found: WarmUp) -> String {
    let state = match found.state {
        SteadyState::Steady => "steady",
        SteadyState::NotYet => "not steady when it ended",
        SteadyState::GaveUp => "given up: it never looked steady",
    };
    let start = found.start_slices.filter(|start| *start > 0);
    let start = start.map(|start| format!(", the first {start} of them a start")).unwrap_or_default();
    format!("{state} after {}{start}", counted(found.slices, "slice"))
}

fn full_loop(found: FullLoop) -> String {
    match found {
        FullLoop::NeverFull { most, concurrency } => {
            format!("never full: at most {most} of {concurrency} were under way")
        }
        FullLoop::Full { from_ns, to_ns, share, whole, filled, requests, output_tokens, .. } => {
            let seconds = std::time::Duration::from_nanos(to_ns.saturating_sub(from_ns)).as_secs_f64();
            let rate = |rate: RateBounds, unit: &str| {
                format!("{} {unit} {}", significant(rate.ended_per_s), between(rate.bounds))
            };
            let tokens = (output_tokens.bounds.high > 0.0).then(|| format!(", {}", rate(output_tokens, "tok/s")));
            format!(
                "full for {} s, {} of the window, and {} filled: {} within, {}{}",
                significant(seconds),
                percent(share),
                percent(filled),
                counted(whole, "request"),
                rate(requests, "req/s"),
                tokens.unwrap_or_default(),
            )
        }
    }
}

fn flow(found: Flow, is_behind: bool) -> String {
    let state = match (found.state, is_behind) {
        (FlowState::OverSaturated, _) | (_, true) => "didn't keep up",
        (FlowState::KeepsUp, false) => "nothing shows that it didn't keep up",
        (FlowState::TooFew, false) => "too few requests to say whether it kept up",
    };
    let share = found.share.map(|share| format!(" ({})", percent(share))).unwrap_or_default();
    format!("{state}: in the later half {} were due and {} ended{share}", found.due, found.ended)
}

/// Returns what the halves are compared in.
fn main_series(result: &LoadResult) -> &'static str {
    let has_tokens = result.metrics.contains_key("output_throughput");
    match &result.workload.arrival {
        Arrival::Closed { .. } if has_tokens => "output tok/s",
        Arrival::Closed { .. } => "req/s",
        Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Stages { .. }
        | Arrival::Bursts { .. }
        | Arrival::Trace { .. }
        | Arrival::AllAtOnce => "ms mean E2EL",
    }
}

fn halves(found: Halves, name: &str) -> String {
    match found {
        Halves::TooFew { slices, needed } => format!("too few slices to compare: {slices} of {needed}"),
        Halves::Compared { first, second, change: found, interval, .. } => format!(
            "{} then {} {name}: {} {}",
            significant(first),
            significant(second),
            change(found),
            between_changes(interval)
        ),
    }
}

/// Returns Little's law in a sentence; `None` where it couldn't be checked.
pub(crate) fn little(found: LittlesLaw) -> Option<String> {
    match found {
        LittlesLaw::TooFew => None,
        LittlesLaw::Checked { ratio, holds: true } => {
            Some(format!("rate times latency is {ratio:.3} of what was under way: Little's law holds"))
        }
        LittlesLaw::Checked { ratio, holds: false } => Some(format!(
            "rate times latency is {ratio:.3} of what was under way: this was no steady server (Little's law)"
        )),
    }
}

/// Returns a relative change with its sign.
pub(crate) fn change(value: f64) -> String {
    format!("{}{:.2} %", if value < 0.0 { "−" } else { "+" }, value.abs() * 100.0)
}

fn between(bounds: Bounds) -> String {
    format!("[{}, {}]", significant(bounds.low), significant(bounds.high))
}

fn between_changes(bounds: Bounds) -> String {
    format!("[{}, {}]", change(bounds.low), change(bounds.high))
}

/// Returns what was raised in a search, with its unit.
pub(crate) fn raised(by: SweepBy) -> &'static str {
    match by {
        SweepBy::Concurrency => "under way",
        SweepBy::Rate => "req/s",
    }
}

/// Returns a level without needless zeros.
pub(crate) fn level_name(level: f64) -> String {
    let text = significant(level);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Returns what a search found, in a few lines.
pub(crate) fn search_lines(found: &SweepReport) -> Vec<String> {
    let unit = raised(found.by);
    let level = |level: f64| format!("{} {unit}", level_name(level));
    let mut lines = Vec::new();
    lines.push(match (found.highest_sustained, found.lowest_not_sustained) {
        (Some(low), Some(high)) => format!("sustains {}, and not {}", level(low), level(high)),
        (Some(low), None) => match found.steps.iter().map(|step| step.level).reduce(f64::max) {
            Some(highest) if highest > low => {
                format!("sustains {}; higher ones up to {} were tried and say nothing", level(low), level_name(highest))
            }
            Some(_) | None => format!("sustains {}, the highest level that was tried", level(low)),
        },
        (None, Some(high)) if found.steps.iter().all(|step| step.level >= high) => {
            format!("doesn't sustain {}, the lowest level that was tried", level(high))
        }
        (None, Some(high)) => format!("doesn't sustain {}; lower ones were tried and say nothing", level(high)),
        (None, None) => "no level says whether it is sustained".to_owned(),
    });
    lines.extend(found.knee.map(|knee| match knee.low.total_cmp(&knee.high) {
        Ordering::Equal => {
            format!(
                "at {}, the lowest level that was tried, the throughput is within 5 % of its highest",
                level(knee.high)
            )
        }
        Ordering::Less | Ordering::Greater => {
            let low = level_name(knee.low);
            format!(
                "the knee is between {low} and {}: from there on the throughput is within 5 % of its highest",
                level(knee.high)
            )
        }
    }));
    let has_tokens = found.steps.iter().any(|step| step.output_tok_per_s.is_some());
    let peak_unit = if has_tokens { "tok/s" } else { "req/s" };
    lines.extend(found.peak_per_s.map(|peak| format!("highest throughput {} {peak_unit}", significant(peak))));
    let end = match found.end {
        SearchEnd::Given => "these are the levels that were given: nothing was searched",
        SearchEnd::Refined => "the search ended as fine as it was asked to be",
        SearchEnd::HighestLevel => "the search ended at the highest level allowed: the server saturates above it",
        SearchEnd::LowestLevel => "the search ended at the lowest level allowed",
        SearchEnd::MostSteps => "the search ended with the most steps allowed: more would narrow it",
        SearchEnd::ClientBound => "the search ended because the client became the bottleneck: more workers would go on",
        SearchEnd::TooFew => {
            "the search ended at a step with too few requests: give each step more (a rate some 90 of them)"
        }
        SearchEnd::Stopped => "the search was stopped before its end: the level that was under way doesn't count",
    };
    lines.push(format!("{end}; it is of one launch"));
    lines.push(
        "throughputs are of the stretch in which the load was whole, times of all of the window: a level's own page has the \
         window's throughput, which ramp and drain make lower"
            .to_owned(),
    );
    lines
}

/// Returns what a step shows, and its tone.
pub(crate) fn step(state: StepState) -> (&'static str, Tone) {
    match state {
        StepState::Sustained => ("sustained", Tone::Good),
        StepState::OverSaturated => ("over-saturated", Tone::Bad),
        StepState::ObjectiveMissed => ("objective missed", Tone::Bad),
        StepState::ClientBound => ("client-bound", Tone::Unsure),
        StepState::TooFew => ("too few requests", Tone::Unsure),
    }
}
