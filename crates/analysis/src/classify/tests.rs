//! The table against its samples: each is there, is reached, and has one meaning.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use regex::Regex;

use super::matcher::Matcher;
use super::table::{FileRole, Grade, Signature};
use super::*;
use isobench_schema::cause::FixKind;

/// Returns the samples of each signature, from files named `ID.log` and `ID-NUMBER.log`.
fn samples() -> BTreeMap<String, Vec<(String, Vec<u8>)>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/signatures");
    let mut found: BTreeMap<String, Vec<(String, Vec<u8>)>> = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let id = name.split('-').next().unwrap().to_owned();
        found.entry(id).or_default().push((name, fs::read(path).unwrap()));
    }
    found
}

/// Returns a name of a file that wrote a signature's line.
fn file_of(signature: &Signature) -> &'static str {
    match signature.file {
        Some(FileRole::Client) => "client.log",
        Some(FileRole::Environment) => "environment.log",
        Some(FileRole::Server) => "server.log",
        Some(FileRole::Harness) => "harness.log",
        Some(FileRole::Other) | None => "log",
    }
}

fn findings(file: &str, text: &[u8]) -> FileFindings {
    let mut reader = Classifier::new().log(file);
    reader.feed(text);
    reader.finish()
}

#[test]
fn every_sample_shows_its_own_signature() {
    let mut wrong = Vec::new();
    for (id, samples) in samples() {
        let signature = Signatures::embedded().find(&id).unwrap_or_else(|| panic!("sample of no signature: {id}"));
        for (name, text) in samples {
            let cause = Classifier::new().text(file_of(signature), &text);
            if cause.signature.as_deref() != Some(id.as_str()) || cause.class != signature.class {
                wrong.push(format!("{name}: {:?} {} {:?}", cause.signature, cause.cause, cause.evidence.first()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} samples show another signature:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_signature_has_a_sample() {
    let samples = samples();
    let without: Vec<_> = signatures().iter().filter(|row| !samples.contains_key(&row.id)).map(|row| &row.id).collect();
    assert!(without.is_empty(), "signatures without a sample: {without:?}");
}

/// Returns whether an order is declared between two rows, directly or through others.
fn is_over(rows: &Matcher, one: usize, other: usize) -> bool {
    let over = &rows.rows[one].over;
    over.contains(&other) || over.iter().any(|&between| is_over(rows, between, other))
}

#[test]
fn no_two_signatures_claim_a_line_without_an_order() {
    let matcher = Matcher::embedded();
    let mut wrong = BTreeSet::new();
    for (id, samples) in samples() {
        let signature = Signatures::embedded().find(&id).unwrap();
        for (_, text) in samples {
            let found = findings(file_of(signature), &text);
            for one in &found.hits {
                for other in found.hits.iter().filter(|other| other.row > one.row) {
                    let same_line = one.shown.line == other.shown.line;
                    let grade = |hit: &reader::Hit| matcher.rows[hit.row].signature.grade;
                    let ordered = is_over(matcher, one.row, other.row) || is_over(matcher, other.row, one.row);
                    if same_line && grade(one) == grade(other) && !ordered {
                        let ids = [one, other].map(|hit| matcher.rows[hit.row].signature.id.as_str());
                        wrong.insert(format!("{ids:?} in a sample of {id}: {}", one.shown.text));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.into_iter().collect::<Vec<_>>().join("\n"));
}

#[test]
fn orders_have_no_cycles_and_name_signatures_that_exist() {
    for row in signatures() {
        for id in &row.over {
            assert!(Signatures::embedded().find(id).is_some(), "{} is over {id}, which doesn't exist", row.id);
        }
        let (mut seen, mut next) = (BTreeSet::new(), vec![row.id.as_str()]);
        while let Some(id) = next.pop() {
            for over in &Signatures::embedded().find(id).unwrap().over {
                assert_ne!(over, &row.id, "{} is over itself", row.id);
                if seen.insert(over.as_str()) {
                    next.push(over);
                }
            }
        }
    }
}

#[test]
fn every_class_has_one_meaning_and_a_signature() {
    let names: BTreeSet<_> = classes().iter().map(|class| class.id.as_str()).collect();
    let meanings: BTreeSet<_> = classes().iter().map(|class| class.meaning.as_str()).collect();
    assert_eq!(names.len(), classes().len(), "a class stands twice in the table");
    assert_eq!(meanings.len(), classes().len(), "two classes have one meaning");
    let used: BTreeSet<_> = signatures().iter().map(|row| row.class.as_str()).collect();
    assert_eq!(used, names, "classes of signatures, and those of the table");
    for class in classes() {
        let is_plain = class.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
        assert!(is_plain && !class.meaning.ends_with('.'), "{}", class.id);
    }
}

#[test]
fn ids_are_unique_and_those_of_the_collection_are_all_there() {
    let ids: BTreeSet<_> = signatures().iter().map(|row| row.id.as_str()).collect();
    assert_eq!(ids.len(), signatures().len(), "an id stands twice in the table");
    for (family, last) in [('A', 30), ('B', 19), ('C', 23), ('D', 13), ('E', 20), ('F', 17), ('G', 12)] {
        for number in 1..=last {
            assert!(ids.contains(format!("{family}{number}").as_str()), "{family}{number} is missing");
        }
    }
}

/// Returns the phrases of which one must stand on a line for a signature to be asked for: a trigger in one of each is enough.
fn keys(row: &Signature) -> Vec<Vec<&String>> {
    let line: Vec<Vec<&String>> = if row.any.is_empty() {
        vec![row.all.iter().collect()]
    } else {
        row.any.iter().map(|phrase| std::iter::once(phrase).chain(&row.all).collect()).collect()
    };
    let before = row.after.iter().flatten().chain(&row.unless_after).map(|phrase| vec![phrase]);
    line.into_iter().chain(before).collect()
}

#[test]
fn every_phrase_has_a_trigger() {
    let table = Signatures::embedded();
    let has_trigger = |phrase: &&String| table.trigger.iter().any(|trigger| phrase.contains(trigger.as_str()));
    let mut without = Vec::new();
    for row in signatures() {
        let missing = keys(row).into_iter().filter(|phrases| !phrases.iter().any(has_trigger));
        without.extend(missing.map(|phrases| format!("{}: {phrases:?}", row.id)));
    }
    let remembered = table.remembered.iter().map(|row| &row.phrase);
    let others = table.ready.iter().chain(&table.ending).chain(remembered).filter(|phrase| !has_trigger(phrase));
    without.extend(others.cloned());
    assert!(without.is_empty(), "phrases without a trigger:\n{}", without.join("\n"));
    for trigger in ["rror", "xception", "raceback"] {
        assert!(table.trigger.iter().any(|known| known == trigger), "exceptions are found by `{trigger}`");
    }
}

#[test]
fn rows_are_well_formed() {
    let place = Regex::new(r"\{([\w:]+)(\|[^}]*)?\}").unwrap();
    for row in signatures() {
        let id = &row.id;
        assert!(!row.all.is_empty() || !row.any.is_empty(), "{id} has no phrase");
        assert!(!row.source.is_empty() && !row.engines.is_empty(), "{id} has no source or engine");
        let groups: Vec<String> = row.pattern.iter().flat_map(|pattern| names(pattern)).collect();
        for text in [&row.cause, &row.fix.advice] {
            assert!(!text.ends_with('.') && !text.is_empty(), "{id}: {text}");
            for found in place.captures_iter(text) {
                let (name, default) = (&found[1], found.get(2));
                let is_known = groups.iter().any(|group| group == name) || name.starts_with("asked:");
                assert!(is_known, "{id}: `{name}` is no group of its pattern");
                let may_be_absent = row.pattern.as_deref().is_some_and(|pattern| pattern.contains('|'));
                let before = &text[..found.get(0).unwrap().start()];
                let is_quoted = before.matches('`').count() % 2 == 1;
                let is_name = default.is_none_or(|default| default.len() > 1 && !default.as_str().contains(' '));
                assert!(!is_quoted || is_name, "{id}: words in backticks look like a name: {text}");
                let is_there = is_always(id, name) && phrases_have(row, name);
                assert!(default.is_some() || !may_be_absent || is_there, "{id}: `{name}` may be absent");
            }
        }
        assert_eq!(row.fix.kind == FixKind::Recipe, !row.fix.recipes.is_empty(), "{id}: a recipe is named by its id");
        let limit = row.fewer_than.as_ref();
        assert!(
            limit.is_none_or(|limit| Signatures::embedded().remembered.iter().any(|row| row.name == *limit)),
            "{id}"
        );
    }
}

/// Returns the names of a pattern's groups.
fn names(pattern: &str) -> Vec<String> {
    Regex::new(pattern).unwrap().capture_names().flatten().map(str::to_owned).collect()
}

/// Returns whether a group of a pattern with alternatives is found in every sample of its signature.
fn is_always(id: &str, name: &str) -> bool {
    let signature = Signatures::embedded().find(id).unwrap();
    let pattern = Regex::new(signature.pattern.as_deref().unwrap()).unwrap();
    let samples = samples();
    samples[id].iter().all(|(_, text)| {
        let text = String::from_utf8_lossy(text);
        let mut lines = text.lines().map(|line| line::read(line).body).filter_map(|body| pattern.captures(body));
        lines.any(|found| found.name(name).is_some())
    })
}

/// Returns whether each phrase that a signature's pattern fits by itself has a group.
fn phrases_have(row: &Signature, name: &str) -> bool {
    let pattern = Regex::new(row.pattern.as_deref().unwrap()).unwrap();
    row.any.iter().filter_map(|phrase| pattern.captures(phrase)).all(|found| found.name(name).is_some())
}

#[test]
fn what_only_follows_is_never_the_cause_beside_a_cause() {
    let cause = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 896.00 MiB.\n";
    for (id, samples) in samples() {
        let signature = Signatures::embedded().find(&id).unwrap();
        if matches!(signature.grade, Grade::Consequence | Grade::Symptom) && signature.ending == Ending::Anywhere {
            for (name, text) in samples {
                let before = [cause.as_slice(), &text].concat();
                let after = [text.as_slice(), b"\n", cause].concat();
                // A server that became ready has survived what came before.
                let has_survived = findings("log", &before).ready;
                for both in [&before, &after].into_iter().skip(usize::from(has_survived)) {
                    let found = Classifier::new().text("log", both);
                    let is_memory = found.class == "device-memory-exhausted";
                    assert!(is_memory, "{name}: {:?}", found.signature);
                }
            }
        }
    }
}

#[test]
fn stages_are_counted() {
    let counts = signatures_by_stage();
    assert_eq!(counts.iter().map(|count| count.real + count.template).sum::<usize>(), signatures().len());
    assert!(counts.windows(2).all(|pair| pair[0].stage < pair[1].stage));
}
