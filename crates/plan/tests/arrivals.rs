//! Kinds of arrivals in tasks: what each key becomes, and what is said of each fault.

mod example;

use example::{SAMPLE, changed, read_task};
use isobench_schema::workload::{Arrival, Stage};

/// The arrival of the sample.
const OF_SAMPLE: &str = "arrival = {kind = \"closed\", concurrency = 8}";

/// Checks what becomes of the sample with other arrivals: the workload's part of it, or the problems.
fn check(to: &str, expected: &str) {
    assert!(SAMPLE.contains(OF_SAMPLE));
    // A rate fixes the throughput, so that another metric decides.
    let text = changed(OF_SAMPLE, to).replace("output_throughput", "mean_e2el_ms");
    let dataset = read_task(&text, &[]);
    let problems: Vec<_> = dataset.problems.iter().map(|problem| problem.message.as_str()).collect();
    let found = match dataset.tasks.first() {
        Some(task) => format!("{:?} {:?}", task.workload.arrival, task.workload.max_in_flight),
        None => problems.join("; "),
    };
    assert_eq!(found, expected, "{to}");
}

#[test]
fn each_kind_has_its_keys() {
    let stages = Arrival::Stages {
        stages: vec![
            Stage { seconds: 10.0, from_per_s: 1.0, to_per_s: 1.0 },
            Stage { seconds: 20.0, from_per_s: 1.0, to_per_s: 8.5 },
        ],
        burstiness: None,
    };
    let expected = |arrival: &Arrival| format!("{arrival:?} None");
    check(
        "arrival = {kind = \"closed\", concurrency = 2, ramp-s = 1.5}",
        &expected(&Arrival::Closed { concurrency: 2, ramp_s: Some(1.5) }),
    );
    check("arrival = {kind = \"constant\", rate-per-s = 3}", &expected(&Arrival::Constant { rate_per_s: 3.0 }));
    check(
        "arrival = {kind = \"bursts\", size = 8, period-s = 0.5}",
        &expected(&Arrival::Bursts { size: 8, period_s: 0.5 }),
    );
    check(
        "arrival = {kind = \"stages\", stages = [{seconds = 10, from-per-s = 1}, {seconds = 20, from-per-s = 1, to-per-s = 8.5}]}",
        &expected(&stages),
    );
    check(
        "arrival = {kind = \"open\", rate-per-s = 3}\nmax-in-flight = 7",
        &format!("{:?} Some(7)", Arrival::Open { rate_per_s: 3.0, burstiness: 1.0 }),
    );
}

#[test]
fn what_makes_no_sense_is_named() {
    check(
        "arrival = {kind = \"constant\", rate-per-s = 3, burstiness = 1}",
        "`workload.arrival.burstiness` means nothing for kind `constant`",
    );
    check("arrival = {kind = \"constant\"}", "required key `workload.arrival.rate-per-s` is missing");
    check(
        "arrival = {kind = \"bursts\"}",
        "required key `workload.arrival.size` is missing; required key `workload.arrival.period-s` is missing",
    );
    check("arrival = {kind = \"stages\"}", "required key `workload.arrival.stages` is missing");
    check("arrival = {kind = \"stages\", stages = []}", "`workload.arrival.stages` has no stage");
    check(
        "arrival = {kind = \"stages\", stages = [{seconds = 10, from-per-s = 1, to-per-s = 0}]}",
        "`workload.arrival.stages`: the last stage must end at a rate above 0, at which it goes on as long as there are requests",
    );
    check(
        "arrival = {kind = \"stages\", stages = [{seconds = 0, from-per-s = -1}, {from-per-s = 1}]}",
        "`workload.arrival.stages.from-per-s` must be a number of at least 0, found -1; `workload.arrival.stages.seconds` must \
         be a number above 0, found 0; required key `workload.arrival.stages.seconds` is missing",
    );
    check(
        "arrival = {kind = \"stages\", stages = 3}",
        "`workload.arrival.stages` must be a list of tables, found a whole number",
    );
    check(
        &format!("{OF_SAMPLE}\nmax-in-flight = 7"),
        "`workload.max-in-flight` means nothing for arrivals of kind `closed`, whose `concurrency` is the bound",
    );
    check(
        "arrival = {kind = \"ramp\"}",
        "`workload.arrival.kind` must be one of `closed`, `open`, `constant`, `stages`, `bursts`, `all-at-once`, found `ramp`",
    );
}
