//! The words of stages, of retries, and of what is wrong with legacy numbers.

use isobench_schema::cause::FixKind;
use isobench_schema::coverage::{Coverage, CoverageLoss, CoverageStage, RetryActor, RetryGroup};
use isobench_schema::legacy::{LegacyCategory, LegacyFlag};

use crate::text::clean;

/// What stands under every report on legacy evidence.
pub(crate) const NO_VERDICT: &str = "These files name no host, driver, client or workload, so that nothing tells whether two \
of their numbers may be compared. No statistical verdict is given on them; where a record is *decided*, it is by a named \
rule of the earlier system, such as threshold:5%, on single runs.";

/// Returns what it means to have reached a stage.
pub(crate) fn stage(stage: CoverageStage) -> &'static str {
    match stage {
        CoverageStage::Row => "in the data",
        CoverageStage::Command => "has a command",
        CoverageStage::Environment => "environment there",
        CoverageStage::Served => "server started",
        CoverageStage::Measured => "measured",
        CoverageStage::Comparable => "comparable",
        CoverageStage::Decided => "decided",
    }
}

/// Returns the name of a flag and what it means.
pub(crate) fn flag(flag: LegacyFlag) -> &'static str {
    match flag {
        LegacyFlag::RequestRateAsTokenRate => "requests per second under a key of tokens per second",
        LegacyFlag::SecondsAsMilliseconds => "seconds under a key of milliseconds",
        LegacyFlag::EngineLogAsResult => "the engine's own log taken for a result",
        LegacyFlag::TtftAboveLatency => "the first token later than the whole request",
        LegacyFlag::ZeroForMissing => "a zero or less where nothing was measured",
        LegacyFlag::TextForNumber => "text where a number belongs",
        LegacyFlag::NotFinite => "no finite number",
        LegacyFlag::EqualAcrossArms => "the same number in two arms to the last digit",
        LegacyFlag::SeveralOfOneArm => "one of several with other numbers for the same arm",
        LegacyFlag::SuccessWithoutMetrics => "\"success\" without a number",
        LegacyFlag::MetricsWithoutSuccess => "numbers without \"success\"",
        LegacyFlag::UnknownStatus => "a status that isn't known",
        LegacyFlag::UnknownUnit => "a number whose unit doesn't show",
    }
}

/// Returns a category in words.
pub(crate) fn category(category: LegacyCategory) -> &'static str {
    match category {
        LegacyCategory::Success => "three arms compared",
        LegacyCategory::WheelNotFound => "no wheel is kept",
        LegacyCategory::NoMetrics => "no number in what was printed",
        LegacyCategory::BrokenPipe => "the container was gone at once",
        LegacyCategory::ServerStartupFailed => "the server didn't start",
        LegacyCategory::PortBug => "the engine's version was refused",
        LegacyCategory::WheelInstallFailed => "a wheel couldn't be installed",
        LegacyCategory::Other => "anything else",
        LegacyCategory::NoPerfCommand => "the task has no command",
    }
}

/// What a retry can do for a group of failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryPart {
    /// The same again may well succeed.
    Again,
    /// It can succeed once something is changed.
    Changed,
    /// Somebody has to look first.
    Unclear,
    /// It can't change anything.
    Never,
}

impl RetryPart {
    /// Every part, in the order in which they are shown.
    pub(crate) const ALL: [Self; 4] = [Self::Again, Self::Changed, Self::Unclear, Self::Never];

    /// Returns where a group belongs.
    pub(crate) fn of(group: &RetryGroup) -> Self {
        match group.fix {
            FixKind::Retry => Self::Again,
            FixKind::Recipe
            | FixKind::Option
            | FixKind::Devices
            | FixKind::DatasetEdit
            | FixKind::Build
            | FixKind::Machine => Self::Changed,
            FixKind::LookElsewhere => Self::Unclear,
            FixKind::None => Self::Never,
        }
    }

    /// Returns the part's title.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Again => "may pass if run again as it is",
            Self::Changed => "can pass once something is changed",
            Self::Unclear => "somebody has to look first",
            Self::Never => "a retry changes nothing",
        }
    }

    /// Returns how many failures belong there.
    pub(crate) fn count(self, coverage: &Coverage) -> usize {
        let of = coverage.retries.iter().filter(|group| Self::of(group) == self);
        of.map(|group| group.names.len()).sum()
    }
}

/// Returns the kind of a change in words.
pub(crate) fn fix(fix: FixKind) -> &'static str {
    match fix {
        FixKind::Recipe => "recipe",
        FixKind::Option => "option",
        FixKind::Devices => "devices",
        FixKind::DatasetEdit => "dataset",
        FixKind::Build => "build",
        FixKind::Machine => "machine",
        FixKind::Retry => "again",
        FixKind::LookElsewhere => "look",
        FixKind::None => "none",
    }
}

/// Returns who makes a change.
pub(crate) fn actor(actor: RetryActor) -> &'static str {
    match actor {
        RetryActor::Isobench => "isobench",
        RetryActor::Dataset => "the dataset's keeper",
        RetryActor::Operator => "who runs the machines",
        RetryActor::Person => "a person",
        RetryActor::Nobody => "nobody",
    }
}

/// Returns why some things were lost; where their reasons differ, the first one's with the class of all.
pub(crate) fn reason(loss: &CoverageLoss) -> String {
    let first = clean(&loss.reason);
    if loss.differ { format!("{}, such as: {first}", clean(&loss.class)) } else { first }
}

/// Returns what would change some failures; where that differs, the first one's.
pub(crate) fn change(group: &RetryGroup) -> String {
    let first = clean(&group.change);
    if group.differ { format!("such as: {first}") } else { first }
}
