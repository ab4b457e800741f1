//! The whole story of one task of a dataset of commits, in a screen.

mod changed;

use std::fmt::Write as _;

use isobench_schema::assessment::{
    Assessment, Cost, DeviceNeed, Finding, NeededRecipe, RevisionFacts, RungAnswer, RungVerdict,
};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::plan::Plan;

use super::Style;
use crate::funnel::some_of;
use crate::lint::Listed;
use crate::number::{self, counted, duration};
use crate::text::{clean, pad, truncate, wrap};
use crate::view::{DeviationView, deviation_view};
use crate::words::{TaskStandingWord, Tone, rung_tone};

/// How a reason says that its finding was repaired.
const REPAIRED: &str = " (repaired)";

/// The most columns that one side of a deviation takes.
const LONGEST_VALUE: usize = 60;

/// The most columns that the reason of a deviation takes.
const LONGEST_REASON: usize = 160;

/// The most lines that a part of the story takes, and that the longer ones take.
const LINES: usize = 2;
const MORE_LINES: usize = 3;

/// Columns of the labels at the left of the story, and of those of rungs.
const LABEL: usize = 12;
const RUNG_LABEL: usize = 27;

/// Digits of a commit, whole and for people.
const WHOLE_COMMIT: usize = 40;
const SHORT_COMMIT: usize = 12;

/// How many changed files are named.
const NAMED_FILES: usize = 3;

/// Returns the story of one task: what it is, what is run, what is wrong, what it needs, where it comes from, and what it
/// costs. With a plan, also what is run of it.
pub fn assessment(assessment: &Assessment, plan: Option<&Plan>, style: Style) -> String {
    let mut out = String::new();
    head(&mut out, assessment, style);
    findings(&mut out, assessment, style);
    revisions(&mut out, assessment, style);
    command(&mut out, assessment, style);
    repairs(&mut out, assessment, style);
    environments(&mut out, assessment, style);
    needs(&mut out, assessment, style);
    if let Some(plan) = plan {
        super::plan::story(&mut out, plan, &assessment.task, style);
    }
    let whole =
        format!("every sentence whole: isobench plan DATASET --explain {} --json", clean(assessment.task.as_str()));
    style.paragraph(&mut out, "  ", &whole);
    out
}

fn head(out: &mut String, assessment: &Assessment, style: Style) {
    let word = TaskStandingWord::of(assessment.standing);
    out.push_str(&style.bold(&clean(assessment.task.as_str())));
    writeln!(out, "  {}", style.paint(word.tone, &format!("{} {}", word.symbol, word.title)))
        .expect("a String takes every write");
    let subject = assessment.subject.as_ref().or_else(|| Some(&assessment.human.as_ref()?.subject));
    if let Some(subject) = subject {
        style.paragraph(out, "  ", &clean(subject));
    }
    for reason in assessment.reasons.iter().filter(|reason| !is_told(assessment, reason)) {
        style.paragraph(out, "  - ", &clean(reason));
    }
}

/// Returns whether a reason is told by a finding or a recipe, which stand below with what to do.
fn is_told(assessment: &Assessment, reason: &str) -> bool {
    let by_finding = |finding: &Finding| {
        reason.strip_prefix(finding.message.as_str()).is_some_and(|rest| rest.is_empty() || rest == REPAIRED)
    };
    let by_recipe = |recipe: &NeededRecipe| {
        let rest = reason.strip_prefix("recipe ").and_then(|rest| rest.strip_prefix(recipe.id.as_str()));
        rest.and_then(|rest| rest.strip_prefix(": ")) == Some(recipe.reason.as_str())
    };
    let by_repair = |repair: &Deviation| reason == repair.reason;
    assessment.findings.iter().any(by_finding)
        || assessment.recipes.iter().any(by_recipe)
        || assessment.repairs.iter().any(by_repair)
}

fn revisions(out: &mut String, assessment: &Assessment, style: Style) {
    out.push('\n');
    let (baseline, human) = (assessment.baseline.as_ref(), assessment.human.as_ref());
    if baseline.is_none() && human.is_none() {
        style.paragraph(out, "  commits   ", "nothing is known of them");
    }
    for (label, facts) in [("  baseline  ", baseline), ("  human     ", human)] {
        if let Some(facts) = facts {
            style.paragraph(out, label, &revision(facts));
        }
    }
    if let Some(files) = human.and_then(|facts| facts.files_changed.as_ref()) {
        let names: Vec<String> = files.iter().map(|file| clean(file)).collect();
        let number = counted(u64::try_from(names.len()).unwrap_or(u64::MAX), "file");
        style.paragraph(out, "  changes   ", &format!("{number}: {}", some_of(&names, NAMED_FILES)));
    }
    let keys =
        (baseline.and_then(|facts| facts.native_key.as_ref()), human.and_then(|facts| facts.native_key.as_ref()));
    if let (Some(baseline), Some(human)) = keys {
        let text = if baseline == human {
            format!("one build for both ({})", clean(human))
        } else {
            format!("two builds: baseline {}, human {}", clean(baseline), clean(human))
        };
        style.paragraph(out, "  native    ", &text);
    }
}

fn revision(facts: &RevisionFacts) -> String {
    let committed = facts.committed.as_str();
    let date = committed.split('T').next().unwrap_or(committed);
    let mut parts = vec![format!("{} of {date}", facts.commit.short())];
    parts.extend(facts.after_release.as_ref().map(|release| format!("after {}", clean(release))));
    parts.extend(facts.first_release.as_ref().map(|release| format!("first in {}", clean(release))));
    parts.join(", ")
}

fn command(out: &mut String, assessment: &Assessment, style: Style) {
    out.push('\n');
    let Some(asked) = &assessment.asked else {
        style.paragraph(out, "  asked     ", "nothing: the dataset gives no command");
        return;
    };
    let asked = clean(asked);
    let command =
        assessment.command.as_ref().filter(|command| !command.client.is_empty() || !command.server.is_empty());
    let Some(command) = command else {
        style.paragraph(out, "  asked     ", &asked);
        style.paragraph(out, "  client    ", "nothing is run of it");
        return;
    };
    let variables =
        command.variables.iter().map(|(name, value)| format!("{}={}", clean(name), changed::quoted(&clean(value))));
    let client: Vec<String> =
        variables.chain(command.client.iter().map(|word| changed::quoted(&clean(word)))).collect();
    let server: Vec<String> = command.server.iter().map(|word| changed::quoted(&clean(word))).collect();
    let marked = changed::mark(&asked, [&client, &server]);
    style.paragraph(out, "  asked     ", &marked.asked);
    style.paragraph(out, "  client    ", &marked.client);
    if !server.is_empty() {
        style.paragraph(out, "  server    ", &marked.server);
    }
}

/// Appends what was changed; what a recipe changes stands with the environments.
fn repairs(out: &mut String, assessment: &Assessment, style: Style) {
    let of_recipe = |repair: &Deviation| match repair.kind {
        DeviationKind::RecipeApplied => !assessment.recipes.is_empty(),
        DeviationKind::MinWindow
        | DeviationKind::Override
        | DeviationKind::ArmsChosen
        | DeviationKind::PackageOverride
        | DeviationKind::ReleaseOverlay
        | DeviationKind::BinaryPatch
        | DeviationKind::NetworkAllowed
        | DeviationKind::FewerBlocks
        | DeviationKind::OutputUnchecked
        | DeviationKind::OptionTranslated
        | DeviationKind::OptionAdded
        | DeviationKind::OptionSuperseded
        | DeviationKind::CommandMended
        | DeviationKind::OfflineThroughServer
        | DeviationKind::WorkloadChosen
        | DeviationKind::ProxyModel => false,
    };
    for repair in assessment.repairs.iter().filter(|repair| !of_recipe(repair)) {
        let is_pinned = repair.kind == DeviationKind::PackageOverride;
        let text = if is_pinned { packages(repair, style) } else { deviation(repair) };
        style.paragraph(out, "  †         ", &text);
    }
}

fn deviation(repair: &Deviation) -> String {
    let DeviationView { kind, subject, asked, run, reason } = deviation_view(repair);
    let (asked, run) = (truncate(&asked, LONGEST_VALUE), truncate(&run, LONGEST_VALUE));
    format!("{kind}: {subject} asked {asked}, run {run} ({})", truncate(&reason, LONGEST_REASON))
}

/// Returns packages that are pinned or replaced, as many as fit in a few lines, and the first part of the reason.
fn packages(repair: &Deviation, style: Style) -> String {
    let DeviationView { kind, run, reason, .. } = deviation_view(repair);
    let names: Vec<String> = run.split(", ").map(str::to_owned).collect();
    let number = counted(u64::try_from(names.len()).unwrap_or(u64::MAX), "package");
    let reason = reason.split("; ").next().unwrap_or(&reason);
    let text =
        |most: usize| format!("{kind}: {number} ({}): {}", truncate(reason, LONGEST_REASON), some_of(&names, most));
    let fits = |most: &usize| wrap(&text(*most), columns(LABEL, style)).len() <= MORE_LINES;
    let most = (1..=names.len()).rev().find(fits).unwrap_or(1);
    brief(&text(most), LABEL, MORE_LINES, style)
}

fn columns(label: usize, style: Style) -> usize {
    style.width.saturating_sub(label).max(LABEL)
}

/// Returns a text cut to some lines beside a label: the story is to fit a screen, and its JSON has all of it.
fn brief(text: &str, label: usize, lines: usize, style: Style) -> String {
    let columns = columns(label, style);
    let all = wrap(text, columns);
    match all.get(..lines) {
        Some([first @ .., last]) if all.len() > lines => {
            // Nothing is broken anew by the mark at the end.
            let last = truncate(last, columns.saturating_sub(1));
            format!("{} {}…", first.join(" "), last.trim_end_matches('…'))
        }
        Some(_) | None => text.to_owned(),
    }
}

fn findings(out: &mut String, assessment: &Assessment, style: Style) {
    let mut findings: Vec<&Finding> = assessment.findings.iter().collect();
    findings.sort_by_key(|finding| (finding.repaired, finding.severity));
    super::lint::findings(out, &findings.into_iter().map(Listed::OfRule).collect::<Vec<_>>(), style);
}

fn environments(out: &mut String, assessment: &Assessment, style: Style) {
    if assessment.ladder.is_empty() && assessment.recipes.is_empty() {
        return;
    }
    out.push('\n');
    // Arms that are answered alike are told once.
    let mut alike: Vec<(&Vec<RungAnswer>, Vec<String>)> = Vec::new();
    for (arm, answers) in assessment.ladder.iter() {
        match alike.iter_mut().find(|(known, _)| *known == answers) {
            Some((_, arms)) => arms.push(arm.to_string()),
            None => alike.push((answers, vec![arm.to_string()])),
        }
    }
    for (answers, arms) in alike {
        style.paragraph(out, "  ", &format!("environment of {}", arms.join(" and ")));
        let asked: Vec<RungAnswer> =
            answers.iter().filter(|answer| answer.answer != RungVerdict::NotNeeded).cloned().collect();
        for same in asked.chunk_by(|a, b| a.answer == b.answer && a.artifact == b.artifact && a.reason == b.reason) {
            rungs(out, same, style);
        }
    }
    for recipe in assessment.recipes.iter() {
        let text = format!(
            "{} ({}): {}; {}",
            clean(&recipe.action),
            clean(&recipe.id),
            clean(&recipe.reason),
            clean(&recipe.effect)
        );
        style.paragraph(out, "  recipe    ", &brief(&text, LABEL, LINES, style));
    }
}

/// Appends rungs that are answered alike.
fn rungs(out: &mut String, same: &[RungAnswer], style: Style) {
    let Some(answer) = same.first() else { return };
    let word = match answer.answer {
        RungVerdict::Taken => "taken",
        RungVerdict::Refused => "refused",
        RungVerdict::NotNeeded => "not needed",
    };
    let names: Vec<&str> = same.iter().map(|answer| answer.rung.as_str()).collect();
    let mut text =
        answer.artifact.as_ref().map(|artifact| format!("{}: ", short_artifact(artifact))).unwrap_or_default();
    text.push_str(&clean(&answer.reason));
    let text = brief(&text, RUNG_LABEL, LINES, style);
    if let [_] = same {
        let label = format!("    {} {} ", pad(word, 10), pad(names.first().unwrap_or(&""), 11));
        labelled(out, &label, rung_tone(answer.answer), &text, style);
    } else {
        let label = format!("    {} ", pad(word, 10));
        labelled(out, &label, rung_tone(answer.answer), &format!("{}: {text}", names.join(", ")), style);
    }
}

/// Returns an artifact's own name: the last part of its address, with a commit's first digits.
fn short_artifact(artifact: &str) -> String {
    let artifact = clean(artifact);
    let name = artifact.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(&artifact);
    let short = |part: &str| match part.get(..SHORT_COMMIT) {
        Some(start) if part.len() == WHOLE_COMMIT && part.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            start.to_owned()
        }
        Some(_) | None => part.to_owned(),
    };
    name.split(':').map(short).collect::<Vec<_>>().join(":")
}

/// Appends a paragraph whose label is coloured.
pub(super) fn labelled(out: &mut String, label: &str, tone: Tone, text: &str, style: Style) {
    let start = out.len();
    style.paragraph(out, label, text);
    if style.color && out.get(start..).is_some_and(|added| added.starts_with(label)) {
        let painted = style.paint(tone, label.trim_end());
        out.replace_range(start..start + label.trim_end().len(), &painted);
    }
}

fn needs(out: &mut String, assessment: &Assessment, style: Style) {
    if assessment.need.is_none() && assessment.cost.is_none() {
        return;
    }
    out.push('\n');
    if let Some(need) = &assessment.need {
        device_need(out, need, style);
    }
    if let Some(cost) = &assessment.cost {
        price(out, cost, style);
    }
}

fn device_need(out: &mut String, need: &DeviceNeed, style: Style) {
    let memory = format!("{} GB", number::gigabytes(need.device_gb));
    let mut text = match need.devices {
        Some(devices) => format!("{} with at least {memory}", counted(devices, "device")),
        None => format!("no number of devices is enough: each would need {memory}"),
    };
    if let Some(asked) = need.asked_tensor_parallel {
        write!(text, ", the command asks for {asked}").expect("a String takes every write");
    }
    write!(text, "; {}", clean(&need.model)).expect("a String takes every write");
    let because: Vec<String> = need.because.iter().map(|text| clean(text)).collect();
    style.paragraph(out, "  devices   ", &text);
    // The first one says what the weights take, and the last one what came out.
    match because.as_slice() {
        [] => {}
        [only] => style.paragraph(out, "            ", &brief(only, LABEL, MORE_LINES, style)),
        [weights, .., came_out] => {
            let text = format!("{weights}; {came_out}");
            style.paragraph(out, "            ", &brief(&text, LABEL, MORE_LINES, style));
        }
    }
}

fn price(out: &mut String, cost: &Cost, style: Style) {
    let usd =
        |price: Option<f64>| price.map(|price| format!(" (${})", number::group_decimal(price))).unwrap_or_default();
    let text = format!(
        "{}{} of preparing, {} on {}{}",
        duration(cost.prepare_s),
        usd(cost.prepare_usd),
        duration(cost.device_s),
        counted(cost.devices, "device"),
        usd(cost.device_usd)
    );
    style.paragraph(out, "  cost      ", &text);
    let assumptions: Vec<String> = cost.assumptions.iter().map(|text| clean(text)).collect();
    style.paragraph(out, "  assumed   ", &brief(&assumptions.join("; "), LABEL, MORE_LINES, style));
}
