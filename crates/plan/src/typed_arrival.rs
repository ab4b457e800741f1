//! When a task's requests are sent, with the keys that each kind of arrival has.

use isobench_schema::workload::{Arrival, Stage, WorkloadKind};

use crate::defaults;
use crate::node::Node;
use crate::typed::Draft;
use crate::typed_workload::only;

const PATH: &str = "workload.arrival";
const KIND: &str = "workload.arrival.kind";
const RATE: &str = "workload.arrival.rate-per-s";
const BURSTINESS: &str = "workload.arrival.burstiness";
const STAGES: &str = "workload.arrival.stages";
const PERIOD: &str = "workload.arrival.period-s";

/// Returns the arrival, or `None` after noting what is wrong.
pub(crate) fn arrival(draft: &mut Draft<'_>, kind: WorkloadKind) -> Option<Arrival> {
    if draft.root.at(PATH).is_none() {
        return match kind {
            WorkloadKind::Throughput => Some(Arrival::AllAtOnce),
            WorkloadKind::Latency => Some(Arrival::closed(defaults::LATENCY_CONCURRENCY)),
            WorkloadKind::Serving => {
                draft.missing(PATH);
                None
            }
        };
    }
    let Some(name) = draft.text(KIND) else {
        draft.missing(KIND);
        return None;
    };
    match name {
        "closed" => {
            only(draft, PATH, name, &["kind", "concurrency", "ramp-s"]);
            let concurrency = draft.needed_whole("workload.arrival.concurrency")?;
            Some(Arrival::Closed { concurrency, ramp_s: draft.number("workload.arrival.ramp-s") })
        }
        "open" => {
            only(draft, PATH, name, &["kind", "rate-per-s", "burstiness"]);
            let rate_per_s = needed_number(draft, RATE)?;
            Some(Arrival::Open { rate_per_s, burstiness: draft.number(BURSTINESS).unwrap_or(defaults::BURSTINESS) })
        }
        "constant" => {
            only(draft, PATH, name, &["kind", "rate-per-s"]);
            Some(Arrival::Constant { rate_per_s: needed_number(draft, RATE)? })
        }
        "stages" => {
            only(draft, PATH, name, &["kind", "stages", "burstiness"]);
            Some(Arrival::Stages { stages: stages(draft)?, burstiness: draft.number(BURSTINESS) })
        }
        "bursts" => {
            only(draft, PATH, name, &["kind", "size", "period-s"]);
            let (size, period_s) = (draft.needed_whole("workload.arrival.size"), needed_number(draft, PERIOD));
            Some(Arrival::Bursts { size: size?, period_s: period_s? })
        }
        _ => {
            only(draft, PATH, name, &["kind"]);
            Some(Arrival::AllAtOnce)
        }
    }
}

/// Returns the most requests under way, which only a loop that isn't closed needs.
pub(crate) fn max_in_flight(draft: &mut Draft<'_>, arrival: Option<&Arrival>) -> Option<u32> {
    const PATH: &str = "workload.max-in-flight";
    let most = draft.whole(PATH)?;
    if let Some(Arrival::Closed { .. }) = arrival {
        let message = format!("`{PATH}` means nothing for arrivals of kind `closed`, whose `concurrency` is the bound");
        draft.fault(PATH, message);
    }
    Some(most)
}

fn stages(draft: &mut Draft<'_>) -> Option<Vec<Stage>> {
    let Some(node) = draft.root.at(STAGES) else {
        draft.missing(STAGES);
        return None;
    };
    let stages: Option<Vec<Stage>> = node.items().iter().map(stage).collect();
    let stages = stages?;
    match stages.last() {
        None => draft.fault(STAGES, format!("`{STAGES}` has no stage")),
        Some(last) if last.to_per_s <= 0.0 => {
            let message =
                "the last stage must end at a rate above 0, at which it goes on as long as there are requests";
            draft.fault(STAGES, format!("`{STAGES}`: {message}"));
        }
        Some(_) => {}
    }
    Some(stages)
}

/// Returns a stage, whose values have the kinds that the table of keys gives them.
fn stage(node: &Node) -> Option<Stage> {
    let number = |key| node.get(key)?.number();
    let from_per_s = number("from-per-s")?;
    let to_per_s = number("to-per-s").unwrap_or(from_per_s);
    Some(Stage { seconds: number("seconds")?, from_per_s, to_per_s })
}

/// Returns a number, or `None` after noting that it is missing.
fn needed_number(draft: &mut Draft<'_>, path: &str) -> Option<f64> {
    let value = draft.number(path);
    if value.is_none() {
        draft.missing(path);
    }
    value
}
