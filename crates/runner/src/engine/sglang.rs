//! SGLang: its command, and the variables of its own.

use std::collections::BTreeMap;

use super::Serve;

/// Returns the command template of `sglang.launch_server`, by module so that the arm's own files are found first.
pub(super) fn command() -> Vec<String> {
    let arguments = [
        "{python}",
        "-m",
        "sglang.launch_server",
        "--model-path",
        "{model}",
        "--host",
        "{host}",
        "--port",
        "{port}",
        "--served-model-name",
        "{served-model-name}",
    ];
    arguments.into_iter().map(str::to_owned).collect()
}

/// Returns the variables that only SGLang needs.
pub(super) fn variables(serve: &Serve<'_>) -> BTreeMap<&'static str, String> {
    // FlashInfer compiles at run time, and a lock that a killed run left behind would stop every later one.
    [("FLASHINFER_WORKSPACE_BASE", serve.folder("flashinfer"))].into()
}
