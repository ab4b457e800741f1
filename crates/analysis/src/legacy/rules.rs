//! The rules of the earlier system: a class by a threshold on one run's difference, and a quadrant by class and label.

use isobench_schema::legacy::{HardClass, Quadrant};

/// Returns the class of a difference to the human side in percent, positive where the agent is better, at a threshold in
/// percent. An agent that failed is `worse`; without a number there is no class.
pub fn hard_class(difference_pct: Option<f64>, threshold_pct: f64, agent_failed: AgentRun) -> HardClass {
    match (agent_failed, difference_pct) {
        (AgentRun::Failed, _) => HardClass::Worse,
        (AgentRun::Ran, None) => HardClass::NoData,
        (AgentRun::Ran, Some(difference)) if difference > threshold_pct => HardClass::Beats,
        (AgentRun::Ran, Some(difference)) if difference < -threshold_pct => HardClass::Worse,
        (AgentRun::Ran, Some(_)) => HardClass::Similar,
    }
}

/// Whether the agent's side ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentRun {
    /// It ran, or it isn't known.
    Ran,
    /// It failed, and the human side ran.
    Failed,
}

/// Returns whether a class counts as a success by the earlier system: at least as good as the human side.
pub fn is_hard_success(class: HardClass) -> bool {
    match class {
        HardClass::Beats | HardClass::Similar => true,
        HardClass::Worse | HardClass::NoData => false,
    }
}

/// Returns whether a label says that the agent worked on what the human change is about.
pub fn is_target_right(label: &str) -> bool {
    matches!(label, "same_target" | "related_target")
}

/// Returns the quadrant: true success, good intent, lucky win, failure.
pub fn quadrant(class: HardClass, target: &str) -> Quadrant {
    match (is_hard_success(class), is_target_right(target)) {
        (true, true) => Quadrant::TrueSuccess,
        (false, true) => Quadrant::GoodIntent,
        (true, false) => Quadrant::LuckyWin,
        (false, false) => Quadrant::Failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_itself_is_similar() {
        for (difference, expected) in [
            (Some(5.1), HardClass::Beats),
            (Some(5.0), HardClass::Similar),
            (Some(-5.0), HardClass::Similar),
            (Some(-5.1), HardClass::Worse),
            (None, HardClass::NoData),
        ] {
            assert_eq!(hard_class(difference, 5.0, AgentRun::Ran), expected);
            assert_eq!(hard_class(difference, 5.0, AgentRun::Failed), HardClass::Worse);
        }
    }

    #[test]
    fn quadrants_are_class_by_label() {
        for (class, label, expected) in [
            (HardClass::Similar, "related_target", Quadrant::TrueSuccess),
            (HardClass::NoData, "same_target", Quadrant::GoodIntent),
            (HardClass::Beats, "different_target", Quadrant::LuckyWin),
            (HardClass::Worse, "no_optimization", Quadrant::Failure),
            (HardClass::Worse, "unknown", Quadrant::Failure),
        ] {
            assert_eq!(quadrant(class, label), expected);
        }
    }
}
