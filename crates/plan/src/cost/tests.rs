//! Costs against sums done by hand.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::AgentName;
use isobench_schema::units::Seconds;

use super::*;
use crate::knowledge::Knowledge;

fn seconds(number: f64) -> Seconds {
    Seconds::new(number).unwrap()
}

fn limits() -> Limits {
    Limits {
        build_s: seconds(3600.0),
        ready_s: seconds(600.0),
        request_s: seconds(600.0),
        stall_s: seconds(120.0),
        workload_s: seconds(3600.0),
        stop_s: seconds(30.0),
        log_bytes: 1,
        failed_requests: 0,
    }
}

fn workload() -> Workload {
    let mut workload = Knowledge::embedded().presets.find("throughput-1k").unwrap().workload(EngineKind::Vllm, None);
    workload.warm_up_requests = 0;
    workload.probes.count = 0;
    workload
}

fn priced(rung: Rung, builds: &BTreeSet<String>, devices: u32, settings: &CostSettings) -> Cost {
    let arms = [ArmId::Baseline, ArmId::Human, ArmId::Agent(AgentName::new("a").unwrap())];
    let rungs = arms.into_iter().map(|arm| (arm, rung)).collect();
    let input = CostInput {
        rungs: &rungs,
        builds,
        blocks: 6,
        window_s: 100.0,
        start_s: 88.0,
        workload: &workload(),
        limits: &limits(),
        devices,
        device: Knowledge::embedded().devices.find("h100-sxm"),
        download_gb: 16.0,
    };
    cost(&input, settings)
}

fn keys(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_task_costs_its_launches_and_its_preparation() {
    let settings = CostSettings { build_usd_per_hour: Some(1.0), ..CostSettings::default() };
    let cost = priced(Rung::NativeTree, &keys(&["k"]), 2, &settings);
    // 18 launches of 88 s start, 110 s window, 2 s stop.
    assert!((cost.device_s - 18.0 * 200.0).abs() < 1e-6);
    // An hour of two devices at 3.95.
    assert!((cost.device_usd.unwrap() - 7.9).abs() < 1e-6);
    // Three environments, a build, 16 GB.
    assert!((cost.prepare_s - (3.0 * 182.0 + 900.0 + 80.0)).abs() < 1e-6);
    assert!((cost.prepare_usd.unwrap() - cost.prepare_s / 3600.0).abs() < 1e-9);
    let said = cost.assumptions.join("\n");
    for number in ["6 blocks of 3 launches, each of 200 s", "182 s for each of 3", "15 min for each of 1", "3.95 US"] {
        assert!(said.contains(number), "{number}: {said}");
    }
}

#[test]
fn a_price_that_is_set_replaces_the_tables() {
    let settings = CostSettings { device_usd_per_hour: Some(2.0), ..CostSettings::default() };
    let cost = priced(Rung::Wheel, &keys(&[]), 1, &settings);
    assert!((cost.device_usd.unwrap() - 2.0).abs() < 1e-6);
    assert_eq!(cost.prepare_usd, None);
}

#[test]
fn a_shared_build_is_counted_once_in_a_total() {
    let settings = CostSettings::default();
    let shared = keys(&["k"]);
    let own = keys(&["k", "l"]);
    let costs = [priced(Rung::Source, &shared, 1, &settings), priced(Rung::Source, &own, 4, &settings)];
    let ids = [TaskId::new("a").unwrap(), TaskId::new("b").unwrap()];
    let standings = [Standing::Build, Standing::MoreDevices];
    let tasks: Vec<Priced<'_>> = ids
        .iter()
        .zip(&costs)
        .zip(standings)
        .zip([&shared, &own])
        .map(|(((task, cost), standing), builds)| Priced {
            task,
            standing,
            cost,
            rung: Rung::Source,
            device: "h100-sxm",
            builds,
        })
        .collect();
    let totals = total(&tasks, &settings);
    assert_eq!((totals.all.tasks, totals.all.builds), (2, 2));
    assert!((totals.all.prepare_s - (costs[0].prepare_s + costs[1].prepare_s - 900.0)).abs() < 1e-6);
    assert!((totals.all.device_s - 5.0 * costs[0].device_s).abs() < 1e-6);
    assert_eq!(totals.by_device.keys().collect::<Vec<_>>(), ["1 x h100-sxm", "4 x h100-sxm"]);
    assert_eq!(totals.by_rung[&Rung::Source], totals.all);
    let changed = |with| changed_by_retry(&tasks, with).iter().map(|task| task.task.as_str()).collect::<Vec<_>>();
    assert_eq!(changed(RetryWith { builds: true, devices: None }), ["a"]);
    assert_eq!(changed(RetryWith { builds: false, devices: Some(2) }), [""; 0]);
    assert_eq!(changed(RetryWith { builds: true, devices: Some(8) }), ["a", "b"]);
    assert_eq!(retry(&tasks, RetryWith { builds: true, devices: None }, &settings).all.tasks, 1);
    assert_eq!(retry(&tasks, RetryWith::default(), &settings), Totals::default());
}
