//! The 70 recorded commands of vLLM's commits: what is wrong with each at its parent, and what is left of it after repair.
#![allow(clippy::panic, reason = "a test panics on a table that is broken")]

use std::collections::BTreeSet;

use isobench_plan::command::{Asked, Fitted, fit, words, workload};
use isobench_plan::knowledge::Knowledge;
use isobench_plan::lint::ids;
use isobench_schema::assessment::{Finding, Severity};
use isobench_schema::environment::EngineKind;

/// Commit, parent, the command, and what a static check of the parent's own parser said.
const RECORDED: &str = include_str!("fixtures/recorded-commands.tsv");

struct Row<'t> {
    commit: &'t str,
    parent: &'t str,
    check: &'t str,
    command: &'t str,
}

fn rows() -> Vec<Row<'static>> {
    let lines = RECORDED.lines().skip(1);
    lines
        .map(|line| match line.split('\t').collect::<Vec<_>>()[..] {
            [commit, parent, command, check] => Row { commit, parent, check, command },
            _ => panic!("{line}"),
        })
        .collect()
}

fn asked<'t>(row: &Row<'t>) -> Asked<'t> {
    let knowledge = Knowledge::embedded();
    let facts = |id| knowledge.commits.find(EngineKind::Vllm, id).unwrap_or_else(|| panic!("{id} isn't known"));
    Asked {
        command: row.command,
        server_command: None,
        engine: EngineKind::Vllm,
        model: None,
        baseline: facts(row.parent),
        human: Some(facts(row.commit)),
    }
}

fn fitted(row: &Row<'_>) -> Result<Fitted<'static>, Vec<Finding>> {
    fit::fit(&asked(row), Knowledge::embedded())
}

/// The faults that the recorded check names.
fn recorded(check: &str) -> BTreeSet<String> {
    let mut faults = BTreeSet::new();
    for part in check.split("; ") {
        let names = |start: &str, what: &str| -> Vec<String> {
            let list = part.split_once(start).map_or("", |(_, list)| list);
            list.split_whitespace().map(|name| format!("{what} {name}")).collect()
        };
        faults.extend(names("unrecognized: ", "unknown"));
        faults.extend(names("required but absent: ", "required"));
        for (text, fault) in [
            ("needs --dataset-path", "no file"),
            ("no dataset and no --input-len", "no lengths"),
            ("does not exist at parent", "no script"),
            ("bracketed optional text", "brackets"),
            ("unexpanded placeholders", "placeholder"),
            ("no command", "no command"),
        ] {
            if part.contains(text) {
                faults.insert(fault.to_owned());
            }
        }
    }
    faults
}

/// The faults that are found, in the same words.
fn found(findings: &[Finding]) -> BTreeSet<String> {
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error);
    errors
        .map(|finding| match finding.rule.as_str() {
            ids::OPTION_REFUSED => format!("unknown {}", finding.subject),
            ids::OPTION_MISSING => format!("required {}", finding.subject),
            ids::DATASET_FILE_MISSING => "no file".to_owned(),
            ids::LENGTHS_MISSING => "no lengths".to_owned(),
            ids::SCRIPT_MISSING if finding.subject == "vllm serve" => "no server".to_owned(),
            ids::SCRIPT_MISSING => "no script".to_owned(),
            ids::BRACKETED_OPTION => "brackets".to_owned(),
            ids::PLACEHOLDER => "placeholder".to_owned(),
            ids::NO_COMMAND => "no command".to_owned(),
            other => format!("{other} {}", finding.subject),
        })
        .collect()
}

/// Commits whose commands have more faults than the recorded check names, and why it doesn't name them.
const MORE: &[(&str, &[&str], &str)] = &[
    (
        "bfdb1ba5c3fb",
        &["private-path /home/ray/default/vllm_public/benchmarks/benchmark_latency.py"],
        "the check asks the parser only, and takes any path for the script's",
    ),
    ("c45f3c3ab60f", &["no server"], "the check asks the benchmark's parser only, and there was no server yet"),
    ("d4bc1a4d248a", &["no server"], "the check asks the benchmark's parser only, and there was no server yet"),
    (
        "83450458339b",
        &["feature-conflict --ngram-prompt-lookup-max"],
        "the parser takes the command, and the engine fails at its start",
    ),
    (
        "9323a3153b20",
        &["value-refused --guided-decoding-backend"],
        "the check asks the client's parser only, and the server's doesn't know the value, which the commit itself adds",
    ),
    (
        "379da6dcb5f5",
        &["value-refused --dtype"],
        "the check asks the client's parser only, and the server's knows no `float8`",
    ),
];

/// Commits whose commands can't be run, and the rules that say so.
const UNFIT: &[(&str, &[&str])] = &[
    ("c45f3c3ab60f", &[ids::SCRIPT_MISSING]),
    ("d4bc1a4d248a", &[ids::SCRIPT_MISSING]),
    ("3127e975fb94", &[ids::NO_COMMAND]),
    ("526de822d501", &[ids::PLACEHOLDER]),
];

#[test]
fn faults_are_those_of_the_recorded_check() {
    let mut agreed = 0;
    for row in rows() {
        let findings = match fitted(&row) {
            Ok(fitted) => fitted.findings,
            Err(findings) => findings,
        };
        let mut expected = recorded(row.check);
        if let Some((_, more, _)) = MORE.iter().find(|(commit, ..)| row.commit.starts_with(commit)) {
            expected.extend(more.iter().map(ToString::to_string));
        } else {
            agreed += 1;
        }
        assert_eq!(found(&findings), expected, "{}: {}", row.commit, row.command);
    }
    assert_eq!(agreed, 64);
}

#[test]
fn after_repair_nothing_is_refused_but_what_no_repair_can_mend() {
    let knowledge = Knowledge::embedded();
    for row in rows() {
        let (rules, fitted) = match fitted(&row) {
            Ok(fitted) => (unrepaired(&fitted.findings), Some(fitted)),
            Err(findings) => (unrepaired(&findings), None),
        };
        let expected: &[&str] =
            UNFIT.iter().find(|(commit, _)| row.commit.starts_with(commit)).map_or(&[], |(_, rules)| rules);
        assert_eq!(rules, expected.iter().map(ToString::to_string).collect(), "{}: {}", row.commit, row.command);
        let Some(fitted) = fitted.filter(Fitted::is_fit) else { continue };
        assert_eq!(fitted.refused, [], "{}", row.commit);
        let derived = workload::derive(&fitted, &knowledge.clients, Some(32_000));
        assert!(derived.workload.is_some(), "{}: {:?}", row.commit, derived.findings);

        // What it became is taken as it is.
        let line = |argv: Vec<String>| words::join(argv.iter().map(String::as_str));
        let (client, server) = (line(fitted.client_argv()), line(fitted.server_argv()));
        let asked = Asked { command: &client, server_command: Some(&server), ..asked(&row) };
        let again = fit::fit(&asked, knowledge).unwrap();
        assert_eq!(unrepaired(&again.findings), BTreeSet::new(), "{}: {client}; {server}", row.commit);
        assert_eq!(again.repairs, [], "{}: {client}; {server}", row.commit);
    }
}

#[test]
fn every_option_of_a_recorded_command_has_a_fate() {
    for row in rows() {
        let Ok(fitted) = fitted(&row) else { continue };
        let derived = workload::derive(&fitted, &Knowledge::embedded().clients, None);
        let fates = derived.fates.iter().map(|fate| fate.written.matches("--").count()).sum::<usize>();
        assert_eq!(fates, row.command.matches("--").count(), "{}: {:?}", row.command, derived.fates);
    }
}

fn unrepaired(findings: &[Finding]) -> BTreeSet<String> {
    let left = findings.iter().filter(|finding| finding.severity == Severity::Error && !finding.repaired);
    left.map(|finding| finding.rule.clone()).collect()
}

#[test]
fn every_translation_leads_to_an_option_that_a_program_has() {
    let knowledge = Knowledge::embedded();
    let known = |name: &str| {
        let bare = name.strip_prefix("--no-").map(|bare| format!("--{bare}"));
        let is = |known: &String| known == name || Some(known) == bare.as_ref();
        knowledge.options.programs().iter().flat_map(|program| &program.option).any(|spec| spec.names.iter().any(is))
    };
    let translations = &knowledge.translations;
    for row in &translations.translation {
        let others = row.with.keys().chain(row.when.keys()).chain(&row.unless).chain(row.spread.values());
        for name in others.chain([&row.to]) {
            assert!(known(name), "no program has `{name}`, which the row for `{}` names", row.from);
        }
    }
    for row in &translations.superseded {
        assert!(known(&row.option), "no program ever had `{}`", row.option);
    }
    for row in &translations.own {
        assert!(known(&row.option), "no program has `{}`", row.option);
    }
}
