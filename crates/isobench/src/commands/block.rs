//! `isobench block`: runs one block anywhere, and leaves a folder that the run's coordinator takes in.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use isobench_runner::block::{self, BlockContext};
use isobench_runner::environment::KnownTrees;
use isobench_runner::host::removal::remove_or_evict;
use isobench_runner::sink::{Sink, SinkError};
use isobench_schema::block::{BlockComplete, BlockSpec};
use isobench_schema::event::{BlockEnd, EventKind, LaunchStage};
use isobench_schema::format;
use isobench_schema::ids::LaunchId;
use isobench_schema::outcome::{Artifact, LaunchRecord};
use isobench_store::BlockStore;

use super::Context;
use crate::args::BlockArgs;
use crate::coordinator::{block_error, marker};
use crate::evidence::{self, Digests};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::interrupt;
use crate::terminal::Terminal;

/// Runs the command.
pub(crate) fn run(args: &BlockArgs, context: Context) -> Result<Exit, CommandError> {
    let bytes = fs::read(&args.spec)
        .map_err(|error| CommandError::new(Exit::Usage, format!("cannot read `{}`: {error}", args.spec.display())))?;
    let spec: BlockSpec = format::from_slice(&bytes).exit(Exit::Usage)?;
    fs::create_dir_all(&args.out).exit(Exit::Usage)?;
    let mut store = BlockStore::create(&args.out, &spec).exit(Exit::Usage)?;
    if store.complete().exit(Exit::Error)?.is_some() {
        context.terminal.status(&format!("`{}` is complete already", spec.id));
        return Ok(Exit::Success);
    }
    let machine = super::machine(super::cache_folder(args.cache.as_ref())?, &args.disk)?;
    let cancel = interrupt::flag().exit(Exit::Machine)?;
    if !store.has_begun() {
        let order = spec.launches.iter().map(|launch| launch.arm.clone()).collect();
        store.append(EventKind::BlockStarted { id: spec.id.clone(), order }).exit(Exit::Error)?;
    }
    let marker = marker(&args.out);
    crate::coordinator::end_orphans(&marker)?;
    let scratch = store.work().exit(Exit::Error)?.join("scratch");
    let block = BlockContext {
        program: &machine.program,
        cache: &machine.cache,
        trees: &KnownTrees::default(),
        hub: &machine.hub,
        scratch: &scratch,
        marker: &marker,
        scheduling: machine.scheduling,
        leases: &machine.leases,
        host: &machine.host,
        later: &BTreeSet::new(),
        cancel: &cancel,
    };
    let mut sink = BlockSink { store: &mut store, terminal: context.terminal };
    let result = block::run(&spec, &block, &mut sink).map_err(block_error)?;
    if result.interrupted {
        context.terminal.error(&format!("interrupted; the same command runs `{}` again", spec.id));
        return Ok(Exit::Interrupted);
    }
    let mut digests = Digests::default();
    let (end, charged) = evidence::end_of_block(store.artifacts(), &spec, &result.launches, &mut digests)?;
    let complete = matches!(end, BlockEnd::Complete);
    store.finish(&BlockComplete { id: spec.id.clone(), end, launches: result.launches, charged }).exit(Exit::Error)?;
    // What can't be removed is out of the way, and no part of what is taken in.
    remove_or_evict(&scratch, &store.work().exit(Exit::Error)?).exit(Exit::Error)?;
    context.terminal.status(&format!("`{}` is done; its folder is {}", spec.id, path(&args.out)));
    Ok(if complete { Exit::Success } else { Exit::SomeFailed })
}

fn path(folder: &Path) -> String {
    folder.display().to_string()
}

struct BlockSink<'a> {
    store: &'a mut BlockStore,
    terminal: Terminal,
}

fn failed<E: std::error::Error + Send + Sync + 'static>(what: String) -> impl FnOnce(E) -> SinkError {
    move |error| SinkError { what, disk_full: isobench_store::is_disk_full(&error), source: Box::new(error) }
}

impl Sink for BlockSink<'_> {
    fn stage(&mut self, launch: &LaunchId, stage: LaunchStage) -> Result<(), SinkError> {
        let kind = EventKind::LaunchStage { launch: launch.clone(), stage };
        let event = self.store.append(kind).map_err(failed(format!("the stage of `{launch}`")))?;
        if let Some(line) = isobench_report::live::plain_line(&event) {
            self.terminal.status(&line);
        }
        Ok(())
    }

    fn keep(&mut self, path: &Path) -> Result<Artifact, SinkError> {
        self.store.put_file(path).map_err(failed(format!("`{}`", path.display())))
    }

    fn launched(&mut self, _record: &LaunchRecord) -> Result<(), SinkError> {
        // A block that is cut short here runs again whole; only its coordinator keeps records of attempts.
        Ok(())
    }

    fn note(&mut self, text: &str) {
        self.terminal.status(text);
    }
}
