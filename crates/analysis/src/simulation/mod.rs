//! Whole runs on made-up machines: how often the judge is wrong, how soon it is right, and what other rules would have said
//! of the same launches.
//!
//! A [`Scenario`] is a design and a [`Machine`]. A session draws its launches one by one, block by block, in the orders that a
//! plan would have, and is judged by the same code as a run (`judge::looks`): this module has no rule of its own. Launches
//! are drawn for the two arms that are compared; what the other arms do is that they take time and places.
//!
//! Everything follows from a seed, and a session from its own seed alone, so that sessions may be divided among threads as
//! one likes: see [`Session::run`] and [`seeds`].

mod machine;
mod rivals;
mod tally;

use isobench_schema::order;
use isobench_schema::plan::{Design, Look, Spending};
use isobench_schema::units::Seconds;
use isobench_schema::verdict::{LookDecision, LookResult};

use crate::judge::looks::{self, Asked, Point};
use crate::stats::draws::Draws;
use crate::stats::{Interval, OneSample};

pub use crate::judge::looks::SerialTest;
pub use machine::{Launched, Machine, Noise, Pair, Sequence};
pub use rivals::{Calls, Rival, RivalRules};
pub use tally::Tally;

/// What is compared, as the judge names it; its seeds follow from the name.
const PURPOSE: &str = "human against baseline";

/// A design and the machine on which it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// How many arms a block has; two of them are compared.
    pub arms: usize,
    /// The looks with their levels.
    pub looks: Vec<Look>,
    /// How the levels spend the error: where blocks are lost they are calculated anew.
    pub spending: Spending,
    /// Below which chance to be decided a run isn't waited for; `None` waits for the last look.
    pub futility: Option<f64>,
    /// The smallest difference of interest, as a share. With 0 every significant difference counts.
    pub margin: f64,
    /// The true log ratio of the two arms.
    pub effect: f64,
    /// The machine.
    pub machine: Machine,
    /// The order of launches.
    pub sequence: Sequence,
    /// The blocks that infrastructure spoils for good.
    pub lost: Vec<u32>,
    /// Where drift over blocks is looked for. It takes most of a session's time.
    pub serial: SerialTest,
}

impl Scenario {
    /// Returns a run of so many arms on a machine, with looks that spend evenly: without margin, effect, futility and lost blocks,
    /// in the planned orders.
    pub fn plain(arms: usize, looks: Vec<Look>, machine: Machine) -> Self {
        Self {
            arms,
            looks,
            spending: Spending::Even,
            futility: None,
            margin: 0.0,
            effect: 0.0,
            machine,
            sequence: Sequence::Planned,
            lost: Vec::new(),
            serial: SerialTest::WhereItDecides,
        }
    }
}

/// One run of a scenario.
#[derive(Debug, Clone, PartialEq)]
pub struct Session {
    /// The launches of every block that isn't lost, up to the last look.
    pub pairs: Vec<Pair>,
    /// What the looks say: all of them, or with futility those up to the one that ends the run.
    pub looks: Vec<LookResult>,
    /// The number of the look whose numbers the verdict has: the first that decides, else the last.
    pub end: usize,
}

impl Session {
    /// Runs a scenario.
    pub fn run(scenario: &Scenario, seed: u64) -> Self {
        let pairs = machine::session(scenario, seed);
        let looks = judge(scenario, &pairs, seed);
        let decides = |result: &LookResult| result.decision.verdict().is_some();
        let end = looks.iter().position(decides).unwrap_or(looks.len().saturating_sub(1));
        Self { pairs, looks, end }
    }

    /// Returns what the look says by which the run ends. `None` of a scenario without looks.
    pub fn ended(&self) -> Option<&LookResult> {
        self.looks.get(self.end)
    }

    /// Returns what an interval of 95 % would be for somebody who doesn't know that there were looks: Student's t on the
    /// blocks up to the end.
    pub fn naive_interval(&self) -> Option<Interval> {
        let planned = self.ended()?.planned;
        let within = self.pairs.iter().filter(|pair| pair.block < planned);
        OneSample::of(&within.map(Pair::difference).collect::<Vec<f64>>())?.interval(0.05)
    }
}

/// Returns the seeds of so many sessions.
pub fn seeds(runs: u32, seed: u64) -> impl Iterator<Item = u64> {
    let mut draws = Draws::new(seed);
    (0..runs).map(move |_| draws.seed())
}

fn judge(scenario: &Scenario, pairs: &[Pair], seed: u64) -> Vec<LookResult> {
    let design = Design {
        algorithm: order::ALGORITHM,
        seed,
        looks: scenario.looks.clone(),
        min_window_s: Seconds::new(1.0).expect("a second is a time"),
        replacements: 0,
        spending: scenario.spending,
        futility: scenario.futility,
        sentinel: None,
    };
    let point = |pair: &Pair| Point {
        block: pair.block,
        difference: pair.difference(),
        of: pair.of.position,
        against: pair.against.position,
    };
    let points: Vec<Point> = pairs.iter().map(point).collect();
    let (margin, arms, all) = (scenario.margin, scenario.arms, design.looks.len());
    let asked = |reached| Asked { design: &design, margin, arms, purpose: PURPOSE, reached, serial: scenario.serial };
    let up_to = |reached| looks::of(asked(reached), &points);
    if scenario.futility.is_none() {
        return up_to(all);
    }
    // Whether to wait is asked at each look as the run comes to it.
    let mut results = Vec::with_capacity(all);
    for reached in 1..=all {
        let Some(result) = up_to(reached).pop() else { break };
        results.push(result);
        if result.decision.ends_waiting() {
            break;
        }
    }
    results
}

/// Returns whether the run ended because nothing was left to hope for.
fn is_hopeless(result: &LookResult) -> bool {
    result.decision == LookDecision::Hopeless
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::sequential::looks;

    /// Returns a scenario of standard normal differences without a margin or an effect.
    pub(super) fn scenario(arms: usize, schedule: &[u32]) -> Scenario {
        let one = |blocks: u32| Look { blocks, level: 0.05, equivalence_level: 0.05 };
        let looks = match schedule {
            [blocks] => vec![one(*blocks)],
            _ => looks(Spending::Even, schedule).unwrap(),
        };
        Scenario { serial: SerialTest::EveryLook, ..Scenario::plain(arms, looks, Machine::steady(1.0)) }
    }

    #[test]
    fn a_session_ends_at_the_first_look_that_decides() {
        let mut asked = scenario(2, &[6, 10, 16, 24]);
        asked.effect = 3.0;
        let found = Session::run(&asked, 1);
        assert_eq!((found.looks.len(), found.end), (4, 0));
        assert_eq!(found.ended().unwrap().decision, LookDecision::Better);
        asked.effect = 0.0;
        let found = Session::run(&asked, 2);
        assert_eq!((found.end, found.ended().unwrap().decision), (3, LookDecision::Undecided));
        assert_eq!(Session::run(&asked, 2), found);
        assert_ne!(Session::run(&asked, 3), found);
        let naive = found.naive_interval().unwrap();
        let own = found.ended().unwrap();
        assert!(naive.low > own.low.unwrap() && naive.high < own.high.unwrap(), "{naive:?} {own:?}");
    }

    #[test]
    fn where_drift_is_looked_for_changes_no_verdict() {
        let mut asked = scenario(2, &[6, 10, 16, 24]);
        (asked.machine.follows, asked.effect) = (0.5, 0.7);
        let mut spared = asked.clone();
        spared.serial = SerialTest::WhereItDecides;
        let mut seen = 0;
        for seed in 0..40 {
            let (every, fewer) = (Session::run(&asked, seed), Session::run(&spared, seed));
            let verdict = |session: &Session| session.ended().unwrap().decision.verdict();
            assert_eq!((every.end, verdict(&every)), (fewer.end, verdict(&fewer)));
            seen += usize::from(every.looks != fewer.looks);
        }
        assert!(seen > 0);
    }

    #[test]
    fn a_hopeless_run_ends_at_once() {
        let mut asked = scenario(2, &[6, 10, 16, 24]);
        (asked.margin, asked.futility) = (0.5, Some(0.9));
        let found = Session::run(&asked, 3);
        assert!(is_hopeless(found.ended().unwrap()) && found.looks.len() == found.end + 1, "{found:?}");
    }

    #[test]
    fn a_block_that_is_lost_is_counted_by_nobody() {
        let mut asked = scenario(2, &[6, 10, 16, 24]);
        asked.lost = vec![3, 12];
        let found = Session::run(&asked, 3);
        assert_eq!(found.pairs.len(), 22);
        let counted: Vec<u32> = found.looks.iter().map(|look| look.blocks).collect();
        assert_eq!(counted, [5, 9, 14, 22]);
    }
}
