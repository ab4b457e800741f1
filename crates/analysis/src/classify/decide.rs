//! Joins what the files of one launch show into one cause.

use std::collections::BTreeSet;

use isobench_schema::cause::{Cause, CauseLine, CauseStage, Confidence, Fix, FixKind};

use super::matcher::Matcher;
use super::reader::{FileFindings, Hit, Shown, fill};
use super::table::{FileRole, Grade, Signature};

/// The class of what no signature knows.
pub const UNKNOWN: &str = "unknown";

/// The most lines of evidence.
const MOST_LINES: usize = 6;

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with a status.
    Status(i32),
    /// By a signal, for example 9.
    Signal(i32),
}

impl Exit {
    /// Returns whether it ended as it does when all went well.
    fn is_success(self) -> bool {
        self == Self::Status(0)
    }

    /// Returns the status as the table has it: a signal is negative, and a shell adds 128 to it.
    fn spellings(self) -> [i32; 2] {
        match self {
            Self::Status(status @ 129..=192) => [status, 128 - status],
            Self::Status(status) => [status, status],
            Self::Signal(signal) => [-signal, 128 + signal],
        }
    }

    fn words(self) -> String {
        match self {
            Self::Status(status) => format!("it ended with status {status}"),
            Self::Signal(signal) => format!("it was ended by signal {signal}"),
        }
    }
}

/// A hit with the place of its file in the order of the launch.
#[derive(Clone, Copy)]
struct Candidate<'f> {
    place: usize,
    file: &'f FileFindings,
    hit: &'f Hit,
    signature: &'static Signature,
    grade: Grade,
}

impl Candidate<'_> {
    fn key(&self) -> (usize, u64, usize) {
        (self.place, self.hit.shown.offset, self.hit.row)
    }
}

/// Returns the cause that files of one launch show. Files are read in the order of a launch, whatever order they come in:
/// environment, server, client, harness; by name, and as given where names don't say.
pub(super) fn decide(matcher: &Matcher, files: &[FileFindings], exit: Option<Exit>) -> Cause {
    let mut ordered: Vec<&FileFindings> = files.iter().collect();
    // What loggers write goes to the standard output, and what is written once all failed to the standard error.
    ordered.sort_by_key(|file| (FileRole::of(&file.file), file.file.ends_with("stderr")));
    // An environment that a server became ready in was good enough.
    if ordered.iter().any(|file| file.ready) {
        ordered.retain(|file| FileRole::of(&file.file) != FileRole::Environment);
    }
    let mut candidates = candidates(matcher, &ordered);
    let unknown = first_unknown(&ordered);
    if unknown.is_none() && exit.is_some_and(Exit::is_success) && ordered.iter().any(|file| file.ready) {
        // It served, and ended as it was told to: what it wrote then is no failure.
        candidates.retain(|one| matches!(one.grade, Grade::Specific | Grade::Notice));
    }
    let of =
        |grade: Grade| candidates.iter().filter(move |one| one.grade == grade).min_by_key(|one| one.key()).copied();
    let is_first = |one: &Candidate<'_>| unknown.is_none_or(|(place, shown)| one.key() < (place, shown.offset, 0));
    if let Some(first) = of(Grade::Specific) {
        let winner = refined(matcher, first, &candidates);
        let lowered = if is_first(&first) || is_same_chain(&first, unknown) { None } else { Some(Confidence::Medium) };
        return known(winner, lowered, &candidates);
    }
    if let Some(symptom) = of(Grade::Symptom).filter(is_first) {
        return known(refined(matcher, symptom, &candidates), Some(Confidence::Medium), &candidates);
    }
    if unknown.is_none() {
        if let Some(signature) = exit.and_then(|exit| by_exit(matcher, exit)) {
            return ended(signature, exit, &ordered, &candidates);
        }
        if let Some(consequence) = of(Grade::Consequence) {
            return known(refined(matcher, consequence, &candidates), Some(Confidence::Low), &candidates);
        }
        if let Some(notice) = of(Grade::Notice).filter(|_| !exit.is_some_and(Exit::is_success)) {
            return known(notice, None, &candidates);
        }
    }
    nothing_known(&ordered, exit, &candidates)
}

fn candidates<'f>(matcher: &Matcher, files: &[&'f FileFindings]) -> Vec<Candidate<'f>> {
    let all = files.iter().enumerate().flat_map(|(place, file)| file.hits.iter().map(move |hit| (place, *file, hit)));
    let with_rows = all.filter_map(|(place, file, hit)| {
        let signature = matcher.rows.get(hit.row)?.signature;
        let grade = match (signature.grade, hit.demoted) {
            (Grade::Specific, true) => Grade::Symptom,
            (grade, _) => grade,
        };
        Some(Candidate { place, file, hit, signature, grade })
    });
    with_rows.collect()
}

/// Returns the first exception that no signature knows.
fn first_unknown<'f>(files: &[&'f FileFindings]) -> Option<(usize, &'f Shown)> {
    files.iter().enumerate().find_map(|(place, file)| Some((place, file.exceptions.first()?)))
}

fn is_same_chain(one: &Candidate<'_>, unknown: Option<(usize, &Shown)>) -> bool {
    unknown.is_some_and(|(place, shown)| place == one.place && shown.chain == one.hit.shown.chain)
}

/// Returns the candidate of the same file that says the same as another, and more exactly.
fn refined<'f>(matcher: &Matcher, first: Candidate<'f>, candidates: &[Candidate<'f>]) -> Candidate<'f> {
    let mut winner = first;
    // The table's order has no cycles, so that this ends.
    for _ in 0..candidates.len() {
        let better = candidates.iter().find(|other| {
            let over = matcher.rows.get(other.hit.row).map(|row| row.over.as_slice()).unwrap_or_default();
            other.place == winner.place && over.contains(&winner.hit.row)
        });
        match better {
            Some(better) => winner = *better,
            None => break,
        }
    }
    winner
}

fn known(winner: Candidate<'_>, lowered: Option<Confidence>, candidates: &[Candidate<'_>]) -> Cause {
    let signature = winner.signature;
    // Confidences are declared from the surest down.
    let confidence = lowered.map_or(signature.confidence, |lowered| lowered.max(signature.confidence));
    let mut others: Vec<&Candidate<'_>> =
        candidates.iter().filter(|one| one.hit.row != winner.hit.row && one.grade != Grade::Notice).collect();
    others.sort_by_key(|one| one.key());
    let shown = std::iter::once(&winner).chain(others.iter().copied());
    let evidence = each_once(shown.map(|one| evidence(one.file, &one.hit.shown)));
    Cause {
        stage: signature.stage,
        class: signature.class.clone(),
        signature: Some(signature.id.clone()),
        cause: winner.hit.cause.clone(),
        evidence,
        transient: signature.transient,
        fix: fix(signature, winner.hit.advice.clone()),
        confidence,
        consequences: ids(&others),
        arms: Vec::new(),
        blame: None,
    }
}

/// Returns the ids of candidates, each once.
fn ids(candidates: &[&Candidate<'_>]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let new = candidates.iter().filter(|one| seen.insert(one.signature.id.as_str()));
    new.map(|one| one.signature.id.clone()).collect()
}

fn fix(signature: &Signature, advice: String) -> Fix {
    Fix { kind: signature.fix.kind, recipes: signature.fix.recipes.clone(), advice }
}

fn by_exit(matcher: &Matcher, exit: Exit) -> Option<&'static Signature> {
    let spellings = exit.spellings();
    let means = |signature: &Signature| spellings.iter().any(|spelling| signature.exit.contains(spelling));
    matcher.rows.iter().map(|row| row.signature).find(|signature| means(signature))
}

/// Returns the cause that only the way shows in which the process ended.
fn ended(signature: &Signature, exit: Option<Exit>, files: &[&FileFindings], candidates: &[Candidate<'_>]) -> Cause {
    let named = |name: &str| (name == "exit").then(|| exit.map(Exit::words)).flatten();
    let mut others: Vec<&Candidate<'_>> = candidates.iter().filter(|one| one.grade != Grade::Notice).collect();
    others.sort_by_key(|one| one.key());
    Cause {
        stage: signature.stage,
        class: signature.class.clone(),
        signature: Some(signature.id.clone()),
        cause: fill(&signature.cause, named),
        evidence: telling_lines(files),
        transient: signature.transient,
        fix: fix(signature, fill(&signature.fix.advice, named)),
        confidence: Confidence::Medium.max(signature.confidence),
        consequences: ids(&others),
        arms: Vec::new(),
        blame: None,
    }
}

fn nothing_known(files: &[&FileFindings], exit: Option<Exit>, candidates: &[Candidate<'_>]) -> Cause {
    let lines = telling_lines(files);
    let has_failed = !exit.is_none_or(Exit::is_success);
    let end = exit.filter(|exit| !exit.is_success()).map(Exit::words);
    let (cause, advice) = match (lines.is_empty(), has_failed) {
        (false, _) => ("no signature is known for what failed".to_owned(), "read the lines of evidence"),
        (true, true) => {
            let end = end.unwrap_or_default();
            (format!("{end}, and nothing that was written looks like a failure"), "read the files to their end")
        }
        (true, false) => (
            "nothing that was written looks like a failure".to_owned(),
            "read the files to their end, if it failed: what they say isn't known as a failure",
        ),
    };
    let mut others: Vec<&Candidate<'_>> = candidates.iter().filter(|one| one.grade != Grade::Notice).collect();
    others.sort_by_key(|one| one.key());
    Cause {
        stage: CauseStage::Unknown,
        class: UNKNOWN.to_owned(),
        signature: None,
        cause,
        evidence: lines,
        transient: false,
        fix: Fix { kind: FixKind::None, recipes: Vec::new(), advice: advice.to_owned() },
        confidence: Confidence::None,
        consequences: ids(&others),
        arms: Vec::new(),
        blame: None,
    }
}

/// Returns the lines that look most like what failed: the first exceptions of each file, then what else looks like an error.
fn telling_lines(files: &[&FileFindings]) -> Vec<CauseLine> {
    let exceptions = files.iter().flat_map(|file| file.exceptions.iter().map(|shown| evidence(file, shown)));
    let errors = files.iter().flat_map(|file| file.errors.iter().map(|shown| evidence(file, shown)));
    each_once(exceptions.chain(errors))
}

/// Returns the first lines, as many as are shown. A line that shows several signatures stands there once.
fn each_once(lines: impl Iterator<Item = CauseLine>) -> Vec<CauseLine> {
    let mut seen = BTreeSet::new();
    lines.filter(|line| seen.insert((line.file.clone(), line.offset))).take(MOST_LINES).collect()
}

fn evidence(file: &FileFindings, shown: &Shown) -> CauseLine {
    CauseLine { file: file.file.clone(), line: shown.line, offset: shown.offset, text: shown.text.clone() }
}
