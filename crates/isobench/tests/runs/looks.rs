//! Runs of several looks: they end when everything is decided, within what they may use up, and every look can be taken again.

use std::collections::BTreeSet;
use std::fs;

use isobench_schema::event::EventKind;
use isobench_schema::ids::ArmId;
use isobench_schema::verdict::{LookDecision, Verdict};
use isobench_testkit::TaskText;

use crate::support::{Place, complete_launches, events};

/// Returns a place with a task whose human arm is about twice as fast.
fn place(change: impl FnOnce(&mut TaskText)) -> Place {
    let place = Place::new();
    let mut text = place.task_text();
    text.margin = 0.2;
    change(&mut text);
    place.write_task(&text);
    place
}

/// Returns the looks of a run's log: number, blocks, whether the task stops.
fn looks(place: &Place, run: &str) -> Vec<(u32, u32, bool)> {
    let mut taken = Vec::new();
    for event in events(&place.path(run)) {
        if let EventKind::LookTaken { look, blocks, stops, .. } = event.kind {
            taken.push((look, blocks, stops));
        }
    }
    taken
}

/// Checks that looks were taken in the planned order, and that the last of them, and no other, ended the task. How many there
/// are is the machine's affair: where others use it, what is plain may need another look.
fn check_looks(taken: &[(u32, u32, bool)], planned: &[u32]) {
    let ended: Vec<(u32, u32, bool)> =
        (0..).zip(planned).map(|(look, &blocks)| (look, blocks, look as usize + 1 == taken.len())).collect();
    assert!(!taken.is_empty() && ended.starts_with(taken), "{taken:?} of {planned:?}");
}

/// Returns the number of complete launches when two arms have gone so far.
fn launches_at(taken: &[(u32, u32, bool)]) -> usize {
    2 * taken.last().unwrap().1 as usize
}

const SEVERAL: [&str; 6] = ["run", "task", "--out", "run", "--looks", "6,8,10"];

#[test]
fn a_run_ends_at_the_look_that_decides_and_every_look_can_be_taken_again() {
    let place = place(|_| {});
    let first = place.expect(0, &SEVERAL);
    let taken = looks(&place, "run");
    check_looks(&taken, &[6, 8, 10]);
    let (number, blocks) = (taken.len(), taken.last().unwrap().1);
    let told = format!("task look {number} after {blocks} blocks: human against baseline better");
    first.says(&[&told, "nothing is left to decide"]);
    assert_eq!(complete_launches(&place.path("run")).len(), launches_at(&taken));
    let found = place.contrast("run", "human", "baseline");
    assert_eq!((&found["verdict"], &found["blocks"]), (&"better".into(), &blocks.into()), "{found:#}");
    assert_eq!(found["looks"].as_array().unwrap().len(), number, "{found:#}");
    place.check_sound("run");
    let log = fs::read(place.path("run/events.jsonl")).unwrap();
    place.expect(0, &SEVERAL);
    assert_eq!(fs::read(place.path("run/events.jsonl")).unwrap(), log, "a decided run has nothing left");

    // A log that claims other numbers is found out.
    let text = String::from_utf8(log).unwrap();
    let (before, after) = text.split_once(r#""decision":"better""#).unwrap();
    fs::write(place.path("run/events.jsonl"), format!(r#"{before}"decision":"worse"{after}"#)).unwrap();
    let verified = place.expect(1, &["verify", "run"]);
    let told = format!("look {number} at task `task` isn't what the evidence gives");
    assert!(verified.stdout.contains(&told), "{verified:?}");
}

#[test]
fn a_look_that_a_dead_coordinator_owed_is_taken_first() {
    let place = place(|_| {});
    place.expect(0, &SEVERAL);
    let path = place.path("run/events.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    let kept: Vec<&str> = text.lines().take_while(|line| !line.contains(r#""event":"look-taken""#)).collect();
    fs::write(&path, kept.join("\n") + "\n").unwrap();
    let told = place.expect(4, &["run", "run", "--dry-run"]);
    told.says(&["look 1 at task `task` comes before any further block", "`isobench run run` takes it and goes on"]);
    place.expect(0, &["run", "run"]);
    let taken = looks(&place, "run");
    check_looks(&taken, &[6, 8, 10]);
    assert_eq!(complete_launches(&place.path("run")).len(), launches_at(&taken));
    let text = fs::read_to_string(&path).unwrap();
    let next = text.lines().skip(kept.len()).find(|line| !line.contains(r#""event":"run-started""#)).unwrap();
    assert!(next.contains(r#""event":"look-taken""#), "no block runs before the look: {next}");
    place.check_sound("run");
}

#[test]
fn an_undecided_run_goes_on_to_its_last_look_and_one_that_may_stop_does() {
    // Against itself nothing is as large as the margin, and nothing can be shown to be as small as 0.1 % either.
    let place = place(|text| text.margin = 0.001);
    let itself = [SEVERAL.as_slice(), &["--against-itself"]].concat();
    place.expect(0, &[itself.as_slice(), &["--futility", "0"]].concat());
    let taken = looks(&place, "run");
    let found = place.judgement("run").contrasts.remove(0);
    let is_false_alarm = matches!(found.verdict, Verdict::Better | Verdict::Worse);
    assert!(taken == [(0, 6, false), (1, 8, false), (2, 10, true)] || is_false_alarm, "{taken:?} {found:?}");
    assert_eq!(found.looks.len(), taken.len());
    place.check_sound("run");

    // A margin of 90 % is decided at once.
    let wide = ["run", "task", "--out", "wide", "--looks", "6,8,10", "--against-itself", "--set", "metric.margin=0.9"];
    place.expect(0, &wide);
    check_looks(&looks(&place, "wide"), &[6, 8, 10]);
    assert_eq!(place.contrast("wide", "human", "baseline")["verdict"], "equivalent");
}

#[test]
fn a_task_whose_windows_are_too_short_ends_after_its_first_block_with_the_next_step() {
    let place = place(|text| (text.requests, text.min_window_s) = (16, 20.0));
    let ended = place.finish(SEVERAL);
    assert_eq!(ended.code, Some(100), "{ended:?}");
    let line = "task ends here: no two arms can be compared, and more blocks would only repeat that";
    ended.says(&[line, "measured, but doesn't count, window-too-short", "`--set workload.requests="]);
    let page = &ended.stdout;
    assert!(page.contains("can pass once something is changed"), "{page}");
    assert!(!page.contains("may pass if run again as it is"), "{page}");
    assert_eq!(complete_launches(&place.path("run")).len(), 2);
    assert_eq!(place.contrast("run", "human", "baseline")["verdict"], "invalid");
    place.check_sound("run");
    // It is over: the same command finds nothing more to run.
    place.finish(SEVERAL);
    assert_eq!(complete_launches(&place.path("run")).len(), 2);
}

#[test]
fn a_budget_ends_a_run_which_then_goes_on_with_more() {
    let place = place(|_| {});
    let bounded = [SEVERAL.as_slice(), &["--budget-minutes", "0.0001"]].concat();
    let used = place.finish(&bounded);
    used.says(&["the budget of 0.0 minutes", "the budget is used up", "go on with: isobench run run"]);
    assert!(complete_launches(&place.path("run")).is_empty());
    let listed = place.expect(0, &["runs", "."]);
    assert!(listed.stdout.contains("budget used up; can be resumed"), "{listed:?}");
    place.expect(0, &["run", "run", "--budget-minutes", "60"]);
    check_looks(&looks(&place, "run"), &[6, 8, 10]);

    let unknown = [SEVERAL.as_slice(), &["--budget-money", "1"]].concat();
    place.expect(2, &unknown).says(&["`--budget-money` needs the price of the device", "`--price USD`"]);
    for (flag, value) in [("--budget-minutes", "0"), ("--budget-money", "-1"), ("--fixed", "0"), ("--futility", "1")] {
        let wrong = format!("{flag}={value}");
        place.expect(2, &["run", "task", "--out", "other", &wrong]).says(&[value]);
    }
}

#[test]
fn a_run_is_taken_no_further_than_a_bound_of_blocks() {
    let place = place(|_| {});
    let task = ["run", "task", "--out", "run", "--looks", "8,10"];
    let bounded = [task.as_slice(), &["--budget-minutes", "0.0001"]].concat();
    place.finish(&bounded);
    let used = place.finish(["run", "run", "--max-blocks", "7"]);
    used.says(&["the bound of 7 blocks"]);
    assert!(complete_launches(&place.path("run")).is_empty());
    place.finish(["run", "run", "--max-blocks", "8"]);
    let [(0, 8, _)] = looks(&place, "run")[..] else { panic!("{:?}", looks(&place, "run")) };
}

#[test]
fn a_sentinel_runs_under_a_hidden_name_and_is_reported() {
    let place = place(|_| {});
    place.expect(0, &["run", "task", "--out", "run", "--fixed", "6", "--sentinel", "2"]);
    let launches = complete_launches(&place.path("run"));
    let arms: BTreeSet<ArmId> = launches.iter().map(|launch| launch.launch.arm.clone()).collect();
    let [hidden] = arms.iter().filter(|arm| matches!(arm, ArmId::Agent(_))).collect::<Vec<_>>()[..] else {
        panic!("{arms:?}")
    };
    let blocks: BTreeSet<u32> =
        launches.iter().filter(|launch| launch.launch.arm == *hidden).map(|launch| launch.launch.block.block).collect();
    assert_eq!(blocks, BTreeSet::from([1, 3, 5]));
    let environment =
        |arm: &ArmId| launches.iter().find(|launch| launch.launch.arm == *arm).unwrap().environment.clone();
    assert_eq!(environment(hidden), environment(&ArmId::Baseline));
    let judged = place.judgement("run");
    let sentinel = judged.sentinel.unwrap();
    assert_eq!((&sentinel.arm, sentinel.differences.len(), sentinel.tested), (hidden, 3, 3));
    assert!(judged.arms.iter().all(|arm| arm.arm != *hidden), "it is none of the arms");
    let report = place.expect(0, &["report", "run"]);
    assert!(report.stdout.contains("the baseline under this name"), "{report:?}");
    place.check_sound("run");
}

#[test]
fn a_negative_control_goes_the_way_of_an_agent() {
    let place = place(|text| text.margin = 0.9);
    place.expect(0, &["run", "task", "--out", "run", "--fixed", "6", "--negative-control"]);
    let found = place.judgement("run");
    let contrast = found.contrasts.iter().find(|contrast| contrast.of.to_string() == "agent:negative-control").unwrap();
    assert!(!matches!(contrast.verdict, Verdict::Better | Verdict::Worse), "{contrast:?}");
    let said: Vec<LookDecision> = contrast.looks.iter().map(|look| look.decision).collect();
    assert_eq!(said.len(), 1);
}
