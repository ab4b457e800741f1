//! When the numbers of a task of commits come from the engine's own benchmark script, and what that is given.

use std::collections::BTreeMap;

use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::script::{Script, ScriptOf};
use isobench_schema::task::{OptionValue, Task};
use isobench_schema::workload::{Probes, Prompts, Workload};

use super::{OfflineChoice, Subject, client};
use crate::command::{Fitted, GivenOption, ProgramOf, argv, is_model};
use crate::inputs;
use crate::knowledge::Knowledge;

/// Datasets that the programs make themselves, without any file.
const MADE: [&str; 2] = ["prefix-caching", "random"];

/// Options that split every layer of the model over devices.
const PARALLEL: [&str; 2] = ["tensor-parallel-size", "tp"];

/// Returns the script that measures a task, if one does. Its arguments are given later, once the server's options are known.
///
/// isobench's own client goes first, since it measures: a script only says something of itself.
pub(super) fn of(subject: &Subject<'_>, fitted: &Fitted<'_>, model: &str, workload: &Workload) -> Option<Script> {
    let is_wanted = match subject.options.offline {
        OfflineChoice::Never => false,
        OfflineChoice::Always => true,
        OfflineChoice::WhereNeeded => {
            let moment = subject.baseline.map(|facts| &facts.committed);
            let found = inputs::found(subject.facts, model, &workload.prompts);
            client::lacks(subject.task.engine, &workload.prompts, &found, moment).is_some()
        }
    };
    let can_run = Script::TOOLS.contains(&fitted.tool) && fitted.refused.is_empty() && has_prompts(&workload.prompts);
    // What the engine needs and the command lacks was added for the server; the script must take it, too.
    let takes_all = needed(fitted).all(|option| fitted.options.get(&option.name).is_some());
    if !is_wanted || !can_run || !takes_all || !fitted.place.contains('/') {
        return None;
    }
    Some(Script {
        tool: fitted.tool,
        path: fitted.place.clone(),
        of: match fitted.program_of {
            ProgramOf::Baseline => ScriptOf::Baseline,
            ProgramOf::Human => ScriptOf::Human,
        },
        commit: None,
        arguments: Vec::new(),
        output_json: fitted.options.get("--output-json").is_some(),
    })
}

/// Returns the options that the server was given for the engine's sake, and the command doesn't have. What the script tells its
/// engine by itself is none of them.
fn needed<'f, 'k>(fitted: &'f Fitted<'k>) -> impl Iterator<Item = &'f GivenOption<'k>> {
    let own = &Knowledge::embedded().translations.own;
    let of_script = |name: &str| own.iter().any(|row| row.tools.contains(&fitted.tool) && row.option == name);
    let is_given = |name: &str| fitted.client.iter().any(|option| option.name == name);
    fitted.server.iter().filter(move |option| {
        let name = option.name.as_str();
        option.written.is_empty() && !of_script(name) && !is_given(name) && !is_model(name) && !is_parallel(name)
    })
}

/// Returns whether a deviation only tells the server what the script tells its engine by itself.
pub(super) fn is_of_server_alone(deviation: &Deviation) -> bool {
    let own = &Knowledge::embedded().translations.own;
    deviation.kind == DeviationKind::OptionAdded && own.iter().any(|row| row.reason == deviation.reason)
}

fn is_parallel(name: &str) -> bool {
    PARALLEL.contains(&name.trim_start_matches('-'))
}

/// Returns whether the program makes its prompts itself, or is given a file that is surely there.
fn has_prompts(prompts: &Prompts) -> bool {
    match prompts {
        Prompts::Words { .. } | Prompts::TokenIds { .. } => true,
        Prompts::Dataset { name, options } => {
            let file = ["dataset-path", "dataset"].into_iter().find_map(|name| options.get(name));
            match file {
                Some(OptionValue::Text(path)) => path.starts_with('/'),
                Some(OptionValue::Switch(_) | OptionValue::Whole(_) | OptionValue::Number(_)) => false,
                None => MADE.contains(&name.as_str()),
            }
        }
    }
}

/// Makes a workload the script's: it sends no probes and no warm-up of the client's.
pub(super) fn measured_by(mut workload: Workload, script: Script) -> Workload {
    workload.script = Some(script);
    workload.warm_up_requests = 0;
    workload.probes = Probes { count: 0, ..workload.probes };
    workload
}

/// Returns the script's arguments: those of the command, with as many devices as the model needs.
pub(super) fn arguments(fitted: &Fitted<'_>, options: &BTreeMap<String, OptionValue>, model: &str) -> Vec<String> {
    let is_left_out = |option: &GivenOption<'_>| option.name.starts_with("--profile") || option.name == "--output-json";
    let devices = PARALLEL.into_iter().find_map(|name| options.get(name)).map(text);
    let mut given: Vec<GivenOption<'_>> =
        fitted.client.iter().filter(|option| !is_left_out(option) && !is_parallel(&option.name)).cloned().collect();
    given.extend(needed(fitted).cloned());
    for option in given.iter_mut().filter(|option| is_model(&option.name)) {
        if option.values == [model.to_owned()] {
            option.values = vec!["{model}".to_owned()];
        }
    }
    if !given.iter().any(|option| is_model(&option.name)) {
        given.insert(0, added("--model", "{model}"));
    }
    given.extend(devices.map(|devices| added("--tensor-parallel-size", &devices)));
    argv(Vec::new(), &given)
}

/// Gives the script what recipes have given the server, which isn't started.
pub(super) fn take_options(task: &mut Task) {
    let Some(script) = &mut task.workload.script else { return };
    for (name, value) in std::mem::take(&mut task.server.options) {
        match value {
            OptionValue::Switch(false) => {}
            OptionValue::Switch(true) => script.arguments.push(format!("--{name}")),
            value @ (OptionValue::Whole(_) | OptionValue::Number(_) | OptionValue::Text(_)) => {
                script.arguments.extend([format!("--{name}"), text(&value)]);
            }
        }
    }
}

fn text(value: &OptionValue) -> String {
    match value {
        OptionValue::Switch(value) => value.to_string(),
        OptionValue::Whole(number) => number.to_string(),
        OptionValue::Number(number) => number.to_string(),
        OptionValue::Text(text) => text.clone(),
    }
}

fn added<'k>(name: &str, value: &str) -> GivenOption<'k> {
    GivenOption { written: String::new(), name: name.to_owned(), values: vec![value.to_owned()], spec: None }
}
