//! The statistics that the planner asks for.

use isobench_analysis::stats::sequential;
use isobench_plan::statistics::Statistics;
use isobench_schema::facts::Host;
use isobench_schema::plan::{Forecast, Look, PlannedTask, Spending};

/// Levels as they are calculated.
#[derive(Debug, Default)]
pub(crate) struct PlanStatistics;

impl Statistics for PlanStatistics {
    fn looks(&self, spending: Spending, blocks: &[u32]) -> Result<Vec<Look>, String> {
        sequential::looks(spending, blocks).map_err(|error| error.to_string())
    }

    fn forecast(&self, _task: &PlannedTask, _host: &Host) -> Option<Forecast> {
        None
    }
}
