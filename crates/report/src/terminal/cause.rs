//! Why something failed, as a terminal page.

use isobench_schema::cause::{Blame, Cause, Confidence, Fix, FixKind};

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
    style.paragraph(&mut out, &label("fix"), &fix(&cause.fix));
    if cause.transient {
        style.paragraph(&mut out, &label("again"), "the same again may well succeed");
    }
    if let Some(blame) = cause.blame {
        let arms: Vec<String> = cause.arms.iter().map(ToString::to_string).collect();
        let claim = "its own log blames the machine, and no log of the baseline does";
        let whose = if cause.is_claim() { claim } else { whose(blame) };
        style.paragraph(&mut out, &label("arms"), &format!("{}: {whose}", arms.join(", ")));
    }
    for line in &cause.evidence {
        let place = format!("{}:{}", clean(&line.file), line.line);
        style.paragraph(&mut out, "    ", &place);
        style.paragraph(&mut out, "      ", &clean(&line.text));
    }
    if !cause.consequences.is_empty() {
        let ids: Vec<String> = cause.consequences.iter().map(|id| clean(id)).collect();
        let one = ids.first().map(String::as_str).unwrap_or_default();
        style.paragraph(&mut out, &label("also seen"), &format!("{} (`isobench explain {one}`)", ids.join(", ")));
    }
    out
}

/// Returns what would mend it, and of what kind that is.
fn fix(fix: &Fix) -> String {
    let advice = clean(&fix.advice);
    if !fix.recipes.is_empty() {
        let recipes: Vec<String> = fix.recipes.iter().map(|id| clean(id)).collect();
        return format!("{advice} (recipe {})", recipes.join(", "));
    }
    match fix.kind {
        FixKind::None | FixKind::LookElsewhere => advice,
        FixKind::Recipe
        | FixKind::Option
        | FixKind::Devices
        | FixKind::DatasetEdit
        | FixKind::Build
        | FixKind::Machine
        | FixKind::Retry => format!("{advice} ({})", fix.kind),
    }
}

/// Returns what the arms that it hit say of whose fault it is.
fn whose(blame: Blame) -> &'static str {
    match blame {
        Blame::Shared => "every arm that got as far has it",
        Blame::Arm => "the baseline doesn't have it, so that it is this change's own",
        Blame::Infrastructure => "it speaks against the machine, not against a change",
        Blame::Unclear => "no other arm shows whose it is",
    }
}

/// Returns stage, class, signature and how sure it is.
fn kind(cause: &Cause) -> String {
    let signature = cause.signature.as_ref().map(|id| format!(", signature {}", clean(id))).unwrap_or_default();
    format!("{}, stage {}{signature}, confidence {}", clean(&cause.class), cause.stage, cause.confidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use isobench_schema::cause::{CauseLine, CauseStage};
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
  arms       baseline, human: every arm that got as far has it
    server.stderr:41
      ValueError: 'aimv2' is already used
  also seen  E8 (`isobench explain E8`)
";
        assert_eq!(cause("task-1", &found, Style { width: 82, color: false }), expected);
        let claimed = Cause { blame: Some(Blame::Infrastructure), arms: vec!["agent:x".parse().unwrap()], ..found };
        let page = cause("task-1", &claimed, Style { width: 82, color: false });
        assert!(page.contains("agent:x: its own log blames the machine"), "{page}");
    }
}
