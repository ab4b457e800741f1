//! Causes and a coverage made up for the pages.

use isobench_schema::cause::{Blame, Cause, CauseLine, CauseStage, Confidence, Fix, FixKind};
use isobench_schema::coverage::{Coverage, CoverageLoss, CoverageStage, CoverageStep, RetryActor, RetryGroup};

/// How far arms came, two of which were lost for the same cause and one by itself.
pub(super) fn coverage() -> Coverage {
    let loss = |class: &str, reason: &str, names: &[&str]| CoverageLoss {
        class: class.into(),
        reason: reason.into(),
        differ: names.len() > 2,
        names: names.iter().map(ToString::to_string).collect(),
    };
    let retry = |class: &str, fix, change: &str, actor, names: &[&str]| RetryGroup {
        class: class.into(),
        fix,
        change: change.into(),
        differ: false,
        actor,
        names: names.iter().map(ToString::to_string).collect(),
    };
    let served = loss(
        "dependency-too-new",
        "transformers brings <aimv2> of its own",
        &["moe-kernel/baseline", "moe-kernel/human"],
    );
    let decided = loss("inconclusive", "the interval holds both", &["a/human", "b/human", "c/agent:x"]);
    let lost = |stage| match stage {
        CoverageStage::Served => vec![served.clone()],
        CoverageStage::Decided => vec![decided.clone()],
        CoverageStage::Row
        | CoverageStage::Command
        | CoverageStage::Environment
        | CoverageStage::Measured
        | CoverageStage::Comparable => Vec::new(),
    };
    let steps = CoverageStage::ALL.iter().map(|&stage| {
        let reached = match stage {
            CoverageStage::Row | CoverageStage::Command | CoverageStage::Environment => 9,
            CoverageStage::Served | CoverageStage::Measured | CoverageStage::Comparable => 7,
            CoverageStage::Decided => 4,
        };
        CoverageStep { stage, reached, lost: lost(stage) }
    });
    let retries = vec![
        retry(
            "inconclusive",
            FixKind::Option,
            "a plan with more blocks",
            RetryActor::Isobench,
            &["a/human", "b/human", "c/agent:x"],
        ),
        retry(
            "dependency-too-new",
            FixKind::Recipe,
            "install transformers below 4.54",
            RetryActor::Isobench,
            &["moe-kernel/baseline", "moe-kernel/human"],
        ),
    ];
    Coverage { of: "arms".into(), steps: steps.collect(), retries }
}

/// A cause that the logs of an arm name.
pub(super) fn cause() -> Cause {
    let line =
        |line, text: &str| CauseLine { file: "server.stderr".into(), line, offset: line * 80, text: text.into() };
    Cause {
        stage: CauseStage::Import,
        class: "dependency-too-new".into(),
        signature: Some("B1".into()),
        cause: "the installed transformers brings a config named `aimv2` of its own".into(),
        evidence: vec![line(41, "ValueError: 'aimv2' is already used by a Transformers config, pick another name.")],
        transient: false,
        fix: Fix {
            kind: FixKind::Recipe,
            recipes: vec!["transformers-without-aimv2".into()],
            advice: "install transformers below 4.54".into(),
        },
        confidence: Confidence::High,
        consequences: Vec::new(),
        arms: Vec::new(),
        blame: Some(Blame::Shared),
    }
}
