//! Contrasts as comma-separated values (RFC 4180), one line each, with numbers at full precision.

use isobench_schema::verdict::Judgement;

use crate::words::confirmed_by;

/// The names of the columns, which are the JSON names.
const COLUMNS: [&str; 16] = [
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
    "confirmed",
];

/// Returns every contrast of the judgement with a header line. What wasn't measured is an empty field.
pub fn contrasts(judgement: &Judgement) -> String {
    let mut out = String::new();
    row(&mut out, &COLUMNS.map(str::to_owned));
    let number = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
    for task in &judgement.tasks {
        for contrast in &task.contrasts {
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
