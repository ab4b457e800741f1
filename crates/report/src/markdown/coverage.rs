//! How far things came, and what running them again could change, as Markdown.

use isobench_schema::coverage::{Coverage, CoverageStep, RetryGroup};

use super::{code, dash, escape, push, sentence, table};
use crate::funnel::some_of;
use crate::text::clean;
use crate::words::coverage::{RetryPart, actor, change, fix, reason, stage};

/// How many names a reason gives.
const NAMED: usize = 8;

/// Returns the funnel of some things, and what running the lost ones again could change.
pub fn coverage(coverage: &Coverage) -> String {
    let mut out = String::new();
    push(&mut out, &format!("## How far the {} come", escape(&clean(&coverage.of))));
    table(&mut out, &["stage", "reached", "lost on the way there"], coverage.steps.iter().map(step));
    if !coverage.retries.is_empty() {
        push(&mut out, "## What a retry could change");
        for part in RetryPart::ALL {
            one_part(&mut out, coverage, part);
        }
    }
    out
}

fn step(step: &CoverageStep) -> Vec<String> {
    let loss = |loss: &isobench_schema::coverage::CoverageLoss| {
        format!("**{}** {}: {}", loss.names.len(), sentence(&reason(loss)), names(&loss.names))
    };
    let lost: Vec<String> = step.lost.iter().map(loss).collect();
    let lost = if lost.is_empty() { dash() } else { lost.join("<br>") };
    vec![stage(step.stage).to_owned(), step.reached.to_string(), lost]
}

fn names(names: &[String]) -> String {
    let names: Vec<String> = names.iter().map(|name| code(&clean(name))).collect();
    some_of(&names, NAMED)
}

fn one_part(out: &mut String, coverage: &Coverage, part: RetryPart) {
    let count = part.count(coverage);
    if count == 0 {
        return;
    }
    push(out, &format!("**{count} {}**", part.title()));
    let groups = coverage.retries.iter().filter(|group| RetryPart::of(group) == part);
    table(out, &["failures", "class", "change", "kind", "by", "which"], groups.map(group));
}

fn group(group: &RetryGroup) -> Vec<String> {
    vec![
        group.names.len().to_string(),
        code(&clean(&group.class)),
        sentence(&change(group)),
        fix(group.fix).to_owned(),
        actor(group.actor).to_owned(),
        names(&group.names),
    ]
}
