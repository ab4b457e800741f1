//! Why something failed, as the lines that it left say it.

use serde::{Deserialize, Serialize};

use crate::failure::spelt_enum;
use crate::ids::ArmId;

spelt_enum!(
    /// Where on its way something failed, finer than a launch's [`crate::failure::FailureStage`].
    CauseStage {
        /// The task itself can't be run as it is written.
        Dataset = "dataset",
        /// Getting a wheel, an image or a source.
        Acquire = "acquire",
        /// Installing packages.
        Install = "install",
        /// Compiling.
        Build = "build",
        /// Importing Python modules and native libraries.
        Import = "import",
        /// Reading the server's arguments and the model's configuration.
        Configure = "configure",
        /// Getting the model.
        Download = "download",
        /// Starting processes, devices and their communication.
        Start = "start",
        /// Loading weights.
        Load = "load",
        /// Reserving memory for the KV cache.
        Memory = "memory",
        /// Compiling kernels and capturing graphs.
        Capture = "capture",
        /// Serving, from the listening socket on.
        Serve = "serve",
        /// The benchmark client's arguments.
        ClientArguments = "client-arguments",
        /// The benchmark client's imports and data.
        ClientData = "client-data",
        /// The benchmark client's run.
        ClientRun = "client-run",
        /// Reading the result.
        Parse = "parse",
        /// What ran it all: its own pipes, checks and deadlines.
        Harness = "harness",
        /// It doesn't show.
        Unknown = "unknown",
    }
);

spelt_enum!(
    /// How sure a cause is.
    Confidence {
        /// The innermost error is one that has this cause only.
        High = "high",
        /// The error is known, but has other causes too, or follows from one that doesn't show.
        Medium = "medium",
        /// Only a consequence shows.
        Low = "low",
        /// Nothing that is known shows.
        None = "none",
    }
);

spelt_enum!(
    /// What kind of thing would mend it.
    FixKind {
        /// A recipe of the environment, which every arm gets.
        Recipe = "recipe",
        /// Another option or variable of server or client.
        Option = "option",
        /// More or other devices.
        Devices = "devices",
        /// The task must be edited.
        DatasetEdit = "dataset-edit",
        /// A build from source.
        Build = "build",
        /// The machine: its driver, disk, memory or limits.
        Machine = "machine",
        /// The same again.
        Retry = "retry",
        /// The cause lies in another log or another line.
        LookElsewhere = "look-elsewhere",
        /// Nothing.
        None = "none",
    }
);

spelt_enum!(
    /// Whom a failure speaks against, with the baseline as control.
    Blame {
        /// Every arm that got as far has it: the task, the environment or the machine.
        Shared = "shared",
        /// The baseline hasn't it, this arm has: its own change.
        Arm = "arm",
        /// It may pass, or has nothing to do with what is measured.
        Infrastructure = "infrastructure",
        /// There is no control that says more.
        Unclear = "unclear",
    }
);

/// What would mend it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fix {
    /// The kind.
    pub kind: FixKind,
    /// The recipes by id, where there are some.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recipes: Vec<String>,
    /// What to do, in one sentence: a lower-case fragment without a full stop.
    pub advice: String,
}

/// A line that shows a cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CauseLine {
    /// The file.
    pub file: String,
    /// The line, from 1; lines end with LF, a carriage return alone ends none.
    pub line: u64,
    /// The byte at which that line begins.
    pub offset: u64,
    /// What it says, shortened, without escape sequences.
    pub text: String,
}

/// Why something failed. What isn't known has no signature, and the lines that look most like an error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    /// Where on its way.
    pub stage: CauseStage,
    /// The class, such as `dependency-too-new`, or `unknown`.
    pub class: String,
    /// The row of the table of signatures, such as `B1`; absent if none fits.
    pub signature: Option<String>,
    /// The cause in one sentence: a lower-case fragment without a full stop.
    pub cause: String,
    /// The lines that show it, most telling first.
    pub evidence: Vec<CauseLine>,
    /// Whether the same again may well succeed.
    pub transient: bool,
    /// What would mend it.
    pub fix: Fix,
    /// How sure it is.
    pub confidence: Confidence,
    /// Signatures of what followed from it, in the order in which they were seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub consequences: Vec<String>,
    /// Which arms it hit, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<ArmId>,
    /// Whom it speaks against, where there are several arms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blame: Option<Blame>,
}

impl Cause {
    /// Returns whether logs of changed arms alone say that the machine is at fault: the baseline, which is the control, hasn't
    /// the cause. Who writes a log can write that into it.
    pub fn is_claim(&self) -> bool {
        self.blame == Some(Blame::Infrastructure) && !self.arms.contains(&ArmId::Baseline)
    }
}
