//! What a load is, in words before it is sent and as a digest that tells loads apart.

use std::time::Duration;

use isobench_loadgen::schedule::Schedules;
use isobench_schema::ids::Digest;
use isobench_schema::record::Phase;
use isobench_schema::workload::{Prompts, TokenCounter, Workload};

use super::asked::{Asked, FEWEST_REQUESTS};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::load_args::values::WarmUp as WarmUpArg;

/// Says what a phase sends at most: requests, a time, or both where both were asked for.
pub(super) fn announced(asked: &Asked, phase: Phase, requests: usize) -> String {
    let within = |duration: Duration| format!("{} s", duration.as_secs_f64());
    match (phase, asked.warm_up, asked.duration) {
        (Phase::Measure, _, Some(duration)) if asked.is_by_time => format!("requests for {}", within(duration)),
        (Phase::Measure, _, Some(duration)) => format!("{requests} requests, or those of {},", within(duration)),
        (Phase::WarmUp, WarmUpArg::Seconds(seconds), _) => {
            format!("requests for {}", within(Duration::from_secs_f64(seconds)))
        }
        (Phase::WarmUp, WarmUpArg::Steady, _) => "requests until it is steady".to_owned(),
        (_, _, _) if requests == 1 => "1 request".to_owned(),
        (_, _, _) => format!("{requests} requests"),
    }
}

/// Returns the digest by which loads are told apart. Where a time alone bounds a load, the number of its requests is no part of
/// it: that was reckoned from how fast one was answered. Then it is of everything that was asked for and of the first requests.
///
/// # Errors
/// Returns an error if what was prepared, or the tokenizer's file, can't be read.
pub(super) fn identity(asked: &Asked, schedules: &Schedules) -> Result<Digest, CommandError> {
    if !asked.is_by_time {
        return Ok(schedules.digest());
    }
    let workload = Workload { requests: 0, warm_up_requests: 0, ..asked.workload.clone() };
    let first =
        schedules.digest_of_first(usize::try_from(FEWEST_REQUESTS).unwrap_or(usize::MAX)).exit(Exit::Machine)?;
    let is_made_by_it =
        asked.workload.counter == TokenCounter::Tokenizer || matches!(asked.workload.prompts, Prompts::Dataset { .. });
    let tokenizer = asked.resources.tokenizer.as_ref().filter(|_| is_made_by_it);
    let tokenizer = tokenizer.map(|tokenizer| tokenizer.digest().cloned()).transpose().exit(Exit::Error)?;
    let all = serde_json::json!({
        "first": first, "workload": workload, "seed": asked.seed, "tokenizer": tokenizer,
        "duration_s": asked.duration.map(|duration| duration.as_secs_f64()), "warm_up": format!("{:?}", asked.warm_up),
    });
    Digest::of_json(&all).exit(Exit::Error)
}
