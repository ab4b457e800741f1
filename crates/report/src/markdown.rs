//! A judgement or a plan as GitHub-flavoured Markdown. Text from elsewhere can't become markup, a mention or a link.

mod coverage;
mod images;
mod legacy;
mod old_tables;
mod plan;
mod suite;

use std::fmt::Write as _;

use crate::view::{ArmView, ContrastView, FailureKind, FailureView, TaskView, View};
use crate::words::{Piece, how_to_read};

pub use coverage::coverage;
pub use images::image_audit;
pub use legacy::legacy;
pub use old_tables::old_tables;
pub use plan::{funnel, plan};

/// Returns the judgement as a Markdown page.
pub fn judgement(view: &View) -> String {
    let mut out = format!("# isobench run {}\n\n", escape(&view.run));
    let mut facts = vec![format!("plan `{}`", view.plan), format!("rules {}", escape(&view.rules))];
    facts.extend(view.facts.iter().map(|fact| escape(fact)));
    push(&mut out, &facts.join(" · "));
    let piece = |piece| match piece {
        Piece::Plain(text) => escape(text),
        Piece::Strong(word) => format!("**{word}**"),
    };
    push(&mut out, &format!("*How to read this page.* {}", how_to_read().map(piece).collect::<String>()));
    if view.tasks.is_empty() {
        push(&mut out, "No task was run.");
    }
    if view.tasks.len() > 1 {
        overview(&mut out, view);
    }
    if let Some(item) = &view.suite {
        suite::suite(&mut out, item);
    }
    if !view.noise.is_empty() {
        push(&mut out, "## Noise: the baseline against itself");
        let row = |row: &crate::noise::NoiseRow| row.cells().map(escape).to_vec();
        table(&mut out, &crate::noise::COLUMNS, view.noise.iter().map(row));
    }
    for item in &view.tasks {
        task(&mut out, item);
    }
    if !view.exclusions.is_empty() {
        push(&mut out, "## Not run");
        let row = |e: &crate::view::ExclusionView| vec![code(&e.what), e.reason.to_owned(), escape(&e.message)];
        table(&mut out, &["what", "reason", "message"], view.exclusions.iter().map(row));
    }
    if !view.problems.is_empty() {
        push(&mut out, "## Could not be read");
        let row = |p: &crate::view::ProblemView| vec![escape(&p.place), escape(&p.message)];
        table(&mut out, &["place", "message"], view.problems.iter().map(row));
    }
    if let Some(lost) = &view.coverage {
        out.push_str(&coverage(lost));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// Appends a paragraph.
pub(crate) fn push(out: &mut String, paragraph: &str) {
    out.push_str(paragraph);
    out.push_str("\n\n");
}

fn overview(out: &mut String, view: &View) {
    push(out, "## Overview");
    let head = ["verdict", "human vs baseline", "agents vs baseline", "agents vs human"];
    let row = |count: &crate::view::VerdictCount| {
        vec![
            count.verdict.to_string(),
            count.human_against_baseline.to_string(),
            count.agent_against_baseline.to_string(),
            count.agent_against_human.to_string(),
        ]
    };
    table(out, &head, view.counts.iter().map(row));
    let row = |task: &TaskView| vec![escape(&task.id), task.standing.word.to_owned(), escape(&task.headline)];
    table(out, &["task", "standing", "result"], view.tasks.iter().map(row));
}

fn task(out: &mut String, task: &TaskView) {
    push(out, &format!("## {}", escape(&task.id)));
    if let Some(title) = &task.title {
        push(out, &escape(title));
    }
    push(out, &format!("**{}** — {}: {}.", escape(&task.headline), task.standing.word, task.standing.meaning));
    let mut metric =
        format!("`{}` in {}, {}, margin {}; {}.", task.metric, task.unit, task.direction, task.margin, task.blocks);
    if let Some(workload) = &task.workload {
        write!(metric, " {}.", escape(workload)).expect("a String takes every write");
    }
    push(out, &metric);
    for text in &task.confirmations {
        push(out, &format!("**!** {}", escape(text)));
    }
    if !task.contrasts.is_empty() {
        contrasts(out, task);
    }
    if let Some(spread) = &task.spread {
        push(out, &escape(spread));
    }
    if !task.deviations.is_empty() {
        push(out, "† Deviations from what the task asks, which apply to every number above and below:");
        let row = |d: &crate::view::DeviationView| {
            vec![d.kind.to_owned(), code(&d.subject), escape(&d.asked), escape(&d.run), escape(&d.reason)]
        };
        table(out, &["kind", "what", "asked", "run", "why"], task.deviations.iter().map(row));
    }
    arms(out, task);
    for (kind, title) in [(FailureKind::Failure, "Failures"), (FailureKind::Incident, "Incidents (the launches count)")]
    {
        failures(out, title, task.failures.iter().filter(|failure| failure.kind == kind));
    }
    if !task.checks.is_empty() {
        push(out, "### Checks that launches broke");
        let items: Vec<String> = task.checks.iter().map(|item| format!("- {}", escape(&item.sentence()))).collect();
        push(out, &items.join("\n"));
    }
    if !task.unlike.is_empty() {
        push(out, "### Not comparable");
        let items: Vec<String> = task.unlike.iter().map(|text| format!("- {}", escape(text))).collect();
        push(out, &items.join("\n"));
    }
}

fn contrasts(out: &mut String, task: &TaskView) {
    let head = ["of", "against", "verdict", "speed-up", "interval", "p", "blocks", "reason"];
    let row = |c: &ContrastView| {
        vec![
            code(&c.of),
            code(&c.against),
            format!("{} **{}**", c.verdict.symbol, c.verdict.word),
            c.speedup.as_ref().map_or_else(dash, |speedup| format!("{speedup}{}", task.mark)),
            c.interval.clone().unwrap_or_else(dash),
            c.p.as_deref().map_or_else(dash, escape),
            c.blocks.to_string(),
            escape(&c.explanation()),
        ]
    };
    table(out, &head, task.contrasts.iter().map(row));
}

fn arms(out: &mut String, task: &TaskView) {
    if task.arms.is_empty() {
        return;
    }
    let row = |arm: &ArmView| {
        let mean = arm.mean.as_ref().map_or_else(dash, |mean| format!("{mean}{}", task.mark));
        vec![code(&arm.name), mean, format!("{} of {}", arm.valid, arm.launches)]
    };
    table(out, &["arm", "mean", "launches that count"], task.arms.iter().map(row));
}

fn failures<'a>(out: &mut String, title: &str, failures: impl Iterator<Item = &'a FailureView>) {
    let mut failures = failures.peekable();
    if failures.peek().is_some() {
        push(out, &format!("### {title}"));
    }
    for failure in failures {
        let FailureView { arm, launches, class, stage, message, .. } = failure;
        push(out, &format!("- {}: **{class}** at {stage}, {launches}: {}", code(arm), escape(message)));
        if let Some(check) = &failure.check {
            push(out, &format!("  {}.", escape(check)));
        }
        if let Some(cause) = &failure.cause {
            push(out, &format!("  Its logs say: {}. Fix: {}.", escape(&cause.text), escape(&cause.fix)));
        }
        if !failure.evidence.is_empty() {
            let lines: Vec<String> =
                failure.evidence.iter().map(|line| format!("  {}  {}", line.place, line.text)).collect();
            let fence = fence(&lines.join("\n"));
            push(out, &format!("  {fence}text\n{}\n  {fence}", lines.join("\n")));
        }
    }
}

pub(crate) fn dash() -> String {
    "–".to_owned()
}

pub(crate) fn table(out: &mut String, head: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let line = |out: &mut String, cells: &[String]| {
        out.push_str("| ");
        out.push_str(&cells.join(" | "));
        out.push_str(" |\n");
    };
    line(out, &head.iter().map(|&title| title.to_owned()).collect::<Vec<_>>());
    line(out, &head.iter().map(|_| "---".to_owned()).collect::<Vec<_>>());
    for row in rows {
        line(out, &row);
    }
    out.push('\n');
}

/// Returns a fence of backticks that is longer than any in `text`.
fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Returns `text` as a code span that also holds in a table cell.
pub(crate) fn code(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    format!("{fence}{pad}{}{pad}{fence}", text.replace('|', "\\|"))
}

/// Returns a sentence in which what stands between backticks is a code span, and nothing else is markup.
pub(crate) fn sentence(text: &str) -> String {
    let ticks = text.matches('`').count();
    let part = |(place, part): (usize, &str)| match place % 2 {
        1 if place < ticks && !part.is_empty() => code(part),
        1 if place >= ticks => format!("\\`{}", escape(part)),
        _ => escape(part),
    };
    text.split('`').enumerate().map(part).collect()
}

/// Returns `text` so that nothing in it is markup, a mention, a reference to an issue or a link.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            // An empty comment parts what GitHub would turn into a mention, a reference or a link.
            '@' => out.push_str("@<!-- -->"),
            '#' => out.push_str("\\#<!-- -->"),
            ':' if rest.peek() == Some(&'/') => out.push_str(":<!-- -->"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '$' => out.extend(['\\', c]),
            _ => out.push(c),
        }
    }
    out.replace("www.", "www<!-- -->.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        for (hostile, harmless) in [
            ("a|b", "a\\|b"),
            ("`x`", "\\`x\\`"),
            ("<script>", "&lt;script&gt;"),
            ("![i](x)", "\\!\\[i\\](x)"),
            ("@all #1", "@<!-- -->all \\#<!-- -->1"),
            ("https://x www.x", "https:<!-- -->//x www<!-- -->.x"),
        ] {
            assert_eq!(escape(hostile), harmless);
        }
        assert_eq!(code("a`|b"), "`` a`\\|b ``");
        for (text, expected) in [
            ("`a_b` is *b*", "`a_b` is \\*b\\*"),
            ("a `lonely_tick", "a \\`lonely\\_tick"),
            ("`x` and `y|z`", "`x` and `y\\|z`"),
        ] {
            assert_eq!(sentence(text), expected);
        }
        assert_eq!(fence("````"), "`````");
    }
}
