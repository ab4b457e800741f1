//! Arguments that say how tasks are looked at, and what a run may use up.

use clap::{Args, ValueEnum};
use isobench_plan::planner::DesignOptions;
use isobench_schema::plan::Spending;

/// The most that a look may be after.
const MOST_BLOCKS: i64 = 10_000;

/// How tasks are looked at.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Design")]
pub(crate) struct DesignArgs {
    /// One look, after N blocks, whatever the task says.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_BLOCKS), conflicts_with_all = ["looks", "max_blocks"])]
    pub(crate) fixed: Option<u32>,
    /// Looks after these numbers of blocks, such as `6,10,16,24`.
    #[arg(long, value_name = "N,N,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=MOST_BLOCKS), conflicts_with = "max_blocks")]
    pub(crate) looks: Vec<u32>,
    /// The most blocks of a task, rounded up to balanced orders; of a run that is resumed, no task is taken further.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(6..=MOST_BLOCKS))]
    pub(crate) max_blocks: Option<u32>,
    /// How much of the 5 % error each look may use up.
    #[arg(long, value_enum, default_value_t = SpendingArg::Even)]
    pub(crate) spending: SpendingArg,
    /// Don't wait for a contrast whose chance to be decided at a later look is below this; 0 waits for every one.
    #[arg(long, value_name = "CHANCE", value_parser = chance, default_value_t = isobench_plan::defaults::FUTILITY)]
    pub(crate) futility: f64,
    /// In one block of N, launch the baseline once more under a hidden name (an A/A sentinel): the report says how often it
    /// was found to differ from itself.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=MOST_BLOCKS))]
    pub(crate) sentinel: Option<u32>,
    /// Add an agent with an empty patch to every task, whose verdicts should all be ties.
    #[arg(long)]
    pub(crate) negative_control: bool,
}

impl Default for DesignArgs {
    fn default() -> Self {
        Self {
            fixed: None,
            looks: Vec::new(),
            max_blocks: None,
            spending: SpendingArg::Even,
            futility: isobench_plan::defaults::FUTILITY,
            sentinel: None,
            negative_control: false,
        }
    }
}

impl DesignArgs {
    /// Returns what the planner needs of them.
    pub(crate) fn options(&self) -> DesignOptions {
        let looks = match self.fixed {
            Some(blocks) => Some(vec![blocks]),
            None => (!self.looks.is_empty()).then(|| self.looks.clone()),
        };
        DesignOptions {
            looks,
            max_blocks: self.max_blocks,
            spending: match self.spending {
                SpendingArg::Pocock => Spending::Pocock,
                SpendingArg::Even => Spending::Even,
                SpendingArg::ObrienFleming => Spending::OBrienFleming,
            },
            futility: Some(self.futility).filter(|chance| *chance > 0.0),
            sentinel_every: self.sentinel,
            negative_control: self.negative_control,
        }
    }
}

/// How the error is spent over looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SpendingArg {
    /// Nearly equal levels at every look: the earliest decisions.
    Pocock,
    /// As much of the error as of the blocks.
    Even,
    /// Hardly anything early: the most power at the last look.
    ObrienFleming,
}

fn chance(text: &str) -> Result<f64, String> {
    let chance = text.parse().ok().filter(|chance| (0.0..1.0).contains(chance));
    chance.ok_or_else(|| "give a chance from 0 to below 1".to_owned())
}

/// What a run may use up.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Budget")]
pub(crate) struct BudgetArgs {
    /// Stop before the launches of the whole run have taken longer than this; every task is brought to its first look before
    /// any is taken further.
    #[arg(long, value_name = "MINUTES", value_parser = above_zero)]
    pub(crate) budget_minutes: Option<f64>,
    /// Stop before the devices have cost more than this, at the price of `--price` or of the device's table.
    #[arg(long, value_name = "USD", value_parser = above_zero)]
    pub(crate) budget_money: Option<f64>,
}

fn above_zero(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number: &f64| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "give a number above 0".to_owned())
}
