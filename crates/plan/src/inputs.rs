//! Inputs from a hub: which repositories tasks need, and which of their files.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::facts::Facts;
use isobench_schema::ids::Revision;
use isobench_schema::input::{
    DEFAULT_REVISION, FileHash, FoundInput, HubKind, HubReference, HubRepository, InputFile, InputRole, InputSource,
    PlannedInput, TaskInputs, digest_of,
};
use isobench_schema::plan::ExclusionReason;
use isobench_schema::task::{OptionValue, Requirements, Task};
use isobench_schema::workload::{Prompts, TokenCounter, Workload};

use crate::choose::{Choice, Selection, Selector};
use crate::dataset::Dataset;
use crate::exclude::Why;

/// The file that a tokenizer is read from.
pub const TOKENIZER_FILE: &str = "tokenizer.json";

/// The options of a dataset that name its file.
const PATHS: [&str; 2] = ["dataset-path", "dataset"];

/// Endings of files of weights, the ones that are preferred first.
const WEIGHTS: [&str; 5] = [".safetensors", ".bin", ".pt", ".pth", ".gguf"];

/// Endings of weights in forms that no engine here reads, and of what isn't part of a model.
const NO_PART: [&str; 12] = [
    ".msgpack",
    ".h5",
    ".ot",
    ".onnx",
    ".onnx_data",
    ".tflite",
    ".mlmodel",
    ".md",
    ".png",
    ".jpg",
    ".pdf",
    ".gitattributes",
];

/// Folders of a repository that hold a model once more in another form.
const OTHER_FORMS: [&str; 6] = ["original/", "onnx/", "coreml/", "openvino/", "metal/", "flax/"];

/// A repository that a plan needs to know of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedInput {
    /// The repository at a revision.
    pub reference: HubReference,
    /// What it is used for.
    pub roles: BTreeSet<InputRole>,
    /// The files that must be there, besides what its use asks for.
    pub files: BTreeSet<String>,
}

/// Returns the repositories that a plan of this choice needs looked up, sorted, each once.
pub fn hub_needed(dataset: &Dataset, choice: &Choice) -> Vec<WantedInput> {
    let mut selector = Selector::new(choice);
    let mut wanted: BTreeMap<HubReference, WantedInput> = BTreeMap::new();
    for task in &dataset.tasks {
        let Selection::Run(_) = selector.select(task) else { continue };
        for (role, reference) in task.inputs.on_hub() {
            let entry = wanted.entry(reference.clone()).or_insert_with(|| WantedInput {
                reference: reference.clone(),
                roles: BTreeSet::new(),
                files: BTreeSet::new(),
            });
            entry.roles.insert(role);
            if role == InputRole::Dataset {
                entry.files.extend(dataset_file(&task.workload.prompts).map(str::to_owned));
            }
        }
    }
    wanted.into_values().collect()
}

/// Returns the reference of a model on a hub, if its name can be one.
pub fn model_reference(name: &str, revision: &str) -> Option<HubReference> {
    reference(HubKind::Model, name, revision)
}

/// Returns a reference, if name and revision can be ones.
pub(crate) fn reference(kind: HubKind, name: &str, revision: &str) -> Option<HubReference> {
    Some(HubReference { kind, repository: HubRepository::new(name).ok()?, revision: Revision::new(revision).ok()? })
}

/// Returns the file that a workload's prompts are made from, as its options name it.
pub fn dataset_file(prompts: &Prompts) -> Option<&str> {
    let Prompts::Dataset { options, .. } = prompts else { return None };
    match PATHS.iter().find_map(|name| options.get(*name))? {
        OptionValue::Text(path) => Some(path),
        OptionValue::Switch(_) | OptionValue::Whole(_) | OptionValue::Number(_) => None,
    }
}

/// Returns the files of a repository that are needed for a use, sorted.
pub fn files_for(role: InputRole, files: &[InputFile], dataset_file: Option<&str>) -> Vec<InputFile> {
    let mut needed: Vec<InputFile> = match role {
        InputRole::Dataset => files.iter().filter(|file| Some(file.path.as_str()) == dataset_file).cloned().collect(),
        InputRole::Tokenizer => files.iter().filter(|file| is_of_tokenizer(&file.path)).cloned().collect(),
        InputRole::Model => of_model(files),
    };
    needed.sort();
    needed
}

/// Returns whether the files of a repository are enough for a use, as far as their names tell it.
pub fn is_enough(role: InputRole, files: &[InputFile], dataset_file: Option<&str>) -> bool {
    let needed = files_for(role, files, dataset_file);
    match role {
        InputRole::Dataset => !needed.is_empty(),
        InputRole::Tokenizer => needed.iter().any(|file| file.path == TOKENIZER_FILE),
        InputRole::Model => {
            needed.iter().any(|file| file.path == "config.json" || weights(&file.path).is_some()) && !needed.is_empty()
        }
    }
}

/// Returns whether the files that this machine has of a repository are enough for all its uses, so that the hub needn't be
/// asked: of a model the weights too.
pub fn is_enough_here(roles: &BTreeSet<InputRole>, files: &[InputFile], dataset_files: &BTreeSet<String>) -> bool {
    let is_there = |path: &String| files.iter().any(|file| file.path == *path);
    !roles.is_empty()
        && roles.iter().all(|role| match role {
            InputRole::Model => has_weights(Some(files)),
            InputRole::Tokenizer => is_enough(*role, files, None),
            InputRole::Dataset => !dataset_files.is_empty() && dataset_files.iter().all(is_there),
        })
}

fn is_of_tokenizer(path: &str) -> bool {
    let plain = !path.contains('/');
    let named = ["tokenizer", "vocab", "merges", "special_tokens", "added_tokens", "chat_template"];
    plain && (path == "config.json" || named.iter().any(|start| path.starts_with(start)) || path.ends_with(".tiktoken"))
}

/// Returns the place of a file's form in the order of preference, if it holds weights.
fn weights(path: &str) -> Option<usize> {
    WEIGHTS.iter().position(|end| path.ends_with(end) && !path.starts_with("training_args"))
}

fn of_model(files: &[InputFile]) -> Vec<InputFile> {
    let is_part = |file: &&InputFile| {
        let lower = file.path.to_ascii_lowercase();
        !NO_PART.iter().any(|end| lower.ends_with(end)) && !OTHER_FORMS.iter().any(|form| lower.starts_with(form))
    };
    let parts: Vec<&InputFile> = files.iter().filter(is_part).collect();
    let best = parts.iter().filter_map(|file| weights(&file.path)).min();
    let is_whole_model = |file: &InputFile| {
        file.path.ends_with(".safetensors") && !file.path.starts_with("consolidated") && !file.path.contains('/')
    };
    // What Mistral publishes holds the weights twice, under two sets of names.
    let has_twice = parts.iter().any(|file| is_whole_model(file));
    let is_needed = |file: &&&InputFile| match weights(&file.path) {
        None => true,
        Some(form) => Some(form) == best && !(has_twice && file.path.starts_with("consolidated")),
    };
    parts.iter().filter(is_needed).map(|file| (*file).clone()).collect()
}

/// Returns a task's inputs from a hub with their files, or why one can't be had.
pub(crate) fn planned(task: &Task, facts: &Facts) -> Result<Vec<PlannedInput>, Why> {
    let missing = |message: String| (ExclusionReason::InputMissing, message);
    let wanted = dataset_file(&task.workload.prompts);
    let mut planned = Vec::new();
    for (role, reference) in task.inputs.on_hub() {
        let name = reference.to_string();
        let found = facts.hub.get(&name);
        let found = found.ok_or_else(|| missing(format!("the {name} was not looked up for these facts")))?;
        let FoundInput::Found { commit, origin, folder, files } = found else {
            let FoundInput::Missing { failure } = found else { continue };
            return Err(missing(format!("the {name} can't be had ({}): {}", failure.class, failure.message)));
        };
        if !is_enough(role, files, wanted) {
            let what = match (role, wanted) {
                (InputRole::Dataset, Some(file)) => format!("no file `{file}`"),
                (InputRole::Dataset, None) => "no file that `workload.prompts.file` names".to_owned(),
                (InputRole::Tokenizer, _) => format!("no `{TOKENIZER_FILE}`"),
                (InputRole::Model, _) => "neither a `config.json` nor weights".to_owned(),
            };
            return Err(missing(format!("the {name} has {what}, which its use as {role} needs")));
        }
        let files = files_for(role, files, wanted);
        planned.push(PlannedInput {
            role,
            source: reference.clone(),
            commit: commit.clone(),
            origin: *origin,
            folder: folder.clone(),
            bytes: files.iter().fold(0, |sum, file| sum.saturating_add(file.bytes)),
            digest: digest_of(&files),
            files,
        });
    }
    Ok(planned)
}

/// Returns what a task needs of a machine, with the disk that its inputs from a hub take.
pub(crate) fn requirements(task: &Task, fetched: &[PlannedInput]) -> Requirements {
    let mut needs = task.requirements.clone();
    // The model and its tokenizer are files of one repository, of which each is kept once.
    let files: BTreeMap<&FileHash, u64> =
        fetched.iter().flat_map(|input| &input.files).map(|file| (&file.hash, file.bytes)).collect();
    let bytes: u64 = files.values().sum();
    if bytes > 0 {
        #[expect(clippy::cast_precision_loss, reason = "no inputs have 2^53 bytes")]
        let gib = bytes as f64 / f64::from(1_u32 << 30);
        needs.disk_gib = Some(needs.disk_gib.unwrap_or(0.0) + gib);
    }
    needs
}

/// Datasets whose prompts come from a file.
const FROM_FILES: [&str; 8] = ["sharegpt", "sonnet", "custom", "burstgpt", "azure", "mooncake", "timed", "timed_trace"];

/// Datasets that the client makes by itself.
const MADE: [&str; 6] = ["random", "prefix-repetition", "prefix_repetition", "prefix-tree", "image", "sessions"];

/// Returns whether the client draws the prompts of a dataset at all.
pub(crate) fn is_drawn(name: &str) -> bool {
    MADE.contains(&name) || FROM_FILES.contains(&name)
}

/// Returns the names of the datasets that the client draws.
pub(crate) fn drawn() -> impl Iterator<Item = &'static str> {
    MADE.into_iter().chain(FROM_FILES).filter(|name| !name.contains('_'))
}

/// Returns whether the prompts of a dataset come from a file.
pub(crate) fn needs_file(name: &str) -> bool {
    FROM_FILES.contains(&name)
}

/// Returns whether the client needs the model's tokenizer for a workload.
pub(crate) fn needs_tokenizer(workload: &Workload) -> bool {
    let is_dataset = matches!(workload.prompts, Prompts::Dataset { .. });
    // A benchmark script makes its own requests.
    workload.script.is_none() && (is_dataset || workload.counter == TokenCounter::Tokenizer)
}

/// Gives a task of a dataset of commits what facts have of its model, tokenizer and dataset, and returns whether the engine
/// then needs no network for its model.
pub(crate) fn give(facts: &Facts, task: &mut Task) -> bool {
    task.inputs = found(facts, &task.server.model, &task.workload.prompts);
    let file = known_file(&task.workload.prompts).filter(|_| task.inputs.dataset.is_some());
    if let (Some((_, file)), Prompts::Dataset { options, .. }) = (file, &mut task.workload.prompts) {
        for name in PATHS {
            options.remove(name);
        }
        options.insert("dataset-path".to_owned(), OptionValue::Text(file));
    }
    task.inputs.model.is_some()
}

/// Returns what facts have of a model, its tokenizer and the file of a dataset.
pub(crate) fn found(facts: &Facts, model: &str, prompts: &Prompts) -> TaskInputs {
    let model = model_reference(model, DEFAULT_REVISION);
    let files = |reference: &HubReference| match facts.hub.get(&reference.to_string()) {
        Some(FoundInput::Found { files, .. }) => Some(files.as_slice()),
        Some(FoundInput::Missing { .. }) | None => None,
    };
    let has = |role: InputRole| {
        let model = model.as_ref().filter(|model| files(model).is_some_and(|files| is_enough(role, files, None)))?;
        Some(model.clone())
    };
    let mut inputs = TaskInputs {
        model: has_weights(model.as_ref().and_then(files)).then(|| model.clone()).flatten(),
        ..TaskInputs::default()
    };
    inputs.tokenizer = has(InputRole::Tokenizer).map(InputSource::Hub);
    if let Some((reference, file)) = known_file(prompts)
        && files(&reference).is_some_and(|files| is_enough(InputRole::Dataset, files, Some(&file)))
    {
        inputs.dataset = Some(InputSource::Hub(reference));
    }
    inputs
}

fn has_weights(files: Option<&[InputFile]>) -> bool {
    files.is_some_and(|files| of_model(files).iter().any(|file| weights(&file.path).is_some()))
}

/// Returns the repository that holds a dataset's well-known file, with the file's path in it.
pub fn known_file(prompts: &Prompts) -> Option<(HubReference, String)> {
    known_dataset(dataset_file(prompts)?)
}

/// Returns the repository that holds a well-known file of a dataset, with the file's path in it.
pub fn known_dataset(path: &str) -> Option<(HubReference, String)> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let row = crate::knowledge::Knowledge::embedded().dataset_files.find(name)?;
    Some((reference(HubKind::Dataset, &row.repository, &row.revision)?, row.file.clone()))
}

#[cfg(test)]
mod tests {
    use isobench_schema::ids::Digest;

    use super::*;

    fn file(path: &str) -> InputFile {
        InputFile { path: path.to_owned(), bytes: 1, hash: FileHash::Sha256(Digest::of(path.as_bytes())) }
    }

    fn check(role: InputRole, files: &[&str], expected: &[&str]) {
        let files: Vec<InputFile> = files.iter().map(|path| file(path)).collect();
        let found: Vec<String> = files_for(role, &files, Some("data.json")).into_iter().map(|file| file.path).collect();
        assert_eq!(found, expected, "{role}");
    }

    #[test]
    fn a_model_is_fetched_once_in_the_form_that_is_read_first() {
        let files = [
            ".gitattributes",
            "README.md",
            "config.json",
            "consolidated.safetensors",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "onnx/model.onnx",
            "original/consolidated.00.pth",
            "pytorch_model.bin",
            "tf_model.h5",
            "tokenizer.json",
            "training_args.bin",
        ];
        let expected = [
            "config.json",
            "model-00001-of-00002.safetensors",
            "model-00002-of-00002.safetensors",
            "tokenizer.json",
            "training_args.bin",
        ];
        check(InputRole::Model, &files, &expected);
        check(InputRole::Model, &["config.json", "pytorch_model.bin"], &["config.json", "pytorch_model.bin"]);
        check(
            InputRole::Model,
            &["consolidated.safetensors", "params.json"],
            &["consolidated.safetensors", "params.json"],
        );
    }

    #[test]
    fn a_tokenizer_and_a_dataset_are_a_few_files() {
        let files = ["config.json", "data.json", "merges.txt", "model.safetensors", "tokenizer.json", "vocab.json"];
        check(InputRole::Tokenizer, &files, &["config.json", "merges.txt", "tokenizer.json", "vocab.json"]);
        check(InputRole::Dataset, &files, &["data.json"]);
    }
}
