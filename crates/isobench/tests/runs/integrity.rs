//! What is derived can be deleted; what isn't can't be altered unseen.

use std::fs;
use std::path::{Path, PathBuf};

use isobench_schema::outcome::LaunchRecord;
use serde_json::Value;

use crate::support::{Place, complete_launches};

/// Returns a place with a finished run of one block.
fn finished() -> Place {
    let place = Place::new();
    let mut text = place.task_text();
    text.blocks = 1;
    place.write_task(&text);
    place.expect(0, &["run", "task", "--out", "run", "--quiet"]);
    place
}

fn derived(place: &Place) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(place.path("run/derived")).unwrap().flatten().map(|e| e.path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn deleting_everything_derived_and_judging_again_gives_the_same_bytes() {
    let place = finished();
    let before = derived(&place);
    assert!(before.len() >= 4, "{before:?}");
    let report = place.expect(0, &["report", "run", "--format", "html"]).stdout;
    let judged = place.expect(0, &["judge", "run", "--json"]).stdout;
    fs::remove_dir_all(place.path("run/derived")).unwrap();
    assert_eq!(place.expect(0, &["judge", "run", "--json"]).stdout, judged);
    assert_eq!(place.expect(0, &["report", "run", "--format", "html"]).stdout, report);
    place.expect(0, &["run", "run", "--quiet"]);
    assert_eq!(derived(&place), before);
    // In sentences, and as plots.
    let explained = place.expect(0, &["judge", "run", "--explain"]).stdout;
    assert!(explained.contains("- `") && explained.trim_end().ends_with('.'), "{explained}");
    let sentences: Value =
        serde_json::from_str(&place.expect(0, &["judge", "run", "--explain", "--json"]).stdout).unwrap();
    assert_eq!(sentences["explanations"][0]["of"], "human", "{sentences:#}");
    place.expect(0, &["report", "run", "--svg", "plots"]);
    let plots = fs::read_dir(place.path("plots")).unwrap().flatten().map(|entry| entry.path());
    let texts: Vec<String> = plots.map(|path| fs::read_to_string(path).unwrap()).collect();
    assert!(!texts.is_empty() && texts.iter().all(|text| text.starts_with("<svg") && text.contains("</svg>")));
    // A kept judgement is used only for exactly the record that it was made from.
    fs::write(place.path("run/derived/judgement.json"), "rubbish").unwrap();
    assert_eq!(place.expect(0, &["report", "run", "--format", "html"]).stdout, report);
}

#[test]
fn what_was_computed_is_believed_only_as_it_was_computed() {
    let place = finished();
    let report = place.expect(0, &["report", "run", "--format", "csv"]).stdout;
    // A number in the kept judgement, and then in the digest of a launch.
    for (name, from) in [("judgement.json", "\"value\": "), ("launches.jsonl", "\"output_throughput\":")] {
        let path = place.path("run/derived").join(name);
        let whole = fs::read_to_string(&path).unwrap();
        let altered = whole.replace(from, &format!("{from}9"));
        assert_ne!(altered, whole, "`{from}` isn't in {name}");
        fs::write(&path, altered).unwrap();
        assert_eq!(place.expect(0, &["report", "run", "--format", "csv"]).stdout, report, "{name}");
        assert_eq!(fs::read_to_string(&path).unwrap(), whole, "{name} is made anew");
        fs::remove_file(place.path("run/derived/judgement.json")).unwrap();
    }
    // Digests whose evidence is gone.
    let record = &complete_launches(&place.path("run"))[0];
    let digest = record.evidence["requests.jsonl"].digest.to_string();
    fs::remove_file(place.path("run/artifacts").join(&digest[..2]).join(format!("{digest}.zst"))).unwrap();
    for command in ["judge", "report"] {
        place.expect(1, &[command, "run"]).says(&["the request records of `task", "can't be read", "isobench verify"]);
    }
}

#[test]
fn what_a_person_names_is_never_replaced_by_a_file_unless_it_is_one() {
    let place = finished();
    place.expect(2, &["plan", "task", "--out", "run"]).says(&["holds a run", "another folder"]);
    place.check_sound("run");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        place.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    place.expect(2, &["report", "run", "--out", "pipe"]).says(&["pipe", "no plain file"]);
    place.expect(2, &["noise", "--list", "--library", "pipe"]).says(&["pipe", "no plain file"]);
    fs::write(place.path("page.md"), "old").unwrap();
    std::os::unix::fs::symlink("page.md", place.path("link.md")).unwrap();
    place.expect(0, &["report", "run", "--format", "markdown", "--out", "link.md"]);
    assert!(place.path("link.md").is_symlink());
    assert!(fs::read_to_string(place.path("page.md")).unwrap().contains("baseline"));
}

/// Checks that `verify` finds damage with a message that holds `part`.
fn check_found(place: &Place, part: &str) {
    let found = place.expect(1, &["verify", "run", "--json"]);
    let found: Value = serde_json::from_str(&found.stdout).unwrap();
    let is_it = |finding: &&Value| {
        finding["severity"] == "damage" && finding["message"].as_str().is_some_and(|message| message.contains(part))
    };
    assert!(found["findings"].as_array().unwrap().iter().any(|finding| is_it(&finding)), "`{part}` in {found:#}");
}

#[test]
fn an_altered_or_missing_piece_of_evidence_is_found() {
    let place = finished();
    place.check_sound("run");
    let record = &complete_launches(&place.path("run"))[0];
    for (name, artifact) in &record.evidence {
        let digest = artifact.digest.to_string();
        let path = place.path("run/artifacts").join(&digest[..2]).join(format!("{digest}.zst"));
        let whole = fs::read(&path).unwrap();
        let mut altered = whole.clone();
        let middle = altered.len() / 2;
        altered[middle] ^= 1;
        fs::write(&path, altered).unwrap();
        check_found(&place, &format!("`{name}` of `"));
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        check_found(&place, "was cut or altered");
        fs::remove_file(&path).unwrap();
        check_found(&place, "is missing");
        fs::write(&path, whole).unwrap();
    }
    place.check_sound("run");
}

#[test]
fn an_altered_event_plan_or_fact_is_found() {
    let place = finished();
    let alter = |file: &str, from: &str, to: &str| {
        let path = place.path("run").join(file);
        let text = fs::read_to_string(&path).unwrap();
        let altered = text.replacen(from, to, 1);
        assert_ne!(altered, text, "`{from}` isn't in {file}");
        fs::write(&path, altered).unwrap();
        (path, text)
    };
    let record = &complete_launches(&place.path("run"))[0];
    let length = format!("\"bytes\":{}", record.evidence["requests.jsonl"].bytes);
    for (from, to, part) in [
        (r#""sequence":3"#, r#""sequence":4"#, "is event 4 where event 3 must stand"),
        (r#""attempt":1"#, r#""attempt":2"#, "attempt"),
        (r#""block-started""#, r#""block-begun""#, "block-begun"),
        (r#"{"status":"measured"}"#, r#"{"status":"interrupted"}"#, "the kept judgement isn't what the evidence gives"),
        (length.as_str(), r#""bytes":7"#, "its record says 7"),
    ] {
        let (path, text) = alter("events.jsonl", from, to);
        check_found(&place, part);
        fs::write(path, text).unwrap();
    }
    // The evidence of two arms under each other's names.
    let evidence_of =
        |record: &LaunchRecord| format!("\"evidence\":{}", serde_json::to_string(&record.evidence).unwrap());
    let records = complete_launches(&place.path("run"));
    let (one, other) = (evidence_of(&records[0]), evidence_of(&records[1]));
    let (path, text) = alter("events.jsonl", &one, "\u{1}");
    fs::write(&path, text.replace(&one, "\u{1}").replace(&other, &one).replace('\u{1}', &other)).unwrap();
    check_found(&place, "is of another environment");
    fs::write(path, text).unwrap();
    let (path, text) = alter("facts.json", "\"fingerprint\"", "\"fingerprint\" ");
    check_found(&place, "the facts have the digest");
    fs::write(path, text).unwrap();
    let (path, text) = alter("plan.json", "\"margin\": 0.9", "\"margin\": 0.8");
    let found = place.finish(["verify", "run"]);
    assert_eq!(found.code, Some(1), "{found:?}");
    assert!((found.stdout + &found.stderr).contains("plan"));
    fs::write(path, text).unwrap();
    place.check_sound("run");
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let place = finished();
    for (file, name) in [("plan.json", "plan"), ("facts.json", "facts"), ("events.jsonl", "events")] {
        let path = place.path("run").join(file);
        let text = fs::read_to_string(&path).unwrap();
        newer(&path, name);
        for command in [["judge", "run"], ["verify", "run"], ["run", "run"]] {
            let refused = place.finish(command);
            let all = refused.stdout.clone() + &refused.stderr;
            assert!(matches!(refused.code, Some(1 | 2)), "{refused:?}");
            assert!(all.contains(&format!("the format `isobench.{name}/99` is newer than this isobench")), "{all}");
        }
        fs::write(path, text).unwrap();
    }
    place.check_sound("run");
}

fn newer(path: &Path, name: &str) {
    let text = fs::read_to_string(path).unwrap();
    let newer = text.replacen(&format!("isobench.{name}/1"), &format!("isobench.{name}/99"), 1);
    assert_ne!(newer, text);
    fs::write(path, newer).unwrap();
}
