//! A plan as a terminal page: what would run, on what, and how long it would take.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use isobench_schema::assessment::Assessment;
use isobench_schema::environment::{EnvironmentSpec, Isolation, Python, Rung};
use isobench_schema::ids::{EnvironmentId, TaskId};
use isobench_schema::input::{InputOrigin, PlannedInput};
use isobench_schema::plan::{Design, Plan, PlannedTask};
use isobench_schema::units::size_text;

use super::Style;
use super::judgement::section;
use super::table::{Cell, Column, Layout, table};
use crate::funnel::lowest_rung;
use crate::noise;
use crate::number::{self, counted};
use crate::text::{self, clean};
use crate::view::{deviation_view, devices, exclusion_view, problem_view, workload};
use crate::words;

/// What a plan can't say before the machine's spread is known.
const UNKNOWN_EFFECT: &str = "smallest effect these blocks can find: unknown until the spread of this machine is measured \
(isobench noise)";

/// How many blocks `explain` lists.
const LISTED_BLOCKS: usize = 12;

/// Returns what the plan would run.
pub fn plan(plan: &Plan, style: Style) -> String {
    let mut out = String::new();
    head(&mut out, plan, style);
    if plan.assessments.is_empty() {
        for task in &plan.tasks {
            section(&mut out, task.id.as_str(), style);
            summary(&mut out, task, style);
            forecast(&mut out, task, style);
            environments(&mut out, task, style);
            inputs(&mut out, task, style);
            notes(&mut out, task, style);
        }
    } else {
        overview(&mut out, plan, style);
    }
    if !plan.tasks.is_empty() {
        out.push('\n');
        style.paragraph(&mut out, "", &noise::summary(&plan.tasks).unwrap_or_else(|| UNKNOWN_EFFECT.to_owned()));
    }
    if plan.assessments.is_empty() {
        exclusions(&mut out, plan, None, style);
    }
    problems(&mut out, plan, style);
    if !plan.assessments.is_empty() {
        out.push('\n');
        out.push_str(&super::funnel(&plan.assessments, plan.planned_for.as_ref(), style));
    }
    out
}

/// Appends one line for each task of a dataset of commits; each has a page of its own.
fn overview(out: &mut String, plan: &Plan, style: Style) {
    out.push('\n');
    let columns = [
        Column { title: "task", layout: Layout::Word },
        Column { title: "standing", layout: Layout::Word },
        Column { title: "devices", layout: Layout::Number },
        Column { title: "environment", layout: Layout::Word },
        Column { title: "time", layout: Layout::Number },
        Column { title: "subject", layout: Layout::Name },
    ];
    let planned: BTreeMap<&TaskId, &PlannedTask> = plan.tasks.iter().map(|task| (&task.id, task)).collect();
    let row = |item: &Assessment| {
        let standing = words::TaskStandingWord::of(item.standing);
        let planned = planned.get(&item.task);
        let cost = item.cost.as_ref();
        let devices =
            item.need.as_ref().map(|need| need.devices.map_or("none".to_owned(), |devices| devices.to_string()));
        vec![
            Cell::plain(clean(item.task.as_str())),
            Cell { text: format!("{} {}", standing.symbol, standing.title), tone: Some(standing.tone) },
            Cell::optional(devices.as_ref()),
            Cell::plain(lowest_rung(item).map_or("–", Rung::as_str)),
            Cell::optional(
                planned
                    .map(|task| task.estimate_s.get())
                    .or(cost.map(|cost| cost.device_s))
                    .map(number::duration)
                    .as_ref(),
            ),
            Cell::plain(item.subject.as_ref().map_or_else(|| "–".to_owned(), |subject| clean(subject))),
        ]
    };
    table(out, &columns, &plan.assessments.iter().map(row).collect::<Vec<_>>(), style);
    style.paragraph(out, "  ", "isobench plan --explain COMMIT tells the whole story of one");
    super::left_out::grouped(out, plan, style);
}

/// Returns everything that the plan says about one task, or `None` if it doesn't name it.
pub fn explain(plan: &Plan, id: &TaskId, style: Style) -> Option<String> {
    if let Some(assessment) = plan.assessments.iter().find(|assessment| assessment.task == *id) {
        return Some(super::assessment(assessment, Some(plan), style));
    }
    let mut out = String::new();
    let excluded = plan.exclusions.iter().any(|exclusion| exclusion.task == *id);
    let task = plan.task(id);
    if task.is_none() && !excluded {
        return None;
    }
    out.push_str(&style.bold(id.as_str()));
    out.push('\n');
    if let Some(task) = task {
        summary(&mut out, task, style);
        if task.forecast.is_none() {
            style.paragraph(&mut out, "  ", UNKNOWN_EFFECT);
        }
        forecast(&mut out, task, style);
        looks(&mut out, &task.design, style);
        environments(&mut out, task, style);
        inputs(&mut out, task, style);
        notes(&mut out, task, style);
        limits(&mut out, task, style);
        order(&mut out, task, style);
    } else {
        out.push_str("  is not run\n");
    }
    exclusions(&mut out, plan, Some(id), style);
    Some(out)
}

/// Appends what is run of a task that has its own page, or why it isn't run.
pub(super) fn story(out: &mut String, plan: &Plan, id: &TaskId, style: Style) {
    if let Some(task) = plan.task(id) {
        out.push('\n');
        shape(out, task, style);
        style.paragraph(out, "  workload  ", &workload(&task.workload, &task.server.model));
        forecast(out, task, style);
    }
    // What the standing says already isn't said again.
    let reasons: Vec<&String> =
        plan.assessments.iter().filter(|item| item.task == *id).flat_map(|item| item.reasons.iter()).collect();
    let others = plan.exclusions.iter().filter(|item| item.task == *id && !reasons.contains(&&item.message));
    let others: Vec<_> = others.map(|item| (item.arm.as_ref(), exclusion_view(item))).collect();
    if !others.is_empty() {
        out.push('\n');
    }
    for (arm, item) in others {
        let arm = arm.map(|arm| format!("{arm} ")).unwrap_or_default();
        style.paragraph(out, "  not run   ", &format!("{arm}({}): {}", item.reason, item.message));
    }
}

fn head(out: &mut String, plan: &Plan, style: Style) {
    let launches: u64 = plan.tasks.iter().map(launches).sum();
    let tasks = u64::try_from(plan.tasks.len()).unwrap_or(u64::MAX);
    let cost = format!("{}, about {}", counted(launches, "launch"), number::duration(plan.estimate_s()));
    let assessed = u64::try_from(plan.assessments.len()).unwrap_or(u64::MAX);
    let line = match (assessed, tasks) {
        (0, _) => format!("{}, {cost}", counted(tasks, "task")),
        (_, 0) => format!("{} assessed, 0 planned to run here", counted(assessed, "task")),
        (_, _) => format!("{} assessed, {tasks} planned to run here, {cost}", counted(assessed, "task")),
    };
    let line = format!("plan of {}: {line}", clean(&plan.dataset));
    for line in text::wrap(&line, style.width) {
        out.push_str(&style.bold(&line));
        out.push('\n');
    }
    let image = plan.container.as_ref().and_then(|container| Some(container.image.as_ref()?.name.as_str()));
    let image = image.map_or_else(String::new, |image| format!(" of `{}`", clean(image)));
    let patches = if plan.isolation == Isolation::Container {
        "agent patches run in it"
    } else if plan.allow_unisolated {
        "agent patches may run without it"
    } else {
        "needed for agent patches"
    };
    let made = format!(
        "made by {}, seed {}, facts {}, isolation {}{image} ({patches})",
        clean(&plan.planner),
        plan.seed,
        plan.facts.short(),
        plan.isolation
    );
    style.paragraph(out, "", &made);
    if let Some(planned_for) = &plan.planned_for {
        style.paragraph(out, "", &devices(planned_for));
    }
    if let Some(why) = super::left_out::sentence(plan) {
        style.paragraph(out, "", &why);
    }
}

fn launches(task: &PlannedTask) -> u64 {
    u64::from(task.design.blocks()) * u64::try_from(task.arms.len()).unwrap_or(u64::MAX)
}

fn summary(out: &mut String, task: &PlannedTask, style: Style) {
    if let Some(title) = &task.title {
        style.paragraph(out, "  ", &clean(title));
    }
    let arms: Vec<String> = task.arms.iter().map(|arm| arm.arm.to_string()).collect();
    style.paragraph(out, "  arms      ", &arms.join(", "));
    let absent: Vec<String> = task.not_run.iter().map(ToString::to_string).collect();
    if !absent.is_empty() {
        style.paragraph(out, "  not run   ", &format!("{} (no patch)", absent.join(", ")));
    }
    shape(out, task, style);
    style.paragraph(out, "  workload  ", &workload(&task.workload, &task.server.model));
}

fn shape(out: &mut String, task: &PlannedTask, style: Style) {
    style.paragraph(out, "  design    ", &design(task));
    let metric = format!(
        "{} in {}, {}, margin {}",
        task.metric.primary,
        task.metric.primary.unit(),
        words::direction(task.metric.direction),
        number::percent(task.metric.margin)
    );
    style.paragraph(out, "  metric    ", &metric);
}

/// Returns how many blocks there are, when they are looked at, and how long they take.
fn design(task: &PlannedTask) -> String {
    let design = &task.design;
    let launches = counted(u64::try_from(task.arms.len()).unwrap_or(u64::MAX), "launch");
    let (window, most) = (number::duration(design.min_window_s.get()), number::duration(task.estimate_s.get()));
    let blocks = counted(design.blocks(), "block");
    let [first, .., last] = design.looks.as_slice() else {
        return format!("{blocks} of {launches}, 1 look, window at least {window}, about {most}");
    };
    let looks: Vec<String> = design.looks.iter().map(|look| look.blocks.to_string()).collect();
    let to_first = task.estimate_s.get() * f64::from(first.blocks) / f64::from(last.blocks.max(1));
    format!(
        "at most {blocks} of {launches}, looks after {}, window at least {window}, about {} to the first look and {most} to the \
         last",
        looks.join(", "),
        number::duration(to_first)
    )
}

/// The most tasks whose warnings are listed.
const LISTED_WARNINGS: usize = 10;

/// Returns what should be known of a plan's forecasts before it is run, one line each: how many spreads are known, and which
/// tasks can't find differences of their margin.
pub fn forecasts(plan: &Plan) -> Vec<String> {
    let warning = |task: &PlannedTask| Some(format!("task `{}`: {}", task.id, noise::forecast(task)?.warning?));
    let warnings: Vec<String> = plan.tasks.iter().filter_map(warning).collect();
    let left = u64::try_from(warnings.len().saturating_sub(LISTED_WARNINGS)).unwrap_or(u64::MAX);
    let more = (left > 0).then(|| format!("and {} like it", counted(left, "task")));
    noise::summary(&plan.tasks).into_iter().chain(warnings.into_iter().take(LISTED_WARNINGS)).chain(more).collect()
}

/// Appends what the plan expects of a task.
fn forecast(out: &mut String, task: &PlannedTask, style: Style) {
    let Some(text) = noise::forecast(task) else { return };
    for line in &text.lines {
        style.paragraph(out, "  forecast  ", line);
    }
    if let Some(warning) = &text.warning {
        style.paragraph(out, "  ! ", warning);
    }
}

fn looks(out: &mut String, design: &Design, style: Style) {
    for look in &design.looks {
        let line = format!(
            "after {}: difference at p < {}, equivalence at {} a side",
            counted(look.blocks, "block"),
            look.level,
            look.equivalence_level
        );
        style.paragraph(out, "  look      ", &line);
    }
}

fn environments(out: &mut String, task: &PlannedTask, style: Style) {
    let mut arms: BTreeMap<&EnvironmentId, Vec<String>> = BTreeMap::new();
    for arm in &task.arms {
        arms.entry(&arm.environment).or_default().push(arm.arm.to_string());
    }
    let columns = [
        Column { title: "environment", layout: Layout::Word },
        Column { title: "of", layout: Layout::Name },
        Column { title: "from", layout: Layout::Word },
        Column { title: "commit", layout: Layout::Word },
        Column { title: "patch", layout: Layout::Name },
        Column { title: "python", layout: Layout::Name },
    ];
    let row = |(id, arms): (&&EnvironmentId, &Vec<String>)| {
        let name = id.as_str().get(..12).unwrap_or(id.as_str());
        let mut cells = vec![Cell::plain(name), Cell::plain(arms.join(", "))];
        match task.environments.get(*id) {
            Some(spec) => cells.extend(environment(spec)),
            None => cells.extend([
                Cell::plain("missing from the plan"),
                Cell::plain("–"),
                Cell::plain("–"),
                Cell::plain("–"),
            ]),
        }
        cells
    };
    table(out, &columns, &arms.iter().map(row).collect::<Vec<_>>(), style);
}

/// Appends what is taken from a hub, with its size, which is known before anything is fetched.
fn inputs(out: &mut String, task: &PlannedTask, style: Style) {
    if task.fetched.is_empty() {
        return;
    }
    out.push('\n');
    let columns = [
        Column { title: "input", layout: Layout::Word },
        Column { title: "repository", layout: Layout::Name },
        Column { title: "revision", layout: Layout::Name },
        Column { title: "commit", layout: Layout::Word },
        Column { title: "files", layout: Layout::Number },
        Column { title: "size", layout: Layout::Number },
        Column { title: "from", layout: Layout::Name },
    ];
    let row = |input: &PlannedInput| {
        let commit = input.commit.as_ref().map(|commit| commit.short().to_owned());
        let from = match (&input.folder, input.origin) {
            (Some(folder), _) => clean(folder),
            (None, InputOrigin::Hub) => "the hub".to_owned(),
            (None, InputOrigin::HubCache) => "the hub's cache here".to_owned(),
            (None, InputOrigin::Folder) => "a folder".to_owned(),
        };
        vec![
            Cell::plain(input.role.as_str()),
            Cell::plain(clean(input.source.repository.as_str())),
            Cell::plain(clean(input.source.revision.as_str())),
            Cell::optional(commit.as_ref()),
            Cell::plain(input.files.len().to_string()),
            Cell::plain(size_text(input.bytes)),
            Cell::plain(from),
        ]
    };
    table(out, &columns, &task.fetched.iter().map(row).collect::<Vec<_>>(), style);
}

fn environment(spec: &EnvironmentSpec) -> [Cell; 4] {
    let patch = spec.source.patch.as_ref();
    let patch = patch.map(|patch| format!("{} {}", patch.digest.short(), clean(&patch.name)));
    let python = match &spec.python {
        Python::Absent => "none".to_owned(),
        Python::System => "the machine's".to_owned(),
        Python::Image(image) => format!("that of {}", clean(&image.image)),
        Python::Venv(venv) => {
            let packages = u64::try_from(venv.requirements.len() + venv.no_dependencies.len()).unwrap_or(u64::MAX);
            format!("{}, {}", clean(venv.python.as_deref().unwrap_or("python3")), counted(packages, "requirement"))
        }
    };
    [
        Cell::plain(spec.rung.as_str()),
        Cell::plain(spec.source.commit.short()),
        Cell::optional(patch.as_ref()),
        Cell::plain(python),
    ]
}

fn notes(out: &mut String, task: &PlannedTask, style: Style) {
    for deviation in &task.deviations {
        style.paragraph(out, "  † ", &deviation_view(deviation).sentence());
    }
}

fn limits(out: &mut String, task: &PlannedTask, style: Style) {
    let show = |seconds: isobench_schema::units::Seconds| number::duration(seconds.get());
    let limits = &task.limits;
    let line = format!(
        "build {}, ready {}, request {}, stall {}, workload {}, stop {}; {} may fail",
        show(limits.build_s),
        show(limits.ready_s),
        show(limits.request_s),
        show(limits.stall_s),
        show(limits.workload_s),
        show(limits.stop_s),
        counted(limits.failed_requests, "request")
    );
    style.paragraph(out, "  limits    ", &line);
    let mut needs = vec![counted(task.requirements.devices, "device")];
    needs.extend(task.requirements.memory_gib.map(|gib| format!("{gib} GiB memory")));
    needs.extend(task.requirements.disk_gib.map(|gib| format!("{gib} GiB disk")));
    style.paragraph(out, "  needs     ", &needs.join(", "));
}

fn order(out: &mut String, task: &PlannedTask, style: Style) {
    match Plan::blocks(task) {
        Ok(blocks) => {
            for block in blocks.iter().take(LISTED_BLOCKS) {
                let order: Vec<String> = block.order.iter().map(ToString::to_string).collect();
                style.paragraph(out, &format!("  block {:<4}", block.block), &order.join(", "));
            }
            let left = u64::try_from(blocks.len().saturating_sub(LISTED_BLOCKS)).unwrap_or(u64::MAX);
            if left > 0 {
                writeln!(out, "  and {}", counted(left, "more block")).expect("a String takes every write");
            }
        }
        Err(error) => style.paragraph(out, "  blocks    ", &error.to_string()),
    }
}

fn exclusions(out: &mut String, plan: &Plan, only: Option<&TaskId>, style: Style) {
    let wanted = plan.exclusions.iter().filter(|exclusion| only.is_none_or(|id| exclusion.task == *id));
    let items: Vec<_> = wanted.map(exclusion_view).collect();
    if !items.is_empty() {
        section(out, "Not run", style);
    }
    for item in items {
        style.paragraph(out, "  - ", &format!("{} ({}): {}", item.what, item.reason, item.message));
    }
}

fn problems(out: &mut String, plan: &Plan, style: Style) {
    if !plan.problems.is_empty() {
        section(out, "Could not be read", style);
    }
    for item in plan.problems.iter().map(problem_view) {
        style.paragraph(out, "  - ", &format!("{}: {}", item.place, item.message));
    }
}
