//! One request to a server before it is loaded, which shows what it answers and how its tokens can be counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use isobench_loadgen::client::{Client, LoadOptions};
use isobench_loadgen::clock::Clock;
use isobench_loadgen::schedule::{Resources, Schedule};
use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};
use tokio::runtime::Runtime;

use super::carry::Limits;
use super::server::Server;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::load_defaults::Probe;

/// How long the answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Lengths of the request, in words and tokens.
const INPUT_WORDS: u32 = 8;
const OUTPUT_TOKENS: u32 = 8;
/// What a server says to a path or a field that it doesn't know.
const UNKNOWN_PATH: [u16; 2] = [404, 405];

/// What the request showed.
pub(super) struct Probed {
    /// The first interface that answered.
    pub(super) api: Api,
    pub(super) probe: Probe,
}

/// Asks the interfaces of `apis`, one after the other, until one answers.
///
/// # Errors
/// Returns what the last one said if none answers.
pub(super) fn probe(
    server: &Server,
    apis: &[Api],
    timeout: Duration,
    limits: &Limits,
    runtime: &Runtime,
) -> Result<Probed, CommandError> {
    let asking = Asking { server, timeout: timeout.min(PATIENCE), limits, runtime };
    let mut said = String::new();
    for &api in apis {
        // Servers that don't know the field for token ids may refuse it.
        for counter in [TokenCounter::TokenIds, TokenCounter::Usage, TokenCounter::Whitespace] {
            let record = asking.ask(api, counter)?;
            if is_answer(&record) {
                return Ok(Probed { api, probe: seen(server, &record) });
            }
            said = record.failure.map_or_else(String::new, |failure| server.masked(&failure.message));
            match record.status {
                // The same would be said to every other request.
                None | Some(200 | 401 | 403) => return Err(unanswered(server, &said)),
                Some(status) if UNKNOWN_PATH.contains(&status) => break,
                Some(_) => {}
            }
        }
    }
    Err(unanswered(server, &said))
}

fn unanswered(server: &Server, said: &str) -> CommandError {
    let message = format!("`{}` answers no request for the model `{}`: {said}", server.url, server.target.model());
    CommandError::new(Exit::Usage, message).hint("check the URL, `--model`, `--api` and the key in `--api-key-env`")
}

/// Returns whether the server did what was asked, whether its tokens could be counted or not.
fn is_answer(record: &RequestRecord) -> bool {
    let has_content = !record.chunk_ns.is_empty() || record.usage.is_some();
    record.failure.is_none() || (record.status == Some(200) && record.finish_reason.is_some() && has_content)
}

fn seen(server: &Server, record: &RequestRecord) -> Probe {
    let duration = Duration::from_nanos(record.end_ns.saturating_sub(record.intended_ns));
    Probe {
        max_model_len: server.max_model_len,
        has_token_ids: record.token_ids.is_some(),
        has_usage: record.usage.is_some(),
        has_tokenizer: false,
        request_s: duration.as_secs_f64(),
        output_tokens: OUTPUT_TOKENS,
    }
}

/// What every request of a probe is asked with.
struct Asking<'a> {
    server: &'a Server,
    timeout: Duration,
    limits: &'a Limits,
    runtime: &'a Runtime,
}

impl Asking<'_> {
    fn ask(&self, api: Api, counter: TokenCounter) -> Result<RequestRecord, CommandError> {
        let Self { server, timeout, limits, runtime } = self;
        let workload = Workload {
            kind: WorkloadKind::Serving,
            api,
            requests: 1,
            prompts: Prompts::Words { input_tokens: INPUT_WORDS },
            output_tokens: OUTPUT_TOKENS,
            ignore_eos: false,
            temperature: 0.0,
            arrival: Arrival::closed(1),
            max_in_flight: None,
            warm_up_requests: 0,
            probes: Probes { count: 0, output_tokens: 1 },
            counter,
            extra_body: BTreeMap::new(),
        };
        let schedule = Arc::new(Schedule::new(&workload, 1, Phase::First, &Resources::default()).exit(Exit::Error)?);
        let options = LoadOptions::new(*timeout, *timeout);
        let client = Client::new(server.target.clone(), options, Clock::start(), limits.stop.clone());
        let mut answered = None;
        let sent = client.run_phase(&schedule, |record| {
            answered = Some(record);
            Ok(())
        });
        runtime.block_on(limits.over(sent))?.exit(Exit::Machine)?;
        answered.ok_or_else(|| CommandError::new(Exit::Error, "the first request has no record"))
    }
}
