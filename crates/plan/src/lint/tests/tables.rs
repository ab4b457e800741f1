//! The tables behind the rules: whole, and without contradictions.

use std::collections::BTreeSet;

use isobench_schema::ids::Moment;

use super::*;
use crate::lint::condition::Condition;
use crate::lint::{TRAITS, ids};

fn check_span(id: &str, since: Option<&Moment>, until: Option<&Moment>) {
    assert!(since.is_none() || until.is_none() || since < until, "{id} ends before it begins");
}

/// Subjects and names of models are matched in lower case.
fn check_lower(patterns: &[String]) {
    for pattern in patterns {
        assert_eq!(*pattern, pattern.to_lowercase());
    }
}

fn check_condition(id: &str, condition: &Condition) {
    for name in condition.model_trait.iter().chain(&condition.no_trait) {
        assert!(TRAITS.contains(&name.as_str()), "{id}: `{name}` is no trait");
    }
    let names = [&condition.option, &condition.without, &condition.with];
    for name in names.into_iter().flatten() {
        assert!(name.starts_with("--"), "{id}: `{name}` is no option");
        let mut given = Given::default();
        given.push(name, Vec::new());
        assert!(given.values(name).is_some(), "{id}: `{name}` isn't the main spelling");
    }
    check_lower(&condition.any_model);
    check_lower(condition.model.as_slice());
    assert_ne!(condition, &Condition::default(), "{id}: a condition asks nothing");
}

#[test]
fn what_code_needs_is_told_whole() {
    let coverage = &Knowledge::embedded().coverage;
    let mut seen = BTreeSet::new();
    for need in &coverage.need {
        assert!(seen.insert(&need.id), "{} is there twice", need.id);
        assert!(!need.paths.is_empty() && !need.needs.is_empty() && !need.because.is_empty(), "{}", need.id);
        assert!(!need.only_with_subject || !need.subjects.is_empty(), "{} can never hold", need.id);
        assert!(need.source.contains("git:") || need.source.contains("vllm-failures"), "{}", need.id);
        check_span(&need.id, need.since.as_ref(), need.until.as_ref());
        need.any.iter().for_each(|condition| check_condition(&need.id, condition));
        check_lower(&need.subjects);
    }
    for row in &coverage.model_file {
        check_lower(&row.models);
        let models = &Knowledge::embedded().models;
        let known = models.find(&row.example).and_then(Traits::of_row);
        let runs = row.models.iter().any(|pattern| crate::lint::pattern::matches(pattern, &row.example.to_lowercase()));
        assert!(runs, "{}: `{}` isn't one of its models", row.family, row.example);
        if let Some(traits) = known {
            assert!(traits.architectures.iter().any(|name| row.architectures.contains(name)), "{}", row.family);
        }
    }
}

#[test]
fn conflicts_and_hardware_are_told_whole() {
    let mut seen = BTreeSet::new();
    for row in &Knowledge::embedded().conflicts.conflict {
        assert!(seen.insert(&row.id), "{} is there twice", row.id);
        assert!(!row.when.is_empty() && !row.message.is_empty() && row.fix.ends_with('.') && !row.source.is_empty());
        check_span(&row.id, row.since.as_ref(), row.until.as_ref());
        row.when.iter().for_each(|condition| check_condition(&row.id, condition));
    }
    for row in &Knowledge::embedded().hardware.hardware {
        assert!(!row.paths.is_empty() || !row.subjects.is_empty(), "{}", row.name);
        assert!(!row.source.is_empty(), "{}", row.name);
        check_lower(&row.subjects);
        check_span(&row.name, row.since.as_ref(), row.until.as_ref());
    }
}

#[test]
fn recipes_and_bugs_ask_what_can_be_known() {
    for row in &Knowledge::embedded().recipes.recipe {
        row.any.iter().for_each(|condition| check_condition(&row.id, condition));
    }
    for row in &Knowledge::embedded().bugs.bug {
        row.any.iter().for_each(|condition| check_condition(&row.id, condition));
    }
}

#[test]
fn reverts_lead_to_commits_in_the_past() {
    let knowledge = Knowledge::embedded();
    for row in &knowledge.reverts.revert {
        let commits = &knowledge.commits;
        let revert = commits.find(isobench_schema::environment::EngineKind::Vllm, row.commit.as_str()).unwrap();
        assert!(revert.subject.starts_with("Revert"), "{}", row.commit);
        if let Some(earlier) = commits.find(isobench_schema::environment::EngineKind::Vllm, row.takes_back.as_str()) {
            assert!(earlier.committed < revert.committed);
        }
    }
}

#[test]
fn findings_come_in_the_order_of_the_rules() {
    let text = include_str!("../../../../../examples/iso-bench/vllm-96.jsonl");
    for task in tasks(text) {
        let findings = Held::of(task).findings();
        let place = |rule: &str| ids::ALL.iter().position(|id| *id == rule).unwrap();
        let places: Vec<usize> = findings.iter().map(|finding| place(&finding.rule)).collect();
        assert!(places.is_sorted(), "{findings:?}");
    }
}
