//! The benchmark script of a task, where one measures instead of isobench's own client.

use isobench_schema::script::{Script, ScriptOf};
use isobench_schema::tool::Tool;

use crate::defaults;
use crate::typed::Draft;

const PATH: &str = "workload.script";

/// Returns whether the task has a script.
pub(crate) fn is_asked(draft: &Draft<'_>) -> bool {
    draft.root.at(PATH).is_some()
}

/// Returns the script, or `None` after noting what is missing; also `None` where none is asked for.
pub(crate) fn script(draft: &mut Draft<'_>) -> Option<Script> {
    if !is_asked(draft) {
        return None;
    }
    if draft.whole("workload.probes.count").is_some_and(|count| count > 0) {
        draft.fault(
            "workload.probes.count",
            "`workload.probes.count` must be 0 beside `workload.script`, which sends no probes",
        );
    }
    let Some(tool) = draft.text("workload.script.tool").and_then(Tool::parse) else {
        draft.missing("workload.script.tool");
        return None;
    };
    let usual = || Script::usual_path(tool).map(str::to_owned);
    let arguments = draft.list("workload.script.arguments");
    Some(Script {
        tool,
        path: draft.text("workload.script.path").map(str::to_owned).or_else(usual)?,
        of: draft.text("workload.script.of").and_then(ScriptOf::parse).unwrap_or(ScriptOf::Baseline),
        commit: None,
        arguments,
        output_json: draft.switch("workload.script.output-json").unwrap_or(defaults::SCRIPT_OUTPUT_JSON),
    })
}
