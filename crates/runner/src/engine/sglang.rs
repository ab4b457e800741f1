//! SGLang: its command, and the variables that keep it offline and its caches private.

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

/// Returns the variables that SGLang needs: caches of its own, and no hub unless the task allows the network.
pub(super) fn variables(serve: &Serve<'_>) -> BTreeMap<String, String> {
    let folder = |name: &str| serve.caches.join(name).to_string_lossy().into_owned();
    let mut variables: BTreeMap<String, String> = [
        ("NO_COLOR", "1".to_owned()),
        ("TORCHINDUCTOR_CACHE_DIR", folder("torchinductor")),
        ("TRITON_CACHE_DIR", folder("triton")),
        // FlashInfer compiles at run time, and a lock that a killed run left behind would stop every later one.
        ("FLASHINFER_WORKSPACE_BASE", folder("flashinfer")),
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
