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
        /// An option was moved from the client to the server, renamed, or spelt as the revision's parser takes it.
        OptionTranslated = "option-translated",
        /// An option that the command needs and doesn't give was added.
        OptionAdded = "option-added",
        /// An option has no effect on what is measured here, since another part does its work.
        OptionSuperseded = "option-superseded",
        /// The command was mended as text: brackets, paths, the program's own name.
        CommandMended = "command-mended",
        /// An offline benchmark is run through the server, with isobench's own client.
        OfflineThroughServer = "offline-through-server",
        /// The numbers are what the engine's own benchmark script says of itself, not what the client measured.
        SelfReported = "self-reported",
        /// A workload stands in for a task that has none.
        WorkloadChosen = "workload-chosen",
        /// Another model than the task's is measured.
        ProxyModel = "proxy-model",
        /// A recipe changes the environment so that it runs at all.
        RecipeApplied = "recipe-applied",
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
