//! What an answer makes of the events that servers send, and of how their streams end.

use isobench_schema::record::Phase;

use super::*;

struct Seen {
    text: String,
    tokens: Vec<u32>,
    chunk_ns: Vec<u64>,
    reason: Option<String>,
    usage: Option<u64>,
    failure: Option<(FailureClass, String)>,
}

fn asked(output_tokens: u32) -> Lengths {
    Lengths { input_tokens: 0, output_tokens, exact: false }
}

#[test]
fn an_answer_much_longer_than_asked_is_malformed_and_nothing_more_of_it_is_kept() {
    for (lengths, longest) in [
        (asked(1), 2 * 1024 * 1024 + 4 * 1024),
        (Lengths { input_tokens: 1000, output_tokens: 256, exact: false }, 2 * 1024 * 1024 + 256 * 4 * 1024 + 16_000),
    ] {
        let mut answer = Answer::new(TokenCounter::Whitespace, lengths);
        let event = "data: {\"choices\":[{\"text\":\"a \"}]}\n\n";
        let whole = longest / event.len();
        (0..whole).for_each(|_| answer.push(event.as_bytes(), 1));
        assert_eq!(answer.progress(), Progress::Streaming);
        (0..1000).for_each(|_| answer.push(event.as_bytes(), 2));
        let seen = seen(answer, |_| ());
        let tokens = lengths.output_tokens;
        let message = format!("the answer is longer than {longest} bytes, the most for {tokens} tokens asked");
        assert_eq!((seen.failure, seen.text.len()), (Some((FailureClass::StreamMalformed, message)), 2 * whole));
    }
}

/// Returns the record of an answer that ends so.
fn record(mut answer: Answer, end: fn(&mut Answer)) -> RequestRecord {
    end(&mut answer);
    let mut record = RequestRecord::intended(Phase::Measure, 0, 0);
    record.output_tokens_asked = answer.lengths.output_tokens;
    answer.write(&mut record, 99);
    record
}

fn seen(answer: Answer, end: fn(&mut Answer)) -> Seen {
    let record = record(answer, end);
    Seen {
        text: record.text,
        tokens: record.chunk_tokens,
        chunk_ns: record.chunk_ns,
        reason: record.finish_reason,
        usage: record.usage.map(|usage| usage.completion_tokens),
        failure: record.failure.map(|failure| (failure.class, failure.message)),
    }
}

fn read(counter: TokenCounter, events: &[&str]) -> Seen {
    let mut answer = Answer::new(counter, asked(8));
    for (at, event) in (0..).zip(events) {
        answer.push(format!("data: {event}\n\n").as_bytes(), at);
    }
    seen(answer, |answer| answer.end(99))
}

fn check_failure(events: &[&str], class: FailureClass, message: &str) {
    let failure = read(TokenCounter::Whitespace, events).failure;
    assert_eq!(failure, Some((class, message.to_owned())), "{events:?}");
}

#[test]
fn role_empty_and_usage_events_are_no_chunks() {
    let seen = read(
        TokenCounter::Whitespace,
        &[
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":null}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":" one"}}],"usage":null}"#,
            r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}]}"#,
            r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":77,"total_tokens":80}}"#,
            "[DONE]",
        ],
    );
    assert_eq!((seen.text.as_str(), seen.tokens, seen.chunk_ns), (" one", vec![1], vec![2]));
    assert_eq!((seen.reason.as_deref(), seen.usage, seen.failure), (Some("length"), Some(77), None));
}

#[test]
fn reasoning_and_tool_calls_are_output_and_the_same_reasoning_counts_once() {
    let seen = read(
        TokenCounter::Whitespace,
        &[
            r#"{"choices":[{"delta":{"reasoning":"a b ","reasoning_content":"a b "}}]}"#,
            r#"{"choices":[{"delta":{"reasoning_content":"c "}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f ","arguments":"{ }"}}]}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
        ],
    );
    assert_eq!((seen.text.as_str(), seen.tokens), ("a b c f { }", vec![2, 1, 3]));
    assert_eq!(seen.failure, None);
}

#[test]
fn a_word_that_is_split_over_chunks_counts_where_it_begins() {
    let chunk = |text: &str| format!(r#"{{"choices":[{{"text":"{text}"}}]}}"#);
    let events = ["wo", "rd next", " ", "one\\u00a0two", " "].map(chunk);
    let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
    events.push("[DONE]");
    assert_eq!(read(TokenCounter::Whitespace, &events).tokens, [1, 1, 0, 2, 0]);
}

#[test]
fn tokens_are_counted_by_their_ids_even_where_there_is_no_text() {
    let events = [
        r#"{"choices":[{"text":"","token_ids":[5]}]}"#,
        r#"{"choices":[{"text":"é and more","token_ids":[6,7,8]}]}"#,
        r#"{"choices":[{"text":"","token_ids":[],"finish_reason":"stop"}]}"#,
    ];
    let seen = read(TokenCounter::TokenIds, &events);
    assert_eq!((seen.tokens, seen.failure), (vec![1, 3], None));
}

#[test]
fn text_without_ids_can_not_be_counted_by_ids() {
    let seen = read(TokenCounter::TokenIds, &[r#"{"choices":[{"text":"a"}]}"#, "[DONE]"]);
    let (class, message) = seen.failure.unwrap();
    assert_eq!(class, FailureClass::StreamMalformed);
    assert!(message.starts_with("the server gave no token ids"), "{message}");
}

#[test]
fn an_error_in_the_stream_is_a_failure_whatever_follows() {
    let chunk = r#"{"choices":[{"text":"a"}]}"#;
    let error = r#"{"error":{"message":"boom","code":500}}"#;
    let message = format!("the stream holds an error: {error}");
    check_failure(&[chunk, error, "[DONE]"], FailureClass::StreamError, &message);
    let old = r#"{"object":"error","message":"boom"}"#;
    check_failure(&[chunk, old], FailureClass::StreamError, &format!("the stream holds an error: {old}"));
    let abort = r#"{"choices":[{"text":"","finish_reason":"abort"}]}"#;
    let message = "the engine gave up on the answer with the finish reason `abort`";
    check_failure(&[chunk, abort, "[DONE]"], FailureClass::StreamError, message);
}

#[test]
fn an_event_that_is_not_json_is_malformed_and_shown() {
    let message = "an event can't be read (expected value at line 1 column 12): {\"choices\":oops}";
    check_failure(&[r#"{"choices":oops}"#, "[DONE]"], FailureClass::StreamMalformed, message);
    let other = r#"{"choices":[{"index":1,"text":"a"}]}"#;
    let message = format!("an event holds another choice than the one asked for: {other}");
    check_failure(&[other], FailureClass::StreamMalformed, &message);
    let late = r#"{"choices":[{"text":"late"}]}"#;
    let message = format!("an event came after `[DONE]`: {late}");
    check_failure(&["[DONE]", late], FailureClass::StreamMalformed, &message);
    let mut answer = Answer::new(TokenCounter::Whitespace, asked(1));
    answer.push(b"data: {\"choices\":[{\"text\":\"\xff\"}]}\n\n", 0);
    assert_eq!(answer.progress(), Progress::Failed);
}

#[test]
fn either_a_finish_reason_or_the_end_mark_makes_an_answer_whole() {
    let chunk = r#"{"choices":[{"text":"a"}]}"#;
    let last = r#"{"choices":[{"text":"b","finish_reason":"length"}]}"#;
    assert_eq!(read(TokenCounter::Whitespace, &[chunk, last]).failure, None);
    assert_eq!(read(TokenCounter::Whitespace, &[chunk, "[DONE]"]).failure, None);
    let message = "the stream ended after 1 chunks without a finish reason or `[DONE]`";
    check_failure(&[chunk], FailureClass::StreamTruncated, message);
}

fn cut(stream: &str) -> Option<(FailureClass, String)> {
    let mut answer = Answer::new(TokenCounter::Whitespace, asked(1));
    answer.push(stream.as_bytes(), 0);
    seen(answer, |answer| answer.cut("the server closed the connection", 9)).failure
}

#[test]
fn a_cut_connection_truncates_unless_the_end_mark_had_come() {
    let truncated = |message: &str| Some((FailureClass::StreamTruncated, message.to_owned()));
    let last = "data: {\"choices\":[{\"text\":\"b\",\"finish_reason\":\"length\"}]}\n\n";
    let message = "the server closed the connection after 1 chunks, before the end of the stream";
    assert_eq!(cut(last), truncated(message));
    assert_eq!(cut(&format!("{last}data: [DONE]\n\n")), None);
    assert_eq!(cut(&format!("{last}data: [DONE]")), None);
    assert_eq!(cut("data: {\"choi"), truncated("the stream ended within an event: {\"choi"));
}

/// Returns the record of an answer of 8 tokens with these events.
fn recorded(counter: TokenCounter, exact: bool, events: &[&str]) -> RequestRecord {
    let mut answer = Answer::new(counter, Lengths { input_tokens: 0, output_tokens: 8, exact });
    for (at, event) in (0..).zip(events) {
        answer.push(format!("data: {event}\n\n").as_bytes(), at);
    }
    record(answer, |answer| answer.end(50))
}

fn chat(delta: &str, completion_tokens: u32) -> String {
    let usage = format!(r#"{{"prompt_tokens":3,"completion_tokens":{completion_tokens}}}"#);
    format!(r#"{{"choices":[{{"delta":{delta},"finish_reason":null}}],"usage":{usage}}}"#)
}

fn check_usage(events: &[&str], expected: Result<(&[u32], bool), &str>) {
    let record = recorded(TokenCounter::Usage, false, events);
    let found = match &record.failure {
        None => Ok((record.chunk_tokens.as_slice(), record.spread)),
        Some(failure) => Err(failure.message.as_str()),
    };
    assert_eq!(found, expected, "{events:?}");
}

#[test]
fn usage_with_each_chunk_counts_by_its_growth_and_gives_the_last_chunk_what_comes_after_it() {
    let events = [
        chat(r#"{"role":"assistant","content":""}"#, 0),
        chat(r#"{"reasoning":"a"}"#, 1),
        chat(r#"{"content":""}"#, 2),
        chat(r#"{"content":"b"}"#, 3),
        chat(r#"{"tool_calls":[{"function":{"name":"f","arguments":""}}]}"#, 6),
        chat("{}", 7),
    ];
    let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
    events.push("[DONE]");
    check_usage(&events, Ok((&[1, 2, 4], false)));
}

#[test]
fn usage_at_the_end_is_spread_over_the_chunks_and_said_to_be() {
    let chunk = r#"{"choices":[{"text":"a"}],"usage":null}"#;
    let total = r#"{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":8}}"#;
    check_usage(&[chunk, chunk, chunk, total, "[DONE]"], Ok((&[3, 3, 2], true)));
    let last = r#"{"choices":[{"text":"a","finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":7}}"#;
    check_usage(&[chunk, chunk, last], Ok((&[3, 2, 2], true)));
    // One chunk has all of them, which is no assumption.
    check_usage(&[last], Ok((&[7], false)));
    // A server that sends zeros until it knows better says a total.
    let zero = r#"{"choices":[{"text":"a"}],"usage":{"prompt_tokens":3,"completion_tokens":0}}"#;
    check_usage(&[zero, zero, total, "[DONE]"], Ok((&[4, 4], true)));
    check_usage(&[total, "[DONE]"], Ok((&[], false)));
}

#[test]
fn usage_that_is_missing_or_falls_counts_nothing() {
    let chunk = r#"{"choices":[{"text":"a","finish_reason":"stop"}]}"#;
    let missing = "the server gave no `usage` (`stream_options.include_usage` was asked for), so its tokens can't be counted: \
                   count them by a tokenizer";
    check_usage(&[chunk], Err(missing));
    let events = [chat(r#"{"content":"a"}"#, 2), chat(r#"{"content":"a"}"#, 1)];
    let falls = "the server's `usage` falls while the answer grows, so its tokens can't be counted";
    check_usage(&[&events[0], &events[1], "[DONE]"], Err(falls));
    let huge = chat(r#"{"content":"a"}"#, 0).replace(":0}", ":99999999999}");
    let beyond = "the server claims 99999999999 tokens in 1 chunks, which is beyond belief";
    check_usage(&[&huge, "[DONE]"], Err(beyond));
}

#[test]
fn a_tokenizer_is_given_the_bytes_of_each_chunk() {
    let events = [r#"{"choices":[{"text":"é"}]}"#, r#"{"choices":[{"text":"abc"}]}"#, "[DONE]"];
    let record = recorded(TokenCounter::Tokenizer, true, &events);
    assert_eq!((record.chunk_bytes, record.chunk_tokens, record.failure), (vec![2, 3], vec![0, 0], None));
}

fn content_chunk(events: &[&str]) -> Option<u32> {
    recorded(TokenCounter::Usage, false, events).content_chunk
}

#[test]
fn the_first_chunk_with_content_is_known_where_it_is_not_the_first_one() {
    let role = r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#;
    let content = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
    let reasoning = r#"{"choices":[{"delta":{"reasoning":"a"}}]}"#;
    let ids = r#"{"choices":[{"text":"","token_ids":[1]}]}"#;
    assert_eq!(content_chunk(&[role, content, reasoning]), None);
    assert_eq!(content_chunk(&[role, reasoning, reasoning, content, content]), Some(2));
    assert_eq!(content_chunk(&[role, reasoning, reasoning]), Some(2));
    assert_eq!(content_chunk(&[ids, ids]), None);
    assert_eq!(content_chunk(&[role]), None);
}

#[test]
fn an_answer_shorter_than_demanded_has_failed() {
    let events = [r#"{"choices":[{"text":"one two ","finish_reason":"stop"}]}"#, "[DONE]"];
    let failure = recorded(TokenCounter::Whitespace, true, &events).failure.unwrap();
    let message = "the answer has 2 tokens where 8 were demanded (its finish reason is `stop`)";
    assert_eq!((failure.class, failure.message.as_str()), (FailureClass::OutputLength, message));
    assert_eq!(recorded(TokenCounter::Whitespace, false, &events).failure, None);
    let eight = [r#"{"choices":[{"text":"1 2 3 4 5 6 7 8","finish_reason":"length"}]}"#];
    assert_eq!(recorded(TokenCounter::Whitespace, true, &eight).failure, None);
    let mut counted = recorded(TokenCounter::Tokenizer, true, &events);
    counted.chunk_tokens = vec![7];
    check_length(&mut counted, true);
    assert_eq!(counted.failure.unwrap().class, FailureClass::OutputLength);
}

#[test]
fn errors_are_seen_in_every_form() {
    let stream_error = |stream: &str| {
        let mut answer = Answer::new(TokenCounter::Whitespace, asked(8));
        answer.push(stream.as_bytes(), 0);
        let failure = record(answer, |answer| answer.end(1)).failure.unwrap();
        assert_eq!(failure.class, FailureClass::StreamError, "{stream}");
        failure.message
    };
    assert_eq!(stream_error("event: error\ndata: oops\n\n"), "the stream holds an error event: oops");
    assert_eq!(stream_error("error: {\"code\":500}\n\n"), "the stream holds an error event: {\"code\":500}");
    stream_error("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"error\"}]}\n\n");
    stream_error("data: {\"choices\":[],\"error\":\"oops\"}\n\n");
    let fine = ["{\"error\":null,\"choices\":[{\"text\":\"a\",\"finish_reason\":\"\"}]}", "[DONE]"];
    let record = recorded(TokenCounter::Whitespace, false, &fine);
    assert_eq!((record.failure, record.finish_reason), (None, None));
}

#[test]
fn embeddings_are_done_when_they_are_there() {
    let mut answer = Answer::new(TokenCounter::Usage, Lengths { input_tokens: 7, output_tokens: 0, exact: true });
    answer.embedding(br#"{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":7,"total_tokens":7}}"#, 40);
    assert_eq!(answer.progress(), Progress::Done);
    let record = record(answer, |_| ());
    assert_eq!((record.failure, record.end_ns, record.usage.unwrap().prompt_tokens), (None, 40, 7));
    let mut answer = Answer::new(TokenCounter::Usage, asked(0));
    answer.embedding(b"{}", 40);
    assert_eq!(answer.progress(), Progress::Failed);
}
