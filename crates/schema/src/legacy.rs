//! What result files of earlier benchmark systems say: kept as *legacy evidence*, with what is wrong with their numbers.
//!
//! Such a file names no host, driver, client or workload, so that nothing tells whether two of its numbers may be
//! compared. The type says so: a [`LegacyRecord`] holds no comparability key and no measurement, and nothing that judges
//! takes one. Only the named rules of the earlier system, such as `threshold:5%`, can be applied to it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::assessment::Finding;
use crate::cause::Cause;
use crate::coverage::Coverage;
use crate::failure::spelt_enum;
use crate::format::Stored;
use crate::ids::ArmId;
use crate::plan::Problem;

spelt_enum!(
    /// Which system left a result, by the shape of its file.
    LegacySource {
        /// `baseline_`, `human_` or `agent_…_result.json`: one object for each commit and arm, its metrics in `metrics`.
        ThreeWay = "three-way",
        /// `benchmark_result.json`: one object for each commit, the arms in `baseline_metrics`, `human_metrics` and
        /// `agent_metrics`.
        Modal = "modal",
        /// A flat object for each commit with its metrics beside the other fields.
        Docker = "docker",
        /// Like `three-way`, from a runner without containers, which says `"runner": "native"`.
        Native = "native",
        /// A row of the published data set: the arms as columns such as `human_ttft_mean`.
        HfRow = "hf-row",
        /// A row of a report on failures: commit, status, command and the raw error, without numbers.
        ErrorReport = "error-report",
    }
);

spelt_enum!(
    /// A status in the words of the earlier systems, all of them together.
    LegacyStatus {
        /// The system says that it worked, which proves nothing.
        Success = "success",
        /// It failed in one way or another.
        Error = "error",
        /// It wasn't finished in time.
        Timeout = "timeout",
        /// The system itself failed.
        Exception = "exception",
        /// The baseline gave no numbers or didn't start.
        BaselineFailed = "baseline_failed",
        /// The human side gave no numbers or didn't start.
        HumanFailed = "human_failed",
        /// The human side's wheel can't be had.
        HumanWheelFailed = "human_wheel_failed",
        /// The agent's side gave no numbers or didn't start.
        AgentFailed = "agent_failed",
        /// The benchmark ran, and no number was found in what it printed.
        NoMetrics = "no_metrics",
        /// The engine's version is one that the system refuses.
        VersionBug = "version_bug",
        /// The model is one that the system refuses.
        BlockedModel = "blocked_model",
        /// The task names no command.
        NoPerfCommand = "no_perf_command",
        /// No wheel of the baseline is kept.
        NoWheel = "no_wheel",
        /// The agent left no patch.
        NoPatch = "no_patch",
        /// The agent's patch is empty.
        EmptyPatch = "empty_patch",
        /// The patch doesn't apply.
        PatchFailed = "patch_failed",
        /// The task has no test.
        NoTest = "no_test",
        /// The commit has no parent.
        NoParentCommit = "no_parent_commit",
        /// There is no image of the revision.
        ImageNotFound = "image_not_found",
        /// The container couldn't be prepared.
        SetupFailed = "setup_failed",
        /// The server didn't start.
        ServerFailed = "server_failed",
        /// The client failed.
        BenchmarkFailed = "benchmark_failed",
        /// The agent ran out of steps.
        MaxStepsExceeded = "max_steps_exceeded",
        /// It failed, and the system says no more.
        Failed = "failed",
    }
);

/// A status as it is written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WrittenStatus {
    /// One of the words that the earlier systems are known to use.
    Known(LegacyStatus),
    /// Any other word.
    Other(String),
}

impl WrittenStatus {
    /// Returns the status that is written so.
    pub fn of(text: &str) -> Self {
        LegacyStatus::parse(text).map_or_else(|| Self::Other(text.to_owned()), Self::Known)
    }

    /// Returns the word as it is written.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Known(status) => status.as_str(),
            Self::Other(text) => text,
        }
    }

    /// Returns whether the system says that it worked.
    pub fn is_success(&self) -> bool {
        matches!(self, Self::Known(LegacyStatus::Success))
    }
}

spelt_enum!(
    /// The unit that a number really has, as far as that is known.
    LegacyUnit {
        /// Milliseconds.
        Milliseconds = "ms",
        /// Seconds.
        Seconds = "s",
        /// Tokens per second, of whichever tokens.
        TokensPerSecond = "tok/s",
        /// Requests per second.
        RequestsPerSecond = "req/s",
        /// A percentage, or a difference in percent.
        Percent = "%",
        /// A number of things.
        Count = "count",
        /// It doesn't show.
        Unknown = "unknown",
    }
);

impl LegacyUnit {
    /// Returns whether numbers of it are measured times and rates, which neither are zero nor agree to the digit by chance.
    pub fn is_measured(self) -> bool {
        match self {
            Self::Milliseconds | Self::Seconds | Self::TokensPerSecond | Self::RequestsPerSecond | Self::Unknown => {
                true
            }
            Self::Percent | Self::Count => false,
        }
    }
}

/// One number of a result file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyMetric {
    /// The key as it is written.
    pub key: String,
    /// The number as it is written; absent if what is written isn't a finite number.
    pub value: Option<f64>,
    /// What is written instead of a number, such as `"N/A"` or `NaN`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written: Option<Value>,
    /// The unit that the number really has.
    pub unit: LegacyUnit,
}

spelt_enum!(
    /// What is wrong with the numbers of a record, or speaks against them.
    LegacyFlag {
        /// Requests per second under a key of tokens per second.
        RequestRateAsTokenRate = "request-rate-as-token-rate",
        /// Seconds under a key of milliseconds.
        SecondsAsMilliseconds = "seconds-as-milliseconds",
        /// What the engine's own log says while it runs, taken for a result.
        EngineLogAsResult = "engine-log-as-result",
        /// The time to the first token is above the time of the whole request.
        TtftAboveLatency = "ttft-above-latency",
        /// A zero, or less, where nothing can be that was measured.
        ZeroForMissing = "zero-for-missing",
        /// Text such as `N/A` where a number belongs.
        TextForNumber = "text-for-number",
        /// `NaN` or an infinity where a number belongs.
        NotFinite = "not-finite",
        /// The same number in two arms to the last digit.
        EqualAcrossArms = "equal-across-arms",
        /// Other records are of the same commit and arm with other numbers, and nothing says which counts.
        SeveralOfOneArm = "several-of-one-arm",
        /// The status says that it worked, and there is no number.
        SuccessWithoutMetrics = "success-without-metrics",
        /// The status says that it failed, and there are numbers.
        MetricsWithoutSuccess = "metrics-without-success",
        /// The status is none that the earlier systems are known to use.
        UnknownStatus = "unknown-status",
        /// The unit of a number doesn't show.
        UnknownUnit = "unknown-unit",
    }
);

/// One thing that is wrong with a record, or speaks against it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyRemark {
    /// What.
    pub flag: LegacyFlag,
    /// The keys that it is about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// What was seen, in one sentence: a lower-case fragment without a full stop.
    pub message: String,
}

/// What a result file says of one arm of one commit, or of the commit as a whole. It is evidence, not a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyRecord {
    /// The file, as it was given.
    pub file: String,
    /// The row in the file, from 1; absent in a file of one object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub row: Option<u64>,
    /// Which system left it.
    pub source: LegacySource,
    /// The project, such as `vllm`, where the file or its folder names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The commit, as it is written: its first digits, or the whole id.
    pub commit: String,
    /// The whole id, where it is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit_full: Option<String>,
    /// The revision before it, as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The arm; absent if the record speaks of the commit as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arm: Option<ArmId>,
    /// The status as it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<WrittenStatus>,
    /// The model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The benchmark's command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Versions by what they are of, such as `vllm` or `baseline`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// How long it is said to have taken, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_s: Option<f64>,
    /// When it was written, in the words of the file: no time zone is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<String>,
    /// The error, verbatim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The numbers, by key.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<LegacyMetric>,
    /// What is wrong with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<LegacyRemark>,
    /// Every other field, as it is written.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub other: Map<String, Value>,
}

impl LegacyRecord {
    /// Returns whether at least one finite number is there.
    pub fn has_numbers(&self) -> bool {
        self.metrics.iter().any(|metric| metric.value.is_some())
    }

    /// Returns whether the status says that it worked.
    pub fn says_success(&self) -> bool {
        self.status.as_ref().is_some_and(WrittenStatus::is_success)
    }

    /// Returns the record's name: the commit's first eight digits, and the arm.
    pub fn name(&self) -> String {
        self.arm.as_ref().map_or_else(|| self.short().to_owned(), |arm| format!("{} {arm}", self.short()))
    }

    /// How many digits a commit is called by.
    pub const SHORT: usize = 8;

    /// Returns the first digits of the commit, by which it is called.
    pub fn short(&self) -> &str {
        self.commit.get(..Self::SHORT).unwrap_or(&self.commit)
    }
}

/// The first line of a file of legacy evidence. One [`LegacyRecord`] a line follows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyHeader {
    /// What was imported, as it was given.
    pub source: String,
    /// How many files were read.
    pub files: u64,
    /// How many records follow.
    pub records: u64,
    /// What can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

impl Stored for LegacyHeader {
    const NAME: &'static str = "legacy-evidence";
    const VERSION: u32 = 1;
}

spelt_enum!(
    /// A category of the report of 2026-01-02 on 94 commits.
    LegacyCategory {
        /// A whole comparison of three arms.
        Success = "SUCCESS",
        /// No wheel of the baseline or of an ancestor is kept.
        WheelNotFound = "S3_WHEEL_404",
        /// The benchmark ran, and no number was found.
        NoMetrics = "BASELINE_NO_METRICS",
        /// The container was gone before anything began.
        BrokenPipe = "BROKEN_PIPE",
        /// The server didn't start, and its log is there.
        ServerStartupFailed = "SERVER_STARTUP_FAILED",
        /// The system refused the engine's version for a bug in how it takes its port.
        PortBug = "VLLM_0.6.X_PORT_BUG",
        /// A wheel's address was tried and isn't there.
        WheelInstallFailed = "WHEEL_INSTALL_FAILED",
        /// Anything else.
        Other = "OTHER",
        /// The task names no command.
        NoPerfCommand = "NO_PERF_COMMAND",
    }
);

/// How many records a category has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CategoryCount {
    /// The category.
    pub category: LegacyCategory,
    /// How many.
    pub count: u64,
}

/// A record's category, and what is known of its cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CategoryRow {
    /// The commit, by its first eight digits.
    pub commit: String,
    /// The category that the report puts it into.
    pub category: LegacyCategory,
    /// The cause that its error text shows, if that was looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// What is wrong with its command, if that was looked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
}

/// The categories of the report of 2026-01-02 beside our own causes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Taxonomy {
    /// Every category in the report's order, also one that no record has.
    pub counts: Vec<CategoryCount>,
    /// The records.
    pub rows: Vec<CategoryRow>,
}

spelt_enum!(
    /// The class of one agent's result by a threshold on its difference to the human side.
    HardClass {
        /// Better by more than the threshold.
        Beats = "beats",
        /// Within the threshold.
        Similar = "similar",
        /// Worse by more than the threshold, or the agent's side failed.
        Worse = "worse",
        /// There is no number.
        NoData = "NO_DATA",
    }
);

spelt_enum!(
    /// A result by its class and by whether the agent worked on what the human change is about.
    Quadrant {
        /// At least similar, by working on the right thing.
        TrueSuccess = "Q1",
        /// Not similar, though it worked on the right thing.
        GoodIntent = "Q2",
        /// At least similar, though it worked on something else.
        LuckyWin = "Q3",
        /// Neither.
        Failure = "Q4",
    }
);

/// How many records of one shape have one status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusCount {
    /// The shape.
    pub source: LegacySource,
    /// The status as it is written; absent where none is.
    pub status: Option<WrittenStatus>,
    /// How many records.
    pub records: u64,
    /// How many of them hold a number.
    pub with_numbers: u64,
}

/// The records with one flag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlagCount {
    /// The flag.
    pub flag: LegacyFlag,
    /// What is said of the first of them.
    pub example: String,
    /// The records, by name.
    pub names: Vec<String>,
}

/// What legacy evidence comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LegacyReport {
    /// What was imported.
    pub source: String,
    /// How many files were read.
    pub files: u64,
    /// How many records there are.
    pub records: u64,
    /// Records by shape and status, the commonest first.
    pub statuses: Vec<StatusCount>,
    /// What is wrong with the numbers, the commonest first.
    pub flags: Vec<FlagCount>,
    /// The old categories; absent if no record speaks of a commit as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taxonomy: Option<Taxonomy>,
    /// How far the records came.
    pub coverage: Coverage,
    /// What can't be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<Problem>,
}

impl Stored for LegacyReport {
    const NAME: &'static str = "legacy-report";
    const VERSION: u32 = 1;
}
