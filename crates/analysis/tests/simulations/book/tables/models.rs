//! No difference, on machines that aren't as the boundaries assume.

use isobench_analysis::simulation::{Machine, Noise};

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{rate, table};
use crate::book::{Cell, Claim, Results, usual};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 40_000;
/// Where the difference itself is skewed the rate comes close to the bound.
const MORE_RUNS: u32 = 100_000;

const ARMS: [usize; 4] = [2, 3, 4, 5];

struct Model {
    name: &'static str,
    text: &'static str,
    machine: Machine,
    runs: u32,
}

fn models() -> Vec<Model> {
    let steady = Machine::steady(0.01);
    let skewed = |name, text, noise| Model { runs: MORE_RUNS, ..self::noise(name, text, noise) };
    let machine = |name, text, machine| Model { name, text, machine, runs: RUNS };
    let quiet = Machine::steady(0.002);
    vec![
        noise("heavy-tail", "heavy tail: t with 3 degrees of freedom", Noise::HeavyTail),
        noise("skewed", "skewed in both arms alike: exponential", Noise::Skewed),
        skewed("one-skewed", "skewed in one arm: exponential against normal", Noise::OneSkewed),
        skewed("one-lognormal", "skewed in one arm: lognormal (0.5) against normal", Noise::OneLognormal),
        noise("skewed-apart", "skewed by different laws: exponential against lognormal (0.5)", Noise::SkewedApart),
        noise("slow-launches", "launch effect: one launch of 20 slower by 5 sd", Noise::SlowLaunches),
        noise("requests", "request-level noise: mean of 32 lognormal (1) latencies", Noise::Requests),
        machine(
            "wandering",
            "blocks wander: 5 % in common, following the block before by 0.9",
            Machine { common: 0.05, common_follows: 0.9, ..steady },
        ),
        machine("drift-1", "drift of 1 % over the session", Machine { drift: 0.01, ..steady }),
        machine("drift-2", "drift of 2 %", Machine { drift: 0.02, ..steady }),
        machine("drift-5", "drift of 5 %", Machine { drift: 0.05, ..steady }),
        machine("slot-0.5", "each slot slower than the one before by 0.5 %", Machine { slot: 0.005, ..steady }),
        machine("slot-1", "slots slower by 1 %", Machine { slot: 0.01, ..steady }),
        machine("slot-2", "slots slower by 2 %", Machine { slot: 0.02, ..steady }),
        machine("quiet", "drift of 5 % and slots of 2 %, noise of 0.2 %", Machine { drift: 0.05, slot: 0.02, ..quiet }),
        machine(
            "all",
            "heavy tail, wandering blocks, drift of 5 % and slots of 1 %",
            Machine { noise: Noise::HeavyTail, common: 0.05, common_follows: 0.9, drift: 0.05, slot: 0.01, ..steady },
        ),
    ]
}

fn noise(name: &'static str, text: &'static str, noise: Noise) -> Model {
    Model { name, text, machine: Machine { noise, ..Machine::steady(0.01) }, runs: RUNS }
}

fn name(model: &Model, arms: usize) -> String {
    format!("model/{}/{arms}", model.name)
}

fn cells() -> Vec<Cell> {
    let cell = |model: &Model, arms: usize| {
        let mut scenario = usual(arms);
        scenario.machine = model.machine;
        Cell::new(name(model, arms), model.runs, scenario)
    };
    models().iter().flat_map(|model| ARMS.map(|arms| cell(model, arms))).collect()
}

fn text(results: &Results) -> String {
    let line = |model: &Model| {
        let rates = ARMS.map(|arms| {
            let tally = results.get(&name(model, arms));
            rate(tally, tally.rejected, 2)
        });
        std::iter::once(model.text.to_owned()).chain(rates).collect()
    };
    let lines: Vec<Vec<String>> = models().iter().map(line).collect();
    format!(
        "## No difference on machines with faults\n\n\
         Two arms are equal, but launches are not independent normal numbers; the noise of a block difference is 1 %. The share of \
         runs that are rejected at some look, with the usual looks of so many arms. What the judge then calls `better` or \
         `worse` is a part of it: p must be below the level, and the estimate beyond the margin.\n\n\
         Orders that balance positions turn drift and slots into noise that the test sees, so that it rejects less, and \
         would find less too. Where one arm's noise is skewed and the other's isn't, the difference is skewed, and Student's t rejects a little more.\n\n{}\n",
        table(&["launches", "2 arms", "3 arms", "4 arms", "5 arms"], &lines)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut rejected = Claim::new("rejected without a difference, every other machine", Bound::AtMost(5.5));
    let mut called = Claim::new("called `better` or `worse` without a difference, every machine", Bound::AtMost(5.5));
    for model in models() {
        for arms in ARMS {
            let cell = name(&model, arms);
            let tally = results.get(&cell);
            rejected.add_share(tally, tally.rejected, &cell);
            called.add_share(tally, tally.better + tally.worse, &cell);
        }
    }
    vec![rejected, called]
}
