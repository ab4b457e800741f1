//! Whether each phase began with an idle server: the one before had ended, and left nothing behind.

use std::collections::BTreeMap;

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::{Failure, FailureStage};
use isobench_schema::record::{Phase, RequestRecord};

use super::counts::most_frequent;
use super::{LaunchRules, failure, lines};
use crate::measure::{Sample, Samples};
use crate::stats::length;

/// When the requests of a phase were under way, in nanoseconds of the records' clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    first_out_ns: u64,
    last_end_ns: u64,
}

/// When each phase was under way: two numbers for each, however many requests it has.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Spans(BTreeMap<Phase, Span>);

impl Spans {
    /// Takes in a request. One that was never sent is under way nowhere.
    pub(crate) fn take(&mut self, record: &RequestRecord) {
        let Some(out_ns) = record.first_out_ns.or(record.sent_ns) else { return };
        let own = Span { first_out_ns: out_ns, last_end_ns: record.end_ns };
        let span = self.0.entry(record.phase).or_insert(own);
        span.first_out_ns = span.first_out_ns.min(out_ns);
        span.last_end_ns = span.last_end_ns.max(record.end_ns);
    }
}

/// Checks that no request of a phase went out before the last one of the phases before it had ended: the server had drained
/// to zero.
pub(super) fn drained(samples: &Samples) -> Option<Failure> {
    let spans: Vec<(Phase, Span)> = samples.spans.0.iter().map(|(phase, span)| (*phase, *span)).collect();
    let overlap = |pair: &[(Phase, Span)]| match pair {
        [(before, earlier), (after, later)] if later.first_out_ns < earlier.last_end_ns => {
            Some((*before, *after, earlier.last_end_ns - later.first_out_ns))
        }
        _ => None,
    };
    let (before, after, ns) = spans.windows(2).find_map(overlap)?;
    let ms = crate::stats::real(ns) / 1e6;
    let message =
        format!("the first request of `{after}` went out {ms:.3} ms before the last one of `{before}` had ended");
    Some(failure(Check::Drained.above(ms, 0.0, CheckUnit::Milliseconds), message).transient())
}

/// Checks that no more requests of the warm-up failed than may fail in the window: what the client gave up, the server may
/// still be working at.
pub(super) fn warm_up(rules: &LaunchRules, samples: &Samples) -> Option<Failure> {
    let failed = &samples.warm_up_failed;
    let allowed = usize::try_from(rules.failed_requests).unwrap_or(usize::MAX);
    if failed.len() <= allowed {
        return None;
    }
    let class = most_frequent(failed.iter().filter_map(|sample| Some(sample.failure.as_ref()?.class)))?;
    let told = |sample: &Sample| sample.failure.as_deref().map_or(String::new(), |failure| failure.message.clone());
    let text = |sample: &Sample| format!("{}: {}", sample.name(), told(sample));
    let message = format!("{} requests of the warm-up failed ({allowed} may): {}", failed.len(), told(failed.first()?));
    let check = Check::WarmUpFinished.above(length(failed.len()), length(allowed), CheckUnit::Count);
    let all: Vec<&Sample> = failed.iter().collect();
    Some(Failure::new(FailureStage::Workload, class, message).breaking(check).with_evidence(lines(&all, text)))
}
