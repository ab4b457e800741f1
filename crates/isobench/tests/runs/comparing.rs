//! Two runs are compared only where their keys are equal.

use isobench_testkit::Fault;
use serde_json::Value;

use crate::support::Place;

#[test]
fn runs_of_the_same_plan_are_compared_and_unlike_ones_are_refused_by_field() {
    let place = Place::new();
    place.write_task(&place.task_text());
    let run = |out: &str, more: &[&str]| {
        let command = ["run", "task", "--quiet", "--out", out].into_iter().chain(more.iter().copied());
        assert_eq!(place.finish(command).code, Some(0));
    };
    run("one", &[]);
    run("two", &[]);
    run("shorter", &["--set", "workload.output-tokens=8", "--set", "server.options.max-num-seqs=4"]);
    run("seeded", &["--seed", "9"]);
    let compare = |other: &str, code: i32| {
        let finished = place.expect(code, &["compare", "one", other, "--json"]);
        serde_json::from_str::<Value>(&finished.stdout).unwrap()
    };
    let rows = compare("two", 0);
    for row in rows.as_array().unwrap() {
        assert_eq!((&row["blocks"], &row["differs_in"]), (&2.into(), &Value::Array(Vec::new())), "{rows:#}");
        assert!(row["log_ratio"].is_f64() && row["low"].is_f64(), "{rows:#}");
    }
    assert_eq!(rows.as_array().unwrap().len(), 2);
    for row in compare("shorter", 2).as_array().unwrap() {
        assert_eq!(row["differs_in"], serde_json::json!(["workload", "server"]), "{row:#}");
        let [workload, server] = [&row["differences"][0], &row["differences"][1]];
        assert_eq!((&workload["field"], &server["field"]), (&"workload".into(), &"server".into()), "{row:#}");
        assert!(workload["left"].is_string() && workload["left"] != workload["right"], "{row:#}");
        assert!(row["log_ratio"].is_null(), "{row:#}");
    }
    let refused = place.expect(2, &["compare", "one", "shorter"]);
    assert!(refused.stdout.contains("not comparable, the runs differ in workload (`"), "{refused:?}");
    assert!(refused.stdout.contains("`), server (`"), "{refused:?}");
    refused.says(&["nothing can be compared", "hint:"]);
    for row in compare("seeded", 0).as_array().unwrap() {
        assert_eq!((&row["blocks"], &row["log_ratio"]), (&0.into(), &Value::Null), "other seeds, other prompts");
    }
    place.expect(2, &["compare", "one", "task"]).says(&["`isobench runs` lists"]);
}

#[test]
fn launches_that_do_not_count_are_not_compared() {
    let place = Place::new();
    let text = place.with_faults(place.task_text(), "garbage", &[Fault::Garbage]);
    place.write_task(&place.with_faults(text, "short", &[Fault::Short]));
    for out in ["one", "two"] {
        place.expect(100, &["run", "task", "--out", out, "--allow-unisolated", "--quiet"]);
    }
    let compared = place.expect(0, &["compare", "one", "two", "--json"]);
    let rows: Value = serde_json::from_str(&compared.stdout).unwrap();
    assert_eq!(rows.as_array().unwrap().len(), 4, "{rows:#}");
    for row in rows.as_array().unwrap() {
        let counts = !row["arm"].as_str().unwrap().starts_with("agent:");
        assert_eq!(
            (&row["blocks"], row["log_ratio"].is_f64()),
            (&(if counts { 2 } else { 0 }).into(), counts),
            "{row:#}"
        );
    }
    let told = place.expect(0, &["compare", "one", "two"]).stdout;
    assert!(told.contains("task agent:garbage: no block of both runs has the same seed and counts"), "{told}");
}
