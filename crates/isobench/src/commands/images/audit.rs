//! `isobench images audit`: which images of a dataset's commits a repository has.

use std::sync::atomic::AtomicBool;

use isobench_plan::choose::Choice;
use isobench_plan::images::{AuditAsked, audit, wanted};
use isobench_plan::knowledge::Knowledge;
use isobench_report::{markdown, terminal as report};
use isobench_runner::inputs::{AskHub, Hub, HubSettings};
use isobench_schema::format;
use isobench_schema::ids::Moment;
use isobench_schema::images::ImageAudit;
use isobench_store::write_named;

use super::ask::{self, Depth};
use crate::commands::{Context, cache_folder, plan, write_error};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::facts::{self, Clones, Where};
use crate::images_args::AuditArgs;

/// Runs the command. It succeeds if every task has both its images.
pub(super) fn run(args: &AuditArgs, context: Context) -> Result<Exit, CommandError> {
    let repository = ask::repository(&args.images)?;
    let naming = ask::naming(&args.naming)?;
    let dataset = plan::open(&args.dataset, &[])?;
    if dataset.commit_tasks.is_empty() {
        let message = format!("`{}` names no commits, so that no images are wanted", args.dataset.display());
        return Err(CommandError::new(Exit::NothingToRun, message)
            .hint("name a dataset of commits, such as `examples/iso-bench/vllm-96.jsonl`"));
    }
    let asking = ask::open(repository, &args.registry, context)?;
    let clones = Clones::parse(&args.clones)?;
    // Images are asked for by commits alone: no hub is.
    let hub = Hub::new(HubSettings {
        ask: AskHub::Never("no model is needed".to_owned()),
        ..HubSettings::from_variables(&|_| None)
    });
    let place = Where {
        cache: &cache_folder(args.cache.as_ref())?,
        hub: &hub,
        ask_for_commits: false,
        clones: &clones,
        models: &[],
        terminal: context.terminal,
        cancel: &AtomicBool::new(false),
    };
    let facts = facts::gather(&dataset, &Choice::default(), place)?;
    let wanted = wanted(&dataset.commit_tasks, &facts, Knowledge::embedded(), &naming);
    context.terminal.status(&format!("asking {} for the images of {}", asking.registry.repository(), dataset.name));
    let depth = if args.without_sizes { Depth::Existence } else { Depth::Layers };
    let answers = ask::answers(&asking, &wanted, depth, context)?;
    let name = asking.registry.repository().to_string();
    let platform = asking.platform.to_string();
    let asked =
        AuditAsked { dataset: &dataset.name, repository: &name, platform: &platform, asked: now()?, naming: &naming };
    let audit = audit(&asked, &wanted, &answers);
    show(&audit, args, context)?;
    Ok(if audit.counts.both == audit.counts.tasks { Exit::Success } else { Exit::SomeFailed })
}

fn now() -> Result<Moment, CommandError> {
    let now = jiff::Timestamp::now().round(jiff::Unit::Second).exit(Exit::Machine)?;
    Moment::new(now.to_string()).exit(Exit::Machine)
}

fn show(audit: &ImageAudit, args: &AuditArgs, context: Context) -> Result<(), CommandError> {
    if let Some(out) = &args.out {
        write_named(out, markdown::image_audit(audit).as_bytes()).map_err(write_error)?;
        context.terminal.status(&format!("wrote {}", out.display()));
    }
    if context.json {
        context.terminal.data(&format::to_pretty(audit).exit(Exit::Error)?);
    } else {
        context.terminal.data(&report::image_audit(audit, crate::commands::report::style(context)));
    }
    Ok(())
}
