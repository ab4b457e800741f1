//! `isobench plan`: what would run, on what, and at what cost.

mod from;
mod named;

use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use isobench_plan::choose::Choice;
use isobench_plan::dataset::Dataset;
use isobench_plan::planner::{self, PlanOptions};
use isobench_plan::setting::Setting;
use isobench_plan::source::Images;
use isobench_report::{html, markdown, terminal as report};
use isobench_runner::inputs::{Hub, HubSettings};
use isobench_runner::run_images::FindImage;
use isobench_schema::assessment::Standing;
use isobench_schema::environment::Python;
use isobench_schema::facts::Facts;
use isobench_schema::format;
use isobench_schema::ids::TaskId;
use isobench_schema::plan::Plan;
use isobench_schema::task::Task;
use isobench_schema::workload::WorkloadKind;
use isobench_store::{StoreError, layout, write_together};

use serde_json::json;

use super::{Context, images, plan_for};
use crate::args::{ChoiceArgs, KindArg, PlanArgs, PlanFormatArg};
use crate::container_args::BroughtImages;
use crate::dataset_files::{self, OpenDatasetError};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::facts::{self, Clones, Where};
use crate::statistics::PlanStatistics;

/// Runs the command.
pub(crate) fn run(args: &PlanArgs, context: Context) -> Result<Exit, CommandError> {
    let (plan, facts) = match (&args.from, &args.dataset) {
        (Some(run), _) => from::repaired(run, context)?,
        (None, Some(dataset)) => make(dataset, &args.choice, context)?,
        (None, None) => {
            let message = "neither a dataset nor a run is named";
            return Err(CommandError::new(Exit::Usage, message).hint("name a dataset, or `--from RUN`"));
        }
    };
    if let Some(out) = args.out.as_ref().filter(|_| !args.dry_run) {
        if out.join(layout::EVENTS).exists() {
            let message = format!("`{}` holds a run, and its plan is part of its record", out.display());
            return Err(CommandError::new(Exit::Usage, message).hint("write the plan into another folder"));
        }
        write(out, &plan, &facts)?;
        let digest = plan.digest().exit(Exit::Error)?;
        context.terminal.status(&format!("wrote the plan {} to {}", digest.short(), out.display()));
    }
    match &args.explain {
        Some(named) => explain(&plan, named, context)?,
        None => show(&plan, args.format, context)?,
    }
    Ok(if !plan.tasks.is_empty() || can_run_elsewhere(&plan) {
        Exit::Success
    } else if super::run::lacks_machine(&plan) {
        Exit::Machine
    } else {
        Exit::NothingToRun
    })
}

/// Returns whether a task could run on the devices that the plan reckons with, though not here and now.
fn can_run_elsewhere(plan: &Plan) -> bool {
    plan.assessments.iter().any(|assessment| match assessment.standing {
        Standing::AsIs | Standing::Repaired | Standing::Build => true,
        Standing::MoreDevices | Standing::Cannot => false,
    })
}

/// Plans a dataset for this machine.
pub(crate) fn make(dataset: &Path, args: &ChoiceArgs, context: Context) -> Result<(Plan, Facts), CommandError> {
    let settings = args.settings.iter().map(|text| Setting::parse(text)).collect::<Result<Vec<_>, _>>();
    let dataset = open(dataset, &settings.exit(Exit::Usage)?)?;
    if let Some(setting) = args.settings.first().filter(|_| !dataset.commit_tasks.is_empty()) {
        return Err(set_on_commits(setting));
    }
    let choice = choice(args, &dataset)?;
    let cache = super::cache_folder(args.cache.as_ref())?;
    context.terminal.status("looking at this machine and at the revisions");
    let clones = Clones::parse(&args.commits.clones)?;
    let settings = HubSettings { folders: args.commits.models.clone(), ..super::hub_settings(&args.disk) };
    let hub = Hub::new(settings);
    let place = Where {
        cache: &cache,
        hub: &hub,
        ask_for_commits: args.commits.hub,
        clones: &clones,
        models: &args.commits.models,
        terminal: context.terminal,
        cancel: &AtomicBool::new(false),
    };
    let mut facts = facts::gather(&dataset, &choice, place)?;
    if let Some(repository) = &args.commits.images {
        facts.images = Some(images::facts(repository, &args.commits, (&dataset, &facts), context)?);
    }
    let brings_images = |task: &Task| matches!(task.environment.python, Python::Image(_));
    // A dataset of which nothing could be read may bring images; why it couldn't is in the plan.
    let is_unread = dataset.tasks.is_empty() && !dataset.problems.is_empty();
    let has_images = is_unread || dataset.tasks.iter().any(brings_images) || facts.images.is_some();
    let container = args.containers.meant(if has_images { BroughtImages::Some } else { BroughtImages::None })?;
    let images = match &container {
        Some(_) if facts.images.is_some() => {
            facts.image_disk_mib = facts::image_disk_mib();
            Images::Usable
        }
        Some(_) | None => Images::Unusable,
    };
    let commits = plan_for::options(&args.commits, images, &mut facts)?;
    let options = PlanOptions {
        seed: args.seed,
        choice,
        allow_unisolated: args.allow_unisolated,
        planner_version: env!("CARGO_PKG_VERSION").to_owned(),
        container,
        baseline_against_itself: args.against_itself,
        commits,
        design: args.design.options(),
        disk_floor_bytes: args.disk.floor_bytes(),
    };
    let asked = FindImage { cache: &cache, floor_bytes: args.disk.floor_bytes(), cancel: &AtomicBool::new(false) };
    facts::gather_images(&dataset, &options, (asked, context.terminal), &mut facts)?;
    let spreads = super::noise::spreads(args, context)?;
    let plan = planner::plan(&dataset, &facts, &options, &PlanStatistics::new(spreads)).exit(Exit::Usage)?;
    Ok((plan, facts))
}

/// Reads a dataset.
pub(crate) fn open(dataset: &Path, settings: &[Setting]) -> Result<Dataset, CommandError> {
    dataset_files::open(dataset, settings).map_err(dataset_error)
}

/// Returns the error of a dataset that can't be read, with the next step.
fn dataset_error(error: OpenDatasetError) -> CommandError {
    let is_missing = matches!(error, OpenDatasetError::Path { .. });
    let error = CommandError::from_error(Exit::Usage, error);
    if is_missing {
        error.hint(
            "name a `task.toml`, a folder of tasks or a file of commits; README.md has a `task.toml` to begin with",
        )
    } else {
        error
    }
}

/// Returns the error of a setting for a dataset of commits.
fn set_on_commits(setting: &str) -> CommandError {
    let key = setting.split_once('=').map_or(setting, |(key, _)| key);
    let message = format!("`--set` can't set `{key}` here: settings change the tasks of a `task.toml` only");
    CommandError::new(Exit::Usage, message)
        .hint("the dataset is one of commits: the options of a commit's server stand in its command")
}

fn choice(args: &ChoiceArgs, dataset: &Dataset) -> Result<Choice, CommandError> {
    let named = named::of_dataset(dataset);
    let task = |text: &String| match named::find(&named, text)? {
        Some(task) => Ok(task),
        // The planner names the nearest one.
        None => TaskId::new(text.as_str()).exit(Exit::Usage),
    };
    let tasks = args.tasks.iter().map(task).collect::<Result<Vec<_>, _>>()?;
    let arms = args.arms.iter().map(|arm| arm.parse()).collect::<Result<Vec<_>, _>>();
    Ok(Choice {
        tasks,
        arms: arms.exit(Exit::Usage)?,
        kind: args.kind.map(|kind| match kind {
            KindArg::Serving => WorkloadKind::Serving,
            KindArg::Latency => WorkloadKind::Latency,
            KindArg::Throughput => WorkloadKind::Throughput,
        }),
        limit: args.limit,
    })
}

/// Writes a plan and its facts into a folder.
pub(crate) fn write(folder: &Path, plan: &Plan, facts: &Facts) -> Result<(), CommandError> {
    fs::create_dir_all(folder)
        .map_err(|error| StoreError::new("create the folder", folder, error))
        .map_err(super::write_error)?;
    let (facts_path, plan_path) = (folder.join(layout::FACTS), folder.join(layout::PLAN));
    write_together(&[
        (&facts_path, &|out| Ok(format::write_pretty(facts, out)?)),
        (&plan_path, &|out| Ok(format::write_pretty(plan, out)?)),
    ])
    .map_err(super::write_error)
}

/// Prints a plan.
pub(crate) fn show(plan: &Plan, form: PlanFormatArg, context: Context) -> Result<(), CommandError> {
    let form = if context.json { PlanFormatArg::Json } else { form };
    let text = match form {
        PlanFormatArg::Terminal => report::plan(plan, super::report::style(context)),
        PlanFormatArg::Markdown => markdown::plan(plan),
        PlanFormatArg::Html => html::plan_page(plan, &html::Options::default()),
        PlanFormatArg::Json => format::to_pretty(plan).exit(Exit::Error)?,
    };
    context.terminal.data(&text);
    Ok(())
}

/// Prints the story of one task, or what is known of it as JSON.
fn explain(plan: &Plan, named: &str, context: Context) -> Result<(), CommandError> {
    let id = named::task(plan, named)?;
    if context.json {
        let assessment = plan.assessments.iter().find(|assessment| assessment.task == id);
        let exclusions: Vec<_> = plan.exclusions.iter().filter(|exclusion| exclusion.task == id).collect();
        let story = json!({ "assessment": assessment, "task": plan.task(&id), "exclusions": exclusions });
        return context.print_json(&story);
    }
    let story = report::explain(plan, &id, super::report::style(context));
    context.terminal.data(&story.unwrap_or_default());
    Ok(())
}
