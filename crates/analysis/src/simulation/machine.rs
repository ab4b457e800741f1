//! What launches are made of: the effect that is asked for, the machine's noise, and what the machine does to whoever comes
//! when.

use isobench_schema::order::orders;

use super::Scenario;
use crate::stats::draws::Draws;
use crate::stats::length;

/// The shape of a launch's own noise. Each has the mean zero and, but for [`Self::Requests`], a standard deviation of
/// exactly one; the longer tail is that of slow launches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Noise {
    /// Normal.
    Normal,
    /// Student's t with three degrees of freedom: a launch far off is no rarity.
    HeavyTail,
    /// Exponential in every arm: skewed, but the difference of two isn't.
    Skewed,
    /// Exponential in the arm that is asked about, normal in the other: the difference is skewed too.
    OneSkewed,
    /// Lognormal with a shape of 0.5 in the arm that is asked about, normal in the other.
    OneLognormal,
    /// Exponential in the arm that is asked about, lognormal with a shape of 0.5 in the other.
    SkewedApart,
    /// Normal, but one launch of twenty is slower by five standard deviations.
    SlowLaunches,
    /// The mean of 32 request latencies, lognormal with a shape of 1; the standard deviation is one within a few percent.
    Requests,
}

/// A machine, and how an arm's launches vary on it. All numbers are natural logarithms of ratios.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// The standard deviation of the difference of two launches of one block.
    pub spread: f64,
    /// The shape of each launch's noise.
    pub noise: Noise,
    /// How much of an arm's noise in one block is there in the next one too: the coefficient of an autoregression of the first
    /// order, from 0 to below 1. Above 0 block differences aren't independent.
    pub follows: f64,
    /// The standard deviation of what all launches of a block have in common.
    pub common: f64,
    /// By how much it follows that of the block before, from 0 to below 1.
    pub common_follows: f64,
    /// What a launch loses to the one before it in its block.
    pub slot: f64,
    /// What is lost from the first launch of a session to its last, evenly.
    pub drift: f64,
}

impl Machine {
    /// Returns a machine without faults: independent normal differences of this standard deviation.
    pub fn steady(spread: f64) -> Self {
        let noise = Noise::Normal;
        Self { spread, noise, follows: 0.0, common: 0.0, common_follows: 0.0, slot: 0.0, drift: 0.0 }
    }
}

/// In which order the two arms run that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Sequence {
    /// As a plan has it: [`orders`] of all arms.
    Planned,
    /// Always the one that is compared with before the one that is asked about: ABAB.
    Alternating,
    /// All launches of the one that is compared with, then all of the other.
    OneAfterTheOther,
}

/// A launch as far as the comparison needs it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Launched {
    /// The log of its metric; higher is better.
    pub value: f64,
    /// Its position in the block, from 0.
    pub position: u32,
}

/// The two launches of a block that are compared.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    /// The block's number, from 0.
    pub block: u32,
    /// That of the arm that is asked about.
    pub of: Launched,
    /// That of the arm that it is compared with.
    pub against: Launched,
}

impl Pair {
    /// Returns the log ratio, positive is better.
    pub fn difference(&self) -> f64 {
        self.of.value - self.against.value
    }
}

/// The arms that are compared, as [`orders`] number them.
const AGAINST: usize = 0;
const OF: usize = 1;

/// Requests of which a launch's noise is made, and what the logarithm of their mean deviates by (√((e − 1)/32), to the first
/// order).
const REQUESTS: u32 = 32;
const OF_REQUESTS: f64 = 0.231_726;

/// How rare slow launches are, and by how many standard deviations they are slow.
const SLOW: f64 = 0.05;
const SLOWER: f64 = 5.0;

/// Returns the blocks of a session of all that its last look needs; lost ones are left out.
pub(super) fn session(scenario: &Scenario, seed: u64) -> Vec<Pair> {
    let blocks = scenario.looks.last().map_or(0, |look| look.blocks);
    let places = places(scenario, blocks, seed);
    let machine = scenario.machine;
    let mut draws = Draws::new(seed);
    let mut of = Following::new(machine.follows);
    let mut against = Following::new(machine.follows);
    let (mut common, mut other_common) =
        (Following::new(machine.common_follows), Following::new(machine.common_follows));
    let each = machine.spread / 2.0_f64.sqrt();
    let mut pairs = Vec::with_capacity(places.len());
    for (block, [against_place, of_place]) in (0..).zip(places) {
        let shared = machine.common * common.next(draws.normal());
        // Launches that aren't back to back have nothing in common.
        let of_shared = match scenario.sequence {
            Sequence::Planned | Sequence::Alternating => shared,
            Sequence::OneAfterTheOther => machine.common * other_common.next(draws.normal()),
        };
        let against_noise = against.next(draw(machine.noise, AGAINST, &mut draws));
        let of_noise = of.next(draw(machine.noise, OF, &mut draws));
        let value =
            |place: Place, own: f64| own - machine.slot * f64::from(place.position) - machine.drift * place.time;
        pairs.push(Pair {
            block,
            of: Launched {
                value: value(of_place, of_shared + each * of_noise) + scenario.effect,
                position: of_place.position,
            },
            against: Launched {
                value: value(against_place, shared + each * against_noise),
                position: against_place.position,
            },
        });
    }
    pairs.retain(|pair| !scenario.lost.contains(&pair.block));
    pairs
}

/// Where and when a launch is: its position in the block, and its time from 0 to 1.
#[derive(Debug, Clone, Copy)]
struct Place {
    position: u32,
    time: f64,
}

/// Returns for each block where the arm is that is compared with, and the one that is asked about.
fn places(scenario: &Scenario, blocks: u32, seed: u64) -> Vec<[Place; 2]> {
    let arms = match scenario.sequence {
        Sequence::Planned => scenario.arms,
        Sequence::Alternating | Sequence::OneAfterTheOther => 2,
    };
    let launches = f64::from(blocks) * length(arms);
    let time = |number: f64| number / (launches - 1.0).max(1.0);
    let in_block = |block: u32, position: u32| Place {
        position,
        time: time(f64::from(block) * length(arms) + f64::from(position)),
    };
    match scenario.sequence {
        Sequence::Planned => {
            let place = |order: &[usize], arm: usize| {
                u32::try_from(order.iter().position(|one| *one == arm).unwrap_or_default()).unwrap_or_default()
            };
            let both = |(block, order): (u32, Vec<usize>)| {
                [in_block(block, place(&order, AGAINST)), in_block(block, place(&order, OF))]
            };
            (0..).zip(orders(arms, blocks, seed)).map(both).collect()
        }
        Sequence::Alternating => (0..blocks).map(|block| [in_block(block, 0), in_block(block, 1)]).collect(),
        Sequence::OneAfterTheOther => {
            // Each has the session's same half of launches before or after it, and no position in a block.
            let alone = |number: u32| Place { position: 0, time: time(f64::from(number)) };
            (0..blocks).map(|block| [alone(block), alone(blocks + block)]).collect()
        }
    }
}

/// An autoregression of the first order whose values have the variance of what comes in.
#[derive(Debug, Clone, Copy)]
struct Following {
    follows: f64,
    before: Option<f64>,
}

impl Following {
    fn new(follows: f64) -> Self {
        Self { follows, before: None }
    }

    fn next(&mut self, fresh: f64) -> f64 {
        let now = match self.before {
            None => fresh,
            Some(before) => self.follows * before + (1.0 - self.follows * self.follows).sqrt() * fresh,
        };
        self.before = Some(now);
        now
    }
}

fn draw(noise: Noise, arm: usize, draws: &mut Draws) -> f64 {
    let is_asked = arm == OF;
    match noise {
        Noise::OneSkewed | Noise::OneLognormal if !is_asked => draws.normal(),
        Noise::Normal => draws.normal(),
        // The variance of t with three degrees of freedom is 3.
        Noise::HeavyTail => draws.normal() / draws.chi_squared(3).sqrt(),
        Noise::Skewed | Noise::OneSkewed => exponential(draws),
        Noise::SkewedApart if is_asked => exponential(draws),
        Noise::OneLognormal | Noise::SkewedApart => lognormal(0.5, draws),
        Noise::SlowLaunches => {
            let is_slow = if draws.uniform() < SLOW { 1.0 } else { 0.0 };
            let centred = draws.normal() - SLOWER * (is_slow - SLOW);
            centred / (1.0 + SLOW * (1.0 - SLOW) * SLOWER * SLOWER).sqrt()
        }
        Noise::Requests => {
            let sum: f64 = (0..REQUESTS).map(|_| draws.normal().exp()).sum();
            // The latencies' mean is √e. What is left of a bias is the same in both arms.
            (0.5 - (sum / f64::from(REQUESTS)).ln()) / OF_REQUESTS
        }
    }
}

/// Returns an exponential number, turned so that its tail is that of slow launches.
fn exponential(draws: &mut Draws) -> f64 {
    1.0 + draws.uniform().ln()
}

fn lognormal(shape: f64, draws: &mut Draws) -> f64 {
    let square = shape * shape;
    let spread = (square.exp_m1() * square.exp()).sqrt();
    ((square / 2.0).exp() - (shape * draws.normal()).exp()) / spread
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::tests::scenario;
    use crate::stats::{mean, standard_deviation};

    #[test]
    fn noise_has_no_mean_and_a_deviation_of_one() {
        for noise in [
            Noise::Normal,
            Noise::Skewed,
            Noise::OneSkewed,
            Noise::OneLognormal,
            Noise::SkewedApart,
            Noise::SlowLaunches,
            Noise::Requests,
        ] {
            for arm in [AGAINST, OF] {
                let mut draws = Draws::new(4);
                let values: Vec<f64> = (0..20_000).map(|_| draw(noise, arm, &mut draws)).collect();
                let (centre, spread) = (mean(&values).unwrap(), standard_deviation(&values).unwrap());
                // The mean of requests is off by half of the variance of its logarithm, in every arm.
                let bias = if noise == Noise::Requests { OF_REQUESTS / 2.0 } else { 0.0 };
                assert!((centre - bias).abs() < 0.03 && (spread - 1.0).abs() < 0.05, "{noise:?}: {centre} {spread}");
            }
        }
        // A heavy tail has no fourth moment: its quartiles are those of t, ±0.7649/√3.
        let mut draws = Draws::new(5);
        let inside = (0..20_000).filter(|_| draw(Noise::HeavyTail, OF, &mut draws).abs() < 0.764_892 / 3.0_f64.sqrt());
        assert!((length(inside.count()) / 20_000.0 - 0.5).abs() < 0.015);
    }

    #[test]
    fn differences_have_the_spread_and_the_effect_that_are_asked_for() {
        let mut asked = scenario(2, &[400]);
        asked.effect = 0.3;
        asked.machine.common = 5.0;
        let differences: Vec<f64> = session(&asked, 1).iter().map(Pair::difference).collect();
        assert!((mean(&differences).unwrap() - 0.3).abs() < 0.2, "{differences:?}");
        assert!((standard_deviation(&differences).unwrap() - 1.0).abs() < 0.15);
    }

    #[test]
    fn what_follows_the_block_before_does_so_by_as_much_as_is_asked() {
        let mut asked = scenario(2, &[2_000]);
        asked.machine.follows = 0.6;
        let values: Vec<f64> = session(&asked, 1).iter().map(Pair::difference).collect();
        let products: f64 = values.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let squares: f64 = values.iter().map(|value| value * value).sum();
        assert!((products / squares - 0.6).abs() < 0.06, "{}", products / squares);
        assert!((standard_deviation(&values).unwrap() - 1.0).abs() < 0.1);
    }

    #[test]
    fn time_and_place_take_what_they_take() {
        let mut asked = scenario(3, &[6]);
        asked.machine.spread = 0.0;
        (asked.machine.slot, asked.machine.drift) = (0.01, 0.17);
        for pair in session(&asked, 9) {
            // Seventeen steps from the first launch to the last.
            let value = |launched: Launched| {
                let number = f64::from(pair.block * 3 + launched.position);
                -0.01 * f64::from(launched.position) - 0.01 * number
            };
            assert!((pair.of.value - value(pair.of)).abs() < 1e-12, "{pair:?}");
            assert!((pair.against.value - value(pair.against)).abs() < 1e-12, "{pair:?}");
        }
        asked.arms = 2;
        asked.sequence = Sequence::OneAfterTheOther;
        asked.machine.drift = 0.11;
        let pairs = session(&asked, 9);
        assert!(pairs.iter().all(|pair| (pair.difference() + 0.06).abs() < 1e-12), "{pairs:?}");
        asked.sequence = Sequence::Alternating;
        let pairs = session(&asked, 9);
        assert!(pairs.iter().all(|pair| (pair.difference() + 0.02).abs() < 1e-12), "{pairs:?}");
        asked.lost = vec![0, 4];
        let left: Vec<u32> = session(&asked, 9).iter().map(|pair| pair.block).collect();
        assert_eq!(left, [1, 2, 3, 5]);
    }
}
