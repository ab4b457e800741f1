//! Whether the values of a result can be believed: was everything completed, is each a number, do they fit together.

use std::collections::BTreeMap;

use isobench_schema::reading::{MetricValue, ReadingProblem, ReadingProblemKind};

/// The metrics whose value may be absent by choice: no limit was set.
const MAY_BE_UNSET: &[&str] = &["max_concurrency"];

/// How far two values that ought to be equal may be apart, relative to the larger one. Rounding of what is printed is
/// allowed for besides.
const TOLERANCE: f64 = 0.05;

/// Half of the last digit of a value that is printed with two decimals.
const ROUNDING: f64 = 0.005;

/// The values of a result and where they are.
pub(super) struct Values<'a> {
    pub(super) metrics: &'a BTreeMap<String, MetricValue>,
    /// The number of requests that were asked for, if it is known.
    pub(super) asked: Option<u64>,
    /// The lines of the values; empty where lines mean nothing.
    pub(super) lines: &'a BTreeMap<String, u64>,
}

impl Values<'_> {
    /// Returns why the values are no measurement, gravest first.
    pub(super) fn problem(&self) -> Option<ReadingProblem> {
        self.nothing_completed()
            .or_else(|| self.some_failed())
            .or_else(|| self.no_number())
            .or_else(|| self.contradiction())
    }

    fn number(&self, metric: &str) -> Option<f64> {
        self.metrics.get(metric).and_then(MetricValue::number)
    }

    fn found(&self, kind: ReadingProblemKind, metric: &str, message: String) -> ReadingProblem {
        ReadingProblem { kind, message, line: self.lines.get(metric).copied() }
    }

    fn nothing_completed(&self) -> Option<ReadingProblem> {
        let Some(completed) = self.number("completed") else { return self.nothing_processed() };
        (completed <= 0.0).then(|| {
            let message = "`completed` is 0: no request was answered, so that nothing was measured".to_owned();
            self.found(ReadingProblemKind::NothingCompleted, "completed", message)
        })
    }

    /// Looks at the rate of those who don't print how many requests were answered.
    fn nothing_processed(&self) -> Option<ReadingProblem> {
        let rate = self.number("total_token_throughput")?;
        (rate == 0.0).then(|| {
            let message =
                "`total_token_throughput` is 0: no token was processed, so that nothing was measured".to_owned();
            self.found(ReadingProblemKind::NothingCompleted, "total_token_throughput", message)
        })
    }

    fn some_failed(&self) -> Option<ReadingProblem> {
        if let Some(failed) = self.number("failed").filter(|failed| *failed > 0.0) {
            let message = format!("`failed` is {failed}, expected 0: the values are of the other requests");
            return Some(self.found(ReadingProblemKind::SomeFailed, "failed", message));
        }
        let (completed, asked) = (self.number("completed")?, self.asked?);
        #[expect(clippy::cast_precision_loss, reason = "numbers of requests are far below 2^52")]
        let is_short = completed < asked as f64;
        is_short.then(|| {
            let message = format!("`completed` is {completed}, but {asked} requests were asked for");
            self.found(ReadingProblemKind::SomeFailed, "completed", message)
        })
    }

    fn no_number(&self) -> Option<ReadingProblem> {
        let is_missing = |name: &&String| !MAY_BE_UNSET.contains(&name.as_str());
        let (name, _) = self
            .metrics
            .iter()
            .filter(|(name, value)| is_missing(name) && matches!(value, MetricValue::NotANumber))
            .min_by_key(|(name, _)| self.lines.get(*name))?;
        let message = format!("`{name}` is printed without a number, where one is expected");
        Some(self.found(ReadingProblemKind::NotANumber, name, message))
    }

    /// Returns where two values that follow from each other don't fit by far.
    fn contradiction(&self) -> Option<ReadingProblem> {
        self.negative()
            .or_else(|| self.rate("request_throughput", &["completed"]))
            .or_else(|| self.rate("output_throughput", &["total_output_tokens"]))
            .or_else(|| self.rate("input_throughput", &["total_input_tokens"]))
            .or_else(|| self.rate("total_token_throughput", &["total_input_tokens", "total_output_tokens"]))
            .or_else(|| self.part("output_throughput", "total_token_throughput"))
            .or_else(|| self.part("input_throughput", "total_token_throughput"))
            .or_else(|| self.part("request_goodput", "request_throughput"))
    }

    fn negative(&self) -> Option<ReadingProblem> {
        let (name, value) = self
            .metrics
            .iter()
            .filter_map(|(name, value)| Some((name, value.number()?)))
            .find(|(_, value)| *value < 0.0)?;
        let message = format!("`{name}` is {value}, which can't be below 0");
        Some(self.found(ReadingProblemKind::Contradictory, name, message))
    }

    /// Checks that a rate is a number of things over the duration.
    fn rate(&self, rate: &str, counts: &[&str]) -> Option<ReadingProblem> {
        let (printed, duration) = (self.number(rate)?, self.number("duration_s")?);
        let mut count = 0.0;
        for name in counts {
            count += self.number(name)?;
        }
        let expected = printed * duration;
        let allowed = TOLERANCE * expected.max(count) + ROUNDING * (printed + duration) + 1.0;
        ((expected - count).abs() > allowed).then(|| {
            let counted = counts.join("` + `");
            let message =
                format!("`{rate}` is {printed} over a `duration_s` of {duration}, but `{counted}` is {count}");
            self.found(ReadingProblemKind::Contradictory, rate, message)
        })
    }

    /// Checks that a part isn't more than the whole.
    fn part(&self, part: &str, whole: &str) -> Option<ReadingProblem> {
        let (less, more) = (self.number(part)?, self.number(whole)?);
        (less > more * (1.0 + TOLERANCE) + 2.0 * ROUNDING).then(|| {
            let message = format!("`{part}` is {less}, more than the {more} of `{whole}`, which it is a part of");
            self.found(ReadingProblemKind::Contradictory, part, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[(&str, f64)], asked: Option<u64>, expected: Option<(ReadingProblemKind, &str)>) {
        let metrics = values.iter().map(|(name, value)| {
            let value = if value.is_nan() { MetricValue::NotANumber } else { MetricValue::Number(*value) };
            ((*name).to_owned(), value)
        });
        let metrics = metrics.collect();
        let problem = Values { metrics: &metrics, asked, lines: &BTreeMap::new() }.problem();
        assert_eq!(problem.as_ref().map(|problem| (problem.kind, problem.message.as_str())), expected, "{values:?}");
    }

    #[test]
    fn values_that_fit_are_believed() {
        check(&[("completed", 200.0), ("duration_s", 58.91), ("request_throughput", 3.39)], Some(200), None);
        check(&[("completed", 2.0), ("duration_s", 400.0), ("request_throughput", 0.01)], None, None);
        check(&[("max_concurrency", f64::NAN), ("completed", 1.0)], None, None);
        check(&[("completed", 500.0)], Some(200), None);
    }

    #[test]
    fn values_that_are_no_measurement_say_why() {
        use ReadingProblemKind::{Contradictory, NotANumber, NothingCompleted, SomeFailed};
        let nothing = "`completed` is 0: no request was answered, so that nothing was measured";
        check(&[("completed", 0.0), ("mean_ttft_ms", f64::NAN)], None, Some((NothingCompleted, nothing)));
        let no_token = "`total_token_throughput` is 0: no token was processed, so that nothing was measured";
        check(
            &[("request_throughput", 0.0), ("total_token_throughput", 0.0)],
            None,
            Some((NothingCompleted, no_token)),
        );
        let failed = "`failed` is 3, expected 0: the values are of the other requests";
        check(&[("completed", 197.0), ("failed", 3.0)], None, Some((SomeFailed, failed)));
        let short = "`completed` is 197, but 200 requests were asked for";
        check(&[("completed", 197.0)], Some(200), Some((SomeFailed, short)));
        let nan = "`mean_ttft_ms` is printed without a number, where one is expected";
        check(&[("completed", 1.0), ("mean_ttft_ms", f64::NAN)], None, Some((NotANumber, nan)));
        let rate = "`request_throughput` is 33.9 over a `duration_s` of 58.91, but `completed` is 200";
        let values = [("completed", 200.0), ("duration_s", 58.91), ("request_throughput", 33.9)];
        check(&values, None, Some((Contradictory, rate)));
        let part = "`output_throughput` is 9, more than the 3 of `total_token_throughput`, which it is a part of";
        check(&[("output_throughput", 9.0), ("total_token_throughput", 3.0)], None, Some((Contradictory, part)));
        check(&[("duration_s", -1.0)], None, Some((Contradictory, "`duration_s` is -1, which can't be below 0")));
    }
}
