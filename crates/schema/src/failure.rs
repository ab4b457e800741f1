//! Why something couldn't be measured: stage, class, evidence, and who is charged.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::check::BrokenCheck;

/// Defines an enum whose variants have one machine spelling each, in kebab-case.
macro_rules! spelt_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[doc = $variant_doc:literal])+ $variant:ident = $spelling:literal,)+ }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[doc = $variant_doc])+ #[serde(rename = $spelling)] $variant,)+
        }

        impl $name {
            /// Every value, in the order of declaration.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// Returns the machine spelling.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $spelling,)+ }
            }

            /// Returns what it means, in the words of its documentation.
            pub fn means(self) -> &'static str {
                match self { $(Self::$variant => concat!($($variant_doc),+).trim_ascii(),)+ }
            }

            /// Returns the value with that machine spelling.
            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.pad(self.as_str())
            }
        }
    };
}
pub(crate) use spelt_enum;

spelt_enum!(
    /// How far a launch had come when it failed.
    FailureStage {
        /// The task itself is at fault.
        Dataset = "dataset",
        /// Getting the source, the patch, the image or the wheel.
        Acquire = "acquire",
        /// Building or installing.
        Build = "build",
        /// Proving that the environment is what it claims to be.
        Verify = "verify",
        /// From the start of the process to its first sign of life.
        Start = "start",
        /// Waiting until the server is ready, and its first request.
        Ready = "ready",
        /// Warm-up, probes and the measured window.
        Workload = "workload",
        /// Reading what was left behind.
        Parse = "parse",
        /// The checks that decide whether a measurement counts.
        Validity = "validity",
    }
);

spelt_enum!(
    /// What went wrong. The list is closed: a new class is a new version of the formats that hold one.
    FailureClass {
        // acquire
        /// The repository can't be read.
        RepositoryUnavailable = "repository-unavailable",
        /// The repository has no such revision.
        RevisionNotFound = "revision-not-found",
        /// The tree holds something that can't be exported safely, such as a link that leaves it.
        TreeUnsafe = "tree-unsafe",
        /// The patch changes nothing.
        PatchEmpty = "patch-empty",
        /// The patch is no unified diff.
        PatchMalformed = "patch-malformed",
        /// The patch does not apply.
        PatchRejected = "patch-rejected",
        /// Some hunks of the patch apply and others don't.
        PatchPartial = "patch-partial",
        /// The patch would apply only at other lines or with other context than it says.
        PatchFuzzy = "patch-fuzzy",
        /// The patch names a path outside the tree, or goes through a link.
        PatchEscapes = "patch-escapes",
        /// The patch holds binary content, links or submodules, which the task doesn't allow.
        PatchBinary = "patch-binary",
        /// A program or file that the environment needs isn't on this machine.
        ToolMissing = "tool-missing",
        /// A package can't be fetched or installed.
        PackageInstallFailed = "package-install-failed",
        /// The hub gives the repository only to those whom its owner has granted access, and no token of such a one was given.
        ModelGated = "model-gated",
        /// There is no such model, revision or file, neither on this machine nor on the hub, or it is private.
        ModelNotFound = "model-not-found",
        /// There is no such dataset, or its file isn't there or doesn't give the requests that are asked for.
        DatasetMissing = "dataset-missing",
        /// The hub can't be asked: it doesn't answer, or isn't to be asked.
        HubOffline = "hub-offline",
        /// A file of an input isn't what its hash says, also when it is fetched again.
        InputDamaged = "input-damaged",
        // build
        /// A build command failed.
        BuildFailed = "build-failed",
        /// A build command didn't end in time.
        BuildTimeout = "build-timeout",
        // verify
        /// The environment or the running process isn't what the plan says.
        EnvironmentUnproven = "environment-unproven",
        /// Files of the environment changed during the launch.
        EnvironmentModified = "environment-modified",
        // start and ready
        /// The program can't be started at all.
        SpawnFailed = "spawn-failed",
        /// The engine ended before it was ready.
        StartCrashed = "start-crashed",
        /// The daemon of containers refused to make or start the engine's container.
        ContainerRefused = "container-refused",
        /// The engine's container can't be given the devices that it needs.
        DeviceUnavailable = "device-unavailable",
        /// The engine was killed because it used all the memory that its container may have.
        MemoryExceeded = "memory-exceeded",
        /// The engine was still not ready at the deadline.
        NeverReady = "never-ready",
        /// Another process owns the port that the engine was given.
        PortOwnedByOther = "port-owned-by-other",
        /// The engine said that it was ready but failed its first request.
        FirstRequestFailed = "first-request-failed",
        // workload
        /// The engine ended while it was being measured.
        ServerDied = "server-died",
        /// The server refused or closed a connection.
        ConnectionFailed = "connection-failed",
        /// The server answered with an HTTP error.
        HttpError = "http-error",
        /// A stream sent nothing for too long.
        StreamStalled = "stream-stalled",
        /// A stream held an event that can't be read.
        StreamMalformed = "stream-malformed",
        /// A stream held an error event.
        StreamError = "stream-error",
        /// A stream ended without a finish reason or its end mark.
        StreamTruncated = "stream-truncated",
        /// A request wasn't finished at its deadline.
        RequestTimeout = "request-timeout",
        /// The workload wasn't finished at its deadline.
        WorkloadTimeout = "workload-timeout",
        // parse
        /// The stored records can't be read.
        EvidenceUnreadable = "evidence-unreadable",
        /// A benchmark script ended well but left no result that can be read.
        ResultMissing = "result-missing",
        // validity
        /// Answers are shorter or longer than asked.
        OutputLength = "output-length",
        /// The server's token count isn't the client's.
        TokenCountMismatch = "token-count-mismatch",
        /// Answers aren't the baseline's.
        OutputMismatch = "output-mismatch",
        /// The measured window is shorter than the plan allows.
        WindowTooShort = "window-too-short",
        /// The metric moves with time inside the window.
        Drift = "drift",
        /// The offered load grows faster than the server works it off.
        OverSaturated = "over-saturated",
        /// The client was the bottleneck.
        ClientBound = "client-bound",
        /// The ratio to the baseline is beyond belief.
        Implausible = "implausible",
        /// The engine asked the network for something.
        NetworkAsked = "network-asked",
        /// The engine changed or removed the evidence of its own launch.
        EvidenceAltered = "evidence-altered",
        /// The device's lease was not held for the whole launch.
        LeaseLost = "lease-lost",
        /// Caches of compiled code were not private to the launch, or not empty when its engine started.
        CachesShared = "caches-shared",
        /// A request of a phase went out before those of the phase before had ended.
        NotDrained = "not-drained",
        /// A device was slowed down by its heat or its hardware.
        DeviceSlowed = "device-slowed",
        // found at stop; they do not undo a measurement
        /// The engine ignored SIGTERM and was killed.
        StopForced = "stop-forced",
        /// A process of the engine outlived it and was ended.
        ProcessSurvived = "process-survived",
        /// The engine wrote more log than its limit; all of it is kept.
        LogFlood = "log-flood",
        /// A new file appeared in a folder that launches share.
        SharedFolderWritten = "shared-folder-written",
        /// A device's clocks were held at its power cap, as they may be in every arm.
        DevicePowerCapped = "device-power-capped",
        /// The patch changes the benchmark script, which has no effect: the revision's own is run for every arm.
        ScriptPatched = "script-patched",
        // infrastructure
        /// The disk is full.
        DiskFull = "disk-full",
        /// The run was interrupted.
        Interrupted = "interrupted",
        /// The operating system refused something that isobench needs.
        HostError = "host-error",
    }
);

spelt_enum!(
    /// Who answers for a failure that hits one arm alone.
    Charge {
        /// The arm's own behaviour.
        Arm = "arm",
        /// The machine, the network or isobench.
        Infrastructure = "infrastructure",
    }
);

impl FailureClass {
    /// Returns who answers for a failure of this class when it hits one arm alone.
    pub fn charge(self) -> Charge {
        match self {
            Self::RepositoryUnavailable
            | Self::ToolMissing
            | Self::PackageInstallFailed
            | Self::ModelGated
            | Self::ModelNotFound
            | Self::DatasetMissing
            | Self::HubOffline
            | Self::InputDamaged
            | Self::PortOwnedByOther
            | Self::EvidenceUnreadable
            | Self::Drift
            | Self::OverSaturated
            | Self::WindowTooShort
            | Self::ClientBound
            | Self::LeaseLost
            | Self::CachesShared
            | Self::NotDrained
            | Self::DeviceSlowed
            | Self::DevicePowerCapped
            | Self::ContainerRefused
            | Self::DeviceUnavailable
            | Self::DiskFull
            | Self::Interrupted
            | Self::HostError => Charge::Infrastructure,
            Self::RevisionNotFound
            | Self::TreeUnsafe
            | Self::PatchEmpty
            | Self::PatchMalformed
            | Self::PatchRejected
            | Self::PatchPartial
            | Self::PatchFuzzy
            | Self::PatchEscapes
            | Self::PatchBinary
            | Self::BuildFailed
            | Self::BuildTimeout
            | Self::SpawnFailed
            | Self::EnvironmentUnproven
            | Self::EnvironmentModified
            | Self::StartCrashed
            | Self::MemoryExceeded
            | Self::NeverReady
            | Self::FirstRequestFailed
            | Self::ServerDied
            | Self::ConnectionFailed
            | Self::HttpError
            | Self::StreamStalled
            | Self::StreamMalformed
            | Self::StreamError
            | Self::StreamTruncated
            | Self::RequestTimeout
            | Self::WorkloadTimeout
            | Self::ResultMissing
            | Self::OutputLength
            | Self::TokenCountMismatch
            | Self::OutputMismatch
            | Self::Implausible
            | Self::NetworkAsked
            | Self::EvidenceAltered
            | Self::StopForced
            | Self::ProcessSurvived
            | Self::LogFlood
            | Self::SharedFolderWritten
            | Self::ScriptPatched => Charge::Arm,
        }
    }

    /// Returns whether a launch with this failure breaks a validity check, which makes a contrast `invalid`, rather than
    /// failing to run at all, which makes its arm `agent-failed` or `not-measured`.
    pub fn breaks_validity(self) -> bool {
        matches!(
            self,
            Self::EnvironmentUnproven
                | Self::EnvironmentModified
                | Self::OutputLength
                | Self::TokenCountMismatch
                | Self::OutputMismatch
                | Self::WindowTooShort
                | Self::Drift
                | Self::OverSaturated
                | Self::ClientBound
                | Self::Implausible
                | Self::NetworkAsked
                | Self::EvidenceAltered
                | Self::LeaseLost
                | Self::CachesShared
                | Self::NotDrained
                | Self::DeviceSlowed
        )
    }

    /// Returns whether the plan is at fault: the same task would only repeat it, in whatever arm, and another workload or
    /// bound wouldn't. No further block mends it.
    pub fn is_fault_of_plan(self) -> bool {
        matches!(self, Self::WindowTooShort | Self::OverSaturated | Self::CachesShared)
    }

    /// Returns whether the same environment would fail in the same way again, so that later blocks need not try, unless the
    /// failure is transient.
    pub fn is_settled_before_launch(self) -> bool {
        matches!(
            self,
            Self::RevisionNotFound
                | Self::TreeUnsafe
                | Self::PatchEmpty
                | Self::PatchMalformed
                | Self::PatchRejected
                | Self::PatchPartial
                | Self::PatchFuzzy
                | Self::PatchEscapes
                | Self::PatchBinary
                | Self::BuildFailed
                | Self::BuildTimeout
        )
    }
}

/// A line of evidence with its place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceLine {
    /// The name of the evidence file, for example `server.stderr`, or of what was looked at, for example `/proc`.
    pub file: String,
    /// The line's number in that file, from 1, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The text, shortened to [`EvidenceLine::LONGEST`] characters.
    pub text: String,
}

impl EvidenceLine {
    /// The longest text that is kept, in characters; the file has the whole.
    pub const LONGEST: usize = 500;

    /// Returns a line of evidence, its text shortened and freed of control characters.
    pub fn new(file: impl Into<String>, line: Option<u64>, text: &str) -> Self {
        let clean = |c: char| {
            if c.is_control() && c != '\t' { '\u{fffd}' } else { c }
        };
        Self { file: file.into(), line, text: text.trim_end().chars().take(Self::LONGEST).map(clean).collect() }
    }
}

/// Why an arm couldn't be measured. A failure is data, not an error of the tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// How far the launch had come.
    pub stage: FailureStage,
    /// What went wrong.
    pub class: FailureClass,
    /// One sentence for people that names the object: a lower-case fragment without a full stop.
    pub message: String,
    /// The lines that show it, most telling first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<EvidenceLine>,
    /// Whether the same launch may well succeed if it is tried again.
    pub transient: bool,
    /// The check that it breaks, if it comes from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check: Option<BrokenCheck>,
}

impl Failure {
    /// Returns a failure that trying again wouldn't change, without evidence lines yet.
    pub fn new(stage: FailureStage, class: FailureClass, message: impl Into<String>) -> Self {
        Self { stage, class, message: message.into(), evidence: Vec::new(), transient: false, check: None }
    }

    /// Adds lines of evidence.
    #[must_use]
    pub fn with_evidence(mut self, lines: impl IntoIterator<Item = EvidenceLine>) -> Self {
        self.evidence.extend(lines);
        self
    }

    /// Marks the failure as one that may pass.
    #[must_use]
    pub fn transient(mut self) -> Self {
        self.transient = true;
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ({}): {}", self.class, self.stage, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_class_has_a_spelling_of_its_own_that_is_read_back() {
        let spellings: BTreeSet<_> = FailureClass::ALL.iter().map(|class| class.as_str()).collect();
        assert_eq!(spellings.len(), FailureClass::ALL.len());
        for class in FailureClass::ALL {
            assert_eq!(FailureClass::parse(class.as_str()), Some(*class));
            assert_eq!(serde_json::to_string(class).unwrap(), format!("\"{class}\""));
        }
        assert_eq!(FailureClass::parse("other"), None);
    }

    #[test]
    fn a_program_that_does_not_start_or_build_speaks_against_its_arm() {
        for (class, charge, settled) in [
            (FailureClass::SpawnFailed, Charge::Arm, false),
            (FailureClass::BuildTimeout, Charge::Arm, true),
            (FailureClass::BuildFailed, Charge::Arm, true),
            (FailureClass::PortOwnedByOther, Charge::Infrastructure, false),
            (FailureClass::PackageInstallFailed, Charge::Infrastructure, false),
        ] {
            assert_eq!((class.charge(), class.is_settled_before_launch()), (charge, settled), "{class}");
        }
    }

    #[test]
    fn evidence_is_short_and_printable() {
        let line = EvidenceLine::new("server.stderr", Some(3), &("\u{1b}[31m".to_owned() + &"x".repeat(1000)));
        assert_eq!(line.text.chars().count(), EvidenceLine::LONGEST);
        assert!(!line.text.contains('\u{1b}'));
    }
}
