//! When requests are sent, how connections are kept, and how a load is stopped.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "all of it is test code")]

mod support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use isobench_loadgen::cancel::{Cancel, StopCause};
use isobench_loadgen::client::{Client, LoadError};
use isobench_loadgen::clock::Clock;
use isobench_loadgen::get::{discover, get};
use isobench_loadgen::record::RecordWriter;
use isobench_loadgen::schedule::{Resources, Schedule, Schedules};
use isobench_loadgen::target::{Endpoint, Target};
use isobench_schema::failure::FailureClass;
use isobench_schema::format;
use isobench_schema::ids::Digest;
use isobench_schema::record::{Phase, RecordHeader, RequestRecord};
use isobench_schema::workload::{Api, Arrival, Workload};
use support::{
    LONG, STREAM_HEAD, load, load_until, one_by_one, patient, read_request, server, text_event, whole_answer, workload,
    write,
};
use tokio::sync::{Barrier, mpsc};

/// Starts a server that answers only when `together` requests are under way; returns the most that it has seen.
async fn crowd_server(together: usize) -> (String, Arc<AtomicUsize>) {
    let barrier = Arc::new(Barrier::new(together));
    let (under_way, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    let url = server(move |_, mut stream| {
        let (barrier, under_way, most) = (Arc::clone(&barrier), Arc::clone(&under_way), Arc::clone(&most));
        async move {
            while read_request(&mut stream).await.is_some() {
                most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                barrier.wait().await;
                under_way.fetch_sub(1, Ordering::SeqCst);
                write(&mut stream, whole_answer().as_bytes()).await;
            }
        }
    })
    .await;
    (url, seen)
}

#[tokio::test]
async fn a_closed_loop_keeps_exactly_its_concurrency_under_way() {
    let (url, most) = crowd_server(4).await;
    let (records, summary) = load(&url, &workload(20, Arrival::closed(4)), patient()).await;
    assert_eq!((summary.completed, most.load(Ordering::SeqCst)), (20, 4));
    let mut indices: Vec<u32> = records.iter().map(|record| record.index).collect();
    indices.sort_unstable();
    assert_eq!(indices, (0..20).collect::<Vec<u32>>());
    assert_eq!(summary.first_intended_ns, records.iter().map(|record| record.intended_ns).min());
    assert_eq!(summary.last_end_ns, records.iter().map(|record| record.end_ns).max());
    // A turn comes only when the request before it has ended.
    let ends: Vec<u64> = records.iter().map(|record| record.end_ns).collect();
    for record in records.iter().filter(|record| record.index >= 4) {
        let before = ends.iter().filter(|end| **end <= record.intended_ns).count();
        assert!(before >= record.index as usize - 3, "request {} began after {before} ends", record.index);
    }
}

#[tokio::test]
async fn an_open_loop_sends_at_its_times_however_many_are_under_way() {
    let (url, most) = crowd_server(30).await;
    let workload = workload(30, Arrival::Open { rate_per_s: 500.0, burstiness: 1.0 });
    let (mut records, summary) = load(&url, &workload, patient()).await;
    assert_eq!((summary.completed, most.load(Ordering::SeqCst)), (30, 30));
    records.sort_by_key(|record| record.index);
    let schedule = Schedule::new(&workload, 7, Phase::Measure, &Resources::default()).unwrap();
    let start_ns = records[0].intended_ns - schedule.entries()[0].offset_ns;
    for (record, request) in records.iter().zip(schedule.entries()) {
        assert_eq!(record.intended_ns, start_ns + request.offset_ns);
        assert!(record.sent_ns.unwrap() >= record.intended_ns);
    }
}

#[tokio::test]
async fn all_at_once_means_all_at_once() {
    let (url, most) = crowd_server(25).await;
    let (records, summary) = load(&url, &workload(25, Arrival::AllAtOnce), patient()).await;
    assert_eq!((summary.completed, most.load(Ordering::SeqCst)), (25, 25));
    assert!(records.iter().all(|record| record.intended_ns == records[0].intended_ns));
}

#[tokio::test]
async fn requests_go_out_in_order_as_the_schedule_has_them() {
    let (sender, mut seen) = mpsc::unbounded_channel();
    let url = server(move |_, mut stream| {
        let sender = sender.clone();
        async move {
            while let Some(request) = read_request(&mut stream).await {
                sender.send(request).unwrap();
                write(&mut stream, whole_answer().as_bytes()).await;
            }
        }
    })
    .await;
    let workload = Workload { api: Api::Chat, ..one_by_one(3) };
    load(&format!("{url}/v1"), &workload, patient()).await;
    let schedule = Schedule::new(&workload, 7, Phase::Measure, &Resources::default()).unwrap();
    for entry in schedule.entries() {
        let (head, body) = seen.recv().await.unwrap();
        assert!(head.starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{head}");
        assert!(head.contains("\r\nAccept-Encoding: identity\r\n"), "{head}");
        let mut expected = Vec::new();
        schedule.write_body(entry, "tiny", &[], &mut expected).unwrap();
        assert_eq!(body, serde_json::from_slice::<serde_json::Value>(&expected).unwrap());
    }
}

/// What a server does with one request.
#[derive(Debug, Clone, Copy)]
enum Act {
    /// It answers and keeps the connection.
    Answer,
    /// It answers, says that it closes, and does.
    AnswerAndClose,
    /// It closes the connection.
    Close,
    /// It sends one byte and closes the connection.
    ByteAndClose,
}

/// Sends one request after the other to a server that does `acts`; returns how many connections it had, how many were
/// sent once more, and how each ended.
async fn check_connections(acts: &'static [Act], requests: u32) -> (usize, u32, Vec<Option<FailureClass>>) {
    let (connections, next) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&connections);
    let url = server(move |_, mut stream| {
        connections.fetch_add(1, Ordering::SeqCst);
        let next = Arc::clone(&next);
        async move {
            while read_request(&mut stream).await.is_some() {
                match acts[next.fetch_add(1, Ordering::SeqCst)] {
                    Act::Answer => write(&mut stream, whole_answer().as_bytes()).await,
                    Act::AnswerAndClose => {
                        let answer = whole_answer().replacen("\r\n", "\r\nConnection: close\r\n", 1);
                        return write(&mut stream, answer.as_bytes()).await;
                    }
                    Act::Close => return,
                    Act::ByteAndClose => return write(&mut stream, b"H").await,
                }
            }
        }
    })
    .await;
    let (records, summary) = load(&url, &one_by_one(requests), patient()).await;
    let ends = records.iter().map(|record| record.failure.as_ref().map(|failure| failure.class)).collect();
    (seen.load(Ordering::SeqCst), summary.audit.reconnects, ends)
}

#[tokio::test]
async fn connections_are_kept_as_long_as_the_server_keeps_them() {
    use Act::{Answer, AnswerAndClose};
    assert_eq!(check_connections(&[Answer, Answer, Answer], 3).await, (1, 0, vec![None; 3]));
    assert_eq!(check_connections(&[AnswerAndClose, Answer, Answer], 3).await, (2, 0, vec![None; 3]));
}

#[tokio::test]
async fn only_a_kept_connection_that_closes_unanswered_is_replaced_and_only_once() {
    use Act::{Answer, ByteAndClose, Close};
    let failed = Some(FailureClass::ConnectionFailed);
    assert_eq!(check_connections(&[Answer, Close, Answer], 2).await, (2, 1, vec![None, None]));
    assert_eq!(check_connections(&[Answer, Close, Close], 2).await, (2, 1, vec![None, failed]));
    assert_eq!(check_connections(&[Answer, ByteAndClose], 2).await, (1, 0, vec![None, failed]));
    assert_eq!(check_connections(&[Close, Answer], 2).await, (2, 0, vec![failed, None]));
}

#[tokio::test]
async fn a_stopped_load_ends_what_is_under_way_and_begins_nothing_more() {
    let causes = [
        (StopCause::Interrupted, FailureClass::Interrupted),
        (StopCause::WorkloadTimeout, FailureClass::WorkloadTimeout),
        (StopCause::ServerDied, FailureClass::ServerDied),
    ];
    for (cause, class) in causes {
        let cancel = Cancel::new();
        let (switch, begun) = (cancel.clone(), Arc::new(AtomicUsize::new(0)));
        let url = server(move |_, mut stream| {
            let (switch, begun) = (switch.clone(), Arc::clone(&begun));
            async move {
                read_request(&mut stream).await.unwrap();
                let event = text_event(" a");
                write(&mut stream, format!("{STREAM_HEAD}{:x}\r\n{event}\r\n", event.len()).as_bytes()).await;
                if begun.fetch_add(1, Ordering::SeqCst) == 2 {
                    switch.stop(cause);
                }
                read_request(&mut stream).await;
            }
        })
        .await;
        let workload = workload(50, Arrival::closed(3));
        let (records, summary) = load_until(&url, &workload, patient(), cancel).await;
        assert_eq!((records.len(), summary.failed, summary.completed), (3, 3, 0));
        assert_eq!((summary.asked, summary.stopped), (50, Some(cause)));
        assert!(records.iter().all(|record| record.failure.as_ref().unwrap().class == class));
    }
}

#[tokio::test]
async fn an_open_loop_stops_while_it_waits_for_a_time() {
    let cancel = Cancel::new();
    cancel.stop(StopCause::Interrupted);
    cancel.stop(StopCause::ServerDied);
    let workload = workload(3, Arrival::Open { rate_per_s: 0.000_1, burstiness: 1.0 });
    let (records, summary) = load_until("http://127.0.0.1:9", &workload, patient(), cancel).await;
    assert_eq!((records.len(), summary.first_intended_ns), (0, None));
    assert_eq!(summary.stopped, Some(StopCause::Interrupted));
}

#[tokio::test]
async fn a_record_that_can_not_be_stored_ends_the_load() {
    let (url, _) = crowd_server(1).await;
    let schedule =
        std::sync::Arc::new(Schedule::new(&one_by_one(5), 7, Phase::Measure, &Resources::default()).unwrap());
    let client = Client::new(Target::parse(&url, "tiny").unwrap(), patient(), Clock::start(), Cancel::new());
    let mut calls = 0;
    let result = client
        .run_phase(&schedule, |_| {
            calls += 1;
            Err(io::ErrorKind::StorageFull.into())
        })
        .await;
    assert!(matches!(result, Err(LoadError::Record { .. })));
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn records_are_one_line_each_behind_a_header() {
    let (url, _) = crowd_server(1).await;
    let workload = one_by_one(2);
    let schedules = Schedules::new(&workload, 7, &Resources::default()).unwrap();
    let clock = Clock::start();
    let client = Client::new(Target::parse(&url, "tiny").unwrap(), patient(), clock, Cancel::new());
    let header = clock.header(7, schedules.digest());
    let mut writer = RecordWriter::new(Vec::new(), &header).unwrap();
    let mut records = Vec::new();
    for phase in [Phase::First, Phase::Measure] {
        let summary = client
            .run_phase(schedules.phase(phase), |record| {
                writer.write(&record)?;
                records.push(record);
                Ok(())
            })
            .await
            .unwrap();
        assert_eq!(summary.phase, phase);
    }
    let written = writer.written();
    let text = String::from_utf8(writer.finish().unwrap()).unwrap();
    assert_eq!((written.digest, written.bytes), (Digest::of(text.as_bytes()), text.len() as u64));
    let mut lines = text.lines();
    assert_eq!(format::from_slice::<RecordHeader>(lines.next().unwrap().as_bytes()).unwrap(), header);
    let read: Vec<RequestRecord> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((read.len(), read), (3, records));
}

#[tokio::test]
async fn questions_are_asked_on_a_connection_of_their_own() {
    let url = server(|number, mut stream| async move {
        let (head, _) = read_request(&mut stream).await.unwrap();
        assert!(head.starts_with("GET /v1/models HTTP/1.1\r\n") || head.starts_with("GET /health "), "{head}");
        let (status, body) = match number {
            0 => ("200 OK", r#"{"data":[{"id":"tiny"},{"id":"other"}]}"#),
            1 => ("200 OK", r#"{"data":[]}"#),
            2 => ("404 Not Found", "what?"),
            _ => ("503 Busy", ""),
        };
        write(&mut stream, format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).as_bytes())
            .await;
    })
    .await;
    let endpoint = Endpoint::parse(&url).unwrap();
    assert_eq!(discover(&endpoint, LONG).await.unwrap().model, "tiny");
    assert_eq!(discover(&endpoint, LONG).await.unwrap_err().to_string(), "the server serves no model");
    assert_eq!(
        discover(&endpoint, LONG).await.unwrap_err().to_string(),
        "the server doesn't say which models it serves (status 404): what?"
    );
    let reply = get(&endpoint, "/health", LONG).await.unwrap();
    assert_eq!((reply.status, reply.body), (503, Vec::new()));
}

#[tokio::test]
async fn a_question_without_an_answer_ends_in_time() {
    let url = server(|_, mut stream| async move {
        read_request(&mut stream).await;
        read_request(&mut stream).await;
    })
    .await;
    let endpoint = Endpoint::parse(&url).unwrap();
    let error = get(&endpoint, "/health", support::SHORT).await.unwrap_err();
    assert_eq!(error.to_string(), "`GET /health` wasn't answered within 0.12 s");
}
