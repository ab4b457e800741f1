//! Means of speed-ups over tasks.

use isobench_schema::ids::ArmId;
use isobench_schema::order::derive_seed;
use isobench_schema::suite::{Headline, MeanOverTasks, OverTasks};

use super::{Kind, LEVEL, Row, Tasks, counted, estimate};
use crate::stats::{Cluster, ClusterBootstrap, OneSample, Resampling, length, mean};

/// Below so many tasks a bootstrap interval is too short.
const FEWEST_TO_DRAW: usize = 10;

/// The most and the fewest times that tasks are drawn anew, and how many draws of a task there are in all where that lies
/// between.
const MOST_TIMES: u32 = 10_000;
const FEWEST_TIMES: u32 = 1_000;
const DRAWS: usize = 20_000_000;

/// A mean over tasks, ready for questions.
pub(super) enum Over {
    /// Of one task: there is no interval.
    One(f64),
    /// Of few.
    Student(OneSample),
    /// Of enough to draw from.
    Bootstrap(Box<ClusterBootstrap>, usize),
}

impl Over {
    /// Takes the value of each task; `None` of nothing.
    pub(super) fn tasks(values: &[f64], seed: u64) -> Option<Self> {
        if values.len() < FEWEST_TO_DRAW {
            return OneSample::of(values).map(Self::Student).or_else(|| mean(values).map(Self::One));
        }
        let clusters: Vec<Cluster> = values.iter().map(|&sum| Cluster { sum, count: 1 }).collect();
        let times = u32::try_from(DRAWS / values.len()).unwrap_or(MOST_TIMES).clamp(FEWEST_TIMES, MOST_TIMES);
        let bootstrap = ClusterBootstrap::new(&clusters, Resampling { times, seed })?;
        Some(Self::Bootstrap(Box::new(bootstrap), values.len()))
    }

    /// Returns the mean with its interval.
    pub(super) fn mean(&self) -> MeanOverTasks {
        let (tasks, estimate, interval, method) = match self {
            Self::One(value) => (1, *value, None, OverTasks::StudentT),
            Self::Student(sample) => (sample.count, sample.mean, sample.interval(LEVEL), OverTasks::StudentT),
            Self::Bootstrap(bootstrap, tasks) => {
                (*tasks, bootstrap.mean(), bootstrap.interval(1.0 - LEVEL), OverTasks::ClusterBootstrap)
            }
        };
        MeanOverTasks {
            tasks: counted(tasks),
            estimate,
            speedup: estimate.exp(),
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            method,
        }
    }

    /// Returns the two-sided p of the mean being zero.
    pub(super) fn p(&self) -> Option<f64> {
        match self {
            Self::One(_) => None,
            Self::Student(sample) => sample.p(),
            Self::Bootstrap(bootstrap, _) => Some(bootstrap.p_of(0.0)),
        }
    }
}

/// Returns the headline of each kind of contrast that at least two tasks have a number of.
pub(super) fn headlines(tasks: &Tasks<'_>) -> Vec<Headline> {
    tasks.kinds.keys().filter_map(|kind| headline(tasks, kind)).collect()
}

fn headline(tasks: &Tasks<'_>, kind: &Kind) -> Option<Headline> {
    let numbered: Vec<(f64, Option<f64>)> =
        tasks.contrasts(kind).filter_map(|(_, contrast)| Some((estimate(contrast)?, contrast.low))).collect();
    if numbered.len() < 2 {
        return None;
    }
    let measured: Vec<f64> = numbered.iter().map(|(estimate, _)| *estimate).collect();
    let gains: Vec<f64> =
        numbered.iter().filter_map(|(_, low)| low.filter(|low| *low > 0.0 && low.is_finite())).collect();
    let counterfactual: Vec<f64> = tasks.rows.iter().filter_map(|row| as_the_baseline(*row, kind)).collect();
    let seed =
        |what: &str| derive_seed(tasks.plan.seed, &format!("suite: {what} {} against {}", kind.of, kind.against));
    let with_failures = || {
        let all: Vec<f64> = measured.iter().chain(&counterfactual).copied().collect();
        Some(Over::tasks(&all, seed("with failures"))?.mean())
    };
    Some(Headline {
        of: kind.of.clone(),
        against: kind.against.clone(),
        measured: Over::tasks(&measured, seed("measured"))?.mean(),
        with_failures: if counterfactual.is_empty() { None } else { with_failures() },
        // The sum of no numbers at all is -0.
        proven: (0.0 + gains.iter().sum::<f64>()) / length(measured.len()),
        proven_tasks: counted(gains.len()),
    })
}

/// Returns the log ratio that an agent has which left the baseline as it was: none to the baseline, and to the human commit
/// what the baseline has, if that was measured.
pub(super) fn as_the_baseline(row: Row<'_>, kind: &Kind) -> Option<f64> {
    if !matches!(kind.of, ArmId::Agent(_)) || !row.left_the_baseline(&kind.of) {
        return None;
    }
    match kind.against {
        ArmId::Baseline => Some(0.0),
        ArmId::Human => row.contrast(&ArmId::Human, &ArmId::Baseline).and_then(estimate).map(|human| -human),
        ArmId::Agent(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_tasks_have_the_interval_of_student() {
        // scipy.stats.ttest_1samp([0.1, 0.3, 0.2, 0.4], 0): p, confidence_interval(0.95)
        let over = Over::tasks(&[0.1, 0.3, 0.2, 0.4], 1).unwrap();
        let found = over.mean();
        assert_eq!((found.tasks, found.method), (4, OverTasks::StudentT));
        assert!((found.estimate - 0.25).abs() < 1e-12 && (found.speedup - 0.25_f64.exp()).abs() < 1e-12);
        let (low, high) = (0.044_573_974_323_947_26, 0.455_426_025_676_052_8);
        assert!((found.low.unwrap() - low).abs() < 1e-9 && (found.high.unwrap() - high).abs() < 1e-9, "{found:?}");
        assert!((over.p().unwrap() - 0.030_466_291_662_170_98).abs() < 1e-9, "{:?}", over.p());
    }

    #[test]
    fn one_task_has_no_interval_and_none_no_mean() {
        let over = Over::tasks(&[0.1], 1).unwrap();
        assert_eq!((over.mean().low, over.mean().high, over.p()), (None, None, None));
        assert!(Over::tasks(&[], 1).is_none());
    }

    #[test]
    fn more_tasks_are_drawn_anew() {
        let values: Vec<f64> = (0..40).map(|place| 0.05 + 0.01 * f64::from(place % 7)).collect();
        let over = Over::tasks(&values, 1).unwrap();
        let found = over.mean();
        assert_eq!(found.method, OverTasks::ClusterBootstrap);
        assert!(found.low.unwrap() < found.estimate && found.estimate < found.high.unwrap());
        assert!(over.p().unwrap() < 0.001);
        assert_eq!(Over::tasks(&values, 1).unwrap().mean(), found);
    }
}
