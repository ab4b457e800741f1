//! `isobench load`: the load client alone.
//!
//! The way of a load: [`server`] finds out what there is to load, [`asked`] what is sent to it, [`mod@carry`] sends it phase by
//! phase and reads the records as they come, and [`outputs`] writes the result in every form that was asked for.

mod against;
mod asked;
mod carry;
mod dataset;
mod identity;
mod outputs;
mod probe;
mod recording;
mod server;
mod sweep;

use std::time::{Duration, Instant};

use isobench_loadgen::cancel::StopCause;
use isobench_schema::load_result::{LoadResult, Validity};

use super::Context;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::interrupt;
use crate::load_args::LoadArgs;
use asked::Asked;
use carry::{Carrier, Limits};
use server::Server;
use tokio::runtime::Runtime;

pub(crate) use outputs::writable;

/// Runs the command.
///
/// # Errors
/// Returns what in the arguments makes no sense, what can't be reached, and what can't be written.
pub(crate) fn run(args: &LoadArgs, context: Context) -> Result<Exit, CommandError> {
    outputs::check(args, context)?;
    let interrupted = interrupt::flag().exit(Exit::Machine)?;
    let deadline = Instant::now() + Duration::from_secs_f64(args.measuring.deadline);
    let limits = Limits::new(interrupted, deadline);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().exit(Exit::Machine)?;
    let end = carry(args, &limits, &runtime, context);
    // A question that nobody waits for any more isn't waited for here either.
    runtime.shutdown_background();
    end
}

fn carry(args: &LoadArgs, limits: &Limits, runtime: &Runtime, context: Context) -> Result<Exit, CommandError> {
    if let Some(urls) = &args.server.against {
        return against::run(args, urls, limits, runtime, context);
    }
    let url = args.url.as_deref().unwrap_or_default();
    let swept = sweep::asked(args)?;
    let server = Server::find(args, url, limits, runtime)?;
    let asked = Asked::of(args, &server, limits, runtime)?;
    if args.dry_run {
        return asked.show(&server, context);
    }
    if let Some(by) = swept {
        return sweep::run(args, by, &server, &asked, limits, runtime, context);
    }
    let records = args.output.records.as_deref();
    let carrier = Carrier::new(args, &server, &asked, limits, context, records)?;
    carrier.say_left_out();
    let report = carrier.carry(runtime)?;
    outputs::write(args, &report, context)?;
    Ok(exit(&report.result, limits.cause()))
}

/// Returns how the command ends: a load whose numbers may not be used is no success.
fn exit(result: &LoadResult, stopped: Option<StopCause>) -> Exit {
    match (stopped, result.validity) {
        (Some(StopCause::Interrupted), _) => Exit::Interrupted,
        (None, Validity::Valid) => Exit::Success,
        (Some(StopCause::WorkloadTimeout | StopCause::ServerDied) | None, _) => Exit::SomeFailed,
    }
}
