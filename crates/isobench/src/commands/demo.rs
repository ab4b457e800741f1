//! `isobench demo`: a real three-way evaluation on an embedded engine, ended by a check of its verdicts.

use std::fs;
use std::path::Path;

use isobench_plan::budget::Budget;
use isobench_schema::ids::{ArmId, RunId};
use isobench_schema::verdict::{Judgement, Verdict};
use isobench_store::layout;

use super::{Context, plan, run};
use crate::args::{ChoiceArgs, DemoArgs};
use crate::commit_args::CommitArgs;
use crate::container_args::ContainerArgs;
use crate::demo::{self, Kind, Size, calibrate};
use crate::design_args::DesignArgs;
use crate::disk_args::DiskArgs;
use crate::evidence;
use crate::exit::{CommandError, Exit, WithExit as _};

/// Runs the command.
pub(crate) fn run(args: &DemoArgs, context: Context) -> Result<Exit, CommandError> {
    let dataset = args.out.join(layout::DATASET);
    let kind = demo::laid_down(&dataset).unwrap_or(if args.native { Kind::Native } else { Kind::Plain });
    let cache = super::cache_folder(args.cache.as_ref())?;
    if !args.out.join(layout::EVENTS).is_file() {
        fs::create_dir_all(&args.out).exit(Exit::Usage)?;
        if !dataset.is_dir() {
            let requests = calibrate::requests(kind, &args.out, &cache, context)?;
            demo::lay_down(&dataset, kind, Size { requests, blocks: args.blocks }).exit(Exit::Machine)?;
        }
    }
    if args.lay_down {
        context.terminal.status(&format!("the demo's dataset is in {}", dataset.display()));
        return Ok(Exit::Success);
    }
    let machine = super::machine(cache.clone(), &DiskArgs::default())?;
    let end = if args.out.join(layout::EVENTS).is_file() {
        run::resume(&args.out, &machine, &Budget::default(), context)?
    } else {
        let (plan, facts) = plan::make(&dataset, &choice(&cache), context)?;
        let run = RunId::new("demo").exit(Exit::Error)?;
        run::start(&args.out, (&run, &plan, &facts), &machine, &Budget::default(), context)?
    };
    match end {
        Exit::Success | Exit::SomeFailed => check(kind, &args.out, context),
        Exit::Error | Exit::Usage | Exit::Machine | Exit::NothingToRun | Exit::Interrupted => Ok(end),
    }
}

/// Returns what of the demo is run: all of it, with its own patches trusted.
pub(crate) fn choice(cache: &Path) -> ChoiceArgs {
    ChoiceArgs {
        tasks: Vec::new(),
        arms: Vec::new(),
        kind: None,
        limit: None,
        settings: Vec::new(),
        seed: 1,
        allow_unisolated: true,
        against_itself: false,
        library: None,
        disk: DiskArgs::default(),
        design: DesignArgs::default(),
        containers: ContainerArgs::default(),
        commits: CommitArgs::default(),
        cache: Some(cache.to_owned()),
    }
}

/// What the demo must find of one arm against another.
struct Expected {
    of: &'static str,
    verdicts: &'static [Verdict],
    charged: bool,
}

/// The arms of the engine with a part in C. Its compiler may or may not have seen itself what `native` tells it.
const EXPECTED_NATIVE: &[Expected] = &[
    Expected { of: "human", verdicts: &[Verdict::Better], charged: false },
    Expected { of: "agent:python", verdicts: &[Verdict::Better], charged: false },
    Expected {
        of: "agent:native",
        verdicts: &[Verdict::Better, Verdict::Trivial, Verdict::Equivalent, Verdict::Inconclusive],
        charged: false,
    },
    Expected { of: "agent:broken", verdicts: &[Verdict::AgentFailed], charged: false },
];

/// The arms of the engine in Python.
const EXPECTED: &[Expected] = &[
    Expected { of: "human", verdicts: &[Verdict::Better], charged: false },
    Expected { of: "agent:optimised", verdicts: &[Verdict::Better], charged: false },
    Expected { of: "agent:no-op", verdicts: &[Verdict::Equivalent, Verdict::Inconclusive], charged: false },
    Expected { of: "agent:crash", verdicts: &[Verdict::AgentFailed], charged: false },
    Expected { of: "agent:short", verdicts: &[Verdict::Invalid], charged: true },
    Expected { of: "agent:garbage", verdicts: &[Verdict::Invalid], charged: true },
    Expected { of: "agent:liar", verdicts: &[Verdict::Invalid], charged: true },
];

/// Holds the verdicts against the baseline to what is known of the demo's arms.
fn check(kind: Kind, folder: &Path, context: Context) -> Result<Exit, CommandError> {
    let judgement = evidence::judgement(folder)?;
    let expected = match kind {
        Kind::Plain => EXPECTED,
        Kind::Native => EXPECTED_NATIVE,
    };
    let wrong = expected.iter().filter_map(|expected| disagreement(&judgement, expected)).collect::<Vec<_>>();
    if wrong.is_empty() {
        context.terminal.status("the verdicts are what is known of the demo's arms");
        return Ok(Exit::Success);
    }
    for line in &wrong {
        context.terminal.error(line);
    }
    Ok(Exit::SomeFailed)
}

fn disagreement(judgement: &Judgement, expected: &Expected) -> Option<String> {
    let mut contrasts = judgement.tasks.iter().flat_map(|task| &task.contrasts);
    let is_it = |of: &ArmId, against: &ArmId| of.to_string() == expected.of && *against == ArmId::Baseline;
    let names: Vec<&str> = expected.verdicts.iter().map(|verdict| verdict.as_str()).collect();
    let wanted = format!("expected of {} against baseline: {}", expected.of, names.join(" or "));
    let Some(contrast) = contrasts.find(|contrast| is_it(&contrast.of, &contrast.against)) else {
        return Some(format!("{wanted}; it was not judged"));
    };
    let charged = contrast.charged_to.as_ref().is_some_and(|arm| *arm == contrast.of);
    if expected.verdicts.contains(&contrast.verdict) && charged == expected.charged {
        return None;
    }
    Some(format!("{wanted}; found {}: {}", contrast.verdict, contrast.reason))
}
