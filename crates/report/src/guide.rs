//! A guide to a dataset: how far its tasks come by the program's own account, beside what reports of earlier runs said of
//! the same commits, with a reason for each commit on which they differ.

mod compare;

use std::collections::BTreeMap;

use isobench_schema::assessment::Assessment;
use isobench_schema::plan::Plan;

use crate::funnel::short_name;
use crate::markdown::{self, code, escape, push, sentence, table};
use crate::text::clean;
use crate::words::TaskStandingWord;
use compare::{Compared, Side, compare};

/// What a report of earlier runs says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reported {
    /// Its title.
    pub title: String,
    /// Its date, such as `2025-12-26`.
    pub date: String,
    /// What it is about, in one line.
    pub about: String,
    /// Its categories.
    pub categories: Vec<ReportedCategory>,
}

/// A category of a report, with its commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedCategory {
    /// Its name.
    pub name: String,
    /// How many commits the report counts.
    pub reported: u32,
    /// The commits that it lists, by their first eight digits.
    pub commits: Vec<String>,
    /// How the same is told before a device is used; absent for what only running shows.
    pub measure: Option<Measure>,
    /// What there is to say of the count.
    pub note: Option<String>,
}

/// How it is told before a device is used that a task belongs to a category.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Measure {
    /// One of these lint rules finds something, repaired or not.
    Rules(Vec<String>),
    /// The command asks for several devices.
    DevicesAsked,
    /// The model needs several devices, or fits no number of them, and the command doesn't ask for several.
    TooLarge,
    /// Several devices are needed, for whichever reason.
    DevicesNeeded,
    /// Exactly so many devices are needed.
    Devices(u32),
    /// No wheel of the baseline is kept.
    NoWheel,
}

/// Returns the guide: the funnel, each report's categories beside the program's, what only running showed, and every task.
pub fn guide(title: &str, head: &str, plan: &Plan, reports: &[Reported]) -> String {
    let mut out = format!("# {}\n\n{}\n\n", escape(&clean(title)), head.trim());
    out.push_str(&markdown::funnel(&plan.assessments, plan.planned_for.as_ref()));
    push(&mut out, "## What the reports of earlier runs said");
    push(&mut out, COMPARED);
    for report in reports {
        one_report(&mut out, report, &plan.assessments);
    }
    push(&mut out, "## What only running showed");
    push(&mut out, ONLY_RUNNING);
    only_running(&mut out, reports, &plan.assessments);
    push(&mut out, "## Every task");
    table(&mut out, &["task", "standing", "why"], plan.assessments.iter().map(task_row));
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

/// How to read the comparison.
const COMPARED: &str = "*Reported* is the report's own count, *here* how many of the report's commits the program puts \
into the same category before a device is used, and *both* how many commits are in both. Below each table, every commit \
on which they differ has a reason. Each commit ended in one category of a report, and what came later wasn't looked for; \
the program looks for everything, so that it can find more.";

/// What the last table is about.
const ONLY_RUNNING: &str = "The other categories of the reports are about what happened on a device. The table says how \
the program judges those commits before: whether something that it finds, or repairs, could have been the cause.";

fn one_report(out: &mut String, report: &Reported, assessments: &[Assessment]) {
    push(out, &format!("### {} ({})", escape(&clean(&report.title)), escape(&clean(&report.date))));
    push(out, &format!("{}.", escape(&clean(&report.about))));
    let categories = report.categories.iter();
    let compared: Vec<(&ReportedCategory, Compared)> = categories
        .filter_map(|category| Some((category, compare(report, category, category.measure.as_ref()?, assessments))))
        .collect();
    let row = |(category, compared): &(&ReportedCategory, Compared)| {
        let note = category.note.as_ref().map(|note| format!(" ({})", escape(&clean(note)))).unwrap_or_default();
        vec![
            escape(&clean(&category.name)),
            format!("{}{note}", category.reported),
            compared.here.to_string(),
            compared.both.to_string(),
        ]
    };
    table(out, &["category", "reported", "here", "both"], compared.iter().map(row));
    for (category, compared) in &compared {
        differences(out, category, compared);
    }
}

fn differences(out: &mut String, category: &ReportedCategory, compared: &Compared) {
    let name = escape(&clean(&category.name));
    if compared.differences.is_empty() {
        return;
    }
    push(out, &format!("**{name}**, where the two differ:"));
    // Commits of which the same is said share a line.
    let mut lines: Vec<(&compare::Difference, Vec<&str>)> = Vec::new();
    for difference in &compared.differences {
        match lines.iter_mut().find(|(known, _)| known.says_the_same(difference)) {
            Some((_, commits)) => commits.push(&difference.commit),
            None => lines.push((difference, vec![&difference.commit])),
        }
    }
    let line = |(difference, commits): &(&compare::Difference, Vec<&str>)| {
        let commits: Vec<String> = commits.iter().map(|commit| code(commit)).collect();
        let side = match &difference.side {
            Side::Reported => "reported, not here".to_owned(),
            Side::Here { reported_as: None } => "here, not reported".to_owned(),
            Side::Here { reported_as: Some(other) } => format!("here, reported as {}", escape(&clean(other))),
        };
        format!("- {} ({side}): {}", commits.join(", "), sentence(&difference.why))
    };
    push(out, &lines.iter().map(line).collect::<Vec<_>>().join("\n"));
}

fn only_running(out: &mut String, reports: &[Reported], assessments: &[Assessment]) {
    let row = |(report, category): (&Reported, &ReportedCategory)| {
        let found = |commit: &&String| assessments.iter().find(|task| short_name(&task.task) == **commit);
        let tasks: Vec<&Assessment> = category.commits.iter().filter_map(|commit| found(&commit)).collect();
        vec![
            escape(&clean(&report.date)),
            escape(&clean(&category.name)),
            category.reported.to_string(),
            standings(&tasks),
            rules(&tasks),
        ]
    };
    let rows = reports.iter().flat_map(|report| report.categories.iter().map(move |category| (report, category)));
    let rows = rows.filter(|(_, category)| category.measure.is_none()).map(row);
    table(out, &["report", "category", "reported", "here they are", "what is found in them"], rows);
}

fn standings(tasks: &[&Assessment]) -> String {
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for task in tasks {
        *counts.entry(task.standing).or_default() += 1;
    }
    let count = |(standing, count)| format!("{count} {}", TaskStandingWord::of(standing).title);
    counts.into_iter().map(count).collect::<Vec<_>>().join(", ")
}

/// How many rules a row names.
const NAMED_RULES: usize = 5;

fn rules(tasks: &[&Assessment]) -> String {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for task in tasks {
        let rules: std::collections::BTreeSet<&str> =
            task.findings.iter().map(|finding| finding.rule.as_str()).collect();
        for rule in rules {
            *counts.entry(rule).or_default() += 1;
        }
    }
    let mut counts: Vec<(&str, usize)> = counts.into_iter().collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    let count = |(rule, count): &(&str, usize)| format!("{} in {count}", code(&clean(rule)));
    counts.iter().take(NAMED_RULES).map(count).collect::<Vec<_>>().join(", ")
}

fn task_row(task: &Assessment) -> Vec<String> {
    let standing = TaskStandingWord::of(task.standing);
    let reasons: Vec<String> = task.reasons.iter().map(|reason| sentence(&clean(reason))).collect();
    vec![code(&short_name(&task.task)), format!("{} {}", standing.symbol, standing.title), reasons.join("; ")]
}
