//! The inputs of a task: its model, tokenizer and dataset file, on this machine or on a hub.

use std::collections::BTreeMap;

use isobench_schema::environment::EngineKind;
use isobench_schema::input::{DEFAULT_REVISION, HubKind, HubReference, InputSource, TaskInputs};
use isobench_schema::task::{OptionValue, ServerSpec};
use isobench_schema::workload::{Prompts, Workload};

use crate::inputs;
use crate::node::Node;
use crate::paths;
use crate::typed::{self, Draft};

/// Returns the prompts of a dataset, or `None` after noting what is wrong.
pub(crate) fn prompts(draft: &mut Draft<'_>) -> Option<Prompts> {
    let Some(name) = draft.text("workload.prompts.name") else {
        draft.missing("workload.prompts.name");
        return None;
    };
    if !inputs::is_drawn(name) {
        let known = inputs::drawn().collect::<Vec<_>>().join("`, `");
        draft.fault("workload.prompts.name", format!("the client reads no dataset `{name}`; it reads `{known}`"));
        return None;
    }
    let given = draft.root.at("workload.prompts.options").map(Node::entries).unwrap_or_default();
    let mut options: BTreeMap<String, OptionValue> =
        given.iter().filter_map(|(name, node)| Some((name.clone(), typed::option(node)?))).collect();
    match draft.text("workload.prompts.file") {
        Some(file) => {
            // Which folder it is in is the machine's, and no part of the workload.
            let is_on_hub = draft.text("workload.prompts.repository").is_some();
            let name = if is_on_hub { file } else { file.rsplit('/').next().unwrap_or(file) };
            options.insert("dataset-path".to_owned(), OptionValue::Text(name.to_owned()));
        }
        None if inputs::needs_file(name) => {
            draft.fault("workload.prompts", format!("dataset `{name}` needs `workload.prompts.file`"));
        }
        None => {}
    }
    Some(Prompts::Dataset { name: name.to_owned(), options })
}

/// Returns the inputs of a task, and notes what is wrong with their names.
pub(crate) fn inputs(
    draft: &mut Draft<'_>,
    engine: EngineKind,
    server: &ServerSpec,
    workload: &Workload,
) -> TaskInputs {
    let model = model(draft, engine, server);
    TaskInputs {
        tokenizer: tokenizer(draft, server, workload, model.as_ref()),
        dataset: dataset(draft, workload),
        model,
    }
}

fn model(draft: &mut Draft<'_>, engine: EngineKind, server: &ServerSpec) -> Option<HubReference> {
    const KEY: &str = "server.model-revision";
    let revision = draft.text(KEY);
    if server.model.starts_with('/') {
        if revision.is_some() {
            draft.fault(KEY, format!("`{KEY}` means nothing for a model that is a folder, `{}`", server.model));
        }
        return None;
    }
    let by_itself = match engine {
        EngineKind::Generic => false,
        EngineKind::Vllm | EngineKind::Sglang => server.model.contains('/') && !server.allow_network,
    };
    if revision.is_none() && !by_itself {
        return None;
    }
    let found = inputs::model_reference(&server.model, revision.unwrap_or(DEFAULT_REVISION));
    if found.is_none() {
        let (key, rule) = if revision.is_some() { (KEY, "") } else { ("server.model", " and none of a folder") };
        draft
            .fault(key, format!("`{}` at `{}` is no model of a hub{rule}", server.model, revision.unwrap_or_default()));
    }
    found
}

fn tokenizer(
    draft: &mut Draft<'_>,
    server: &ServerSpec,
    workload: &Workload,
    model: Option<&HubReference>,
) -> Option<InputSource> {
    const KEY: &str = "workload.tokenizer";
    let revision = draft.text("workload.tokenizer-revision");
    if let Some(written) = draft.text(KEY) {
        let place = typed::model(draft.surroundings, written);
        if place.starts_with('/') {
            return Some(InputSource::Path { path: place });
        }
        let found = inputs::model_reference(&place, revision.unwrap_or(DEFAULT_REVISION));
        if found.is_none() {
            draft.fault(KEY, format!("`{place}` is neither a file or folder here nor a repository of a hub"));
        }
        return found.map(InputSource::Hub);
    }
    if revision.is_some() {
        draft.fault("workload.tokenizer-revision", "`workload.tokenizer-revision` needs `workload.tokenizer`");
    }
    if !inputs::needs_tokenizer(workload) {
        return None;
    }
    if server.model.starts_with('/') {
        return Some(InputSource::Path { path: server.model.clone() });
    }
    let own = model.cloned().map(InputSource::Hub);
    if own.is_none() {
        draft.missing(KEY);
    }
    own
}

fn dataset(draft: &mut Draft<'_>, workload: &Workload) -> Option<InputSource> {
    let Prompts::Dataset { .. } = workload.prompts else { return None };
    let file = draft.text("workload.prompts.file");
    let Some(repository) = draft.text("workload.prompts.repository") else {
        if draft.text("workload.prompts.revision").is_some() {
            draft.fault("workload.prompts.revision", "`workload.prompts.revision` needs `workload.prompts.repository`");
        }
        let typed::Surroundings { base, folder, .. } = draft.surroundings;
        return Some(InputSource::Path { path: paths::absolute(base, folder, file?) });
    };
    let revision = draft.text("workload.prompts.revision").unwrap_or(DEFAULT_REVISION);
    let found = inputs::reference(HubKind::Dataset, repository, revision);
    if found.is_none() {
        let message = format!("`{repository}` at `{revision}` is no dataset of a hub: use `OWNER/NAME`");
        draft.fault("workload.prompts.repository", message);
    }
    if file.is_none_or(|file| !isobench_schema::input::is_inside(file)) {
        draft.fault(
            "workload.prompts.file",
            "`workload.prompts.file` must name a file in `workload.prompts.repository`",
        );
    }
    found.map(InputSource::Hub)
}
