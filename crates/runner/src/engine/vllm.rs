//! vLLM: its command, and the variables that keep it offline and its caches private.

use std::collections::BTreeMap;

use super::Serve;

/// Returns the command template of `vllm serve`, by module so that the arm's own files are found first.
pub(super) fn command() -> Vec<String> {
    let arguments = [
        "{python}",
        "-m",
        "vllm.entrypoints.cli.main",
        "serve",
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

/// Returns the variables that vLLM needs: no usage report, no colour in logs, caches of its own, and no hub unless the
/// task allows the network.
pub(super) fn variables(serve: &Serve<'_>) -> BTreeMap<String, String> {
    let folder = |name: &str| serve.caches.join(name).to_string_lossy().into_owned();
    let mut variables: BTreeMap<String, String> = [
        ("VLLM_NO_USAGE_STATS", "1".to_owned()),
        // Without it vLLM finds its own address by a socket to an outside one.
        ("VLLM_HOST_IP", serve.host.to_owned()),
        ("DO_NOT_TRACK", "1".to_owned()),
        ("VLLM_LOGGING_COLOR", "0".to_owned()),
        ("NO_COLOR", "1".to_owned()),
        ("VLLM_CACHE_ROOT", folder("vllm")),
        ("VLLM_CONFIG_ROOT", folder("vllm-config")),
        ("TORCHINDUCTOR_CACHE_DIR", folder("torchinductor")),
        ("TRITON_CACHE_DIR", folder("triton")),
        ("HF_HOME", folder("huggingface")),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_owned(), value))
    .collect();
    if !serve.spec.allow_network {
        variables.insert("HF_HUB_OFFLINE".to_owned(), "1".to_owned());
        variables.insert("TRANSFORMERS_OFFLINE".to_owned(), "1".to_owned());
    }
    variables
}
