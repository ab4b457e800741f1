//! One task with everything that rules may ask about it.

use isobench_schema::assessment::{DeviceNeed, Finding, RevisionFacts, Severity};
use isobench_schema::commit_task::CommitTask;
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use isobench_schema::measurement::MetricName;
use isobench_schema::workload::Workload;

use super::given::Given;
use super::registry;
use super::traits::Traits;
use crate::knowledge::Knowledge;
use crate::knowledge::devices::DeviceRow;

/// One task, and what is known of it. What isn't known is absent, and rules that need it find nothing.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// The task.
    pub task: &'a CommitTask,
    /// The baseline.
    pub baseline: Option<&'a RevisionFacts>,
    /// The human commit.
    pub human: Option<&'a RevisionFacts>,
    /// What the command says, if it could be read.
    pub given: Option<&'a Given>,
    /// What is known of the model.
    pub traits: Option<&'a Traits>,
    /// The workload.
    pub workload: Option<&'a Workload>,
    /// The primary metric, if one is chosen.
    pub primary: Option<MetricName>,
    /// What a launch needs.
    pub need: Option<&'a DeviceNeed>,
    /// The kind of device that is planned for.
    pub device: Option<&'a DeviceRow>,
    /// How many of them; absent: any number.
    pub devices: Option<u32>,
    /// How many requests a second the planned devices can serve at most.
    pub service_rate_per_s: Option<f64>,
    /// The tables.
    pub knowledge: &'a Knowledge,
}

impl<'a> Case<'a> {
    /// Returns the baseline's place in time; the human commit's if the baseline's isn't known.
    pub fn moment(&self) -> Option<&'a Moment> {
        self.baseline.or(self.human).map(|facts| &facts.committed)
    }

    /// Returns the commit's subject line.
    pub fn subject(&self) -> Option<&'a str> {
        let task = self.task.subject.as_deref();
        self.human.map(|facts| facts.subject.as_str()).filter(|subject| !subject.is_empty()).or(task)
    }

    /// Returns the files that the commit changes; none if they aren't known.
    pub fn files(&self) -> &'a [String] {
        match self.human.and_then(|facts| facts.files_changed.as_deref()) {
            Some(files) => files,
            None => &self.task.files_changed,
        }
    }

    /// Returns the model that is measured: the command's, or else the row's.
    pub fn model(&self) -> Option<&'a str> {
        self.given.and_then(|given| given.model.as_deref()).or(self.task.model.as_deref())
    }

    /// Returns whether the task's engine is this one.
    pub(super) fn is(&self, engine: EngineKind) -> bool {
        self.task.engine == engine
    }
}

/// Returns a finding of a rule, as severe as the rule says.
pub(crate) fn finding(rule: &str, subject: impl Into<String>, message: impl Into<String>) -> Finding {
    let severity = registry::rule(rule).map_or(Severity::Warning, |rule| rule.severity);
    let fix = registry::rule(rule).map_or_else(String::new, |rule| rule.fix.clone());
    Finding {
        rule: rule.to_owned(),
        severity,
        message: message.into(),
        subject: subject.into(),
        evidence: Vec::new(),
        fix,
        repaired: false,
    }
}
