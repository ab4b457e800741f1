//! Why something failed, as a terminal page.

use isobench_schema::cause::{Cause, Confidence};

use super::Style;
use super::assessment::labelled;
use crate::text::{clean, pad};
use crate::words::Tone;

/// Columns of the labels.
const LABEL: usize = 10;

/// Returns why something failed: the cause, what would mend it, and the lines that show it.
pub fn cause(title: &str, cause: &Cause, style: Style) -> String {
    let mut out = String::new();
    style.heading(&mut out, &clean(title));
    let label = |text: &str| format!("  {} ", pad(text, LABEL));
    let tone = match cause.confidence {
        Confidence::High | Confidence::Medium => Tone::Fault,
        Confidence::Low => Tone::Unsure,
        Confidence::None => Tone::Absent,
    };
    labelled(&mut out, &label("cause"), tone, &clean(&cause.cause), style);
    style.paragraph(&mut out, &label("class"), &kind(cause));
    let kind_of_fix = match cause.fix.recipes.as_slice() {
        [] => cause.fix.kind.to_string(),
        recipes => format!("recipe {}", recipes.iter().map(|id| clean(id)).collect::<Vec<_>>().join(", ")),
    };
    style.paragraph(&mut out, &label("fix"), &format!("{} ({kind_of_fix})", clean(&cause.fix.advice)));
    if cause.transient {
        style.paragraph(&mut out, &label("again"), "the same again may well succeed");
    }
    if let Some(blame) = cause.blame {
        let arms: Vec<String> = cause.arms.iter().map(ToString::to_string).collect();
        let claim = if cause.is_claim() { ", which no log of the baseline says" } else { "" };
        style.paragraph(&mut out, &label("arms"), &format!("{} ({blame}{claim})", arms.join(", ")));
    }
    for line in &cause.evidence {
        let place = format!("{}:{}", clean(&line.file), line.line);
        style.paragraph(&mut out, "    ", &place);
        style.paragraph(&mut out, "      ", &clean(&line.text));
    }
    if !cause.consequences.is_empty() {
        let ids: Vec<String> = cause.consequences.iter().map(|id| clean(id)).collect();
        style.paragraph(&mut out, &label("then"), &ids.join(", "));
    }
    out
}

/// Returns stage, class, signature and how sure it is.
fn kind(cause: &Cause) -> String {
    let signature = cause.signature.as_ref().map(|id| format!(", signature {}", clean(id))).unwrap_or_default();
    format!("{}, stage {}{signature}, confidence {}", clean(&cause.class), cause.stage, cause.confidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_schema::cause::{Blame, CauseLine, CauseStage, Fix, FixKind};
    use isobench_schema::ids::ArmId;

    #[test]
    fn a_cause_says_what_to_do_and_where_it_shows() {
        let found = Cause {
            stage: CauseStage::Import,
            class: "dependency-too-new".into(),
            signature: Some("B1".into()),
            cause: "the installed transformers has a config named `aimv2` of its own".into(),
            evidence: vec![CauseLine {
                file: "server.stderr".into(),
                line: 41,
                offset: 2048,
                text: "ValueError: 'aimv2' is already used".into(),
            }],
            transient: false,
            fix: Fix {
                kind: FixKind::Recipe,
                recipes: vec!["transformers-without-aimv2".into()],
                advice: "install transformers below 4.54".into(),
            },
            confidence: Confidence::High,
            consequences: vec!["E8".into()],
            arms: vec![ArmId::Baseline, ArmId::Human],
            blame: Some(Blame::Shared),
        };
        let expected = "\
task-1
  cause      the installed transformers has a config named `aimv2` of its own
  class      dependency-too-new, stage import, signature B1, confidence high
  fix        install transformers below 4.54 (recipe transformers-without-aimv2)
  arms       baseline, human (shared)
    server.stderr:41
      ValueError: 'aimv2' is already used
  then       E8
";
        assert_eq!(cause("task-1", &found, Style { width: 82, color: false }), expected);
        let claimed = Cause { blame: Some(Blame::Infrastructure), arms: vec!["agent:x".parse().unwrap()], ..found };
        let page = cause("task-1", &claimed, Style { width: 82, color: false });
        assert!(page.contains("agent:x (infrastructure, which no log of the baseline says)"), "{page}");
    }
}
