//! A plan of a dataset of commits as one self-contained page: the funnel, builds and cost, and a table that sorts.

use isobench_schema::assessment::{Assessment, Finding};
use isobench_schema::environment::Rung;
use isobench_schema::plan::{Plan, PlannedTask};
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Options, PALETTE, STYLE};
use crate::funnel::{self, Costs, Funnel, FunnelRow, lowest_rung, some_of};
use crate::noise;
use crate::number::{self, counted, duration};
use crate::text::clean;
use crate::view::{deviation_view, devices, exclusion_view, problem_view, workload};
use crate::words::{TaskStandingWord, severity_tone};

/// What makes the table sort and filter. It is the only script of any page: without it, the table stands as it is.
const SCRIPT: &str = include_str!("sort.js");

/// The only script that the page's policy lets run, by the digest of its bytes; a test compares it with the script's.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; \
script-src 'sha256-Qc171SVVRjmBO+HLtCNnEJUW7ha7W4HoB/lu5EVgemE='";

/// How many tasks a reason names.
const NAMED: usize = 12;

/// How many pairs that share no build are named.
const LISTED_PAIRS: usize = 40;

/// Returns the whole page.
pub fn plan_page(plan: &Plan, options: &Options) -> String {
    let plain = format!("Plan of {}", clean(&plan.dataset));
    let title = if options.title.is_empty() { plain } else { clean(&options.title) };
    let funnel = funnel::funnel(&plan.assessments, plan.planned_for.as_ref());
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { (title) }
                style { (PreEscaped(PALETTE)) (PreEscaped(STYLE)) }
            }
            body.wide {
                header {
                    h1 { bdi { (title) } }
                    p.facts {
                        span { (counted(u64::try_from(plan.assessments.len().max(plan.tasks.len())).unwrap_or(u64::MAX), "task")) }
                        span { (counted(u64::try_from(plan.tasks.len()).unwrap_or(u64::MAX), "task")) " planned to run here" @if !plan.tasks.is_empty() { ", about " (duration(plan.estimate_s())) } }
                        span { "made by " bdi { (clean(&plan.planner)) } }
                        @if let Some(planned_for) = &plan.planned_for { span { bdi { (devices(planned_for)) } } }
                    }
                }
                main {
                    @if plan.assessments.is_empty() { (planned(plan)) }
                    @else { (body(plan, &funnel)) }
                    (exclusions(plan))
                    (problems(plan))
                }
                footer { @if let Some(note) = &options.note { p { bdi { (clean(note)) } } } }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    markup.into_string()
}

fn body(plan: &Plan, funnel: &Funnel) -> Markup {
    html! {
        section aria-labelledby="funnel" {
            h2 #funnel { "How far they come" }
            (bar(funnel))
            div.scroll { table {
                thead { tr {
                    th scope="col" { "standing" } th.number scope="col" { "tasks" } th.number scope="col" { "share" }
                    th scope="col" { "reasons" }
                } }
                tbody { @for row in &funnel.rows { (standing(row)) } }
            } }
        }
        (builds(funnel))
        (costs(&funnel.costs))
        @if !funnel.openings.is_empty() {
            section aria-labelledby="open" {
                h2 #open { "What would open more" }
                ul { @for opening in &funnel.openings { li { (sentence(opening)) } } }
            }
        }
        section aria-labelledby="tasks" {
            h2 #tasks { "Tasks" }
            label.filter hidden { "Show tasks with " input type="search" placeholder="a commit, a rule, a word" autocomplete="off"; }
            div.scroll { table.sorts {
                thead { tr {
                    th scope="col" { "task" } th scope="col" { "standing" } th.number scope="col" { "devices" }
                    th scope="col" { "environment" } th.number scope="col" { "preparing" }
                    th.number scope="col" { "device time" } th.number scope="col" { "price" }
                    th scope="col" { "subject" }
                } }
                tbody { @for item in &plan.assessments { (task(item)) } }
            } }
        }
    }
}

/// A sentence in which what stands between backticks is code.
fn sentence(text: &str) -> Markup {
    let ticks = text.matches('`').count();
    html! { bdi {
        @for (place, part) in text.split('`').enumerate() {
            @match place % 2 {
                1 if place < ticks => { code { (part) } }
                1 => { "`" (part) }
                _ => { (part) }
            }
        }
    } }
}

/// One bar, parted by standing.
fn bar(funnel: &Funnel) -> Markup {
    let whole = number::count(funnel.tasks.max(1));
    let mut left = 0.0;
    let parts: Vec<(f64, &FunnelRow)> = funnel
        .rows
        .iter()
        .map(|row| {
            let start = left;
            left += number::count(row.count) / whole * 1000.0;
            (start, row)
        })
        .collect();
    html! {
        svg.funnel viewBox="0 0 1000 44" preserveAspectRatio="none" role="img" aria-label="tasks by standing" xmlns="http://www.w3.org/2000/svg" {
            @for (start, row) in &parts {
                @if row.count > 0 {
                    rect class=(row.standing.tone.class()) x=(format!("{start:.2}")) y="0" height="44"
                        width=(format!("{:.2}", number::count(row.count) / whole * 1000.0)) {
                        title { (row.standing.title) ": " (row.count) }
                    }
                }
            }
        }
    }
}

fn standing(row: &FunnelRow) -> Markup {
    html! {
        tr {
            th scope="row" { (badge(row.standing)) }
            td.number { (row.count) }
            td.number { (row.share) }
            td.text {
                @for reason in &row.reasons { div { (reasons(reason)) } }
                @if !row.further.is_empty() { details {
                    summary { "also" }
                    @for reason in &row.further { div { (reasons(reason)) } }
                } }
            }
        }
    }
}

fn reasons(group: &funnel::ReasonGroup) -> Markup {
    html! { b { (group.tasks.len()) } " × " (sentence(&group.reason)) " " span.note { (some_of(&group.tasks, NAMED)) } }
}

fn badge(standing: TaskStandingWord) -> Markup {
    html! { span class=(format!("badge {}", standing.tone.class())) { span aria-hidden="true" { (standing.symbol) } " " (standing.title) } }
}

fn builds(funnel: &Funnel) -> Markup {
    let Some(builds) = &funnel.builds else { return html! {} };
    html! {
        section aria-labelledby="builds" {
            h2 #builds { "Native builds" }
            p { (builds.sentence()) "." }
            @if !builds.apart.is_empty() { p.note { "Two builds: " (some_of(&builds.apart, LISTED_PAIRS)) } }
            @if !builds.unknown.is_empty() { p.note { "Not known: " (some_of(&builds.unknown, LISTED_PAIRS)) } }
        }
    }
}

fn costs(costs: &Costs) -> Markup {
    if costs.total.tasks == 0 {
        return html! {};
    }
    let is_priced = costs.total.builds.known > 0;
    let row = |devices: &str, environment: &str, sum: &funnel::Sum| {
        html! { tr {
            th.number scope="row" { (devices) } td { (environment) } td.number { (sum.tasks) }
            td.number { (duration(sum.prepare_s)) } @if is_priced { td.number { (sum.builds.text()) } }
            td.number { (number::hours(sum.device_hours)) } td.number { (sum.devices.text()) }
        } }
    };
    html! {
        section aria-labelledby="cost" {
            h2 #cost { "Cost of what can run" }
            div.scroll { table.narrow {
                thead { tr {
                    th.number scope="col" { "devices" } th scope="col" { "environment" } th.number scope="col" { "tasks" }
                    th.number scope="col" { "preparing" } @if is_priced { th.number scope="col" { "its price" } }
                    th.number scope="col" { "device\u{2011}hours" } th.number scope="col" { "their price" }
                } }
                tbody {
                    @for line in &costs.lines { (row(&line.devices.to_string(), line.rung.map_or("–", Rung::as_str), &line.sum)) }
                    (row("all", "–", &costs.total))
                }
            } }
            @if costs.without > 0 { p.note { "and " (costs.without) " more whose cost isn't known" } }
            @if !costs.assumptions.is_empty() { p.note { "Assumed: " bdi { (costs.assumptions.join("; ")) } } }
            p.note { "Each " (sentence(funnel::EACH_TASK)) "." }
        }
    }
}

fn task(item: &Assessment) -> Markup {
    let standing = TaskStandingWord::of(item.standing);
    let order = isobench_schema::assessment::Standing::ALL.iter().position(|known| *known == item.standing);
    let cost = item.cost.as_ref();
    let price = cost.and_then(|cost| cost.device_usd);
    let devices = item.need.as_ref().map(|need| need.devices);
    // What isn't known sorts last; what fits no number of devices sorts after every number.
    let devices_key = devices.map(|devices| devices.unwrap_or(u32::MAX).to_string()).unwrap_or_default();
    let devices_text =
        devices.map_or_else(|| "–".to_owned(), |n| n.map_or_else(|| "none fit".to_owned(), |n| n.to_string()));
    let seconds = |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
    let shown = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), duration);
    html! {
        tr {
            th.nowrap scope="row" { code { (clean(item.task.as_str())) } }
            td data-key=[order] { (badge(standing)) }
            td.number data-key=(devices_key) { (devices_text) }
            td { (lowest_rung(item).map_or("–", Rung::as_str)) }
            td.number data-key=(seconds(cost.map(|cost| cost.prepare_s))) { (shown(cost.map(|cost| cost.prepare_s))) }
            td.number data-key=(seconds(cost.map(|cost| cost.device_s))) { (shown(cost.map(|cost| cost.device_s))) }
            td.number data-key=(seconds(price)) {
                (price.map_or_else(|| "–".to_owned(), |price| format!("${}", number::group_decimal(price))))
            }
            td.text { (story(item)) }
        }
    }
}

fn story(item: &Assessment) -> Markup {
    let open = item.findings.iter().filter(|finding| !finding.repaired).count();
    let finding = |finding: &Finding| {
        html! { li {
            b class=(severity_tone(finding.severity).class()) { (finding.severity) } " " code { bdi { (clean(&finding.rule)) } } ": "
            (sentence(&clean(&finding.message)))
            @if finding.repaired { " (repaired)" } @else { " – " (sentence(&clean(&finding.fix))) }
        } }
    };
    html! {
        bdi { (item.subject.as_ref().map_or_else(|| "–".to_owned(), |subject| clean(subject))) }
        details {
            summary { (counted(u64::try_from(open).unwrap_or(u64::MAX), "open finding")) ", "
                (counted(u64::try_from(item.repairs.len()).unwrap_or(u64::MAX), "repair")) }
            ul {
                @for reason in item.reasons.iter() { li { (sentence(&clean(reason))) } }
                @for item in item.findings.iter() { (finding(item)) }
                @for repair in item.repairs.iter() { li { "† " bdi { (deviation_view(repair).sentence()) } } }
            }
            @if let Some(asked) = &item.asked { pre { bdi { (clean(asked)) } } }
        }
    }
}

/// What the plan expects of a task.
fn forecast(task: &PlannedTask) -> Markup {
    let Some(text) = noise::forecast(task) else { return html! { "–" } };
    html! {
        @for line in &text.lines { div { (sentence(line)) } }
        @if let Some(warning) = &text.warning { div { b { "! " } (sentence(warning)) } }
    }
}

/// The tasks of a dataset that isn't one of commits.
fn planned(plan: &Plan) -> Markup {
    if plan.tasks.is_empty() {
        return html! { p.empty { "Nothing is to be run." } };
    }
    html! {
        section aria-labelledby="planned" {
            h2 #planned { "Tasks" }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "task" } th scope="col" { "arms" } th.number scope="col" { "blocks" }
                    th.number scope="col" { "time" } th scope="col" { "workload" } th scope="col" { "forecast" }
                } }
                tbody { @for task in &plan.tasks { tr {
                    th scope="row" { code { (clean(task.id.as_str())) } }
                    td { @for arm in &task.arms { div.arm { (arm.arm) } } }
                    td.number { (task.design.blocks()) }
                    td.number { (duration(task.estimate_s.get())) }
                    td.text { bdi { (workload(&task.workload, &task.server.model)) } }
                    td.text { (forecast(task)) }
                } } }
            } }
        }
    }
}

/// What is left out, with its reason; why a commit's task can't run stands with the task.
fn exclusions(plan: &Plan) -> Markup {
    if plan.exclusions.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="not-run" {
            h2 #not-run { "Not run" }
            div.scroll { table {
                thead { tr { th scope="col" { "what" } th scope="col" { "reason" } th scope="col" { "message" } } }
                tbody { @for item in plan.exclusions.iter().map(exclusion_view) {
                    tr { th scope="row" { code { (item.what) } } td { (item.reason) } td.text { (sentence(&item.message)) } }
                } }
            } }
        }
    }
}

fn problems(plan: &Plan) -> Markup {
    if plan.problems.is_empty() {
        return html! {};
    }
    html! {
        section aria-labelledby="unread" {
            h2 #unread { "Could not be read" }
            ul { @for item in plan.problems.iter().map(problem_view) { li { bdi { (item.place) } ": " (sentence(&item.message)) } } }
        }
    }
}
