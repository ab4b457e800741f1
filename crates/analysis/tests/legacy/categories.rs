//! The report of 2026-01-02 on 94 commits, from its raw records.

use isobench_analysis::legacy::{Explained, coverage, taxonomy};
use isobench_schema::assessment::{Finding, Severity};
use isobench_schema::cause::{Cause, CauseStage, Confidence, Fix, FixKind};
use isobench_schema::coverage::{CoverageStage, RetryActor};
use isobench_schema::legacy::LegacyCategory;

use crate::file;

fn records() -> Vec<Explained> {
    let found = file("errors-94.jsonl");
    assert!(found.problems.is_empty(), "{:?}", found.problems);
    found.records.into_iter().map(Explained::from).collect()
}

#[test]
fn the_categories_have_the_counts_of_the_report() {
    let counts: Vec<(LegacyCategory, u64)> =
        taxonomy(&records()).counts.iter().map(|count| (count.category, count.count)).collect();
    let expected = [
        (LegacyCategory::Success, 24),
        (LegacyCategory::WheelNotFound, 24),
        (LegacyCategory::NoMetrics, 17),
        (LegacyCategory::BrokenPipe, 10),
        (LegacyCategory::ServerStartupFailed, 6),
        (LegacyCategory::PortBug, 5),
        (LegacyCategory::WheelInstallFailed, 2),
        (LegacyCategory::Other, 5),
        (LegacyCategory::NoPerfCommand, 1),
    ];
    assert_eq!(counts, expected);
    assert_eq!(counts.iter().map(|(_, count)| count).sum::<u64>(), 94);
}

#[test]
fn categories_follow_texts_and_not_commits() {
    let mut records = records();
    for record in &mut records {
        record.record.commit = "0000000".to_owned();
    }
    let found = taxonomy(&records);
    assert_eq!(found.counts[1].count, 24);
    assert_eq!(found.counts[3].count, 10);
}

#[test]
fn the_funnel_loses_each_record_once() {
    let found = coverage(&records());
    let reached: Vec<u64> = found.steps.iter().map(|step| step.reached).collect();
    // 2 without a usable command; 24 + 2 wheels, 10 pipes, 3 models and 1 git before the environment; 5 versions, 6 + 2
    // servers; 15 without numbers; the report holds no numbers, so that nothing can be compared.
    assert_eq!(reached, [94, 92, 52, 39, 24, 0, 0]);
    let lost: usize = found.steps.iter().flat_map(|step| &step.lost).map(|loss| loss.names.len()).sum();
    assert_eq!(lost, 94);
    let retried: usize = found.retries.iter().map(|group| group.names.len()).sum();
    assert_eq!(retried, 70, "every failure is in one group");
}

#[test]
fn a_retry_by_class_says_who_can_change_what() {
    let found = coverage(&records());
    let group = |class: &str| found.retries.iter().find(|group| group.class == class).unwrap();
    for (class, fix, actor, count) in [
        ("wheel-not-found", FixKind::Build, RetryActor::Isobench, 26),
        ("broken-pipe", FixKind::Retry, RetryActor::Isobench, 10),
        ("no-metrics", FixKind::LookElsewhere, RetryActor::Person, 15),
        ("server-not-started", FixKind::LookElsewhere, RetryActor::Person, 8),
        ("version-refused", FixKind::Retry, RetryActor::Isobench, 5),
        ("model-refused", FixKind::Devices, RetryActor::Operator, 3),
        ("no-command", FixKind::DatasetEdit, RetryActor::Dataset, 1),
        ("command-malformed", FixKind::DatasetEdit, RetryActor::Dataset, 1),
        ("git-timeout", FixKind::Retry, RetryActor::Isobench, 1),
    ] {
        let group = group(class);
        assert_eq!((group.fix, group.actor, group.names.len()), (fix, actor, count), "{class}");
    }
}

fn cause(stage: CauseStage, class: &str, kind: FixKind) -> Cause {
    Cause {
        stage,
        class: class.to_owned(),
        signature: Some("A1".to_owned()),
        cause: "the parser refuses the option".to_owned(),
        evidence: Vec::new(),
        transient: false,
        fix: Fix { kind, recipes: Vec::new(), advice: "leave the option out".to_owned() },
        confidence: Confidence::High,
        consequences: Vec::new(),
        arms: Vec::new(),
        blame: None,
    }
}

#[test]
fn a_known_cause_says_more_than_the_class() {
    let mut records = records();
    let place = records.iter().position(|record| record.record.commit == "22d33bac").unwrap();
    records[place].cause = Some(cause(CauseStage::ClientArguments, "option-refused", FixKind::Option));
    let found = coverage(&records);
    let measured = found.steps.iter().find(|step| step.stage == CoverageStage::Measured).unwrap();
    assert!(measured.lost.iter().any(|loss| loss.class == "option-refused" && loss.names == ["22d33bac"]));
    let group = found.retries.iter().find(|group| group.class == "option-refused").unwrap();
    assert_eq!(
        (group.fix, group.actor, group.change.as_str()),
        (FixKind::Option, RetryActor::Isobench, "leave the option out")
    );
    assert_eq!(taxonomy(&records).rows[place].category, LegacyCategory::NoMetrics, "the report's category stays");
}

#[test]
fn a_command_that_is_refused_comes_before_every_other_change() {
    let mut records = records();
    let place = records.iter().position(|record| record.record.commit == "67da5720").unwrap();
    records[place].findings.push(Finding {
        rule: "option-refused".to_owned(),
        severity: Severity::Error,
        message: "`--dtype` is refused".to_owned(),
        subject: "--dtype".to_owned(),
        evidence: Vec::new(),
        fix: "leave `--dtype` out".to_owned(),
        repaired: false,
    });
    let found = coverage(&records);
    let group = found.retries.iter().find(|group| group.names == ["67da5720"]).unwrap();
    assert_eq!((group.class.as_str(), group.fix), ("broken-pipe", FixKind::DatasetEdit));
    assert_eq!(group.change, "leave `--dtype` out");
}
