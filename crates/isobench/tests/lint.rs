//! `isobench lint` and `isobench explain` from the command line.

mod support;

use isobench_schema::plan::ExclusionReason;
use serde_json::Value;
use support::Place;

#[test]
fn a_rule_is_explained_by_its_id() {
    let place = Place::new();
    let found = place.expect(0, &["explain", "option-refused"]);
    for part in ["option-refused", "error", "means", "matters", "example", "fix", "repairs", "source"] {
        assert!(found.stdout.contains(part), "`{part}` isn't in:\n{}", found.stdout);
    }
    let rule: Value = serde_json::from_str(&place.expect(0, &["explain", "option-refused", "--json"]).stdout).unwrap();
    assert_eq!((&rule["id"], &rule["severity"]), (&"option-refused".into(), &"error".into()));
}

#[test]
fn each_reason_of_an_exclusion_is_explained() {
    let place = Place::new();
    for reason in ExclusionReason::ALL {
        let found = place.expect(0, &["explain", reason.as_str()]);
        assert!(found.stdout.starts_with(reason.as_str()) && found.stdout.trim_end().ends_with('.'), "{found:?}");
    }
    let means: Value = serde_json::from_str(&place.expect(0, &["explain", "not-chosen", "--json"]).stdout).unwrap();
    assert_eq!(means["id"], "not-chosen");
    place.expect(2, &["explain", "not-chosn"]).says(&["did you mean `not-chosen`?"]);
}

#[test]
fn an_unknown_rule_is_an_error_with_the_nearest_one() {
    let place = Place::new();
    place.expect(2, &["explain", "option-refusd"]).says(&["there is no rule `option-refusd`", "`option-refused`?"]);
    place.expect(2, &["explain", "zzzz"]).says(&["there is no rule `zzzz`", "`isobench explain` lists all rules"]);
}

#[test]
fn without_an_id_every_rule_is_listed() {
    let place = Place::new();
    let listed: Value = serde_json::from_str(&place.expect(0, &["explain", "--json"]).stdout).unwrap();
    let text = place.expect(0, &["explain"]).stdout;
    let rules = listed.as_array().unwrap();
    assert!(rules.len() > 20, "{listed:#}");
    for rule in rules {
        assert!(text.contains(rule["id"].as_str().unwrap()), "{rule:#}");
    }
}

#[test]
fn what_cannot_be_read_makes_lint_fail() {
    let place = Place::new();
    let task = place.write_task(&place.task_text());
    let sound = place.expect(0, &["lint", task.to_str().unwrap()]);
    assert!(sound.stdout.starts_with("0 errors, 0 warnings, 0 notes"), "{}", sound.stdout);
    std::fs::write(&task, "id = 7").unwrap();
    let broken = place.expect(100, &["lint", task.to_str().unwrap(), "--json"]);
    let found: Value = serde_json::from_str(&broken.stdout).unwrap();
    assert_eq!(found["summary"]["problems"], found["problems"].as_array().unwrap().len(), "{found:#}");
    assert!(broken.stdout.contains("task.toml"), "{}", broken.stdout);
    place.expect(2, &["lint", "no-such-dataset"]).says(&["no-such-dataset"]);
}
