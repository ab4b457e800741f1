//! The shapes of arrivals, and what their processes give.

use super::*;
use crate::load_checks::audit::places::turns;
use crate::load_checks::audit::tests::{SendTimes, samples};
use crate::load_checks::draws::Draws;

fn of(due: &[f64], clump_s: f64, arrival: &Arrival) -> Pacing {
    let ns = |seconds: f64| std::time::Duration::from_secs_f64(seconds).as_nanos().try_into().unwrap();
    let requests: Vec<SendTimes> = due
        .iter()
        .map(|at| {
            let out = if clump_s > 0.0 { (at / clump_s).ceil() * clump_s } else { *at };
            SendTimes {
                intended_ns: ns(*at),
                released_ns: ns(out),
                out_ns: ns(out),
                first_token_ns: None,
                end_ns: ns(out + 0.1),
                is_later_turn: false,
            }
        })
        .collect();
    pacing(&turns(&samples(&requests), arrival, None), arrival).unwrap()
}

fn poisson(seed: u64, rate_per_s: f64, seconds: f64) -> Vec<f64> {
    let mut draws = Draws::new(seed);
    let mut at = 0.0;
    std::iter::from_fn(|| {
        at += draws.exponential(1.0 / rate_per_s);
        (at < seconds).then_some(at)
    })
    .collect()
}

fn distance(shape: Option<AgainstProcess>) -> f64 {
    let AgainstProcess { drawn, expected, standard_error, .. } = shape.unwrap();
    (drawn - expected.unwrap()) / standard_error.unwrap()
}

#[test]
fn a_poisson_schedule_is_within_its_sampling_error() {
    let arrival = Arrival::Open { rate_per_s: 2_000.0, burstiness: 1.0 };
    let mut squares = [0.0; 3];
    let runs = 40;
    for seed in 0..runs {
        let found = of(&poisson(seed, 2_000.0, 3.0), 0.0, &arrival);
        let distances = [found.gap_cv, found.dispersion, found.short_gaps].map(distance);
        for (square, distance) in squares.iter_mut().zip(distances) {
            assert!(distance.abs() < 4.5, "seed {seed}: {distances:?}");
            *square += distance * distance;
        }
        assert!(found.rate_error.abs() < 1e-9);
    }
    // Squares of standard normal numbers have mean 1; of 40 of them the mean is within 0.4 to 1.9 in 99.9 % of cases.
    for square in squares {
        let mean = square / crate::stats::real(runs);
        assert!((0.4..1.9).contains(&mean), "{squares:?}");
    }
}

#[test]
fn releases_in_clumps_show_in_their_short_gaps() {
    let arrival = Arrival::Open { rate_per_s: 2_000.0, burstiness: 1.0 };
    let found = of(&poisson(1, 2_000.0, 5.0), 0.001, &arrival).short_gaps.unwrap();
    // 1 - exp(-0.1) of a Poisson process's; of those in clumps of 1 ms over half.
    assert!((found.expected.unwrap() - 0.095_162_581_964_04).abs() < 1e-12, "{found:?}");
    assert!(found.sent > 0.4, "{found:?}");
}

#[test]
fn the_numbers_of_a_gamma_process_are_those_of_scipy() {
    let process = |shape| Process::Gamma { rate_per_s: 200.0, shape };
    // scipy.stats.gamma.cdf(50e-6, 0.25, scale=4/200); the same of (2, scale=1/400)
    for (shape, expected) in [(0.25, 0.246_573_765_634_030_2), (2.0, 0.000_197_353_227_109_591_84)] {
        let (found, _) = expected_short(process(shape), 100).unwrap();
        assert!((found / expected - 1.0).abs() < 1e-7, "{shape}: {found}");
    }
    // Means of 150 simulated series of 300 intervals with 20 requests each (NumPy): 3.8641, 1.9686, 0.5045, 0.2563, with
    // standard errors of 0.026, 0.012, 0.0036, 0.0017.
    for (shape, simulated, error) in
        [(0.25, 3.8641, 0.026), (0.5, 1.9686, 0.012), (2.0, 0.5045, 0.0036), (4.0, 0.2563, 0.0017)]
    {
        let (found, _) = expected_dispersion(process(shape), 300).unwrap();
        assert!((found - simulated).abs() < 3.0 * error, "{shape}: {found}");
    }
    assert!(expected_dispersion(Process::Gamma { rate_per_s: 10.0, shape: 0.25 }, 300).is_none());
}

#[test]
fn equal_gaps_have_no_variation() {
    let due: Vec<f64> = (0..400).map(|index| f64::from(index) / 125.0).collect();
    let found = of(&due, 0.0, &Arrival::Constant { rate_per_s: 125.0 });
    assert!(found.gap_cv.unwrap().sent < 1e-6);
    assert_eq!(found.asked_per_s, Some(125.0));
    // 12 and 13 requests in turn: variance 0.25 over 12.5.
    let dispersion = found.dispersion.unwrap();
    assert!((dispersion.expected.unwrap() - 0.02).abs() < 1e-12 && (dispersion.sent - 0.02).abs() < 0.002);
}

#[test]
fn too_few_gaps_have_no_shape() {
    let due: Vec<f64> = (0..50).map(|index| f64::from(index) / 10.0).collect();
    let found = of(&due, 0.0, &Arrival::Constant { rate_per_s: 10.0 });
    assert!(found.gap_cv.is_none() && found.short_gaps.is_none());
    assert!(pacing(&[], &Arrival::AllAtOnce).is_none());
}
