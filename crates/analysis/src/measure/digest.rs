//! What is kept of a launch's records once they are read: small, and derived again at will.

use isobench_schema::failure::Failure;
use isobench_schema::ids::Digest;
use isobench_schema::measurement::Measurement;
use isobench_schema::record::PhaseAudit;
use serde::{Deserialize, Serialize};

use super::{Answer, AnswerDigests};

/// The numbers of one launch, its answers in short, and the checks that it breaks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaunchDigest {
    /// The metrics.
    pub measurement: Measurement,
    /// The client and its version.
    pub client: String,
    /// The seed of prompts and arrival times.
    pub seed: u64,
    /// The digest of all prompts and intended times.
    pub workload: Digest,
    /// The probes' answers before the window, by index; a failed probe has none.
    pub probes_before: Vec<Answer>,
    /// The probes' answers after the window, by index.
    pub probes_after: Vec<Answer>,
    /// The answers of [`super::ANSWERS_KEPT`] measured requests that the seed draws from the whole window, by index.
    pub answers: Vec<Answer>,
    /// Short digests of all measured answers.
    #[serde(default, skip_serializing_if = "AnswerDigests::is_empty")]
    pub answer_digests: AnswerDigests,
    /// What the client saw of itself, by phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub audits: Vec<PhaseAudit>,
    /// The checks that the launch breaks by itself, the one that counts first.
    pub findings: Vec<Failure>,
}
