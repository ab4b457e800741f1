//! One launch as it comes to the judge: its record, and what was read of its requests.

use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::outcome::{LaunchRecord, Outcome};

use crate::measure::LaunchDigest;

/// A launch with everything that is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct LaunchInput {
    /// Its record.
    pub record: LaunchRecord,
    /// What was read of its request records, if it has any that can be read.
    pub digest: Option<LaunchDigest>,
}

impl LaunchInput {
    /// Returns why the launch doesn't count, seen for itself: its failure, or else the first check that it breaks.
    ///
    /// What it takes other launches to see, such as wrong answers, is found by [`crate::judge`].
    pub fn failure(&self) -> Option<Failure> {
        match (&self.record.outcome, &self.digest) {
            (Outcome::Failed { failure }, _) => Some(failure.clone()),
            (Outcome::Interrupted, _) => {
                Some(Failure::new(FailureStage::Workload, FailureClass::Interrupted, "the launch was cut short"))
            }
            (Outcome::Measured, None) => Some(Failure::new(
                FailureStage::Parse,
                FailureClass::EvidenceUnreadable,
                "the request records are missing or can't be read",
            )),
            (Outcome::Measured, Some(digest)) => digest.findings.first().cloned(),
        }
    }
}
