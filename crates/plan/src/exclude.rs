//! What can't be run with the facts at hand, and why.

use std::collections::BTreeMap;

use isobench_schema::environment::{Isolation, Python};
use isobench_schema::facts::{Facts, Host, ResolvedRevision};
use isobench_schema::failure::FailureClass;
use isobench_schema::ids::{ArmId, CommitId, Revision, TaskId};
use isobench_schema::images::PlannedImage;
use isobench_schema::plan::{Exclusion, ExclusionReason};
use isobench_schema::task::Task;
use isobench_schema::units::size_text;

use crate::choose;
use crate::planner::PlanOptions;

/// MiB in a GiB.
const MIB_PER_GIB: f64 = 1024.0;

/// Why something isn't run: the reason and a sentence.
pub(crate) type Why = (ExclusionReason, String);

/// Returns the exclusion of a whole task.
pub(crate) fn task(id: &TaskId, (reason, message): Why) -> Exclusion {
    Exclusion { task: id.clone(), arm: None, reason, message }
}

/// Returns the exclusion of one arm.
pub(crate) fn arm(id: &TaskId, arm: &ArmId, (reason, message): Why) -> Exclusion {
    Exclusion { task: id.clone(), arm: Some(arm.clone()), reason, message }
}

/// Returns why the machine is too small for a task. What isn't known of a machine is no reason.
pub(crate) fn machine(task: &Task, host: &Host) -> Option<Why> {
    let too_small = |what: String| Some((ExclusionReason::MachineTooSmall, what));
    let needs = &task.requirements;
    let devices = host.devices.len();
    if usize::try_from(needs.devices).unwrap_or(usize::MAX) > devices {
        return too_small(format!(
            "task `{}` needs {} accelerators, the machine has {devices}",
            task.id, needs.devices
        ));
    }
    let amounts =
        [("of memory", needs.memory_gib, host.memory_mib), ("of free disk", needs.disk_gib, host.disk_free_mib)];
    for (what, needed_gib, has_mib) in amounts {
        let (Some(needed_gib), Some(has_mib)) = (needed_gib, has_mib) else { continue };
        #[expect(clippy::cast_precision_loss, reason = "no machine has 2^53 MiB")]
        let has_gib = has_mib as f64 / MIB_PER_GIB;
        if needed_gib > has_gib {
            return too_small(format!(
                "task `{}` needs {needed_gib} GiB {what}, the machine has {has_gib:.1} GiB",
                task.id
            ));
        }
    }
    None
}

/// Returns which program that a task's environments need isn't on the machine. A machine of which no program is known is no
/// reason.
pub(crate) fn tools(task: &Task, host: &Host) -> Option<Why> {
    let lacks = |tool: &str| !host.tools.is_empty() && !host.tools.contains_key(tool);
    let missing = |what: &str| Some((ExclusionReason::ToolMissing, format!("task `{}` needs {what}", task.id)));
    match &task.environment.python {
        Python::System if lacks("python3") => missing("`python3`, which is not on this machine"),
        Python::Venv(venv) if lacks("uv") && !venv.overrides.is_empty() => missing(
            "`uv` for its `environment.overrides`, and it is not on this machine; install it, for example with `python3 -m pip install uv`",
        ),
        Python::Venv(_) if lacks("uv") && lacks("python3") => {
            missing("`uv` or `python3`, and neither is on this machine")
        }
        Python::Absent | Python::System | Python::Venv(_) | Python::Image(_) => None,
    }
}

/// Returns why engines that run on an image can't: without containers there is nothing to run it.
pub(crate) fn containers(task: &Task, options: &PlanOptions) -> Option<Why> {
    let is_image = matches!(task.environment.python, Python::Image(_));
    let message = match &options.container {
        None if is_image => format!(
            "task `{}` runs in images, and engines would run as bare processes; give `--isolation container`",
            task.id
        ),
        Some(container) if !is_image && container.image.is_none() => {
            format!("task `{}` names no image, and its engine would run in a container; give `--image IMAGE`", task.id)
        }
        None | Some(_) => return None,
    };
    Some((ExclusionReason::IsolationMissing, message))
}

/// Returns why a task's images can never be on the disk that they are kept on, if so. A disk of which nothing is known is no
/// reason.
pub(crate) fn image_disk(task: &Task, images: &[PlannedImage], facts: &Facts, options: &PlanOptions) -> Option<Why> {
    let has = facts.image_disk_mib?.saturating_mul(1 << 20);
    let (fetched, needed) = (PlannedImage::bytes_of(images), PlannedImage::room_of(images));
    if needed.saturating_add(options.disk_floor_bytes) <= has {
        return None;
    }
    let message = format!(
        "the images of task `{}`, {} to fetch, need about {} of the disk that images are kept on, which has {} in all, and {} are left free",
        task.id,
        size_text(fetched),
        size_text(needed),
        size_text(has),
        size_text(options.disk_floor_bytes)
    );
    Some((ExclusionReason::MachineTooSmall, message))
}

/// Returns the digests of a task's inputs by path, or why one is missing.
pub(crate) fn inputs(task: &Task, facts: &Facts) -> Result<BTreeMap<String, String>, Why> {
    let missing = |path: &str, what: &str| {
        let key = if path == task.server.model { "server.model" } else { "workload" };
        Err((ExclusionReason::InputMissing, format!("`{path}`, which `{key}` names, {what}")))
    };
    let digest = |path: &str| match facts.inputs.get(path) {
        Some(Some(digest)) => Ok((path.to_owned(), digest.clone())),
        Some(None) => missing(path, "does not exist"),
        None => missing(path, "was not looked up for these facts"),
    };
    choose::input_paths(task).map(digest).collect()
}

/// Returns the commit of a revision, or why it can't be had.
pub(crate) fn commit(facts: &Facts, repository: &str, revision: &Revision) -> Result<CommitId, Why> {
    match facts.revisions.get(repository).and_then(|revisions| revisions.get(revision.as_str())) {
        Some(ResolvedRevision::Found { commit }) => Ok(commit.clone()),
        Some(ResolvedRevision::Missing { failure }) => {
            let (reason, next) = if failure.class == FailureClass::RepositoryUnavailable {
                let next = "; `repository` must be a URL or a folder, relative to the task's own";
                (ExclusionReason::RepositoryUnavailable, next)
            } else {
                (ExclusionReason::RevisionNotFound, "")
            };
            Err((reason, format!("revision `{revision}` of `{repository}`: {}{next}", failure.message)))
        }
        None => {
            let message = format!("revision `{revision}` of `{repository}` was not looked up for these facts");
            Err((ExclusionReason::RevisionNotFound, message))
        }
    }
}

/// Returns why agents' patches may not run, if they may not.
pub(crate) fn isolation(options: &PlanOptions) -> Option<Why> {
    // What is built for an engine in a container is built in one as well.
    let level = Isolation::of(options.container.as_ref());
    if level == Isolation::Container {
        return None;
    }
    let what = "the patch is a stranger's program and would run";
    let why = format!("{what} with isolation `{level}`; to run it all the same, give `--allow-unisolated`");
    (!options.allow_unisolated).then_some((ExclusionReason::IsolationMissing, why))
}
