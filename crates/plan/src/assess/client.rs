//! What isobench's own client lacks for a task that could run otherwise: a tokenizer, or a dataset's file.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use isobench_schema::input::TaskInputs;
use isobench_schema::workload::Prompts;

use crate::inputs;

/// When vLLM's server began to send token ids on request (commit 24f4d1a224, #22587).
const TOKEN_IDS_SINCE: &str = "2025-08-19T16:48:31Z";

/// Where it can be looked for.
const LOOK: &str = ": name a folder of models with `--models DIR`, or let the hub be asked with `--hub`";

/// Returns why the client can't load a task, if it can't.
pub(super) fn lacks(
    engine: EngineKind,
    prompts: &Prompts,
    found: &TaskInputs,
    baseline: Option<&Moment>,
) -> Option<String> {
    let has_tokenizer = found.tokenizer.is_some();
    if let Prompts::Dataset { name, .. } = prompts {
        if !inputs::is_drawn(name) {
            return Some(format!("the prompts are those of dataset `{name}`, which the client doesn't draw"));
        }
        if !has_tokenizer {
            return Some(format!(
                "the prompts are those of dataset `{name}`, which the client draws only with the model's tokenizer, and none was found{LOOK}"
            ));
        }
        if inputs::needs_file(name) && found.dataset.is_none() {
            return Some(format!("the prompts are those of dataset `{name}`, whose file was not found{LOOK}"));
        }
    }
    (!sends_ids(engine, baseline) && !has_tokenizer).then(|| {
        format!(
            "the server doesn't send token ids at the baseline, and without them the client counts by the model's tokenizer, and none was found{LOOK}"
        )
    })
}

/// Returns whether an engine's server sends token ids at a moment.
pub(super) fn sends_ids(engine: EngineKind, baseline: Option<&Moment>) -> bool {
    match engine {
        EngineKind::Vllm => baseline.is_some_and(|moment| moment.as_str() >= TOKEN_IDS_SINCE),
        EngineKind::Sglang => false,
        EngineKind::Generic => true,
    }
}
