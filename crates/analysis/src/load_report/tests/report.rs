//! The native result.

use isobench_schema::load_result::{LoadSlice, ServerMetric};
use isobench_schema::record::{ServerLine, ServerSample};

use super::*;
use crate::measure::RecordReader;
use crate::measure::tests::{launch_id, record};

#[test]
fn numbers_are_those_of_a_run() {
    for count in [10, 100, 700] {
        let records = uneven(count);
        let result = report_with(&records, None).result;
        let workload = workload(count);
        let mut reader = RecordReader::new(launch_id(), options(&workload).rules);
        reader.feed(text(&records).as_bytes());
        let measurement = reader.finish().unwrap().measurement;
        for (name, value) in &measurement.values {
            assert_eq!(result.metrics.get(name.as_str()), Some(value), "{name} of {count}");
        }
        for name in &measurement.too_few {
            assert!(!result.metrics.contains_key(name.as_str()), "{name} of {count}");
            assert!(result.too_few.iter().any(|key| key == name.as_str()), "{name} of {count}");
        }
        assert_eq!(result.metrics.get("failed"), Some(&real(measurement.requests.failed)));
        assert_eq!(result.metrics.get("duration"), Some(&measurement.window_s));
    }
}

#[test]
fn each_metric_has_its_clock() {
    let mut one = record(Phase::Measure, 0);
    one.released_ns = Some(10 * MS);
    one.chunk_ns = vec![30 * MS, 40 * MS, 60 * MS];
    one.chunk_tokens = vec![1, 1, 2];
    one.content_chunk = Some(1);
    let metrics = report_with(std::slice::from_ref(&one), None).result;
    for (name, expected) in [
        ("mean_ttft_ms", 20.0),
        ("mean_ttfc_ms", 30.0),
        ("mean_itl_ms", 10.0),
        ("mean_icl_ms", 15.0),
        ("median_icl_ms", 15.0),
        ("mean_tpot_ms", 35.0 / 3.0),
        ("mean_e2el_ms", 55.0),
        ("max_concurrent_requests", 1.0),
        ("max_output_tokens_per_s", 4.0),
        ("total_output_tokens", 4.0),
    ] {
        close(metrics.metrics[name], expected, name);
    }
    assert!(!metrics.metrics.contains_key("std_ttft_ms"), "one value has no deviation");
    for (name, expected) in [("mean_ttft_ms", 19.0), ("mean_ttfc_ms", 29.0), ("mean_e2el_ms", 54.0)] {
        close(metrics.from_send[name], expected, name);
    }
    one.content_chunk = Some(3);
    assert!(!report_with(&[one], None).result.metrics.contains_key("mean_ttfc_ms"));
}

#[test]
fn answers_without_tokens_have_an_end_to_end_latency_only() {
    let mut records = uneven(20);
    for record in &mut records {
        (record.chunk_ns, record.chunk_tokens) = (Vec::new(), Vec::new());
    }
    let result = report_with(&records, None).result;
    for key in result.metrics.keys().chain(&result.too_few).chain(result.distributions.keys()) {
        let has_tokens = ["ttft", "ttfc", "tpot", "itl", "icl", "output"].iter().any(|name| key.contains(name));
        assert!(!has_tokens, "{key}");
    }
    assert!(result.metrics.contains_key("mean_e2el_ms") && result.metrics.contains_key("total_token_throughput"));
}

#[test]
fn percentiles_need_enough_requests_and_have_intervals() {
    let result = report_with(&uneven(141), None).result;
    assert_eq!(result.requests_needed.get("p99"), Some(&662));
    // One answer has no time per output token, so that there are 129 of them.
    let needed: Vec<&str> = result.requests_needed.keys().map(String::as_str).collect();
    assert_eq!(needed, ["p95", "p99", "p99.9"]);
    for key in ["p99_ttft_ms", "p99.9_ttft_ms", "p95_ttft_ms", "p99_itl_ms"] {
        let is_missing = result.too_few.iter().any(|name| name == key);
        // 130 of 141 didn't fail: just enough for a 95th percentile.
        assert_eq!(
            (is_missing, result.metrics.contains_key(key)),
            (key != "p95_ttft_ms", key == "p95_ttft_ms"),
            "{key}"
        );
        assert!(!is_missing || !result.intervals.contains_key(key), "{key}");
    }
    for key in ["mean_ttft_ms", "median_ttft_ms", "p50_ttft_ms", "p90_ttft_ms", "mean_itl_ms", "median_itl_ms"] {
        let (value, interval) = (result.metrics[key], result.intervals[key]);
        assert!(interval.low <= value && value <= interval.high && interval.low < interval.high, "{key}: {interval:?}");
    }
}

#[test]
fn goodput_counts_failed_requests_as_bad() {
    let result = report_with(&uneven(40), Some("ttft<=100ms && tpot<=12ms && tokens>2")).result;
    let goodput = result.goodput.unwrap();
    let good = |record: &&RequestRecord| {
        let ttft = (record.chunk_ns[0] - record.intended_ns) / MS;
        record.failure.is_none() && ttft <= 100 && record.output_tokens() > 2
    };
    let expected = u64::try_from(uneven(40).iter().filter(good).count()).unwrap();
    assert_eq!(goodput.good, expected);
    close(goodput.share, real(expected) / 40.0, "share");
    close(goodput.request_goodput, real(expected) / result.metrics["duration"], "goodput");
    let gaps = report_with(&uneven(40), Some("itl_max<=22ms && icl_max<=22ms && itl_p99<=22ms")).result;
    assert_eq!(gaps.goodput.unwrap().good, 37);
    let none = report_with(&uneven(40), Some("icl_max<10ms")).result.goodput.unwrap().good;
    assert_eq!(none, 1, "only the answer of one chunk has no gap");
}

#[test]
fn failures_are_counted_by_class() {
    let mut records = uneven(40);
    let stalled = RequestFailure { class: FailureClass::StreamStalled, message: "silent".to_owned() };
    records[0].failure = Some(stalled);
    let failures = report_with(&records, None).result.failures;
    assert_eq!(failures.len(), 2);
    assert_eq!((failures[0].class, failures[0].count), (FailureClass::HttpError, 3));
    assert_eq!(failures[0].examples, ["status 501", "status 500"]);
    assert_eq!((failures[1].class, failures[1].count), (FailureClass::StreamStalled, 1));
}

#[test]
fn slices_and_halves_add_up_to_the_window() {
    let records = uneven(400);
    let result = report_with(&records, None).result;
    assert!(result.series.len() <= LoadSlice::MOST && result.series.len() > 40, "{}", result.series.len());
    let completed: u64 = result.series.iter().map(|slice| slice.completed).sum();
    let failed: u64 = result.series.iter().map(|slice| slice.failed).sum();
    assert_eq!((real(completed), real(failed)), (result.metrics["completed"], result.metrics["failed"]));
    let tokens: f64 = result.series.iter().map(|slice| slice.output_throughput * slice.length_s).sum();
    close(tokens, result.metrics["total_output_tokens"], "tokens");
    let length: f64 = result.series.iter().map(|slice| slice.length_s).sum();
    close(length, result.metrics["duration"], "length");
    let under_way: f64 = result.series.iter().map(|slice| slice.in_flight * slice.length_s).sum();
    let expected: u64 = records.iter().map(|record| record.end_ns - record.released_ns.unwrap()).sum();
    close(under_way, real(expected) / 1e9, "in flight");
    for slice in &result.series {
        if let Some(median) = slice.median_itl_ms {
            assert!((4.9..22.3).contains(&median), "{median}");
        }
    }
    let [first, second] = result.halves.unwrap();
    for name in ["request_throughput", "output_throughput"] {
        close(f64::midpoint(first[name], second[name]), result.metrics[name], name);
    }
    assert!(first.contains_key("mean_itl_ms") && second.contains_key("p90_e2el_ms"));
}

/// Returns the summary of a metric that was looked at before and after the window and within it.
fn looked_at(looks: &[(u64, f64)]) -> Option<ServerMetric> {
    // The first request is due at 0.
    let records: Vec<RequestRecord> = uneven(10).into_iter().skip(2).collect();
    let mut lines = text(&records);
    for (at_ns, value) in looks {
        let server = ServerSample { at_ns: *at_ns, values: [("waiting".to_owned(), *value)].into() };
        lines += &(serde_json::to_string(&ServerLine { server }).unwrap() + "\n");
    }
    let workload = workload(10);
    let mut reader = LoadReader::new(options(&workload));
    reader.feed(lines.as_bytes());
    reader.finish(facts(workload)).unwrap().result.server.get("waiting").copied()
}

#[test]
fn the_servers_own_metrics_are_summed_up_over_the_window() {
    let numbers = |found: ServerMetric| (found.looks, [found.first, found.last, found.min, found.mean, found.max]);
    let within = [(100 * MS, 3.0), (120 * MS, 1.0), (130 * MS, 5.0)];
    assert_eq!(numbers(looked_at(&within).unwrap()), (3, [3.0, 5.0, 1.0, 3.0, 5.0]));
    let around = [(1, 90.0), (MS, 2.0), (u64::MAX - 1, 100.0), (u64::MAX, 900.0)];
    let all: Vec<(u64, f64)> = around.into_iter().chain(within).collect();
    assert_eq!(numbers(looked_at(&all).unwrap()), (3, [2.0, 100.0, 1.0, 3.0, 5.0]));
    // No look fell into a short window.
    assert_eq!(numbers(looked_at(&around).unwrap()), (2, [2.0, 100.0, 2.0, 51.0, 100.0]));
    assert_eq!(looked_at(&around[..2]), None, "nothing says how it ended");
}

#[test]
fn nothing_is_made_up_where_nothing_was_measured() {
    let result = report_with(&[], None).result;
    assert_eq!(result.metrics.keys().collect::<Vec<_>>(), ["completed", "failed", "max_concurrent_requests"]);
    assert!(result.series.is_empty() && result.halves.is_none() && result.intervals.is_empty());
    let text = isobench_schema::format::to_line(&report_with(&uneven(700), Some("ttft:1")).result).unwrap();
    assert!(!text.contains("null") && !text.contains("NaN"));
    let mut cut = LoadReader::new(options(&workload(1)));
    cut.feed(b"{}\n");
    assert!(cut.finish(facts(workload(1))).is_err());
}
