//! Datasets that are drawn.

use std::collections::BTreeSet;

use base64::Engine as _;

use super::*;

#[test]
fn random_prompts_have_exactly_the_length_asked_with_what_the_server_adds() {
    for kind in Sample::ALL {
        let scene =
            Scene::new("random", 12).tokenizer(kind).whole("random-input-len", 40).whole("random-output-len", 9);
        let special = scene.resources.tokenizer.as_ref().unwrap().special_tokens().unwrap();
        let sent = scene.sent();
        for (entry, body) in &sent {
            let prompt = body["prompt"].as_str().unwrap();
            assert_eq!((entry.input_tokens, entry.output_tokens), (40, 9), "{kind:?}");
            assert_eq!(scene.count(prompt) + special, 40, "{kind:?}");
            assert_eq!((&body["max_tokens"], &body["min_tokens"]), (&9.into(), &9.into()));
        }
        assert_eq!(prompts(&sent).into_iter().collect::<BTreeSet<_>>().len(), 12, "{kind:?}");
    }
}

#[test]
fn what_the_server_adds_is_left_out_on_request_and_for_chats() {
    let own = Scene::new("random", 2)
        .whole("random-input-len", 40)
        .option("count-special-tokens", OptionValue::Switch(false));
    let (entry, body) = &own.sent()[0];
    assert_eq!((entry.input_tokens, own.count(body["prompt"].as_str().unwrap())), (41, 40));
    let chat = Scene::new("random", 2).whole("input-len", 40).api(Api::Chat);
    let (entry, body) = &chat.sent()[0];
    assert_eq!((entry.input_tokens, chat.count(body["messages"][0]["content"].as_str().unwrap())), (40, 40));
    let embeddings = Scene::new("random", 2).api(Api::Embeddings);
    let (entry, body) = &embeddings.sent()[0];
    assert_eq!((entry.output_tokens, embeddings.count(body["input"].as_str().unwrap())), (0, 1023));
    assert!(body.get("max_tokens").is_none());
}

#[test]
fn lengths_vary_around_the_length_or_up_to_it() {
    let lengths = |meaning: &str| {
        let scene = Scene::new("random", 400)
            .whole("random-input-len", 20)
            .whole("random-output-len", 10)
            .option("random-range-ratio", OptionValue::Number(0.5))
            .text("range-meaning", meaning)
            .option("count-special-tokens", OptionValue::Switch(false));
        let sent = scene.sent();
        let inputs: BTreeSet<u32> = sent.iter().map(|(entry, _)| entry.input_tokens - 1).collect();
        let outputs: BTreeSet<u32> = sent.iter().map(|(entry, _)| entry.output_tokens).collect();
        let ends = |set: &BTreeSet<u32>| (*set.first().unwrap(), *set.last().unwrap(), set.len());
        (ends(&inputs), ends(&outputs))
    };
    assert_eq!(lengths("around"), ((10, 30, 21), (5, 15, 11)));
    assert_eq!(lengths("up-to"), ((10, 20, 11), (5, 10, 6)));
}

#[test]
fn a_prefix_is_the_same_tokens_in_all_prompts_and_another_in_the_warm_up() {
    for kind in [Sample::Bytes, Sample::Beyond, Sample::Plain] {
        let scene =
            Scene::new("random", 6).tokenizer(kind).whole("random-prefix-len", 25).whole("random-input-len", 10);
        let tokenizer = scene.resources.tokenizer.clone().unwrap();
        let beginnings = |phase| {
            let sent = scene.sent_in(phase);
            sent.iter()
                .map(|(_, body)| tokenizer.encode(body["prompt"].as_str().unwrap()).unwrap()[..25].to_vec())
                .collect::<BTreeSet<_>>()
        };
        let (measure, warm_up) = (beginnings(Phase::Measure), beginnings(Phase::WarmUp));
        assert_eq!((measure.len(), warm_up.len()), (1, 1), "{kind:?}");
        assert_ne!(measure, warm_up, "{kind:?}");
    }
    let warm =
        Scene::new("random", 1).whole("random-prefix-len", 25).option("warm-prefixes", OptionValue::Switch(true));
    let first = |phase| prompts(&warm.sent_in(phase))[0].split(' ').take(25).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(first(Phase::Measure), first(Phase::WarmUp));
}

#[test]
fn each_prefix_is_repeated_equally_often() {
    let scene = Scene::new("prefix_repetition", 40)
        .whole("prefix-repetition-prefix-len", 12)
        .whole("prefix-repetition-suffix-len", 8)
        .whole("prefix-repetition-num-prefixes", 4)
        .whole("prefix-repetition-output-len", 3);
    let sent = scene.sent();
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (entry, body) in &sent {
        let words: Vec<&str> = body["prompt"].as_str().unwrap().split(' ').collect();
        assert_eq!((words.len(), entry.input_tokens, entry.output_tokens), (20, 21, 3));
        *counts.entry(words[..12].join(" ")).or_default() += 1;
    }
    assert_eq!(counts.into_values().collect::<Vec<_>>(), [10; 4]);
    // In a random order, unless it is to be kept.
    let beginnings = |scene: &Scene| {
        let sent = scene.sent();
        prompts(&sent).iter().map(|prompt| prompt.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let runs = |scene: &Scene| beginnings(scene).windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(runs(&scene) > 10);
    assert_eq!(runs(&scene.option("disable-shuffle", OptionValue::Switch(true))), 3);
}

#[test]
fn paths_through_a_tree_share_the_nodes_that_they_have_in_common() {
    let scene = Scene::new("prefix-tree", 60)
        .whole("tree-levels", 2)
        .whole("tree-branching", 3)
        .whole("tree-level-len", 10)
        .whole("tree-suffix-len", 5);
    let sent = scene.sent();
    let part = |words: usize| -> BTreeSet<String> {
        prompts(&sent).iter().map(|prompt| prompt.split(' ').take(words).collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!((part(10).len(), part(20).len(), part(25).len()), (3, 9, 60));
}

#[test]
fn conversations_go_on_from_turn_to_turn_and_grow() {
    let mut scene = Scene::new("sessions", 10)
        .api(Api::Chat)
        .whole("session-turns", 4)
        .whole("session-input-len", 6)
        .whole("session-output-len", 5)
        .whole("session-system-len", 20)
        .option("think-time-s", OptionValue::Number(1.5));
    scene.workload.arrival = Arrival::Constant { rate_per_s: 2.0 };
    let schedule = scene.schedule(Phase::Measure).unwrap();
    let found: Vec<_> = schedule
        .entries()
        .iter()
        .map(|entry| {
            let turn = entry.turn.unwrap();
            (turn.session, turn.turn, entry.input_tokens, entry.think_ns, entry.offset_ns)
        })
        .collect();
    let think = 1_500_000_000;
    let half = 500_000_000;
    let session = |session: u32, at: u64| {
        [(session, 0, 26, 0, at), (session, 1, 37, think, at), (session, 2, 48, think, at), (session, 3, 59, think, at)]
    };
    assert_eq!(found, [&session(0, 0)[..], &session(1, half), &session(2, 2 * half)[..2]].concat());
    let bodies = bodies(&schedule);
    let roles = |body: &Value| {
        let messages = body["messages"].as_array().unwrap();
        messages.iter().map(|message| message["role"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((roles(&bodies[0].1), roles(&bodies[1].1)), (vec!["system".into(), "user".into()], vec!["user".into()]));
    // All begin with the same, and the history of a turn is what was said before.
    assert_eq!(bodies[0].1["messages"][0], bodies[4].1["messages"][0]);
    assert_ne!(bodies[0].1["messages"][1], bodies[4].1["messages"][1]);
    let mut history = Vec::new();
    schedule.write_message(&schedule.entries()[0], &mut history).unwrap();
    let mut body = Vec::new();
    schedule.write_body(&schedule.entries()[1], "m", &history, &mut body).unwrap();
    assert_eq!(roles(&serde_json::from_slice(&body).unwrap()), ["system", "user", "user"]);
}

#[test]
fn thinking_times_are_drawn_where_a_shape_is_given() {
    let scene = Scene::new("sessions", 2000)
        .api(Api::Chat)
        .whole("session-turns", 1000)
        .whole("session-input-len", 1)
        .option("think-time-s", OptionValue::Number(2.0))
        .whole("think-time-shape", 1);
    let times: Vec<f64> = scene
        .sent()
        .iter()
        .map(|(entry, _)| std::time::Duration::from_nanos(entry.think_ns).as_secs_f64())
        .filter(|time| *time > 0.0)
        .collect();
    assert_eq!(times.len(), 1998);
    let mean = times.iter().sum::<f64>() / 1998.0;
    assert!((mean - 2.0).abs() < 0.2, "{mean}");
}

#[test]
fn verse_fills_the_prompt_and_begins_alike() {
    let scene = Scene::new("sonnet", 8).whole("sonnet-input-len", 300).whole("sonnet-prefix-len", 150);
    let sent = scene.sent();
    for (entry, body) in &sent {
        let prompt = body["prompt"].as_str().unwrap();
        assert_eq!(scene.count(prompt) + 1, entry.input_tokens);
        assert!((250..=300).contains(&entry.input_tokens), "{}", entry.input_tokens);
        assert_eq!(entry.output_tokens, 150);
    }
    let lines: Vec<Vec<&str>> = prompts(&sent).iter().map(|prompt| prompt.lines().collect()).collect();
    let shared = lines[0].iter().zip(&lines[1]).take_while(|(a, b)| a == b).count();
    assert!(shared >= 3, "{shared}");
    assert_eq!(prompts(&sent).into_iter().collect::<BTreeSet<_>>().len(), 8);
    let own = Scene::new("sonnet", 2)
        .file("one line\n\nanother line\n")
        .whole("sonnet-input-len", 60)
        .whole("sonnet-prefix-len", 0);
    let sent = own.sent();
    let text = prompts(&sent)[0];
    assert!(text.lines().skip(1).all(|line| line == "one line" || line == "another line"), "{text}");
    let none = Scene::new("sonnet", 2).file(" \n\n");
    assert_eq!(none.refusal(), "`data` has no row that can be sent: a line must hold text");
    let short = Scene::new("sonnet", 2).whole("sonnet-input-len", 3);
    assert!(
        short.refusal().starts_with("option `sonnet-input-len` of dataset `sonnet` is `3`, but it must be at least")
    );
}

#[test]
fn images_are_in_the_message_behind_the_text() {
    let scene = Scene::new("image", 2)
        .api(Api::Chat)
        .whole("images-per-request", 2)
        .whole("image-width", 40)
        .whole("image-height", 30)
        .whole("input-len", 11);
    let sent = scene.sent();
    let parts = sent[0].1["messages"][0]["content"].as_array().unwrap();
    assert_eq!(parts.len(), 3);
    assert_eq!((sent[0].0.input_tokens, scene.count(parts[0]["text"].as_str().unwrap())), (11, 11));
    let mut seen = BTreeSet::new();
    for (_, body) in &sent {
        for part in &body["messages"][0]["content"].as_array().unwrap()[1..] {
            let url = part["image_url"]["url"].as_str().unwrap();
            let bytes =
                base64::engine::general_purpose::STANDARD.decode(url.strip_prefix("data:image/png;base64,").unwrap());
            assert!(seen.insert(bytes.unwrap()));
        }
    }
    assert_eq!(seen.len(), 4);
    let wrong = "dataset `image` can't be sent to the completions interface: use the chat interface";
    assert_eq!(Scene::new("image", 1).refusal(), wrong);
}

#[test]
fn adapters_take_turns_and_conversations_keep_theirs() {
    let scene = Scene::new("random", 5).text("lora-modules", "one, two  three").whole("input-len", 5);
    let models = |scene: &Scene| {
        scene.sent().iter().map(|(_, body)| body["model"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(models(&scene), ["one", "two", "three", "one", "two"]);
    let schedule = scene.schedule(Phase::Measure).unwrap();
    assert_eq!(schedule.model(&schedule.entries()[1]), Some("two"));
    let random = models(&scene.text("lora-assignment", "random"));
    assert!(random.iter().all(|model| ["one", "two", "three"].contains(&model.as_str())));
    let talks = Scene::new("sessions", 6)
        .api(Api::Chat)
        .whole("session-turns", 2)
        .text("lora-modules", "a,b")
        .whole("session-input-len", 3);
    assert_eq!(models(&talks), ["a", "a", "b", "b", "a", "a"]);
    let none = Scene::new("random", 1).text("lora-modules", " , ");
    assert!(none.refusal().ends_with("but it must be the names of adapters, with commas between them"));
}

#[test]
fn times_of_a_trace_need_a_trace() {
    let expected = "the arrivals are those of a trace, but the requests of dataset `random` have no times: use a dataset of a \
                    trace (`mooncake`, `azure`, `burstgpt`, `timed`) or another arrival";
    assert_eq!(Scene::new("random", 1).traced().refusal(), expected);
}
