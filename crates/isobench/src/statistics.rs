//! The statistics that the planner asks for.

use std::cell::RefCell;
use std::collections::BTreeMap;

use isobench_analysis::noise::{self, Costs};
use isobench_analysis::stats::sequential;
use isobench_plan::estimate;
use isobench_plan::statistics::Statistics;
use isobench_schema::facts::Host;
use isobench_schema::measurement::MetricName;
use isobench_schema::noise::{KnownSpread, NoiseEntry, NoiseKey};
use isobench_schema::plan::{Forecast, Look, PlannedTask, Spending};

use crate::commands::noise::BLOCKS;

/// Levels as they are calculated, and forecasts by the entries of a library of spreads.
#[derive(Debug, Default)]
pub(crate) struct PlanStatistics {
    entries: Vec<NoiseEntry>,
    /// What the entries say, asked once for all tasks of a class.
    known: RefCell<BTreeMap<(NoiseKey, MetricName), Option<KnownSpread>>>,
}

impl PlanStatistics {
    /// Forecasts by these entries.
    pub(crate) fn new(entries: Vec<NoiseEntry>) -> Self {
        Self { entries, known: RefCell::default() }
    }

    fn known(&self, key: NoiseKey, metric: MetricName) -> Option<KnownSpread> {
        let mut known = self.known.borrow_mut();
        let asked = (key, metric);
        if let Some(found) = known.get(&asked) {
            return found.clone();
        }
        let found = noise::known(&self.entries, &asked.0, metric);
        known.insert(asked, found.clone());
        found
    }
}

impl Statistics for PlanStatistics {
    fn looks(&self, spending: Spending, blocks: &[u32]) -> Result<Vec<Look>, String> {
        sequential::looks(spending, blocks).map_err(|error| error.to_string())
    }

    fn forecast(&self, task: &PlannedTask, host: &Host) -> Option<Forecast> {
        let known = self.known(NoiseKey::of(host, task), task.metric.primary);
        Some(noise::forecast(task, known, Costs { block_s: estimate::block_s(task), noise_s: noise_s(task) }))
    }
}

/// Returns how long a task's noise takes to find out, in seconds: two launches of the baseline in each block.
pub(crate) fn noise_s(task: &PlannedTask) -> f64 {
    estimate::environments_s(task) + f64::from(BLOCKS) * 2.0 * estimate::launch_s(task)
}
