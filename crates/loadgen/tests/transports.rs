//! The same load over TCP, Unix sockets, TLS and HTTP/2, against a server that knows when each token left.

mod support;

use std::sync::Arc;
use std::time::Duration;

use isobench_loadgen::cancel::Cancel;
use isobench_loadgen::client::{Client, LoadOptions, PhaseSummary};
use isobench_loadgen::clock::Clock;
use isobench_loadgen::get::{discover, get};
use isobench_loadgen::schedule::{Resources, Schedule};
use isobench_loadgen::target::{Endpoint, HttpVersion, Manner, Target};
use isobench_loadgen::tls::Trust;
use isobench_schema::failure::FailureClass;
use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::workload::{Arrival, Workload};
use isobench_testkit::TruthServer;

const LONG: Duration = Duration::from_secs(60);
/// A first token after 20 ms, and one every 2 ms.
const STEADY: &str = "ttft_us=20000&itl_us=2000";
const REQUESTS: u32 = 24;

async fn load(endpoint: Endpoint, workers: usize) -> (Vec<RequestRecord>, PhaseSummary) {
    let workload = Workload { requests: REQUESTS, arrival: Arrival::closed(8), ..support::one_by_one(REQUESTS) };
    let schedule =
        Arc::new(Schedule::new(&workload, 7, Phase::Measure, &Resources::default()).expect("the workload can be sent"));
    let options = LoadOptions { workers, ..LoadOptions::new(LONG, LONG) };
    let client = Client::new(Target::new(endpoint, "mock"), options, Clock::start(), Cancel::new());
    let mut records = Vec::new();
    let summary = client.run_phase(&schedule, |record| {
        records.push(record);
        Ok(())
    });
    let summary = summary.await.expect("the load can be carried");
    (records, summary)
}

/// Checks that every answer is whole, and no token was seen before it left: the server's times are of the same clock, so
/// durations can be compared request by request where they come in the same order, and here at least in their least.
fn check(server: &TruthServer, records: &[RequestRecord], summary: &PhaseSummary) {
    let failures: Vec<_> = records.iter().filter_map(|record| record.failure.as_ref()).collect();
    assert!(failures.is_empty(), "{failures:?}");
    assert_eq!((summary.completed, summary.failed), (REQUESTS, 0));
    let log = server.log();
    assert_eq!(log.iter().filter(|truth| truth.outcome == "done").count(), REQUESTS as usize);
    for record in records {
        assert_eq!(record.output_tokens(), u64::from(record.output_tokens_asked), "{record:?}");
        let first_ns = record.chunk_ns.first().expect("a token came") - record.intended_ns;
        assert!(first_ns >= 20_000_000, "a token came {first_ns} ns after its request, before it can have left");
        assert!(record.released_ns >= Some(record.intended_ns));
        assert!(record.first_out_ns >= record.released_ns && record.sent_ns >= record.first_out_ns);
    }
    let audit = &summary.audit;
    assert!(audit.reads > 0 && audit.connections > 0);
    assert_eq!(audit.lag_ns.iter().map(|(_, count)| count).sum::<u64>(), audit.stamped_reads);
}

#[tokio::test]
async fn over_tcp_with_one_and_two_workers() {
    for workers in [1, 2] {
        let server = TruthServer::start(STEADY);
        let (records, summary) = load(Endpoint::parse(server.url()).unwrap(), workers).await;
        check(&server, &records, &summary);
        assert_eq!(summary.audit.workers, u32::try_from(workers).unwrap());
        assert!(summary.audit.stamped_reads > 0, "{:?}", summary.audit);
        // The connections of the closed loop, made before it began.
        assert_eq!(summary.audit.connections, 8);
        assert!(records.iter().all(|record| record.connected_ns.is_none()));
    }
}

#[tokio::test]
async fn through_a_unix_socket() {
    let server = TruthServer::start(STEADY);
    let endpoint = Endpoint::parse("http://localhost").unwrap().through(server.socket()).unwrap();
    assert_eq!(discover(&endpoint, LONG).await.unwrap().model, "mock");
    let (records, summary) = load(endpoint, 1).await;
    check(&server, &records, &summary);
}

fn manner(server: &TruthServer, http: HttpVersion) -> Manner {
    Manner { http, trust: Trust::SystemAnd(server.certificate()) }
}

#[tokio::test]
async fn over_tls_with_a_certificate_that_is_trusted() {
    let server = TruthServer::start_with(STEADY, &["--tls"]);
    let endpoint = Endpoint::parse_with(server.url(), &manner(&server, HttpVersion::Auto)).unwrap();
    assert_eq!(get(&endpoint, "/health", LONG).await.unwrap().status, 200);
    let (records, summary) = load(endpoint, 1).await;
    check(&server, &records, &summary);
}

#[tokio::test]
async fn nothing_of_an_open_loop_is_due_while_keys_are_agreed_on() {
    for options in [&["--tls"][..], &["--http2", "--tls"][..]] {
        let server = TruthServer::start_with(STEADY, options);
        let endpoint = Endpoint::parse_with(server.url(), &manner(&server, HttpVersion::Auto)).unwrap();
        // Any time since the clock's zero is past the first requests' offsets.
        let clock = Clock::start();
        std::thread::sleep(Duration::from_millis(20));
        let arrival = Arrival::Constant { rate_per_s: 500.0 };
        let workload = Workload { requests: REQUESTS, arrival, ..support::one_by_one(REQUESTS) };
        let schedule = Arc::new(Schedule::new(&workload, 7, Phase::Measure, &Resources::default()).unwrap());
        let client = Client::new(Target::new(endpoint, "mock"), LoadOptions::new(LONG, LONG), clock, Cancel::new());
        let mut records = Vec::new();
        let summary = client.run_phase(&schedule, |record| {
            records.push(record);
            Ok(())
        });
        let began_ns = summary.await.unwrap().audit.began_ns;
        for record in &records {
            let offset_ns = schedule.entries()[record.index as usize].offset_ns;
            assert_eq!(record.intended_ns, began_ns + offset_ns, "{options:?}: {record:?}");
        }
        assert_eq!(records.len(), REQUESTS as usize);
    }
}

#[tokio::test]
async fn a_certificate_that_nobody_trusts_is_refused_unless_anybody_is_trusted() {
    let server = TruthServer::start_with(STEADY, &["--tls"]);
    let (records, _) = load(Endpoint::parse(server.url()).unwrap(), 1).await;
    let failure = records[0].failure.as_ref().unwrap();
    assert_eq!(failure.class, FailureClass::ConnectionFailed);
    assert!(failure.message.contains("certificate"), "{}", failure.message);
    let error = get(&Endpoint::parse(server.url()).unwrap(), "/health", LONG).await.unwrap_err();
    assert!(format!("{error:?}").contains("certificate"), "{error:?}");
    let anyone = Manner { trust: Trust::Anyone, ..Manner::default() };
    let (records, summary) = load(Endpoint::parse_with(server.url(), &anyone).unwrap(), 1).await;
    check(&server, &records, &summary);
}

#[tokio::test]
async fn over_http2_with_and_without_tls() {
    for options in [&["--http2"][..], &["--http2", "--tls"][..]] {
        let server = TruthServer::start_with(STEADY, options);
        let manner = match options {
            [_, _] => manner(&server, HttpVersion::Http2),
            _ => Manner { http: HttpVersion::Http2, ..Manner::default() },
        };
        let (records, summary) = load(Endpoint::parse_with(server.url(), &manner).unwrap(), 1).await;
        check(&server, &records, &summary);
        assert_eq!(summary.audit.connections, 1, "one connection carries everything");
    }
}

#[tokio::test]
async fn http2_is_spoken_within_tls_where_the_server_speaks_it() {
    let server = TruthServer::start_with(STEADY, &["--http2", "--tls"]);
    let (records, summary) =
        load(Endpoint::parse_with(server.url(), &manner(&server, HttpVersion::Auto)).unwrap(), 1).await;
    check(&server, &records, &summary);
    assert_eq!(summary.audit.connections, 1);
}
