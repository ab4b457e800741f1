//! What comes of a load against a server that speaks oddly, breaks off, or lies: the right times, or a failure by its name.

mod support;

use std::sync::Arc;
use std::time::Duration;

use isobench_loadgen::cancel::Cancel;
use isobench_loadgen::client::{Client, LoadOptions};
use isobench_loadgen::clock::Clock;
use isobench_loadgen::schedule::{Resources, Schedule};
use isobench_loadgen::target::Target;
use isobench_schema::failure::FailureClass;
use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::workload::{Api, Arrival, TokenCounter, Workload};
use isobench_testkit::TruthServer;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(400);
const TTFT_NS: u64 = 20_000_000;
const REQUESTS: u32 = 4;
const TOKENS: u32 = 8;

async fn load(server: &TruthServer, api: Api, counter: TokenCounter, stall: Duration) -> Vec<RequestRecord> {
    let workload = Workload {
        api,
        counter,
        output_tokens: TOKENS,
        ignore_eos: true,
        arrival: Arrival::closed(2),
        ..support::one_by_one(REQUESTS)
    };
    let schedule =
        Arc::new(Schedule::new(&workload, 7, Phase::Measure, &Resources::default()).expect("the workload can be sent"));
    let options = LoadOptions { exact_lengths: true, ..LoadOptions::new(LONG, stall) };
    let target = Target::parse(server.url(), "mock").expect("the server has an address");
    let client = Client::new(target, options, Clock::start(), Cancel::new());
    let mut records = Vec::new();
    let sent = client.run_phase(&schedule, |record| {
        records.push(record);
        Ok(())
    });
    sent.await.expect("the load can be carried");
    records
}

/// Checks that every answer is whole, has its tokens, and that nothing counts as its first token before one left.
async fn check_whole(api: Api, settings: &str) {
    let server = TruthServer::start(&format!("ttft_us=20000&itl_us=2000&{settings}"));
    let records = load(&server, api, TokenCounter::Usage, LONG).await;
    assert_eq!(records.len(), REQUESTS as usize);
    for record in &records {
        assert_eq!(record.failure, None, "{settings}");
        assert_eq!(record.output_tokens(), u64::from(TOKENS), "{settings}: {record:?}");
        let first_ns = record.chunk_ns.first().copied().unwrap_or(0);
        assert!(
            first_ns >= record.intended_ns + TTFT_NS,
            "{settings}: a chunk before the first token left: {record:?}"
        );
    }
}

#[tokio::test]
async fn odd_ways_to_say_the_same_change_nothing() {
    for settings in [
        "role=2",
        "ka=1",
        "crlf=1",
        "cr=1",
        "lines=1",
        "tpc=4",
        "split_us=1000",
        "split_us=1000&utf8=1",
        "split_bytes=7",
        "nodone=1",
        "nofinish=1",
        "contusage=1",
        "reason=4",
        "tool=4",
        "chunkext=1",
        "trailers=1",
        "framing=length",
        "framing=close",
        "slow_head_us=5000",
        "huge=50000",
    ] {
        check_whole(Api::Chat, settings).await;
    }
    for settings in ["role=0", "empty=1", "tpc=8", "split_us=500&crlf=1", "close_idle=1"] {
        check_whole(Api::Completions, settings).await;
    }
}

/// Checks that every request fails with this class.
async fn check_failed(settings: &str, expected: FailureClass) {
    let server = TruthServer::start(&format!("ttft_us=2000&itl_us=1000&{settings}"));
    let records = load(&server, Api::Completions, TokenCounter::Usage, SHORT).await;
    let classes: Vec<_> = records.iter().map(|record| record.failure.as_ref().map(|failure| failure.class)).collect();
    assert_eq!(classes, vec![Some(expected); REQUESTS as usize], "{settings}: {records:?}");
}

#[tokio::test]
async fn every_broken_answer_fails_by_its_name() {
    use FailureClass::{HttpError, OutputLength, StreamError, StreamMalformed, StreamStalled, StreamTruncated};
    for (settings, expected) in [
        ("errmid=3", StreamError),
        ("errmid=3&errkind=1", StreamError),
        ("finish=abort", StreamError),
        ("abort=3", StreamTruncated),
        ("rst=3", StreamTruncated),
        ("stall=3", StreamStalled),
        ("nodone=1&nofinish=1", StreamTruncated),
        ("short=3", OutputLength),
        ("http_every=1&http_status=429", HttpError),
        ("http_every=1&http_status=503", HttpError),
        ("ctype=text/plain", StreamMalformed),
        ("gzip=1", StreamMalformed),
        ("after_done=1", StreamMalformed),
        ("choices=2", StreamMalformed),
    ] {
        check_failed(settings, expected).await;
    }
}
