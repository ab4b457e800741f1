//! One launch: an environment proven, an engine served, a workload sent, everything kept, and nothing left behind.

mod kept;
mod key;
mod left_behind;
mod reads;
mod script;
mod steps;

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isobench_loadgen::schedule::Schedules;
use isobench_loadgen::target::Target;
use isobench_schema::block::{BlockLaunch, BlockSpec};
use isobench_schema::check::Check;
use isobench_schema::environment::StaticProof;
use isobench_schema::event::LaunchStage;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::{EnvironmentId, LaunchId};
use isobench_schema::outcome::{LaunchRecord, Outcome, Timeline, evidence};
use isobench_schema::task::Limits;
use isobench_schema::units::Millis;
use serde::Serialize;

use crate::block::{BlockContext, RunBlockError};
use crate::command::clean_environment;
use crate::disk::Room;
use crate::engine::{self, Serve};
use crate::environment::{self, PrepareContext, Prepared, proof};
use crate::host::engine_host::{EngineHost, EngineLaunch, Ports, SharedFolders};
use crate::host::network_trap::NetworkTrap;
use crate::host::process_table;
use crate::host::reaper::{self, Reaper};
use crate::host::shared_folders::Snapshot;
use crate::inventory::device_watch;
use crate::launch_inputs::Ready;
use crate::live;
use crate::load::{self, Load, Notes};
use crate::server::{self, Server, Serving};
use crate::sink::Sink;
pub(crate) use kept::evidence_in;
use kept::{altered, reopen, taken_away};
use key::key;
use left_behind::{left_shared_memory, log_flood, shared_folders};
use reads::reads;
use steps::LaunchSteps;

/// What a launch is part of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaunchContext<'a> {
    /// Its block.
    pub(crate) spec: &'a BlockSpec,
    /// Its arm and environment.
    pub(crate) planned: &'a BlockLaunch,
    /// Its position in the block, from 0.
    pub(crate) position: u32,
    /// What is sent, and the inputs on this machine.
    pub(crate) ready: &'a Ready,
    /// The machine.
    pub(crate) block: &'a BlockContext<'a>,
    /// The owner of the run's processes.
    pub(crate) reaper: &'a Reaper,
    /// Where engines run.
    pub(crate) engines: &'a dyn EngineHost,
}

/// The folders of a launch, which only live as long as it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Folders<'a> {
    /// For evidence and everything private.
    pub(crate) scratch: &'a Path,
    /// For the engine's temporary files; its path is short.
    pub(crate) tmp: &'a Path,
}

/// What a launch has come to so far.
struct Progress<'a> {
    launch: &'a LaunchId,
    folder: &'a Path,
    tmp: &'a Path,
    notes: Notes,
    incidents: Vec<Failure>,
    packages: Vec<String>,
}

/// Returns the record of a launch that is never started.
pub(crate) fn unlaunched(context: &LaunchContext<'_>, launch: LaunchId, outcome: Outcome) -> LaunchRecord {
    LaunchRecord {
        launch,
        position: context.position,
        environment: environment_id(context.planned),
        outcome,
        incidents: Vec::new(),
        evidence: BTreeMap::new(),
        timeline: Timeline::default(),
        client: None,
        device: None,
        key: key(context, &[]),
    }
}

/// Runs a launch in folders that the caller removes.
///
/// # Errors
/// Returns an error if the record can't be written or this machine can't do the work.
pub(crate) fn run(
    context: &LaunchContext<'_>,
    launch: LaunchId,
    folders: Folders<'_>,
    sink: &mut dyn Sink,
) -> Result<LaunchRecord, RunBlockError> {
    let begun = Instant::now();
    let Folders { scratch: folder, tmp } = folders;
    let (notes, incidents, packages) = (Notes::default(), Vec::new(), Vec::new());
    let mut progress = Progress { launch: &launch, folder, tmp, notes, incidents, packages };
    for name in FOLDERS {
        write(&folder.join(name), |path| fs::create_dir_all(path))?;
    }
    let outcome = match prepare_and_measure(context, &mut progress, sink)? {
        Ok(()) => Outcome::Measured,
        Err(failure) => Outcome::Failed { failure },
    };
    let mut kept = BTreeMap::new();
    reopen(folder, 0o700);
    for (name, path) in evidence_in(folder) {
        reopen(&path, 0o600);
        kept.insert(name.to_owned(), sink.keep(&path)?);
    }
    let outcome = match outcome {
        Outcome::Measured => match altered(progress.notes.records.as_ref(), kept.get(evidence::REQUESTS)) {
            Some(failure) => Outcome::Failed { failure },
            None => Outcome::Measured,
        },
        Outcome::Failed { .. } | Outcome::Interrupted => outcome,
    };
    progress.notes.timeline.total_ms = millis(begun.elapsed());
    sink.stage(&launch, LaunchStage::Finished)?;
    let Progress { notes, incidents, packages, .. } = progress;
    Ok(LaunchRecord {
        position: context.position,
        environment: environment_id(context.planned),
        outcome,
        incidents,
        evidence: kept,
        timeline: notes.timeline,
        client: notes.client,
        device: notes.device,
        key: key(context, &packages),
        launch,
    })
}

/// The private folders of a launch.
const FOLDERS: &[&str] = &["home", "caches", "prepare"];

type Measured = Result<Result<(), Failure>, RunBlockError>;

fn prepare_and_measure(context: &LaunchContext<'_>, progress: &mut Progress<'_>, sink: &mut dyn Sink) -> Measured {
    sink.stage(progress.launch, LaunchStage::Environment)?;
    let begun = Instant::now();
    let log = progress.folder.join(evidence::ENVIRONMENT_LOG);
    let scratch = progress.folder.join("prepare");
    let steps = LaunchSteps::new(progress.launch, sink);
    let untold = PrepareContext {
        cache: context.block.cache,
        scratch: &scratch,
        log: &log,
        timeout: context.spec.limits.build_s.duration(),
        cancel: context.block.cancel,
        reaper: Some(context.reaper),
        steps: None,
    };
    let prepare = PrepareContext { steps: Some(&steps), ..untold };
    let room = Room { cache: context.block.cache, floor_bytes: context.block.hub.settings().floor_bytes };
    // How much an environment takes is known when it is there.
    room.ensure(0, &prepare).map_err(RunBlockError::Prepare)?;
    let prepared = environment::prepare_known(&context.planned.environment, &prepare, context.block.trees);
    let prepared = match prepared.map_err(RunBlockError::Prepare)? {
        Ok(prepared) => prepared,
        Err(failure) => return Ok(Err(failure)),
    };
    prepared.note_use(&context.spec.run);
    progress.packages = prepared.compared_packages();
    let proven = proof::prove_static(&prepared, &context.planned.environment, &prepare);
    let proven = proven.map_err(RunBlockError::Prepare)?.and_then(|proven| {
        let recipes = environment::recipes::prove(&context.spec.recipes, &prepared)?;
        let image = context.engines.image(context.planned.environment.python.image()).cloned();
        Ok(StaticProof { recipes, image, ..proven })
    });
    let proven = match proven {
        Ok(proven) => proven,
        Err(failure) => return Ok(Err(failure)),
    };
    context.block.trees.note(&prepared.id, &prepared.manifest.tree);
    write_json(&progress.folder.join(evidence::STATIC_PROOF), &proven)?;
    // What looks at the environment runs some of its code.
    context.reaper.end_strays()?;
    progress.notes.timeline.environment_ms = millis(begun.elapsed());
    let arm = Arm { prepared: &prepared, proven: &proven };
    let sink = steps.into_sink();
    let measured = match (&context.spec.workload.script, &context.ready.schedules) {
        (_, Err(failure)) => Err(failure.clone()),
        (Some(script), Ok(_)) => script::run_and_measure(context, progress, (&arm, script), &untold, sink)?,
        (None, Ok(Some(schedules))) => serve_and_measure(context, progress, (&arm, schedules), sink)?,
        (None, Ok(None)) => Err(spawn_failed("nothing is to be sent to it")),
    };
    let unmodified = proof::verify_unmodified(&prepared).map_err(RunBlockError::Prepare)?;
    if unmodified.is_err() {
        environment::evict(&prepared).map_err(RunBlockError::Prepare)?;
    }
    // Whatever else went wrong, an engine that changes its own files can't be believed.
    Ok(unmodified.and(measured))
}

/// The arm's proven environment.
struct Arm<'a> {
    prepared: &'a Prepared,
    proven: &'a StaticProof,
}

/// What an engine is given.
struct Given {
    command: Vec<String>,
    variables: BTreeMap<String, String>,
    /// The folders that it alone writes.
    own_folders: Vec<PathBuf>,
}

/// Returns what the engine is given, unless it can't be: a cache that isn't its own, for instance.
fn given(context: &LaunchContext<'_>, progress: &Progress<'_>, arm: &Arm<'_>, ports: &Ports) -> Result<Given, Failure> {
    let spec = context.spec;
    let caches = progress.folder.join("caches");
    let serve = Serve {
        spec: &spec.server,
        tree: &arm.prepared.tree,
        python: arm.prepared.python.as_deref(),
        host: server::HOST,
        port: ports.engine,
        caches: &caches,
        folders: &context.ready.inputs.folders,
    };
    let command = match engine::command(spec.engine, &serve) {
        Ok(command) => command,
        Err(error) => return Err(spawn_failed(&error.to_string())),
    };
    let variables = match variables(context, progress, arm, &serve) {
        Ok(mut variables) => {
            if !spec.server.allow_network {
                variables.extend(NetworkTrap::variables(ports.trap));
            }
            variables
        }
        Err(name) => return Err(spawn_failed(&format!("the variable `{name}` isn't UTF-8"))),
    };
    let home = progress.folder.join("home");
    crate::caches::check(progress.folder, &[&home, &caches], &variables)?;
    let own_folders = vec![home, caches.clone(), progress.tmp.to_owned()];
    Ok(Given { command, variables, own_folders })
}

fn serve_and_measure(
    context: &LaunchContext<'_>,
    progress: &mut Progress<'_>,
    (arm, schedules): (&Arm<'_>, &Schedules),
    sink: &mut dyn Sink,
) -> Measured {
    let LaunchContext { spec, block, engines, .. } = *context;
    let ports = write(progress.folder, |_| engines.ports())?;
    let tree = arm.prepared.tree.as_path();
    let Given { command, variables, own_folders } = match given(context, progress, arm, &ports) {
        Ok(given) => given,
        Err(failure) => return Ok(Err(failure)),
    };
    let launched =
        Launched { command: &command, variables: variables.keys().collect(), folder: tree, port: ports.engine };
    write_json(&progress.folder.join(evidence::LAUNCH), &launched)?;

    let own = [block.cache, block.scratch, progress.folder, block.leases, progress.tmp];
    let shared = (engines.shared_folders() == SharedFolders::Seen).then(|| Snapshot::take(&own));
    sink.stage(progress.launch, LaunchStage::Starting)?;
    let url = format!("http://{}:{}", server::HOST, ports.engine);
    let target = match Target::parse(&url, &spec.server.served_model_name) {
        Ok(target) => target,
        Err(error) => return Ok(Err(spawn_failed(&error.to_string()))),
    };
    let records = load::create_records(progress.folder)?;
    let serving = Serving {
        target,
        health: &spec.server.health,
        port: ports.engine,
        stdout: progress.folder.join(evidence::SERVER_STDOUT),
        stderr: progress.folder.join(evidence::SERVER_STDERR),
        ready: spec.limits.ready_s.duration(),
        grace: spec.limits.stop_s.duration(),
    };
    let launch = EngineLaunch {
        command: command.clone(),
        environment: variables.clone(),
        folder: tree.to_owned(),
        stdout: serving.stdout.clone(),
        stderr: serving.stderr.clone(),
        grace: serving.grace,
        lifetime: lifetime(&spec.limits),
        reads: reads(context, arm.prepared),
        writes: own_folders,
        image: context.planned.environment.python.image().cloned(),
    };
    let berth = match engines.berth(launch)? {
        Ok(berth) => berth,
        Err(failure) => return Ok(Err(failure)),
    };
    // The client, too, is let into the engine's network, and out of it before anything else is done.
    let inside = berth.enter_network()?;
    let trap = match ports.open_trap {
        Some(trap) => trap,
        None => write(progress.folder, |_| NetworkTrap::open(ports.trap))?,
    };
    let started = Instant::now();
    let mut server = Server::new(berth.start()?, serving, started);
    let expected = |process| live::Expected {
        process,
        command: &command,
        environment: &variables,
        folder: tree,
        tree,
        proven: arm.proven,
        recipes: &spec.recipes,
        container: None,
    };
    let load = Load {
        spec,
        schedules,
        counting: &context.ready.inputs.counting,
        block,
        launch: progress.launch,
        folder: progress.folder,
        records: &records,
    };
    let measured = load::measure(&load, &mut server, &expected, &mut progress.notes, sink);

    sink.stage(progress.launch, LaunchStage::Stopping)?;
    let stopping = Instant::now();
    let stopped = server.stop();
    drop(inside);
    progress.notes.timeline.stop_ms = millis(stopping.elapsed());
    if !stopped.unkillable.is_empty() {
        return Err(RunBlockError::Unkillable { processes: stopped.unkillable.join(", ") });
    }
    progress.incidents.extend(stopped.incidents);
    // Without its guard, or away from it, the engine lives on.
    progress.incidents.extend(server::survived(&reaper::names(&context.reaper.end_strays()?)));
    progress.incidents.extend(progress.notes.device.as_ref().and_then(device_watch::power_capped));
    progress.incidents.extend(log_flood(progress.folder, spec.limits.log_bytes));
    if let Some(shared) = shared {
        progress.incidents.extend(left_shared_memory(&shared, &progress.notes.shared_memory));
        progress.incidents.extend(shared_folders(&shared));
    }
    let measured = measured.or_else(|error| taken_away(error).map(Err))?.and(stopped.failure.map_or(Ok(()), Err));
    let asked = trap.asked();
    if !spec.server.allow_network && !asked.is_empty() && measured.is_ok() {
        let message = format!("the engine asked the network {} times", asked.len());
        let failure = Failure::new(FailureStage::Validity, FailureClass::NetworkAsked, message);
        return Ok(Err(failure.breaking(Check::NoNetwork).with_evidence(asked)));
    }
    Ok(measured)
}

fn spawn_failed(message: &str) -> Failure {
    Failure::new(FailureStage::Start, FailureClass::SpawnFailed, format!("the engine can't be started: {message}"))
}

/// What is left to an engine beside its phases: for its proofs, its first request and its end.
const MARGIN: Duration = Duration::from_secs(600);

/// Returns how long an engine may live at most, whoever still watches over it.
fn lifetime(limits: &Limits) -> Duration {
    limits.ready_s.duration() + limits.workload_s.duration() + limits.stop_s.duration() + MARGIN
}

/// How an engine was started. Variables by name only: a value may be a secret.
#[derive(Serialize)]
struct Launched<'a> {
    command: &'a [String],
    variables: Vec<&'a String>,
    folder: &'a Path,
    port: u16,
}

/// Returns the engine's whole environment.
///
/// # Errors
/// Returns the name of a variable whose value isn't UTF-8.
fn variables(
    context: &LaunchContext<'_>,
    progress: &Progress<'_>,
    arm: &Arm<'_>,
    serve: &Serve<'_>,
) -> Result<BTreeMap<String, String>, String> {
    let spec = context.spec;
    let mut given = clean_environment(&progress.folder.join("home"), progress.tmp);
    for (name, value) in context.engines.variables(context.planned.environment.python.image()) {
        given.insert(name, value.into());
    }
    arm.prepared.add_to(&mut given, &progress.folder.join("caches"));
    crate::command::pass_variables(&mut given, spec.server.pass_environment.iter().map(String::as_str));
    let mut variables = BTreeMap::new();
    for (name, value) in given {
        let text = value.into_string().map_err(|_not_utf8| name.clone())?;
        variables.insert(name, text);
    }
    variables.extend(engine::variables(spec.engine, serve));
    variables.extend(spec.server.environment.clone());
    variables.insert(process_table::RUN_MARKER.to_owned(), context.block.marker.to_owned());
    Ok(variables)
}

pub(crate) fn environment_id(planned: &BlockLaunch) -> EnvironmentId {
    planned.environment.id().expect("an environment specification has only string keys")
}

/// Returns a duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> Option<Millis> {
    Millis::new(duration.as_secs_f64() * 1000.0)
}

pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<(), RunBlockError> {
    let text = serde_json::to_string_pretty(value).expect("evidence has only string keys") + "\n";
    // A new file: whatever an engine has put there, a pipe for instance, isn't written to.
    write(path, |path| OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes()))
}

fn write<T>(path: &Path, act: impl FnOnce(&PathBuf) -> std::io::Result<T>) -> Result<T, RunBlockError> {
    let path = path.to_owned();
    act(&path).map_err(|source| RunBlockError::Scratch { path, source })
}
