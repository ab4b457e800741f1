//! Whether times are in order, the window is long enough, and the client was on time.

use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::failure::Failure;
use isobench_schema::load_checks::{Audit, AuditBound, BrokenBound};
use isobench_schema::measurement::Measurement;
use isobench_schema::record::Phase;
use isobench_schema::workload::Arrival;

use super::{DEFAULT_MIN_WINDOW_S, LaunchRules, completed, failure, lines};
use crate::load_checks::audit::read_lag;
use crate::measure::{Sample, Samples};
use crate::stats::{Weighted, length, real};

/// The window must hold so many 99th percentiles of the request latency, unless the plan deviates from the default.
const LATENCIES_IN_WINDOW: f64 = 10.0;
/// An open loop may send late by this much in milliseconds in the 99th percentile, whatever the latency is.
const LATENESS_ALWAYS_MS: f64 = 5.0;
/// Or by this share of the 99th percentile of the request latency.
const LATENESS_SHARE: f64 = 0.01;
/// Where reads are stamped, bytes may wait for the client so long in milliseconds in the 99th percentile.
const LAG_OF_STAMPED_MS: f64 = 100.0;
/// Or by this share of the 99th percentile of the request latency.
const LAG_OF_STAMPED_SHARE: f64 = 0.1;
/// From this share on, reads count as stamped.
const STAMPED: f64 = 0.99;

/// Checks that the times of each completed request are in order: intended send, head, chunks, end. With it, no TTFT is
/// longer than its E2EL and no gap is negative.
pub(super) fn order(samples: &Samples) -> Option<Failure> {
    let broken: Vec<&Sample> = completed(samples).filter(|sample| sample.disorder.is_some()).collect();
    let first = broken.first()?;
    let text = |sample: &Sample| {
        let (earlier, later) = sample.disorder.as_deref().copied().unwrap_or(("", ""));
        format!("{}: {later} is recorded before {earlier}", sample.name())
    };
    let message = format!("the times of {} requests are out of order: {}", broken.len(), text(first));
    let check = Check::TimesInOrder.above(length(broken.len()), 0.0, CheckUnit::Count);
    Some(failure(check, message).with_evidence(lines(&broken, text)))
}

/// Checks the length of the window. The bound is the plan's `min_window_s`; where that is the default of 30 s or more,
/// also 10 times the 99th percentile of the request latency. A shorter bound is a deviation that the plan has declared,
/// and where all requests are sent at once the latency is the window, so there it stands alone.
///
/// The launch would only repeat it, so this is a fault of the plan: the block isn't replaced.
pub(super) fn window(rules: &LaunchRules, samples: &Samples, measurement: &Measurement) -> Option<Failure> {
    let planned = rules.min_window_s.get();
    let by_latency = if rules.arrival == Arrival::AllAtOnce {
        None
    } else {
        p99(completed(samples).map(|sample| sample.e2el_ms)).map(|ms| LATENCIES_IN_WINDOW * ms / 1e3)
    };
    let bound = by_latency.filter(|bound| planned >= DEFAULT_MIN_WINDOW_S && *bound > planned).unwrap_or(planned);
    let found = measurement.window_s;
    let rule = if bound > planned { "10 times the 99th percentile of the latency" } else { "the plan's `min-window`" };
    let message = format!("the window was {found:.2} s long, shorter than {bound:.2} s, {rule}");
    (found < bound).then(|| failure(Check::WindowLength.below(found, bound, CheckUnit::Seconds), message))
}

/// Checks that an open loop was sent on time: the 99th percentile of (sent − intended) is at most 5 ms or 1 % of the
/// 99th percentile of the request latency, whichever is longer. In other loops a request's turn and its send are one
/// moment.
pub(super) fn client(rules: &LaunchRules, samples: &Samples) -> Option<Failure> {
    if !rules.arrival.is_open() {
        return None;
    }
    let lateness = |sample: &Sample| Some(real(sample.sent_ns?.saturating_sub(sample.intended_ns)) / 1e6);
    let late = p99(samples.window.iter().filter_map(lateness))?;
    let latency = p99(completed(samples).map(|sample| sample.e2el_ms)).unwrap_or(0.0);
    let bound = (LATENESS_SHARE * latency).max(LATENESS_ALWAYS_MS);
    let slow: Vec<&Sample> =
        samples.window.iter().filter(|sample| lateness(sample).is_some_and(|ms| ms > bound)).collect();
    let text = |sample: &Sample| format!("{}: sent {:.2} ms late", sample.name(), lateness(sample).unwrap_or(0.0));
    let message = format!("requests were sent {late:.2} ms late in the 99th percentile, more than {bound:.2} ms");
    let check = Check::ClientLateness.above(late, bound, CheckUnit::Milliseconds);
    (late > bound).then(|| failure(check, message).with_evidence(lines(&slow, text)).transient())
}

/// Checks that answers didn't wait for the client: the 99th percentile of the time from the kernel's receipt of bytes until
/// they were read. Where most reads have the kernel's stamp, reported times are those of the stamps, and a late client only
/// makes two chunks one.
pub(super) fn lag(samples: &Samples) -> Option<Failure> {
    let phase = samples.audits.iter().find(|audit| audit.phase == Phase::Measure)?;
    let found = read_lag(&phase.lag_ns, phase.longest_lag_ns)?.lag_ms.p99;
    let latency = p99(completed(samples).map(|sample| sample.e2el_ms)).unwrap_or(0.0);
    let is_stamped = real(phase.stamped_reads) >= STAMPED * real(phase.reads);
    let (always, share) =
        if is_stamped { (LAG_OF_STAMPED_MS, LAG_OF_STAMPED_SHARE) } else { (LATENESS_ALWAYS_MS, LATENESS_SHARE) };
    let bound = (share * latency).max(always);
    let message =
        format!("answers waited {found:.2} ms for the client in the 99th percentile, more than {bound:.2} ms");
    let check = Check::ClientLag.above(found, bound, CheckUnit::Milliseconds);
    (found > bound).then(|| failure(check, message).transient())
}

/// Returns a finding for each bound that the client of a load broke.
pub(super) fn client_of(audit: &Audit) -> Vec<Failure> {
    let finding = |broken: &BrokenBound| {
        let (check, unit) = check_of(broken.bound);
        failure(check.above(broken.value, broken.limit, unit), broken.message.clone()).transient()
    };
    audit.broken.iter().map(finding).collect()
}

/// Returns the check that a bound of the client's audit is, and the unit of its value.
fn check_of(bound: AuditBound) -> (Check, CheckUnit) {
    match bound {
        AuditBound::Busy => (Check::ClientBusy, CheckUnit::Share),
        AuditBound::Waited => (Check::ClientWait, CheckUnit::Share),
        AuditBound::Lag => (Check::ClientLag, CheckUnit::Milliseconds),
        AuditBound::Lateness => (Check::ClientLateness, CheckUnit::Milliseconds),
        AuditBound::TtftBias => (Check::ClientTtftBias, CheckUnit::Share),
        AuditBound::IdleSlots => (Check::ClientIdlePlaces, CheckUnit::Share),
        AuditBound::Rate => (Check::ClientRate, CheckUnit::Share),
    }
}

/// Returns the 99th percentile as a bound for a check, not as an estimate: however few the values are.
fn p99(values: impl Iterator<Item = f64>) -> Option<f64> {
    Weighted::plain(values).quantile(0.99)
}
