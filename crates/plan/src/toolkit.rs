//! The container that a task's files are built in: whether there is one, of which image, and for which devices it compiles.

use std::collections::BTreeSet;

use isobench_schema::environment::{EngineKind, EnvironmentSpec, Toolkit};
use isobench_schema::facts::{Facts, FoundImage};
use isobench_schema::plan::ExclusionReason;
use isobench_schema::task::Task;

use crate::assess::Assessor;
use crate::choose::Selector;
use crate::dataset::Dataset;
use crate::exclude::Why;
use crate::image_names;
use crate::knowledge::Knowledge;
use crate::planner::PlanOptions;

/// The variable that tells builds of `PyTorch`'s extensions for which devices to compile.
const ARCHITECTURES: &str = "TORCH_CUDA_ARCH_LIST";

/// Returns the name of the image that a task is built in, if there is one that isn't the engine's.
///
/// One that the task names holds in any case; one for its version of CUDA only where engines run in containers too, since
/// else the task may be built on the machine itself as well.
fn name<'t>(task: &'t Task, options: &PlanOptions) -> Option<&'t str> {
    let choice = task.environment.toolkit.as_ref().filter(|_| builds(task))?;
    let by_cuda = || Knowledge::embedded().toolkits.of_cuda(choice.cuda.as_ref()?).map(|row| row.image.as_str());
    choice.image.as_deref().or_else(|| options.container.as_ref().and_then(|_| by_cuda()))
}

/// Returns whether anything of a task is built.
fn builds(task: &Task) -> bool {
    task.environment.native.is_some() || !task.environment.build.is_empty()
}

/// Returns the names of all images that a plan needs looked up, once the revisions are: those that engines run on, and those
/// that they are built in.
pub fn images_needed(dataset: &Dataset, facts: &Facts, options: &PlanOptions) -> BTreeSet<String> {
    let mut needed = BTreeSet::new();
    if options.container.is_some() {
        needed.extend(image_names::needed(dataset, &options.choice, facts));
    }
    let chosen = crate::choose::chosen(dataset, &options.choice);
    needed.extend(chosen.filter_map(|(task, _)| name(task, options)).map(str::to_owned));
    if options.container.is_none() {
        // Tasks of commits name no image themselves, only their version of CUDA.
        return needed;
    }
    let mut selector = Selector::new(&options.choice);
    let mut assessor = Assessor::new(facts, Knowledge::embedded(), &options.commits);
    for task in &dataset.commit_tasks {
        if selector.leave_commit(task).is_some() {
            continue;
        }
        let assessed = assessor.assess(task);
        if selector.take_commit(&task.id, assessed.kind()).is_none()
            && let Some(planned) = &assessed.task
        {
            needed.extend(name(&planned.0, options).map(str::to_owned));
        }
    }
    needed
}

/// Returns the container that a task is built in; none if it is built on the machine itself, or nothing is built.
///
/// # Errors
/// Returns why the image can't be had.
pub(crate) fn of(task: &Task, facts: &Facts, options: &PlanOptions) -> Result<Option<Toolkit>, Why> {
    if !builds(task) {
        return Ok(None);
    }
    let network = task.environment.toolkit.as_ref().is_some_and(|choice| choice.network);
    let missing = |why: String| Err((ExclusionReason::InputMissing, why));
    let image = match name(task, options) {
        None => match options.container.as_ref().and_then(|container| container.image.clone()) {
            None => return Ok(None),
            Some(image) => image,
        },
        Some(name) => match facts.environment_images.get(name) {
            Some(FoundImage::Found { image }) => image.clone(),
            Some(FoundImage::Missing { reason }) => {
                let next = "pull it, or name another one by `environment.toolkit.image`";
                return missing(format!(
                    "the image `{name}`, in which task `{}` is built, can't be had: {reason}; {next}",
                    task.id
                ));
            }
            None => {
                return missing(format!(
                    "the image `{name}`, in which task `{}` is built, was not looked up for these facts",
                    task.id
                ));
            }
        },
    };
    Ok(Some(Toolkit { image, network }))
}

/// Tells builds for which devices to compile, where the devices are known and the task doesn't say it: those that are planned
/// for, and no others, which would take many times as long.
pub(crate) fn add_architectures(spec: &mut EnvironmentSpec, facts: &Facts) {
    if spec.toolkit.is_none() && spec.engine == EngineKind::Generic {
        return;
    }
    let devices = &Knowledge::embedded().devices;
    let capability = |name: &str| devices.find(name)?.capability();
    let found: Option<BTreeSet<_>> = facts.host.devices.iter().map(|device| capability(&device.name)).collect();
    let Some(found) = found.filter(|found| !found.is_empty()) else { return };
    let list: Vec<String> = found.iter().map(|(major, minor)| format!("{major}.{minor}")).collect();
    let list = list.join(";");
    let add = |variables: &mut std::collections::BTreeMap<String, String>| {
        variables.entry(ARCHITECTURES.to_owned()).or_insert_with(|| list.clone());
    };
    if let Some(native) = &mut spec.native {
        add(&mut native.environment);
    }
    if !spec.build.is_empty() {
        add(&mut spec.build_environment);
    }
}
