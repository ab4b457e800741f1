//! How long a task takes: a simple model for people who plan their day, never part of a decision.
//!
//! A launch is: start, warm-up and probes, window, stop. A task is: its environments once each, and blocks times arms
//! launches. The window is taken as its planned minimum, since how fast the engine is, is what the run finds out.

use isobench_schema::environment::{EngineKind, Python};
use isobench_schema::plan::{Plan, PlannedTask};
use isobench_schema::task::Limits;
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Workload, WorkloadKind};

use crate::progress::Progress;

/// Seconds from the start of a generic engine until it is ready.
pub const START_GENERIC_S: f64 = 2.0;

/// Seconds from the start of vLLM until it is ready: imports, weights, profiling, graph capture.
pub const START_VLLM_S: f64 = 90.0;

/// Seconds from SIGTERM until every process is gone, checked and hashed again.
pub const STOP_S: f64 = 2.0;

/// Seconds for each probe, before and after the window.
pub const PROBE_S: f64 = 0.2;

/// Seconds to export, patch and prove one environment's tree.
pub const ENVIRONMENT_S: f64 = 2.0;

/// Seconds to make a virtual environment and install its packages, once for a task.
pub const VENV_S: f64 = 180.0;

/// Seconds for each build command of each environment.
pub const BUILD_COMMAND_S: f64 = 60.0;

/// How much longer than its shortest a window runs: requests end when they end.
fn window_factor(kind: WorkloadKind) -> f64 {
    match kind {
        // Arrivals end at the window's end, and the last answers are waited for.
        WorkloadKind::Serving => 1.2,
        // All is sent at once; the slowest answer ends the window.
        WorkloadKind::Throughput => 1.1,
        WorkloadKind::Latency => 1.0,
    }
}

/// What the time of one launch follows from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaunchShape<'a> {
    /// Seconds from the start of the engine until it is ready.
    pub start_s: f64,
    /// The shortest measured window in seconds.
    pub window_s: f64,
    /// The load.
    pub workload: &'a Workload,
    /// The deadlines, beyond which nothing lasts.
    pub limits: &'a Limits,
}

impl LaunchShape<'_> {
    /// Returns the estimated time of the launch in seconds.
    pub fn seconds(&self) -> f64 {
        let workload = self.workload;
        let window = self.window_s * window_factor(workload.kind);
        // Warm-up requests are like the window's, so that they take their share of it.
        let warm_up = window * f64::from(workload.warm_up_requests) / f64::from(workload.requests.max(1));
        let probes = 2.0 * f64::from(workload.probes.count) * PROBE_S;
        let load = (window + warm_up + probes).min(self.limits.workload_s.get());
        self.start_s.min(self.limits.ready_s.get()) + load + STOP_S.min(self.limits.stop_s.get())
    }
}

/// Returns the seconds from the start of an engine until it is ready, where nothing more is known than which it is.
pub fn start_s(engine: EngineKind) -> f64 {
    match engine {
        EngineKind::Generic => START_GENERIC_S,
        EngineKind::Vllm | EngineKind::Sglang => START_VLLM_S,
    }
}

/// Returns the estimated time of one launch in seconds.
pub fn launch_s(task: &PlannedTask) -> f64 {
    let window_s = task.design.min_window_s.get();
    LaunchShape { start_s: start_s(task.engine), window_s, workload: &task.workload, limits: &task.limits }.seconds()
}

/// Returns the estimated time of one block in seconds: one launch for each arm.
pub fn block_s(task: &PlannedTask) -> f64 {
    launch_s(task) * count(task.arms.len())
}

/// Returns the estimated time to make a task's environments in seconds, with nothing in the cache.
pub fn environments_s(task: &PlannedTask) -> f64 {
    let builds: usize = task.environments.values().map(|environment| environment.build.len()).sum();
    let venv = task.environments.values().any(|environment| matches!(environment.python, Python::Venv(_)));
    let venv = if venv { VENV_S } else { 0.0 };
    venv + count(task.environments.len()) * ENVIRONMENT_S + count(builds) * BUILD_COMMAND_S
}

/// Returns the estimated time of a whole task in seconds.
pub fn task_s(task: &PlannedTask) -> f64 {
    environments_s(task) + f64::from(task.design.blocks()) * block_s(task)
}

/// Returns the estimated time of a whole task, 0 if the numbers of its limits are beyond all bounds.
pub(crate) fn of_task(task: &PlannedTask) -> Seconds {
    Seconds::new(task_s(task)).unwrap_or_else(|| Seconds::new(f64::MAX).unwrap_or(task.design.min_window_s))
}

/// Returns the estimated time in seconds that the rest of a run takes.
///
/// A task's blocks that were run say how long its next ones take; for a task without any the model does.
pub fn remaining_s(plan: &Plan, progress: &Progress) -> f64 {
    // The sum of no numbers at all is -0.
    0.0 + plan.tasks.iter().map(|task| task_remaining_s(task, progress)).sum::<f64>()
}

fn task_remaining_s(task: &PlannedTask, progress: &Progress) -> f64 {
    let left = progress.blocks_left(task);
    if left == 0 {
        return 0.0;
    }
    match progress.mean_block_s(&task.id) {
        Some(block_s) => f64::from(left) * block_s,
        None => environments_s(task) + f64::from(left) * block_s(task),
    }
}

fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).unwrap_or(u32::MAX))
}
