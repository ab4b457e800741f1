//! One category of a report beside what the program says of the same commits.

use std::collections::BTreeSet;

use isobench_schema::assessment::{Assessment, RungVerdict};
use isobench_schema::environment::Rung;
use isobench_schema::ids::ArmId;

use super::{Measure, Reported, ReportedCategory};
use crate::funnel::short_name;
use crate::number::{counted, gigabytes};
use crate::text::{clean, truncate};

/// How much of a command a reason shows.
const SHOWN_COMMAND: usize = 90;

/// The rule that finds that there is no command; what it doesn't find in is a command.
const NO_COMMAND: &str = "no-command";

/// A category, counted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Compared {
    /// How many of the report's commits the program puts into it.
    pub(super) here: usize,
    /// How many commits are in both.
    pub(super) both: usize,
    /// The commits on which they differ, in the dataset's order, those of the report first.
    pub(super) differences: Vec<Difference>,
}

/// A commit on which the report and the program differ.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// Its first eight digits.
    pub(super) commit: String,
    /// Who puts it into the category.
    pub(super) side: Side,
    /// Why the program differs.
    pub(super) why: String,
}

/// Who puts a commit into a category that the other doesn't.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Side {
    /// Only the report.
    Reported,
    /// Only the program; the report has it under another category.
    Here {
        /// That category's name.
        reported_as: Option<String>,
    },
}

impl Difference {
    /// Returns whether both say the same of two commits.
    pub(super) fn says_the_same(&self, other: &Self) -> bool {
        self.side == other.side && self.why == other.why
    }
}

/// Compares a category of a report with what is known of the same commits.
pub(super) fn compare(
    report: &Reported,
    category: &ReportedCategory,
    measure: &Measure,
    assessments: &[Assessment],
) -> Compared {
    let looked_at: BTreeSet<&str> =
        report.categories.iter().flat_map(|category| &category.commits).map(String::as_str).collect();
    let reported: BTreeSet<&str> = category.commits.iter().map(String::as_str).collect();
    let (mut only_reported, mut only_here) = (Vec::new(), Vec::new());
    let (mut here, mut both, mut known) = (0, 0, BTreeSet::new());
    for task in assessments {
        let commit = short_name(&task.task);
        if !looked_at.contains(commit.as_str()) {
            continue;
        }
        let is_reported = reported.contains(commit.as_str());
        match tell(measure, task) {
            Told::Yes(why) => {
                here += 1;
                both += usize::from(is_reported);
                if !is_reported {
                    let other = report.categories.iter().find(|other| other.commits.contains(&commit));
                    let side = Side::Here { reported_as: other.map(|other| other.name.clone()) };
                    only_here.push(Difference { commit: commit.clone(), side, why });
                }
            }
            Told::No(why) if is_reported => {
                only_reported.push(Difference { commit: commit.clone(), side: Side::Reported, why });
            }
            Told::No(_) => {}
        }
        known.insert(commit);
    }
    let unknown = category.commits.iter().filter(|commit| !known.contains(*commit));
    let missing = "the dataset has no task of it".to_owned();
    only_reported.extend(unknown.map(|commit| Difference {
        commit: commit.clone(),
        side: Side::Reported,
        why: missing.clone(),
    }));
    only_reported.extend(only_here);
    Compared { here, both, differences: only_reported }
}

/// Whether a task belongs to a category, and why.
enum Told {
    Yes(String),
    No(String),
}

fn tell(measure: &Measure, task: &Assessment) -> Told {
    match measure {
        Measure::Rules(rules) => by_rules(rules, task),
        Measure::DevicesAsked => match asked(task) {
            Some(devices) if devices > 1 => Told::Yes(format!("the command asks for {}", counted(devices, "device"))),
            Some(_) => Told::No("the command asks for one device".to_owned()),
            None => Told::No("the command asks for no number of devices".to_owned()),
        },
        Measure::TooLarge => needed(task, |devices, asked| devices != Some(1) && asked.is_none_or(|asked| asked < 2)),
        Measure::DevicesNeeded => {
            needed(task, |devices, asked| devices != Some(1) || asked.is_some_and(|asked| asked > 1))
        }
        Measure::Devices(number) => needed(task, |devices, _| devices == Some(*number)),
        Measure::NoWheel => by_wheel(task),
    }
}

fn asked(task: &Assessment) -> Option<u32> {
    task.need.as_ref().and_then(|need| need.asked_tensor_parallel)
}

fn by_rules(rules: &[String], task: &Assessment) -> Told {
    let found: Vec<String> = task
        .findings
        .iter()
        .filter(|finding| rules.contains(&finding.rule))
        .map(|finding| format!("{}{}", clean(&finding.message), if finding.repaired { " (repaired)" } else { "" }))
        .collect();
    if !found.is_empty() {
        return Told::Yes(found.join("; "));
    }
    Told::No(match &task.asked {
        Some(asked) => {
            let asked = clean(asked).replace('`', "'");
            let is_about_none = rules.iter().any(|rule| rule == NO_COMMAND);
            let found = if is_about_none { "" } else { ", in which no such thing is found" };
            format!("its command is `{}`{found}", truncate(&asked, SHOWN_COMMAND))
        }
        None => "the dataset gives no command".to_owned(),
    })
}

fn needed(task: &Assessment, belongs: impl Fn(Option<u32>, Option<u32>) -> bool) -> Told {
    let Some(need) = &task.need else {
        let reason = task.reasons.first().map_or_else(String::new, |reason| format!(": {}", clean(reason)));
        return Told::No(format!("what it needs isn't known{reason}"));
    };
    let weights = gigabytes(need.weights_gb);
    let model = clean(&need.model).replace('`', "'");
    let mut why = match need.devices {
        Some(devices) => format!("`{model}` has {weights} GB of weights and needs {}", counted(devices, "device")),
        None => format!("`{model}` has {weights} GB of weights and fits no number of these devices"),
    };
    if let Some(asked) = need.asked_tensor_parallel.filter(|asked| *asked > 1) {
        why.push_str(", the command asks for ");
        why.push_str(&asked.to_string());
    }
    if belongs(need.devices, need.asked_tensor_parallel) { Told::Yes(why) } else { Told::No(why) }
}

/// The reports looked for the baseline's wheel; an arm that shares its native files needs none of its own.
fn by_wheel(task: &Assessment) -> Told {
    let answers = task.ladder.get(&ArmId::Baseline).or_else(|| task.ladder.values().next());
    let Some(wheel) = answers.and_then(|answers| answers.iter().find(|answer| answer.rung == Rung::Wheel)) else {
        return Told::No("where its environments come from isn't known".to_owned());
    };
    match wheel.answer {
        RungVerdict::Refused => Told::Yes(clean(&wheel.reason)),
        RungVerdict::Taken | RungVerdict::NotNeeded => Told::No(clean(&wheel.reason)),
    }
}
