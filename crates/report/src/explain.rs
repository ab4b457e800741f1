//! Judgements in plain English: one sentence for each contrast, with what it rests on and what it means, and one for each
//! headline of the suite.

use isobench_schema::confirmation::Confirmation;
use isobench_schema::ids::ArmId;
use isobench_schema::suite::{Headline, MeanOverTasks, OverTasks};
use isobench_schema::verdict::{Contrast, Judgement, LookDecision, LookResult, TaskJudgement, Verdict};

use crate::number::{self, counted};
use crate::terminal::Style;
use crate::text::clean;
use crate::words::confirmed_by;

/// A sentence about one contrast of a task, or of all tasks together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    /// The task; absent if it is about all of them.
    pub task: Option<String>,
    /// The arm that is asked about.
    pub of: String,
    /// The arm that it is compared with.
    pub against: String,
    /// The sentence.
    pub text: String,
}

/// Returns a sentence for each contrast of each task, and for each headline of the suite.
pub fn judgement(judgement: &Judgement) -> Vec<Explanation> {
    let of_task = |task: &TaskJudgement| -> Vec<Explanation> {
        let one = |contrast: &Contrast| Explanation {
            task: Some(task.id.to_string()),
            of: contrast.of.to_string(),
            against: contrast.against.to_string(),
            text: contrast_sentence(task, contrast),
        };
        task.contrasts.iter().map(one).collect()
    };
    let of_suite = |headline: &Headline| Explanation {
        task: None,
        of: headline.of.to_string(),
        against: headline.against.to_string(),
        text: headline_sentence(headline),
    };
    let tasks = judgement.tasks.iter().flat_map(of_task);
    tasks.chain(judgement.suite.iter().flat_map(|suite| &suite.headlines).map(of_suite)).collect()
}

/// Returns the sentences as text for a terminal, under the name of each task.
pub fn text(explanations: &[Explanation], style: Style) -> String {
    let mut out = String::new();
    let mut before = None;
    for item in explanations {
        let name = item.task.as_deref().unwrap_or("all tasks together");
        if before != Some(name) {
            if before.is_some() {
                out.push('\n');
            }
            style.heading(&mut out, name);
            before = Some(name);
        }
        style.paragraph(&mut out, "  - ", &item.text);
    }
    if explanations.is_empty() {
        out.push_str("nothing was compared\n");
    }
    out
}

/// Returns the sentences as JSON.
pub fn json(explanations: &[Explanation]) -> serde_json::Value {
    let one = |item: &Explanation| serde_json::json!({ "task": item.task, "of": item.of, "against": item.against, "text": item.text });
    serde_json::json!({ "explanations": explanations.iter().map(one).collect::<Vec<_>>() })
}

fn arm(arm: &ArmId) -> String {
    match arm {
        ArmId::Baseline => "the baseline".to_owned(),
        ArmId::Human => "the human commit".to_owned(),
        ArmId::Agent(name) => format!("agent `{name}`"),
    }
}

/// Returns what a contrast says and why, in one sentence.
fn contrast_sentence(task: &TaskJudgement, contrast: &Contrast) -> String {
    let reason = || clean(&contrast.reason);
    let margin = number::percent(task.margin);
    let found = match judged_at(contrast) {
        Some(look) => numbers(contrast, look),
        None if contrast.p.is_some() => plain_numbers(contrast),
        None => reason(),
    };
    let meaning = match contrast.verdict {
        Verdict::Better => format!("{found}: a real gain, at least as large as the margin of {margin}"),
        Verdict::Worse => format!("{found}: a real loss, at least as large as the margin of {margin}"),
        Verdict::Trivial => format!(
            "{found}: a real difference, but one that is shown to be smaller than the margin of {margin}, so that it counts \
             as a tie"
        ),
        Verdict::Equivalent => {
            format!("{found}: a difference as large as the margin of {margin} is ruled out, so that it is a tie")
        }
        Verdict::Inconclusive => undecided(contrast, &found, &margin),
        Verdict::NothingToBeat => {
            format!("{}, so that the task can't rank agents and is kept out of win rates", reason())
        }
        Verdict::AgentFailed => format!("{}, which is a valid outcome and counts as not succeeding", reason()),
        Verdict::Invalid => match &contrast.charged_to {
            Some(charged @ ArmId::Agent(_)) => {
                format!("{}, which is charged to {} and counts as not succeeding", reason(), arm(charged))
            }
            Some(charged) => {
                format!("{}, which is charged to {}, so that nothing is said of the other arm", reason(), arm(charged))
            }
            None => format!("{}, for which no arm answers, so that nothing is decided", reason()),
        },
        Verdict::NotMeasured => format!("{}, so that there is nothing to compare with", reason()),
        Verdict::NotRun => format!("{}, so that there is nothing to compare", reason()),
    };
    let guard = if contrast.verdict == Verdict::Better || contrast.verdict == Verdict::Worse {
        proven(contrast)
    } else {
        String::new()
    };
    let numbers = matches!(
        contrast.verdict,
        Verdict::Better | Verdict::Worse | Verdict::Trivial | Verdict::Equivalent | Verdict::Inconclusive
    ) && (judged_at(contrast).is_some() || contrast.p.is_some());
    // Numbers name the arms that they are of; a reason may be the same for several contrasts.
    let arms =
        if numbers { String::new() } else { format!("{} against {}: ", arm(&contrast.of), arm(&contrast.against)) };
    let word = |confirmation: &&Confirmation| [&contrast.of, &contrast.against].contains(&&confirmation.arm);
    let words: Vec<String> = task
        .confirmations
        .iter()
        .filter(word)
        .map(|confirmation| {
            format!("; {} counts by a person's word only: {}", arm(&confirmation.arm), confirmed_by(confirmation))
        })
        .collect();
    format!("`{}`: {arms}{meaning}{guard}{}.", contrast.verdict, words.concat())
}

/// Returns the look that a contrast's numbers are of, if it has any.
fn judged_at(contrast: &Contrast) -> Option<&LookResult> {
    let deciding = contrast.looks.iter().find(|look| look.decision.verdict().is_some());
    deciding.or(contrast.looks.last()).filter(|look| look.p.is_some())
}

fn ends(low: Option<f64>, high: Option<f64>) -> String {
    let shown: Vec<f64> = low.into_iter().chain(high).map(f64::exp).collect();
    let decimals = number::speedup_decimals(&shown);
    shown.iter().map(|end| number::speedup(*end, decimals)).collect::<Vec<_>>().join(" to ")
}

fn unknown() -> String {
    "?".to_owned()
}

/// Returns the numbers of a judgement from before looks were recorded.
fn plain_numbers(contrast: &Contrast) -> String {
    format!(
        "{} is {} as fast as {} (interval {}, p {}, {})",
        arm(&contrast.of),
        contrast.estimate.map_or_else(unknown, |estimate| speedup(estimate.exp())),
        arm(&contrast.against),
        ends(contrast.low, contrast.high),
        contrast.p.map_or_else(unknown, number::p_value),
        counted(contrast.blocks, "block")
    )
}

fn numbers(contrast: &Contrast, look: &LookResult) -> String {
    let speedup = look.estimate.map_or_else(unknown, |estimate| speedup(estimate.exp()));
    let at = format!("look {} after {}", look.look.saturating_add(1), counted(look.blocks, "block"));
    let (of, against) = (arm(&contrast.of), arm(&contrast.against));
    match look.decision {
        LookDecision::Equivalent => format!(
            "{of} is {speedup} as fast as {against} ({} interval {} for equivalence, at {at})",
            number::percent(1.0 - 2.0 * look.equivalence_level),
            ends(look.equivalence_low, look.equivalence_high)
        ),
        LookDecision::Better
        | LookDecision::Worse
        | LookDecision::Trivial
        | LookDecision::Drift
        | LookDecision::Undecided
        | LookDecision::Hopeless
        | LookDecision::TooFew
        | LookDecision::Settled => format!(
            "{of} is {speedup} as fast as {against} ({} interval {}, p {}, to be below {}, at {at})",
            number::percent(1.0 - look.level),
            ends(look.low, look.high),
            look.p.map_or_else(unknown, number::p_value),
            number::level(look.level)
        ),
    }
}

fn undecided(contrast: &Contrast, found: &str, margin: &str) -> String {
    let decision = judged_at(contrast).map(|look| look.decision);
    if decision == Some(LookDecision::Drift) {
        return format!(
            "{found}, but each difference follows that of the block before, so that the test doesn't hold and nothing is \
             decided"
        );
    }
    if decision.is_none() && contrast.p.is_none() {
        return format!("{found}, so that nothing is decided");
    }
    let mde = contrast.mde.map_or_else(String::new, |mde| {
        format!("; so many blocks find a difference of {} with a power of 80 %", number::percent(mde.exp_m1()))
    });
    let needed = contrast
        .blocks_needed
        .map_or_else(String::new, |blocks| format!(", and about {} would decide", counted(blocks, "block")));
    format!(
        "{found}: neither a difference nor a tie within the margin of {margin} is shown, which is not the same as no \
         difference{mde}{needed}"
    )
}

/// Returns the end of the interval that is nearer to nothing, if it lies on the estimate's side.
fn proven(contrast: &Contrast) -> String {
    let end = match contrast.verdict {
        Verdict::Better => contrast.low.filter(|low| *low > 0.0),
        Verdict::Worse => contrast.high.filter(|high| *high < 0.0),
        Verdict::Trivial
        | Verdict::Equivalent
        | Verdict::Inconclusive
        | Verdict::NothingToBeat
        | Verdict::AgentFailed
        | Verdict::Invalid
        | Verdict::NotMeasured
        | Verdict::NotRun => None,
    };
    end.map_or_else(String::new, |end| format!(", of which {} is proven", number::signed_percent(end)))
}

/// Returns what a headline says, in one sentence.
pub(crate) fn headline_sentence(headline: &Headline) -> String {
    let (of, against) = (arm(&headline.of), arm(&headline.against));
    let proven = if headline.proven_tasks == 0 {
        "; in no task is a gain proven".to_owned()
    } else {
        format!(
            "; the gain is proven in {}, and what is proven comes to {} in the mean over all",
            counted(headline.proven_tasks, "task"),
            speedup(headline.proven.exp())
        )
    };
    let failures = headline.with_failures.as_ref().map_or_else(String::new, |mean| {
        let interval = interval_text(mean).map_or_else(String::new, |interval| format!(" ({interval})"));
        let tasks = counted(mean.tasks, "task");
        format!("; with failures counted as no gain it is {}{interval} over {tasks}", speedup(mean.speedup))
    });
    let mean = &headline.measured;
    let method = match mean.method {
        OverTasks::ClusterBootstrap => "by bootstrap over tasks",
        OverTasks::StudentT => "by Student's t over tasks",
    };
    let interval =
        interval_text(mean).map_or_else(String::new, |interval| format!(" (95 % interval {interval}, {method})"));
    let sentence = format!(
        "{of} is {} as fast as {against} in the geometric mean over {}{interval}{failures}{proven}.",
        speedup(mean.speedup),
        counted(mean.tasks, "task")
    );
    capitalised(&sentence)
}

/// Returns a sentence with a capital at its beginning.
fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

fn speedup(value: f64) -> String {
    number::speedup(value, number::speedup_decimals(&[value]))
}

/// Returns the interval of a mean as speed-ups.
pub(crate) fn interval_text(mean: &MeanOverTasks) -> Option<String> {
    let (low, high) = mean.low.zip(mean.high)?;
    let ends = [low.exp(), high.exp()];
    let decimals = number::speedup_decimals(&ends);
    Some(ends.map(|end| number::speedup(end, decimals)).join(" to "))
}
