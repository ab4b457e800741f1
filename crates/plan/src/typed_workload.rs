//! The workload of a task, with the keys that each kind of prompt has.

use isobench_schema::environment::EngineKind;
use isobench_schema::workload::{Api, Probes, Prompts, TokenCounter, Workload, WorkloadKind};

use crate::defaults;
use crate::node::Node;
use crate::typed::Draft;
use crate::{typed_arrival, typed_inputs, typed_script};

/// Returns the workload, or `None` after noting what is wrong.
pub(crate) fn workload(draft: &mut Draft<'_>, engine: EngineKind) -> Option<Workload> {
    let kind = WorkloadKind::parse(draft.text("workload.kind")?)?;
    let arrival = typed_arrival::arrival(draft, kind);
    let max_in_flight = typed_arrival::max_in_flight(draft, arrival.as_ref());
    let prompts = prompts(draft);
    let script = typed_script::script(draft);
    if script.is_none() && typed_script::is_asked(draft) {
        return None;
    }
    // What a script sends before it measures, and whether it is right, is its own.
    let (warm_up, probes) = match script {
        Some(_) => (0, 0),
        None => (defaults::WARM_UP_REQUESTS, defaults::PROBES.count),
    };
    let extra = draft.root.at("workload.extra-body").map(Node::entries).unwrap_or_default();
    Some(Workload {
        kind,
        api: draft.text("workload.api").and_then(Api::parse).unwrap_or(defaults::API),
        requests: draft.whole("workload.requests")?,
        prompts: prompts?,
        output_tokens: draft.whole("workload.output-tokens")?,
        ignore_eos: draft.switch("workload.ignore-eos").unwrap_or(defaults::IGNORE_EOS),
        temperature: draft.number("workload.temperature").unwrap_or(defaults::TEMPERATURE),
        arrival: arrival?,
        max_in_flight,
        warm_up_requests: draft.whole("workload.warm-up-requests").unwrap_or(warm_up),
        probes: Probes {
            count: draft.whole("workload.probes.count").unwrap_or(probes),
            output_tokens: draft.whole("workload.probes.output-tokens").unwrap_or(defaults::PROBES.output_tokens),
        },
        counter: draft
            .text("workload.counter")
            .and_then(TokenCounter::parse)
            .unwrap_or_else(|| defaults::counter(engine)),
        extra_body: extra.iter().map(|(name, node)| (name.clone(), node.to_json())).collect(),
        script,
    })
}

fn prompts(draft: &mut Draft<'_>) -> Option<Prompts> {
    const PATH: &str = "workload.prompts";
    let Some(name) = draft.text("workload.prompts.kind") else {
        draft.missing("workload.prompts.kind");
        return None;
    };
    if name == "dataset" {
        only(draft, PATH, name, &["kind", "name", "file", "repository", "revision", "options"]);
        return typed_inputs::prompts(draft);
    }
    let input_tokens = draft.needed_whole("workload.prompts.input-tokens");
    if name == "words" {
        only(draft, PATH, name, &["kind", "input-tokens"]);
        return Some(Prompts::Words { input_tokens: input_tokens? });
    }
    only(draft, PATH, name, &["kind", "input-tokens", "vocabulary-size", "first-id"]);
    let vocabulary_size = draft.needed_whole("workload.prompts.vocabulary-size")?;
    let first_id = draft.whole("workload.prompts.first-id").unwrap_or(defaults::FIRST_TOKEN_ID);
    if first_id >= vocabulary_size {
        let message = format!(
            "`workload.prompts.first-id` is {first_id}, which leaves no token id below `vocabulary-size`, {vocabulary_size}"
        );
        draft.fault("workload.prompts.first-id", message);
    }
    Some(Prompts::TokenIds { input_tokens: input_tokens?, vocabulary_size, first_id })
}

/// Notes each key of a table that its kind has no use for: it would be a wish that nothing fulfils.
pub(crate) fn only(draft: &mut Draft<'_>, table: &str, kind: &str, keys: &[&str]) {
    let root = draft.root;
    for (key, _) in root.at(table).map(Node::entries).unwrap_or_default() {
        if !keys.contains(&key.as_str()) {
            let path = format!("{table}.{key}");
            draft.fault(&path, format!("`{path}` means nothing for kind `{kind}`"));
        }
    }
}
