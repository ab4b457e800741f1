//! What isobench's own client can't do yet for a task that could run otherwise.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use isobench_schema::task::Task;
use isobench_schema::workload::Prompts;

/// When vLLM's server began to send token ids on request (commit 24f4d1a224, #22587).
const TOKEN_IDS_SINCE: &str = "2025-08-19T16:48:31Z";

/// Returns why the client can't load a task, if it can't.
pub(super) fn lacks(task: &Task, baseline: Option<&Moment>) -> Option<String> {
    if let Prompts::Dataset { name, .. } = &task.workload.prompts {
        return Some(format!(
            "the prompts are those of dataset `{name}`, which the client draws only with the model's tokenizer, and a run isn't given one yet"
        ));
    }
    let sends_ids = match task.engine {
        EngineKind::Vllm => baseline.is_some_and(|moment| moment.as_str() >= TOKEN_IDS_SINCE),
        EngineKind::Sglang => false,
        EngineKind::Generic => true,
    };
    (!sends_ids).then(|| {
        "the server doesn't send token ids at the baseline, and without them the client counts by the model's tokenizer, which a run isn't given yet"
            .to_owned()
    })
}
