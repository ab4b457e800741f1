//! The boundaries of the usual schedules, kept as data; others are calculated.

use std::sync::OnceLock;

use isobench_schema::plan::{Look, Spending};
use serde::{Deserialize, Serialize};

use super::{Boundary, BoundaryError, Interim, Sides};

/// The error over all looks, of a difference and of equivalence each.
const ERROR: f64 = 0.05;

/// One row of `knowledge/boundaries.toml`: the looks of a schedule with their levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct StoredBoundary {
    /// How the error is spent.
    pub spending: Spending,
    /// After how many blocks each look is.
    pub looks: Vec<u32>,
    /// The two-sided level of the difference at each look.
    pub difference: Vec<f64>,
    /// The one-sided level of each of the two tests of equivalence at each look.
    pub equivalence: Vec<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    error: f64,
    boundary: Vec<StoredBoundary>,
}

const TEXT: &str = include_str!("../../../../../knowledge/boundaries.toml");

impl StoredBoundary {
    /// Calculates the row of a schedule.
    ///
    /// # Errors
    /// Returns what is wrong with the schedule.
    pub fn calculate(spending: Spending, looks: &[u32]) -> Result<Self, BoundaryError> {
        let interim = Interim::schedule(looks);
        let levels =
            |sides| Boundary::spending(sides, spending, ERROR, &interim).map(|boundary: Boundary| boundary.levels());
        Ok(Self { spending, looks: looks.to_vec(), difference: levels(Sides::Two)?, equivalence: levels(Sides::One)? })
    }

    /// Returns the looks as a plan has them.
    pub fn to_looks(&self) -> Vec<Look> {
        let levels = self.difference.iter().zip(&self.equivalence);
        let looks = self.looks.iter().zip(levels);
        looks.map(|(&blocks, (&level, &equivalence_level))| Look { blocks, level, equivalence_level }).collect()
    }
}

/// Returns the rows of the table that is built into the program.
pub fn stored_boundaries() -> &'static [StoredBoundary] {
    static TABLE: OnceLock<Table> = OnceLock::new();
    let table = TABLE.get_or_init(|| match toml::from_str(TEXT) {
        Ok(table) => table,
        // A test reads the table, so that a program with a broken one is never built.
        Err(error) => unreachable!("knowledge/boundaries.toml: {error}"),
    });
    debug_assert!((table.error - ERROR).abs() < f64::EPSILON, "the table is of another error");
    &table.boundary
}

/// Returns the looks of a schedule with their levels: 5 % over all looks for a difference, and 5 % for equivalence at
/// exactly the margin. From the table where it has the schedule, else calculated, which takes about a tenth of a second
/// for four looks; both are the same.
///
/// # Errors
/// Returns what is wrong with the schedule.
pub fn looks(spending: Spending, blocks: &[u32]) -> Result<Vec<Look>, BoundaryError> {
    let stored = stored_boundaries().iter().find(|row| row.spending == spending && row.looks == blocks);
    match stored {
        Some(row) => Ok(row.to_looks()),
        None => Ok(StoredBoundary::calculate(spending, blocks)?.to_looks()),
    }
}

/// Returns the looks of a schedule of at most `most` blocks where differences are missing: for each look the planned
/// blocks and the differences that count, both growing. The same error is spent by each look as was planned, because what is
/// missing doesn't depend on what was seen.
///
/// # Errors
/// Returns what is wrong with the schedule.
pub fn looks_with_missing(spending: Spending, most: u32, counted: &[(u32, u32)]) -> Result<Vec<Look>, BoundaryError> {
    let interim: Vec<Interim> = counted
        .iter()
        .map(|&(planned, blocks)| Interim { blocks, fraction: f64::from(planned) / f64::from(most.max(1)) })
        .collect();
    let levels =
        |sides| Boundary::spending(sides, spending, ERROR, &interim).map(|boundary: Boundary| boundary.levels());
    let (difference, equivalence) = (levels(Sides::Two)?, levels(Sides::One)?);
    let looks = interim.iter().zip(difference.into_iter().zip(equivalence));
    Ok(looks
        .map(|(interim, (level, equivalence_level))| Look { blocks: interim.blocks, level, equivalence_level })
        .collect())
}
