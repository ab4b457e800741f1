//! How far things came, and what running them again could change, as a terminal page.

use isobench_schema::coverage::{Coverage, CoverageStep, RetryGroup};

use super::Style;
use super::judgement::section;
use crate::funnel::some_of;
use crate::text::{clean, pad, width};
use crate::words::Tone;
use crate::words::coverage::{RetryPart, actor, change, fix, reason, stage};

/// How many names a reason gives.
const NAMED: usize = 5;

/// How many reasons a stage lists.
const LISTED: usize = 10;

/// How many columns the longest bar takes.
const BAR: usize = 24;

/// Returns the funnel of some things, and what running the lost ones again could change.
pub fn coverage(coverage: &Coverage, style: Style) -> String {
    let mut out = String::new();
    out.push_str(&style.bold(&format!("How far the {} come", clean(&coverage.of))));
    out.push('\n');
    let all = coverage.steps.first().map_or(0, |step| step.reached);
    for step in &coverage.steps {
        one_step(&mut out, step, all, style);
    }
    if !coverage.retries.is_empty() {
        section(&mut out, "What a retry could change", style);
        for part in RetryPart::ALL {
            one_part(&mut out, coverage, part, style);
        }
    }
    out
}

fn one_step(out: &mut String, step: &CoverageStep, all: u64, style: Style) {
    for loss in step.lost.iter().take(LISTED) {
        let first = format!("  {:>+5}  ", -i64::try_from(loss.names.len()).unwrap_or(i64::MAX));
        style.paragraph(out, &first, &format!("{}: {}", reason(loss), some_of(&cleaned(&loss.names), NAMED)));
    }
    let left: usize = step.lost.iter().skip(LISTED).map(|loss| loss.names.len()).sum();
    if left > 0 {
        style.paragraph(out, &format!("  {:>+5}  ", -i64::try_from(left).unwrap_or(i64::MAX)), "for other reasons");
    }
    let head = format!("  {} {:>5}", pad(stage(step.stage), 20), step.reached);
    let room = style.width.saturating_sub(width(&head) + 2).min(BAR);
    let room = u64::try_from(room).unwrap_or(0);
    let filled = if all == 0 { 0 } else { (step.reached * room).div_ceil(all) };
    let bar = "█".repeat(usize::try_from(filled).unwrap_or(0));
    let tone = if step.reached == 0 { Tone::Absent } else { Tone::Neutral };
    out.push_str(&style.paint(tone, format!("{head}  {bar}").trim_end()));
    out.push('\n');
}

fn one_part(out: &mut String, coverage: &Coverage, part: RetryPart, style: Style) {
    let count = part.count(coverage);
    if count == 0 {
        return;
    }
    style.paragraph(out, &format!("  {count:>5}  "), part.title());
    for group in coverage.retries.iter().filter(|group| RetryPart::of(group) == part) {
        one_group(out, group, style);
    }
}

fn one_group(out: &mut String, group: &RetryGroup, style: Style) {
    let kind = match RetryPart::of(group) {
        RetryPart::Again | RetryPart::Changed | RetryPart::Unclear => {
            format!(" ({}, {})", fix(group.fix), actor(group.actor))
        }
        RetryPart::Never => String::new(),
    };
    let text = format!("{}{kind}: {}: {}", clean(&group.class), change(group), some_of(&cleaned(&group.names), NAMED));
    style.paragraph(out, &format!("         {:>5}  ", group.names.len()), &text);
}

fn cleaned(names: &[String]) -> Vec<String> {
    names.iter().map(|name| clean(name)).collect()
}
