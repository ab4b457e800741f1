//! Intervals of means of values that depend on their neighbours in time.

use super::{Interval, length, real, t_quantile};

/// What one cluster of values adds up to.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Cluster {
    /// The sum of its values.
    pub sum: f64,
    /// How many they are.
    pub count: u64,
}

/// Returns the interval that covers the mean of all values with the probability `level`, from clusters that are taken as
/// independent of each other while the values in one need not be.
///
/// The mean is the ratio of the clusters' sums to their counts; its standard error is the linearised one of a ratio,
/// √(b/(b − 1) · Σ(sᵢ − R nᵢ)²)/Σnᵢ (Cochran 1977, Sampling Techniques, 6.4), taken with Student's t with b − 1 degrees
/// of freedom. With clusters of one value each that is the plain interval of a mean; with clusters that follow each other
/// in time it is the method of batch means (Law 2015, Simulation Modeling and Analysis, 9.5.3). `None` below two clusters
/// that hold anything.
pub fn ratio_interval(clusters: &[Cluster], level: f64) -> Option<Interval> {
    let error = ratio_error(clusters)?;
    let filled = clusters.iter().filter(|cluster| cluster.count > 0).count();
    let half = t_quantile(f64::midpoint(1.0, level), length(filled) - 1.0)? * error;
    let mean = ratio(clusters)?;
    Some(Interval { low: mean - half, high: mean + half })
}

/// Returns the linearised standard error of the mean of all values.
pub fn ratio_error(clusters: &[Cluster]) -> Option<f64> {
    let mean = ratio(clusters)?;
    let filled: Vec<&Cluster> = clusters.iter().filter(|cluster| cluster.count > 0).collect();
    let b = length(filled.len());
    if b < 2.0 {
        return None;
    }
    let squares: f64 = filled.iter().map(|cluster| (cluster.sum - mean * real(cluster.count)).powi(2)).sum();
    Some((b / (b - 1.0) * squares).sqrt() / real(total(clusters)))
}

fn ratio(clusters: &[Cluster]) -> Option<f64> {
    let count = total(clusters);
    (count > 0).then(|| clusters.iter().map(|cluster| cluster.sum).sum::<f64>() / real(count))
}

fn total(clusters: &[Cluster]) -> u64 {
    clusters.iter().map(|cluster| cluster.count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(clusters: &[(f64, u64)], expected: (f64, f64)) {
        let clusters: Vec<Cluster> = clusters.iter().map(|&(sum, count)| Cluster { sum, count }).collect();
        let Interval { low, high } = ratio_interval(&clusters, 0.95).unwrap();
        assert!((low - expected.0).abs() < 1e-9 && (high - expected.1).abs() < 1e-9, "{low} {high}");
    }

    #[test]
    fn clusters_of_one_value_give_the_plain_interval_of_a_mean() {
        // scipy.stats.ttest_1samp([3.1, 0.4, 2.2, 9.9, 5.0, 1.7, 7.3], 0).confidence_interval(0.95), SciPy 1.17
        let values = [3.1, 0.4, 2.2, 9.9, 5.0, 1.7, 7.3];
        check(&values.map(|value| (value, 1)), PLAIN);
    }

    const PLAIN: (f64, f64) = (1.100_589_478_431_147, 7.356_553_378_711_711);

    #[test]
    fn clusters_of_several_values_give_the_interval_of_a_ratio() {
        // s, n = numpy.array([10., 21, 33, 8, 12.5]), numpy.array([4, 7, 11, 3, 5]); r = s.sum() / n.sum()
        // e = numpy.sqrt(5 / 4 * ((s - r * n) ** 2).sum()) / n.sum(); r ± scipy.stats.t.ppf(0.975, 4) * e
        check(&[(10.0, 4), (21.0, 7), (0.0, 0), (33.0, 11), (8.0, 3), (12.5, 5)], RATIO);
    }

    const RATIO: (f64, f64) = (2.489_005_333_807_34, 3.144_327_999_525_993_6);

    #[test]
    fn one_cluster_has_no_interval() {
        assert_eq!(ratio_interval(&[Cluster { sum: 1.0, count: 3 }, Cluster::default()], 0.95), None);
        assert_eq!(ratio_interval(&[], 0.95), None);
    }
}
