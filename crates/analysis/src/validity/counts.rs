//! Whether the requests that were asked for are there and have answers.

use std::collections::BTreeMap;

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::record::{Phase, RequestFailure};

use super::{LaunchRules, lines};
use crate::measure::{Sample, Samples};
use crate::stats::length;

/// Checks that no more requests of the window failed than allowed, and no probe. The class is the most frequent one.
pub(super) fn failed_requests(rules: &LaunchRules, samples: &Samples) -> Option<Failure> {
    let failed = |all: &'_ [Sample]| all.iter().filter(|sample| sample.failure.is_some()).count();
    let (in_window, probes) = (failed(&samples.window), failed(&samples.probes));
    let allowed = usize::try_from(rules.failed_requests).unwrap_or(usize::MAX);
    if in_window <= allowed && probes == 0 {
        return None;
    }
    let all: Vec<(&Sample, &RequestFailure)> = samples
        .window
        .iter()
        .chain(&samples.probes)
        .filter_map(|sample| Some((sample, sample.failure.as_deref()?)))
        .collect();
    let class = most_frequent(all.iter().map(|(_, failure)| failure.class))?;
    let of_class: Vec<&Sample> =
        all.iter().filter(|(_, failure)| failure.class == class).map(|(sample, _)| *sample).collect();
    let (_, first) = all.iter().find(|(_, failure)| failure.class == class)?;
    let check = if in_window > allowed {
        Check::RequestsSucceed.above(length(in_window), length(allowed), CheckUnit::Count)
    } else {
        Check::ProbesSucceed.above(length(probes), 0.0, CheckUnit::Count)
    };
    let message = format!(
        "{in_window} of {} requests failed ({allowed} may) and {probes} of {} probes: {}",
        samples.window.len(),
        samples.probes.len(),
        first.message
    );
    let text = |sample: &Sample| {
        let told = sample.failure.as_deref().map_or("", |failure| failure.message.as_str());
        format!("{}: {class}: {told}", sample.name())
    };
    let failure = Failure::new(FailureStage::Workload, class, message);
    Some(failure.breaking(check).with_evidence(lines(&of_class, text)))
}

/// Returns the class that is seen most often, the first in the list of classes where several are.
pub(super) fn most_frequent(classes: impl Iterator<Item = FailureClass>) -> Option<FailureClass> {
    let mut counts: BTreeMap<FailureClass, usize> = BTreeMap::new();
    for class in classes {
        *counts.entry(class).or_default() += 1;
    }
    let most = *counts.values().max()?;
    counts.into_iter().find(|(_, count)| *count == most).map(|(class, _)| class)
}

/// Checks that every request of the window and every probe is recorded.
pub(super) fn missing_records(rules: &LaunchRules, samples: &Samples) -> Option<Failure> {
    let probes = |phase: Phase| samples.probes.iter().filter(move |sample| sample.phase == phase).count();
    let asked = [
        (rules.requests, samples.window.len(), "requests"),
        (rules.probes, probes(Phase::ProbeBefore), "probes before the window"),
        (rules.probes, probes(Phase::ProbeAfter), "probes after the window"),
    ];
    let is_missing = |(asked, found, _): &&(u32, usize, &str)| usize::try_from(*asked) != Ok(*found);
    let first = asked.iter().find(is_missing)?;
    let (recorded, wanted) = (length(first.1), f64::from(first.0));
    let check = if recorded < wanted {
        Check::AllRecorded.below(recorded, wanted, CheckUnit::Count)
    } else {
        Check::AllRecorded.above(recorded, wanted, CheckUnit::Count)
    };
    let told = asked.iter().filter(is_missing).map(|(asked, found, what)| format!("{found} of {asked} {what}"));
    let missing: Vec<String> = told.collect();
    let message = format!("the request records hold {}", missing.join(", "));
    Some(Failure::new(FailureStage::Parse, FailureClass::EvidenceUnreadable, message).breaking(check))
}
