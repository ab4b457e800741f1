//! A launch whose numbers are a benchmark script's own: exported, run on the arm's engine, watched, and kept whole.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;

use isobench_schema::check::Check;
use isobench_schema::comparability::KeyField;
use isobench_schema::event::LaunchStage;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::format;
use isobench_schema::outcome::evidence;
use isobench_schema::script::{SELF_REPORTED, Script, ScriptSeen};

use super::kept::taken_away;
use super::left_behind::{left_shared_memory, log_flood, shared_folders};
use super::reads::reads;
use super::{
    Arm, Given, LaunchContext, Launched, Measured, Progress, lifetime, millis, spawn_failed, variables, write,
    write_json,
};
use crate::block::RunBlockError;
use crate::engine::Serve;
use crate::environment::PrepareContext;
use crate::host::engine_host::{EngineLaunch, SharedFolders};
use crate::host::network_trap::NetworkTrap;
use crate::host::reaper;
use crate::host::shared_folders::Snapshot;
use crate::inventory::device_watch::{self, DeviceWatch};
use crate::live;
use crate::script::process::{self, Ended, Run, Seen, whole_millis};
use crate::script::{ScriptFiles, unproven};
use crate::server::{self, survived};
use crate::sink::Sink;

/// Returns what a script's launch has in its comparability key instead of the client's.
pub(super) fn key(script: &Script) -> BTreeMap<KeyField, String> {
    [(KeyField::Client, script.author()), (KeyField::Definition, SELF_REPORTED.to_owned())].into()
}

/// The one folder beside its own that a script writes: what comes of it lies there until its processes are gone.
const RESULTS: &str = "results";

/// Exports the script's files into the launch's folder.
fn exported(
    context: &LaunchContext<'_>,
    progress: &mut Progress<'_>,
    (arm, script): (&Arm<'_>, &Script),
    prepare: &PrepareContext<'_>,
) -> Result<Result<ScriptFiles, Failure>, RunBlockError> {
    let modules: Vec<String> = arm.proven.modules.keys().cloned().collect();
    let source = &context.planned.environment.source;
    let exported = ScriptFiles::export(script, &source.repository, &modules, progress.folder, prepare);
    let exported = exported.map_err(RunBlockError::Prepare)?;
    if let Ok(files) = &exported {
        progress.incidents.extend(source.patch.as_ref().and_then(|patch| files.patched(&patch.bytes.0)));
    }
    Ok(exported)
}

/// Returns what the script's process is given, unless it can't be.
fn given(
    context: &LaunchContext<'_>,
    progress: &Progress<'_>,
    (arm, script): (&Arm<'_>, &Script),
    files: &ScriptFiles,
    trap: u16,
) -> Result<Given, Failure> {
    let spec = context.spec;
    let Some(python) = arm.prepared.python.as_deref() else {
        return Err(spawn_failed("the task's environment has no Python, which a benchmark script needs"));
    };
    let (home, caches) = (progress.folder.join("home"), progress.folder.join("caches"));
    let serve = Serve {
        spec: &spec.server,
        tree: &arm.prepared.tree,
        python: Some(python),
        host: server::HOST,
        port: 0,
        caches: &caches,
        folders: &context.ready.inputs.folders,
    };
    let results = progress.folder.join(RESULTS);
    let command = files.command(script, python, &results, &serve);
    let mut given = variables(context, progress, arm, &serve)
        .map_err(|name| spawn_failed(&format!("the variable `{name}` isn't UTF-8")))?;
    if !spec.server.allow_network {
        given.extend(NetworkTrap::variables(trap));
    }
    crate::caches::check(progress.folder, &[&home, &caches], &given)?;
    Ok(Given { command, variables: given, own_folders: vec![home, caches, progress.tmp.to_owned(), results] })
}

/// Returns what is kept of what was seen of a script.
fn record(files: &ScriptFiles, seen: Seen) -> ScriptSeen {
    ScriptSeen {
        commit: files.commit.clone(),
        files: files.digest.clone(),
        count: files.count(),
        wall_ms: millis(seen.wall).unwrap_or_else(|| whole_millis(0)),
        processor_ms: whole_millis(seen.processor_ms),
        bars: seen.bars,
    }
}

/// Runs the script on the arm's engine.
pub(super) fn run_and_measure(
    context: &LaunchContext<'_>,
    progress: &mut Progress<'_>,
    (arm, script): (&Arm<'_>, &Script),
    prepare: &PrepareContext<'_>,
    sink: &mut dyn Sink,
) -> Measured {
    let LaunchContext { spec, block, engines, .. } = *context;
    let files = match exported(context, progress, (arm, script), prepare)? {
        Ok(files) => files,
        Err(failure) => return Ok(Err(failure)),
    };
    let ports = write(progress.folder, |_| engines.ports())?;
    let results = progress.folder.join(RESULTS);
    write(&results, |path| fs::create_dir(path))?;
    let given = given(context, progress, (arm, script), &files, ports.trap);
    let Given { command, variables: environment, own_folders } = match given {
        Ok(given) => given,
        Err(failure) => return Ok(Err(failure)),
    };
    let tree = arm.prepared.tree.as_path();
    // The folder tells whose engine was run; where the script stood is in its command.
    let launched = Launched { command: &command, variables: environment.keys().collect(), folder: tree, port: 0 };
    write_json(&progress.folder.join(evidence::LAUNCH), &launched)?;

    let own = [block.cache, block.scratch, progress.folder, block.leases, progress.tmp];
    let shared = (engines.shared_folders() == SharedFolders::Seen).then(|| Snapshot::take(&own));
    sink.stage(progress.launch, LaunchStage::Starting)?;
    let mut reads = reads(context, arm.prepared);
    reads.extend([tree.to_owned(), files.launcher_folder()]);
    let launch = EngineLaunch {
        command: command.clone(),
        environment: environment.clone(),
        folder: files.root.clone(),
        stdout: progress.folder.join(evidence::SERVER_STDOUT),
        stderr: progress.folder.join(evidence::SERVER_STDERR),
        grace: spec.limits.stop_s.duration(),
        lifetime: lifetime(&spec.limits),
        reads,
        writes: own_folders,
        image: context.planned.environment.python.image().cloned(),
    };
    let berth = match engines.berth(launch)? {
        Ok(berth) => berth,
        Err(failure) => return Ok(Err(failure)),
    };
    let trap = if let Some(trap) = ports.open_trap {
        trap
    } else {
        let _inside = berth.enter_network()?;
        write(progress.folder, |_| NetworkTrap::open(ports.trap))?
    };
    sink.stage(progress.launch, LaunchStage::Measuring)?;
    let devices = DeviceWatch::start(block.host, block.marker, progress.folder);
    let expected = |process, container| live::Expected {
        process,
        command: &command,
        environment: &environment,
        folder: &files.root,
        tree,
        proven: arm.proven,
        recipes: &spec.recipes,
        container,
    };
    let run = Run {
        logs: progress.folder,
        limits: &spec.limits,
        allow_network: spec.server.allow_network,
        cancel: block.cancel,
    };
    let Ended { seen, outcome, stopped } = process::run(&run, berth, &expected)?;
    progress.notes.device = devices.and_then(DeviceWatch::stop);
    progress.notes.timeline.window_ms = millis(seen.wall);
    sink.stage(progress.launch, LaunchStage::Stopping)?;
    if !stopped.unkillable.is_empty() {
        return Err(RunBlockError::Unkillable { processes: stopped.unkillable.join(", ") });
    }
    progress.incidents.extend(stopped.incidents);
    progress.incidents.extend(survived(&reaper::names(&context.reaper.end_strays()?)));
    progress.incidents.extend(progress.notes.device.as_ref().and_then(device_watch::power_capped));
    progress.incidents.extend(log_flood(progress.folder, spec.limits.log_bytes));
    if let Some(shared) = shared {
        progress.incidents.extend(left_shared_memory(&shared, &seen.shared_memory));
        progress.incidents.extend(shared_folders(&shared));
    }
    if let Err(error) = keep_result(progress.folder, &results) {
        return taken_away(error).map(Err);
    }
    if let Some(proof) = &seen.proof {
        write_json(&progress.folder.join(evidence::LIVE_PROOF), proof)?;
    }
    let unmodified = files.verify_unmodified().map_err(RunBlockError::Prepare)?;
    if let Err(failure) = write_seen(progress, &record(&files, seen))? {
        return Ok(Err(failure));
    }
    let asked = trap.asked();
    let outcome = outcome.and(stopped.failure.map_or(Ok(()), Err)).and(unmodified);
    if !spec.server.allow_network && !asked.is_empty() && outcome.is_ok() {
        let message = format!("the script asked the network {} times", asked.len());
        let failure = Failure::new(FailureStage::Validity, FailureClass::NetworkAsked, message);
        return Ok(Err(failure.breaking(Check::NoNetwork).with_evidence(asked)));
    }
    Ok(outcome)
}

/// Takes the script's own result, if it is a file, to the evidence.
fn keep_result(folder: &Path, results: &Path) -> Result<(), RunBlockError> {
    let written = results.join(evidence::SCRIPT_RESULT);
    if !written.symlink_metadata().is_ok_and(|data| data.is_file()) {
        return Ok(());
    }
    write(&written, |written| fs::rename(written, folder.join(evidence::SCRIPT_RESULT)))
}

/// Keeps what was seen of the script. What the script itself has put in its place is no evidence.
fn write_seen(progress: &Progress<'_>, seen: &ScriptSeen) -> Result<Result<(), Failure>, RunBlockError> {
    let path = progress.folder.join(evidence::SCRIPT_SEEN);
    if path.symlink_metadata().is_ok() {
        let message = format!("`{}` was there before it was written", evidence::SCRIPT_SEEN);
        let failure = unproven(message, Check::EvidenceIntact, &[]);
        return Ok(Err(Failure { class: FailureClass::EvidenceAltered, ..failure }));
    }
    let text = format::to_pretty(seen).expect("what was seen of a script has only string keys");
    write(&path, |path| OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes()))?;
    Ok(Ok(()))
}
