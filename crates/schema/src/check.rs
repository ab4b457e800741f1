//! What must hold for a launch to count: every check by name, with what follows from one that is broken.

use serde::{Deserialize, Serialize};

use crate::failure::{Charge, Failure, FailureClass, spelt_enum};

spelt_enum!(
    /// A check that a launch must pass before its numbers count. The doc comment says what must hold.
    Check {
        // of the environment and the process
        /// The tree is what was prepared, and imports would be taken from it.
        StaticProof = "static-proof",
        /// The tree is the one with which the environment was first proven in this run, also if it had to be made again.
        SameTree = "same-tree",
        /// The running process is the planned one.
        LiveProof = "live-proof",
        /// The process that answers last is the one that was proven first.
        SameProcess = "same-process",
        /// The tree and its virtual environment are unchanged after stop.
        TreeUnmodified = "tree-unmodified",
        /// The listening port belongs to our process.
        PortOwner = "port-owner",
        /// The device's lease was held.
        LeaseHeld = "lease-held",
        /// The caches of compiled code are private to the launch, and empty when its engine starts: cold in every arm.
        PrivateCaches = "private-caches",
        /// The engine asked no network, unless the task allows it.
        NoNetwork = "no-network",
        /// The stored evidence is what was written to it.
        EvidenceIntact = "evidence-intact",
        /// No device was slowed down in the window for its heat or by its hardware. Clocks at the power cap are an incident.
        DeviceNotSlowed = "device-not-slowed",
        // of the requests
        /// The request records can be read.
        RecordsReadable = "records-readable",
        /// Requests of the window succeeded.
        RequestsSucceed = "requests-succeed",
        /// Probes succeeded.
        ProbesSucceed = "probes-succeed",
        /// The warm-up finished: its requests succeeded too, so that the server has put none aside.
        WarmUpFinished = "warm-up-finished",
        /// Every request and every probe is recorded.
        AllRecorded = "all-recorded",
        /// The server had drained to zero between phases: no request went out before the last of the phase before had ended.
        Drained = "drained",
        /// The times of each request are in order: intended send, head, chunks, end.
        TimesInOrder = "times-in-order",
        /// The numbers agree with each other: each throughput times the window is what was counted.
        NumbersAgree = "numbers-agree",
        /// Little's law: the mean number of requests under way is their rate times their mean latency, and in a closed loop
        /// no more than its places.
        LittlesLaw = "littles-law",
        /// The server's counts of output tokens, where given, are the client's.
        TokenCounts = "token-counts",
        /// The server's counts of prompt tokens are the client's, where prompts are sent as token ids.
        PromptCounts = "prompt-counts",
        /// Answers are as long as asked (with `ignore-eos = false`: not longer).
        AnswerLengths = "answer-lengths",
        /// The window is long enough.
        WindowLength = "window-length",
        // of the client
        /// Open loop: requests were sent on time.
        ClientLateness = "client-lateness",
        /// Answers didn't wait for the client.
        ClientLag = "client-lag",
        /// The client's busiest thread had time to spare.
        ClientBusy = "client-busy",
        /// The client's busiest thread had a processor when it wanted one.
        ClientWait = "client-wait",
        /// A load alone: the client's own delay adds little to the reported TTFT.
        ClientTtftBias = "client-ttft-bias",
        /// A load alone, closed loop: its places were not empty for long.
        ClientIdlePlaces = "client-idle-places",
        /// A load alone, open loop: requests were sent at the rate that was due.
        ClientRate = "client-rate",
        // of the server over the window
        /// Open loop: the server kept up.
        ServerKeepsUp = "server-keeps-up",
        /// The metric didn't move with time.
        NoDrift = "no-drift",
        // of a benchmark script
        /// The time that a benchmark script claims fits into the time for which its process was seen to run, and isn't far
        /// shorter than its work was seen to take.
        ClaimedTime = "claimed-time",
        /// A benchmark script claims to have done what it was asked, no more and no less, and its numbers fit together.
        ClaimedWork = "claimed-work",
        // beside the baseline
        /// The answers to probes are the baseline's.
        ProbeAnswers = "probe-answers",
        /// An agent's drawn answers of the window are the baseline's.
        DrawnAnswers = "drawn-answers",
        /// All of an agent's answers of the window are the baseline's.
        AllAnswers = "all-answers",
        /// The arm isn't faster than the baseline beyond belief.
        BelievableRatio = "believable-ratio",
        /// The arm isn't faster than its devices could be, where the plan knows that and the baseline isn't either.
        Roofline = "roofline",
    }
);

impl Check {
    /// Returns the class of a failure that breaks it; `None` for failed requests, which have classes of their own.
    pub fn class(self) -> Option<FailureClass> {
        Some(match self {
            Self::RequestsSucceed | Self::ProbesSucceed | Self::WarmUpFinished => return None,
            Self::StaticProof | Self::SameTree | Self::LiveProof | Self::SameProcess => {
                FailureClass::EnvironmentUnproven
            }
            Self::TreeUnmodified => FailureClass::EnvironmentModified,
            Self::PortOwner => FailureClass::PortOwnedByOther,
            Self::LeaseHeld => FailureClass::LeaseLost,
            Self::PrivateCaches => FailureClass::CachesShared,
            Self::NoNetwork => FailureClass::NetworkAsked,
            Self::EvidenceIntact => FailureClass::EvidenceAltered,
            Self::DeviceNotSlowed => FailureClass::DeviceSlowed,
            Self::RecordsReadable | Self::AllRecorded => FailureClass::EvidenceUnreadable,
            Self::Drained => FailureClass::NotDrained,
            Self::TimesInOrder
            | Self::NumbersAgree
            | Self::LittlesLaw
            | Self::ClaimedTime
            | Self::ClaimedWork
            | Self::BelievableRatio
            | Self::Roofline => FailureClass::Implausible,
            Self::TokenCounts | Self::PromptCounts => FailureClass::TokenCountMismatch,
            Self::AnswerLengths => FailureClass::OutputLength,
            Self::WindowLength => FailureClass::WindowTooShort,
            Self::ClientLateness
            | Self::ClientLag
            | Self::ClientBusy
            | Self::ClientWait
            | Self::ClientTtftBias
            | Self::ClientIdlePlaces
            | Self::ClientRate => FailureClass::ClientBound,
            Self::ServerKeepsUp => FailureClass::OverSaturated,
            Self::NoDrift => FailureClass::Drift,
            Self::ProbeAnswers | Self::DrawnAnswers | Self::AllAnswers => FailureClass::OutputMismatch,
        })
    }

    /// Returns who answers for it when it is broken by one arm alone; `None`: whoever answers for the failed requests.
    pub fn charge(self) -> Option<Charge> {
        self.class().map(FailureClass::charge)
    }

    /// Returns whether a block in which it is broken runs again; `None`: as for the failed requests' class.
    pub fn is_repeated(self) -> Option<bool> {
        let class = self.class()?;
        Some(class.charge() == Charge::Infrastructure && !class.is_fault_of_plan())
    }

    /// Returns whether a person may confirm that a launch which breaks it counts all the same: what is beyond belief may be
    /// true, what is wrong can't be.
    pub fn is_confirmable(self) -> bool {
        self.class() == Some(FailureClass::Implausible)
    }

    /// Returns the bound in words.
    pub fn bound(self) -> &'static str {
        match self {
            Self::StaticProof
            | Self::SameTree
            | Self::LiveProof
            | Self::SameProcess
            | Self::TreeUnmodified
            | Self::PortOwner
            | Self::TimesInOrder => "exact",
            Self::LeaseHeld => "from the launch's start to its end",
            Self::PrivateCaches => "each folder of caches within the launch's own, and nothing in them",
            Self::NoNetwork | Self::Drained => "none",
            Self::EvidenceIntact => "digest",
            Self::DeviceNotSlowed => "no sample of the window with a thermal or hardware slow-down",
            Self::RecordsReadable => "each line",
            Self::RequestsSucceed | Self::WarmUpFinished => "at most `limits.failed-requests` failed, 0 by default",
            Self::ProbesSucceed => "none failed",
            Self::AllRecorded => "all",
            Self::NumbersAgree => "within one part in a million",
            Self::LittlesLaw => "within 1 %",
            Self::TokenCounts | Self::PromptCounts | Self::AnswerLengths => "equal",
            Self::WindowLength => {
                "the plan's `min-window-s`; where that is the default of 30 s or more, also 10 times the p99 of E2EL (not \
                 where all requests are sent at once)"
            }
            Self::ClientLateness => "p99 at most 5 ms or 1 % of the p99 of E2EL, whichever is longer",
            Self::ClientLag => {
                "p99 from the kernel's receipt to the read: where times are the kernel's, at most 100 ms or 10 % of the p99 \
                 of E2EL, whichever is longer; else at most 5 ms or 1 %. Of a load alone: below"
            }
            Self::ClientBusy => "at most 70 % of the window",
            Self::ClientWait => {
                "at most 30 % of the window; of a load alone 1 %, where most reads lack the kernel's stamp"
            }
            Self::ClientTtftBias => "at most 2 % of the mean and 3 % of the p99, where it is over 0.1 ms",
            Self::ClientIdlePlaces => "at most 1 % of their time",
            Self::ClientRate => "at most 1 % less",
            Self::ServerKeepsUp => {
                "not both: E2EL grows over the window (p < 0.001), and less than 95 % of the offered rate was completed"
            }
            Self::NoDrift => {
                "not both: a trend over the window (p < 0.001), and a fitted change of more than 3 margins"
            }
            Self::ClaimedTime => {
                "no more than the wall time; at least 80 % of the time, less a quarter of a second, for which the progress bar of the \
                 measured part was seen, and a thousandth of the wall time where none was"
            }
            Self::ClaimedWork => "requests, iterations and tokens as asked; rates within 5 % of what they are made of",
            Self::ProbeAnswers | Self::DrawnAnswers | Self::AllAnswers => "below",
            Self::BelievableRatio => "`metric.believable-ratio`, 10 by default",
            Self::Roofline => "what the devices' memory and arithmetic allow at their full speed",
        }
    }
}

/// A finite number, so that it has an order and equals itself.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Finite(f64);

impl Eq for Finite {}

impl Finite {
    /// Returns `None` if `value` is infinite or not a number.
    pub fn new(value: f64) -> Option<Self> {
        value.is_finite().then_some(Self(value))
    }

    /// Returns the number.
    pub fn get(self) -> f64 {
        self.0
    }
}

/// A number that isn't finite.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{value} is not a finite number")]
pub struct NotFiniteError {
    /// The number.
    pub value: f64,
}

impl TryFrom<f64> for Finite {
    type Error = NotFiniteError;

    fn try_from(value: f64) -> Result<Self, NotFiniteError> {
        Self::new(value).ok_or(NotFiniteError { value })
    }
}

impl From<Finite> for f64 {
    fn from(number: Finite) -> Self {
        number.0
    }
}

spelt_enum!(
    /// On which side of its bound a value must lie.
    BoundSide {
        /// The value must be no more than the bound.
        AtMost = "at-most",
        /// The value must be no less than the bound.
        AtLeast = "at-least",
    }
);

spelt_enum!(
    /// The unit of a value and its bound.
    CheckUnit {
        /// Milliseconds.
        Milliseconds = "ms",
        /// Seconds.
        Seconds = "s",
        /// A part of one: 0.5 is 50 %.
        Share = "share",
        /// A ratio: 2 is twice as much.
        Times = "times",
        /// A number of things, which the sentence names.
        Count = "count",
        /// Output tokens per second.
        TokensPerSecond = "tok/s",
        /// Requests under way.
        Requests = "requests",
    }
);

/// What was measured, and what it was held to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measured {
    /// The value.
    pub value: Finite,
    /// On which side of the bound it must lie.
    pub side: BoundSide,
    /// The bound, in the value's unit.
    pub bound: Finite,
    /// The unit of both.
    pub unit: CheckUnit,
}

/// A check that a launch breaks, with its numbers where it has any: what is exact has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BrokenCheck {
    /// The check.
    pub name: Check,
    /// What was measured, and what it was held to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

impl From<Check> for BrokenCheck {
    fn from(name: Check) -> Self {
        Self { name, measured: None }
    }
}

impl Check {
    /// Returns the check as broken by a value above its bound. Numbers that aren't finite are left out.
    pub fn above(self, value: f64, bound: f64, unit: CheckUnit) -> BrokenCheck {
        self.broken(value, BoundSide::AtMost, bound, unit)
    }

    /// Returns the check as broken by a value below its bound. Numbers that aren't finite are left out.
    pub fn below(self, value: f64, bound: f64, unit: CheckUnit) -> BrokenCheck {
        self.broken(value, BoundSide::AtLeast, bound, unit)
    }

    fn broken(self, value: f64, side: BoundSide, bound: f64, unit: CheckUnit) -> BrokenCheck {
        let numbers = Finite::new(value).zip(Finite::new(bound));
        BrokenCheck { name: self, measured: numbers.map(|(value, bound)| Measured { value, side, bound, unit }) }
    }
}

impl Failure {
    /// Names the check that the failure breaks.
    #[must_use]
    pub fn breaking(mut self, check: impl Into<BrokenCheck>) -> Self {
        self.check = Some(check.into());
        self
    }

    /// Returns whether a person may confirm that the launch counts all the same.
    pub fn is_confirmable(&self) -> bool {
        self.check.is_some_and(|check| check.name.is_confirmable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureStage;

    #[test]
    fn every_check_is_read_back_as_it_is_written() {
        for check in Check::ALL {
            assert_eq!(Check::parse(check.as_str()), Some(*check));
            assert!(!check.bound().is_empty());
        }
    }

    #[test]
    fn the_class_says_who_answers_and_whether_the_block_runs_again() {
        for (check, charge, repeated) in [
            (Check::AnswerLengths, Some(Charge::Arm), Some(false)),
            (Check::ClientLag, Some(Charge::Infrastructure), Some(true)),
            (Check::WindowLength, Some(Charge::Infrastructure), Some(false)),
            (Check::PrivateCaches, Some(Charge::Infrastructure), Some(false)),
            (Check::RequestsSucceed, None, None),
        ] {
            assert_eq!((check.charge(), check.is_repeated()), (charge, repeated), "{check}");
        }
        let confirmable: Vec<&str> =
            Check::ALL.iter().filter(|check| check.is_confirmable()).map(|check| check.as_str()).collect();
        assert_eq!(
            confirmable,
            [
                "times-in-order",
                "numbers-agree",
                "littles-law",
                "claimed-time",
                "claimed-work",
                "believable-ratio",
                "roofline"
            ]
        );
    }

    #[test]
    fn a_failure_carries_the_check_with_its_numbers() {
        let failure = Failure::new(FailureStage::Validity, FailureClass::ClientBound, "late")
            .breaking(Check::ClientLag.above(7.2, 5.0, CheckUnit::Milliseconds));
        let text = serde_json::to_string(&failure).unwrap();
        assert!(
            text.ends_with(
                r#""check":{"name":"client-lag","measured":{"value":7.2,"side":"at-most","bound":5.0,"unit":"ms"}}}"#
            ),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Failure>(&text).unwrap(), failure);
        let exact = serde_json::to_string(&BrokenCheck::from(Check::LiveProof)).unwrap();
        assert_eq!(exact, r#"{"name":"live-proof"}"#);
        assert_eq!(Check::ClientLag.above(f64::NAN, 5.0, CheckUnit::Milliseconds).measured, None);
    }
}
