//! A search for the load at which a server saturates: what to run next, by what was run.
//!
//! Levels go up by a factor until one isn't sustained (or, in a closed loop without an objective, until the throughput gains
//! less than 5 %), and down from there if the first one wasn't; then the middle, on a logarithmic scale, of the highest level
//! sustained and the lowest one not sustained is run, until they are close. In a closed loop the knee of the throughput is
//! narrowed in the same way. No level is run twice. What comes next depends on the results alone, so that a search can go on
//! from stored ones.

mod step;

use isobench_schema::load_checks::{Bounds, SearchEnd, StepState, SweepBy, SweepReport, SweepStep};

pub use step::{StepResult, littles_law};

/// The ladder of a closed loop ends where a step gains less than this share in throughput.
const GAIN: f64 = 0.05;
/// The knee is where the throughput has this share of its highest.
const KNEE: f64 = 0.95;

/// What is searched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SweepRules {
    /// What is raised.
    pub by: SweepBy,
    /// The lowest, the first and the highest level.
    pub lowest: f64,
    /// See `lowest`.
    pub first: f64,
    /// See `lowest`.
    pub highest: f64,
    /// The factor of the ladder, such as 2.
    pub factor: f64,
    /// How close the answer's two levels must come, as a part: 0.1 is 10 %.
    pub resolution: f64,
    /// The share of requests that must meet the objective, if there is one.
    pub objective_share: Option<f64>,
    /// The most steps that are run.
    pub most_steps: usize,
}

/// Rules that describe no search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SweepRulesError {
    /// The levels aren't in order.
    #[error("the levels of a sweep must be positive numbers with lowest <= first <= highest")]
    Levels,
    /// A closed loop has whole requests under way.
    #[error("the levels of a sweep by concurrency must be whole numbers")]
    Whole,
    /// The ladder or the resolution leads nowhere.
    #[error("the factor of a sweep must be above 1, and its resolution above 0")]
    Factor,
    /// Nothing may be run.
    #[error("a sweep needs at least one step")]
    Steps,
}

/// A search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sweep {
    rules: SweepRules,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Run this level.
    Run(f64),
    /// The search is over.
    Done(SweepReport),
}

/// What the results leave to be done.
enum Move {
    Run(f64),
    End(SearchEnd),
}

impl Sweep {
    /// Returns a search by `rules`.
    ///
    /// # Errors
    /// Returns an error if the rules describe none.
    pub fn new(rules: SweepRules) -> Result<Self, SweepRulesError> {
        let SweepRules { by, lowest, first, highest, factor, resolution, most_steps, .. } = rules;
        if !(lowest > 0.0 && lowest <= first && first <= highest && highest.is_finite()) {
            return Err(SweepRulesError::Levels);
        }
        let is_whole = [lowest, first, highest].iter().all(|level| level.fract() == 0.0);
        if by == SweepBy::Concurrency && !is_whole {
            return Err(SweepRulesError::Whole);
        }
        if !(factor > 1.0 && factor.is_finite() && resolution > 0.0) {
            return Err(SweepRulesError::Factor);
        }
        if most_steps == 0 {
            return Err(SweepRulesError::Steps);
        }
        Ok(Self { rules })
    }

    /// Returns what comes after these results, whose order doesn't matter.
    pub fn next(&self, results: &[StepResult]) -> Next {
        let mut steps: Vec<SweepStep> =
            results.iter().map(|result| result.step(self.rules.by, self.rules.objective_share)).collect();
        steps.sort_by(|one, other| one.level.total_cmp(&other.level));
        match self.after(&steps) {
            Move::Run(level) if steps.len() < self.rules.most_steps => Next::Run(level),
            Move::Run(_) => Next::Done(self.report(SearchEnd::MostSteps, steps)),
            Move::End(end) => Next::Done(self.report(end, steps)),
        }
    }

    /// Returns what the results of levels show where no further one is searched for, which `end` says why.
    pub fn over(&self, results: &[StepResult], end: SearchEnd) -> SweepReport {
        let mut steps: Vec<SweepStep> =
            results.iter().map(|result| result.step(self.rules.by, self.rules.objective_share)).collect();
        steps.sort_by(|one, other| one.level.total_cmp(&other.level));
        self.report(end, steps)
    }

    fn after(&self, steps: &[SweepStep]) -> Move {
        let rules = &self.rules;
        let Some(top) = steps.last() else { return self.run(rules.first, steps, SearchEnd::Refined) };
        if steps.iter().any(|step| step.state == StepState::TooFew) {
            return Move::End(SearchEnd::TooFew);
        }
        let (sustained, not_sustained) = border(steps);
        match (sustained, not_sustained) {
            (Some(low), Some(high)) if !self.is_close(low, high) => {
                return self.run((low * high).sqrt(), steps, SearchEnd::Refined);
            }
            (Some(_), Some(_)) => {}
            (None, Some(high)) if high > self.round(rules.lowest) => {
                return self.run((high / rules.factor).max(rules.lowest), steps, SearchEnd::LowestLevel);
            }
            (None, Some(_)) => return Move::End(SearchEnd::LowestLevel),
            (_, None) if steps.iter().any(|step| step.state == StepState::ClientBound) => {
                return Move::End(SearchEnd::ClientBound);
            }
            (_, None) if self.is_ladder_done(steps) => {}
            (_, None) if top.level >= self.round(rules.highest) => return Move::End(SearchEnd::HighestLevel),
            (_, None) => {
                return self.run((top.level * rules.factor).min(rules.highest), steps, SearchEnd::HighestLevel);
            }
        }
        self.narrow_knee(steps)
    }

    /// Returns whether a closed loop without an objective gains no more.
    fn is_ladder_done(&self, steps: &[SweepStep]) -> bool {
        if self.rules.by != SweepBy::Concurrency || self.rules.objective_share.is_some() {
            return false;
        }
        let throughputs = throughputs(steps);
        let Some(((_, last), before)) = throughputs.split_last() else { return false };
        let best = before.iter().map(|(_, throughput)| *throughput).fold(0.0, f64::max);
        !before.is_empty() && *last < best * (1.0 + GAIN)
    }

    fn narrow_knee(&self, steps: &[SweepStep]) -> Move {
        let done = Move::End(SearchEnd::Refined);
        if self.rules.by != SweepBy::Concurrency {
            return done;
        }
        match knee(steps) {
            // Not even a lower level was tried.
            Some(Bounds { low, high }) if low.total_cmp(&high).is_eq() && high > self.round(self.rules.lowest) => {
                self.run((high / self.rules.factor).max(self.rules.lowest), steps, SearchEnd::Refined)
            }
            Some(Bounds { low, high }) if low < high && !self.is_close(low, high) => {
                self.run((low * high).sqrt(), steps, SearchEnd::Refined)
            }
            Some(_) | None => done,
        }
    }

    /// Returns the move to a level, or to the end if it was run already.
    fn run(&self, level: f64, steps: &[SweepStep], otherwise: SearchEnd) -> Move {
        let level = self.round(level);
        if steps.iter().any(|step| is_same(step.level, level)) { Move::End(otherwise) } else { Move::Run(level) }
    }

    fn is_close(&self, low: f64, high: f64) -> bool {
        let middle = self.round((low * high).sqrt());
        high / low <= 1.0 + self.rules.resolution || is_same(middle, low) || is_same(middle, high)
    }

    /// Rounds to whole requests under way, or to a rate of three digits.
    fn round(&self, level: f64) -> f64 {
        match self.rules.by {
            SweepBy::Concurrency => level.round(),
            SweepBy::Rate => {
                let unit = 10_f64.powf(level.log10().floor() - 2.0);
                (level / unit).round() * unit
            }
        }
        .clamp(self.rules.lowest, self.rules.highest)
    }

    fn report(&self, end: SearchEnd, steps: Vec<SweepStep>) -> SweepReport {
        let (highest_sustained, lowest_not_sustained) = border(&steps);
        let peak = throughputs(&steps).into_iter().map(|(_, throughput)| throughput).reduce(f64::max);
        let knee = knee(&steps);
        SweepReport { by: self.rules.by, end, highest_sustained, lowest_not_sustained, knee, peak_per_s: peak, steps }
    }
}

/// Returns whether two levels are the same but for rounding.
fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.abs()
}

/// Returns the highest level sustained below the lowest one not sustained, and that one: where a higher level was sustained
/// by luck, it doesn't count.
fn border(steps: &[SweepStep]) -> (Option<f64>, Option<f64>) {
    let not_sustained = steps
        .iter()
        .find(|step| matches!(step.state, StepState::OverSaturated | StepState::ObjectiveMissed))
        .map(|step| step.level);
    let sustained = steps
        .iter()
        .filter(|step| step.state == StepState::Sustained && not_sustained.is_none_or(|bound| step.level < bound))
        .map(|step| step.level)
        .next_back();
    (sustained, not_sustained)
}

/// Returns level and throughput of the steps that say something of the server: in tokens where all have them.
fn throughputs(steps: &[SweepStep]) -> Vec<(f64, f64)> {
    let valid: Vec<&SweepStep> =
        steps.iter().filter(|step| !matches!(step.state, StepState::ClientBound | StepState::TooFew)).collect();
    let tokens: Option<Vec<(f64, f64)>> = valid.iter().map(|step| Some((step.level, step.output_tok_per_s?))).collect();
    tokens.unwrap_or_else(|| valid.iter().map(|step| (step.level, step.completed_per_s)).collect())
}

/// Returns between which levels the knee lies; `None` if the highest one is the only one near the peak.
fn knee(steps: &[SweepStep]) -> Option<Bounds> {
    let throughputs = throughputs(steps);
    let peak = throughputs.iter().map(|(_, throughput)| *throughput).reduce(f64::max)?;
    let place = throughputs.iter().position(|(_, throughput)| *throughput >= KNEE * peak)?;
    let (high, _) = *throughputs.get(place)?;
    let low = place.checked_sub(1).and_then(|below| throughputs.get(below)).map_or(high, |(level, _)| *level);
    (place + 1 < throughputs.len()).then_some(Bounds { low, high })
}

#[cfg(test)]
mod tests;
