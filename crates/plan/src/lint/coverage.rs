//! Changes that the workload doesn't run.

use isobench_schema::assessment::Finding;

use super::case::{Case, finding};
use super::changed::Changed;
use super::{condition, ids, pattern};
use crate::knowledge::coverage::{ModelFile, Need};

/// What a reason is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// A feature of the engine.
    Feature,
    /// A family of models.
    Family,
}

/// One reason why a file isn't run.
struct Unmet<'k> {
    of: Of,
    needs: String,
    because: &'k str,
    source: &'k str,
}

/// Finds commits of which the workload runs nothing, by the table of what code needs. A file of which the table says nothing
/// counts as run.
pub(super) fn change_not_exercised(case: &Case<'_>, changed: &Changed<'_>) -> Vec<Finding> {
    if changed.files.is_empty() {
        return if case.files().is_empty() { Vec::new() } else { vec![nothing_runs(case)] };
    }
    let needs: Vec<&Need> = case.knowledge.coverage.need.iter().filter(|need| applies(need, case)).collect();
    let of_commit: Vec<Unmet<'_>> = needs
        .iter()
        .filter(|need| changed.subject_is(&need.subjects) && changed.has(&need.paths))
        .filter(|need| is_unmet(need, case))
        .map(|need| unmet(need))
        .collect();
    let of_files: Vec<Vec<Unmet<'_>>> = changed.files.iter().map(|file| of_file(file, &needs, case)).collect();
    if of_files.iter().any(Vec::is_empty) {
        return if of_commit.is_empty() { Vec::new() } else { vec![not_used(case, changed, of_commit)] };
    }
    let all: Vec<Unmet<'_>> = of_commit.into_iter().chain(of_files.into_iter().flatten()).collect();
    // Another family's file changed beside others says nothing of what is needed.
    let telling = |reason: &Unmet<'_>| reason.of == Of::Feature;
    let only_families = !all.iter().any(telling) || other_family(case, changed).is_some();
    vec![not_run(changed, all.into_iter().filter(|reason| only_families || telling(reason)).collect())]
}

/// Returns the model file of another family, if every changed file that matters is one.
pub(super) fn other_family<'a>(case: &Case<'a>, changed: &Changed<'_>) -> Option<&'a ModelFile> {
    let rows: Vec<&ModelFile> = changed.files.iter().map(|file| foreign(file, case)).collect::<Option<_>>()?;
    rows.first().copied()
}

fn applies(need: &Need, case: &Case<'_>) -> bool {
    case.is(need.engine)
        && (need.since.is_none() && need.until.is_none() || case.moment().is_some_and(|moment| need.holds(moment)))
}

fn is_unmet(need: &Need, case: &Case<'_>) -> bool {
    condition::any(&need.any, case) == Some(false)
}

fn unmet(need: &Need) -> Unmet<'_> {
    Unmet { of: Of::Feature, needs: need.needs.clone(), because: &need.because, source: &need.source }
}

fn of_file<'k>(file: &str, needs: &[&'k Need], case: &Case<'k>) -> Vec<Unmet<'k>> {
    let mut reasons: Vec<Unmet<'k>> = needs
        .iter()
        .filter(|need| !need.only_with_subject && pattern::any(&need.paths, file) && is_unmet(need, case))
        .map(|need| unmet(need))
        .collect();
    reasons.extend(foreign(file, case).map(|row| Unmet {
        of: Of::Family,
        needs: format!("a {} model such as `{}`", row.family, row.example),
        because: "the file holds one family of models, and the task's model is of another",
        source: &row.source,
    }));
    reasons
}

/// Returns the row of a model file that the task's model doesn't run.
fn foreign<'k>(file: &str, case: &Case<'k>) -> Option<&'k ModelFile> {
    let model = case.model()?;
    let mut rows = case.knowledge.coverage.model_file.iter().filter(|row| pattern::any(&row.paths, file)).peekable();
    let first = *rows.peek()?;
    let architectures = case.traits.map_or(&[][..], |traits| traits.architectures.as_slice());
    let model = model.to_lowercase();
    let runs = |row: &ModelFile| {
        pattern::any(&row.models, &model) || architectures.iter().any(|name| row.architectures.contains(name))
    };
    if rows.any(runs) { None } else { Some(first) }
}

fn nothing_runs(case: &Case<'_>) -> Finding {
    let files = case.files().join(", ");
    let mut found = finding(
        ids::CHANGE_NOT_EXERCISED,
        case.files().first().map_or("files", String::as_str),
        "the commit changes nothing that a benchmark runs",
    );
    found.evidence.push(format!("it changes tests, documentation, tools or CI only: {files}"));
    found
}

/// Returns a finding for a commit whose subject names what the workload doesn't use; some of its files may run all the same.
fn not_used(case: &Case<'_>, changed: &Changed<'_>, reasons: Vec<Unmet<'_>>) -> Finding {
    let mut found = unexercised("use what the commit is about", changed, reasons);
    found.evidence.extend(case.subject().map(|subject| format!("its subject is \u{201c}{subject}\u{201d}")));
    found
}

fn not_run(changed: &Changed<'_>, reasons: Vec<Unmet<'_>>) -> Finding {
    unexercised("run the changed code", changed, reasons)
}

fn unexercised(doesnt: &str, changed: &Changed<'_>, reasons: Vec<Unmet<'_>>) -> Finding {
    let mut needs: Vec<String> = Vec::new();
    let mut evidence: Vec<String> = vec![format!("changed: {}", changed.list())];
    for reason in reasons {
        let line = format!("{} ({})", reason.because, reason.source);
        if !needs.contains(&reason.needs) {
            needs.push(reason.needs);
        }
        if !evidence.contains(&line) {
            evidence.push(line);
        }
    }
    let needs = needs.join("; and ");
    let message = format!("the workload doesn't {doesnt}, which needs {needs}");
    let mut found = finding(ids::CHANGE_NOT_EXERCISED, changed.files.first().copied().unwrap_or("files"), message);
    found.evidence = evidence;
    found.fix = format!("Give a workload with {needs}.");
    found
}
