//! The categories of the report of 2026-01-02, told from status and error text as it did, and our own causes beside them.

use isobench_schema::legacy::WrittenStatus;
use isobench_schema::legacy::{CategoryCount, CategoryRow, LegacyCategory, LegacyRecord, LegacyStatus, Taxonomy};

use super::coverage::Explained;

/// Returns the category that the report puts a record into.
///
/// The report's own rules, as far as its texts show them: what it calls "no metrics" includes two servers that didn't
/// start, because their status is `baseline_failed`.
pub fn category(record: &LegacyRecord) -> LegacyCategory {
    use LegacyCategory as C;
    let error = record.error.as_deref().unwrap_or_default();
    let status = match &record.status {
        Some(WrittenStatus::Known(status)) => Some(*status),
        Some(WrittenStatus::Other(_)) | None => None,
    };
    match status {
        Some(LegacyStatus::Success) => return C::Success,
        Some(LegacyStatus::NoPerfCommand) => return C::NoPerfCommand,
        Some(LegacyStatus::VersionBug) => return C::PortBug,
        Some(LegacyStatus::BaselineFailed | LegacyStatus::NoMetrics) => return C::NoMetrics,
        // The others say too little: the text decides.
        Some(_) | None => {}
    }
    let by_text: [(&str, LegacyCategory); 6] = [
        ("Broken pipe", C::BrokenPipe),
        ("No wheel available and no ancestor wheel found", C::WheelNotFound),
        ("wheel install failed", C::WheelInstallFailed),
        ("produced no metrics", C::NoMetrics),
        ("server failed to start", C::ServerStartupFailed),
        ("known port binding bug", C::PortBug),
    ];
    by_text.into_iter().find(|(text, _)| error.contains(text)).map_or(C::Other, |(_, category)| category)
}

/// Returns how many records each category has, and each record's category beside what is known of its cause.
pub fn taxonomy(records: &[Explained]) -> Taxonomy {
    let row = |explained: &Explained| CategoryRow {
        commit: explained.record.short().to_owned(),
        category: category(&explained.record),
        cause: explained.cause.clone(),
        findings: explained.findings.clone(),
    };
    let rows: Vec<CategoryRow> = records.iter().map(row).collect();
    let count = |&category: &LegacyCategory| {
        let count = rows.iter().filter(|row| row.category == category).count();
        CategoryCount { category, count: u64::try_from(count).unwrap_or(u64::MAX) }
    };
    Taxonomy { counts: LegacyCategory::ALL.iter().map(count).collect(), rows }
}
