//! Judging at several looks without judging too often: group-sequential boundaries of Student's t on block differences.
//!
//! A [`Boundary`] holds the level of each look. Levels are nominal: a look *crosses* if the p of Student's t over all
//! differences so far is below its level. They are found so that the probability to cross at some look, if there is no
//! difference, is the error asked for, whatever the spread is, for independent normal differences (`chain` says how this
//! is calculated without simulation). How much of the error may be used up by when is a [`Spending`] function, so that a
//! look may come earlier or later than planned, and there may be more of them, as long as neither depends on what was
//! seen (Lan and `DeMets` 1983).
//!
//! - **Difference**: two-sided levels, 5 % over all looks.
//! - **Equivalence**: at a true difference of exactly the margin, both one-sided tests can hold only if that against this
//!   margin does, and its t statistic is that of differences without a mean. So one-sided levels of 5 % over all looks keep
//!   the probability to ever find equivalence there at 5 % at most, whatever the spread is, and closer to 5 % the
//!   smaller it is.
//! - **Intervals**: the interval at a look's level covers the truth at all looks together with the probability 1 − error
//!   (repeated confidence intervals: Jennison and Turnbull 1989, JRSS B 51:305), because the differences less the truth have
//!   no mean. So it covers it with at least that probability wherever the sampling stops and why.
//!
//! Futility isn't part of the boundaries: a task may be stopped for it, or go on, and the error is never larger.

mod chain;
mod ideal;
mod outlook;
mod power;
mod rule;
mod spending;
mod table;

pub use chain::Sides;
pub use ideal::{Rates, Truth, simulate};
pub use outlook::{Assumed, Outlook, outlook};
pub use power::blocks_for_sequential;
pub use rule::{Decision, LookRule};
pub use table::{StoredBoundary, looks, looks_with_missing, stored_boundaries};

use chain::{Chain, Passed};
use isobench_schema::plan::Spending;

/// Student's t needs this many differences for its boundary to be followed.
const FEWEST_BLOCKS: u32 = 3;

/// Up to so many differences the quadrature is tested.
const MOST_BLOCKS: u32 = 10_000;

/// A look that is to come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interim {
    /// After how many differences.
    pub blocks: u32,
    /// Which part of the error may be used up when it is over: the information, from above 0 to 1.
    pub fraction: f64,
}

impl Interim {
    /// Returns the looks of a schedule: the information at a look is its part of the last look's differences.
    pub fn schedule(blocks: &[u32]) -> Vec<Self> {
        let most = f64::from(blocks.last().copied().unwrap_or(1).max(1));
        blocks.iter().map(|&blocks| Self { blocks, fraction: f64::from(blocks) / most }).collect()
    }
}

/// The levels of a sequence of looks.
#[derive(Debug, Clone, PartialEq)]
pub struct Boundary {
    sides: Sides,
    passed: Vec<Passed>,
}

/// Why there is no boundary for some looks.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum BoundaryError {
    /// There is nothing to look at.
    #[error("there are no looks")]
    NoLooks,
    /// The first look has too few differences.
    #[error("a look after {blocks} blocks is too early: the least is {FEWEST_BLOCKS}")]
    TooEarly {
        /// After how many.
        blocks: u32,
    },
    /// The last look has too many.
    #[error("a look after {blocks} blocks is too late: the most is {MOST_BLOCKS}")]
    TooLate {
        /// After how many.
        blocks: u32,
    },
    /// A look doesn't come after the one before it.
    #[error("a look after {blocks} blocks can't follow one after {before}")]
    NotLater {
        /// After how many.
        blocks: u32,
        /// And the one before.
        before: u32,
    },
    /// A look's information isn't above that of the one before it, or isn't between 0 and 1.
    #[error(
        "the information of the look after {blocks} blocks, {fraction}, must grow from look to look up to 1 at most"
    )]
    Information {
        /// After how many.
        blocks: u32,
        /// Its information.
        fraction: f64,
    },
    /// An error or level that no test can have.
    #[error("a level must lie above 0 and below 0.5, and {level} doesn't")]
    Level {
        /// The level.
        level: f64,
    },
}

impl Boundary {
    /// Returns the boundary that spends `error`, above 0 and below 0.5, over the looks.
    ///
    /// # Errors
    /// Returns what is wrong with the looks or the error.
    pub fn spending(sides: Sides, spending: Spending, error: f64, looks: &[Interim]) -> Result<Self, BoundaryError> {
        check_blocks(looks.iter().map(|look| look.blocks))?;
        check_level(error)?;
        let mut before = 0.0;
        for &Interim { blocks, fraction } in looks {
            if !(fraction > before && fraction <= 1.0) {
                return Err(BoundaryError::Information { blocks, fraction });
            }
            before = fraction;
        }
        let mut chain = Chain::new(sides);
        for look in looks {
            chain.spend(look.blocks, spending::spent(spending, error, look.fraction));
        }
        Ok(Self { sides, passed: chain.into_passed() })
    }

    /// Returns the boundary of looks whose levels are given: what error they have together is asked by [`Self::error`].
    ///
    /// # Errors
    /// Returns what is wrong with the looks or their levels.
    pub fn of_levels(sides: Sides, looks: &[(u32, f64)]) -> Result<Self, BoundaryError> {
        check_blocks(looks.iter().map(|(blocks, _)| *blocks))?;
        let mut chain = Chain::new(sides);
        for &(blocks, level) in looks {
            check_level(level)?;
            chain.pass(blocks, level);
        }
        Ok(Self { sides, passed: chain.into_passed() })
    }

    /// Returns on which sides it stands.
    pub fn sides(&self) -> Sides {
        self.sides
    }

    /// Returns after how many differences each look is.
    pub fn blocks(&self) -> Vec<u32> {
        self.passed.iter().map(|look| look.blocks).collect()
    }

    /// Returns the level of each look, with six digits: one-sided or two-sided as the boundary is.
    pub fn levels(&self) -> Vec<f64> {
        self.passed.iter().map(|look| look.level).collect()
    }

    /// Returns the probability to have crossed when each look is over, if there is no difference.
    pub fn spent(&self) -> Vec<f64> {
        self.passed.iter().map(|look| look.spent).collect()
    }

    /// Returns the probability to cross at some look, if there is no difference.
    pub fn error(&self) -> f64 {
        self.passed.last().map_or(0.0, |look| look.spent)
    }
}

fn check_blocks(all: impl Iterator<Item = u32>) -> Result<(), BoundaryError> {
    let mut before = None;
    for blocks in all {
        match before {
            None if blocks < FEWEST_BLOCKS => return Err(BoundaryError::TooEarly { blocks }),
            Some(before) if blocks <= before => return Err(BoundaryError::NotLater { blocks, before }),
            None | Some(_) => {}
        }
        if blocks > MOST_BLOCKS {
            return Err(BoundaryError::TooLate { blocks });
        }
        before = Some(blocks);
    }
    before.map(|_| ()).ok_or(BoundaryError::NoLooks)
}

fn check_level(level: f64) -> Result<(), BoundaryError> {
    if level > 0.0 && level < 0.5 { Ok(()) } else { Err(BoundaryError::Level { level }) }
}

#[cfg(test)]
mod tests;
