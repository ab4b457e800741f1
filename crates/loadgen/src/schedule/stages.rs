//! Rates that change: the time at which so many requests are due.

use isobench_schema::workload::Stage;

/// Stages, walked through from their begin.
#[derive(Debug)]
pub(super) struct Stages {
    later: std::vec::IntoIter<Stage>,
    stage: Stage,
    /// When the stage began, in seconds.
    began_s: f64,
    /// How many requests were due when it began.
    before: f64,
}

impl Stages {
    /// Returns the stages from their begin. Without a stage nothing is ever due.
    pub(super) fn new(stages: Vec<Stage>) -> Self {
        let mut later = stages.into_iter();
        let none = Stage { seconds: f64::INFINITY, from_per_s: 0.0, to_per_s: 0.0 };
        Self { stage: later.next().unwrap_or(none), later, began_s: 0.0, before: 0.0 }
    }

    /// Returns when `due` requests are due, in seconds since the begin: the time up to which the integral of the rate is
    /// `due`. It must not be less than at the call before.
    pub(super) fn time_of(&mut self, due: f64) -> f64 {
        loop {
            let Stage { seconds, from_per_s, to_per_s } = self.stage;
            let held = seconds * (from_per_s + to_per_s) / 2.0;
            let left = due - self.before;
            if left <= held {
                return self.began_s + within(self.stage, left).clamp(0.0, seconds);
            }
            match self.later.next() {
                Some(next) => {
                    self.began_s += seconds;
                    self.before += held;
                    self.stage = next;
                }
                None => return self.began_s + seconds + (left - held) / to_per_s,
            }
        }
    }
}

/// Returns the time in a stage at which `due` requests are due in it: the root of slope / 2 x t^2 + from x t = due, in the
/// form that loses no digits where the slope is small (Press et al., Numerical Recipes, 5.6).
fn within(stage: Stage, due: f64) -> f64 {
    if due <= 0.0 {
        return 0.0;
    }
    let slope = (stage.to_per_s - stage.from_per_s) / stage.seconds;
    let square = (stage.from_per_s * stage.from_per_s + 2.0 * slope * due).max(0.0);
    2.0 * due / (stage.from_per_s + square.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(seconds: f64, from_per_s: f64, to_per_s: f64) -> Stage {
        Stage { seconds, from_per_s, to_per_s }
    }

    #[test]
    fn steps_and_ramps_give_the_times_of_the_integral() {
        let mut stages =
            Stages::new(vec![stage(10.0, 2.0, 2.0), stage(10.0, 0.0, 4.0), stage(5.0, 4.0, 0.0), stage(1.0, 1.0, 1.0)]);
        // 20 in the first stage, 20 in the second, 10 in the third, and then one in each second for ever.
        let cases = [
            (0.0, 0.0),
            (1.0, 0.5),
            (20.0, 10.0),
            (25.0, 15.0),
            (40.0, 20.0),
            // 4 t - 0.4 t^2 = 7.5 at t = 2.5.
            (47.5, 22.5),
            (50.0, 25.0),
            (51.0, 26.0),
            (61.0, 36.0),
        ];
        for (due, expected) in cases {
            let found = stages.time_of(due);
            assert!((found - expected).abs() < 1e-9, "{due}: {found} instead of {expected}");
        }
    }

    #[test]
    fn a_stage_without_requests_is_waited_for() {
        let mut stages = Stages::new(vec![stage(10.0, 0.0, 0.0), stage(1.0, 5.0, 5.0)]);
        assert!((stages.time_of(1.0) - 10.2).abs() < 1e-12);
    }

    #[test]
    fn a_slope_that_is_nearly_none_loses_no_digits() {
        let time = within(stage(1e6, 1000.0, 1000.0 + 1e-9), 1.0);
        assert!((time - 1e-3).abs() < 1e-15, "{time}");
    }
}
