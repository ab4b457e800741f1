//! Where a record was lost before it had numbers.

use isobench_schema::cause::CauseStage;
use isobench_schema::coverage::CoverageStage;
use isobench_schema::ids::ArmId;
use isobench_schema::legacy::{LegacyCategory, LegacyRecord, LegacySource, LegacyStatus, WrittenStatus};

use super::category::category;
use super::coverage::Explained;
use crate::coverage::Loss;

/// Returns where a record was lost and why; `None` if it has numbers, or is a report's row that says that it had.
pub(super) fn before_numbers(explained: &Explained) -> Option<Loss> {
    let record = &explained.record;
    if record.has_numbers() || (record.source == LegacySource::ErrorReport && record.says_success()) {
        return None;
    }
    by_cause(explained).or_else(|| Some(by_text(record)))
}

/// The stage that isn't reached by what failed at a stage of a cause; `None` where the cause doesn't say.
fn not_reached(stage: CauseStage) -> Option<CoverageStage> {
    match stage {
        CauseStage::Dataset => Some(CoverageStage::Command),
        CauseStage::Acquire | CauseStage::Install | CauseStage::Build => Some(CoverageStage::Environment),
        CauseStage::Import
        | CauseStage::Configure
        | CauseStage::Download
        | CauseStage::Start
        | CauseStage::Load
        | CauseStage::Memory
        | CauseStage::Capture => Some(CoverageStage::Served),
        CauseStage::Serve
        | CauseStage::ClientArguments
        | CauseStage::ClientData
        | CauseStage::ClientRun
        | CauseStage::Parse => Some(CoverageStage::Measured),
        CauseStage::Harness | CauseStage::Unknown => None,
    }
}

fn by_cause(explained: &Explained) -> Option<Loss> {
    let cause = explained.cause.as_ref().filter(|cause| cause.signature.is_some())?;
    Some(Loss { stage: not_reached(cause.stage)?, class: cause.class.clone(), reason: cause.cause.clone() })
}

fn loss(stage: CoverageStage, class: &str, reason: &str) -> Loss {
    Loss { stage, class: class.to_owned(), reason: reason.to_owned() }
}

/// Says by status and error text what a record can't say better.
fn by_text(record: &LegacyRecord) -> Loss {
    use CoverageStage as S;
    let error = record.error.as_deref().unwrap_or_default();
    let says = |text: &str| error.contains(text);
    match category(record) {
        LegacyCategory::NoPerfCommand => loss(S::Command, "no-command", "the row names no command"),
        LegacyCategory::WheelNotFound | LegacyCategory::WheelInstallFailed => {
            loss(S::Environment, "wheel-not-found", "no wheel of the baseline is kept")
        }
        LegacyCategory::BrokenPipe => {
            loss(S::Environment, "broken-pipe", "the container was gone before anything began, and left no word")
        }
        LegacyCategory::PortBug => {
            loss(S::Served, "version-refused", "the system refused the engine's version before it tried it")
        }
        LegacyCategory::ServerStartupFailed => loss(S::Served, "server-not-started", "the server didn't start"),
        LegacyCategory::NoMetrics if says("server failed to start") => {
            loss(S::Served, "server-not-started", "the server didn't start")
        }
        LegacyCategory::NoMetrics => {
            loss(S::Measured, "no-metrics", "the benchmark ran, and no number was found in what it printed")
        }
        LegacyCategory::Other if says("blocked model") => {
            loss(S::Environment, "model-refused", "the system refused the model as too large")
        }
        LegacyCategory::Other if says("malformed perf command") => {
            loss(S::Command, "command-malformed", "the command has words that were never replaced")
        }
        LegacyCategory::Other if says("'git'") && says("timed out") => {
            loss(S::Environment, "git-timeout", "git wasn't finished in time")
        }
        LegacyCategory::Other | LegacyCategory::Success => by_status(record),
    }
}

/// Says by the words that the runners have for what they saw.
fn by_words(record: &LegacyRecord) -> Loss {
    use CoverageStage as S;
    let error = record.error.as_deref().unwrap_or_default();
    let says = |text: &str| error.contains(text);
    if says("after applying patch") && matches!(record.arm, Some(ArmId::Agent(_))) {
        loss(S::Served, "agent-failed", "the server crashed with the agent's patch")
    } else if says("Server crashed") || says("Server startup timeout") {
        loss(S::Served, "server-not-started", "the server didn't start")
    } else if says("metrics in output") {
        loss(S::Measured, "no-metrics", "the benchmark ran, and no number was found in what it printed")
    } else if says("timed out") {
        loss(S::Measured, "timeout", "it wasn't finished in time")
    } else {
        loss(S::Measured, "unexplained", "it failed, and the record doesn't say how")
    }
}

/// Says by the status alone.
fn by_status(record: &LegacyRecord) -> Loss {
    use CoverageStage as S;
    use LegacyStatus as T;
    let status = match &record.status {
        Some(WrittenStatus::Known(status)) => *status,
        Some(WrittenStatus::Other(_)) | None => {
            return loss(S::Measured, "no-metrics", "it holds no number, and no status says why");
        }
    };
    match status {
        T::Success => {
            loss(S::Measured, "success-without-metrics", "its status says that it worked, and it holds no number")
        }
        T::NoPerfCommand | T::NoTest => loss(S::Command, "no-command", "the row names no command"),
        T::NoWheel | T::HumanWheelFailed => loss(S::Environment, "wheel-not-found", "no wheel is kept"),
        T::ImageNotFound => loss(S::Environment, "image-not-found", "there is no image of the revision"),
        T::NoParentCommit => loss(S::Environment, "no-parent", "the revision before it isn't known"),
        T::NoPatch | T::EmptyPatch => loss(S::Environment, "no-patch", "the agent left no patch"),
        T::PatchFailed => loss(S::Environment, "patch-rejected", "the agent's patch doesn't apply"),
        T::MaxStepsExceeded => loss(S::Environment, "no-patch", "the agent ran out of steps"),
        T::SetupFailed => loss(S::Environment, "setup-failed", "the container couldn't be prepared"),
        T::BlockedModel => loss(S::Environment, "model-refused", "the system refused the model as too large"),
        T::VersionBug => loss(S::Served, "version-refused", "the system refused the engine's version"),
        T::ServerFailed => loss(S::Served, "server-not-started", "the server didn't start"),
        T::Timeout => loss(S::Measured, "timeout", "it wasn't finished in time"),
        T::AgentFailed => loss(S::Measured, "agent-failed", "the agent's side failed"),
        T::BenchmarkFailed | T::NoMetrics | T::BaselineFailed | T::HumanFailed => {
            loss(S::Measured, "no-metrics", "no number was found in what the benchmark printed")
        }
        T::Error | T::Exception | T::Failed => by_words(record),
    }
}
