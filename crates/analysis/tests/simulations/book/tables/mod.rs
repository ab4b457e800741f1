//! The tables of the page: each knows its cells, its text, and what is claimed of its numbers.

mod cost;
mod coverage;
mod equivalence;
mod missing;
mod models;
mod null;
mod orders;
pub(crate) mod power;
pub(crate) mod rules;
mod serial;

use super::{Cell, Claim, Results};

/// A table.
pub(crate) struct Table {
    pub(crate) cells: fn() -> Vec<Cell>,
    pub(crate) text: fn(&Results) -> String,
    pub(crate) claims: fn(&Results) -> Vec<Claim>,
}

/// All of them, in the order of the page.
pub(crate) const ALL: &[Table] = &[
    null::TABLE,
    models::TABLE,
    missing::TABLE,
    serial::TABLE,
    equivalence::TABLE,
    coverage::TABLE,
    cost::TABLE,
    power::TABLE,
    rules::TABLE,
    orders::TABLE,
];
