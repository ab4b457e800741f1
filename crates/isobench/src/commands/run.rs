//! `isobench run`: runs a plan or a dataset, and resumes what was cut short.

use std::fs;
use std::path::{Path, PathBuf};

use isobench_plan::budget::{Budget, Money};
use isobench_plan::knowledge::Knowledge;
use isobench_plan::next::Next;
use isobench_plan::progress::Progress;
use isobench_schema::event::RunEnd;
use isobench_schema::facts::Facts;
use isobench_schema::format;
use isobench_schema::ids::{BlockId, RunId};
use isobench_schema::plan::{Exclusion, ExclusionReason, Plan, PlannedTask};
use isobench_schema::verdict::Judgement;
use isobench_store::{OpenRunError, RunStore, TakeInError, TakenIn, layout};

use super::{Context, plan};
use crate::args::{PlanFormatArg, RunArgs};
use crate::coordinator::{self, Machine};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::{evidence, interrupt, progress};

/// How a run ended that was begun or gone on with.
pub(crate) struct Carried {
    /// The exit code.
    pub(crate) exit: Exit,
    /// Its folder.
    pub(crate) folder: PathBuf,
    /// What its evidence says, unless it was interrupted.
    judgement: Option<Judgement>,
}

impl Carried {
    /// Returns whether it wasn't interrupted.
    pub(crate) fn is_over(&self) -> bool {
        self.judgement.is_some()
    }
}

/// Runs the command.
pub(crate) fn run(args: &RunArgs, context: Context) -> Result<Exit, CommandError> {
    if !args.dry_run {
        return show(&carry(args, context)?, context);
    }
    if is_begun(&args.what) {
        return show_next(&args.what, context);
    }
    let (plan, _) = planned(args, context)?;
    plan::show(&plan, PlanFormatArg::Terminal, context)?;
    Ok(Exit::Success)
}

/// Returns whether a folder is that of a run.
pub(crate) fn is_begun(folder: &Path) -> bool {
    folder.join(layout::EVENTS).is_file()
}

/// Begins a run, or goes on with it.
pub(crate) fn carry(args: &RunArgs, context: Context) -> Result<Carried, CommandError> {
    let machine = super::machine(super::cache_folder(args.choice.cache.as_ref())?, &args.choice.disk)?;
    if is_begun(&args.what) {
        take_in(&args.what, &args.take_in, context)?;
        let plan = evidence::open(&args.what)?.plan().clone();
        let budget = Budget { max_blocks: args.choice.design.max_blocks, ..budget(args, &plan)? };
        return go_on(&args.what, &machine, &budget, context);
    }
    let (plan, facts) = planned(args, context)?;
    if plan.tasks.is_empty() {
        plan::show(&plan, PlanFormatArg::Terminal, context)?;
        let exit = if lacks_machine(&plan) { Exit::Machine } else { Exit::NothingToRun };
        return Err(CommandError::new(exit, "the plan has no task that can run")
            .hint("the plan above says why each was excluded"));
    }
    // What is known of the noise grows, and must not give the same run another name.
    let digest = plan.without_forecasts().digest().exit(Exit::Error)?;
    let run = RunId::new(format!("{}-{}", plain(&plan.dataset), digest.short())).exit(Exit::Usage)?;
    let folder = args.out.clone().unwrap_or_else(|| Path::new("runs").join(run.as_str()));
    let run = match args.out.as_ref().and_then(|out| out.file_name()?.to_str()) {
        Some(name) => RunId::new(name).unwrap_or(run),
        None => run,
    };
    let (plan, facts) = as_begun(&folder, plan, facts);
    if !plan.tasks.iter().all(PlannedTask::is_against_itself) {
        for line in isobench_report::terminal::forecasts(&plan) {
            context.terminal.status(&line);
        }
    }
    begin(&folder, (&run, &plan, &facts), &machine, &budget(args, &plan)?, context)
}

/// Returns the plan that was named, or the plan of the dataset that was.
fn planned(args: &RunArgs, context: Context) -> Result<(Plan, Facts), CommandError> {
    if let Some(block) = args.take_in.first() {
        let message = format!("`{}` can only be taken in by the run that it belongs to", block.display());
        return Err(
            CommandError::new(Exit::Usage, message).hint("name the run's folder: isobench run RUN --take-in DIR")
        );
    }
    match plan_folder(&args.what) {
        Some(folder) => read_plan(&folder),
        None => plan::make(&args.what, &args.choice, context),
    }
}

/// Returns the plan that a folder's run began with, if this one differs in nothing but what it expects, else this one.
fn as_begun(folder: &Path, plan: Plan, facts: Facts) -> (Plan, Facts) {
    match is_begun(folder).then(|| read_plan(folder)) {
        Some(Ok((begun, its_facts))) if begun.without_forecasts() == plan.without_forecasts() => (begun, its_facts),
        Some(_) | None => (plan, facts),
    }
}

/// Returns what the run may use up. The plan's own bound of blocks needs no other.
fn budget(args: &RunArgs, plan: &Plan) -> Result<Budget, CommandError> {
    let money = match args.budget.budget_money {
        None => None,
        Some(usd) => {
            let planned_for = plan.planned_for.as_ref().filter(|planned_for| !planned_for.assumed);
            let listed = || {
                let device = Knowledge::embedded().devices.find(&planned_for?.device)?;
                device.price_usd_per_hour
            };
            let Some(usd_per_hour) = args.choice.commits.price.or_else(listed) else {
                let message = "`--budget-money` needs the price of the device, which isn't known";
                return Err(CommandError::new(Exit::Usage, message)
                    .hint("give it with `--price USD`: of one device, or of this machine, for an hour"));
            };
            Some(Money { usd, usd_per_hour })
        }
    };
    let seconds = args.budget.budget_minutes.map(|minutes| 60.0 * minutes);
    Ok(Budget { max_blocks: None, seconds, money })
}

/// Starts a run in a new folder, or goes on with it if it is this very run, and prints what it says.
pub(crate) fn start(
    folder: &Path,
    run: (&RunId, &Plan, &Facts),
    machine: &Machine,
    budget: &Budget,
    context: Context,
) -> Result<Exit, CommandError> {
    show(&begin(folder, run, machine, budget, context)?, context)
}

/// Goes on with a run, and prints what it says.
pub(crate) fn resume(
    folder: &Path,
    machine: &Machine,
    budget: &Budget,
    context: Context,
) -> Result<Exit, CommandError> {
    show(&go_on(folder, machine, budget, context)?, context)
}

fn begin(
    folder: &Path,
    (run, plan, facts): (&RunId, &Plan, &Facts),
    machine: &Machine,
    budget: &Budget,
    context: Context,
) -> Result<Carried, CommandError> {
    fs::create_dir_all(folder).exit(Exit::Usage)?;
    let store = RunStore::create(folder, run, plan, facts).map_err(|error| open_error(error, folder))?;
    execute(store, machine, budget, context)
}

fn go_on(folder: &Path, machine: &Machine, budget: &Budget, context: Context) -> Result<Carried, CommandError> {
    let store = RunStore::open(folder).map_err(|error| open_error(error, folder))?;
    execute(store, machine, budget, context)
}

/// Prints what a run says.
fn show(carried: &Carried, context: Context) -> Result<Exit, CommandError> {
    if let Some(judgement) = &carried.judgement {
        super::report::print(judgement, context)?;
        let page = carried.folder.join(layout::DERIVED).join("report.html");
        context.terminal.status(&format!(
            "the record is in {}, and a page with plots is {}",
            carried.folder.display(),
            page.display()
        ));
    }
    Ok(carried.exit)
}

/// Takes the folders of finished blocks into their run.
fn take_in(folder: &Path, blocks: &[PathBuf], context: Context) -> Result<(), CommandError> {
    if blocks.is_empty() {
        return Ok(());
    }
    let mut store = RunStore::open(folder).map_err(|error| open_error(error, folder))?;
    let (plan, progress) = (store.plan().clone(), Progress::new(store.run().clone()));
    for task in &plan.tasks {
        Plan::blocks(task).exit(Exit::Usage)?;
    }
    let planned = |id: &BlockId| progress.spec_of(&plan, id).expect("every design of the plan is known");
    for block in blocks {
        let taken = isobench_store::take_in(&mut store, block, planned);
        let word = match taken.map_err(|error| take_in_error(error, folder))? {
            TakenIn::Added => "taken in",
            TakenIn::AlreadyThere => "is in the run already",
        };
        context.terminal.status(&format!("`{}` {word}", block.display()));
    }
    Ok(())
}

fn take_in_error(error: TakeInError, folder: &Path) -> CommandError {
    let other = matches!(
        error,
        TakeInError::NotPlanned { .. }
            | TakeInError::OtherSpec { .. }
            | TakeInError::BlockComplete { .. }
            | TakeInError::EndedOtherwise { .. }
    );
    let error = CommandError::from_error(Exit::Usage, error);
    if other {
        let run = folder.display();
        error.hint(format!("`isobench run {run} --dry-run` prints the specification of the block that runs next"))
    } else {
        error
    }
}

/// Prints the specification of the next block of a run.
fn show_next(folder: &Path, context: Context) -> Result<Exit, CommandError> {
    let reader = evidence::open(folder)?;
    let mut progress = Progress::new(reader.run().clone());
    for event in reader.events().exit(Exit::Error)? {
        progress.apply(&event.exit(Exit::Error)?);
    }
    match progress.next(reader.plan()).exit(Exit::Usage)? {
        Next::Block(spec) => {
            context.terminal.data(&format::to_pretty(spec.as_ref()).exit(Exit::Error)?);
            Ok(Exit::Success)
        }
        Next::Look { task, look } => {
            let message = format!("look {} at task `{task}` comes before any further block", look.saturating_add(1));
            let hint = format!("`isobench run {}` takes it and goes on", folder.display());
            Err(CommandError::new(Exit::NothingToRun, message).hint(hint))
        }
        Next::Finished | Next::BudgetUsed { .. } => {
            Err(CommandError::new(Exit::NothingToRun, "the run is finished: no block is left"))
        }
    }
}

pub(super) fn open_error(error: OpenRunError, folder: &Path) -> CommandError {
    let locked = matches!(error, OpenRunError::Lock(_));
    let error = CommandError::from_error(Exit::Usage, error);
    if locked {
        error.hint("wait for it, or stop it with Ctrl-C in its terminal")
    } else {
        error.hint(format!("`isobench verify {}` tells more, and `--out` names another folder", folder.display()))
    }
}

fn execute(mut store: RunStore, machine: &Machine, budget: &Budget, context: Context) -> Result<Carried, CommandError> {
    let folder = store.dir().to_owned();
    let cancel = interrupt::flag().exit(Exit::Machine)?;
    if store.torn_bytes() > 0 {
        context.terminal.status("the last event was cut short and is dropped; nothing else is lost");
    }
    let mut watch = progress::watch(context, store.plan(), folder.clone());
    let end = coordinator::run(&mut store, machine, &cancel, budget, watch.as_mut());
    drop(watch);
    match end? {
        RunEnd::Finished => {}
        RunEnd::BudgetUsed => {
            let line = format!(
                "the budget is used up, and every task is judged at its last look; go on with: isobench run {}",
                folder.display()
            );
            context.terminal.error(&line);
        }
        RunEnd::Interrupted | RunEnd::Stopped => {
            let line = format!("interrupted; go on with: isobench run {}", folder.display());
            context.terminal.error(&line);
            return Ok(Carried { exit: Exit::Interrupted, folder, judgement: None });
        }
    }
    drop(store);
    let judgement = evidence::judge(&folder)?;
    super::report::write_pages(&folder, &judgement)?;
    Ok(Carried { exit: exit(&judgement), folder, judgement: Some(judgement) })
}

/// Returns the exit code of a finished run: whether every trial was measured.
pub(crate) fn exit(judgement: &Judgement) -> Exit {
    let mut tasks = judgement.tasks.iter();
    let some_failed = tasks.any(|task| {
        task.contrasts.iter().any(|contrast| contrast.verdict.is_failure())
            || task.arms.iter().any(|arm| arm.valid < arm.launches)
    });
    if some_failed { Exit::SomeFailed } else { Exit::Success }
}

/// Returns whether everything that isn't run is so because of what this machine lacks.
pub(crate) fn lacks_machine(plan: &Plan) -> bool {
    let lacks = |exclusion: &Exclusion| match exclusion.reason {
        ExclusionReason::MachineTooSmall | ExclusionReason::ToolMissing => true,
        ExclusionReason::NotChosen
        | ExclusionReason::RevisionNotFound
        | ExclusionReason::RepositoryUnavailable
        | ExclusionReason::InputMissing
        | ExclusionReason::Contradiction
        | ExclusionReason::CannotRun
        | ExclusionReason::ClientLacks
        | ExclusionReason::IsolationMissing => false,
    };
    !plan.exclusions.is_empty() && plan.exclusions.iter().all(lacks)
}

/// Returns a dataset's name as a part of a run's name.
fn plain(name: &str) -> String {
    let plain: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '-' }).take(60).collect();
    let plain = plain.trim_start_matches(['.', '-', '_']);
    if plain.is_empty() { "run".to_owned() } else { plain.to_owned() }
}

/// Returns the folder of a plan, if `what` names one or its file.
fn plan_folder(what: &Path) -> Option<PathBuf> {
    if what.join(layout::PLAN).is_file() {
        return Some(what.to_owned());
    }
    let is_plan = what.is_file() && what.file_name().is_some_and(|name| name == layout::PLAN);
    is_plan.then(|| what.parent().map_or_else(|| PathBuf::from("."), Path::to_owned))
}

pub(super) fn read_plan(folder: &Path) -> Result<(Plan, Facts), CommandError> {
    let read = |name: &str| {
        let path = folder.join(name);
        fs::read(&path)
            .map_err(|error| CommandError::new(Exit::Usage, format!("cannot read `{}`: {error}", path.display())))
    };
    let facts: Facts = format::from_slice(&read(layout::FACTS)?).exit(Exit::Usage)?;
    let plan: Plan = format::from_slice(&read(layout::PLAN)?).exit(Exit::Usage)?;
    let found = isobench_schema::ids::Digest::of(format::to_pretty(&facts).exit(Exit::Error)?.as_bytes());
    if found != plan.facts {
        let message = format!("the facts beside the plan in `{}` aren't those that it was made from", folder.display());
        return Err(CommandError::new(Exit::Usage, message).hint("make the plan again with `isobench plan`"));
    }
    Ok((plan, facts))
}
