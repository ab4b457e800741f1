//! Which records of a commit may be set beside each other, as far as they say themselves.

use std::collections::BTreeMap;

use isobench_schema::coverage::CoverageStage;
use isobench_schema::ids::ArmId;
use isobench_schema::legacy::{LegacyFlag, LegacyMetric, LegacyRecord, LegacySource};

use super::coverage::Explained;
use crate::coverage::Loss;

/// The records with numbers, by project and commit.
pub(super) struct Counterparts<'r> {
    by_commit: BTreeMap<(Option<&'r str>, &'r str), Vec<&'r LegacyRecord>>,
}

impl<'r> Counterparts<'r> {
    pub(super) fn of(records: &'r [Explained]) -> Self {
        let mut by_commit: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for Explained { record, .. } in records {
            if record.has_numbers() && record.arm.is_some() {
                by_commit.entry((record.project.as_deref(), record.short())).or_default().push(record);
            }
        }
        Self { by_commit }
    }

    /// Returns why a record with numbers isn't compared or decided; `None` if a rule can be applied to it.
    pub(super) fn loss(&self, explained: &Explained) -> Option<Loss> {
        let record = &explained.record;
        let loss =
            |stage, class: &str, reason: &str| Some(Loss { stage, class: class.to_owned(), reason: reason.to_owned() });
        if record.source == LegacySource::ErrorReport {
            let reason = "the report says that it was measured, and holds no number";
            return loss(CoverageStage::Comparable, "numbers-elsewhere", reason);
        }
        let others = self.others(record);
        if others.is_empty() {
            let reason = "no other arm of the commit has numbers from the same system";
            return loss(CoverageStage::Comparable, "no-counterpart", reason);
        }
        let alike: Vec<&LegacyRecord> = others.into_iter().filter(|other| is_alike(record, other)).collect();
        if alike.is_empty() {
            let reason = "the other arms used another model or command";
            return loss(CoverageStage::Comparable, "unlike", reason);
        }
        let shared: Vec<&LegacyRecord> = alike.into_iter().filter(|other| share_metric(record, other)).collect();
        if shared.is_empty() {
            let reason = "it has no sound number of one unit in common with another arm";
            return loss(CoverageStage::Comparable, "no-metric-in-common", reason);
        }
        let is_human = |record: &LegacyRecord| record.arm == Some(ArmId::Human);
        if !is_human(record) && !shared.iter().any(|other| is_human(other)) {
            let reason = "the human side, which the earlier rules compare with, has no numbers";
            return loss(CoverageStage::Decided, "no-human-side", reason);
        }
        None
    }

    /// Returns the other arms of a record's commit from the same system.
    fn others(&self, record: &LegacyRecord) -> Vec<&'r LegacyRecord> {
        let all = self.by_commit.get(&(record.project.as_deref(), record.short()));
        let is_other = |other: &&&LegacyRecord| other.arm != record.arm && other.source == record.source;
        all.into_iter().flatten().filter(is_other).copied().collect()
    }
}

/// Returns whether two records say nothing that rules a comparison out.
fn is_alike(one: &LegacyRecord, other: &LegacyRecord) -> bool {
    let agrees = |one: &Option<String>, other: &Option<String>| one.is_none() || other.is_none() || one == other;
    agrees(&one.model, &other.model) && agrees(&one.command, &other.command)
}

fn share_metric(one: &LegacyRecord, other: &LegacyRecord) -> bool {
    let same = |a: &LegacyMetric, b: &LegacyMetric| a.key == b.key && a.unit == b.unit;
    one.metrics
        .iter()
        .filter(|metric| is_sound(one, metric))
        .any(|metric| other.metrics.iter().any(|counterpart| same(metric, counterpart) && is_sound(other, counterpart)))
}

/// Returns whether a number is one of the benchmark, whatever its unit is.
fn is_sound(record: &LegacyRecord, metric: &LegacyMetric) -> bool {
    let spoils = |flag: LegacyFlag| match flag {
        LegacyFlag::EngineLogAsResult | LegacyFlag::ZeroForMissing | LegacyFlag::TtftAboveLatency => true,
        LegacyFlag::RequestRateAsTokenRate
        | LegacyFlag::SecondsAsMilliseconds
        | LegacyFlag::TextForNumber
        | LegacyFlag::NotFinite
        | LegacyFlag::EqualAcrossArms
        | LegacyFlag::SeveralOfOneArm
        | LegacyFlag::SuccessWithoutMetrics
        | LegacyFlag::MetricsWithoutSuccess
        | LegacyFlag::UnknownStatus
        | LegacyFlag::UnknownUnit => false,
    };
    let is_spoilt = record.remarks.iter().any(|remark| spoils(remark.flag) && remark.keys.contains(&metric.key));
    metric.value.is_some() && !is_spoilt
}
