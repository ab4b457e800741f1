//! Traces: lengths, times, and blocks that are the same.

use std::collections::BTreeSet;

use super::*;

const BURSTGPT: &str = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
    5,ChatGPT,472,18,490,Conversation log\n45.5,GPT-4,20,7,27,Conversation log\n60,GPT-4,30,0,30,Conversation log\n\
    118,GPT-4,40,9,49,API log\n200,GPT-4,50,10,60,API log\n";

fn lengths(sent: &[(Entry, Value)]) -> Vec<(u64, u32, u32)> {
    sent.iter().map(|(entry, _)| (entry.offset_ns / 1_000_000, entry.input_tokens, entry.output_tokens)).collect()
}

#[test]
fn burstgpt_has_the_rows_of_one_model_with_an_answer() {
    let scene = Scene::new("burstgpt", 3).file(BURSTGPT).traced();
    let sent = scene.sent();
    assert_eq!(lengths(&sent), [(0, 20, 7), (72_500, 40, 9), (154_500, 50, 10)]);
    assert_eq!(scene.count(prompts(&sent)[0]) + 1, 20);
    assert_eq!(scene.schedule(Phase::Measure).unwrap().left_out(), 2);
    // Without its times the rows are shuffled; all models on request.
    let mut shuffled = Scene::new("burstgpt", 3).file(BURSTGPT);
    let all: BTreeSet<_> = lengths(&shuffled.sent()).into_iter().collect();
    assert_eq!(all, [(0, 20, 7), (0, 40, 9), (0, 50, 10)].into());
    shuffled = shuffled.text("burstgpt-model", "any").whole("max-input-len", 45).whole("output-len", 3);
    let all: BTreeSet<_> = lengths(&shuffled.sent()).into_iter().collect();
    assert_eq!(all, [(0, 20, 3), (0, 30, 3), (0, 40, 3)].into());
}

#[test]
fn a_trace_that_is_too_short_goes_on_from_its_end() {
    let scene = Scene::new("burstgpt", 5).file(BURSTGPT).traced();
    let times: Vec<u64> = lengths(&scene.sent()).into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times, [0, 72_500, 154_500, 154_500, 227_000]);
    assert_eq!(scene.timed_requests(), Some(3));
    let refused = scene.option("no-oversample", OptionValue::Switch(true));
    assert!(refused.refusal().starts_with("`data` has 5 rows, but 5 requests are asked"), "{}", refused.refusal());
}

#[test]
fn a_warm_up_that_runs_out_of_last_rows_goes_on_with_the_first() {
    let scene = Scene::new("burstgpt", 3).file(BURSTGPT).traced();
    let sent = lengths(&scene.sent_in(Phase::WarmUp));
    // The last three rows have one without an answer.
    assert_eq!(sent, [(0, 40, 9), (82_000, 50, 10), (82_000, 20, 7)]);
}

#[test]
fn only_traces_have_a_number_of_requests() {
    let bad = Scene::new("burstgpt", 5).file(BURSTGPT.replace("118,", "soon,")).traced();
    assert!(Schedule::timed_requests(&bad.workload, 1, &bad.resources).is_err());
    let lenient =
        bad.option("skip-bad-rows", OptionValue::Switch(true)).option("no-oversample", OptionValue::Switch(true));
    assert_eq!(lenient.timed_requests(), Some(2));
    assert_eq!(Scene::new("random", 5).timed_requests(), None);
}

#[test]
fn azures_table_is_read_with_its_dates() {
    let file = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,48,10\n2023-11-16 18:15:50.9951690,31,8\n";
    let mut scene = Scene::new("azure", 2).file(file).traced();
    scene.workload.arrival = Arrival::Trace { speed: 2.0 };
    assert_eq!(lengths(&scene.sent()), [(0, 48, 10), (2157, 31, 8)]);
    let wrong = Scene::new("azure", 1).file("a,b,c\n1,2,3\n");
    assert_eq!(wrong.refusal(), "`data` can't be read as a dataset: its first line has no column `TIMESTAMP`");
    let back = Scene::new("azure", 2)
        .traced()
        .file("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,48,10\n2023-11-16 18:15:45,31,8\n");
    assert_eq!(back.refusal(), "`data`, line 3: its time is before that of the row above it: sort the file by time");
}

const MOONCAKE: &str = r#"{"timestamp": 1000, "input_length": 1200, "output_length": 52, "hash_ids": [1, 2, 3]}
{"timestamp": 1500, "input_length": 1100, "output_length": 26, "hash_ids": [1, 2, 4]}
{"timestamp": 3000, "input_length": 600, "output_length": 12, "hash_ids": [1]}
{"timestamp": 3000, "input_length": 9, "output_length": 12}
"#;

#[test]
fn blocks_of_the_same_name_are_the_same_text() {
    for kind in [Sample::Bytes, Sample::Pairs, Sample::Plain] {
        let scene = Scene::new("mooncake", 4).tokenizer(kind).file(MOONCAKE).traced();
        let tokenizer = scene.resources.tokenizer.clone().unwrap();
        let special = tokenizer.special_tokens().unwrap();
        let sent = scene.sent();
        assert_eq!(lengths(&sent), [(0, 1200, 52), (500, 1100, 26), (2000, 600, 12), (2000, 9, 12)]);
        let ids: Vec<Vec<u32>> = prompts(&sent).iter().map(|prompt| tokenizer.encode(prompt).unwrap()).collect();
        let exact: Vec<u32> = ids.iter().map(|ids| u32::try_from(ids.len()).unwrap() + special).collect();
        assert_eq!(exact, [1200, 1100, 600, 9], "{kind:?}");
        let shared = |a: usize, b: usize| ids[a].iter().zip(&ids[b]).take_while(|(a, b)| a == b).count();
        assert!((1024..1030).contains(&shared(0, 1)), "{kind:?}: {}", shared(0, 1));
        assert!((512..518).contains(&shared(0, 2)), "{kind:?}: {}", shared(0, 2));
        assert!(shared(0, 3) < 3, "{kind:?}");
        // The warm-up has its own text.
        let warm = scene.sent_in(Phase::WarmUp);
        assert!(prompts(&warm).iter().all(|prompt| !prompts(&sent).contains(prompt)), "{kind:?}");
    }
}

#[test]
fn lines_with_times_may_have_prompts_and_other_names() {
    let file = r#"{"at": 0.5, "prompt": "about the house", "out": 4}
{"at": 0.75, "in": 30, "out": 5, "hash_ids": [7]}
"#;
    let scene = Scene::new("timed_trace", 2)
        .file(file)
        .traced()
        .text("timed-trace-label-timestamp", "at")
        .text("timed-trace-label-input-length", "in")
        .text("timed-trace-label-output-length", "out");
    let sent = scene.sent();
    assert_eq!(prompts(&sent)[0], "about the house");
    let first = scene.count("about the house") + 1;
    assert_eq!(lengths(&sent), [(0, first, 4), (250, 30, 5)]);
    let wrong = Scene::new("timed", 1).file("{\"timestamp\": 0}");
    assert_eq!(wrong.refusal(), "`data`, line 1: `input_length` must be a whole number of tokens");
}
