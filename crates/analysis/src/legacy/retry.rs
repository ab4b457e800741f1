//! What running a failed record again would need.

use isobench_schema::assessment::{Finding, Severity};
use isobench_schema::cause::{Cause, FixKind};
use isobench_schema::coverage::RetryActor;

use super::coverage::Explained;
use crate::coverage::{Loss, Retry, actor};

/// Returns what a retry needs: what is known of the cause, or else of the class. A command that its revision's parser
/// refuses has to be mended whatever happened: with it nothing else helps.
pub(super) fn retry(explained: &Explained, loss: &Loss) -> Retry {
    // Texts that only point to another log tell less than the class.
    let tells = |cause: &&Cause| cause.signature.is_some() && cause.fix.kind != FixKind::LookElsewhere;
    let known = explained.cause.as_ref().filter(tells);
    let needed = known.map_or_else(|| by_class(&loss.class), by_cause);
    let wrong = explained.findings.iter().find(|finding| finding.severity == Severity::Error);
    match wrong {
        None => needed,
        Some(finding) if finding.repaired => with_repair(&needed),
        Some(finding) => by_finding(finding),
    }
}

/// Returns what is needed beside the repair of the command, or that alone where nothing else is known to be.
fn with_repair(needed: &Retry) -> Retry {
    match needed.fix {
        FixKind::Recipe | FixKind::Devices | FixKind::Build | FixKind::Machine => {
            let change =
                format!("{}; its command is refused as it is written, too, and the plan repairs it", needed.change);
            Retry { fix: needed.fix, change, actor: needed.actor }
        }
        FixKind::Option | FixKind::DatasetEdit | FixKind::Retry | FixKind::LookElsewhere | FixKind::None => {
            let change = "run it with the command that the plan repairs: its own is refused".to_owned();
            Retry { fix: FixKind::Option, change, actor: RetryActor::Isobench }
        }
    }
}

fn by_finding(finding: &Finding) -> Retry {
    Retry { fix: FixKind::DatasetEdit, change: finding.fix.clone(), actor: RetryActor::Dataset }
}

fn by_cause(cause: &Cause) -> Retry {
    let fix = if cause.transient { FixKind::Retry } else { cause.fix.kind };
    Retry { fix, change: cause.fix.advice.clone(), actor: actor(fix) }
}

fn by_class(class: &str) -> Retry {
    let (fix, change) = match class {
        "wheel-not-found" | "image-not-found" => {
            (FixKind::Build, "build the revision, or put its Python files on an equal native build")
        }
        "no-command" => (FixKind::DatasetEdit, "give the task a command or a workload"),
        "command-malformed" => (FixKind::DatasetEdit, "put values in the place of the words that were never replaced"),
        "no-parent" => (FixKind::DatasetEdit, "name the revision before the commit"),
        "broken-pipe" | "git-timeout" => (FixKind::Retry, "run it again as it is"),
        "version-refused" => (FixKind::Retry, "run it: the version was refused without being tried"),
        "model-refused" => (FixKind::Devices, "plan it for as many devices as the model needs"),
        "timeout" => (FixKind::Option, "give it a deadline by the size of its model and workload"),
        "no-patch" | "patch-rejected" | "agent-failed" => {
            (FixKind::None, "it is the agent's result, and counts as one")
        }
        "success-without-metrics" => (FixKind::Retry, "run it again: what it printed wasn't kept"),
        "no-metrics" => (FixKind::LookElsewhere, "see why nothing was printed: its output wasn't kept"),
        "server-not-started" => (FixKind::LookElsewhere, "see why the server didn't start: its log tells"),
        _ => (FixKind::LookElsewhere, "see why it failed: the record doesn't tell"),
    };
    Retry { fix, change: change.to_owned(), actor: actor(fix) }
}
