//! Getting the inputs of a run before its first block: what is fetched later would be fetched while the device is held.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isobench_runner::environment::PrepareContext;
use isobench_runner::inputs::Hub;
use isobench_schema::ids::Digest;
use isobench_schema::input::PlannedInput;
use isobench_store::RunStore;

use super::Machine;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::progress::Watch;

/// The deadline by which the patience for locks of other processes is reckoned: fetching a large model takes hours.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Gets every input of the plan, each once. One that can't be had is no error: the launches that need it will say so.
pub(super) fn fetch(
    store: &RunStore,
    machine: &Machine,
    cancel: &AtomicBool,
    watch: &mut dyn Watch,
) -> Result<(), CommandError> {
    let mut seen: BTreeSet<&Digest> = BTreeSet::new();
    let inputs: Vec<&PlannedInput> = store.plan().tasks.iter().flat_map(|task| &task.fetched).collect();
    let inputs: Vec<&PlannedInput> = inputs.into_iter().filter(|input| seen.insert(&input.digest)).collect();
    if inputs.is_empty() {
        return Ok(());
    }
    let scratch = tempfile::tempdir().exit(Exit::Machine)?;
    let log = scratch.path().join("log");
    let context = PrepareContext {
        cache: &machine.cache,
        scratch: scratch.path(),
        log: &log,
        timeout: PATIENCE,
        cancel,
        reaper: None,
        steps: None,
    };
    for input in inputs {
        get(&machine.hub, input, &context, watch)?;
    }
    Ok(())
}

fn get(
    hub: &Hub,
    input: &PlannedInput,
    context: &PrepareContext<'_>,
    watch: &mut dyn Watch,
) -> Result<(), CommandError> {
    let is_missing = hub.missing_bytes(input, context.cache) > 0;
    let got = hub.ensure(input, context, &mut |text: &str| watch.note(text)).map_err(|error| {
        let is_full = error.is_disk_full();
        let error = CommandError::from_error(Exit::Machine, error);
        if is_full {
            error.hint("free some room or lower `--disk-floor`, then give the same command again to resume; `isobench environments prune` says what can go")
        } else {
            error
        }
    })?;
    match got {
        Ok(_) if is_missing => watch.note(&format!("{} is there, whole and verified", input.name())),
        Ok(_) => {}
        Err(failure) => watch.note(&format!("{} can't be had: {failure}", input.name())),
    }
    Ok(())
}
