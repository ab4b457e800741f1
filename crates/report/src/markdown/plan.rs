//! A plan as a Markdown page: how far the tasks come, why, what they cost, and one row for each.

use isobench_schema::assessment::{Assessment, PlannedFor};
use isobench_schema::environment::Rung;
use isobench_schema::plan::Plan;

use super::{code, dash, escape, push, sentence, table};
use crate::funnel::{self, Costs, Funnel, FunnelRow, lowest_rung, some_of};
use crate::noise;
use crate::number::{self, counted, duration};
use crate::text::clean;
use crate::view::{exclusion_view, problem_view, workload};
use crate::words::TaskStandingWord;

/// How many tasks a reason names.
const NAMED: usize = 8;

/// How many pairs that share no build are named.
const LISTED_PAIRS: usize = 40;

/// Returns the plan as a Markdown page.
pub fn plan(plan: &Plan) -> String {
    let mut out = format!("# Plan of {}\n\n", escape(&clean(&plan.dataset)));
    let number = |count: usize| counted(u64::try_from(count).unwrap_or(u64::MAX), "task");
    let mut facts = if plan.assessments.is_empty() {
        vec![number(plan.tasks.len())]
    } else {
        vec![
            format!("{} assessed", number(plan.assessments.len())),
            format!("{} planned to run here", plan.tasks.len()),
        ]
    };
    if plan.assessments.is_empty() || !plan.tasks.is_empty() {
        facts.push(format!("about {}", duration(plan.estimate_s())));
    }
    facts.extend([format!("made by {}", escape(&clean(&plan.planner))), format!("seed {}", plan.seed)]);
    facts.extend(plan.planned_for.as_ref().map(|devices| escape(&crate::view::devices(devices))));
    push(&mut out, &facts.join(" · "));
    if plan.assessments.is_empty() {
        planned(&mut out, plan);
    } else {
        out.push_str(&funnel(&plan.assessments, plan.planned_for.as_ref()));
        push(&mut out, "## Tasks");
        let head = ["task", "standing", "devices", "environment", "device time", "subject"];
        table(&mut out, &head, plan.assessments.iter().map(task_row));
    }
    if !plan.exclusions.is_empty() {
        push(&mut out, "## Not run");
        let row =
            |item: crate::view::ExclusionView| vec![code(&item.what), item.reason.to_owned(), sentence(&item.message)];
        table(&mut out, &["what", "reason", "message"], plan.exclusions.iter().map(exclusion_view).map(row));
    }
    if !plan.problems.is_empty() {
        push(&mut out, "## Could not be read");
        let row = |item: crate::view::ProblemView| vec![escape(&item.place), sentence(&item.message)];
        table(&mut out, &["place", "message"], plan.problems.iter().map(problem_view).map(row));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn planned(out: &mut String, plan: &Plan) {
    let row = |task: &isobench_schema::plan::PlannedTask| {
        let arms: Vec<String> = task.arms.iter().map(|arm| code(&arm.arm.to_string())).collect();
        vec![
            code(&clean(task.id.as_str())),
            arms.join(", "),
            task.design.blocks().to_string(),
            duration(task.estimate_s.get()),
            escape(&workload(&task.workload, &task.server.model)),
        ]
    };
    table(out, &["task", "arms", "blocks", "time", "workload"], plan.tasks.iter().map(row));
    let expected = plan.tasks.iter().filter_map(|task| Some((task, noise::forecast(task)?)));
    let row = |(task, text): (&isobench_schema::plan::PlannedTask, noise::ForecastText)| {
        let lines = text.lines.into_iter().chain(text.warning.map(|warning| format!("! {warning}")));
        vec![code(&clean(task.id.as_str())), sentence(&lines.collect::<Vec<_>>().join("; "))]
    };
    let mut rows = expected.map(row).peekable();
    if rows.peek().is_some() {
        push(out, "## What is expected");
        table(out, &["task", "forecast"], rows);
    }
}

fn task_row(item: &Assessment) -> Vec<String> {
    let standing = TaskStandingWord::of(item.standing);
    let devices = item.need.as_ref().map(|need| need.devices.map_or_else(|| "none fit".to_owned(), |n| n.to_string()));
    vec![
        code(&clean(item.task.as_str())),
        format!("{} {}", standing.symbol, standing.title),
        devices.unwrap_or_else(dash),
        lowest_rung(item).map_or("–", Rung::as_str).to_owned(),
        item.cost.as_ref().map_or_else(dash, |cost| duration(cost.device_s)),
        item.subject.as_ref().map_or_else(dash, |subject| escape(&clean(subject))),
    ]
}

/// Returns how far some tasks come, why, what has to be built and what it costs, as Markdown.
pub fn funnel(assessments: &[Assessment], planned_for: Option<&PlannedFor>) -> String {
    let funnel = funnel::funnel(assessments, planned_for);
    let mut out = String::new();
    push(&mut out, &format!("## How far {} come", counted(u64::try_from(funnel.tasks).unwrap_or(u64::MAX), "task")));
    table(&mut out, &["standing", "tasks", "share", "reasons"], funnel.rows.iter().map(standing_row));
    builds(&mut out, &funnel);
    costs(&mut out, &funnel.costs);
    if !funnel.openings.is_empty() {
        push(&mut out, "### What would open more");
        let items: Vec<String> = funnel.openings.iter().map(|opening| format!("- {}", sentence(opening))).collect();
        push(&mut out, &items.join("\n"));
    }
    out
}

fn standing_row(row: &FunnelRow) -> Vec<String> {
    let reason = |group: &funnel::ReasonGroup| {
        format!("{} × {}: {}", group.tasks.len(), sentence(&group.reason), escape(&some_of(&group.tasks, NAMED)))
    };
    let further = row.further.iter().map(|group| format!("also {}", reason(group)));
    vec![
        format!("{} {}", row.standing.symbol, row.standing.title),
        row.count.to_string(),
        row.share.clone(),
        row.reasons.iter().map(reason).chain(further).collect::<Vec<_>>().join("<br>"),
    ]
}

fn builds(out: &mut String, funnel: &Funnel) {
    let Some(builds) = &funnel.builds else { return };
    push(out, "### Native builds");
    push(out, &format!("{}.", builds.sentence()));
    if !builds.apart.is_empty() {
        push(out, &format!("Two builds are needed for {}.", escape(&some_of(&builds.apart, LISTED_PAIRS))));
    }
    if !builds.unknown.is_empty() {
        push(out, &format!("Not known for {}.", escape(&some_of(&builds.unknown, LISTED_PAIRS))));
    }
}

fn costs(out: &mut String, costs: &Costs) {
    if costs.total.tasks == 0 {
        return;
    }
    push(out, "### Cost of what can run");
    let is_priced = costs.total.builds.known > 0;
    let cells = |devices: String, environment: &str, sum: &funnel::Sum| {
        let mut cells = vec![devices, environment.to_owned(), sum.tasks.to_string(), duration(sum.prepare_s)];
        cells.extend(is_priced.then(|| sum.builds.text()));
        cells.extend([number::hours(sum.device_hours), sum.devices.text()]);
        cells
    };
    let lines = costs.lines.iter();
    let lines = lines.map(|line| cells(line.devices.to_string(), line.rung.map_or("–", Rung::as_str), &line.sum));
    let mut head = vec!["devices", "environment", "tasks", "preparing", "its price", "device-hours", "their price"];
    head.retain(|title| is_priced || *title != "its price");
    table(out, &head, lines.chain([cells("all".to_owned(), "–", &costs.total)]));
    if costs.without > 0 {
        let tasks = counted(u64::try_from(costs.without).unwrap_or(u64::MAX), "more task");
        push(out, &format!("And {tasks} whose cost isn't known."));
    }
    if !costs.assumptions.is_empty() {
        push(out, &format!("Assumed: {}.", escape(&costs.assumptions.join("; "))));
    }
    push(out, &format!("Each {}.", sentence(funnel::EACH_TASK)));
}
