//! Contrasts as comma-separated values (RFC 4180), one line each, with numbers at full precision.

use std::collections::BTreeMap;

use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::suite::TaskTest;
use isobench_schema::verdict::Judgement;

use crate::words::confirmed_by;

/// The names of the columns, which are the JSON names.
const COLUMNS: [&str; 19] = [
    "task",
    "standing",
    "of",
    "against",
    "metric",
    "verdict",
    "estimate",
    "low",
    "high",
    "speedup",
    "p",
    "sign_flip_p",
    "blocks",
    "charged_to",
    "reason",
    "overall_p",
    "holm_p",
    "benjamini_hochberg_p",
    "confirmed",
];

/// Returns every contrast of the judgement with a header line. What wasn't measured is an empty field, and so are the p over all
/// looks and those over all tasks where the judgement has no suite.
pub fn contrasts(judgement: &Judgement) -> String {
    let mut out = String::new();
    row(&mut out, &COLUMNS.map(str::to_owned));
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    let tests = tests(judgement);
    for task in &judgement.tasks {
        for contrast in &task.contrasts {
            let test = tests.get(&(&task.id, &contrast.of, &contrast.against));
            let fields = [
                task.id.to_string(),
                task.standing.to_string(),
                contrast.of.to_string(),
                contrast.against.to_string(),
                contrast.metric.to_string(),
                contrast.verdict.to_string(),
                number(contrast.estimate),
                number(contrast.low),
                number(contrast.high),
                number(contrast.speedup),
                number(contrast.p),
                number(contrast.sign_flip_p),
                contrast.blocks.to_string(),
                contrast.charged_to.as_ref().map(ToString::to_string).unwrap_or_default(),
                contrast.reason.clone(),
                number(test.map(|test| test.p)),
                number(test.map(|test| test.holm)),
                number(test.map(|test| test.benjamini_hochberg)),
                task.confirmations
                    .iter()
                    .find(|confirmation| confirmation.arm == contrast.of)
                    .map(confirmed_by)
                    .unwrap_or_default(),
            ];
            row(&mut out, &fields);
        }
    }
    out
}

/// Returns the suite's tests by task and contrast.
fn tests(judgement: &Judgement) -> BTreeMap<(&TaskId, &ArmId, &ArmId), &TaskTest> {
    let claims = judgement.suite.iter().flat_map(|suite| &suite.claims);
    claims
        .flat_map(|claims| claims.tests.iter().map(|test| ((&test.task, &claims.of, &claims.against), test)))
        .collect()
}

pub(crate) fn row(out: &mut String, fields: &[String]) {
    for (place, field) in fields.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        if field.contains(['"', ',', '\r', '\n']) {
            out.push('"');
            out.push_str(&field.replace('"', "\"\""));
            out.push('"');
        } else {
            out.push_str(field);
        }
    }
    out.push_str("\r\n");
}
