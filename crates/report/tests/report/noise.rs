//! Noise as people see it: what was found out, the library, forecasts in plans, and what came out beside them.

use isobench_report::terminal::{self, Style};
use isobench_report::view::view;
use isobench_report::{html, markdown};
use isobench_schema::ids::{Digest, RunId, TaskId};
use isobench_schema::measurement::MetricName;
use isobench_schema::noise::{
    ArrivalClass, BorrowedSpread, KnownSpread, ListedEntry, LookEffect, NeededBlocks, NoiseEntry, NoiseGroup, NoiseKey,
    NoiseReport, NoiseTask, SpreadFound, SpreadOrigin, WorkloadClass,
};
use isobench_schema::plan::{ExpectedBlocks, Forecast, ForecastOutcome, Plan};
use isobench_schema::units::Millis;
use isobench_schema::verdict::{Judgement, Verdict};
use isobench_schema::workload::WorkloadKind;

use crate::sample;

const STYLE: Style = Style { width: 110, color: false };

fn key(model: &str) -> NoiseKey {
    let class = WorkloadClass {
        kind: WorkloadKind::Serving,
        arrival: ArrivalClass::Closed,
        load: Some(16),
        input_tokens: Some(1024),
        output_tokens: 256,
        script: None,
    };
    NoiseKey { host: "0123456789abcdef".to_owned(), device: "NVIDIA H100".to_owned(), model: model.to_owned(), class }
}

fn found(deviation: f64, forecast: Option<f64>) -> SpreadFound {
    SpreadFound {
        origin: SpreadOrigin::AgainstItself,
        of: sample::arm("human"),
        against: sample::arm("baseline"),
        deviation,
        low: 0.7 * deviation,
        high: 1.7 * deviation,
        degrees: 11,
        forecast,
    }
}

fn known() -> KnownSpread {
    let borrowed = BorrowedSpread { group: NoiseGroup::SameModel, keys: 4, deviation: 0.014, degrees: Some(6.25) };
    KnownSpread {
        deviation: 0.0123,
        low: 0.0091,
        high: 0.0189,
        degrees: 17.25,
        own_entries: 1,
        own_degrees: 11,
        borrowed: Some(borrowed),
    }
}

fn task(name: &str, against_itself: Option<Verdict>, found: Option<SpreadFound>) -> NoiseTask {
    let known = found.is_some().then(known);
    let looks = [(6, 0.0231), (10, 0.0142), (16, 0.0104), (24, 0.0081)];
    let needed = [(0.03, Some(8)), (0.02, Some(12)), (0.05, Some(6)), (0.1, None)];
    NoiseTask {
        run: RunId::new("run").unwrap(),
        task: TaskId::new(name).unwrap(),
        key: key("meta-llama/Llama-3.1-8B"),
        metric: MetricName::OutputThroughput,
        margin: 0.03,
        entry: found.is_some().then(|| "0a1b2c3d4e5f".to_owned()),
        looks: if known.is_some() { looks.map(|(blocks, mde)| LookEffect { blocks, mde }).into() } else { Vec::new() },
        needed: if known.is_some() {
            needed.map(|(difference, blocks)| NeededBlocks { difference, blocks }).into()
        } else {
            Vec::new()
        },
        found,
        against_itself,
        known,
    }
}

#[test]
fn what_was_found_out_reads_well() {
    let report = NoiseReport {
        library: "noise.jsonl".to_owned(),
        tasks: vec![
            task("quiet", Some(Verdict::Equivalent), Some(found(0.0123, None))),
            task("alarmed", Some(Verdict::Better), Some(found(0.004, Some(0.005)))),
            task("too-short", Some(Verdict::Inconclusive), None),
            task("of-a-change", None, Some(found(0.02, None))),
        ],
    };
    insta::assert_snapshot!("noise", terminal::noise(&report, STYLE));
}

#[test]
fn the_library_reads_well() {
    let entry = |model: &str, origin| NoiseEntry {
        key: key(model),
        metric: MetricName::OutputThroughput,
        deviation: 0.0123,
        degrees: 11,
        origin,
        run: RunId::new("run").unwrap(),
        plan: Digest::of(b"plan"),
        began_ms: Millis::new(0.0).unwrap(),
        task: TaskId::new("quiet").unwrap(),
        of: sample::arm("human"),
        against: sample::arm("baseline"),
        date: "2026-11-28T21:00:00Z".to_owned(),
        isobench: "0.1.0".to_owned(),
    };
    let entries = [
        ListedEntry {
            id: "0a1b2c3d4e5f".to_owned(),
            entry: entry("meta-llama/Llama-3.1-8B", SpreadOrigin::AgainstItself),
            known: Some(known()),
        },
        ListedEntry {
            id: "ffffffffffff".to_owned(),
            entry: entry(sample::HOSTILE, SpreadOrigin::Contrast),
            known: None,
        },
    ];
    let page = terminal::library(&entries, Style { width: 160, ..STYLE });
    assert!(!page.contains('\u{1b}') && !page.contains('\u{202e}'));
    insta::assert_snapshot!("library", page);
}

fn expected(difference: f64, blocks: f64, decided: f64) -> ExpectedBlocks {
    ExpectedBlocks { difference, blocks, decided, seconds: 90.0 * blocks }
}

/// Returns the sample plan with a forecast.
fn plan(known: Option<KnownSpread>, mde: f64) -> Plan {
    let mut plan = sample::plan();
    let outcome = |deviation: f64, mde: f64, expected: Vec<ExpectedBlocks>| ForecastOutcome {
        deviation,
        mde: Some(mde),
        blocks_for_margin: Some(46),
        expected,
    };
    let rows = vec![expected(0.0, 8.25, 0.99), expected(0.02, 13.5, 0.81), expected(0.05, 6.02, 1.0)];
    let outcomes = match &known {
        Some(known) => vec![outcome(known.deviation, mde, rows)],
        None => [0.005, 0.01, 0.02, 0.05].map(|spread| outcome(spread, 0.61 * spread, Vec::new())).into(),
    };
    let noise_s = known.is_none().then_some(840.0);
    plan.tasks[0].forecast = Some(Forecast { known, effect: Some(0.61), outcomes, noise_s });
    plan
}

#[test]
fn forecasts_of_plans_read_well() {
    let id = sample::plan().tasks[0].id.clone();
    let lines = |plan: &Plan| {
        let page = terminal::explain(plan, &id, STYLE).unwrap();
        let mut is_forecast = false;
        let kept = page.lines().filter(|line| {
            let begins = line.starts_with("  forecast") || line.starts_with("  ! ");
            is_forecast = begins || (is_forecast && line.starts_with("     "));
            is_forecast
        });
        kept.collect::<Vec<_>>().join("\n") + "\n"
    };
    let wide = plan(Some(known()), 0.0081);
    let narrow = plan(Some(known()), 0.031);
    let unknown = plan(None, 0.0);
    let all = [&wide, &narrow, &unknown].map(|plan| {
        lines(plan)
            + &terminal::plan(plan, STYLE).lines().filter(|l| l.starts_with("the spread of")).collect::<String>()
    });
    insta::assert_snapshot!("forecasts", all.join("\n\n"));
    assert_eq!(terminal::forecasts(&wide).len(), 1);
    let told = terminal::forecasts(&narrow);
    assert!(told.len() == 2 && told[1].contains("above the margin of"), "{told:?}");
    assert!(
        markdown::plan(&narrow).contains("| forecast |") && markdown::plan(&narrow).contains("above the margin of")
    );
    assert!(html::plan_page(&narrow, &html::Options::default()).contains("above the margin of"));
}

#[test]
fn what_was_forecast_stands_beside_what_was_found() {
    let mut task = sample::every_verdict().tasks.remove(0);
    task.spread = Some(SpreadFound { origin: SpreadOrigin::Contrast, ..found(0.009, Some(0.012)) });
    let of = |task| -> Judgement { sample::judgement_of(vec![task]) };
    let judgement = of(task.clone());
    let sentence = "Block differences of human against the baseline: forecast 1.2 %, found 0.9 % (0.63 % to 1.53 %, 11 degrees of freedom).";
    let wide = Style { width: 200, color: false };
    assert!(terminal::judgement(&view(&judgement, None), wide).contains(sentence));
    assert!(markdown::judgement(&view(&judgement, None)).contains(sentence));
    assert!(html::page(&view(&judgement, None), &html::Options::default()).contains(sentence));
    // A run against itself has a table of its own.
    task.spread = Some(found(0.009, None));
    let view = view(&of(task), None);
    assert_eq!(view.noise.len(), 1);
    let title = "Noise: the baseline against itself";
    assert!(terminal::judgement(&view, wide).contains(title));
    assert!(markdown::judgement(&view).contains("| task | metric | spread | 95 % interval | blocks | false alarm |"));
    assert!(html::page(&view, &html::Options::default()).contains(title));
}
