//! Input that isn't what it should be, or that wants more than it may.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use isobench_schema::failure::FailureClass;
use isobench_schema::outcome::{Outcome, evidence};
use isobench_testkit::Fault;
use serde_json::Value;

use crate::support::{Place, complete_launches};

#[test]
fn a_plan_that_is_rubbish_is_refused_by_its_file() {
    let place = Place::new();
    place.write_task(&place.task_text());
    place.expect(0, &["plan", "task", "--out", "plan", "--quiet"]);
    let plan = fs::read_to_string(place.path("plan/plan.json")).unwrap();
    for (text, part) in [
        (String::new(), "isobench.plan"),
        ("[]".to_owned(), "isobench.plan"),
        ("{\"format\": \"isobench.facts/1\"}".to_owned(), "expected the format `isobench.plan/1`"),
        (plan.replacen("isobench.plan/1", "isobench.plan/7", 1), "the format `isobench.plan/7` is newer"),
        (plan[..plan.len() / 2].to_owned(), "EOF"),
        (plan.replacen("\"tasks\"", "\"taks\"", 1), "taks"),
        (format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)), "recursion"),
    ] {
        fs::write(place.path("plan/plan.json"), text).unwrap();
        place.expect(2, &["run", "plan", "--out", "run"]).says(&[part]);
    }
    assert!(!place.path("run/events.jsonl").exists());
}

#[test]
fn a_log_that_is_rubbish_is_refused_with_its_line_and_never_mended_by_force() {
    let place = Place::new();
    let mut text = place.task_text();
    text.blocks = 1;
    place.write_task(&text);
    place.expect(0, &["run", "task", "--out", "run", "--quiet"]);
    let path = place.path("run/events.jsonl");
    let whole = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = whole.split_inclusive(|&byte| byte == b'\n').collect();
    let without = |gone: usize| {
        lines.iter().enumerate().filter(|(place, _)| *place != gone).flat_map(|(_, line)| line.to_vec()).collect()
    };
    let mut binary = whole.clone();
    binary[whole.len() / 2] = 0xff;
    let twice: Vec<u8> = whole.iter().chain(lines[2]).copied().collect();
    for damaged in [Vec::new(), b"rubbish\n".to_vec(), binary, without(0), without(2), twice] {
        fs::write(&path, &damaged).unwrap();
        for command in [["run", "run"], ["judge", "run"], ["verify", "run"]] {
            let refused = place.finish(command);
            assert!(matches!(refused.code, Some(1 | 2)), "{command:?}: {refused:?}");
            let all = refused.stdout + &refused.stderr;
            assert!(all.contains("events.jsonl"), "{command:?}: {all}");
        }
        assert_eq!(fs::read(&path).unwrap(), damaged, "it was changed");
    }
    // Only an event that is cut short is what a kill leaves.
    fs::write(&path, &whole[..whole.len() - 3]).unwrap();
    place.expect(0, &["run", "run"]).says(&["the last event was cut short and is dropped"]);
    place.check_sound("run");
}

#[test]
fn a_task_that_is_huge_or_no_text_is_a_problem_of_its_own() {
    let place = Place::new();
    for name in ["good", "huge", "binary", "deep", "folder"] {
        fs::create_dir_all(place.path("tasks").join(name)).unwrap();
    }
    let file = |name: &str| place.path("tasks").join(name).join("task.toml");
    let mut text = place.task_text();
    text.id = "good".to_owned();
    fs::write(file("good"), text.toml()).unwrap();
    let mut huge = fs::File::create(file("huge")).unwrap();
    for _ in 0..50 {
        huge.write_all(
            "x = \"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\"\n".repeat(16384).as_bytes(),
        )
        .unwrap();
    }
    fs::write(file("binary"), [0, 159, 146, 150, 255, 0, 10]).unwrap();
    fs::write(file("deep"), format!("a = {}", "[".repeat(100_000))).unwrap();
    fs::create_dir(file("folder")).unwrap();
    let planned = place.expect(0, &["plan", "tasks", "--dry-run", "--json", "--quiet"]);
    let plan: Value = serde_json::from_str(&planned.stdout).unwrap();
    assert_eq!(plan["tasks"].as_array().unwrap().len(), 1);
    let problems: Vec<String> = plan["problems"].as_array().unwrap().iter().map(Value::to_string).collect();
    for name in ["huge", "binary", "deep"] {
        let said = problems.iter().find(|problem| problem.contains(&format!("{name}/task.toml")));
        let said = said.unwrap_or_else(|| panic!("{name}: {problems:#?}"));
        assert!(said.len() < 3000, "{name}: {} bytes", said.len());
    }
}

#[test]
fn what_a_repository_is_configured_to_run_is_never_run() {
    let place = Place::new();
    let repository = &place.repository.dir;
    let ran = place.path("ran");
    let program = place.path("program");
    fs::write(&program, format!("#!/bin/sh\necho \"$0 $*\" >> {}\ncat\n", ran.display())).unwrap();
    let git = |arguments: &[&str]| {
        let status = Command::new("git").arg("-C").arg(repository).args(arguments).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    let executable = |path: &std::path::Path| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    executable(&program);
    let program = program.to_str().unwrap();
    for key in [
        "core.fsmonitor",
        "core.sshCommand",
        "core.pager",
        "core.editor",
        "core.gitProxy",
        "core.askPass",
        "uploadpack.packObjectsHook",
        "filter.evil.smudge",
        "filter.evil.clean",
        "filter.evil.process",
        "diff.external",
        "credential.helper",
        "gpg.program",
        "tar.tar.command",
    ] {
        git(&["config", key, program]);
    }
    git(&["config", "alias.archive", &format!("!{program}")]);
    fs::write(repository.join(".git/info/attributes"), "* filter=evil diff=evil export-subst\n").unwrap();
    for hook in ["post-checkout", "pre-commit", "post-index-change", "reference-transaction", "update", "pre-receive"] {
        let path = repository.join(".git/hooks").join(hook);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, format!("#!/bin/sh\necho hook {hook} >> {}\n", ran.display())).unwrap();
        executable(&path);
    }
    let mut text = place.task_text();
    text.blocks = 1;
    place.write_task(&text);
    place.expect(0, &["run", "task", "--out", "run", "--quiet"]);
    assert_eq!(complete_launches(&place.path("run")).len(), 2);
    assert!(!ran.exists(), "{}", fs::read_to_string(&ran).unwrap_or_default());
    place.check_sound("run");
}

#[test]
fn a_repository_or_revision_that_could_be_an_option_or_a_command_is_refused() {
    let place = Place::new();
    let ran = place.path("ran");
    let touch = format!("touch {}", ran.display());
    for (from, to) in [
        ("baseline = \"baseline\"", "baseline = \"--upload-pack=x\"".to_owned()),
        ("baseline = \"baseline\"", "baseline = \"no-such-revision\"".to_owned()),
        ("repository = ", format!("repository = \"ext::sh -c '{touch}'\" # ")),
        ("repository = ", format!("repository = \"--upload-pack={touch}\" # ")),
        ("repository = ", "repository = \"nowhere\" # ".to_owned()),
    ] {
        let text = place.task_text().toml();
        assert!(text.contains(from));
        fs::write(place.path("task/task.toml"), text.replacen(from, &to, 1)).unwrap();
        let refused = place.finish(["run", "task", "--out", "run"]);
        assert!(matches!(refused.code, Some(2 | 4)), "{to}: {refused:?}");
        assert!(!ran.exists(), "{to}");
    }
}

#[test]
fn an_engine_that_touches_its_evidence_is_charged_with_it_and_never_stops_the_run() {
    let place = Place::new();
    let mut text = place.task_text();
    text.blocks = 1;
    // Before the engine listens, or with the seventh request, which is in the window.
    let cases = [
        ("removing", 7, "rm $HOME/../requests.jsonl", "found: nothing"),
        ("linking", 7, "ln -sf /etc/hostname $HOME/../requests.jsonl", "found: nothing"),
        ("adding", 7, "echo more >> $HOME/../requests.jsonl", "found: "),
        ("piping", 0, "mkfifo $HOME/../proof.live.json", "File exists"),
    ];
    for (name, request, command, _) in cases {
        text = place.with_faults(text, name, &[Fault::Shell(request, command.to_owned())]);
    }
    let links = "cd $HOME/.. && rm server.stdout launch.json && mkdir launch.json && ln -s /dev/zero server.stdout";
    text = place.with_faults(text, "harmless", &[Fault::Shell(7, links.to_owned())]);
    place.write_task(&text);
    place.expect(100, &["run", "task", "--out", "run", "--allow-unisolated", "--quiet"]);
    let launches = complete_launches(&place.path("run"));
    assert_eq!(launches.len(), 7);
    let of = |name: &str| {
        let arm = format!("agent:{name}");
        launches.iter().find(|record| record.launch.arm.to_string() == arm).unwrap()
    };
    for (name, _, _, line) in cases {
        let Outcome::Failed { failure } = &of(name).outcome else { panic!("{name}: {:?}", of(name)) };
        assert_eq!(failure.class, FailureClass::EvidenceAltered, "{name}: {failure:?}");
        assert!(failure.evidence.iter().any(|found| found.text.contains(line)), "{name}: {failure:?}");
    }
    let harmless = of("harmless");
    assert_eq!(harmless.outcome, Outcome::Measured);
    let kept = |name: &str| harmless.evidence.contains_key(name);
    assert!(kept(evidence::REQUESTS) && !kept(evidence::SERVER_STDOUT) && !kept(evidence::LAUNCH), "{harmless:?}");
    place.check_sound("run");
}
