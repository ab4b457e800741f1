//! Tests of arrivals: exact times, and the statistics of the drawn ones.

use isobench_schema::workload::Stage;

use super::*;

const SECOND: u64 = 1_000_000_000;

fn times(arrival: Arrival, count: u32) -> Vec<f64> {
    let mut arrivals = Arrivals::new(arrival, Draws::new(20, "test"));
    (0..count).map(|_| Duration::from_nanos(arrivals.next_ns(None)).as_secs_f64()).collect()
}

fn count(times: impl IntoIterator<Item = f64>) -> f64 {
    times.into_iter().map(|_| 1.0).sum()
}

/// Returns the variance of counts by their mean: 1 for a Poisson process. The last bin isn't whole and left out.
fn dispersion(times: &[f64], width_s: f64) -> f64 {
    let mut counts = vec![0.0_f64];
    for time in times {
        while *time >= f64::from(u32::try_from(counts.len()).unwrap()) * width_s {
            counts.push(0.0);
        }
        *counts.last_mut().unwrap() += 1.0;
    }
    counts.pop();
    let bins = count(counts.iter().copied());
    let mean = counts.iter().sum::<f64>() / bins;
    counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / (bins - 1.0) / mean
}

fn stage(seconds: f64, from_per_s: f64, to_per_s: f64) -> Stage {
    Stage { seconds, from_per_s, to_per_s }
}

#[test]
fn equal_gaps_and_bursts_are_exact() {
    let constant = times(Arrival::Constant { rate_per_s: 8.0 }, 5);
    assert_eq!(constant, [0.0, 0.125, 0.25, 0.375, 0.5]);
    // A million requests later no error has added up.
    let mut arrivals = Arrivals::new(Arrival::Constant { rate_per_s: 1000.0 }, Draws::new(1, "test"));
    let last = (0..=1_000_000).map(|_| arrivals.next_ns(None)).last().unwrap();
    assert_eq!(last, 1000 * SECOND);
    let bursts = times(Arrival::Bursts { size: 3, period_s: 0.5 }, 7);
    assert_eq!(bursts, [0.0, 0.0, 0.0, 0.5, 0.5, 0.5, 1.0]);
    assert_eq!(times(Arrival::AllAtOnce, 3), [0.0; 3]);
}

#[test]
fn a_trace_is_replayed_faster() {
    let mut arrivals = Arrivals::new(Arrival::Trace { speed: 2.0 }, Draws::new(1, "test"));
    let found: Vec<u64> = [0, 10, 3 * SECOND].into_iter().map(|at| arrivals.next_ns(Some(at))).collect();
    assert_eq!(found, [0, 5, 3 * SECOND / 2]);
}

#[test]
fn gaps_have_the_rate_the_variation_and_the_dispersion_of_their_process() {
    for burstiness in [0.5, 1.0, 4.0] {
        let times = times(Arrival::Open { rate_per_s: 2000.0, burstiness }, 200_000);
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let count = f64::from(u32::try_from(gaps.len()).unwrap());
        let mean = gaps.iter().sum::<f64>() / count;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count;
        let variation = variance.sqrt() / mean;
        assert!((mean * 2000.0 - 1.0).abs() < 0.01, "{burstiness}: {mean}");
        assert!((variation * f64::sqrt(burstiness) - 1.0).abs() < 0.02, "{burstiness}: {variation}");
        // Of a renewal process over long times the variance of counts by their mean goes to the squared variation.
        let found = dispersion(&times, 0.1);
        assert!((found * burstiness - 1.0).abs() < 0.15, "{burstiness}: {found}");
    }
}

#[test]
fn stages_have_the_counts_of_the_integral_and_are_poisson_in_each_part() {
    let stages =
        vec![stage(50.0, 100.0, 100.0), stage(50.0, 100.0, 500.0), stage(50.0, 500.0, 20.0), stage(10.0, 20.0, 20.0)];
    let times = times(Arrival::Stages { stages, burstiness: Some(1.0) }, 33_000);
    assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
    // Counts of each stage: 5,000, 15,000 and 13,000; four standard deviations are 4 x sqrt(n).
    for (from, to, expected) in [(0.0, 50.0, 5000.0), (50.0, 100.0, 15_000.0), (100.0, 150.0, 13_000.0)] {
        let part: Vec<f64> = times.iter().copied().filter(|time| (from..to).contains(time)).collect();
        let count = count(part);
        assert!((count - expected).abs() < 4.0 * f64::sqrt(expected), "{from}: {count}");
    }
    let steady: Vec<f64> = times.iter().copied().filter(|time| *time < 50.0).collect();
    let found = dispersion(&steady, 0.1);
    assert!((found - 1.0).abs() < 4.0 * f64::sqrt(2.0 / 500.0), "{found}");
    // The ramp's middle has the middle rate.
    let middle = count(times.iter().copied().filter(|time| (70.0..80.0).contains(time)));
    assert!((middle - 3000.0).abs() < 4.0 * f64::sqrt(3000.0), "{middle}");
}

#[test]
fn stages_without_burstiness_are_even_in_the_stretched_time() {
    let stages = vec![stage(10.0, 0.0, 20.0), stage(1.0, 20.0, 20.0)];
    let times = times(Arrival::Stages { stages, burstiness: None }, 141);
    // t^2 requests are due after t seconds of the ramp, and then 20 in each second.
    assert!((times[25] - 5.0).abs() < 1e-8 && (times[100] - 10.0).abs() < 1e-8, "{} {}", times[25], times[100]);
    assert!((times[140] - 12.0).abs() < 1e-8, "{}", times[140]);
}
