//! Facts about models, tokenizers and datasets of a hub.

use std::collections::BTreeSet;

use isobench_plan::choose::Choice;
use isobench_plan::dataset::Dataset;
use isobench_plan::inputs::{WantedInput, hub_needed, is_enough_here, known_dataset, model_reference};
use isobench_runner::environment::PrepareContext;
use isobench_runner::inputs::{AskHub, Hub, HubSettings, Wanted};
use isobench_schema::facts::Facts;
use isobench_schema::input::{DEFAULT_REVISION, FoundInput, InputFile, InputRole};

use super::Where;
use crate::exit::{CommandError, Exit, WithExit as _};

/// Adds what is known of the repositories that tasks name, wherever it is known from.
pub(super) fn gather(
    dataset: &Dataset,
    choice: &Choice,
    (place, context): (Where<'_>, &PrepareContext<'_>),
    facts: &mut Facts,
) -> Result<(), CommandError> {
    for wanted in hub_needed(dataset, choice) {
        place.terminal.status(&format!("looking for the {}", wanted.reference));
        let found = find(place.hub, &wanted, context)?;
        facts.hub.insert(wanted.reference.to_string(), found);
    }
    Ok(())
}

/// Adds what is known of the models that commits name, and of the datasets that their commands name by a file. Without being
/// told so the hub isn't asked: such a dataset names many, and a plan of it needs only their configs.
pub(super) fn gather_for_commits(
    models: &BTreeSet<String>,
    words: &BTreeSet<String>,
    (place, context): (Where<'_>, &PrepareContext<'_>),
    facts: &mut Facts,
) -> Result<(), CommandError> {
    let quiet;
    let hub = if place.ask_for_commits {
        place.hub
    } else {
        let ask = AskHub::Never("it is only asked for what commits name with `--hub`".to_owned());
        quiet = Hub::new(HubSettings { ask, ..place.hub.settings().clone() });
        &quiet
    };
    let of_models = models.iter().filter_map(|name| {
        let reference = model_reference(name, DEFAULT_REVISION)?;
        Some(WantedInput { reference, roles: BTreeSet::from([InputRole::Tokenizer]), files: BTreeSet::new() })
    });
    let of_files = words.iter().filter_map(|word| {
        let (reference, file) = known_dataset(word)?;
        Some(WantedInput { reference, roles: BTreeSet::from([InputRole::Dataset]), files: BTreeSet::from([file]) })
    });
    for wanted in of_models.chain(of_files).collect::<Vec<_>>() {
        match find(hub, &wanted, context)? {
            found @ FoundInput::Found { .. } => {
                facts.hub.insert(wanted.reference.to_string(), found);
            }
            FoundInput::Missing { failure } if place.ask_for_commits => {
                place.terminal.status(&format!("the {} isn't used: {}", wanted.reference, failure.message));
            }
            FoundInput::Missing { .. } => {}
        }
    }
    Ok(())
}

fn find(hub: &Hub, wanted: &WantedInput, context: &PrepareContext<'_>) -> Result<FoundInput, CommandError> {
    let is_enough = |files: &[InputFile]| is_enough_here(&wanted.roles, files, &wanted.files);
    hub.find(&Wanted { reference: &wanted.reference, is_enough: &is_enough }, context).exit(Exit::Machine)
}
