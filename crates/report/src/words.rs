//! The words, symbols and tones of verdicts and standings, the same in every format.

pub(crate) mod check;
pub(crate) mod coverage;

pub use check::{confirmed_by, key_difference};

use isobench_schema::assessment::{self, RungVerdict, Severity};
use isobench_schema::measurement::Direction;
use isobench_schema::verdict::{Standing, Verdict};

/// How something is coloured. Colour never carries meaning alone: a symbol and a word stand beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// A gain.
    Good,
    /// A loss.
    Bad,
    /// A tie.
    Neutral,
    /// Undecided.
    Unsure,
    /// An arm at fault.
    Fault,
    /// Nothing to say.
    Absent,
}

impl Tone {
    /// Returns the class name in the HTML page.
    pub fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Neutral => "neutral",
            Self::Unsure => "unsure",
            Self::Fault => "fault",
            Self::Absent => "absent",
        }
    }

    /// Returns the terminal's colour code.
    pub(crate) fn ansi(self) -> &'static str {
        match self {
            Self::Good => "32",
            Self::Bad => "31",
            Self::Neutral => "36",
            Self::Unsure => "33",
            Self::Fault => "35",
            Self::Absent => "2",
        }
    }
}

/// A verdict with its short symbol and its tone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerdictWord {
    /// The machine spelling.
    pub word: &'static str,
    /// One character.
    pub symbol: &'static str,
    /// The colour.
    pub tone: Tone,
}

impl VerdictWord {
    /// Returns the words for a verdict.
    pub fn of(verdict: Verdict) -> Self {
        let (symbol, tone) = match verdict {
            Verdict::Better => ("▲", Tone::Good),
            Verdict::Worse => ("▼", Tone::Bad),
            Verdict::Trivial => ("≈", Tone::Neutral),
            Verdict::Equivalent => ("=", Tone::Neutral),
            Verdict::Inconclusive => ("?", Tone::Unsure),
            Verdict::NothingToBeat => ("∅", Tone::Absent),
            Verdict::AgentFailed => ("✗", Tone::Fault),
            Verdict::Invalid => ("!", Tone::Fault),
            Verdict::NotMeasured => ("–", Tone::Absent),
            Verdict::NotRun => ("·", Tone::Absent),
        };
        Self { word: verdict.as_str(), symbol, tone }
    }
}

impl std::fmt::Display for VerdictWord {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.symbol, self.word)
    }
}

/// A task's standing in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StandingWord {
    /// The machine spelling.
    pub word: &'static str,
    /// What it means, in one clause.
    pub meaning: &'static str,
    /// The colour.
    pub tone: Tone,
}

impl StandingWord {
    /// Returns the words for a standing.
    pub fn of(standing: Standing) -> Self {
        let (meaning, tone) = match standing {
            Standing::Rankable => ("the human commit is better, so agents can be measured against it", Tone::Good),
            Standing::HumanGainUnproven => {
                ("the human commit's gain isn't proven, so the task can't rank agents yet", Tone::Unsure)
            }
            Standing::NothingToBeat => ("the human commit gained nothing, so the task can't rank agents", Tone::Absent),
            Standing::NotMeasured => ("the baseline or the human arm couldn't be measured", Tone::Absent),
            Standing::NotAsked => ("it was run without a baseline or without a human arm", Tone::Absent),
        };
        Self { word: standing.as_str(), meaning, tone }
    }
}

/// How far a task comes before a device is used, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskStandingWord {
    /// The standing.
    pub standing: assessment::Standing,
    /// The machine spelling.
    pub word: &'static str,
    /// The words for people.
    pub title: &'static str,
    /// One character.
    pub symbol: &'static str,
    /// The colour.
    pub tone: Tone,
}

impl TaskStandingWord {
    /// Returns the words for a standing.
    pub fn of(standing: assessment::Standing) -> Self {
        use assessment::Standing as S;
        let (title, symbol, tone) = match standing {
            S::AsIs => ("runnable as is", "✓", Tone::Good),
            S::Repaired => ("runnable with repairs", "~", Tone::Neutral),
            S::MoreDevices => ("needs more devices", "+", Tone::Unsure),
            S::Build => ("needs a build", "◇", Tone::Fault),
            S::Cannot => ("cannot run", "✗", Tone::Bad),
        };
        Self { standing, word: standing.as_str(), title, symbol, tone }
    }
}

/// Returns how a severity is coloured.
pub(crate) fn severity_tone(severity: Severity) -> Tone {
    match severity {
        Severity::Error => Tone::Bad,
        Severity::Warning => Tone::Unsure,
        Severity::Note => Tone::Neutral,
    }
}

/// Returns how the answer of a rung is coloured.
pub(crate) fn rung_tone(answer: RungVerdict) -> Tone {
    match answer {
        RungVerdict::Taken => Tone::Good,
        RungVerdict::Refused => Tone::Bad,
        RungVerdict::NotNeeded => Tone::Absent,
    }
}

/// Returns which way a metric improves, in words.
pub(crate) fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Higher => "higher is better",
        Direction::Lower => "lower is better",
    }
}

/// How to read a report, for someone who sees one for the first time. Words between asterisks are to stand out.
const HOW_TO_READ: &str = "Each launch starts the engine afresh; a block is one launch of every arm, back to back on one \
device, so each block gives one difference per pair of arms. A speed-up above 1x means that the arm is faster than the one \
it is compared with, whichever way the metric counts. *better* and *worse* mean that the difference is statistically \
significant and at least as large as the margin. *equivalent* means that a difference as large as the margin is ruled out, \
and *trivial* that there is a real difference, but a smaller one. *inconclusive* means that these blocks can't tell, which \
is not the same as no difference. *agent-failed* and *invalid* are results as well: the arm didn't run, or what it \
delivered doesn't count.";

/// A piece of [`how_to_read`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// Running text.
    Plain(&'static str),
    /// A word that stands out.
    Strong(&'static str),
}

/// Returns the paragraph on how to read a report.
pub(crate) fn how_to_read() -> impl Iterator<Item = Piece> {
    let piece = |(place, text): (usize, &'static str)| match place % 2 {
        0 => Piece::Plain(text),
        _ => Piece::Strong(text),
    };
    HOW_TO_READ.split('*').enumerate().map(piece)
}
