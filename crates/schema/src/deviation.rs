//! Differences between what a task asks and what is run.

use serde::{Deserialize, Serialize};

use crate::failure::spelt_enum;

spelt_enum!(
    /// What kind of difference a deviation is.
    DeviationKind {
        /// The measured window may be shorter than the default.
        MinWindow = "min-window",
        /// A value was set on the command line.
        Override = "override",
        /// Only some arms are run.
        ArmsChosen = "arms-chosen",
        /// Packages are pinned or replaced.
        PackageOverride = "package-override",
        /// The native files come from a release, not from the revision.
        ReleaseOverlay = "release-overlay",
        /// An agent's patch may hold binary files.
        BinaryPatch = "binary-patch",
        /// The engine may ask the network.
        NetworkAllowed = "network-allowed",
        /// Fewer blocks than the default look schedule needs.
        FewerBlocks = "fewer-blocks",
        /// The answers are not checked.
        OutputUnchecked = "output-unchecked",
    }
);

/// One difference between what a task or the methodology asks and what is run. It is planned, recorded and shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Deviation {
    /// The kind of difference.
    pub kind: DeviationKind,
    /// What differs, for example `server.max-model-len`.
    pub subject: String,
    /// What was asked.
    pub asked: String,
    /// What is run.
    pub run: String,
    /// Why.
    pub reason: String,
}
