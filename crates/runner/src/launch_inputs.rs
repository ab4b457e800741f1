//! The inputs of a block: fetched or found, verified, and made into what its launches need.

use std::collections::BTreeMap;
use std::error::Error as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use isobench_loadgen::counting::Counting;
use isobench_loadgen::schedule::{Resources, ScheduleError, Schedules};
use isobench_loadgen::tokenizer::Tokenizer;
use isobench_schema::block::BlockSpec;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::input::{InputRole, InputSource, PlannedInput};

use crate::block::{BlockContext, RunBlockError};
use crate::environment::PrepareContext;
use crate::inputs::Held;
use crate::sink::Sink;

/// The deadline by which the patience for locks of other processes is reckoned: fetching a large model takes hours.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The inputs of a block's launches.
#[derive(Debug)]
pub(crate) struct LaunchInputs {
    /// The folders of repositories, by the names that the task gives them.
    pub(crate) folders: BTreeMap<String, PathBuf>,
    /// Counts tokens where the model's tokenizer does it.
    pub(crate) counting: Counting,
    /// Keeps the inputs from being pruned.
    _held: Vec<Held>,
}

/// What a block needs before its first launch.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) inputs: LaunchInputs,
    /// What is sent, or why it can't be made; none where a benchmark script makes its own requests.
    pub(crate) schedules: Result<Option<Schedules>, Failure>,
}

/// Gets the inputs of a block.
///
/// # Errors
/// Returns an error if this machine can't do the work, or the workload can't be sent whatever its inputs are; an input that
/// can't be had is the failure of every launch.
pub(crate) fn ready(spec: &BlockSpec, context: &BlockContext<'_>, sink: &mut dyn Sink) -> Result<Ready, RunBlockError> {
    let mut found = Found::default();
    let failed = hold(spec, context, &mut found, sink)?;
    let resources = match failed {
        Some(failure) => Err(failure),
        None => resources(spec, &found),
    };
    let tokenizer = resources.as_ref().ok().and_then(|resources| resources.tokenizer.as_ref());
    let counting = Counting::new(&spec.workload, tokenizer);
    let schedules = match resources {
        Err(failure) => Err(failure),
        Ok(_) if spec.workload.script.is_some() => Ok(None),
        Ok(resources) => match Schedules::new(&spec.workload, spec.prompt_seed, &resources) {
            Ok(schedules) => Ok(Some(schedules)),
            Err(ScheduleError::Dataset(error)) => Err(unfit(&error)),
            Err(error) => return Err(RunBlockError::Workload(error)),
        },
    };
    let Found { held, folders, .. } = found;
    Ok(Ready { inputs: LaunchInputs { folders, counting, _held: held }, schedules })
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found {
    held: Vec<Held>,
    folders: BTreeMap<String, PathBuf>,
    tokenizer: Option<PathBuf>,
    dataset: Option<PathBuf>,
}

/// Holds every input that comes from a hub, and returns why one can't be had.
fn hold(
    spec: &BlockSpec,
    context: &BlockContext<'_>,
    found: &mut Found,
    sink: &mut dyn Sink,
) -> Result<Option<Failure>, RunBlockError> {
    if spec.fetched.is_empty() {
        return Ok(None);
    }
    let scratch = |source| RunBlockError::Scratch { path: context.scratch.to_owned(), source };
    fs::create_dir_all(context.scratch).map_err(scratch)?;
    let log = context.scratch.join("inputs.log");
    let prepare = PrepareContext {
        cache: context.cache,
        scratch: context.scratch,
        log: &log,
        timeout: PATIENCE,
        cancel: context.cancel,
        reaper: None,
        steps: None,
    };
    for input in &spec.fetched {
        let held = context.hub.ensure(input, &prepare, &mut |text: &str| sink.note(text));
        let held = match held.map_err(RunBlockError::Prepare)? {
            Ok(held) => held,
            Err(failure) => return Ok(Some(failure)),
        };
        held.note_use(&spec.run);
        take(input, &held.folder, found);
        found.held.push(held);
    }
    Ok(None)
}

fn take(input: &PlannedInput, folder: &Path, found: &mut Found) {
    match input.role {
        InputRole::Model => {
            found.folders.insert(input.source.repository.to_string(), folder.to_owned());
        }
        InputRole::Tokenizer => found.tokenizer = Some(folder.to_owned()),
        InputRole::Dataset => found.dataset = Some(folder.to_owned()),
    }
}

/// Returns what requests are made with.
fn resources(spec: &BlockSpec, found: &Found) -> Result<Resources, Failure> {
    let tokenizer = match &spec.sources.tokenizer {
        Some(InputSource::Path { path }) => Some(PathBuf::from(path)),
        Some(InputSource::Hub(_)) | None => found.tokenizer.clone(),
    };
    let tokenizer = tokenizer
        .map(|path| Tokenizer::at(&path).map(Arc::new))
        .transpose()
        .map_err(|error| Failure::new(FailureStage::Acquire, FailureClass::ModelNotFound, error.to_string()))?;
    let folder = match &spec.sources.dataset {
        Some(InputSource::Path { path }) => {
            if !Path::new(path).is_file() {
                let message = format!("the dataset's file `{path}` isn't there any more");
                return Err(Failure::new(FailureStage::Acquire, FailureClass::DatasetMissing, message));
            }
            Path::new(path).parent().map(Path::to_owned).unwrap_or_default()
        }
        Some(InputSource::Hub(_)) | None => found.dataset.clone().unwrap_or_default(),
    };
    Ok(Resources { tokenizer, folder })
}

/// Returns the failure of a dataset that doesn't give the requests that are asked for.
fn unfit(error: &isobench_loadgen::schedule::DatasetError) -> Failure {
    let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
    Failure::new(FailureStage::Dataset, FailureClass::DatasetMissing, format!("{error}{cause}"))
}
