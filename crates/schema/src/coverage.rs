//! How far a number of things came on their way to a verdict, where they were lost and why, and what running them again
//! could change. The same for imported results and for a run of our own.

use serde::{Deserialize, Serialize};

use crate::cause::FixKind;
use crate::failure::spelt_enum;

spelt_enum!(
    /// A stage on the way to a verdict. Whoever reaches one has reached all before it.
    CoverageStage {
        /// There is a row for it.
        Row = "row",
        /// It has a command, or a workload, that can be run as it is written.
        Command = "command",
        /// Its environment was there: a wheel, an image or a build.
        Environment = "environment",
        /// Its server was ready, or its offline benchmark began.
        Served = "served",
        /// Numbers were left.
        Measured = "measured",
        /// The numbers may be compared with those of the other arms.
        Comparable = "comparable",
        /// A rule says which is better.
        Decided = "decided",
    }
);

/// What didn't reach a stage, for reasons of one class.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoverageLoss {
    /// The class, such as `wheel-not-found`.
    pub class: String,
    /// Why, in one sentence: a lower-case fragment without a full stop. The first one's, where they differ.
    pub reason: String,
    /// Whether the reasons of this class differ in what they name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub differ: bool,
    /// What was lost, by name.
    pub names: Vec<String>,
}

/// How many reached a stage, and why the others did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CoverageStep {
    /// The stage.
    pub stage: CoverageStage,
    /// How many reached it.
    pub reached: u64,
    /// Those that reached the stage before but not this one, the commonest reason first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost: Vec<CoverageLoss>,
}

spelt_enum!(
    /// Who can change what a retry needs changed.
    RetryActor {
        /// isobench, by itself: another plan of the same task does it.
        Isobench = "isobench",
        /// Whoever keeps the dataset.
        Dataset = "dataset",
        /// Whoever runs the machines.
        Operator = "operator",
        /// Somebody has to look first.
        Person = "person",
        /// Nobody.
        Nobody = "nobody",
    }
);

/// Failures of which the same may be expected of a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetryGroup {
    /// The class of the failure, such as `wheel-not-found`.
    pub class: String,
    /// What kind of thing would change it.
    pub fix: FixKind,
    /// What would change it, in one sentence: a lower-case fragment without a full stop. The first one's, where they differ.
    pub change: String,
    /// Whether the changes differ in what they name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub differ: bool,
    /// Who can.
    pub actor: RetryActor,
    /// The failures, by name.
    pub names: Vec<String>,
}

impl RetryGroup {
    /// Returns whether the same again, with nothing changed, may well succeed.
    pub fn is_transient(&self) -> bool {
        self.fix == FixKind::Retry
    }

    /// Returns whether a retry can succeed at all, once what it needs is changed.
    pub fn can_change(&self) -> bool {
        match self.fix {
            FixKind::Recipe
            | FixKind::Option
            | FixKind::Devices
            | FixKind::DatasetEdit
            | FixKind::Build
            | FixKind::Machine
            | FixKind::Retry => true,
            FixKind::LookElsewhere | FixKind::None => false,
        }
    }
}

/// How far a number of things came, and what running them again could change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Coverage {
    /// What is counted, in the plural: `records`, `tasks`.
    pub of: String,
    /// The stages, from the first on.
    pub steps: Vec<CoverageStep>,
    /// What a retry could change, by class, the commonest first.
    pub retries: Vec<RetryGroup>,
}

impl Coverage {
    /// Returns how many reached a stage; 0 for a stage that isn't listed.
    pub fn reached(&self, stage: CoverageStage) -> u64 {
        self.steps.iter().find(|step| step.stage == stage).map_or(0, |step| step.reached)
    }
}
