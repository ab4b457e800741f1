//! Datasets of files: conversations and lines of one's own.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::*;
use crate::schedule::words::WORDS;

/// Returns a text of so many words that are one token each with the sample tokenizer, or nearly.
fn words(from: usize, count: usize) -> String {
    (0..count).map(|place| WORDS[(from + place) % 300]).collect::<Vec<_>>().join(" ")
}

/// A file of conversations: good ones, short ones, long ones, and those that are none.
fn conversations() -> String {
    let mut rows = Vec::new();
    for row in 0..30 {
        let value = |from: &str, text: String| serde_json::json!({ "from": from, "value": text });
        rows.push(match row {
            3 => serde_json::json!({ "id": "x" }),
            4 => serde_json::json!({ "conversations": [value("human", words(1, 20))] }),
            5 => serde_json::json!({ "conversations": [value("human", "a".into()), value("gpt", words(1, 20))] }),
            6 => serde_json::json!({ "conversations": [value("human", words(1, 1100)), value("gpt", words(1, 20))] }),
            7 => serde_json::json!({ "conversations": [value("human", words(1, 1000)), value("gpt", words(1, 1200))] }),
            8 => serde_json::json!({ "conversations": [value("human", words(1, 10)), value("gpt", "a".into())] }),
            _ => serde_json::json!({ "id": row, "conversations": [
                value("human", words(row, 10 + row)), value("gpt", words(row, 20)), value("human", words(row, 5)),
                value("gpt", words(row, 6)),
            ] }),
        });
    }
    serde_json::to_string_pretty(&rows).unwrap()
}

#[test]
fn conversations_are_filtered_and_shuffled_and_share_none_with_the_warm_up() {
    let scene = Scene::new("sharegpt", 10).file(conversations());
    let schedule = scene.schedule(Phase::Measure).unwrap();
    let sent = bodies(&schedule);
    for (entry, body) in &sent {
        let prompt = body["prompt"].as_str().unwrap();
        assert_eq!(entry.input_tokens, scene.count(prompt) + 1);
        assert!(entry.output_tokens >= 21 && entry.output_tokens < 80, "{}", entry.output_tokens);
        assert_eq!(body["max_tokens"], entry.output_tokens);
    }
    let measured: BTreeSet<String> = prompts(&sent).into_iter().map(str::to_owned).collect();
    let warm = scene.sent_in(Phase::WarmUp);
    assert_eq!((measured.len(), warm.len()), (10, 3));
    assert!(prompts(&warm).iter().all(|prompt| !measured.contains(*prompt)));
    assert_eq!(
        *schedule.input().unwrap(),
        Input { path: scene.folder.path().join("data"), digest: Digest::of(conversations().as_bytes()) }
    );
    // Another seed, another order; the file's own on request.
    let other = Scene { seed: 8, ..scene };
    assert_ne!(prompts(&other.sent()), prompts(&sent));
    let kept = other.option("disable-shuffle", OptionValue::Switch(true));
    assert_eq!(prompts(&kept.sent())[0], words(0, 10));
}

#[test]
fn all_good_conversations_are_sent_before_any_is_sent_again() {
    let scene = Scene::new("sharegpt", 24).file(conversations());
    let schedule = scene.schedule(Phase::Measure).unwrap();
    assert_eq!(schedule.left_out(), 6);
    assert_eq!(prompts(&bodies(&schedule)).into_iter().collect::<BTreeSet<_>>().len(), 24);
    let again = Scene::new("sharegpt", 30).file(conversations());
    assert_eq!(prompts(&again.sent()).into_iter().collect::<BTreeSet<_>>().len(), 24);
    let refused = again.option("no-oversample", OptionValue::Switch(true));
    assert_eq!(
        refused.refusal(),
        "`data` has 30 rows, but 30 requests are asked: ask fewer, or allow rows to be sent again"
    );
}

#[test]
fn one_length_for_all_answers_lets_short_ones_in() {
    let mut scene = Scene::new("sharegpt", 26).file(conversations()).whole("sharegpt-output-len", 30);
    let sent = scene.sent();
    assert!(sent.iter().all(|(entry, _)| entry.output_tokens == 30));
    // The one with a short answer, and the one with a long answer.
    assert_eq!(
        prompts(&sent).into_iter().collect::<BTreeSet<_>>().len(),
        25 + usize::from(scene.count(&words(1, 1000)) < 1024)
    );
    scene.workload.api = Api::Embeddings;
    assert!(scene.sent().iter().all(|(entry, body)| entry.output_tokens == 0 && body["input"].is_string()));
}

#[test]
fn questions_of_conversations_become_turns() {
    let scene = Scene::new("sessions", 6)
        .api(Api::Chat)
        .file(conversations())
        .option("disable-shuffle", OptionValue::Switch(true));
    let schedule = scene.schedule(Phase::Measure).unwrap();
    let found: Vec<_> =
        schedule.entries().iter().map(|entry| (entry.turn.unwrap().session, entry.turn.unwrap().turn)).collect();
    assert_eq!(found, [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]);
    let [first, second] = [&schedule.entries()[0], &schedule.entries()[1]];
    assert_eq!(first.input_tokens, scene.count(&words(0, 10)));
    assert_eq!(first.output_tokens, scene.count(&words(0, 20)));
    assert_eq!(second.input_tokens, first.input_tokens + first.output_tokens + scene.count(&words(0, 5)));
    let messages = serde_json::json!({ "messages": [
        { "role": "system", "content": "be brief" }, { "role": "assistant", "content": "hello" },
        { "role": "user", "content": "about the house" }, { "role": "assistant", "content": "able to" },
        { "role": "system", "content": "now in verse" }, { "role": "user", "content": "more" },
        { "role": "assistant", "content": "yes" },
    ] });
    let scene = Scene::new("sessions", 2).api(Api::Chat).file(messages.to_string());
    let sent = scene.sent();
    assert_eq!(sent.iter().map(|(entry, _)| entry.turn.unwrap().session).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(sent[0].1["messages"].as_array().unwrap().len(), 2);
    let strange = Scene::new("sessions", 2).api(Api::Chat).file(r#"{"messages": [{"role": "tool", "content": "a"}]}"#);
    assert_eq!(strange.refusal(), "`data`, line 1: `tool` is no speaker that is known");
    let wrong = "dataset `sessions` can't be sent to the completions interface: use the chat interface";
    assert_eq!(Scene::new("sessions", 1).refusal(), wrong);
}

#[test]
fn lines_of_ones_own_are_sent_as_they_are() {
    let lines = [
        r#"{"prompt": "about the house", "output_tokens": 7}"#,
        r#"{"token_ids": [5, 6, 7], "output_tokens": 8, "top_k": 3, "temperature": 0.5}"#,
        r#"{"prompt": "again", "output_tokens": 9, "model": "other", "input_tokens": 77}"#,
    ];
    let scene = Scene::new("custom", 3).file(lines.join("\n")).option("disable-shuffle", OptionValue::Switch(true));
    let sent = scene.sent();
    let shown: Vec<String> = sent
        .iter()
        .map(|(entry, body)| format!("{} {} {}", body["model"], entry.input_tokens, body["max_tokens"]))
        .collect();
    let first = scene.count("about the house") + 1;
    assert_eq!(shown, [format!("\"m\" {first} 7"), "\"m\" 3 8".into(), "\"other\" 77 9".into()]);
    assert_eq!(
        (&sent[1].1["prompt"], &sent[1].1["top_k"], &sent[1].1["temperature"]),
        (&serde_json::json!([5, 6, 7]), &3.into(), &0.5.into())
    );
    let chat =
        r#"{"messages": [{"role": "user", "content": [{"type": "text", "text": "about"}]}], "output_tokens": 2}"#;
    let scene = Scene::new("custom", 1).api(Api::Chat).file(chat);
    let (entry, body) = &scene.sent()[0];
    assert_eq!(
        (entry.input_tokens, body["messages"][0]["content"][0]["text"].as_str()),
        (scene.count("about"), Some("about"))
    );
    // The workload's length comes first, and -1 leaves the row its own.
    let mut scene = Scene::new("custom", 3).file(lines.join("\n")).option("custom-output-len", OptionValue::Whole(-1));
    assert!(scene.sent().iter().all(|(entry, _)| (7..=9).contains(&entry.output_tokens)));
    scene.workload.output_tokens = 4;
    assert!(scene.sent().iter().all(|(entry, _)| entry.output_tokens == 4));
}

fn check_line(line: &[u8], expected: &str) {
    let file = [b"{\"prompt\": \"a\", \"output_tokens\": 1}\n", line, b"\n"].concat();
    let scene = Scene::new("custom", 2).file(&file).option("disable-shuffle", OptionValue::Switch(true));
    assert_eq!(scene.refusal(), format!("`data`, line 2: {expected}"));
    // Bad rows may be left out, and are counted.
    let scene = scene.option("skip-bad-rows", OptionValue::Switch(true));
    let schedule = scene.schedule(Phase::Measure).unwrap();
    assert_eq!((schedule.entries().len(), schedule.left_out()), (2, 1));
}

#[test]
fn a_bad_line_is_named_by_file_and_line() {
    let one = "it must have one of `prompt`, `messages` and `token_ids`";
    check_line(b"{\"output_tokens\": 1}", one);
    check_line(b"{\"prompt\": \"a\", \"token_ids\": [1], \"output_tokens\": 1}", one);
    check_line(b"{\"prompt\": \"a\"}", "it has no `output_tokens`, and the workload gives no length of answers");
    check_line(b"{\"prompt\": \"a\", \"output_tokens\": 0}", "`output_tokens` is 0, but it must be at least 1");
    check_line(b"{\"prompt\": \"a\", \"output_tokens\": -2}", "`output_tokens` is -2, but it must be a whole number");
    check_line(
        b"{\"prompt\": \"a\", \"output_tokens\": \"3\"}",
        "`output_tokens` is a text, but it must be a whole number",
    );
    check_line(b"{\"prompt\": 3, \"output_tokens\": 1}", "`prompt` is 3, but it must be a text");
    check_line(b"{\"prompt\": \"\", \"output_tokens\": 1}", "`prompt` is empty, but it must be a text");
    check_line(
        b"{\"prompt\": \"a\", \"output_tokens\": 1, \"stream\": false}",
        "it sets `stream`, which the load client controls",
    );
    check_line(b"{\"prompt\": \"a\", \"output_tokens\": 1, \"model\": 1}", "`model` is 1, but it must be a text");
    check_line(b"{\"token_ids\": [], \"output_tokens\": 1}", "`token_ids` is empty");
    check_line(
        b"{\"messages\": [], \"output_tokens\": 1}",
        "`messages` can't be sent to the completions interface: use the chat interface",
    );
    check_line(
        b"{\"token_ids\": [-1], \"output_tokens\": 1}",
        "`token_ids` must be a list of token ids: invalid value: integer `-1`, expected u32",
    );
}

#[test]
fn bytes_that_are_no_json_are_refused_with_what_the_reader_says() {
    for line in
        [&b"\0"[..], b"{", b"[1]", b"\xff\xfe", b"{\"prompt\": \"a\0\", \"output_tokens\": 1}", b"null", b"{} {}"]
    {
        let scene = Scene::new("custom", 1).file(line).option("disable-shuffle", OptionValue::Switch(true));
        let refusal = scene.refusal();
        assert!(
            refusal.starts_with("`data`, line 1: it is no JSON object: ")
                || refusal.starts_with("`data`, item 1: it is no JSON"),
            "{refusal}"
        );
    }
    let mut deep = "[".repeat(100_000);
    deep.insert_str(0, "{\"prompt\": ");
    assert!(Scene::new("custom", 1).file(deep).refusal().contains("recursion limit"));
}

#[test]
fn files_that_are_missing_empty_or_none_are_refused() {
    let missing = Scene::new("custom", 1).text("dataset-path", "data");
    assert_eq!(missing.refusal(), "failed to read the dataset `data`");
    let not_given = Scene::new("custom", 1);
    assert_eq!(
        not_given.refusal(),
        "dataset `custom` needs the option `dataset-path`: the file that its requests are read from"
    );
    for (name, bytes) in [("custom", ""), ("custom", "\n\n"), ("sharegpt", "[]"), ("sharegpt", "")] {
        let refusal = Scene::new(name, 1).file(bytes).refusal();
        assert_eq!(refusal, "`data` can't be read as a dataset: it is empty", "{name}");
    }
    let wrong = Scene::new("sharegpt", 1).file(r#"[{"conversations": [{"value": 3}, {"value": "a"}]}]"#);
    assert!(wrong.refusal().starts_with("`data`, item 1: it is no conversation: "), "{}", wrong.refusal());
    let folder = Scene::new("custom", 1).text("dataset-path", ".");
    assert!(folder.schedule(Phase::Measure).is_err());
    let without = Scene::new("custom", 1).file(r#"{"prompt": "a", "output_tokens": 1}"#);
    let resources = Resources { tokenizer: None, ..without.resources.clone() };
    let error = Schedule::new(&without.workload, 1, Phase::Measure, &resources).unwrap_err();
    assert!(error.to_string().starts_with("dataset `custom` needs the model's tokenizer"), "{error}");
}

#[test]
fn ten_thousand_lines_are_read_one_by_one() {
    let mut file = String::new();
    for line in 0..10_000 {
        writeln!(file, "{{\"prompt\": \"row {line}\", \"output_tokens\": 1, \"input_tokens\": 3}}").unwrap();
    }
    let scene = Scene::new("custom", 10_000).file(file);
    let sent = scene.sent();
    assert_eq!(prompts(&sent).into_iter().collect::<BTreeSet<_>>().len(), 10_000);
}
