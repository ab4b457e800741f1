//! One request to a server before it is loaded, which shows what it answers and how its tokens can be counted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use isobench_loadgen::client::{Client, LoadOptions};
use isobench_loadgen::clock::Clock;
use isobench_loadgen::get::served;
use isobench_loadgen::schedule::{Resources, Schedule};
use isobench_schema::record::{Phase, RequestRecord};
use isobench_schema::workload::{Api, Arrival, Probes, Prompts, TokenCounter, Workload, WorkloadKind};
use tokio::runtime::Runtime;

use super::carry::Limits;
use super::server::{DISCOVERY, Server};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::load_defaults::Probe;

/// How long the answer may take.
const PATIENCE: Duration = Duration::from_secs(120);
/// Lengths of the request, in words and tokens.
const INPUT_WORDS: u32 = 8;
const OUTPUT_TOKENS: u32 = 8;
/// What a server says to a path or a field that it doesn't know.
const UNKNOWN_PATH: [u16; 2] = [404, 405];

/// The most models that are named.
const LISTED: usize = 5;

/// What the request showed.
pub(super) struct Probed {
    /// The first interface that answered.
    pub(super) api: Api,
    pub(super) probe: Probe,
}

/// Asks the interfaces of `apis`, one after the other, until one answers.
///
/// # Errors
/// Returns the most telling answer if none is one.
pub(super) fn probe(
    server: &Server,
    apis: &[Api],
    timeout: Duration,
    limits: &Limits,
    runtime: &Runtime,
) -> Result<Probed, CommandError> {
    let asking = Asking { server, timeout: timeout.min(PATIENCE), limits, runtime };
    let mut said: Vec<(Option<u16>, String)> = Vec::new();
    for &api in apis {
        // Servers that don't know the field for token ids may refuse it.
        for counter in [TokenCounter::TokenIds, TokenCounter::Usage, TokenCounter::Whitespace] {
            let record = asking.ask(api, counter)?;
            if is_answer(&record) {
                return Ok(Probed { api, probe: seen(server, &record) });
            }
            let told = record.failure.map_or_else(String::new, |failure| server.masked(&failure.message));
            said.push((record.status, told));
            match record.status {
                // The same would be said to every other request.
                None | Some(200 | 401 | 403) => return Err(asking.unanswered(&said)),
                Some(status) if UNKNOWN_PATH.contains(&status) => break,
                Some(_) => {}
            }
        }
    }
    Err(asking.unanswered(&said))
}

/// Returns the answer that tells most: one that names the model, else the first that isn't only of an unknown path, else the
/// first. What was said last may be of an interface that the server doesn't have.
fn most_telling<'s>(said: &'s [(Option<u16>, String)], model: &str) -> &'s str {
    let names_model = said.iter().find(|(_, told)| told.contains(model));
    let is_known = |(status, _): &&(Option<u16>, String)| status.is_none_or(|status| !UNKNOWN_PATH.contains(&status));
    names_model.or_else(|| said.iter().find(is_known)).or_else(|| said.first()).map_or("", |(_, told)| told.as_str())
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
    /// Returns the error that no request was answered, and what the server serves if it serves another model.
    fn unanswered(&self, said: &[(Option<u16>, String)]) -> CommandError {
        let (url, model) = (&self.server.url, self.server.target.model());
        let message = format!("`{url}` answers no request for the model `{model}`: {}", most_telling(said, model));
        let list = self.limits.over(served(self.server.target.endpoint(), DISCOVERY.min(self.timeout)));
        let listed = self.runtime.block_on(list).ok().and_then(Result::ok).unwrap_or_default();
        let names: Vec<String> = listed.iter().take(LISTED).map(|served| format!("`{}`", served.model)).collect();
        let hint = if names.is_empty() || listed.iter().any(|served| served.model == model) {
            "check the URL, `--model`, `--api` and the key in `--api-key-env`".to_owned()
        } else {
            format!("the server lists {}: give one of them with `--model`, or leave it out", names.join(", "))
        };
        CommandError::new(Exit::Usage, message).hint(hint)
    }

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
            script: None,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_about_the_model_tells_more_than_one_about_a_path() {
        let said = |all: &[(u16, &str)]| {
            all.iter().map(|(status, told)| (Some(*status), (*told).to_owned())).collect::<Vec<_>>()
        };
        let check = |all: &[(u16, &str)], expected: &str| assert_eq!(most_telling(&said(all), "nosuch"), expected);
        check(
            &[(404, "The model `nosuch` does not exist"), (404, "no"), (404, "none")],
            "The model `nosuch` does not exist",
        );
        check(&[(404, "no"), (400, "a field is unknown"), (404, "none")], "a field is unknown");
        check(&[(404, "no"), (405, "none")], "no");
        check(&[], "");
    }
}
