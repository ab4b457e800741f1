//! What is held to a bound: each claim with its worst number.

use isobench_analysis::simulation::Tally;

/// Where the numbers of a claim must lie, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
    Between(f64, f64),
}

impl Bound {
    fn holds(self, value: f64) -> bool {
        match self {
            Self::AtMost(most) => value <= most,
            Self::AtLeast(least) => value >= least,
            Self::Between(least, most) => (least..=most).contains(&value),
        }
    }

    /// Returns how bad a number is: the larger, the worse.
    fn badness(self, value: f64) -> f64 {
        match self {
            Self::AtMost(_) => value,
            Self::AtLeast(_) => -value,
            Self::Between(least, most) => (value - f64::midpoint(least, most)).abs(),
        }
    }

    fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("at most {most}"),
            Self::AtLeast(least) => format!("at least {least}"),
            Self::Between(least, most) => format!("{least} to {most}"),
        }
    }
}

/// A claim about some cells.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    text: &'static str,
    bound: Bound,
    /// Each number in percent, and the cell that it is of.
    numbers: Vec<(f64, String)>,
}

impl Claim {
    pub(crate) fn new(text: &'static str, bound: Bound) -> Self {
        Self { text, bound, numbers: Vec::new() }
    }

    /// Adds a number in percent.
    pub(crate) fn add(&mut self, value: f64, cell: &str) {
        self.numbers.push((value, cell.to_owned()));
    }

    /// Adds a share of a cell's runs.
    pub(crate) fn add_share(&mut self, tally: &Tally, count: u32, cell: &str) {
        self.add(100.0 * tally.share(count), cell);
    }

    /// Returns the numbers that the bound doesn't hold, with their cells.
    pub(crate) fn misses(&self) -> Vec<(f64, &str)> {
        let missed = self.numbers.iter().filter(|(value, _)| !self.bound.holds(*value));
        missed.map(|(value, cell)| (*value, cell.as_str())).collect()
    }

    /// Returns what is claimed.
    pub(crate) fn text(&self) -> &'static str {
        self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Returns its row: the claim, its bound, its worst number and where that is.
    pub(crate) fn row(&self) -> Vec<String> {
        let worst = self
            .numbers
            .iter()
            .max_by(|one, other| self.bound.badness(one.0).total_cmp(&self.bound.badness(other.0)))
            .unwrap();
        let missed = self.misses().len();
        let verdict = match missed {
            0 => "holds".to_owned(),
            _ => format!("**missed by {missed} of {}**", self.numbers.len()),
        };
        let (value, cell) = worst;
        vec![self.text.to_owned(), self.bound.text(), format!("{value:.2}"), format!("`{cell}`"), verdict]
    }
}
