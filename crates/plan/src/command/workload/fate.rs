//! What becomes of each option.

use isobench_schema::assessment::Severity;
use isobench_schema::tool::ToolKind;

use super::Draft;
use crate::command::{Fate, GivenOption};
use crate::knowledge::Knowledge;
use crate::lint::ids;

/// What an option of a benchmark program becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Becomes {
    /// A key of the workload.
    Key(&'static str),
    /// Part of where prompts come from.
    Prompts,
    /// The server's model.
    Model,
    /// A field of each request's body; an empty name: all fields of its object.
    Body(&'static str),
    /// Something that isobench does by itself, or does otherwise for every task.
    Own(&'static str),
}

const CLIENT: &str = "isobench's own client does this";
const RESULTS: &str = "isobench keeps every request's record itself";
const SERVER: &str = "isobench starts the server itself, and its client knows where";

/// Options by their names. What isn't here is the engine's, or can't be done.
const TABLE: &[(&[&str], Becomes)] = &[
    (&["--model", "--model-path"], Becomes::Model),
    (&["--num-prompts", "--num-iters", "--repeat-count"], Becomes::Key("requests")),
    (&["--request-rate", "--burstiness", "--max-concurrency"], Becomes::Key("arrival")),
    (&["--batch-size"], Becomes::Key("requests and workload.arrival")),
    (&["--num-warmups", "--warmup-requests", "--num-iters-warmup", "--skip-warmup"], Becomes::Key("warm-up-requests")),
    (&["--ignore-eos", "--disable-ignore-eos"], Becomes::Key("ignore-eos")),
    (&["--temperature"], Becomes::Key("temperature")),
    (&["--backend", "--endpoint", "--endpoint-type", "--protocol"], Becomes::Key("api")),
    (
        &[
            "--output-len",
            "--random-output-len",
            "--sharegpt-output-len",
            "--sonnet-output-len",
            "--hf-output-len",
            "--custom-output-len",
        ],
        Becomes::Key("output-tokens"),
    ),
    (
        &[
            "--dataset",
            "--dataset-name",
            "--dataset-path",
            "--input-len",
            "--prefix-len",
            "--input-length-range",
            "--random-input-len",
            "--random-range-ratio",
            "--random-prefix-len",
            "--sonnet-input-len",
            "--sonnet-prefix-len",
            "--hf-subset",
            "--hf-split",
            "--hf-name",
            "--custom-skip-chat-template",
            "--skip-chat-template",
            "--sort",
            "--no-oversample",
            "--disable-shuffle",
            "--sharegpt-context-len",
            "--context-len",
            "--prompt-suffix",
            "--apply-chat-template",
            "--tokenize-prompt",
            "--prompt-filename",
            "--random-image-num-images",
            "--prefix-repetition-prefix-len",
            "--prefix-repetition-suffix-len",
            "--prefix-repetition-num-prefixes",
            "--prefix-repetition-output-len",
            "--gsp-num-groups",
            "--gsp-prompts-per-group",
            "--gsp-system-prompt-len",
            "--gsp-question-len",
            "--gsp-output-len",
            "--gen-num-groups",
            "--gen-prompts-per-group",
            "--gen-system-prompt-len",
            "--gen-question-len",
            "--gen-output-len",
        ],
        Becomes::Prompts,
    ),
    (&["--n"], Becomes::Body("n")),
    (&["--lora-name"], Becomes::Body("lora_path")),
    (&["--host", "--port", "--base-url", "--served-model-name", "--ready-check-timeout-sec"], Becomes::Own(SERVER)),
    (
        &[
            "--save-result",
            "--save-detailed",
            "--append-result",
            "--result-dir",
            "--result-filename",
            "--metadata",
            "--output-file",
            "--output-details",
            "--output-json",
            "--label",
            "--tag",
            "--run-name",
            "--version",
            "--percentile-metrics",
            "--metric-percentiles",
            "--goodput",
            "--disable-tqdm",
            "--log-decode-step",
            "--request-id-prefix",
            "--plot-throughput",
            "--plot-timeline",
            "--plot-dataset-stats",
            "--return-logprob",
        ],
        Becomes::Own(RESULTS),
    ),
    (&["--tokenizer", "--tokenizer-mode", "--trust-remote-code"], Becomes::Own(CLIENT)),
    (&["--seed"], Becomes::Own("isobench seeds each block itself, alike for every arm")),
    (&["--flush-cache"], Becomes::Own("every launch starts with empty caches")),
    (&["--async-engine"], Becomes::Own("the engine behind a server is the asynchronous one")),
    (
        &["--profile", "--profile-result-dir", "--profile-record-shapes", "--profile-filename-prefix"],
        Becomes::Own("isn't done: a profiler changes what is measured"),
    ),
];

fn becomes(name: &str) -> Option<Becomes> {
    let own = TABLE.iter().find(|(names, _)| names.contains(&name)).map(|(_, becomes)| *becomes);
    // Which fields of a request's body clients set is the same for every load.
    own.or_else(|| Knowledge::embedded().load_flags.body_field(name).map(Becomes::Body))
}

/// Returns the field of a request's body that an option becomes.
pub(super) fn body_field(name: &str) -> Option<&'static str> {
    match becomes(name)? {
        Becomes::Body(field) => Some(field),
        Becomes::Key(_) | Becomes::Prompts | Becomes::Model | Becomes::Own(_) => None,
    }
}

/// Returns whether an option says where prompts come from.
pub(super) fn is_of_prompts(name: &str) -> bool {
    becomes(name) == Some(Becomes::Prompts)
}

/// Returns whether isobench gives the server this option itself.
pub(super) fn is_of_server_itself(name: &str) -> bool {
    matches!(name, "--model" | "--model-path" | "--host" | "--port" | "--served-model-name" | "--api-key")
}

impl Draft<'_, '_> {
    /// Lists each option that the commands give with what became of it, and finds those that nothing can do.
    pub(super) fn fates(&mut self) -> Vec<Fate> {
        let mut fates = Vec::new();
        let offline = self.fitted.tool.kind() != ToolKind::Serving;
        for (index, option) in self.fitted.client.iter().enumerate() {
            let later = self.fitted.client.iter().skip(index + 1).find(|later| later.name == option.name);
            let engine = offline && self.fitted.server.iter().any(|known| known.name == option.name);
            let became = match (later, becomes(&option.name)) {
                (Some(later), _) => format!("nothing: `{}` comes later", later.written),
                (None, Some(becomes)) => self.became(option, becomes),
                (None, None) if engine => format!("server option `{}`", option.name),
                (None, None) => self.cannot(option),
            };
            fates.extend((!option.written.is_empty()).then(|| Fate { written: option.written.clone(), became }));
        }
        let of_server = |option: &&GivenOption<'_>| !option.written.is_empty();
        for option in self.fitted.server.iter().filter(of_server) {
            let became = if option.name.starts_with("--model") {
                "the server's model".to_owned()
            } else if is_of_server_itself(&option.name) {
                SERVER.to_owned()
            } else {
                format!("server option `{}`", option.name)
            };
            fates.push(Fate { written: option.written.clone(), became });
        }
        let needless = self.fitted.superseded.iter().map(|option| (option, "nothing: it is needed no more"));
        let refused = self.fitted.refused.iter().map(|option| (option, "nothing: it is refused"));
        fates.extend(
            needless
                .chain(refused)
                .map(|(option, became)| Fate { written: option.written.clone(), became: became.to_owned() }),
        );
        fates
    }

    fn became(&mut self, option: &GivenOption<'_>, becomes: Becomes) -> String {
        match becomes {
            Becomes::Key(key) => format!("workload.{key}"),
            Becomes::Prompts => "workload.prompts".to_owned(),
            Becomes::Model => "the server's model".to_owned(),
            Becomes::Body("") => "workload.extra-body".to_owned(),
            Becomes::Body(field) => format!("workload.extra-body.{field}"),
            Becomes::Own(what) => {
                if option.name.starts_with("--profile") {
                    let message = format!("`{}` {what}", option.written);
                    self.error(ids::FEATURE_CONFLICT, &option.name, message, "take it out of the command");
                    if let Some(found) = self.findings.last_mut() {
                        found.severity = Severity::Warning;
                    }
                }
                what.to_owned()
            }
        }
    }

    fn cannot(&mut self, option: &GivenOption<'_>) -> String {
        let message = format!("isobench's own client can't do what `{}` asks for", option.written);
        self.error(
            ids::FEATURE_CONFLICT,
            &option.name,
            message,
            "take it out, or leave the row's command out and plan the task with `--workload NAME`",
        );
        "nothing: isobench's own client can't do it".to_owned()
    }
}
