//! What planning asks of statistics, which it does none of itself.

use isobench_schema::facts::Host;
use isobench_schema::plan::{Forecast, Look, PlannedTask, Spending};

/// Statistics for plans. The planner has no arithmetic of levels and powers of its own.
pub trait Statistics {
    /// Returns the looks after these numbers of blocks with their levels, which together have an error of 5 %.
    ///
    /// # Errors
    /// Returns what is wrong with the numbers: a lower-case fragment.
    fn looks(&self, spending: Spending, blocks: &[u32]) -> Result<Vec<Look>, String>;

    /// Returns what a task's design finds in the noise that is known of it on this machine, if any is.
    fn forecast(&self, task: &PlannedTask, host: &Host) -> Option<Forecast>;
}
