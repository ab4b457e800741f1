//! The whole story of one task of a dataset of commits, in a screen.

mod changed;

use std::fmt::Write as _;

use isobench_schema::assessment::{
    Assessment, Cost, DeviceNeed, Finding, NeededRecipe, RevisionFacts, RungAnswer, RungVerdict,
};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::plan::Plan;

use super::Style;
use crate::funnel::{alike, some_of};
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

/// How many lines a story takes, so that it fits a screen.
const STORY_LINES: usize = 55;

/// The most lines that the devices take.
const DEVICE_LINES: usize = 4;

/// How much is said of what may be cut.
#[derive(Clone, Copy)]
enum Detail {
    /// Two lines of each part.
    Full,
    /// One line of each part, since a story with two is too long.
    Tight,
}

impl Detail {
    /// The most lines that a part takes.
    fn lines(self) -> usize {
        match self {
            Self::Full => 2,
            Self::Tight => 1,
        }
    }

    /// The most lines that the pinned packages take.
    fn package_lines(self) -> usize {
        self.lines() + 1
    }
}

/// Columns of the labels at the left of the story, and of those of rungs.
const LABEL: usize = 12;
const RUNG_LABEL: usize = 27;

/// Digits of a commit, whole and for people.
const WHOLE_COMMIT: usize = 40;
const SHORT_COMMIT: usize = 12;

/// How many changed files are named where a line holds them.
const NAMED_FILES: usize = 3;

/// Returns the story of one task: what it is, what is run, what is wrong, what it needs, where it comes from, and what it
/// costs. With a plan, also what is run of it.
pub fn assessment(assessment: &Assessment, plan: Option<&Plan>, style: Style) -> String {
    let full = story(assessment, plan, Detail::Full, style);
    if full.lines().count() <= STORY_LINES { full } else { story(assessment, plan, Detail::Tight, style) }
}

fn story(assessment: &Assessment, plan: Option<&Plan>, detail: Detail, style: Style) -> String {
    let mut out = String::new();
    head(&mut out, assessment, style);
    findings(&mut out, assessment, style);
    revisions(&mut out, assessment, style);
    command(&mut out, assessment, style);
    repairs(&mut out, assessment, detail, style);
    environments(&mut out, assessment, detail, style);
    needs(&mut out, assessment, detail, style);
    if let Some(plan) = plan {
        super::plan::story(&mut out, plan, &assessment.task, style);
    }
    let name = clean(assessment.task.as_str());
    style.paragraph(&mut out, "  ", &format!("every sentence whole: isobench plan DATASET --explain {name} --json"));
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
        let text = |most: usize| format!("{number}: {}", some_of(&names, most));
        let fits = |most: &usize| wrap(&text(*most), columns(LABEL, style)).len() <= 1;
        let most = (1..=NAMED_FILES).rev().find(fits).unwrap_or(1);
        style.paragraph(out, "  changes   ", &text(most));
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
fn repairs(out: &mut String, assessment: &Assessment, detail: Detail, style: Style) {
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
        | DeviationKind::SelfReported
        | DeviationKind::WorkloadChosen
        | DeviationKind::ProxyModel => false,
    };
    let repairs: Vec<&Deviation> = assessment.repairs.iter().filter(|repair| !of_recipe(repair)).collect();
    for same in repairs.chunk_by(|a, b| a.kind == b.kind && a.reason == b.reason) {
        let text = match same {
            [only] if only.kind == DeviationKind::PackageOverride => packages(only, detail, style),
            _ => deviations(same),
        };
        style.paragraph(out, "  †         ", &text);
    }
}

/// Returns deviations of one kind and reason in a sentence.
fn deviations(same: &[&Deviation]) -> String {
    let Some(first) = same.first().map(|first| deviation_view(first)) else { return String::new() };
    let changed = same.iter().map(|repair| {
        let DeviationView { subject, asked, run, .. } = deviation_view(repair);
        let (asked, run) = (truncate(&asked, LONGEST_VALUE), truncate(&run, LONGEST_VALUE));
        if repair.kind == DeviationKind::OptionAdded && asked == "nothing" {
            format!("{subject} is {run}")
        } else {
            format!("{subject} asked {asked}, run {run}")
        }
    });
    let changed = changed.collect::<Vec<_>>().join("; ");
    format!("{}: {changed} ({})", first.kind, truncate(&first.reason, LONGEST_REASON))
}

/// Returns packages that are pinned or replaced, as many as fit in a few lines, and the first part of the reason.
fn packages(repair: &Deviation, detail: Detail, style: Style) -> String {
    let DeviationView { kind, run, reason, .. } = deviation_view(repair);
    let names: Vec<String> = run.split(", ").map(str::to_owned).collect();
    let number = counted(u64::try_from(names.len()).unwrap_or(u64::MAX), "package");
    let reason = reason.split("; ").next().unwrap_or(&reason);
    let text =
        |most: usize| format!("{kind}: {number} ({}): {}", truncate(reason, LONGEST_REASON), some_of(&names, most));
    let fits = |most: &usize| wrap(&text(*most), columns(LABEL, style)).len() <= detail.package_lines();
    let most = (1..=names.len()).rev().find(fits).unwrap_or(1);
    brief(&text(most), LABEL, detail.package_lines(), style)
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
            let mut kept = first.join(" ");
            if !kept.is_empty() {
                kept.push(' ');
            }
            format!("{kept}{}…", last.trim_end_matches('…'))
        }
        Some(_) | None => text.to_owned(),
    }
}

fn findings(out: &mut String, assessment: &Assessment, style: Style) {
    let mut findings: Vec<&Finding> = assessment.findings.iter().collect();
    findings.sort_by_key(|finding| (finding.repaired, finding.severity));
    let (repaired, open): (Vec<&Finding>, Vec<&Finding>) = findings.into_iter().partition(|finding| finding.repaired);
    super::lint::findings(out, &open.into_iter().map(Listed::OfRule).collect::<Vec<_>>(), style);
    // What is wrong no more is told in a few words; what was done stands below.
    let told: Vec<String> =
        repaired.iter().map(|finding| format!("{}: {}", clean(&finding.rule), clean(&finding.message))).collect();
    style.paragraph(out, "  repaired  ", &told.join("; "));
}

fn environments(out: &mut String, assessment: &Assessment, detail: Detail, style: Style) {
    if assessment.ladder.is_empty() && assessment.recipes.is_empty() {
        return;
    }
    out.push('\n');
    let arms: Vec<String> = assessment.ladder.keys().map(ToString::to_string).collect();
    if !arms.is_empty() {
        style.paragraph(out, "  ", &format!("environment of {}", arms.join(" and ")));
    }
    let answers = answers(assessment);
    for same in answers.chunk_by(Answer::says_the_same) {
        rungs(out, same, (arms.len(), detail), style);
    }
    for recipe in assessment.recipes.iter() {
        let text = format!(
            "{} ({}): {}; {}",
            clean(&recipe.action),
            clean(&recipe.id),
            clean(&recipe.reason),
            clean(&recipe.effect)
        );
        style.paragraph(out, "  recipe    ", &brief(&text, LABEL, detail.lines(), style));
    }
}

/// What a rung answers to some arms.
struct Answer {
    answer: RungAnswer,
    arms: Vec<String>,
}

impl Answer {
    fn says_the_same(&self, other: &Self) -> bool {
        let (one, two) = (&self.answer, &other.answer);
        self.arms == other.arms && one.answer == two.answer && one.artifact == two.artifact && one.reason == two.reason
    }

    /// Returns the answer to one more arm, with `…` for objects that differ, such as a date; `None` if it isn't the same.
    fn joined(&self, other: &RungAnswer) -> Option<RungAnswer> {
        let one = &self.answer;
        let is_alike = one.rung == other.rung && one.answer == other.answer && one.artifact == other.artifact;
        let reasons = [&one.reason, &other.reason].map(|reason| (String::new(), reason.as_str()));
        match alike(reasons.into_iter()).as_slice() {
            [group] if is_alike => Some(RungAnswer { reason: group.reason.clone(), ..one.clone() }),
            _ => None,
        }
    }
}

/// Returns what each rung answers, from the first rung on; arms that are answered alike are told once.
fn answers(assessment: &Assessment) -> Vec<Answer> {
    let mut found: Vec<Answer> = Vec::new();
    for (arm, answers) in assessment.ladder.iter() {
        for answer in answers.iter().filter(|answer| answer.answer != RungVerdict::NotNeeded) {
            let known = found.iter_mut().find_map(|known| known.joined(answer).map(|joined| (known, joined)));
            match known {
                Some((known, joined)) => {
                    known.answer = joined;
                    known.arms.push(arm.to_string());
                }
                None => found.push(Answer { answer: answer.clone(), arms: vec![arm.to_string()] }),
            }
        }
    }
    found.sort_by_key(|answer| answer.answer.rung);
    found
}

/// Appends rungs that are answered alike, with the arms where it isn't all of them.
fn rungs(out: &mut String, same: &[Answer], (arms, detail): (usize, Detail), style: Style) {
    let Some(Answer { answer, arms: of }) = same.first() else { return };
    let word = match answer.answer {
        RungVerdict::Taken => "taken",
        RungVerdict::Refused => "refused",
        RungVerdict::NotNeeded => "not needed",
    };
    let names: Vec<&str> = same.iter().map(|same| same.answer.rung.as_str()).collect();
    let mut text = if of.len() < arms { format!("{}: ", of.join(", ")) } else { String::new() };
    text.extend(answer.artifact.as_ref().map(|artifact| format!("{}: ", short_artifact(artifact))));
    text.push_str(&clean(&answer.reason));
    let text = brief(&text, RUNG_LABEL, detail.lines(), style);
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

fn needs(out: &mut String, assessment: &Assessment, detail: Detail, style: Style) {
    if assessment.need.is_none() && assessment.cost.is_none() {
        return;
    }
    out.push('\n');
    if let Some(need) = &assessment.need {
        device_need(out, need, style);
    }
    if let Some(cost) = &assessment.cost {
        price(out, cost, detail, style);
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
    // The first one says what the weights take, and the last one what came out.
    let because: Vec<String> = need.because.iter().map(|text| clean(text)).collect();
    let told = match because.as_slice() {
        [] => String::new(),
        [only] => format!(": {only}"),
        [weights, .., came_out] => format!(": {weights}; {came_out}"),
    };
    style.paragraph(out, "  devices   ", &brief(&format!("{text}{told}"), LABEL, DEVICE_LINES, style));
}

fn price(out: &mut String, cost: &Cost, detail: Detail, style: Style) {
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
    style.paragraph(out, "  assumed   ", &brief(&assumptions.join("; "), LABEL, detail.lines(), style));
}
