//! What legacy evidence comes to: counts, flags, categories, coverage.

use isobench_schema::legacy::{FlagCount, LegacyHeader, LegacyReport, StatusCount};

use super::category::taxonomy;
use super::coverage::{Explained, coverage};

/// Returns what some records come to.
pub fn report(header: &LegacyHeader, records: &[Explained]) -> LegacyReport {
    // The categories are those of commits; the record of one arm has none.
    let whole: Vec<Explained> = records.iter().filter(|item| item.record.arm.is_none()).cloned().collect();
    LegacyReport {
        source: header.source.clone(),
        files: header.files,
        records: u64::try_from(records.len()).unwrap_or(u64::MAX),
        statuses: statuses(records),
        flags: flags(records),
        taxonomy: (!whole.is_empty()).then(|| taxonomy(&whole)),
        coverage: coverage(records),
        problems: header.problems.clone(),
    }
}

fn statuses(records: &[Explained]) -> Vec<StatusCount> {
    let mut counts: Vec<StatusCount> = Vec::new();
    for Explained { record, .. } in records {
        let with_numbers = u64::from(record.has_numbers());
        match counts.iter_mut().find(|count| count.source == record.source && count.status == record.status) {
            Some(count) => {
                count.records += 1;
                count.with_numbers += with_numbers;
            }
            None => counts.push(StatusCount {
                source: record.source,
                status: record.status.clone(),
                records: 1,
                with_numbers,
            }),
        }
    }
    counts.sort_by(|a, b| b.records.cmp(&a.records).then_with(|| (a.source, &a.status).cmp(&(b.source, &b.status))));
    counts
}

fn flags(records: &[Explained]) -> Vec<FlagCount> {
    let mut counts: Vec<FlagCount> = Vec::new();
    for Explained { record, .. } in records {
        for remark in &record.remarks {
            let name = record.name();
            match counts.iter_mut().find(|count| count.flag == remark.flag) {
                Some(count) if count.names.last() == Some(&name) => {}
                Some(count) => count.names.push(name),
                None => {
                    counts.push(FlagCount { flag: remark.flag, example: remark.message.clone(), names: vec![name] });
                }
            }
        }
    }
    counts.sort_by(|a, b| b.names.len().cmp(&a.names.len()).then_with(|| a.flag.cmp(&b.flag)));
    counts
}
