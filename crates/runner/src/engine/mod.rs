//! What differs between engines: how each is started, and where it keeps its caches.

mod sglang;
mod vllm;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use isobench_schema::environment::EngineKind;
use isobench_schema::task::{OptionValue, ServerSpec};

/// Where and how an engine is to be served.
#[derive(Debug, Clone, Copy)]
pub struct Serve<'a> {
    /// The task's wishes.
    pub spec: &'a ServerSpec,
    /// The arm's files.
    pub tree: &'a Path,
    /// The Python interpreter, if the engine needs one.
    pub python: Option<&'a Path>,
    /// The address to listen on.
    pub host: &'a str,
    /// The port to listen on.
    pub port: u16,
    /// A private folder for everything that the engine caches.
    pub caches: &'a Path,
    /// The folders of repositories of a hub, by the names that the task gives them.
    pub folders: &'a BTreeMap<String, PathBuf>,
}

impl Serve<'_> {
    /// Returns a folder of its own for one kind of cache.
    fn folder(&self, name: &str) -> String {
        self.caches.join(name).to_string_lossy().into_owned()
    }

    /// Returns the folder of a repository that was fetched, else the name itself.
    pub(crate) fn place(&self, name: &str) -> String {
        self.folders.get(name).map_or_else(|| name.to_owned(), |folder| folder.to_string_lossy().into_owned())
    }
}

/// A command that can't be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServeCommandError {
    /// The command has a placeholder that has no value here.
    #[error("`{{{name}}}` in the server's command has no value: {why}")]
    NoValue {
        /// The placeholder.
        name: String,
        /// Why it has none.
        why: &'static str,
    },
    /// The command is empty.
    #[error("the server's command is empty")]
    Empty,
}

/// Returns the command that serves the engine, as an argument list.
///
/// # Errors
/// Returns an error if the command is empty, or has a placeholder that has no value here.
pub fn command(engine: EngineKind, serve: &Serve<'_>) -> Result<Vec<String>, ServeCommandError> {
    let own = match engine {
        EngineKind::Generic => Vec::new(),
        EngineKind::Vllm => vllm::command(),
        EngineKind::Sglang => sglang::command(),
    };
    let template = if serve.spec.command.is_empty() { &own } else { &serve.spec.command };
    let mut command = template.iter().map(|argument| fill(argument, serve)).collect::<Result<Vec<_>, _>>()?;
    if command.is_empty() {
        return Err(ServeCommandError::Empty);
    }
    for (name, value) in &serve.spec.options {
        let text = match value {
            OptionValue::Switch(false) => continue,
            OptionValue::Switch(true) => None,
            OptionValue::Whole(number) => Some(number.to_string()),
            OptionValue::Number(number) => Some(number.to_string()),
            // A repository that was fetched is a folder also where an option names it, such as the tokenizer's.
            OptionValue::Text(text) => Some(serve.place(text)),
        };
        command.push(format!("--{name}"));
        command.extend(text);
    }
    Ok(command)
}

/// Replaces the placeholders of one argument.
fn fill(argument: &str, serve: &Serve<'_>) -> Result<String, ServeCommandError> {
    let mut text = argument.to_owned();
    if text.contains("{python}") {
        let why = "the task's environment has no Python";
        let python = serve.python.ok_or(ServeCommandError::NoValue { name: "python".to_owned(), why })?;
        text = text.replace("{python}", &python.to_string_lossy());
    }
    Ok(text
        .replace("{tree}", &serve.tree.to_string_lossy())
        .replace("{host}", serve.host)
        .replace("{port}", &serve.port.to_string())
        .replace("{model}", &serve.place(&serve.spec.model))
        .replace("{served-model-name}", &serve.spec.served_model_name))
}

/// Returns the variables that the engine itself needs, before those of the task: no colour in logs, caches of its own, and no
/// hub unless the task allows the network.
pub fn variables(engine: EngineKind, serve: &Serve<'_>) -> BTreeMap<String, String> {
    let offline = || [("HF_HUB_OFFLINE", "1".to_owned()), ("TRANSFORMERS_OFFLINE", "1".to_owned())];
    let mut variables = match engine {
        EngineKind::Generic if serve.folders.is_empty() || serve.spec.allow_network => return BTreeMap::new(),
        // Its model is a folder, so that its libraries need ask nobody.
        EngineKind::Generic => return offline().into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        EngineKind::Vllm => vllm::variables(serve),
        EngineKind::Sglang => sglang::variables(serve),
    };
    variables.extend([
        ("NO_COLOR", "1".to_owned()),
        ("TORCHINDUCTOR_CACHE_DIR", serve.folder("torchinductor")),
        ("TRITON_CACHE_DIR", serve.folder("triton")),
        ("HF_HOME", serve.folder("huggingface")),
    ]);
    if !serve.spec.allow_network {
        variables.extend(offline());
    }
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the path at which the engine reports its version, which is kept as a claim.
pub fn version_path(engine: EngineKind) -> &'static str {
    match engine {
        EngineKind::Generic | EngineKind::Vllm => "/version",
        EngineKind::Sglang => "/get_server_info",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(command: &[&str], options: &[(&str, OptionValue)]) -> ServerSpec {
        ServerSpec {
            command: command.iter().map(|&text| text.to_owned()).collect(),
            options: options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
            environment: BTreeMap::new(),
            pass_environment: Vec::new(),
            health: "/health".to_owned(),
            model: "/models/tiny".to_owned(),
            served_model_name: "tiny".to_owned(),
            allow_network: false,
        }
    }

    fn check(engine: EngineKind, spec: &ServerSpec, python: Option<&Path>, expected: Result<&str, &str>) {
        let serve = Serve {
            spec,
            tree: Path::new("/tree"),
            python,
            host: "127.0.0.1",
            port: 8123,
            caches: Path::new("/caches"),
            folders: &BTreeMap::from([("org/model".to_owned(), PathBuf::from("/cache/model"))]),
        };
        let found = command(engine, &serve).map(|command| command.join(" ")).map_err(|error| error.to_string());
        assert_eq!(found, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn placeholders_and_options_are_filled_in() {
        let options = [
            ("max-len", OptionValue::Whole(2048)),
            ("off", OptionValue::Switch(false)),
            ("on", OptionValue::Switch(true)),
            ("ratio", OptionValue::Number(0.5)),
        ];
        let spec = spec(&["{tree}/engine", "--port", "{port}"], &options);
        check(EngineKind::Generic, &spec, None, Ok("/tree/engine --port 8123 --max-len 2048 --on --ratio 0.5"));
    }

    #[test]
    fn vllm_needs_no_command() {
        let expected = "/venv/bin/python -m vllm.entrypoints.openai.api_server --model /models/tiny --host 127.0.0.1 \
                        --port 8123 --served-model-name tiny";
        check(EngineKind::Vllm, &spec(&[], &[]), Some(Path::new("/venv/bin/python")), Ok(expected));
    }

    #[test]
    fn sglang_needs_no_command() {
        let expected = "/venv/bin/python -m sglang.launch_server --model-path /models/tiny --host 127.0.0.1 --port 8123 \
                        --served-model-name tiny";
        check(EngineKind::Sglang, &spec(&[], &[]), Some(Path::new("/venv/bin/python")), Ok(expected));
    }

    #[test]
    fn a_model_that_was_fetched_is_a_folder_wherever_it_is_named() {
        let options = [("tokenizer", OptionValue::Text("org/model".to_owned()))];
        let fetched =
            ServerSpec { model: "org/model".to_owned(), ..spec(&["x", "{model}", "{served-model-name}"], &options) };
        check(EngineKind::Generic, &fetched, None, Ok("x /cache/model tiny --tokenizer /cache/model"));
    }

    #[test]
    fn a_command_that_cannot_be_built_says_why() {
        let spec_ = spec(&["{python}"], &[]);
        let expected = "`{python}` in the server's command has no value: the task's environment has no Python";
        check(EngineKind::Generic, &spec_, None, Err(expected));
        check(EngineKind::Generic, &spec(&[], &[]), None, Err("the server's command is empty"));
    }
}
