//! One contrast at every look: its numbers, the levels that they are held to, and what they decide.

use isobench_schema::order::derive_seed;
use isobench_schema::plan::{Design, Look};
use isobench_schema::verdict::{LookDecision, LookResult};

use super::levels;
use crate::stats::sequential::{Decision, is_hopeless};
use crate::stats::{Interval, OneSample, Placed, SerialCorrelation, length, position_model, serial_correlation_below};

/// An interval needs this many blocks.
pub(crate) const FEWEST_BLOCKS: usize = 5;

/// Block differences with a positive serial correlation of a p below this are no independent evidence.
const SERIAL: f64 = 0.01;

/// The position model is used if it leaves this many degrees of freedom, and at least half of the differences.
const FEWEST_DEGREES: f64 = 3.0;

/// The difference of one block that counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    /// The block.
    pub(crate) block: u32,
    /// The log ratio, positive is better.
    pub(crate) difference: f64,
    /// The position of the arm that is asked about.
    pub(crate) of: u32,
    /// The position of the arm that it is compared with.
    pub(crate) against: u32,
}

/// A mean difference with all that is needed to judge it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    pub(crate) mean: f64,
    pub(crate) standard_error: f64,
    pub(crate) degrees_of_freedom: u32,
}

impl Estimate {
    /// Returns the mean difference of these blocks: the plain one, or where the orders so far are not balanced that of the
    /// position model, if enough degrees of freedom are left.
    pub(crate) fn of(points: &[Point], positions: usize) -> Option<Self> {
        let differences: Vec<f64> = points.iter().map(|point| point.difference).collect();
        let sample = OneSample::of(&differences)?;
        let plain = Self {
            mean: sample.mean,
            standard_error: sample.standard_error(),
            degrees_of_freedom: whole(sample.degrees_of_freedom()),
        };
        if is_balanced(points) {
            return Some(plain);
        }
        let place = |position: u32| usize::try_from(position).unwrap_or(usize::MAX);
        let placed: Vec<Placed> = points
            .iter()
            .map(|point| Placed { difference: point.difference, of: place(point.of), against: place(point.against) })
            .collect();
        let enough = |degrees: f64| degrees >= FEWEST_DEGREES && 2.0 * degrees >= length(points.len());
        let adjusted = position_model(&placed, positions).filter(|adjusted| enough(adjusted.degrees_of_freedom));
        Some(adjusted.map_or(plain, |adjusted| Self {
            mean: adjusted.mean,
            standard_error: adjusted.standard_error,
            degrees_of_freedom: whole(adjusted.degrees_of_freedom),
        }))
    }
}

/// Returns degrees of freedom, which are whole, as such.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "they are small counts")]
fn whole(degrees: f64) -> u32 {
    degrees.max(0.0).round() as u32
}

/// Returns whether both arms stood equally often at each position.
fn is_balanced(points: &[Point]) -> bool {
    let sorted = |position: fn(&Point) -> u32| {
        let mut positions: Vec<u32> = points.iter().map(position).collect();
        positions.sort_unstable();
        positions
    };
    sorted(|point| point.of) == sorted(|point| point.against)
}

/// Where it is asked whether differences follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SerialTest {
    /// At every look, as a run does.
    EveryLook,
    /// Where a look would decide something: verdicts are the same, but an undecided look isn't called drift.
    WhereItDecides,
}

/// What is asked of a contrast's looks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) design: &'a Design,
    /// The smallest difference of interest, as a share.
    pub(crate) margin: f64,
    /// How many arms a block has.
    pub(crate) arms: usize,
    /// The contrast's name, from which its seeds are derived.
    pub(crate) purpose: &'a str,
    /// How many looks are complete.
    pub(crate) reached: usize,
    /// Where drift is looked for.
    pub(crate) serial: SerialTest,
}

/// Returns what each complete look says of a contrast, in order.
pub(crate) fn of(asked: Asked<'_>, points: &[Point]) -> Vec<LookResult> {
    let mut counted: Vec<(Look, u32)> = Vec::new();
    let mut results: Vec<LookResult> = Vec::new();
    for (number, look) in (0..).zip(asked.design.looks.iter().take(asked.reached)) {
        let points = before(points, look.blocks);
        let found = u32::try_from(points.len()).unwrap_or(u32::MAX);
        let empty = LookResult {
            look: number,
            planned: look.blocks,
            blocks: found,
            level: look.level,
            equivalence_level: look.equivalence_level,
            decision: LookDecision::TooFew,
            estimate: None,
            low: None,
            high: None,
            p: None,
            equivalence_low: None,
            equivalence_high: None,
        };
        let is_more = counted.last().is_none_or(|(_, before)| *before < found);
        let result = match results.last().filter(|_| !is_more) {
            // Without a new difference there is nothing to look at, and no error is spent.
            Some(last) => LookResult { look: number, planned: look.blocks, ..*last },
            None if points.len() < FEWEST_BLOCKS => empty,
            None => {
                counted.push((*look, found));
                at_look(asked, points, &counted, empty)
            }
        };
        results.push(result);
    }
    wait_or_not(asked, points, &mut results);
    results
}

/// Returns the differences of blocks before that one.
fn before(points: &[Point], blocks: u32) -> &[Point] {
    let end = points.partition_point(|point| point.block < blocks);
    points.get(..end).unwrap_or(points)
}

fn at_look(asked: Asked<'_>, points: &[Point], counted: &[(Look, u32)], empty: LookResult) -> LookResult {
    let look = levels::looks(asked.design, counted).and_then(|looks| looks.last().copied());
    let positions = asked.arms;
    let Some((look, estimate)) = look.zip(Estimate::of(points, positions)) else { return empty };
    let Estimate { mean, standard_error, degrees_of_freedom } = estimate;
    let Some(rule) = levels::rule(look, degrees_of_freedom) else { return empty };
    let around = |bound: f64| Interval { low: mean - bound * standard_error, high: mean + bound * standard_error };
    let (interval, equivalence) = (around(rule.critical), around(rule.equivalence));
    let differences: Vec<f64> = points.iter().map(|point| point.difference).collect();
    let decided = rule.decide(mean, standard_error, asked.margin.ln_1p());
    let is_asked = match asked.serial {
        SerialTest::EveryLook => true,
        SerialTest::WhereItDecides => decided.is_some(),
    };
    let decision = if is_asked && drift(asked.design, asked.purpose, &differences).is_some() {
        LookDecision::Drift
    } else {
        match decided {
            Some(Decision::Better) => LookDecision::Better,
            Some(Decision::Worse) => LookDecision::Worse,
            Some(Decision::Trivial) => LookDecision::Trivial,
            Some(Decision::Equivalent) => LookDecision::Equivalent,
            None => LookDecision::Undecided,
        }
    };
    LookResult {
        level: look.level,
        equivalence_level: look.equivalence_level,
        decision,
        estimate: Some(mean),
        low: Some(interval.low),
        high: Some(interval.high),
        p: Some(rule.p(mean, standard_error)),
        equivalence_low: Some(equivalence.low),
        equivalence_high: Some(equivalence.high),
        ..empty
    }
}

/// Returns how the differences follow those of the block before, if they do.
pub(crate) fn drift(design: &Design, purpose: &str, differences: &[f64]) -> Option<SerialCorrelation> {
    let seed = derive_seed(design.seed, &format!("orders of {purpose}"));
    serial_correlation_below(differences, SERIAL, seed)
}

/// Marks the last look if nothing is left to wait for. Earlier looks didn't end the task, whatever its chances were then.
fn wait_or_not(asked: Asked<'_>, points: &[Point], results: &mut [LookResult]) {
    let design = asked.design;
    let decided = results.iter().any(|result| result.decision.verdict().is_some());
    let to_come = design.looks.get(results.len()..).unwrap_or_default();
    let Some(last) = results.last_mut().filter(|last| last.decision == LookDecision::Undecided && !decided) else {
        return;
    };
    let Some(least) = design.futility.filter(|_| !to_come.is_empty()) else { return };
    let differences: Vec<f64> = before(points, last.planned).iter().map(|point| point.difference).collect();
    let seed = derive_seed(design.seed, &format!("futures of {} at look {}", asked.purpose, last.look));
    let hopeless =
        OneSample::of(&differences).and_then(|sample| is_hopeless(&sample, to_come, asked.margin.ln_1p(), least, seed));
    if hopeless == Some(true) {
        last.decision = LookDecision::Hopeless;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(block: u32, difference: f64, of: u32, against: u32) -> Point {
        Point { block, difference, of, against }
    }

    #[test]
    fn balanced_orders_leave_the_plain_mean() {
        let points: Vec<Point> = (0..6).map(|block| point(block, f64::from(block), block % 2, 1 - block % 2)).collect();
        let found = Estimate::of(&points, 2).unwrap();
        assert!((found.mean - 2.5).abs() < 1e-12 && found.degrees_of_freedom == 5, "{found:?}");
    }

    #[test]
    fn where_a_block_is_missing_the_positions_are_taken_out() {
        // The arm that goes second loses 1; without the last block the plain mean is off by 0.2.
        let points: Vec<Point> = (0..5)
            .map(|block| {
                let of = block % 2;
                point(block, 0.3 - f64::from(of) + f64::from(1 - of) + 0.001 * f64::from(block), of, 1 - of)
            })
            .collect();
        let found = Estimate::of(&points, 2).unwrap();
        assert!((found.mean - 0.302).abs() < 1e-9, "{found:?}");
        assert_eq!(found.degrees_of_freedom, 3);
        // Four arms' positions would leave one degree of freedom: the plain mean then.
        assert_eq!(Estimate::of(&points, 4).unwrap().degrees_of_freedom, 4);
    }
}
