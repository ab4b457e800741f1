//! The bounds that a client must keep, and what is said of a broken one.

use isobench_schema::load_checks::{AuditBound, AuditVerdict, BrokenBound};

use super::{AuditInput, Numbers};

/// The busiest thread may have the processor for this share of the window.
const BUSY: f64 = 0.7;
/// Where most reads lack the kernel's stamp, it may be ready without a processor for this share.
const WAITED: f64 = 0.01;
/// From this share on, reads count as stamped: the others are too few to move what isn't an extreme.
const STAMPED: f64 = 0.99;
/// A lag, and what is added to the mean TTFT, may be this share of what is reported.
const BIAS: f64 = 0.02;
/// What is added to the 99th percentile of the TTFT may be this share of it.
const BIAS_OF_P99: f64 = 0.03;
/// Where reads are stamped, a lag under so many milliseconds does no harm: tokens that a server writes back to back are read
/// together by any client.
const MERGED_MS: f64 = 0.5;
/// Delays under so many milliseconds aren't the client's: a thread's wake-up and a system call take some ten microseconds.
const SMALL_MS: f64 = 0.1;
/// The lateness of an open loop may be so many milliseconds in its 99th percentile, or this share of the latency's.
const LATENESS_MS: f64 = 5.0;
const LATENESS_SHARE: f64 = 0.01;
/// A closed loop's slots may be empty for this share of their time.
const IDLE: f64 = 0.01;
/// The rate of an open loop may be short by this share.
const RATE: f64 = 0.01;

const MORE_CLIENT: &str = "use more workers, pin them to processors of their own, or load from another machine";

pub(super) fn verdict(broken: &[BrokenBound], unknown: &[String]) -> AuditVerdict {
    if !broken.is_empty() {
        AuditVerdict::ClientBound
    } else if unknown.is_empty() {
        AuditVerdict::Ok
    } else {
        AuditVerdict::Unproven
    }
}

/// Returns every bound that is broken.
pub(super) fn broken(input: &AuditInput, numbers: &Numbers) -> Vec<BrokenBound> {
    let checks = [busy(input, numbers), waited(numbers), lag(input, numbers), lateness(numbers)];
    let others = [ttft_bias(numbers), idle(numbers), rate(numbers)];
    checks.into_iter().chain(others).flatten().collect()
}

/// Returns what isn't known and is needed to say that the client was good enough.
pub(super) fn unknown(input: &AuditInput, numbers: &Numbers) -> Vec<String> {
    let is_lag_unknown = numbers.lag.is_none() && numbers.waited_share.is_none();
    let mut unknown = Vec::new();
    let mut say = |when: bool, what: &str| unknown.extend(when.then(|| what.to_owned()));
    say(numbers.busy_share.is_none(), "the window has no length");
    say(numbers.sent == 0, "no request of the window was sent");
    say(input.phase.reads == 0, "nothing was read in the window");
    say(
        input.phase.reads > 0 && is_lag_unknown,
        "nothing shows how late the client read: there are neither the kernel's receive stamps nor its scheduling times",
    );
    unknown
}

fn busy(input: &AuditInput, numbers: &Numbers) -> Option<BrokenBound> {
    let value = numbers.busy_share?;
    let workers = input.phase.workers;
    broken_if(AuditBound::Busy, value, BUSY, || {
        format!(
            "the busiest of the client's {workers} threads was busy for {} of the window, not less than {}: {MORE_CLIENT}",
            percent(value),
            percent(BUSY)
        )
    })
}

fn waited(numbers: &Numbers) -> Option<BrokenBound> {
    let value = numbers.waited_share.filter(|_| !is_stamped(numbers))?;
    broken_if(AuditBound::Waited, value, WAITED, || {
        format!(
            "the client was kept from a processor for {} of the window, more than {}, and most of its reads have no stamp \
             of the kernel's: free its processor of other programs, or pin it to another",
            percent(value),
            percent(WAITED)
        )
    })
}

fn is_stamped(numbers: &Numbers) -> bool {
    numbers.stamped_share.is_some_and(|share| share >= STAMPED)
}

fn lag(input: &AuditInput, numbers: &Numbers) -> Option<BrokenBound> {
    let value = numbers.lag?.lag_ms.p99;
    let (limit, harm) = if is_stamped(numbers) {
        let gaps = input.gaps?;
        (gaps.median_ms.max(BIAS * gaps.p99_ms).max(MERGED_MS), "so that chunks of an answer were read together")
    } else {
        let reported = [input.gaps.map(|gaps| gaps.p99_ms), numbers.ttft.map(|ttft| ttft.median_ms)];
        let shortest = reported.into_iter().flatten().reduce(f64::min)?;
        ((BIAS * shortest).max(SMALL_MS), "and by so much the reported times are late")
    };
    broken_if(AuditBound::Lag, value, limit, || {
        format!(
            "answers waited {value:.3} ms for the client in the 99th percentile, more than {limit:.3} ms, {harm}: \
             {MORE_CLIENT}"
        )
    })
}

fn lateness(numbers: &Numbers) -> Option<BrokenBound> {
    let value = numbers.lateness_ms?.p99;
    let limit = (LATENESS_SHARE * numbers.latency_p99_ms.unwrap_or(0.0)).max(LATENESS_MS);
    broken_if(AuditBound::Lateness, value, limit, || {
        format!(
            "requests were released {value:.2} ms late in the 99th percentile, more than {limit:.2} ms: {MORE_CLIENT}"
        )
    })
}

fn ttft_bias(numbers: &Numbers) -> Option<BrokenBound> {
    let ttft = numbers.ttft?;
    let of_mean = ("mean", ttft.bias.mean, BIAS, ttft.mean_added_ms);
    let of_p99 = ("99th percentile of the", ttft.bias.p99, BIAS_OF_P99, ttft.p99_added_ms);
    [of_mean, of_p99].into_iter().filter(|(_, _, _, added_ms)| *added_ms > SMALL_MS).find_map(
        |(name, value, limit, added_ms)| {
            broken_if(AuditBound::TtftBias, value, limit, || {
                format!(
                    "the client's own delay adds {added_ms:.2} ms or {} to the {name} TTFT, more than {}: {MORE_CLIENT}",
                    percent(value),
                    percent(limit)
                )
            })
        },
    )
}

fn idle(numbers: &Numbers) -> Option<BrokenBound> {
    let value = numbers.idle_share?;
    broken_if(AuditBound::IdleSlots, value, IDLE, || {
        format!(
            "the loop's places were empty for {} of their time between an answer and the next request, more than {}, so \
             that less was offered than asked: {MORE_CLIENT}",
            percent(value),
            percent(IDLE)
        )
    })
}

fn rate(numbers: &Numbers) -> Option<BrokenBound> {
    let pacing = numbers.pacing?;
    let value = -pacing.rate_error;
    broken_if(AuditBound::Rate, value, RATE, || {
        format!(
            "{:.2} requests per second were sent where {:.2} were due, {} less and more than {}: {MORE_CLIENT}",
            pacing.sent_per_s,
            pacing.drawn_per_s,
            percent(value),
            percent(RATE)
        )
    })
}

/// Returns the bound as broken if the value is above the limit; busy is broken at its limit too.
fn broken_if(bound: AuditBound, value: f64, limit: f64, message: impl FnOnce() -> String) -> Option<BrokenBound> {
    let is_broken = if bound == AuditBound::Busy { value >= limit } else { value > limit };
    is_broken.then(|| BrokenBound { bound, value, limit, message: message() })
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
