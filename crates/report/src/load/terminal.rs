//! The result of a load for a terminal: what speaks against it first, then the numbers and what they rest on.

use std::fmt::Write as _;

use isobench_schema::failure::FailureClass;
use isobench_schema::load_checks::{PairedMetric, SweepReport};
use isobench_schema::load_result::{LoadInterval, LoadResult, Paired, Validity};
use isobench_schema::workload::Arrival;

use super::rows::{LATENCIES, LatencyName, is_shown, latency_name, statistic_order};
use super::{against, checks, sent, server as says};
use crate::number::{counted, duration, percent, significant, whole};
use crate::terminal::Style;
use crate::terminal::table::{Cell, Column, Layout, table};
use crate::text::clean;
use crate::words::Tone;

/// The most of the server's own metrics that are listed.
const LISTED: usize = 12;

/// Returns the result as text.
pub fn summary(result: &LoadResult, style: Style) -> String {
    let mut out = String::new();
    verdict(&mut out, result, style);
    facts(&mut out, result, style);
    latencies(&mut out, result, style);
    if result.too_few.iter().filter_map(|name| latency_name(name)).any(|name| is_shown(result, name.statistic)) {
        style.paragraph(&mut out, "  ", &format!("n too small: {}", too_few(result)));
    }
    if let Some(paired) = &result.paired {
        differences(&mut out, result, paired, style);
    }
    if let Some(found) = &result.sweep {
        search(&mut out, found, style);
    }
    rest(&mut out, result, style);
    server(&mut out, result, style);
    out
}

/// Returns why percentiles are left out, and how many requests each of them needs.
pub(crate) fn too_few(result: &LoadResult) -> String {
    let mut needed: Vec<(&String, u64)> =
        result.requests_needed.iter().map(|(percentile, count)| (percentile, *count)).collect();
    needed.retain(|(percentile, _)| is_shown(result, percentile));
    needed.sort_by_key(|(_, count)| *count);
    let needed: Vec<String> = needed.iter().map(|(percentile, count)| format!("{percentile} {count}")).collect();
    let needs = if needed.is_empty() { String::new() } else { format!("; requests needed: {}", needed.join(", ")) };
    format!("there were too few requests for this percentile to be an estimate{needs}")
}

/// Returns what a validity means for the reader, in one sentence.
pub(crate) fn meaning(validity: Validity) -> &'static str {
    match validity {
        Validity::Valid => "nothing speaks against these numbers",
        Validity::Interrupted => "the load was stopped before its end: these numbers are of what was sent until then",
        Validity::FailedRequests => "more requests failed than were allowed",
        Validity::Incomplete => "records are missing, or their times contradict each other",
        Validity::TokenCountMismatch => "the server's token counts aren't the client's",
        Validity::OutputLength => "answers aren't as long as asked",
        Validity::ClientBound => {
            "the client, not the server, was the bottleneck: these numbers don't describe the server"
        }
        Validity::WindowTooShort => "the window is too short",
        Validity::OverSaturated => "the arrivals weren't kept up with: latencies grow as long as the load lasts",
        Validity::Drift => "the numbers moved with time",
    }
}

fn verdict(out: &mut String, result: &LoadResult, style: Style) {
    if result.validity == Validity::Valid {
        return;
    }
    let word = if result.validity == Validity::ClientBound {
        "INVALID: CLIENT-BOUND".to_owned()
    } else {
        format!("INVALID: {}", result.validity)
    };
    let line = format!(" {word} ");
    out.push_str(&style.code("1;7", &style.paint(Tone::Bad, &line)));
    out.push('\n');
    style.paragraph(out, "  ", meaning(result.validity));
    if result.validity == Validity::ClientBound {
        for broken in result.audit.iter().flat_map(|audit| &audit.broken) {
            style.paragraph(out, "  ! ", &clean(&broken.message));
        }
    }
    out.push('\n');
}

/// Returns how requests arrived, for people.
pub(crate) fn arrival(arrival: &Arrival) -> String {
    match arrival {
        Arrival::Closed { concurrency, .. } => format!("closed loop of {concurrency}"),
        Arrival::Open { rate_per_s, burstiness } if (burstiness - 1.0).abs() < f64::EPSILON => {
            format!("Poisson, {} req/s", significant(*rate_per_s))
        }
        Arrival::Open { rate_per_s, burstiness } => {
            format!("gamma of shape {}, {} req/s", significant(*burstiness), significant(*rate_per_s))
        }
        Arrival::Constant { rate_per_s } => format!("constant, {} req/s", significant(*rate_per_s)),
        Arrival::Stages { stages, .. } => counted(u64::try_from(stages.len()).unwrap_or(u64::MAX), "stage"),
        Arrival::Bursts { size, period_s } => format!("bursts of {size} every {}", duration(*period_s)),
        Arrival::Trace { speed } => format!("a trace at {}-fold speed", significant(*speed)),
        Arrival::AllAtOnce => "all at once".to_owned(),
    }
}

/// Returns a number of a load, as people read it.
fn shown(result: &LoadResult, name: &str) -> String {
    result.metrics.get(name).map_or_else(|| "–".to_owned(), |value| count_or_number(name, *value))
}

/// Returns a number of a load: a count without digits after the point.
pub(crate) fn count_or_number(name: &str, value: f64) -> String {
    let is_count = matches!(name, "completed" | "failed" | "max_concurrent_requests") || name.starts_with("total_");
    if is_count && name != "total_token_throughput" && value < 1e9 { whole(value) } else { significant(value) }
}

fn facts(out: &mut String, result: &LoadResult, style: Style) {
    let urls: Vec<String> = result.urls.iter().map(|url| clean(url)).collect();
    style.heading(out, &format!("{} · {}", clean(&result.model), urls.join(" and ")));
    let line = format!(
        "{} · {} completed, {} failed in {} s · tokens counted by {}",
        arrival(&result.workload.arrival),
        shown(result, "completed"),
        shown(result, "failed"),
        shown(result, "duration"),
        result.counted_by,
    );
    style.paragraph(out, "  ", &line);
    style.paragraph(out, "  ", &sent::line(result));
    let interval =
        |name: &str| result.intervals.get(name).map(|found| format!(" {}", between(*found))).unwrap_or_default();
    let line = format!(
        "{} tok/s output{} · {} tok/s in all · {} req/s{} · at most {} in flight",
        shown(result, "output_throughput"),
        interval("output_throughput"),
        shown(result, "total_token_throughput"),
        shown(result, "request_throughput"),
        interval("request_throughput"),
        shown(result, "max_concurrent_requests"),
    );
    style.paragraph(out, "  ", &line);
    if let Some(goodput) = &result.goodput {
        let line = format!(
            "goodput {} req/s: {} of the requests keep `{}`",
            significant(goodput.request_goodput),
            percent(goodput.share),
            clean(&goodput.objective),
        );
        style.paragraph(out, "  ", &line);
    }
    out.push('\n');
}

fn between(interval: LoadInterval) -> String {
    format!("[{}, {}]", significant(interval.low), significant(interval.high))
}

/// Returns the statistics that any latency has, in order; the spread is left to other forms.
fn statistics(result: &LoadResult) -> Vec<String> {
    let names = result.metrics.keys().chain(&result.too_few).filter_map(|name| latency_name(name));
    let mut found: Vec<String> = names.map(|name| name.statistic.to_owned()).collect();
    // The median has two names.
    found.retain(|statistic| statistic != "std" && statistic != "p50" && is_shown(result, statistic));
    found.sort_by(|a, b| statistic_order(a).total_cmp(&statistic_order(b)));
    found.dedup();
    found
}

fn latencies(out: &mut String, result: &LoadResult, style: Style) {
    let statistics = statistics(result);
    let titles: Vec<String> =
        statistics.iter().map(|name| if name == "median" { "p50".to_owned() } else { name.clone() }).collect();
    let number = |title| Column { title, layout: Layout::Number };
    let mut columns = vec![Column { title: "in ms", layout: Layout::Word }];
    columns.extend(titles.iter().map(|title| number(title.as_str())));
    // An interval of which no latency has one needs no column.
    let has_interval = |statistic: &str| {
        let of = |(short, _): &(&str, _)| result.intervals.contains_key(&format!("{statistic}_{short}_ms"));
        LATENCIES.iter().any(of)
    };
    let intervals: Vec<(&str, &str)> = [("mean", "mean's interval"), ("p99", "p99's interval")]
        .into_iter()
        .filter(|(statistic, _)| has_interval(statistic) && is_shown(result, statistic))
        .collect();
    columns.extend(intervals.iter().map(|(_, title)| number(title)));
    let row = |short: &str| {
        let value = |statistic: &String| {
            let name = format!("{statistic}_{short}_ms");
            match result.metrics.get(&name) {
                Some(value) => Cell::plain(significant(*value)),
                None if result.too_few.contains(&name) => {
                    Cell { text: "n too small".to_owned(), tone: Some(Tone::Unsure) }
                }
                None => Cell::plain("–"),
            }
        };
        let interval = |statistic: &str| {
            let found = result.intervals.get(&format!("{statistic}_{short}_ms"));
            Cell::plain(found.map_or_else(|| "–".to_owned(), |found| between(*found)))
        };
        let mut cells = vec![Cell::plain(short.to_uppercase())];
        cells.extend(statistics.iter().map(value));
        cells.extend(intervals.iter().map(|(statistic, _)| interval(statistic)));
        cells
    };
    let has = |short: &str| {
        let place = LATENCIES.iter().position(|(known, _)| *known == short);
        let all = result.metrics.keys().chain(&result.too_few);
        all.filter_map(|name| latency_name(name)).any(|LatencyName { latency, .. }| Some(latency) == place)
    };
    // Content and chunks are shown only where they say something else than tokens do.
    let same = |a: &str, b: &str| {
        let of = |short: &str| result.metrics.get(&format!("mean_{short}_ms")).copied();
        matches!((of(a), of(b)), (Some(x), Some(y)) if (x - y).abs() <= 1e-9 * x.abs())
    };
    let is_told = |short: &str| !(short == "ttfc" && same("ttfc", "ttft") || short == "icl" && same("icl", "itl"));
    let rows: Vec<Vec<Cell>> =
        LATENCIES.iter().filter(|(short, _)| has(short) && is_told(short)).map(|(short, _)| row(short)).collect();
    if !rows.is_empty() {
        table(out, &columns, &rows, style);
    }
    if !intervals.is_empty() {
        style.paragraph(out, "  ", "an interval covers its number with 95 %, of this launch");
    }
    let waited = |name: &str| Some((result.metrics.get(name)?, result.from_send.get(name)?));
    if let Some((scheduled, sent)) = waited("mean_ttft_ms").filter(|(a, b)| (*a - *b).abs() > 0.01 * a.abs()) {
        let line = format!(
            "times run from the scheduled moment; from the send, mean TTFT is {} ms instead of {} ms",
            significant(*sent),
            significant(*scheduled)
        );
        style.paragraph(out, "  ", &line);
    }
}

fn differences(out: &mut String, result: &LoadResult, paired: &Paired, style: Style) {
    out.push('\n');
    let [first, second] = ["the first URL", "the second URL"];
    let named = |place: usize, plain: &str| result.urls.get(place).map_or_else(|| plain.to_owned(), |url| clean(url));
    style.heading(out, &format!("{} against {}: {}", named(1, second), named(0, first), clean(&paired.checks.mark)));
    let number = |title| Column { title, layout: Layout::Number };
    let columns = [
        Column { title: "metric", layout: Layout::Word },
        number("first"),
        number("second"),
        number("of these"),
        number("change"),
        number("typical request"),
    ];
    let found = against::paired_rows(paired);
    let value = |value: Option<f64>| Cell::plain(value.map_or_else(|| "–".to_owned(), significant));
    let bare = |change: Option<f64>| change.map_or_else(|| "–".to_owned(), checks::change);
    let row = |row: &against::PairedRow<'_>| {
        let (mean, typical) = match row.found {
            PairedMetric::Compared { by_time, by_pair, .. } => {
                (against::difference(by_time), by_pair.as_ref().map_or_else(|| "–".to_owned(), against::difference))
            }
            PairedMetric::TooFew { .. } | PairedMetric::TooFewSlices { .. } | PairedMetric::Fixed { .. } => {
                (bare(row.bare_change()), "–".to_owned())
            }
        };
        let values = row.values.map(value).into_iter();
        let cells = values.chain([bare(row.ratio()), mean, typical].map(Cell::plain));
        let name = match row.metric {
            "request_throughput" => "req/s".to_owned(),
            "output_throughput" => "tok/s".to_owned(),
            metric => clean(metric),
        };
        std::iter::once(Cell::plain(name)).chain(cells).collect()
    };
    let rows: Vec<Vec<Cell>> = found.iter().map(row).collect();
    table(out, &columns, &rows, style);
    if found.iter().any(|row| matches!(row.found, PairedMetric::Compared { .. })) {
        style.paragraph(
            out,
            "  ",
            "of these: by how much the second number is more than the first. change: of the mean over slices of time in which \
             both were loaded whole, without the begin and the end of the window (a latency: over requests that both \
             answered), so that it may differ from that. typical request: over pairs. In brackets: 95 % intervals",
        );
    }
    if found.iter().any(|row| against::is_dependent(row.found)) {
        style.paragraph(out, "  ", "[unknown]: neighbouring slices of time depend on each other");
    }
    for why in against::reasons(&found) {
        style.paragraph(out, "  ", &why);
    }
    style.paragraph(out, "  ", &clean(&paired.checks.note));
    both(out, paired, style);
}

/// Adds the numbers of both servers beside those that are compared.
fn both(out: &mut String, paired: &Paired, style: Style) {
    let number = |title| Column { title, layout: Layout::Number };
    let columns =
        [Column { title: "number", layout: Layout::Word }, number("first"), number("second"), number("change")];
    let row = |row: against::BothRow| {
        let value =
            |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| count_or_number(&row.name, value));
        let change = row.change.map_or_else(|| "–".to_owned(), checks::change);
        let cells = row.values.map(value).into_iter().chain([change]);
        std::iter::once(row.name.clone()).chain(cells).map(Cell::plain).collect()
    };
    let rows: Vec<Vec<Cell>> = against::both_rows(paired).into_iter().map(row).collect();
    if !rows.is_empty() {
        out.push('\n');
        table(out, &columns, &rows, style);
    }
}

fn search(out: &mut String, found: &SweepReport, style: Style) {
    out.push('\n');
    style.heading(out, "the search for the limit");
    let number = |title| Column { title, layout: Layout::Number };
    let columns = [
        number(checks::raised(found.by)),
        Column { title: "shows", layout: Layout::Word },
        number("req/s"),
        number("tok/s"),
        number("mean TTFT"),
        number("mean TPOT"),
    ];
    let maybe = |value: Option<f64>| Cell::plain(value.map_or_else(|| "–".to_owned(), significant));
    let row = |step: &isobench_schema::load_checks::SweepStep| {
        let (word, tone) = checks::step(step.state);
        vec![
            Cell::plain(checks::level_name(step.level)),
            Cell { text: word.to_owned(), tone: Some(tone) },
            Cell::plain(significant(step.completed_per_s)),
            maybe(step.output_tok_per_s),
            maybe(step.mean_ttft_ms),
            maybe(step.mean_tpot_ms),
        ]
    };
    let rows: Vec<Vec<Cell>> = found.steps.iter().map(row).collect();
    if !rows.is_empty() {
        table(out, &columns, &rows, style);
    }
    for line in checks::search_lines(found) {
        style.paragraph(out, "  ", &line);
    }
}

fn rest(out: &mut String, result: &LoadResult, style: Style) {
    out.push('\n');
    if let Some(audit) = &result.audit {
        let (word, tone) = checks::verdict(audit);
        writeln!(out, "  client   {}", style.paint(tone, word)).expect("a String takes every write");
        for line in checks::audit_lines(audit) {
            style.paragraph(out, "           ", &line);
        }
    }
    for (word, line) in checks::lines(result) {
        style.paragraph(out, &format!("  {word:<9}"), &line);
    }
    for failures in &result.failures {
        let examples: Vec<String> = failures.examples.iter().map(|example| clean(example)).collect();
        let line = format!("{} ({}): {}", failures.class, failures.count, examples.join("; "));
        style.paragraph(out, "  failed   ", &line);
    }
    // What the client broke is said at the top where it decides.
    let is_said = |class| class == FailureClass::ClientBound && result.validity == Validity::ClientBound;
    for finding in result.findings.iter().filter(|finding| !is_said(finding.class)) {
        style.paragraph(out, "  finding  ", &clean(&finding.to_string()));
    }
}

fn server(out: &mut String, result: &LoadResult, style: Style) {
    if result.server.is_empty() {
        return;
    }
    out.push('\n');
    style.heading(out, "what the server says of itself");
    let columns = [
        Column { title: "metric", layout: Layout::Name },
        Column { title: "min", layout: Layout::Number },
        Column { title: "mean", layout: Layout::Number },
        Column { title: "max", layout: Layout::Number },
        Column { title: "over the window", layout: Layout::Number },
    ];
    let rows: Vec<Vec<Cell>> = result
        .server
        .iter()
        .take(LISTED)
        .map(|(name, metric)| {
            let numbers = [metric.min, metric.mean, metric.max].map(|value| Cell::plain(significant(value)));
            let grown = says::grown(name, metric).map_or_else(|| "–".to_owned(), significant);
            std::iter::once(Cell::plain(clean(name))).chain(numbers).chain([Cell::plain(grown)]).collect()
        })
        .collect();
    table(out, &columns, &rows, style);
    if result.server.len() > LISTED {
        style.paragraph(out, "  ", &format!("and {} more in the JSON", result.server.len() - LISTED));
    }
    if let Some(note) = says::cache_note(result) {
        style.paragraph(out, "  ! ", &note);
    }
}
