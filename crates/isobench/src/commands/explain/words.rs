//! The words of reports with their meanings: classes and stages of failures, verdicts, standings, looks and deviations.

use isobench_schema::deviation::DeviationKind;
use isobench_schema::failure::{Charge, FailureClass, FailureStage};
use isobench_schema::verdict::{LookDecision, Standing, Verdict};

/// A word in one of its senses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word {
    /// What kind of word it is.
    pub(super) is: &'static str,
    /// What it means.
    pub(super) means: &'static str,
    /// What follows from it, or nothing.
    pub(super) counts: &'static str,
}

/// Returns every sense of a word, none if reports don't use it.
pub(super) fn of(id: &str) -> Vec<Word> {
    all().filter(|(word, _)| *word == id).map(|(_, word)| word).collect()
}

/// Returns every word with each of its senses.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Word)> {
    let word = |id, is, means, counts| (id, Word { is, means, counts });
    let classes = FailureClass::ALL
        .iter()
        .map(move |class| word(class.as_str(), "a class of failures", class.means(), consequence(*class)));
    let verdicts = Verdict::ALL.iter().map(move |one| word(one.as_str(), "a verdict", one.means(), ""));
    let standings = Standing::ALL.iter().map(move |one| word(one.as_str(), "a standing of a task", one.means(), ""));
    let looks = LookDecision::ALL.iter().map(move |one| word(one.as_str(), "what a look says", one.means(), ""));
    let deviations = DeviationKind::ALL.iter().map(move |one| {
        let counts = "a difference between what was asked and what was run, shown beside every number";
        word(one.as_str(), "a deviation", one.means(), counts)
    });
    let stages = FailureStage::ALL.iter().map(move |one| word(one.as_str(), "a stage of failures", one.means(), ""));
    classes.chain(verdicts).chain(standings).chain(looks).chain(deviations).chain(stages)
}

/// Returns who answers for a failure of this class, and what becomes of its block.
fn consequence(class: FailureClass) -> &'static str {
    match (class.charge(), class) {
        (
            _,
            FailureClass::StopForced
            | FailureClass::ProcessSurvived
            | FailureClass::LogFlood
            | FailureClass::SharedFolderWritten
            | FailureClass::ScriptPatched,
        ) => "an incident: the measurement stands",
        _ if class.is_fault_of_plan() => {
            "the plan is at fault: the launch doesn't count, the same would only repeat it, and a task ends after its first \
             block if that leaves no two arms to compare"
        }
        (Charge::Arm, _) => "charged to the arm; where every arm fails by it, to the infrastructure",
        (Charge::Infrastructure, _) => {
            "charged to the infrastructure: the block is run again, as often as the design allows"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_a_report_prints_is_explained_in_plain_text() {
        let reports = FailureClass::ALL.iter().map(|one| one.as_str());
        let reports = reports.chain(Verdict::ALL.iter().map(|one| one.as_str()));
        let reports = reports.chain(Standing::ALL.iter().map(|one| one.as_str()));
        let reports = reports.chain(DeviationKind::ALL.iter().map(|one| one.as_str()));
        for id in reports.chain(LookDecision::ALL.iter().map(|one| one.as_str())) {
            let senses = of(id);
            assert!(!senses.is_empty(), "{id}");
            for Word { means, .. } in senses {
                assert!(means.ends_with('.') && means.len() > 10 && !means.contains(['[', '\n']), "{id}: {means}");
            }
        }
        let short = of("window-too-short");
        assert_eq!(short[0].means, "The measured window is shorter than the plan allows.");
        assert!(short[0].counts.starts_with("the plan is at fault"), "{short:?}");
        assert_eq!(of("not-measured").len(), 2, "a verdict and a standing");
        assert_eq!(of("no-such-word"), []);
    }
}
