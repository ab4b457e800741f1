//! Deadlines that scale with the size of the model, the load, and what was measured before.

use isobench_schema::environment::EngineKind;
use isobench_schema::task::Limits;
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Arrival, Workload};

use super::load::at_once;
use super::model::Model;
use super::need::Sizing;
use super::options::ServerOptions;
use super::place::Place;
use super::rate::ServiceRate;
use crate::defaults;
use crate::knowledge::architectures::EngineFeature;

/// What deadlines are reckoned with.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadlineSettings {
    /// How many times the expected time a deadline is.
    pub slack: f64,
    /// How many times slower than the roofline an engine may be.
    pub slowness: f64,
    /// GB of weights read in a second.
    pub load_gb_per_s: f64,
    /// Seconds until an engine has imported its modules and sees its devices.
    pub import_s: f64,
    /// Seconds to compile a model, where the revision does.
    pub compile_s: f64,
    /// Seconds to capture graphs.
    pub capture_s: f64,
    /// Seconds to join several devices.
    pub join_s: f64,
}

impl Default for DeadlineSettings {
    fn default() -> Self {
        Self {
            slack: 3.0,
            slowness: 10.0,
            load_gb_per_s: 0.5,
            import_s: 60.0,
            compile_s: 90.0,
            capture_s: 30.0,
            join_s: 30.0,
        }
    }
}

/// What launches of the same task took before, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct History {
    /// The longest from start to ready.
    pub ready_s: Option<f64>,
    /// The longest warm-up, probes and window together.
    pub workload_s: Option<f64>,
}

/// Bounds of the deadline of a start: the default, and two hours.
const READY: (f64, f64) = (defaults::READY_S, 7_200.0);

/// Bounds of the deadline of a load: ten minutes, and four hours.
const WORKLOAD: (f64, f64) = (600.0, 14_400.0);

/// The deadline of a build command of an engine with native code: twice the longest build that is planned with.
const NATIVE_BUILD_S: f64 = 9_000.0;

/// Everything that deadlines follow from.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// The model.
    pub model: &'a Model,
    /// The server's options.
    pub options: &'a ServerOptions,
    /// The load.
    pub workload: &'a Workload,
    /// Engine, moment and device.
    pub place: &'a Place<'a>,
    /// Devices that share the model.
    pub tensor_parallel: u32,
}

/// Returns the seconds that a start is expected to take.
pub fn start_s(launch: &Launch<'_>, settings: &DeadlineSettings) -> f64 {
    let Launch { model, options, place, tensor_parallel, .. } = *launch;
    let weights_gb = Sizing::new(model, options, place, None).weights_bytes / 1e9;
    let dummy = options.load_format.as_deref() == Some("dummy");
    let load = if dummy { 0.0 } else { weights_gb / settings.load_gb_per_s };
    let compile = if !options.eager && place.has(EngineFeature::CompileAtStart) { settings.compile_s } else { 0.0 };
    let capture = if options.eager { 0.0 } else { settings.capture_s };
    let join = if tensor_parallel > 1 { settings.join_s } else { 0.0 };
    settings.import_s + load + compile + capture + join
}

/// Returns the seconds that a load is expected to take at worst: by its arrivals, or at a tenth of the best rate.
fn load_s(launch: &Launch<'_>, rate: Option<&ServiceRate>, settings: &DeadlineSettings) -> Option<f64> {
    let workload = launch.workload;
    let requests = f64::from(workload.requests) + f64::from(workload.warm_up_requests);
    let slowest = rate.map(|rate| requests / rate.requests_per_s * settings.slowness);
    let arrivals = match &workload.arrival {
        Arrival::Open { rate_per_s, .. } | Arrival::Constant { rate_per_s } if *rate_per_s > 0.0 => {
            requests / rate_per_s
        }
        Arrival::Bursts { size, period_s } => requests / f64::from((*size).max(1)) * period_s,
        Arrival::Stages { stages, .. } => stages.iter().map(|stage| stage.seconds).sum(),
        Arrival::Open { .. }
        | Arrival::Constant { .. }
        | Arrival::Trace { .. }
        | Arrival::Closed { .. }
        | Arrival::AllAtOnce => return slowest,
    };
    Some(arrivals + slowest.unwrap_or(0.0))
}

/// Returns the deadlines of a launch, and how they came about.
pub fn deadlines(
    launch: &Launch<'_>,
    rate: Option<&ServiceRate>,
    history: &History,
    settings: &DeadlineSettings,
) -> (Limits, Vec<String>) {
    let expected = start_s(launch, settings);
    let (ready, why_ready) = match history.ready_s {
        Some(measured) => (measured * settings.slack, format!("it took {measured:.0} s before")),
        None => (expected * settings.slack, format!("a start is expected to take {expected:.0} s")),
    };
    let ready = ready.clamp(READY.0, READY.1);
    let (workload, why_workload) = match (history.workload_s, load_s(launch, rate, settings)) {
        (Some(measured), _) => (measured * settings.slack, format!("the load took {measured:.0} s before")),
        (None, Some(slow)) => {
            (slow, format!("at {:.0} times the roofline's time the load takes {slow:.0} s", settings.slowness))
        }
        (None, None) => (defaults::WORKLOAD_S, "how fast the load can be served is not known".to_owned()),
    };
    let workload = workload.clamp(WORKLOAD.0, WORKLOAD.1);
    let queued = if matches!(launch.workload.arrival, Arrival::Closed { .. }) {
        let one = rate.map_or(0.0, |rate| rate.request_s * settings.slowness);
        let beside = f64::from(at_once(launch.workload)) / rate.map_or(1.0, |rate| f64::from(rate.concurrency.max(1)));
        one * beside.max(1.0)
    } else {
        // The last of all waits for nearly all others.
        workload
    };
    let request = queued.clamp(defaults::REQUEST_S.min(workload), workload);
    let stall = (request / 5.0).max(defaults::STALL_S);
    let build = match launch.place.engine {
        EngineKind::Vllm | EngineKind::Sglang => NATIVE_BUILD_S,
        EngineKind::Generic => defaults::BUILD_S,
    };
    let limits = Limits {
        build_s: seconds(build),
        ready_s: seconds(ready),
        request_s: seconds(request),
        stall_s: seconds(stall),
        workload_s: seconds(workload),
        stop_s: seconds(defaults::STOP_S),
        log_bytes: u64::from(defaults::LOG_BYTES),
        failed_requests: defaults::FAILED_REQUESTS,
    };
    let because = vec![
        format!(
            "the engine must be ready within {ready:.0} s: {why_ready}, and a deadline is {:.0} times that, from {:.0} to {:.0} s",
            settings.slack, READY.0, READY.1
        ),
        format!(
            "the load must end within {workload:.0} s: {why_workload}, within {:.0} to {:.0} s",
            WORKLOAD.0, WORKLOAD.1
        ),
    ];
    (limits, because)
}

/// Returns a bounded number of seconds, rounded up to whole ones.
fn seconds(number: f64) -> Seconds {
    Seconds::new(number.ceil()).expect("deadlines are clamped to finite bounds above 0")
}
