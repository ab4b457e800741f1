//! Tests of schedules.

use super::words::WORDS;
use super::*;
use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Arrival, Prompts, Stage};
use isobench_schema::workload::{Probes, WorkloadKind};
use serde_json::{Value, json};

pub(crate) fn workload() -> Workload {
    Workload {
        kind: WorkloadKind::Serving,
        api: Api::Completions,
        requests: 20,
        prompts: Prompts::Words { input_tokens: 12 },
        output_tokens: 16,
        ignore_eos: true,
        temperature: 0.5,
        arrival: Arrival::closed(4),
        max_in_flight: None,
        warm_up_requests: 3,
        probes: Probes { count: 2, output_tokens: 5 },
        counter: TokenCounter::Whitespace,
        extra_body: [("top_p".to_owned(), json!(0.9))].into(),
        script: None,
    }
}

fn none() -> Resources {
    Resources::default()
}

fn bodies(workload: &Workload, seed: u64, phase: Phase) -> Vec<Value> {
    let schedule = Schedule::new(workload, seed, phase, &none()).unwrap();
    let body = |entry| {
        let mut bytes = Vec::new();
        schedule.write_body(entry, "m", &[], &mut bytes).unwrap();
        serde_json::from_slice(&bytes).unwrap()
    };
    schedule.entries().iter().map(body).collect()
}

#[test]
fn the_list_has_enough_different_words() {
    let sorted: std::collections::BTreeSet<_> = WORDS.iter().collect();
    assert_eq!(sorted.len(), WORDS.len());
    assert!(WORDS.len() >= 300);
    assert!(WORDS.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
}

#[test]
fn the_same_seed_gives_the_same_bytes_and_another_seed_others() {
    let digest = |seed| Schedules::new(&workload(), seed, &none()).unwrap().digest();
    assert_eq!(digest(1), digest(1));
    assert_ne!(digest(1), digest(2));
    let mut longer = workload();
    longer.output_tokens += 1;
    assert_ne!(Schedules::new(&longer, 1, &none()).unwrap().digest(), digest(1));
    assert_eq!(bodies(&workload(), 1, Phase::Measure), bodies(&workload(), 1, Phase::Measure));
}

#[test]
fn probes_are_greedy_and_the_same_before_and_after_in_every_block() {
    let before = bodies(&workload(), 1, Phase::ProbeBefore);
    assert_eq!(before, bodies(&workload(), 2, Phase::ProbeAfter));
    assert_eq!(before.len(), 2);
    assert_eq!((&before[0]["temperature"], &before[0]["max_tokens"]), (&json!(0.0), &json!(5)));
}

#[test]
fn loads_that_differ_in_their_number_of_requests_share_the_digest_of_the_first_ones() {
    let first = |workload: &Workload, seed, resources: &Resources| {
        Schedules::new(workload, seed, resources).unwrap().digest_of_first(10).unwrap()
    };
    let more = Workload { requests: 37, ..workload() };
    assert_eq!(first(&workload(), 7, &none()), first(&more, 7, &none()));
    assert_ne!(first(&workload(), 7, &none()), first(&workload(), 8, &none()));
    let longer = Workload { output_tokens: 17, ..workload() };
    assert_ne!(first(&workload(), 7, &none()), first(&longer, 7, &none()));
    // Random text without a tokenizer is as many words, and as good.
    let prompts = Prompts::Dataset {
        name: "random".to_owned(),
        options: [("input-len".to_owned(), OptionValue::Whole(9))].into(),
    };
    let drawn = |requests| Workload { requests, prompts: prompts.clone(), ..workload() };
    assert_eq!(first(&drawn(20), 7, &none()), first(&drawn(33), 7, &none()));
    let schedule = Schedule::new(&drawn(20), 7, Phase::Measure, &none()).unwrap();
    assert!(schedule.entries().iter().all(|entry| entry.input_tokens == 9));
    let text = bodies(&drawn(1), 7, Phase::Measure)[0]["prompt"].as_str().unwrap().to_owned();
    assert_eq!(text.split(' ').count(), 9, "{text}");
}

#[test]
fn warm_up_and_window_share_no_prompt() {
    let warm_up = bodies(&workload(), 1, Phase::WarmUp);
    let measure = bodies(&workload(), 1, Phase::Measure);
    assert!(measure.iter().all(|body| warm_up.iter().all(|other| other["prompt"] != body["prompt"])));
}

#[test]
fn a_completions_body_asks_for_exact_lengths_and_usage() {
    let body = &bodies(&workload(), 1, Phase::Measure)[0];
    let prompt = body["prompt"].as_str().unwrap();
    assert_eq!(prompt.split(' ').count(), 12);
    let expected = json!({
        "model": "m", "prompt": prompt, "max_tokens": 16, "min_tokens": 16, "ignore_eos": true,
        "temperature": 0.5, "top_p": 0.9, "stream": true, "stream_options": {"include_usage": true},
    });
    assert_eq!(body, &expected);
}

#[test]
fn a_chat_body_has_one_message_and_no_fields_beyond_those_asked_for() {
    let workload = Workload {
        api: Api::Chat,
        ignore_eos: false,
        counter: TokenCounter::TokenIds,
        extra_body: [].into(),
        script: None,
        ..workload()
    };
    let body = &bodies(&workload, 1, Phase::First)[0];
    let content = body["messages"][0]["content"].as_str().unwrap();
    assert_eq!(content.split(' ').count(), 8);
    let expected = json!({
        "model": "m", "messages": [{"role": "user", "content": content}], "max_tokens": 8, "temperature": 0.0,
        "stream": true, "stream_options": {"include_usage": true}, "return_token_ids": true,
    });
    assert_eq!(body, &expected);
}

#[test]
fn token_ids_stay_in_their_range_and_go_out_as_numbers() {
    let prompts = Prompts::TokenIds { input_tokens: 50, vocabulary_size: 20, first_id: 10 };
    let bodies = bodies(&Workload { prompts, ..workload() }, 1, Phase::Measure);
    let ids: Vec<u64> =
        bodies.iter().flat_map(|b| b["prompt"].as_array().unwrap()).map(|id| id.as_u64().unwrap()).collect();
    assert_eq!(ids.len(), 1000);
    assert_eq!((ids.iter().min(), ids.iter().max()), (Some(&10), Some(&19)));
}

#[test]
fn open_loop_times_rise_at_the_rate_asked_for() {
    for burstiness in [0.5, 1.0, 4.0] {
        let arrival = Arrival::Open { rate_per_s: 50.0, burstiness };
        let schedule =
            Schedule::new(&Workload { arrival, requests: 20_000, ..workload() }, 9, Phase::Measure, &none()).unwrap();
        let times: Vec<u64> = schedule.entries().iter().map(|entry| entry.offset_ns).collect();
        assert!(times.windows(2).all(|pair| pair[0] <= pair[1]));
        let last_s = std::time::Duration::from_nanos(*times.last().unwrap()).as_secs_f64();
        assert!((last_s / 400.0 - 1.0).abs() < 0.03, "{burstiness}: {last_s}");
    }
}

fn check_refused(change: impl FnOnce(&mut Workload), expected: &str) {
    let mut workload = workload();
    change(&mut workload);
    assert_eq!(Schedules::new(&workload, 1, &none()).unwrap_err().to_string(), expected);
}

#[test]
fn a_workload_that_cannot_be_sent_is_refused_by_name() {
    check_refused(|w| w.arrival = Arrival::closed(0), "the workload's `concurrency` is 0, but it must be at least 1");
    check_refused(
        |w| w.arrival = Arrival::Open { rate_per_s: -1.0, burstiness: 1.0 },
        "the workload's `rate-per-s` is -1, but it must be a finite number above 0",
    );
    check_refused(
        |w| w.arrival = Arrival::Open { rate_per_s: 1.0, burstiness: f64::NAN },
        "the workload's `burstiness` is NaN, but it must be a finite number above 0",
    );
    check_refused(
        |w| w.prompts = Prompts::TokenIds { input_tokens: 1, vocabulary_size: 5, first_id: 5 },
        "the workload's `first-id` is 5, but it must be below the vocabulary size",
    );
    check_refused(|w| w.output_tokens = 0, "the workload's `output-tokens` is 0, but it must be at least 1");
    for field in ["stream", "max_tokens", "prompt", "n", "echo", "max_completion_tokens"] {
        check_refused(
            |w| drop(w.extra_body.insert(field.to_owned(), json!(1))),
            &format!("the workload's extra body sets `{field}`, which the load client controls"),
        );
    }
    check_refused(
        |w| {
            w.api = Api::Chat;
            w.prompts = Prompts::TokenIds { input_tokens: 1, vocabulary_size: 5, first_id: 0 };
        },
        "prompts of token ids can't be sent to the chat interface: use `words` prompts or the completions interface",
    );
}

#[test]
fn arrivals_and_sampling_fields_that_make_no_sense_are_refused_by_name() {
    let stage = |seconds, from_per_s, to_per_s| Stage { seconds, from_per_s, to_per_s };
    let stages = |stages: &[Stage]| Arrival::Stages { stages: stages.to_vec(), burstiness: Some(1.0) };
    for (arrival, expected) in [
        (stages(&[]), "`stages` is empty, but it must be at least one stage"),
        (stages(&[stage(0.0, 1.0, 1.0)]), "`stages[0].seconds` is 0, but it must be a finite number above 0"),
        (
            stages(&[stage(1.0, 1.0, 1.0), stage(1.0, f64::NAN, 1.0)]),
            "`stages[1].from-per-s` is NaN, but it must be a finite number that is not negative",
        ),
        (stages(&[stage(1.0, 5.0, 0.0)]), "`stages[0].to-per-s` is 0, but it must be above 0 in the last stage"),
        (Arrival::Bursts { size: 0, period_s: 1.0 }, "`size` is 0, but it must be at least 1"),
        (Arrival::Constant { rate_per_s: 0.0 }, "`rate-per-s` is 0, but it must be a finite number above 0"),
        (Arrival::Trace { speed: 0.0 }, "`speed` is 0, but it must be a finite number above 0"),
    ] {
        check_refused(|w| w.arrival = arrival, &format!("the workload's {expected}"));
    }
    for (field, value, rule) in [
        ("top_p", json!(0), "above 0 and at most 1"),
        ("top_k", json!(-2), "a whole number from -1"),
        ("min_p", json!("x"), "from 0 to 1"),
        ("presence_penalty", json!(3), "from -2 to 2"),
        ("repetition_penalty", json!(0), "above 0"),
        ("stop", json!([1]), "a text or a list of texts"),
    ] {
        let expected = format!("the workload's extra body sets `{field}` to {value}, but it must be {rule}");
        check_refused(|w| drop(w.extra_body.insert(field.to_owned(), value)), &expected);
    }
    let fine = json!({ "top_p": 1, "top_k": -1, "min_p": 0, "frequency_penalty": -2, "stop": ["a"], "seed": 7 });
    let extra_body = fine.as_object().unwrap().clone().into_iter().collect();
    assert!(Schedules::new(&Workload { extra_body, ..workload() }, 1, &none()).is_ok());
    check_refused(
        |w| w.arrival = Arrival::Trace { speed: 1.0 },
        "the arrivals are those of a trace, but prompts of words have no times: use a dataset of a trace (`mooncake`, `azure`, \
         `burstgpt`, `timed`) or another arrival",
    );
}
