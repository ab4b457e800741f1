//! vLLM: its command, and the variables of its own.

use std::collections::BTreeMap;

use super::Serve;

/// Returns the command template of the OpenAI-compatible server, by module so that the arm's own files are found first.
///
/// Every revision from v0.1.0 on starts by this module; `vllm serve` and the package's command line came long after it.
pub(super) fn command() -> Vec<String> {
    let arguments = [
        "{python}",
        "-m",
        "vllm.entrypoints.openai.api_server",
        "--model",
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

/// Returns the variables that only vLLM needs: no usage report, and its own address.
pub(super) fn variables(serve: &Serve<'_>) -> BTreeMap<&'static str, String> {
    [
        ("VLLM_NO_USAGE_STATS", "1".to_owned()),
        // Without it vLLM finds its own address by a socket to an outside one.
        ("VLLM_HOST_IP", serve.host.to_owned()),
        ("DO_NOT_TRACK", "1".to_owned()),
        ("VLLM_LOGGING_COLOR", "0".to_owned()),
        ("VLLM_CACHE_ROOT", serve.folder("vllm")),
        ("VLLM_CONFIG_ROOT", serve.folder("vllm-config")),
    ]
    .into()
}
