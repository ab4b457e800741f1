//! One task's part of the page: plots, tables, failures with their evidence, and deviations.

use maud::{Markup, html};

use super::{badge, blocks_plot, intervals_plot, looks_plot};
use crate::view::{ArmView, ContrastView, FailureKind, FailureView, TaskView};

/// Returns the task's section.
pub(super) fn section(index: usize, task: &TaskView) -> Markup {
    let id = format!("task-{index}");
    html! {
        section.task id=(id) aria-labelledby=(format!("{id}-name")) {
            h2 id=(format!("{id}-name")) { (task.id) }
            @if let Some(title) = &task.title { p.title { bdi { (title) } } }
            p.headline { (task.headline) }
            p { span class=(task.standing.tone.class()) { b { (task.standing.word) } } ": " (task.standing.meaning) "." }
            p.facts {
                span { code { (task.metric) } " in " (task.unit) ", " (task.direction) }
                span { "margin " (task.margin) }
                span { (task.blocks) }
                @if let Some(workload) = &task.workload { span { bdi { (workload) } } }
            }
            (deviations(task))
            @if !task.unlike.is_empty() {
                div.notice { p { b { "Not comparable" } } ul { @for text in &task.unlike { li { bdi { (text) } } } } }
            }
            @if !task.confirmations.is_empty() {
                div.notice { p { b { "Confirmed by a person" } } ul { @for text in &task.confirmations { li { bdi { (text) } } } } }
            }
            (intervals_plot::plot(task))
            (contrasts(task))
            (looks_plot::plots(index, task))
            @if let Some(sentinel) = &task.sentinel { p.note { (sentinel) } }
            h3 { "Blocks" }
            (blocks_plot::plot(index, task))
            (block_values(task))
            (arms(task))
            (failures(task))
            @if !task.checks.is_empty() {
                h3 { "Checks that launches broke" }
                ul { @for item in &task.checks { li { bdi { (item.sentence()) } } } }
            }
        }
    }
}

fn deviations(task: &TaskView) -> Markup {
    if task.deviations.is_empty() {
        return html! {};
    }
    html! {
        div.notice {
            p { b { "† Deviations" } " from what the task asks. They apply to every number of this task." }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "kind" } th scope="col" { "what" } th scope="col" { "asked" }
                    th scope="col" { "run" } th scope="col" { "why" }
                } }
                tbody { @for item in &task.deviations { tr {
                    th scope="row" { (item.kind) }
                    td { code { bdi { (item.subject) } } }
                    td { bdi { (item.asked) } }
                    td { bdi { (item.run) } }
                    td.text { bdi { (item.reason) } }
                } } }
            } }
        }
    }
}

fn contrasts(task: &TaskView) -> Markup {
    if task.contrasts.is_empty() {
        return html! { p.empty { "Nothing was compared." } };
    }
    html! {
        div.scroll { table {
            thead { tr {
                th scope="col" { "of" } th scope="col" { "against" } th scope="col" { "verdict" }
                th.number scope="col" { "speed\u{2011}up" } th.number scope="col" { "interval" } th.number scope="col" { "p" }
                th.number scope="col" { "blocks" } th scope="col" { "reason" }
            } }
            tbody { @for contrast in &task.contrasts { (contrast_row(contrast, task.mark)) } }
        } }
    }
}

fn contrast_row(contrast: &ContrastView, mark: &str) -> Markup {
    html! {
        tr {
            th.arm scope="row" { (contrast.of) }
            td.arm { (contrast.against) }
            td { (badge(contrast.verdict)) }
            td.number title=[contrast.percent.as_deref()] {
                @if let Some(speedup) = &contrast.speedup { (speedup) (mark) } @else { "–" }
            }
            td.number { (contrast.interval.as_deref().unwrap_or("–")) }
            td.number { (contrast.p.as_deref().unwrap_or("–")) }
            td.number { (contrast.blocks) }
            td.text { bdi { (contrast.explanation()) } }
        }
    }
}

fn block_values(task: &TaskView) -> Markup {
    if task.block_axis.is_empty() || task.arms.iter().all(|arm| arm.points.is_empty()) {
        return html! {};
    }
    html! {
        details {
            summary { "Values of each block in " (task.unit) }
            div.scroll { table.values {
                thead { tr {
                    th scope="col" { "arm" }
                    @for block in &task.block_axis { th.number scope="col" { "block " (block) } }
                } }
                tbody { @for arm in &task.arms { tr {
                    th.arm scope="row" { (arm.name) }
                    @for block in &task.block_axis {
                        td.number { (arm.points.iter().find(|p| p.block == *block).map_or("–", |p| p.text.as_str())) }
                    }
                } } }
            } }
        }
    }
}

fn arms(task: &TaskView) -> Markup {
    if task.arms.is_empty() {
        return html! { p.empty { "No arm was run." } };
    }
    let row = |arm: &ArmView| {
        html! {
            tr {
                th.arm scope="row" { (arm.name) }
                td.number { @if let Some(mean) = &arm.mean { (mean) (task.mark) } @else { "–" } }
                td.number { (arm.valid) " of " (arm.launches) }
            }
        }
    };
    html! {
        h3 { "Arms" }
        div.scroll { table.narrow {
            thead { tr {
                th scope="col" { "arm" } th.number scope="col" { "mean " (task.metric) }
                th.number scope="col" { "launches that count" }
            } }
            tbody { @for arm in &task.arms { (row(arm)) } }
        } }
        @if task.metrics.len() > 1 {
            details {
                summary { "Means of all metrics" }
                div.scroll { table.values {
                    thead { tr {
                        th scope="col" { "metric" }
                        @for arm in &task.arms { th.number.arm scope="col" { (arm.name) } }
                    } }
                    tbody { @for (place, metric) in task.metrics.iter().enumerate() { tr {
                        th scope="row" { (metric.name) " in " (metric.unit) }
                        @for arm in &task.arms {
                            td.number { (arm.means.get(place).and_then(Option::as_deref).unwrap_or("–")) }
                        }
                    } } }
                } }
            }
        }
    }
}

fn failures(task: &TaskView) -> Markup {
    let of = |kind| task.failures.iter().filter(move |failure| failure.kind == kind);
    html! {
        @for (kind, title) in [(FailureKind::Failure, "Failures"), (FailureKind::Incident, "Incidents (the launches count)")] {
            @if of(kind).next().is_some() {
                h3 { (title) }
                @for item in of(kind) { (failure(item)) }
            }
        }
    }
}

fn failure(failure: &FailureView) -> Markup {
    html! {
        div.failure {
            p { span.arm { b { (failure.arm) } } ": " b.fault { (failure.class) } " at " (failure.stage) ", "
                (failure.launches) ": " bdi { (failure.message) } }
            @if let Some(check) = &failure.check { p { bdi { (check) } } }
            @if let Some(cause) = &failure.cause {
                p { "Its logs say: " bdi { (cause.text) } ". Fix: " bdi { (cause.fix) } "." }
            }
            @if !failure.evidence.is_empty() {
                pre { @for line in &failure.evidence {
                    span.place { bdi { (line.place) } } "  " bdi { (line.text) } "\n"
                } }
            }
        }
    }
}
