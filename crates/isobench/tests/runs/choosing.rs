//! What of a dataset is planned and run, what is set, and what is refused.

use std::fs;

use isobench_testkit::HumanArm;
use serde_json::Value;

use crate::support::{Place, arm, complete_launches};

/// Returns a place with a dataset of three tasks: `a` and `c` are serving, `b` is latency.
fn dataset() -> Place {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        let mut text = place.task_text();
        name.clone_into(&mut text.id);
        let text = text.toml();
        let text = if name == "b" { text.replace("\"serving\"", "\"latency\"") } else { text };
        let folder = place.path("tasks").join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("task.toml"), text).unwrap();
    }
    place
}

fn planned(place: &Place, options: &[&str], code: i32) -> Value {
    let command = ["plan", "tasks", "--dry-run", "--json", "--quiet"].into_iter().chain(options.iter().copied());
    let finished = place.finish(command);
    assert_eq!(finished.code, Some(code), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"))
}

fn ids(list: &Value, key: &str) -> Vec<String> {
    list.as_array().unwrap().iter().map(|one| one[key].as_str().unwrap().to_owned()).collect()
}

#[test]
fn options_choose_tasks_and_arms() {
    let place = dataset();
    for (options, tasks) in [
        (vec![], vec!["a", "b", "c"]),
        (vec!["--task", "c", "--task", "a"], vec!["a", "c"]),
        (vec!["--limit", "2"], vec!["a", "b"]),
        (vec!["--kind", "latency"], vec!["b"]),
        (vec!["--kind", "serving", "--limit", "1"], vec!["a"]),
    ] {
        assert_eq!(ids(&planned(&place, &options, 0)["tasks"], "id"), tasks, "{options:?}");
    }
    let plan = planned(&place, &["--arm", "human"], 0);
    assert_eq!(ids(&plan["tasks"][0]["arms"], "arm"), ["human"]);
    assert_eq!(ids(&planned(&place, &["--kind", "throughput"], 4)["tasks"], "id"), Vec::<String>::new());
    place.expect(4, &["run", "tasks", "--kind", "throughput"]).says(&["the plan has no task that can run"]);
}

#[test]
fn a_setting_is_a_deviation_and_a_wrong_one_an_error_that_names_the_nearest() {
    let place = dataset();
    let plan = planned(&place, &["--task", "a", "--set", "server.options.max-num-seqs=2"], 0);
    let task = &plan["tasks"][0];
    assert_eq!(task["server"]["options"]["max-num-seqs"], 2);
    assert!(task["deviations"].to_string().contains("max-num-seqs"), "{:#}", task["deviations"]);
    for (options, parts) in [
        (["--set", "workload.requets=5"], ["workload.requets", "workload.requests"]),
        (["--set", "workload.requests=none"], ["workload.requests", "a string"]),
        (["--set", "workload.requests"], ["workload.requests", "="]),
        (["--task", "d"], ["`d`", "a"]),
        (["--arm", "robot"], ["robot", "agent:"]),
        (["--arm", "agent:nobody"], ["agent:nobody", ""]),
        (["--kind", "speed"], ["speed", "latency"]),
        (["--limit", "-1"], ["-1", ""]),
        (["--lmit", "1"], ["--lmit", "--limit"]),
    ] {
        let command = ["plan", "tasks", "--dry-run"].into_iter().chain(options);
        let refused = place.finish(command);
        assert_eq!(refused.code, Some(2), "{options:?}: {refused:?}");
        refused.says(&parts);
    }
    place.expect(2, &["plan", "nowhere"]).says(&["cannot find the dataset `nowhere`", "task.toml"]);
    place.expect(2, &["judge", "nowhere"]).says(&["nowhere"]);
    place.expect(2, &["plan"]);
    place.expect(0, &["--help"]);
}

#[test]
fn an_unknown_key_is_a_problem_of_its_task_alone() {
    let place = dataset();
    let path = place.path("tasks/b/task.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("warm-up-requests", "warmup-requests")).unwrap();
    let plan = planned(&place, &[], 0);
    assert_eq!(ids(&plan["tasks"], "id"), ["a", "c"]);
    let problem = plan["problems"][0].to_string();
    assert!(problem.contains("workload.warmup-requests") && problem.contains("warm-up-requests"), "{problem}");
    assert!(problem.contains("task.toml"), "{problem}");
}

#[test]
fn the_same_input_gives_the_same_plan_bytes() {
    let place = dataset();
    for out in ["one", "two"] {
        place.expect(0, &["plan", "tasks", "--out", out, "--quiet"]);
    }
    for file in ["plan.json", "facts.json"] {
        let read = |out: &str| fs::read(place.path(out).join(file)).unwrap();
        assert_eq!(read("one"), read("two"), "{file}");
    }
    assert_ne!(planned(&place, &["--seed", "2"], 0), planned(&place, &["--seed", "1"], 0));
}

#[test]
fn an_agent_is_left_out_with_a_hint_unless_strangers_are_allowed() {
    let place = Place::new();
    let mut text = place.with_faults(place.task_text(), "other", &[]);
    text.blocks = 1;
    place.write_task(&text);
    let planned = place.expect(0, &["run", "task", "--dry-run"]);
    let all = planned.stdout.clone() + &planned.stderr;
    assert!(all.contains("agent:other") && all.contains("--allow-unisolated"), "{all}");
    place.expect(0, &["run", "task", "--out", "run", "--quiet"]);
    let arms: Vec<_> = complete_launches(&place.path("run")).iter().map(|r| r.launch.arm.to_string()).collect();
    assert_eq!(arms.len(), 2, "{arms:?}");
    assert!(!arms.contains(&"agent:other".to_owned()));
    place.expect(4, &["run", "task", "--out", "alone", "--arm", "agent:other"]);
}

#[test]
fn a_run_of_one_arm_is_a_record_that_just_cannot_be_judged() {
    let place = Place::new();
    let mut text = place.task_text();
    text.human = HumanArm::Absent;
    place.write_task(&text);
    place.expect(0, &["run", "task", "--out", "run", "--quiet"]);
    place.check_sound("run");
    let judged: Value = serde_json::from_str(&place.expect(0, &["judge", "run", "--json"]).stdout).unwrap();
    assert_eq!(judged["tasks"][0]["contrasts"], Value::Array(Vec::new()), "{judged:#}");
    let task = place.judgement("run");
    assert_eq!(arm(&task, "baseline").values.len(), 2, "{task:?}");
    for format in ["terminal", "markdown", "html", "csv"] {
        let report = place.expect(0, &["report", "run", "--format", format]);
        assert!(!report.stdout.is_empty(), "{format}");
    }
}
