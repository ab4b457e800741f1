//! The coverage of legacy evidence: how far each record came, and what running it again could change.

use isobench_schema::assessment::Finding;
use isobench_schema::cause::Cause;
use isobench_schema::coverage::Coverage;
use isobench_schema::legacy::LegacyRecord;

use super::compare::Counterparts;
use super::{lost, retry};
use crate::coverage::{self, Item};

/// A record, and what is known of why it failed. The classifier and the lint fill it in; without them only the record's
/// own status and text speak.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// The record.
    pub record: LegacyRecord,
    /// The cause that its error text shows.
    pub cause: Option<Cause>,
    /// What a lint of its command finds.
    pub findings: Vec<Finding>,
}

impl From<LegacyRecord> for Explained {
    fn from(record: LegacyRecord) -> Self {
        Self { record, cause: None, findings: Vec::new() }
    }
}

/// Returns how far the records came. What may be compared is only what the records themselves don't rule out: host, driver,
/// client and workload aren't in them, so that the last stage is a named rule of the earlier system and no verdict.
pub fn coverage(records: &[Explained]) -> Coverage {
    let counterparts = Counterparts::of(records);
    let item = |explained: &Explained| {
        let failed = lost::before_numbers(explained);
        let retry = failed.as_ref().map(|loss| retry::retry(explained, loss));
        let loss = failed.or_else(|| counterparts.loss(explained));
        Item { name: explained.record.name(), loss, retry }
    };
    coverage::coverage("records", &records.iter().map(item).collect::<Vec<_>>())
}
