//! How far the arms of a run came, and what running the lost ones again could change, as HTML.

use isobench_schema::coverage::{Coverage, CoverageStep, RetryGroup};
use maud::{Markup, html};

use crate::funnel::some_of;
use crate::text::clean;
use crate::words::coverage::{RetryPart, actor, change, fix, reason, stage};

/// How many names a reason gives.
const NAMED: usize = 8;

/// Returns the section.
pub(super) fn section(coverage: &Coverage) -> Markup {
    let all = coverage.steps.first().map_or(0, |step| step.reached);
    html! {
        section aria-labelledby="coverage" {
            h2 #coverage { "How far the " (clean(&coverage.of)) " come" }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "stage" }
                    th.number scope="col" { "reached" }
                    th scope="col" aria-hidden="true" {}
                    th scope="col" { "lost on the way there" }
                } }
                tbody { @for step in &coverage.steps { (row(step, all)) } }
            } }
            @if !coverage.retries.is_empty() {
                h3 { "What a retry could change" }
                div.scroll { table {
                    thead { tr {
                        th.number scope="col" { "failures" }
                        th scope="col" { "class" }
                        th scope="col" { "change" }
                        th scope="col" { "by" }
                        th scope="col" { "which" }
                    } }
                    tbody { @for part in RetryPart::ALL {
                        @for group in coverage.retries.iter().filter(|group| RetryPart::of(group) == part) {
                            (retry(part, group))
                        }
                    } }
                } }
            }
        }
    }
}

fn row(step: &CoverageStep, all: u64) -> Markup {
    let width = step.reached.saturating_mul(1000).checked_div(all).unwrap_or(0);
    html! { tr {
        th scope="row" { (stage(step.stage)) }
        td.number { (step.reached) }
        td { svg.reached.neutral viewBox="0 0 1000 40" preserveAspectRatio="none" aria-hidden="true" xmlns="http://www.w3.org/2000/svg" {
            rect x="0" y="0" width=(width) height="40" {}
        } }
        td.text {
            @if step.lost.is_empty() { "–" }
            @for (place, loss) in step.lost.iter().enumerate() {
                @if place > 0 { br; }
                b { (loss.names.len()) } " " bdi { (reason(loss)) } ": " bdi { (names(&loss.names)) }
            }
        }
    } }
}

fn retry(part: RetryPart, group: &RetryGroup) -> Markup {
    html! { tr {
        td.number { (group.names.len()) }
        th scope="row" { bdi { (clean(&group.class)) } }
        td.text { (part.title()) ": " bdi { (change(group)) } @if part != RetryPart::Never { " (" (fix(group.fix)) ")" } }
        td { (actor(group.actor)) }
        td.text { bdi { (names(&group.names)) } }
    } }
}

fn names(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| clean(name)).collect();
    some_of(&names, NAMED)
}
