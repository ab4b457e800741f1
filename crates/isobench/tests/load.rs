//! `isobench load` against a server that knows when each of its tokens left.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "all of it is test code")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use isobench_testkit::TruthServer;
use serde_json::Value;

/// A first token after 20 ms, and one every 2 ms.
const STEADY: &str = "ttft_us=20000&itl_us=2000";

/// A folder, and the command with its cache in it.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_isobench"));
        command.env("XDG_CACHE_HOME", self.0.path().join("cache")).env_remove("OPENAI_API_KEY").current_dir(&self.0);
        command
    }

    fn load(&self, words: &[&str]) -> Output {
        self.command().arg("load").args(words).output().unwrap()
    }

    /// Loads, and returns the result that is written to `result.json`.
    fn result(&self, words: &[&str]) -> Value {
        let out = self.path("result.json");
        let output = self.load(&[words, &["--json", &out, "--no-live"]].concat());
        let told = String::from_utf8_lossy(&output.stderr);
        let text = fs::read(out).unwrap_or_else(|error| panic!("{error}: {told}"));
        serde_json::from_slice(&text).unwrap()
    }
}

/// A tokenizer whose tokens are the words that the truth server puts out, and some more.
fn tokenizer(folder: &Path) {
    let words =
        ["<unk>", "the", "of", "and", "to", "in", "is", "you", "that", "it", "he", "was", "for", "on", "are", "as"];
    let vocabulary: serde_json::Map<String, Value> =
        words.iter().enumerate().map(|(id, word)| ((*word).to_owned(), id.into())).collect();
    let tokenizer = serde_json::json!({
        "version": "1.0", "truncation": null, "padding": null, "added_tokens": [], "normalizer": null,
        "pre_tokenizer": {"type": "Whitespace"}, "post_processor": null, "decoder": null,
        "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "<unk>"},
    });
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("tokenizer.json"), tokenizer.to_string()).unwrap();
}

/// Presses Ctrl-C.
fn interrupt(child: &std::process::Child) {
    let pid = rustix::process::Pid::from_raw(child.id().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

const BRIEF: [&str; 8] = ["--concurrency", "8", "--requests", "64", "--input-len", "16", "--output-len", "8"];

#[test]
fn a_script_gets_one_object_with_metrics_and_audit() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    tokenizer(&place.0.path().join("model"));
    let result = place.result(&[&[server.url()], &BRIEF[..], &["--tokenizer", "model"]].concat());
    let metric = |name: &str| result["metrics"][name].as_f64().unwrap_or_else(|| panic!("{name}: {result:#}"));
    assert_eq!((metric("completed"), metric("failed")), (64.0, 0.0));
    // No token was seen before it was due. Gaps may be shorter where a busy server sent the first of two late.
    assert!(metric("mean_ttft_ms") >= 20.0 && metric("mean_e2el_ms") >= 34.0, "{result:#}");
    assert!(metric("mean_tpot_ms") > 0.0, "{result:#}");
    assert!((metric("total_output_tokens") - 512.0).abs() < f64::EPSILON);
    assert!((metric("total_input_tokens") - 1024.0).abs() < f64::EPSILON);
    assert!(metric("output_throughput") > 0.0 && metric("p90_itl_ms") > 0.0);
    assert!(result["too_few"].as_array().unwrap().contains(&"p99_ttft_ms".into()));
    for key in ["verdict", "busy_share", "stamped_share", "lag", "turnaround_ms"] {
        assert!(!result["audit"][key].is_null(), "{key}: {:#}", result["audit"]);
    }
    assert_eq!(result["seed"], 1);
    assert!(result["tokenizer_digest"].is_string() && result["workload_digest"].is_string());
    // The same seed gives the same requests, now from the cache.
    let again = place.result(&[&[server.url()], &BRIEF[..], &["--tokenizer", "model"]].concat());
    assert_eq!(again["workload_digest"], result["workload_digest"]);
}

#[test]
fn failed_requests_are_counted_by_class_and_averaged_into_nothing() {
    let (place, server) = (Place::new(), TruthServer::start(&format!("{STEADY}&http_every=4")));
    let result = place.result(&[&[server.url()], &BRIEF[..], &["--counter", "usage", "--model", "mock"]].concat());
    assert_eq!(result["validity"], "failed-requests");
    let failed = result["metrics"]["failed"].as_f64().unwrap();
    assert!(failed > 0.0 && result["failures"][0]["class"] == "http-error", "{result:#}");
    assert!(result["metrics"]["mean_ttft_ms"].as_f64().unwrap() >= 20.0, "a refusal is no first token");
    let output = place.load(&[&[server.url()], &BRIEF[..], &["--counter", "usage", "--model", "mock"]].concat());
    assert_eq!(output.status.code(), Some(100));
}

#[test]
fn records_tables_and_pages_are_written_and_read_back() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    let files = ["r.jsonl.zst", "t.parquet", "m.csv", "p.html", "v.json"].map(|name| place.path(name));
    let [records, parquet, csv, html, vllm] = &files;
    let outputs =
        ["--records", records, "--parquet", parquet, "--csv", csv, "--html", html, "--format", "vllm", "--out", vllm];
    let result = place.result(&[&[server.url()], &BRIEF[..], &outputs].concat());
    assert!(files.iter().all(|file| fs::metadata(file).unwrap().len() > 200), "{files:?}");
    assert!(fs::read_to_string(csv).unwrap().contains("mean_ttft_ms"));
    assert!(fs::read_to_string(html).unwrap().contains("<svg"));
    let vllm: Value = serde_json::from_slice(&fs::read(vllm).unwrap()).unwrap();
    assert_eq!(vllm["completed"], 64);
    // Theirs begins with the send, ours with the scheduled time, which is not later.
    let both = [&vllm["mean_ttft_ms"], &result["metrics"]["mean_ttft_ms"]].map(|ttft| ttft.as_f64().unwrap());
    assert!(both[0] <= both[1] + 1e-6, "{both:?}");
    for file in ["v.json", "result.json"] {
        let parsed = place.command().args(["parse", file, "--json"]).output().unwrap();
        assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
    }
    let parsed = place.command().args(["parse", "result.json"]).output().unwrap();
    assert!(String::from_utf8_lossy(&parsed.stdout).contains("TTFT"), "{}", String::from_utf8_lossy(&parsed.stdout));
}

#[test]
fn a_server_that_is_not_there_is_named() {
    let place = Place::new();
    for words in
        [&["vllm", "bench", "serve", "--port", "1"][..], &["vllm", "bench", "serve", "--model", "m", "--port", "1"]]
    {
        let output = place.load(words);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && told.contains("http://127.0.0.1:1"), "{words:?}: {told}");
    }
}

#[test]
fn results_in_the_forms_of_other_clients_are_added_and_named() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    for _ in 0..2 {
        let words = [&[server.url()], &BRIEF[..], &["--output-file", "sub/all.jsonl", "--no-live", "-q"]].concat();
        place.load(&words);
    }
    let lines = fs::read_to_string(place.path("sub/all.jsonl")).unwrap();
    assert!(lines.ends_with('\n'), "{lines}");
    // That client writes a rate without end as Python does.
    let lines = lines.replace("Infinity", "null");
    let read: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(read.len(), 2);
    let words = ["--save-result", "--result-dir", "new", "--no-live", "-q"];
    let dry = [&[server.url()], &BRIEF[..], &words, &["--dry-run"]].concat();
    assert!(place.load(&dry).status.success() && !place.0.path().join("new").exists());
    place.load(&[&[server.url()], &BRIEF[..], &words].concat());
    let named: Vec<_> = fs::read_dir(place.path("new")).unwrap().map(|file| file.unwrap().file_name()).collect();
    let [name] = named.as_slice() else { panic!("{named:?}") };
    assert!(name.to_str().unwrap().starts_with("openai-infqps-concurrency8-model-"), "{name:?}");
}

#[test]
fn two_servers_are_compared_and_not_judged() {
    let (place, fast, slow) =
        (Place::new(), TruthServer::start(STEADY), TruthServer::start("ttft_us=40000&itl_us=2000"));
    let words = ["--concurrency", "4", "--requests", "200", "--input-len", "8", "--output-len", "4"];
    let result = place.result(&[&["--against", fast.url(), slow.url()], &words[..]].concat());
    let paired = &result["paired"]["checks"];
    assert_eq!(paired["mark"], "single-launch, exploratory");
    let ttft = &paired["metrics"]["ttft"]["by_time"];
    let change = ttft["change"].as_f64().unwrap_or_else(|| panic!("{paired:#}"));
    assert!((0.5..1.5).contains(&change), "twice the time to the first token: {paired:#}");
    assert_eq!(result["urls"].as_array().unwrap().len(), 2);
    for word in ["better", "worse", "equivalent"] {
        assert!(!paired.to_string().contains(&format!("\"{word}\"")), "{word} is a verdict");
    }
}

#[test]
fn a_comparison_is_worth_no_more_than_the_worse_of_its_two_loads() {
    let place = Place::new();
    let (whole, broken) = (TruthServer::start(STEADY), TruthServer::start(&format!("{STEADY}&abort=2")));
    let words = [&["--against", whole.url(), broken.url()], &BRIEF[..]].concat();
    let result = place.result(&[&words[..], &["--counter", "usage", "--model", "mock"]].concat());
    // On a busy machine the client may be found wanting too, which counts for less or for more.
    let validity = result["validity"].as_str().unwrap();
    assert!(["failed-requests", "client-bound"].contains(&validity), "{validity}");
    assert_eq!(result["metrics"]["failed"], 0.0, "the numbers are the first server's");
    let findings = result["findings"].as_array().unwrap();
    let is_of_broken = |finding: &Value| finding["message"].as_str().unwrap().starts_with(broken.url());
    assert!(findings.iter().any(is_of_broken), "{findings:?}");
}

#[test]
fn a_sweep_finds_where_the_server_has_no_more_places() {
    let (place, server) = (Place::new(), TruthServer::start("ttft_us=5000&itl_us=1000&slots=4"));
    let words = ["--sweep", "concurrency", "--sweep-levels", "1,4,16", "--requests", "160", "--input-len", "8"];
    let result = place.result(&[&[server.url()], &words[..], &["--output-len", "4"]].concat());
    let sweep = &result["sweep"];
    assert_eq!((&sweep["by"], &sweep["end"]), (&"concurrency".into(), &"given".into()), "{sweep:#}");
    assert_eq!(sweep["steps"].as_array().unwrap().len(), 3);
}

#[test]
fn nothing_but_a_url_finds_the_rest() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    let result = place.result(&[server.url(), "--duration", "2s", "--warm-up", "1s"]);
    assert_eq!((&result["model"], &result["workload"]["api"]), (&"mock".into(), &"completions".into()));
    assert_eq!(result["counted_by"], "token-ids");
    let duration = result["metrics"]["duration"].as_f64().unwrap();
    assert!((1.5..20.0).contains(&duration), "{duration}");
    let shown = place.load(&[server.url(), "--dry-run"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["model"], &shown["workload"]["output_tokens"]), (&"mock".into(), &64.into()));
    // However quickly the probe was answered, the same load is the same.
    let again = place.result(&[server.url(), "--duration", "2s", "--warm-up", "1s"]);
    assert_eq!(again["workload_digest"], result["workload_digest"]);
    let other = place.result(&[server.url(), "--duration", "2s", "--warm-up", "1s", "--seed", "2"]);
    assert_ne!(other["workload_digest"], result["workload_digest"]);
    // Words have the tokens that the server says.
    assert_eq!(result["input_counted_by"], "usage");
    assert!(result["metrics"]["completed"].is_u64(), "{:#}", result["metrics"]);
}

#[test]
fn a_trace_is_sent_once_by_its_own_times() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    tokenizer(&place.0.path().join("model"));
    let rows = ["0,4,6", "0,0,6", "1,5,8", "2.5,4,7"].map(|row| {
        let mut fields = row.split(',');
        let mut next = || fields.next().unwrap();
        format!("{{\"timestamp\": {}, \"input_length\": {}, \"output_length\": {}}}\n", next(), next(), next())
    });
    fs::write(place.path("t.jsonl"), rows.concat()).unwrap();
    let result = place.result(&[server.url(), "--dataset", "t.jsonl", "--arrival", "trace", "--tokenizer", "model"]);
    let metrics = ["completed", "failed", "total_output_tokens"].map(|name| &result["metrics"][name]);
    assert_eq!(metrics, [3.0, 0.0, 21.0], "{result:#}");
}

#[test]
fn a_load_that_is_interrupted_says_so() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    let out = place.path("result.json");
    let words = [server.url(), "--concurrency", "2", "--requests", "5000", "--json", &out, "--no-live"];
    let mut child = place.command().arg("load").args(words).stderr(std::process::Stdio::null()).spawn().unwrap();
    while server.stats()["requests"].as_u64().unwrap() < 20 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let result: Value = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
    assert_eq!(result["validity"], "interrupted");
    // Requests that weren't begun aren't missing.
    let findings: Vec<&str> =
        result["findings"].as_array().unwrap().iter().map(|finding| finding["message"].as_str().unwrap()).collect();
    assert!(findings[0].contains("interrupted before its end: the result holds the "), "{findings:?}");
    assert!(findings.iter().all(|message| !message.contains("records hold")), "{findings:?}");
}

#[test]
fn percentiles_that_were_asked_for_are_those_that_are_shown() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    let words = ["--counter", "usage", "--model", "mock", "--no-live"];
    let shown = |percentiles: &[&str]| {
        let output = place.load(&[&[server.url()], &BRIEF[..], &words, percentiles].concat());
        String::from_utf8(output.stdout).unwrap()
    };
    let usual = shown(&[]);
    assert!(
        usual.contains("p95") && usual.contains("p99") && usual.contains("tokens by the server's usage"),
        "{usual}"
    );
    let asked = shown(&["--percentiles", "50,90"]);
    assert!(asked.contains("p90") && !asked.contains("p95") && !asked.contains("n too small"), "{asked}");
}

#[test]
fn a_sweep_that_is_interrupted_says_so_and_leaves_the_cut_level_out() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    let out = place.path("result.json");
    let words = ["--sweep", "concurrency", "--sweep-levels", "2,4", "--requests", "200", "--input-len", "8"];
    let mut command = place.command();
    command.args(["load", server.url()]).args(words).args(["--output-len", "8", "--json", &out, "--no-live"]);
    let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
    while server.stats()["requests"].as_u64().unwrap() < 300 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    interrupt(&child);
    assert_eq!(child.wait().unwrap().code(), Some(5));
    let result: Value = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
    let sweep = &result["sweep"];
    assert_eq!((&result["validity"], &sweep["end"]), (&"interrupted".into(), &"stopped".into()), "{sweep:#}");
    assert_eq!(sweep["steps"].as_array().unwrap().len(), 1, "{sweep:#}");
    // On a busy machine the whole level may be none that was sustained; the one that was cut is never named.
    assert!([2.0.into(), Value::Null].contains(&sweep["highest_sustained"]), "{sweep:#}");
}

#[test]
fn a_sweep_that_says_nothing_is_no_success() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    let words = ["--sweep", "rate", "--sweep-levels", "5", "--duration", "1s", "--input-len", "8", "--no-live"];
    let output = place.load(&[&[server.url()], &words[..]].concat());
    assert_eq!(output.status.code(), Some(100), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn a_result_that_cannot_be_written_is_shown_and_the_cause_named() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    let output = place.load(&[&[server.url()], &BRIEF[..], &["--json", "/dev/full", "--no-live"]].concat());
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("/dev/full") && told.contains("No space left"), "{told}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("TTFT"));
}

#[test]
fn a_secret_is_sent_and_stands_in_nothing_that_is_written() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    let words = ["--header", "X-Api-Key: s3cret-one", "--records", "r.jsonl", "--html", "p.html"];
    let out = place.path("result.json");
    let mut command = place.command();
    command.env("OPENAI_API_KEY", "s3cret-two").arg("load").arg(server.url()).args(BRIEF).args(words);
    let output = command.args(["--json", &out]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let mut written = vec![output.stdout, output.stderr];
    for words in [
        &["--header", "X-Api-Key: s3cret-one", "--explain-flags", "--max-concurrency", "4"][..],
        &["--header", "X-Api-Key=s3cret-one", "--nosuchflag"],
        &["--header", "s3cret-one"],
        &["--api-key", "s3cret-one"],
        &["--apikey", "s3cret-one"],
        &["--heade", "Authorization: Bearer s3cret-one"],
        &["--api-key-env", "s3cret-one"],
        &["--model", "m", "http://user:s3cret-one@127.0.0.1:1"],
    ] {
        let output = place.load(words);
        written.extend([output.stdout, output.stderr]);
    }
    written.extend(["result.json", "r.jsonl", "p.html"].map(|name| fs::read(place.path(name)).unwrap()));
    for bytes in written {
        assert!(!String::from_utf8_lossy(&bytes).contains("s3cret"));
    }
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_sent() {
    let (place, server) = (Place::new(), TruthServer::start(STEADY));
    let check = |words: &[&str], expected: &str| {
        let output = place.load(&[&[server.url()], words].concat());
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {told}");
        assert!(told.contains(expected), "{words:?}: {told}");
    };
    check(&["--parquet", "t.parquet"], "--records");
    check(&["--html", "a.out", "--csv", "./a.out"], "`--html` and by `--csv`");
    check(&["--html", "."], "it is a folder");
    tokenizer(&place.0.path().join("model"));
    check(&["--tokenizer", "model", "--json", "model/tokenizer.json"], "by `--tokenizer` and by `--json`");
    std::os::unix::fs::symlink("x.out", place.path("link")).unwrap();
    check(&["--json", "x.out", "--records", "link"], "by `--json` and by `--records`");
    check(&["--sweep", "rate", "--sweep-goal", "nonsense<=5"], "`nonsense`");
    check(&["--api-key-env", "NO_SUCH_VARIABLE"], "`--api-key-env`");
    let told = ["--input-len", "8", "--output-len", "4", "--counter", "usage"];
    check(&[&["--requests", "5000", "--rate", "1"][..], &told].concat(), "`--deadline`");
    check(&["--sweep", "rate", "--rate", "2"], "`--rate` doesn't go with `--sweep rate`");
    check(&["--rate", "5", "--ramp", "2s"], "`--ramp`");
    fs::write(place.path("said.jsonl"), "{\"messages\":[{\"role\":\"assistant\",\"content\":\"a\"}]}\n").unwrap();
    check(&["--dataset", "said.jsonl"], "turn by turn");
    check(&["--dataset", "said.jsonl", "--records", "said.jsonl"], "by `--dataset` and by `--records`");
    check(&["--json", "no/such/folder/r.json"], "no/such/folder");
    check(&["--counter", "tokenizer"], "--tokenizer DIR");
    check(&["--tokenizer", "nowhere"], "nowhere");
    check(&["--dataset", "nosuch"], "`prefix-repetition`");
    check(&["--dataset", "prefix-tree"], "give `--tokenizer DIR`");
    check(&["--rate", "5", "--concurrency", "4"], "`--max-in-flight 4`");
    check(&["--header", "Host: a"], "Host");
    check(&["--goodput", "ttft<"], "ttft<");
    check(&["--pin", "60000"], "processor 60000");
    check(&["--json", "--format", "vllm"], "two documents");
    check(&["--requests", "-1"], "-1 is not in 1..");
    check(&["--dataset", "sharegpt", "--dataset-option", "dataset-path=said.jsonl"], "leave `--dataset`");
    fs::write(place.path("empty.jsonl"), "").unwrap();
    check(&["--dataset", "empty.jsonl"], "`empty.jsonl` is empty");
    check(&["--dataset", "custom", "--dataset-option", "dataset-path=empty.jsonl"], "it is empty");
    fs::write(place.path("own.jsonl"), "{\"prompt\":\"a b\",\"output_tokens\":3}\n").unwrap();
    check(&["--dataset", "own.jsonl"], "`input_tokens`");
    check(&["--unix", "no/such.sock"], "can't connect to `no/such.sock`");
    let secure = server.url().replace("http://", "https://");
    let output = place.load(&[&secure]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("plain HTTP"), "{told}");
    assert_eq!(server.stats()["requests"], 0);
}
