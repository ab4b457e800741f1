//! How far a task comes, and why.

use std::collections::BTreeMap;

use isobench_schema::assessment::{Finding, NeededRecipe, RungAnswer, RungVerdict, Severity, Standing};
use isobench_schema::deviation::Deviation;
use isobench_schema::environment::Rung;
use isobench_schema::ids::ArmId;

use crate::knowledge::bugs::Bug;
use crate::lint::ids;
use crate::recipe::Left;

/// What a standing is decided from.
pub(super) struct Grounds<'a> {
    pub(super) findings: &'a [Finding],
    /// Bugs that are proven to stop the task.
    pub(super) bugs: &'a [&'a Bug],
    pub(super) repairs: &'a [Deviation],
    pub(super) recipes: &'a [NeededRecipe],
    /// Recipes that can't be carried out.
    pub(super) left: &'a [Left],
    /// What contradicts itself in the task that would be planned.
    pub(super) faults: &'a [String],
    /// Why nothing can be said of the command, if so.
    pub(super) unknown: Option<String>,
    pub(super) ladder: &'a BTreeMap<ArmId, Vec<RungAnswer>>,
    /// Whether the command was read and fitted, or a preset stands in for it.
    pub(super) has_workload: bool,
}

/// Returns the standing with its reasons, the weightiest first.
///
/// The worst ground decides, and only its like are reasons. Where that is not the end of it, the last reason says what else is in
/// the way, so that nobody mends one thing to meet the next.
pub(super) fn decide(grounds: &Grounds<'_>) -> (Standing, Vec<String>) {
    let mut found: Vec<(Standing, String)> = Vec::new();
    for finding in grounds.findings.iter().filter(|finding| is_open_error(finding)) {
        found.push((standing_of(finding), finding.message.clone()));
    }
    let deadly = grounds.bugs.iter().filter(|bug| bug.recipe.is_none());
    found.extend(deadly.map(|bug| (Standing::Cannot, format!("{}: {}", bug.id, bug.title))));
    let left = grounds.left.iter();
    found.extend(
        left.map(|left| (Standing::Cannot, format!("recipe {} can't be carried out: {}", left.id, left.reason))),
    );
    found.extend(grounds.faults.iter().map(|fault| (Standing::Cannot, fault.clone())));
    if let Some(unknown) = &grounds.unknown {
        found.insert(0, (Standing::Cannot, unknown.clone()));
    } else if !grounds.has_workload && found.iter().all(|(standing, _)| *standing != Standing::Cannot) {
        found.push((Standing::Cannot, "no workload can be derived from the command".to_owned()));
    }
    for (arm, answers) in grounds.ladder {
        match answers.iter().find(|answer| answer.answer == RungVerdict::Taken) {
            None => {
                found.push((Standing::Cannot, format!("no environment can be had for {arm}: {}", refusals(answers))));
            }
            Some(taken) if taken.rung == Rung::Source => {
                found.push((Standing::Build, format!("{arm} must be built from source: {}", above(answers))));
            }
            Some(_) => {}
        }
    }
    let repaired = grounds.findings.iter().filter(|finding| finding.repaired);
    found.extend(repaired.map(|finding| (Standing::Repaired, format!("{} (repaired)", finding.message))));
    if grounds.findings.iter().all(|finding| !finding.repaired) {
        found.extend(grounds.repairs.iter().map(|repair| (Standing::Repaired, repair.reason.clone())));
    }
    let recipe = |recipe: &NeededRecipe| (Standing::Repaired, format!("recipe {}: {}", recipe.id, recipe.reason));
    found.extend(grounds.recipes.iter().map(recipe));
    found.sort_by_key(|(standing, _)| std::cmp::Reverse(weight(*standing)));
    let standing = found.first().map_or(Standing::AsIs, |(standing, _)| *standing);
    let mut reasons: Vec<String> = Vec::new();
    for (_, reason) in found.iter().filter(|(ground, _)| *ground == standing) {
        if !reasons.contains(reason) {
            reasons.push(reason.clone());
        }
    }
    reasons.extend(beyond(standing, &found));
    (standing, reasons)
}

/// Returns what else is in the way of a task that needs more than repairs.
fn beyond(standing: Standing, found: &[(Standing, String)]) -> Option<String> {
    let lies =
        |wanted: Standing| weight(wanted) < weight(standing) && found.iter().any(|(ground, _)| *ground == wanted);
    let parts = [(Standing::MoreDevices, "more devices"), (Standing::Build, "a build from source")];
    let parts: Vec<&str> = parts.into_iter().filter(|(ground, _)| lies(*ground)).map(|(_, text)| text).collect();
    (!parts.is_empty()).then(|| format!("beyond that it needs {}", parts.join(" and ")))
}

/// Returns how much a standing weighs: a build is only time, devices must be had, and what can't run needs an edit.
fn weight(standing: Standing) -> u8 {
    match standing {
        Standing::AsIs => 0,
        Standing::Repaired => 1,
        Standing::Build => 2,
        Standing::MoreDevices => 3,
        Standing::Cannot => 4,
    }
}

fn is_open_error(finding: &Finding) -> bool {
    finding.severity == Severity::Error && !finding.repaired
}

/// Returns what an error that nothing repairs means: more devices mend what is too large, everything else needs an edit.
fn standing_of(finding: &Finding) -> Standing {
    if [ids::DEVICES_TOO_FEW, ids::MODEL_TOO_LARGE].contains(&finding.rule.as_str()) {
        Standing::MoreDevices
    } else {
        Standing::Cannot
    }
}

/// Returns why each rung was refused, in one line.
fn refusals(answers: &[RungAnswer]) -> String {
    let refused = answers.iter().filter(|answer| answer.answer == RungVerdict::Refused);
    let texts: Vec<String> = refused.map(|answer| format!("{}: {}", answer.rung, answer.reason)).collect();
    if texts.is_empty() { "no rung was tried".to_owned() } else { texts.join("; ") }
}

/// Returns why the rungs above the taken one were refused: the wheel's reason is what people look for.
fn above(answers: &[RungAnswer]) -> String {
    let wheel = answers.iter().find(|answer| answer.rung == Rung::Wheel && answer.answer == RungVerdict::Refused);
    wheel.map_or_else(|| refusals(answers), |answer| answer.reason.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(rule: &str, severity: Severity, repaired: bool) -> Finding {
        Finding {
            rule: rule.to_owned(),
            severity,
            message: format!("{rule} happened"),
            subject: String::new(),
            evidence: Vec::new(),
            fix: String::new(),
            repaired,
        }
    }

    fn answer(rung: Rung, answer: RungVerdict) -> RungAnswer {
        RungAnswer { rung, answer, artifact: None, reason: format!("because of {rung}") }
    }

    fn check(findings: &[Finding], rungs: &[(Rung, RungVerdict)], expected: (Standing, &[&str])) {
        let answers = rungs.iter().map(|&(rung, verdict)| answer(rung, verdict)).collect();
        let ladder = BTreeMap::from([(ArmId::Baseline, answers)]);
        let grounds = Grounds {
            findings,
            bugs: &[],
            repairs: &[],
            recipes: &[],
            left: &[],
            faults: &[],
            unknown: None,
            ladder: &ladder,
            has_workload: true,
        };
        let (standing, reasons) = decide(&grounds);
        assert_eq!(
            (standing, reasons.iter().map(String::as_str).collect::<Vec<_>>()),
            (expected.0, expected.1.to_vec())
        );
    }

    const WHEEL: &[(Rung, RungVerdict)] = &[(Rung::Wheel, RungVerdict::Taken)];
    const BUILD: &[(Rung, RungVerdict)] = &[(Rung::Wheel, RungVerdict::Refused), (Rung::Source, RungVerdict::Taken)];

    #[test]
    fn a_task_without_faults_runs_as_it_is() {
        check(&[finding(ids::REVERT, Severity::Warning, false)], WHEEL, (Standing::AsIs, &[]));
    }

    #[test]
    fn a_repaired_error_is_a_repair() {
        let repaired = finding(ids::OPTION_REFUSED, Severity::Error, true);
        check(&[repaired], WHEEL, (Standing::Repaired, &["option-refused happened (repaired)"]));
    }

    #[test]
    fn the_worst_ground_decides_and_the_others_are_said_too() {
        let findings = [
            finding(ids::OPTION_REFUSED, Severity::Error, true),
            finding(ids::MODEL_TOO_LARGE, Severity::Error, false),
        ];
        let build = "baseline must be built from source: because of wheel";
        let (large, option) = ("model-too-large happened", "option-refused happened (repaired)");
        let beyond = "beyond that it needs a build from source";
        check(&findings, BUILD, (Standing::MoreDevices, &[large, beyond]));
        check(&findings, WHEEL, (Standing::MoreDevices, &[large]));
        check(&findings[..1], BUILD, (Standing::Build, &[build]));
        check(&findings[..1], WHEEL, (Standing::Repaired, &[option]));
        let cannot = [&findings[..], &[finding(ids::PLACEHOLDER, Severity::Error, false)]].concat();
        let beyond = "beyond that it needs more devices and a build from source";
        check(&cannot, BUILD, (Standing::Cannot, &["placeholder happened", beyond]));
    }

    #[test]
    fn an_arm_without_an_environment_cannot_run() {
        let refused = [(Rung::Wheel, RungVerdict::Refused), (Rung::Source, RungVerdict::Refused)];
        let reason = "no environment can be had for baseline: wheel: because of wheel; source: because of source";
        check(&[], &refused, (Standing::Cannot, &[reason]));
    }
}
