//! Models, tokenizers and datasets from a hub, through the real command: planned with their sizes, fetched before the first
//! block, served from a folder, and part of the comparability key.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "all of it is test code")]

#[path = "support/mod.rs"]
mod support;

use std::process::Command;

use isobench_schema::comparability::KeyField;
use isobench_schema::event::EventKind;
use isobench_schema::failure::FailureClass;
use isobench_schema::outcome::{LaunchRecord, Outcome};
use isobench_testkit::{FakeHub, HubFault, HubFile, TaskText};
use support::{Finished, Place, events};

const TOKEN: &str = "hf_aSecretThatMustNotLeave";
const MODEL: &str = "org/tiny";

/// Returns a tokenizer whose tokens are words, as the hub would have it.
fn tokenizer() -> Vec<u8> {
    let mut vocabulary = serde_json::Map::new();
    vocabulary.insert("[UNK]".to_owned(), 0.into());
    let words = isobench_testkit::words::WORDS.iter().enumerate();
    vocabulary.extend(words.map(|(place, word)| ((*word).to_owned(), (place + 1).into())));
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": { "type": "Whitespace" }, "post_processor": null, "decoder": null,
        "model": { "type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]" },
    });
    tokenizer.to_string().into_bytes()
}

/// Returns a hub with a gated model and an open dataset.
fn hub() -> FakeHub {
    let hub = FakeHub::start().unwrap();
    let weights = vec![7_u8; 300_000];
    let tokenizer = tokenizer();
    hub.add_model(
        MODEL,
        &[
            ("config.json", b"{}", HubFile::Small),
            ("model.safetensors", &weights, HubFile::Large),
            ("tokenizer.json", &tokenizer, HubFile::Small),
        ],
    );
    let rows: Vec<String> = (0..40).map(|row| format!("{{\"prompt\": \"able about above {row} across\"}}\n")).collect();
    let rows = rows.concat();
    hub.add_dataset("org/prompts", &[("data/rows.jsonl", rows.as_bytes(), HubFile::Large)]);
    hub.break_model(MODEL, None, HubFault::Gated { token: TOKEN.to_owned() });
    hub
}

/// Returns a task whose model, tokenizer and prompts are the hub's.
fn task(place: &Place) -> String {
    let text = TaskText {
        arguments: ["--needs", "tokenizer.json", "--needs", "config.json"].map(str::to_owned).to_vec(),
        ..place.task_text()
    };
    let prompts =
        "prompts = { kind = \"dataset\", name = \"custom\", repository = \"org/prompts\", file = \"data/rows.jsonl\" }";
    text.toml()
        .replace("model = \"fake\"", &format!("model = \"{MODEL}\"\nmodel-revision = \"main\""))
        .replace("prompts = { kind = \"words\", input-tokens = 8 }", &format!("{prompts}\ncounter = \"tokenizer\""))
}

fn isobench(place: &Place, hub: &FakeHub, arguments: &[&str], token: Option<&str>) -> Finished {
    let mut command: Command = place.isobench(arguments);
    command.env("HF_ENDPOINT", hub.endpoint()).env("HOME", place.root()).env_remove("HF_HUB_OFFLINE");
    for name in ["HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_TOKEN_PATH", "HF_HOME", "HF_HUB_CACHE"] {
        command.env_remove(name);
    }
    command.envs(token.map(|token| ("HF_TOKEN", token)));
    Finished::of(&mut command)
}

#[test]
fn a_run_fetches_its_inputs_first_and_serves_from_them() {
    let (place, hub) = (Place::new(), hub());
    std::fs::write(place.path("task/task.toml"), task(&place)).unwrap();

    // Without a token the plan says that the model is gated, and runs nothing.
    let planned = isobench(&place, &hub, &["plan", "task/task.toml"], None);
    assert_eq!(planned.code, Some(4), "{planned:?}");
    assert!(planned.stdout.contains("model-gated") && planned.stdout.contains("HF_TOKEN"), "{}", planned.stdout);

    let planned = isobench(&place, &hub, &["plan", "task/task.toml", "--out", "plan"], Some(TOKEN));
    assert_eq!(planned.code, Some(0), "{planned:?}");
    for part in ["org/tiny", "org/prompts", "dataset", "tokenizer", "30", "the hub"] {
        assert!(planned.stdout.contains(part), "`{part}` isn't in\n{}", planned.stdout);
    }
    let body = |request: &isobench_testkit::HubRequest| request.to_second_host && request.method == "GET";
    assert!(!hub.requests().iter().any(body), "planning fetches nothing");

    let run = isobench(&place, &hub, &["run", "plan", "--out", "run"], Some(TOKEN));
    assert_eq!(run.code, Some(0), "{run:?}");
    run.says(&["fetching model org/tiny: `model.safetensors`, 300.0 kB", "whole and verified"]);
    let fetched = hub.requests().iter().filter(|request| body(request)).count();
    assert_eq!(fetched, 2, "the weights and the prompts, each once");
    assert!(hub.requests().iter().all(|request| !(request.to_second_host && request.has_token)));

    let launches = launches(&place, "run");
    assert!(!launches.is_empty());
    for record in launches {
        assert_eq!(record.outcome, Outcome::Measured, "{record:?}");
        assert!(record.key.0.contains_key(&KeyField::Inputs));
    }
    let plan = std::fs::read_to_string(place.path("run/plan.json")).unwrap();
    assert!(plan.contains("model org/tiny@") && plan.contains("dataset org/prompts@"), "the digests are in the plan");
    place.check_sound("run");
    for name in ["run", "cache", "plan"] {
        check_without_token(&place.path(name));
    }

    // Another run of the same plan asks the hub for nothing; without it too.
    let asked = hub.requests().len();
    drop(hub);
    let gone = FakeHub::start().unwrap();
    let again = isobench(&place, &gone, &["run", "plan", "--out", "again"], None);
    assert_eq!((again.code, gone.requests().len()), (Some(0), 0), "{again:?} {asked}");

    let listed = place.expect(0, &["environments", "list"]);
    assert!(listed.stdout.contains("model org/tiny@") && listed.stdout.contains(" by again"), "{}", listed.stdout);
    let proven = place.expect(0, &["environments", "prove"]);
    assert!(proven.stdout.lines().all(|line| line.ends_with(": as recorded")), "{}", proven.stdout);

    // Changed files are found, and what nobody uses can go.
    let blob = std::fs::read_dir(place.path("cache/inputs/blobs")).unwrap().flatten().map(|entry| entry.path());
    let blob =
        blob.filter(|path| path.extension().is_none()).max_by_key(|path| path.metadata().unwrap().len()).unwrap();
    std::fs::remove_file(&blob).unwrap();
    std::fs::write(&blob, vec![8_u8; 300_000]).unwrap();
    let proven = place.expect(100, &["environments", "prove"]);
    assert!(proven.stdout.contains("`model.safetensors` isn't what its hash says"), "{}", proven.stdout);
    place.expect(2, &["environments", "prune"]).says(&["--max-size", "--unused-days"]);
    let would = place.expect(0, &["environments", "prune", "--max-size", "0", "--dry-run"]);
    assert_eq!(would.stdout.lines().count(), listed.stdout.lines().count());
    assert_eq!(place.expect(0, &["environments", "list"]).stdout.lines().count(), listed.stdout.lines().count());
    place.expect(0, &["environments", "prune", "--max-size", "0"]).says(&["are gone"]);
    assert_eq!(place.expect(0, &["environments", "list"]).stdout, "");
    assert!(!blob.exists());
}

fn launches(place: &Place, run: &str) -> Vec<LaunchRecord> {
    let ended = events(&place.path(run)).into_iter().filter_map(|event| {
        let EventKind::BlockEnded { launches, .. } = event.kind else { return None };
        Some(launches)
    });
    ended.flatten().collect()
}

fn check_without_token(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            check_without_token(&path);
        } else if let Ok(bytes) = std::fs::read(&path) {
            assert!(!bytes.windows(TOKEN.len()).any(|part| part == TOKEN.as_bytes()), "{}", path.display());
        }
    }
}

#[test]
fn an_input_that_cannot_be_had_is_the_failure_of_every_launch_and_no_error() {
    let (place, hub) = (Place::new(), hub());
    std::fs::write(place.path("task/task.toml"), task(&place)).unwrap();
    let planned = isobench(&place, &hub, &["plan", "task/task.toml", "--out", "plan"], Some(TOKEN));
    assert_eq!(planned.code, Some(0), "{planned:?}");
    hub.break_model(MODEL, Some("model.safetensors"), HubFault::WrongBytes { times: 99 });
    let run = isobench(&place, &hub, &["run", "plan", "--out", "run"], Some(TOKEN));
    assert_eq!(run.code, Some(100), "{run:?}");
    run.says(&["input-damaged", "model.safetensors"]);
    let class = |record: LaunchRecord| match record.outcome {
        Outcome::Failed { failure } => failure.class,
        Outcome::Measured | Outcome::Interrupted => panic!("{}", record.launch),
    };
    let classes: Vec<_> = launches(&place, "run").into_iter().map(class).collect();
    assert!(!classes.is_empty() && classes.iter().all(|class| *class == FailureClass::InputDamaged), "{classes:?}");
    // Mended, the same command begins anew in another folder and measures.
    hub.mend();
    let run = isobench(&place, &hub, &["run", "plan", "--out", "mended"], Some(TOKEN));
    assert_eq!(run.code, Some(0), "{run:?}");
}

#[test]
fn a_run_that_is_killed_while_it_fetches_goes_on_where_it_was() {
    let (place, hub) = (Place::new(), hub());
    std::fs::write(place.path("task/task.toml"), task(&place)).unwrap();
    let planned = isobench(&place, &hub, &["plan", "task/task.toml", "--out", "plan"], Some(TOKEN));
    assert_eq!(planned.code, Some(0), "{planned:?}");
    hub.break_model(MODEL, Some("model.safetensors"), HubFault::Slow { bytes: 20_000, pause_ms: 200 });
    let mut command = place.isobench(["run", "plan", "--out", "run"]);
    command.env("HF_ENDPOINT", hub.endpoint()).env("HF_TOKEN", TOKEN).env("HOME", place.root());
    command.env_remove("HF_HUB_CACHE").env_remove("HF_HOME").env_remove("HF_HUB_OFFLINE");
    let mut running = support::Running::start(&mut command);
    let part = || {
        let blobs = std::fs::read_dir(place.path("cache/inputs/blobs")).into_iter().flatten().flatten();
        let parts = blobs.filter(|entry| entry.path().extension().is_some_and(|end| end == "part"));
        parts.filter_map(|entry| entry.metadata().ok()).map(|data| data.len()).max().unwrap_or(0)
    };
    let deadline = std::time::Instant::now() + support::PATIENCE;
    while part() < 40_000 {
        assert!(std::time::Instant::now() < deadline, "nothing is fetched");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    running.signal(rustix::process::Signal::KILL);
    running.finish();
    let left = part();
    hub.mend();
    let run = isobench(&place, &hub, &["run", "plan", "--out", "run"], Some(TOKEN));
    assert_eq!(run.code, Some(0), "{run:?}");
    let went_on =
        hub.requests().iter().any(|request| request.to_second_host && request.from.is_some_and(|from| from >= left));
    assert!(went_on, "{left} bytes were there: {:?}", hub.requests());
    place.check_sound("run");
}
