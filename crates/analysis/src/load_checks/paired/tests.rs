//! What two servers are said to differ by, against what they do differ by.

use super::*;
use crate::load_checks::draws::Draws;
use crate::stats::length;

/// Four pairs in each slice: the log ratio of a slice has this standard deviation and memory about
/// `log_ratio`, which is that of the means, and each
/// request its own length, which both servers feel, and a little noise.
fn load(draws: &mut Draws, slices: usize, log_ratio: f64, deviation: f64, memory: f64) -> Vec<Pair> {
    let shifts = draws.autoregressive(slices, memory);
    let mut pairs = Vec::new();
    for (slice, shift) in shifts.iter().enumerate() {
        for place in 0..4_u64 {
            let common = (0.5 * draws.normal()).exp();
            let mut noise = || (0.01 * draws.normal()).exp();
            let (first, second) = (noise(), noise());
            pairs.push(Pair {
                at_ns: count(slice) * 1_000_000_000 + place * 333_333_333,
                first: Part::one(100.0 * common * first),
                second: Part::one(100.0 * common * second * (log_ratio + deviation * (shift - deviation / 2.0)).exp()),
            });
        }
    }
    pairs
}

struct Found {
    covers: f64,
    excludes_zero: f64,
    pairs_cover: f64,
    without_interval: f64,
}

fn simulate(slices: usize, log_ratio: f64, deviation: f64, memory: f64) -> Found {
    let mut draws = Draws::new(3);
    let runs = 500;
    let (mut covers, mut excludes, mut pairs_cover, mut without) = (0, 0, 0, 0);
    let truth = log_ratio.exp_m1();
    for _ in 0..runs {
        let PairedMetric::Compared { by_time, by_pair, .. } =
            latency(&load(&mut draws, slices, log_ratio, deviation, memory))
        else {
            panic!("too few");
        };
        let Some(interval) = by_time.interval else {
            without += 1;
            continue;
        };
        covers += usize::from(interval.low <= truth && truth <= interval.high);
        excludes += usize::from(interval.low > 0.0 || interval.high < 0.0);
        let pair = by_pair.unwrap().interval;
        pairs_cover += usize::from(pair.is_none_or(|pair| pair.low <= truth && truth <= pair.high));
    }
    let share = |hits: usize| length(hits) / length(runs - without);
    Found {
        covers: share(covers),
        excludes_zero: share(excludes),
        pairs_cover: share(pairs_cover),
        without_interval: length(without) / length(runs),
    }
}

#[test]
fn the_interval_covers_no_difference_where_there_is_none() {
    let found = simulate(60, 0.0, 0.05, 0.0);
    assert!((0.93..=0.97).contains(&found.covers), "{}", found.covers);
    assert!(found.pairs_cover >= 0.92, "{}", found.pairs_cover);
    let correlated = simulate(60, 0.0, 0.05, 0.5);
    assert!(correlated.covers >= 0.9, "{}", correlated.covers);
    assert!(correlated.without_interval < 0.3, "{}", correlated.without_interval);
}

#[test]
fn a_difference_of_three_in_a_hundred_is_found_as_often_as_said() {
    let difference = 1.03_f64.ln();
    for (slices, deviation, power) in
        [(60, 0.08, 0.75), (20, 0.08, 0.28), (60, 0.05, 0.99), (20, 0.05, 0.62), (20, 0.02, 1.0)]
    {
        let found = simulate(slices, difference, deviation, 0.0);
        assert!((found.excludes_zero - power).abs() < 0.06, "{slices} of {deviation}: {}", found.excludes_zero);
    }
}

#[test]
fn servers_that_are_differently_spread_have_the_same_mean() {
    // Exponential latencies against nearly constant ones of the same mean: the mean of the slices' own log ratios would be
    // off by some 12 %.
    let mut draws = Draws::new(9);
    let mut covers = 0;
    for _ in 0..200 {
        let pairs: Vec<Pair> = (0..240)
            .map(|at_ns| Pair {
                at_ns,
                first: Part::one(100.0 + draws.uniform()),
                second: Part::one(100.5 * draws.exponential(1.0)),
            })
            .collect();
        if let PairedMetric::Compared { by_time: Difference { interval: Some(interval), .. }, .. } = latency(&pairs) {
            covers += u32::from(interval.low <= 0.0 && 0.0 <= interval.high);
        } else {
            covers += 1;
        }
    }
    assert!(covers >= 182, "{covers} of 200");
}

#[test]
fn gaps_count_by_their_number() {
    // One long answer and many short ones: the mean gap is that over all gaps.
    let pairs: Vec<Pair> = (0..80)
        .map(|at_ns| {
            let weight = if at_ns % 4 == 0 { 97.0 } else { 1.0 };
            Pair { at_ns, first: Part { sum: 10.0 * weight, weight }, second: Part { sum: 11.0 * weight, weight } }
        })
        .collect();
    let PairedMetric::Compared { pairs, by_time, by_pair } = latency(&pairs) else { panic!("too few") };
    assert_eq!(pairs, 80);
    for found in [by_time, by_pair.unwrap()] {
        let interval = found.interval.unwrap();
        assert!((found.change - 0.1).abs() < 1e-9 && interval.high - interval.low < 1e-9, "{found:?}");
    }
}

#[test]
fn what_is_too_little_or_fixed_is_said_so() {
    let pair = |at_ns| Pair { at_ns, first: Part::one(1.0), second: Part::one(1.0) };
    let few: Vec<Pair> = (0..79).map(pair).collect();
    assert_eq!(latency(&few), PairedMetric::TooFew { pairs: 79, needed: 80, change: Some(0.0) });
    // All due at once: there are no slices of time. The change is still told.
    let slower = Pair { second: Part::one(1.25), ..pair(5) };
    let expected = PairedMetric::TooFewSlices { pairs: 100, slices: 1, needed: 20, change: Some(0.25) };
    assert_eq!(latency(&[slower; 100]), expected);
    let nothing: Vec<Pair> = (0..100).map(|at_ns| Pair { second: Part::one(0.0), ..pair(at_ns) }).collect();
    assert!(matches!(latency(&nothing), PairedMetric::Fixed { .. }));
    let open = Arrival::Constant { rate_per_s: 1.0 };
    assert!(matches!(throughput(&few, &open), PairedMetric::Fixed { .. }));
    assert!(matches!(throughput(&few[..19], &Arrival::closed(4)), PairedMetric::TooFewSlices { slices: 19, .. }));
    assert_eq!(report(BTreeMap::new()).mark, "single-launch, exploratory");
}

#[test]
fn a_closed_loop_compares_tokens_per_second() {
    let mut draws = Draws::new(1);
    let mut tokens = |each: f64| -> Vec<(u64, f64)> {
        (0..6_000_u64).map(|at| (at * 10_000_000, each * (0.8 + 0.4 * draws.uniform()))).collect()
    };
    let (first, second) = (tokens(10.0), tokens(12.0));
    let pairs = stretches(&first, &second, 0, 60_000_000_000, 1_000_000_000);
    assert_eq!((pairs.len(), pairs[1].at_ns), (60, 1_000_000_000));
    let PairedMetric::Compared { by_time, .. } = throughput(&pairs, &Arrival::closed(4)) else { panic!("too few") };
    let interval = by_time.interval.unwrap();
    assert!(interval.low <= 0.2 && 0.2 <= interval.high && interval.high - interval.low < 0.02, "{by_time:?}");
}

#[test]
fn a_ratio_that_wanders_has_no_interval() {
    let pairs: Vec<Pair> = (0..240_u64)
        .map(|at_ns| Pair { at_ns, first: Part::one(100.0), second: Part::one(100.0 + real(at_ns)) })
        .collect();
    let PairedMetric::Compared { by_time, .. } = latency(&pairs) else { panic!("too few") };
    assert!(by_time.interval.is_none() && by_time.merged > 1, "{by_time:?}");
}
