//! Rules about the model: whether it exists, is the one that is meant, and can be loaded.

use isobench_schema::assessment::{Finding, Severity};
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;

use super::case::{Case, finding};
use super::changed::Changed;
use super::coverage::other_family;
use super::ids;
use super::traits::Traits;
use crate::knowledge::Knowledge;
use crate::knowledge::architectures::{EngineFeature, Support};
use crate::knowledge::models::{ModelForm, ModelRow};

/// Finds models that were never published.
pub(super) fn model_missing(case: &Case<'_>) -> Vec<Finding> {
    let Some(name) = case.model() else { return Vec::new() };
    let Some(row) = case.knowledge.models.find(name).filter(|row| !row.exists) else { return Vec::new() };
    let mut found = finding(ids::MODEL_MISSING, name, format!("no model `{name}` is published"));
    found.evidence.push(row.source.clone());
    if let Some(nearest) = row.nearest.first() {
        found.fix = format!("Name the model that was meant; the nearest that is published is `{nearest}`.");
    }
    vec![found]
}

/// Finds models that aren't the one the row, the commit or the engine can mean.
pub(super) fn model_contradiction(case: &Case<'_>, changed: &Changed<'_>) -> Vec<Finding> {
    [row_against_command(case), model_against_files(case, changed), form(case)].into_iter().flatten().collect()
}

fn row_against_command(case: &Case<'_>) -> Option<Finding> {
    let row = case.task.model.as_deref()?;
    let command = case.given?.model.as_deref()?;
    if is_placeholder(command) || same_model(case.knowledge, row, command) {
        return None;
    }
    let message = format!("the row names `{row}`, and the command names `{command}`");
    let mut found = finding(ids::MODEL_CONTRADICTION, "model", message);
    found.severity = Severity::Warning;
    found.fix = String::from("Make them agree; the command's model is measured.");
    Some(found)
}

fn model_against_files(case: &Case<'_>, changed: &Changed<'_>) -> Option<Finding> {
    let model = case.model().filter(|model| !is_placeholder(model))?;
    let row = other_family(case, changed)?;
    let message = format!("the commit changes {} models only, and `{model}` isn't one", row.family);
    let mut found = finding(ids::MODEL_CONTRADICTION, model, message);
    found.severity = Severity::Warning;
    found.evidence.push(format!("changed: {}", changed.list()));
    found.evidence.extend(case.subject().map(|subject| format!("its subject is \u{201c}{subject}\u{201d}")));
    found.fix = format!("Name a {} model, such as `{}`.", row.family, row.example);
    Some(found)
}

fn form(case: &Case<'_>) -> Option<Finding> {
    let name = case.model()?;
    let row = case.knowledge.models.find(name)?;
    match row.form {
        ModelForm::Transformers => None,
        ModelForm::Nemo => {
            let message = format!("`{name}` is published as a NeMo checkpoint only, which the engine doesn't load");
            let mut found = finding(ids::MODEL_CONTRADICTION, name, message);
            found.evidence.push(row.source.clone());
            Some(found)
        }
    }
}

/// Returns whether two names mean one model: by the catalogue, or by their last parts.
fn same_model(knowledge: &Knowledge, a: &str, b: &str) -> bool {
    let last = |name: &str| name.trim().trim_end_matches('/').rsplit('/').next().unwrap_or("").to_lowercase();
    let by_catalogue = match (knowledge.models.find(a), knowledge.models.find(b)) {
        (Some(a), Some(b)) => a.name == b.name,
        _ => false,
    };
    by_catalogue || last(a) == last(b)
}

/// Returns whether a name is a word like `MODEL` that was never replaced.
fn is_placeholder(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || matches!(c, '_' | '<' | '>' | '$' | '{' | '}'))
}

/// Finds models that the baseline can't load.
pub(super) fn architecture_unsupported(case: &Case<'_>) -> Vec<Finding> {
    let (Some(name), Some(traits), Some(moment)) = (case.model(), case.traits, case.moment()) else {
        return Vec::new();
    };
    let Some(why) = unloadable(case.knowledge, case.task.engine, traits, moment) else { return Vec::new() };
    let message = format!("the baseline of {} can't load `{name}`", day(moment));
    let mut found = finding(ids::ARCHITECTURE_UNSUPPORTED, name, message);
    found.evidence.push(why);
    let row = case.knowledge.models.find(name);
    if let Some(proxy) = row.and_then(|row| loadable_proxy(case, row, moment)) {
        found.fix =
            format!("Ask for a model that the baseline loads, such as `{proxy}`, as a proxy; that is a deviation.");
    }
    vec![found]
}

fn day(moment: &Moment) -> &str {
    moment.as_str().get(..10).unwrap_or(moment.as_str())
}

/// Returns a model that the baseline can load: the first such proxy of the catalogue of about the same size, or the published
/// model of the same architecture that is nearest in size and then in name.
fn loadable_proxy<'k>(case: &Case<'k>, row: &'k ModelRow, moment: &Moment) -> Option<&'k str> {
    /// How far the sizes may be apart, as a ratio.
    const NEAR: f64 = 1.5;
    let models = &case.knowledge.models;
    let size = row.parameters_b?;
    let apart = |other: &ModelRow| Some((other.parameters_b? / size).ln().abs());
    let loads = |other: &ModelRow| {
        let traits = Traits::of_row(other);
        other.form == ModelForm::Transformers
            && traits.is_some_and(|traits| unloadable(case.knowledge, case.task.engine, &traits, moment).is_none())
    };
    let near = |other: &&ModelRow| apart(other).is_some_and(|apart| apart <= NEAR.ln()) && loads(other);
    let proxies = row.proxies.iter().filter_map(|name| models.find(name));
    let first = proxies.filter(near).map(|row| row.name.as_str()).next();
    first.or_else(|| {
        let architecture = Traits::of_row(row)?.architectures;
        let same = |other: &&ModelRow| Traits::of_row(other).is_some_and(|traits| traits.architectures == architecture);
        let far = |other: &ModelRow| apart(other).unwrap_or(f64::MAX);
        let alike = |other: &ModelRow| strsim::normalized_levenshtein(&other.name, &row.name);
        let by_rank =
            |a: &&ModelRow, b: &&ModelRow| far(a).total_cmp(&far(b)).then_with(|| alike(b).total_cmp(&alike(a)));
        models.rows().iter().filter(near).filter(same).min_by(by_rank).map(|row| row.name.as_str())
    })
}

/// Returns why an engine can't load a model at a moment; absent if it can, or may.
fn unloadable(knowledge: &Knowledge, engine: EngineKind, traits: &Traits, moment: &Moment) -> Option<String> {
    if engine == EngineKind::Generic {
        return None;
    }
    let architectures = &knowledge.architectures;
    let came = |what: &str, since: &Moment, commit: &str| format!("{what} came with {commit} on {}", day(since));
    let mut answers = traits.architectures.iter().map(|name| (name, architectures.support(engine, name, moment)));
    // An engine takes the first architecture that it knows.
    if let Some((name, support)) = answers.next()
        && !answers.any(|(_, support)| matches!(support, Support::Yes(_) | Support::Fallback(_)))
    {
        match support {
            Support::Yes(_) | Support::Fallback(_) => {}
            Support::NotYet(span) => return Some(came(&format!("`{name}`"), &span.since, &span.commit)),
            Support::NoLonger(span) => {
                let commit = span.until_commit.as_deref().unwrap_or("a later commit");
                return Some(format!("`{name}` was taken out with {commit}"));
            }
            Support::Never => return Some(format!("the engine never had `{name}`")),
        }
    }
    let needed = [
        ("llama3-rope", EngineFeature::RopeLlama3, "rotary embeddings of type `llama3`"),
        ("fp8-block", EngineFeature::Fp8Block, "FP8 weights with a scale for each block"),
        ("fp8", EngineFeature::Fp8, "FP8 weights"),
        ("compressed-tensors", EngineFeature::CompressedTensors, "weights as compressed-tensors stores them"),
    ];
    needed.into_iter().filter(|(name, ..)| traits.has(name) == Some(true)).find_map(|(name, feature, what)| {
        // compressed-tensors has its own FP8.
        let own = name == "fp8" && traits.has("compressed-tensors") == Some(true);
        if own || architectures.feature(engine, feature, moment).is_some() {
            return None;
        }
        let first = architectures.first(engine, feature)?;
        (*moment < first.since).then(|| came(what, &first.since, &first.commit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_names_of_one_model_do_not_contradict_each_other() {
        let knowledge = Knowledge::embedded();
        for (a, b, expected) in [
            ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Meta-Llama-3.1-8B-Instruct", true),
            ("neuralmagic/Some-Model", "RedHatAI/some-model", true),
            ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B", false),
            ("x", "y", false),
        ] {
            assert_eq!(same_model(knowledge, a, b), expected, "{a} {b}");
        }
    }

    #[test]
    fn a_word_in_capitals_is_a_placeholder() {
        assert!(is_placeholder("MODEL") && is_placeholder("<MODEL_NAME>"));
        assert!(!is_placeholder("facebook/opt-125m") && !is_placeholder(""));
    }
}
