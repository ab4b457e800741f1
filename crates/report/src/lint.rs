//! Findings grouped and counted, and the texts of rules.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isobench_schema::assessment::{Assessment, Finding, Severity};
use isobench_schema::plan::Problem;

use crate::funnel::short_name;
use crate::number::counted;
use crate::text::clean;

/// How findings are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grouping {
    /// By task, in the dataset's order.
    Task,
    /// By rule, the commonest first.
    Rule,
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleText {
    /// Its id.
    pub id: String,
    /// How much its findings matter.
    pub severity: Severity,
    /// One line.
    pub title: String,
    /// What it means.
    pub meaning: String,
    /// Why it matters for what is measured.
    pub matters: String,
    /// An example.
    pub example: String,
    /// What to do about it.
    pub fix: String,
    /// Whether isobench mends it by itself, in one sentence.
    pub repairs: String,
    /// Where this is known from.
    pub source: String,
}

/// Findings as people see them.
pub(crate) struct LintView<'a> {
    /// The groups, each with its findings under a label.
    pub(crate) groups: Vec<Group<'a>>,
    /// How many there are of each severity.
    pub(crate) summary: String,
}

/// Findings of one task or of one rule.
pub(crate) struct Group<'a> {
    /// The task or the rule, with what is known of it.
    pub(crate) title: String,
    /// The findings.
    pub(crate) findings: Vec<Listed<'a>>,
}

/// A finding, and what the group's title doesn't say of it.
pub(crate) enum Listed<'a> {
    /// One task's finding, under its rule.
    OfRule(&'a Finding),
    /// A finding that several tasks share to the word.
    OfTasks(&'a Finding, Vec<String>),
}

impl<'a> LintView<'a> {
    /// Groups the findings of some tasks.
    pub(crate) fn new(assessments: &'a [Assessment], problems: &[Problem], grouping: Grouping) -> Self {
        let groups = match grouping {
            Grouping::Task => assessments.iter().filter(|task| !task.findings.is_empty()).map(of_task).collect(),
            Grouping::Rule => by_rule(assessments),
        };
        Self { groups, summary: Summary::of(assessments, problems).sentence() }
    }
}

fn of_task(task: &Assessment) -> Group<'_> {
    let subject = task.subject.as_ref().map(|subject| format!(": {}", clean(subject))).unwrap_or_default();
    let mut findings: Vec<&Finding> = task.findings.iter().collect();
    findings.sort_by_key(|finding| (finding.repaired, finding.severity));
    Group {
        title: format!("{}{subject}", clean(task.task.as_str())),
        findings: findings.into_iter().map(Listed::OfRule).collect(),
    }
}

fn by_rule(assessments: &[Assessment]) -> Vec<Group<'_>> {
    let mut rules: BTreeMap<&str, Vec<(&Assessment, &Finding)>> = BTreeMap::new();
    for task in assessments {
        for finding in task.findings.iter() {
            rules.entry(&finding.rule).or_default().push((task, finding));
        }
    }
    let mut rules: Vec<_> = rules.into_iter().collect();
    rules.sort_by(|a, b| b.1.len().cmp(&a.1.len()).then_with(|| a.0.cmp(b.0)));
    rules.into_iter().map(|(rule, findings)| of_rule(rule, &findings)).collect()
}

fn of_rule<'a>(rule: &str, findings: &[(&'a Assessment, &'a Finding)]) -> Group<'a> {
    let number = u64::try_from(findings.len()).unwrap_or(u64::MAX);
    let mut listed: Vec<(&Finding, Vec<String>)> = Vec::new();
    let mut places = BTreeMap::new();
    for (task, finding) in findings {
        let same = (&finding.message, &finding.fix, finding.severity, finding.repaired);
        let place = *places.entry(same).or_insert_with(|| {
            listed.push((finding, Vec::new()));
            listed.len() - 1
        });
        if let Some((_, tasks)) = listed.get_mut(place) {
            tasks.push(short_name(&task.task));
        }
    }
    listed.sort_by_key(|(finding, tasks)| (finding.repaired, finding.severity, std::cmp::Reverse(tasks.len())));
    Group {
        title: format!("{}: {}", clean(rule), counted(number, "finding")),
        findings: listed.into_iter().map(|(finding, tasks)| Listed::OfTasks(finding, tasks)).collect(),
    }
}

/// How many findings there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// Tasks.
    pub tasks: usize,
    /// Tasks with at least one finding.
    pub with_findings: usize,
    /// By severity, in its order: all, and of those the repaired ones.
    pub counts: [(Severity, usize, usize); 3],
    /// What couldn't be read.
    pub problems: usize,
}

impl Summary {
    /// Counts the findings of some tasks.
    pub fn of(assessments: &[Assessment], problems: &[Problem]) -> Self {
        let count = |severity: Severity| {
            let of =
                || assessments.iter().flat_map(|task| task.findings.iter()).filter(|found| found.severity == severity);
            (severity, of().count(), of().filter(|finding| finding.repaired).count())
        };
        Self {
            tasks: assessments.len(),
            with_findings: assessments.iter().filter(|task| !task.findings.is_empty()).count(),
            counts: [Severity::Error, Severity::Warning, Severity::Note].map(count),
            problems: problems.len(),
        }
    }

    /// Returns whether something couldn't be read, or an error is left that no repair takes care of.
    pub fn is_broken(&self) -> bool {
        self.problems > 0
            || self.counts.iter().any(|(severity, all, repaired)| *severity == Severity::Error && all > repaired)
    }

    /// Returns the counts in one sentence.
    pub fn sentence(&self) -> String {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let count = |(severity, all, repaired): &(Severity, usize, usize)| match repaired {
            0 => counted(number(*all), severity.as_str()),
            repaired => format!("{} ({repaired} repaired)", counted(number(*all), severity.as_str())),
        };
        let counts: Vec<String> = self.counts.iter().map(count).collect();
        let mut text =
            format!("{} in {} of {}", counts.join(", "), self.with_findings, counted(number(self.tasks), "task"));
        if self.problems > 0 {
            write!(text, "; {} could not be read", counted(number(self.problems), "row"))
                .expect("a String takes every write");
        }
        text
    }
}
