//! The contracts for scripts: tasks and contrasts by name, taken from the judgement as it is stored, and findings.
//!
//! A stored judgement holds everything that is here under the same names, so that `jq` expressions written for one work on
//! the other. This is the smaller object.

use crate::lint::{RuleText, Summary};
use isobench_schema::assessment::{Assessment, Finding, Severity};
use isobench_schema::plan::Problem;
use isobench_schema::verdict::{Contrast, Judgement, TaskJudgement};
use serde_json::{Map, Value, json};

/// Returns `{"tasks": [{"id", "standing", "contrasts": [..], "broken": [..]}]}`. What wasn't measured is `null`, as it is stored; fields
/// that apply only sometimes, such as `charged_to` and `speedup`, are left out where they don't.
pub fn contract(judgement: &Judgement) -> Value {
    json!({ "tasks": judgement.tasks.iter().map(task).collect::<Vec<_>>() })
}

/// Returns `{"problems": [..], "findings": [{"task", "rule", "severity", "message", "subject", "evidence", "fix",
/// "repaired"}], "summary": {..}}` of some tasks. The summary counts what is there, and of each severity how many findings a
/// repair takes care of.
pub fn lint(assessments: &[Assessment], problems: &[Problem]) -> Value {
    let findings = assessments.iter().flat_map(|item| item.findings.iter().map(move |found| finding(item, found)));
    let summary = Summary::of(assessments, problems);
    let count = |(severity, all, repaired): &(Severity, usize, usize)| {
        (severity.as_str().to_owned(), json!({ "count": all, "repaired": repaired }))
    };
    let mut counts: Map<String, Value> = summary.counts.iter().map(count).collect();
    counts.insert("tasks".to_owned(), summary.tasks.into());
    counts.insert("tasks_with_findings".to_owned(), summary.with_findings.into());
    counts.insert("problems".to_owned(), summary.problems.into());
    json!({ "problems": problems, "findings": findings.collect::<Vec<_>>(), "summary": counts })
}

fn finding(assessment: &Assessment, finding: &Finding) -> Value {
    json!({
        "task": assessment.task.as_str(),
        "rule": finding.rule,
        "severity": finding.severity.as_str(),
        "message": finding.message,
        "subject": finding.subject,
        "evidence": finding.evidence,
        "fix": finding.fix,
        "repaired": finding.repaired,
    })
}

/// Returns a rule as `{"id", "severity", "title", "meaning", "matters", "example", "fix",
/// "repairs", "source"}`.
pub fn rule(rule: &RuleText) -> Value {
    json!({
        "id": rule.id,
        "severity": rule.severity.as_str(),
        "title": rule.title,
        "meaning": rule.meaning,
        "matters": rule.matters,
        "example": rule.example,
        "fix": rule.fix,
        "repairs": rule.repairs,
        "source": rule.source,
    })
}

fn task(task: &TaskJudgement) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("id", task.id.as_str().into());
    put("standing", task.standing.as_str().into());
    put("contrasts", task.contrasts.iter().map(contrast).collect());
    if !task.broken.is_empty() {
        put("broken", json!(task.broken));
    }
    if !task.confirmations.is_empty() {
        put("confirmations", json!(task.confirmations));
    }
    if !task.unlike.is_empty() {
        put("unlike", json!(task.unlike));
    }
    Value::Object(object)
}

fn contrast(contrast: &Contrast) -> Value {
    let mut object = Map::new();
    let mut put = |name: &str, value: Value| object.insert(name.to_owned(), value);
    put("of", contrast.of.to_string().into());
    put("against", contrast.against.to_string().into());
    put("metric", contrast.metric.as_str().into());
    put("verdict", contrast.verdict.as_str().into());
    put("estimate", contrast.estimate.into());
    put("low", contrast.low.into());
    put("high", contrast.high.into());
    put("p", contrast.p.into());
    put("blocks", contrast.blocks.into());
    put("reason", contrast.reason.as_str().into());
    let numbers = [
        ("speedup", contrast.speedup),
        ("sign_flip_p", contrast.sign_flip_p),
        ("hodges_lehmann", contrast.hodges_lehmann),
        ("equivalence_low", contrast.equivalence_low),
        ("equivalence_high", contrast.equivalence_high),
        ("mde", contrast.mde),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            put(name, value.into());
        }
    }
    if let Some(blocks) = contrast.blocks_needed {
        put("blocks_needed", blocks.into());
    }
    if let Some(arm) = &contrast.charged_to {
        put("charged_to", arm.to_string().into());
    }
    if !contrast.looks.is_empty() {
        put("looks", json!(contrast.looks));
    }
    Value::Object(object)
}
