//! `isobench runs`: lists the runs in a folder.

use isobench_schema::event::RunEnd;
use isobench_store::{RunEntry, RunSummary, list};
use serde::Serialize;

use super::Context;
use crate::args::RunsArgs;
use crate::exit::{CommandError, Exit, WithExit as _};

/// One run of the list. What can't be read is absent.
#[derive(Serialize)]
struct Row {
    folder: String,
    state: String,
    #[serde(flatten)]
    facts: Option<Facts>,
}

/// What is known of a run that can be read.
#[derive(Serialize)]
struct Facts {
    run: String,
    dataset: String,
    plan: String,
    tasks: usize,
    blocks_complete: u64,
    blocks_planned: u64,
    launches_measured: u64,
    launches_failed: u64,
}

/// Runs the command.
pub(crate) fn run(args: &RunsArgs, context: Context) -> Result<Exit, CommandError> {
    let rows: Vec<Row> = list(&args.folder).exit(Exit::Usage)?.into_iter().map(row).collect();
    if context.json {
        context.print_json(&rows)?;
        return Ok(Exit::Success);
    }
    if rows.is_empty() {
        context.terminal.status(&format!("there are no runs in `{}`", args.folder.display()));
    }
    let width = rows.iter().map(|row| row.folder.chars().count()).max().unwrap_or(0);
    for row in rows {
        let facts = row.facts.map_or_else(String::new, |facts| {
            let Facts { blocks_complete, blocks_planned, launches_measured, launches_failed, plan, .. } = facts;
            format!(
                "{blocks_complete}/{blocks_planned} blocks, {launches_measured} launches measured, \
                 {launches_failed} failed, plan {plan}, "
            )
        });
        context.terminal.data(&format!("{:width$}  {facts}{}\n", row.folder, row.state));
    }
    Ok(Exit::Success)
}

fn row(entry: RunEntry) -> Row {
    let folder = entry.dir.display().to_string();
    match entry.summary {
        Ok(summary) => Row { folder, state: state(&summary).to_owned(), facts: Some(facts(&summary)) },
        Err(error) => Row { folder, state: format!("unreadable: {error}"), facts: None },
    }
}

fn state(summary: &RunSummary) -> &'static str {
    match (summary.live, summary.end) {
        (true, _) => "under way",
        (false, Some(RunEnd::Finished)) => "finished",
        (false, Some(RunEnd::Interrupted)) => "interrupted; can be resumed",
        (false, Some(RunEnd::Stopped)) => "stopped by an error; can be resumed",
        (false, Some(RunEnd::BudgetUsed)) => "budget used up; can be resumed",
        (false, None) => "killed; can be resumed",
    }
}

fn facts(summary: &RunSummary) -> Facts {
    Facts {
        run: summary.run.to_string(),
        dataset: summary.dataset.clone(),
        plan: summary.plan.short().to_owned(),
        tasks: summary.tasks,
        blocks_complete: summary.blocks_complete,
        blocks_planned: summary.blocks_planned,
        launches_measured: summary.launches_measured,
        launches_failed: summary.launches_failed,
    }
}
