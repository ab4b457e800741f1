//! Arguments of `noise`.

use std::path::PathBuf;

use clap::Args;

use crate::args::ChoiceArgs;
use crate::commands::noise::BLOCKS;

/// The fewest blocks: those from which on differences are judged.
const FEWEST: i64 = 5;

/// The most that a look may be after.
const MOST: i64 = 10_000;

/// Arguments of `noise`.
#[derive(Debug, Args)]
pub(crate) struct NoiseArgs {
    /// A dataset or a task, or the folder of such a run to go on with.
    #[arg(required_unless_present_any = ["list", "from", "remove"])]
    pub(crate) what: Option<PathBuf>,
    /// Blocks of two launches of the baseline each. What designs find in the noise is said for the options under "Design",
    /// which are those of the runs to come.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(FEWEST..=MOST), default_value_t = BLOCKS)]
    pub(crate) blocks: u32,
    /// The run's folder; by default named after the dataset and the plan, in `runs/`.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run nothing, and take the spreads of these runs, against itself or not, into the library.
    #[arg(long, value_name = "RUN", num_args = 1.., conflicts_with_all = ["what", "out", "list", "remove"])]
    pub(crate) from: Vec<PathBuf>,
    /// Run nothing, and list what the library holds.
    #[arg(long, conflicts_with_all = ["what", "out", "remove"])]
    pub(crate) list: bool,
    /// Run nothing, and take an entry out of the library, by its name or the beginning of it (repeatable).
    #[arg(long, value_name = "ENTRY", conflicts_with_all = ["what", "out"])]
    pub(crate) remove: Vec<String>,
    #[command(flatten)]
    pub(crate) choice: ChoiceArgs,
}
