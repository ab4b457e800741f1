//! A smaller model in place of one that doesn't fit: only when asked for, and never to be compared with the original.

use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::workload::Workload;

use super::model::{Model, model};
use super::need::need;
use super::options::ServerOptions;
use super::place::Place;
use crate::knowledge::Models;
use crate::knowledge::architectures::{EngineFeature, Support};
use crate::knowledge::models::ModelForm;

/// A model that stands in for another.
#[derive(Debug, Clone, PartialEq)]
pub struct Proxy {
    /// The smaller model.
    pub model: Model,
    /// The tensor parallel size on which it fits.
    pub tensor_parallel: u32,
    /// What is written down: another model's name is in the key of every measurement, so that its numbers are never compared with
    /// the original's.
    pub deviation: Deviation,
}

/// Returns whether the engine can load a model at the moment.
fn is_loadable(models: &Models, name: &str, place: &Place<'_>) -> bool {
    let Some(moment) = place.moment else { return true };
    let row = models.find(name);
    let named = row.and_then(|row| row.config.as_ref()?.get("architectures")?.as_array()?.first()?.as_str());
    let support = |architecture| place.architectures.support(place.engine, architecture, moment);
    let is_known =
        named.is_none_or(|architecture| matches!(support(architecture), Support::Yes(_) | Support::Fallback(_)));
    let rope = row.and_then(|row| row.config.as_ref()?.get("rope_scaling")?.get("rope_type")?.as_str());
    is_known && (rope != Some("llama3") || place.has(EngineFeature::RopeLlama3))
}

/// Returns the best model that may stand in for one that doesn't fit `devices` devices, if there is one that does.
///
/// Nothing is returned for a model that fits itself. A command's tensor parallel size is the original's; the proxy gets the
/// smallest that it needs.
pub fn proxy(
    models: &Models,
    original: &Model,
    options: &ServerOptions,
    workload: Option<&Workload>,
    (place, devices): (&Place<'_>, u32),
) -> Option<Proxy> {
    let own = ServerOptions { tensor_parallel: None, pipeline_parallel: None, data_parallel: None, ..options.clone() };
    let fits = |candidate: &Model| {
        let context = options.max_model_len.is_none_or(|asked| asked <= candidate.context);
        let size = need(candidate, &own, workload, place).devices.filter(|needed| *needed <= devices)?;
        context.then_some(size)
    };
    let row = models.find(&original.name)?;
    let loadable = row.form == ModelForm::Transformers;
    let original_need = need(original, options, workload, place).devices;
    if loadable && original_need.is_some_and(|needed| needed <= devices) {
        return None;
    }
    row.proxies.iter().find_map(|name| {
        let stand_in = model(models, name, None).ok()?;
        if !is_loadable(models, name, place) {
            return None;
        }
        let tensor_parallel = fits(&stand_in)?;
        let needs = original_need.map_or_else(|| "more devices than any size".to_owned(), |n| format!("{n} devices"));
        let deviation = Deviation {
            kind: DeviationKind::ProxyModel,
            subject: "server.model".to_owned(),
            asked: original.name.clone(),
            run: stand_in.name.clone(),
            reason: format!(
                "the model needs {needs}, and {devices} x {} are planned for; a smaller one stands in, and its numbers are never compared with the original's",
                place.device.name
            ),
        };
        Some(Proxy { model: stand_in, tensor_parallel, deviation })
    })
}
