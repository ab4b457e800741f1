//! `isobench noise`: runs the baseline against itself, and keeps how far block differences spread in a library.

use std::path::{Path, PathBuf};

use isobench_analysis::noise;
use isobench_analysis::stats::sequential;
use isobench_plan::{defaults, planner};
use isobench_report::terminal as report;
use isobench_schema::facts::Facts;
use isobench_schema::format;
use isobench_schema::ids::ArmId;
use isobench_schema::noise::{ListedEntry, NeededBlocks, NoiseEntry, NoiseKey, NoiseReport, NoiseTask, SpreadFound};
use isobench_schema::order::look_set;
use isobench_schema::plan::{Look, Plan, PlannedTask};
use isobench_schema::units::Millis;
use isobench_schema::verdict::{Judgement, TaskJudgement, Verdict};
use isobench_store::{LibraryContents, LibraryError, NoiseLibrary};
use serde_json::json;

use super::{Context, run as runs};
use crate::args::{ChoiceArgs, RunArgs};
use crate::design_args::{BudgetArgs, DesignArgs};
use crate::evidence;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::noise_args::NoiseArgs;

/// Blocks of a run of the baseline against itself that asks for no other number.
pub(crate) const BLOCKS: u32 = 12;

/// The library's file in the folder of environments.
const LIBRARY: &str = "noise.jsonl";

/// Differences for which the blocks needed are said, beside the margin.
const DIFFERENCES: [f64; 3] = [0.02, 0.05, 0.1];

/// Runs the command.
pub(crate) fn run(args: &NoiseArgs, context: Context) -> Result<Exit, CommandError> {
    let library = library(&args.choice)?;
    if args.list {
        return list(&library, context);
    }
    if !args.remove.is_empty() {
        let removed = library.remove(&args.remove, &now(), env!("CARGO_PKG_VERSION")).map_err(library_error)?;
        context.terminal.status(&format!("took {removed} out of {}", library.path().display()));
        return Ok(Exit::Success);
    }
    let (folders, exit) = match &args.what {
        Some(what) => {
            // A library that is named is planned with, and this run begins it if it is to be the first in it.
            if args.choice.library.is_some() {
                library.begin().map_err(super::write_error)?;
            }
            let carried = carry(args, what, context)?;
            if !carried.is_over() {
                return Ok(carried.exit);
            }
            (vec![carried.folder], carried.exit)
        }
        None => (args.from.clone(), Exit::Success),
    };
    let report = learn(&folders, &library, &args.choice.design, context)?;
    if context.json {
        context.terminal.data(&format::to_pretty(&report).exit(Exit::Error)?);
    } else {
        context.terminal.data(&report::noise(&report, super::report::style(context)));
    }
    if report.tasks.iter().all(|task| task.found.is_none()) {
        return Err(CommandError::new(Exit::NothingToRun, "nothing was learnt: a spread needs five blocks that count")
            .hint("`isobench report RUN` says what became of the blocks"));
    }
    Ok(exit)
}

/// Runs the baseline against itself, or goes on with such a run.
fn carry(args: &NoiseArgs, what: &Path, context: Context) -> Result<runs::Carried, CommandError> {
    if runs::is_begun(what) {
        let plan = evidence::open(what)?.plan().clone();
        if let Some(task) = plan.tasks.iter().find(|task| !task.is_against_itself()) {
            let message =
                format!("the run `{}` doesn't run the baseline of `{}` against itself", what.display(), task.id);
            let hint = format!("`isobench noise --from {}` takes what it shows of the spread", what.display());
            return Err(CommandError::new(Exit::Usage, message).hint(hint));
        }
    }
    let asked = &args.choice.design;
    let design = DesignArgs { fixed: Some(args.blocks), spending: asked.spending, ..DesignArgs::default() };
    let run = RunArgs {
        what: what.to_owned(),
        choice: ChoiceArgs { against_itself: true, design, ..args.choice.clone() },
        out: args.out.clone(),
        dry_run: false,
        take_in: Vec::new(),
        budget: BudgetArgs::default(),
    };
    // What is learnt is the data; the run's own progress is status.
    runs::carry(&run, Context { json: false, ..context })
}

/// Returns the library that was asked for.
fn library(args: &ChoiceArgs) -> Result<NoiseLibrary, CommandError> {
    match &args.library {
        Some(path) => Ok(NoiseLibrary::at(path)),
        None => Ok(NoiseLibrary::at(super::cache_folder(args.cache.as_ref())?.join(LIBRARY))),
    }
}

/// Returns the entries that plans are made with.
pub(crate) fn spreads(args: &ChoiceArgs, context: Context) -> Result<Vec<NoiseEntry>, CommandError> {
    let library = library(args)?;
    if args.library.as_ref().is_some_and(|path| !path.is_file()) {
        let message = format!("there is no library `{}`", library.path().display());
        return Err(CommandError::new(Exit::Usage, message).hint("`isobench noise TASK --library FILE` begins one"));
    }
    Ok(read(&library, context)?.entries)
}

fn read(library: &NoiseLibrary, context: Context) -> Result<LibraryContents, CommandError> {
    let contents = library.read().exit(Exit::Usage)?;
    for problem in &contents.problems {
        let line = format!(
            "line {} of {} can't be read, and the others count: {}",
            problem.line,
            library.path().display(),
            problem.message
        );
        context.terminal.error(&line);
    }
    Ok(contents)
}

fn library_error(error: LibraryError) -> CommandError {
    match error {
        LibraryError::Storage(error) => super::write_error(error),
        named @ (LibraryError::Unknown { .. } | LibraryError::Ambiguous { .. }) => {
            CommandError::from_error(Exit::Usage, named).hint("`isobench noise --list` shows the names")
        }
        locked @ LibraryError::Lock(_) => CommandError::from_error(Exit::Machine, locked).hint("try again"),
        broken @ LibraryError::Serialise { .. } => CommandError::from_error(Exit::Error, broken),
    }
}

fn now() -> String {
    let now = jiff::Timestamp::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

fn list(library: &NoiseLibrary, context: Context) -> Result<Exit, CommandError> {
    let contents = read(library, context)?;
    let listed = |entry: &NoiseEntry| -> Result<ListedEntry, CommandError> {
        let known = noise::known(&contents.entries, &entry.key, entry.metric);
        Ok(ListedEntry { id: entry.id().exit(Exit::Error)?, entry: entry.clone(), known })
    };
    let entries = contents.entries.iter().map(listed).collect::<Result<Vec<_>, _>>()?;
    if context.json {
        let problems: Vec<_> =
            contents.problems.iter().map(|problem| json!({"line": problem.line, "message": problem.message})).collect();
        context.print_json(&json!({"library": library.path(), "entries": entries, "problems": problems}))?;
        return Ok(Exit::Success);
    }
    if entries.is_empty() {
        context.terminal.status(&format!(
            "{} holds no spread; `isobench noise TASK` finds one out, `isobench noise --from RUN` takes one from a run",
            library.path().display()
        ));
    } else {
        context.terminal.data(&report::library(&entries, super::report::style(context)));
    }
    Ok(Exit::Success)
}

/// What a run holds that spreads are taken from.
struct Source {
    plan: Plan,
    facts: Facts,
    judgement: Judgement,
    began_ms: Millis,
}

/// Takes the spreads of runs into the library, and returns what they say.
fn learn(
    folders: &[PathBuf],
    library: &NoiseLibrary,
    design: &DesignArgs,
    context: Context,
) -> Result<NoiseReport, CommandError> {
    let sources = folders.iter().map(|folder| source(folder)).collect::<Result<Vec<_>, _>>()?;
    let mut tasks = Vec::new();
    let mut entries = Vec::new();
    for source in &sources {
        for judged in &source.judgement.tasks {
            let Some(planned) = source.plan.task(&judged.id) else { continue };
            let key = NoiseKey::of(&source.facts.host, planned);
            let entry = judged.spread.as_ref().map(|found| entry(source, judged, &key, found));
            tasks.push((planned, noise_task(source, judged, (planned, key))));
            entries.push(entry);
        }
    }
    let new: Vec<NoiseEntry> = entries.iter().flatten().cloned().collect();
    let added = library.add(&new).map_err(library_error)?;
    context.terminal.status(&format!("added {added} of {} to {}", new.len(), library.path().display()));
    let kept = read(library, context)?.entries;
    let mut told = Vec::new();
    for ((planned, mut task), entry) in tasks.into_iter().zip(entries) {
        if let Some(entry) = entry {
            // The same may have been there already, with another date.
            let kept = kept.iter().find(|kept| kept.is_of_same(&entry)).unwrap_or(&entry);
            task.entry = Some(kept.id().exit(Exit::Error)?);
        }
        let (looks, set) = looks(planned, design)?;
        task.known = noise::known(&kept, &task.key, task.metric);
        if let Some(known) = &task.known {
            task.looks = noise::look_effects(&looks, known.deviation);
            task.needed = needed(&looks, set, known.deviation, task.margin);
        }
        told.push(task);
    }
    Ok(NoiseReport { library: library.path().display().to_string(), tasks: told })
}

fn source(folder: &Path) -> Result<Source, CommandError> {
    let judgement = evidence::judgement(folder)?;
    let reader = evidence::open(folder)?;
    let first = reader.events().exit(Exit::Error)?.next().transpose().exit(Exit::Error)?;
    let Some(first) = first else {
        let message = format!("the run `{}` hasn't begun", folder.display());
        return Err(CommandError::new(Exit::NothingToRun, message).hint("`isobench run RUN` begins it"));
    };
    Ok(Source { plan: reader.plan().clone(), facts: reader.facts().clone(), judgement, began_ms: first.at_ms })
}

fn entry(source: &Source, judged: &TaskJudgement, key: &NoiseKey, found: &SpreadFound) -> NoiseEntry {
    NoiseEntry {
        key: key.clone(),
        metric: judged.metric,
        deviation: found.deviation,
        degrees: found.degrees,
        origin: found.origin,
        run: source.judgement.run.clone(),
        plan: source.judgement.plan.clone(),
        began_ms: source.began_ms,
        task: judged.id.clone(),
        of: found.of.clone(),
        against: found.against.clone(),
        date: now(),
        isobench: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// Returns what a run alone says of a task's noise.
fn noise_task(source: &Source, judged: &TaskJudgement, (planned, key): (&PlannedTask, NoiseKey)) -> NoiseTask {
    NoiseTask {
        run: source.judgement.run.clone(),
        task: judged.id.clone(),
        key,
        metric: judged.metric,
        margin: judged.margin,
        found: judged.spread.clone(),
        against_itself: planned.is_against_itself().then(|| verdict(judged)).flatten(),
        entry: None,
        known: None,
        looks: Vec::new(),
        needed: Vec::new(),
    }
}

fn verdict(judged: &TaskJudgement) -> Option<Verdict> {
    let human = judged.contrasts.iter().find(|c| c.of == ArmId::Human && c.against == ArmId::Baseline);
    human.map(|contrast| contrast.verdict)
}

/// Returns the looks whose power is told, and the set of orders that they are rounded to: of a run against itself those of the
/// runs to come, else the run's own.
fn looks(planned: &PlannedTask, design: &DesignArgs) -> Result<(Vec<Look>, u32), CommandError> {
    let arms = planned.arms.len();
    if !planned.is_against_itself() {
        return Ok((planned.design.looks.clone(), look_set(arms)));
    }
    let options = design.options();
    let most = options.max_blocks.unwrap_or(defaults::MAX_BLOCKS);
    let blocks = options.looks.unwrap_or_else(|| planner::default_looks(most, arms));
    let looks = match blocks.as_slice() {
        [blocks] => {
            let (level, equivalence_level) = (defaults::LEVEL, defaults::EQUIVALENCE_LEVEL);
            vec![Look { blocks: *blocks, level, equivalence_level }]
        }
        several => sequential::looks(options.spending, several).exit(Exit::Usage)?,
    };
    Ok((looks, look_set(arms)))
}

fn needed(looks: &[Look], set: u32, deviation: f64, margin: f64) -> Vec<NeededBlocks> {
    let mut differences = vec![margin];
    differences.extend(DIFFERENCES.iter().filter(|difference| (**difference - margin).abs() > 1e-9));
    differences.sort_by(f64::total_cmp);
    let blocks = |difference: f64| noise::blocks_needed(looks, set, deviation, difference.ln_1p());
    differences.into_iter().map(|difference| NeededBlocks { difference, blocks: blocks(difference) }).collect()
}
