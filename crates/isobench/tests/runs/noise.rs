//! The noise of a task: run, kept in a library, used by plans and runs, and taken from other runs.

use std::fs;

use isobench_schema::event::LaunchStage;
use isobench_schema::format;
use isobench_schema::noise::{NoiseReport, SpreadOrigin};
use isobench_schema::plan::{Forecast, Plan};
use isobench_schema::verdict::Verdict;
use rustix::process::Signal;
use serde_json::Value;

use crate::support::{Place, Running, complete_launches, wait_for_stage};

const NOISE: [&str; 6] = ["noise", "task", "--blocks", "5", "--out", "aa"];

fn place() -> Place {
    let place = Place::new();
    place.write_task(&place.task_text());
    place
}

/// Returns what a plan of the task expects.
fn forecast(place: &Place, more: &[&str]) -> Forecast {
    let planned = place.expect(0, &[["plan", "task", "--dry-run", "--json"].as_slice(), more].concat());
    let plan: Plan = format::from_slice(planned.stdout.as_bytes()).unwrap();
    plan.tasks[0].forecast.clone().unwrap()
}

#[test]
fn what_a_run_against_itself_shows_is_kept_and_used() {
    let place = place();
    let before = forecast(&place, &["--looks", "6,10"]);
    assert!(before.known.is_none() && before.effect.is_some() && before.noise_s.unwrap() > 0.0, "{before:?}");
    assert_eq!(before.outcomes.len(), 4);
    let told = place.expect(0, &["plan", "task", "--dry-run", "--fixed", "6"]).stdout;
    assert!(told.contains("the spread of block differences is unknown; `isobench noise` would find"), "{told}");
    place.expect(0, &["noise", "--list"]).says(&["holds no spread"]);

    let first = place.expect(0, &[NOISE.as_slice(), &["--json"]].concat());
    first.says(&["added 1 of 1 to "]);
    let report: NoiseReport = format::from_slice(first.stdout.as_bytes()).unwrap();
    let [task] = report.tasks.as_slice() else { panic!("{report:?}") };
    let found = task.found.as_ref().unwrap();
    assert_eq!((found.origin, found.degrees), (SpreadOrigin::AgainstItself, 4));
    assert!(found.low < found.deviation && found.deviation < found.high, "{found:?}");
    assert!(
        matches!(task.against_itself, Some(Verdict::Equivalent | Verdict::Trivial | Verdict::Inconclusive)),
        "{task:?}"
    );
    // The looks are those of the runs to come.
    assert_eq!(task.looks.iter().map(|look| look.blocks).collect::<Vec<_>>(), [6, 10, 16, 24]);
    let differences: Vec<f64> = task.needed.iter().map(|needed| needed.difference).collect();
    assert!(differences.iter().zip([0.02, 0.05, 0.1, 0.9]).all(|(found, wanted)| (found - wanted).abs() < 1e-9));
    let known = task.known.as_ref().unwrap();
    assert!((known.deviation - found.deviation).abs() < 1e-15 && known.own_entries == 1, "{known:?}");
    assert_eq!(complete_launches(&place.path("aa")).len(), 10);

    // The same again has nothing left to do, and nothing to add.
    let again = place.expect(0, &NOISE);
    again.says(&["added 0 of 1 to "]);
    for part in ["Noise: how far block differences", "task", "output_throughput", task.entry.as_ref().unwrap()] {
        assert!(again.stdout.contains(part), "{part}: {again:?}");
    }
    let listed = place.expect(0, &["noise", "--list"]).stdout;
    assert!(listed.contains(task.entry.as_ref().unwrap()) && listed.contains("serving closed"), "{listed}");

    let after = forecast(&place, &["--looks", "6,10"]);
    assert_eq!(after.known.as_ref().unwrap(), known);
    assert_eq!((after.outcomes.len(), after.noise_s), (1, None));
    let told = place.expect(0, &["plan", "task", "--dry-run", "--fixed", "6"]).stdout;
    assert!(told.contains("forecast  block differences spread by") && told.contains("from 1 run"), "{told}");

    // A run shows the forecast beside what came out, and is taken into the library too.
    let run = place.expect(0, &["run", "task", "--out", "run", "--fixed", "5"]);
    run.says(&["the spread of block differences is known for 1 of 1 tasks"]);
    assert!(run.stdout.contains("Block differences of human against the baseline: forecast"), "{run:?}");
    let spread = place.judgement("run").spread.unwrap();
    assert_eq!((spread.origin, spread.forecast), (SpreadOrigin::Contrast, Some(known.deviation)));
    place.check_sound("run");
    place.expect(0, &["noise", "--from", "run", "aa"]).says(&["added 1 of 2 to "]);
    assert_eq!(forecast(&place, &[]).known.unwrap().own_entries, 2);
}

#[test]
fn a_noise_run_that_is_cut_short_goes_on_though_more_is_known_by_then() {
    let place = place();
    place.expect(0, &["run", "task", "--out", "other", "--fixed", "5"]);
    let mut running = Running::start(&mut place.isobench(NOISE));
    wait_for_stage(&place.path("aa"), LaunchStage::Measuring);
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, None);
    place.expect(0, &["noise", "--from", "other"]).says(&["added 1 of 1 to "]);
    place.expect(0, &NOISE).says(&["added 1 of 1 to "]);
    assert_eq!(complete_launches(&place.path("aa")).len(), 10);
    place.check_sound("aa");
    // By its folder too.
    place.expect(0, &["noise", "aa"]).says(&["added 0 of 1 to "]);
    let refused = place.expect(2, &["noise", "other"]);
    refused.says(&["doesn't run the baseline of `task` against itself", "`isobench noise --from other`"]);
}

#[test]
fn a_library_of_its_own_can_be_broken_and_mended() {
    let place = place();
    place.expect(0, &["run", "task", "--out", "run", "--fixed", "5", "--against-itself"]);
    let own = ["noise", "--library", "own/spreads.jsonl"];
    place.expect(0, &[own.as_slice(), &["--from", "run"]].concat());
    assert!(forecast(&place, &[]).known.is_none(), "the other library knows nothing");
    assert!(forecast(&place, &["--library", "own/spreads.jsonl"]).known.is_some());
    let path = place.path("own/spreads.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("nonsense\n{text}")).unwrap();
    let listed = place.expect(0, &[own.as_slice(), &["--list", "--json"]].concat());
    listed.says(&["line 1 of ", "can't be read, and the others count"]);
    let value: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!((value["entries"].as_array().unwrap().len(), &value["problems"][0]["line"]), (1, &Value::from(1)));
    let id = value["entries"][0]["id"].as_str().unwrap();
    place.expect(2, &[own.as_slice(), &["--remove", "zzz"]].concat()).says(&["has no entry `zzz`", "--list"]);
    place.expect(0, &[own.as_slice(), &["--remove", id]].concat()).says(&["took 1 out of "]);
    assert!(forecast(&place, &["--library", "own/spreads.jsonl"]).known.is_none());
    assert!(fs::read_to_string(&path).unwrap().starts_with("nonsense\n"), "lines are only added");
}

#[test]
fn a_run_begins_the_library_that_it_names() {
    let place = place();
    let library = ["--library", "new/spreads.jsonl"];
    place.expect(2, &["plan", "task", library[0], library[1]]).says(&["there is no library", "begins one"]);
    place.expect(0, &[NOISE.as_slice(), &library].concat()).says(&["added 1 of 1 to "]);
    assert!(forecast(&place, &library).known.is_some());
    assert!(forecast(&place, &[]).known.is_none());
}

#[test]
fn looks_that_cannot_decide_are_not_promised() {
    let place = place();
    assert!(forecast(&place, &["--fixed", "3"]).outcomes.iter().all(|outcome| outcome.mde.is_none()));
    place.expect(2, &["plan", "task", "--looks", "3,6"]).says(&["after 3 blocks can't decide", "an interval needs 5"]);
    for looks in ["0", "10001", "4294967295"] {
        place.expect(2, &["plan", "task", "--looks", looks]).says(&["--looks"]);
    }
}

#[test]
fn what_teaches_nothing_says_so() {
    let place = place();
    place.expect(0, &["run", "task", "--out", "short", "--fixed", "2", "--against-itself"]);
    place.expect(4, &["noise", "--from", "short"]).says(&["nothing was learnt: a spread needs five blocks"]);
    place.expect(2, &["noise"]);
    place.expect(2, &["noise", "task", "--blocks", "4"]).says(&["4"]);
    place.expect(2, &["plan", "task", "--library", "none.jsonl"]).says(&["there is no library `none.jsonl`"]);
}
