//! The table `knowledge/models.toml`.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::table;
use crate::nearest::nearest;

/// In which form a model's weights are published.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelForm {
    /// As the library transformers reads them: a `config.json` and safetensors.
    #[default]
    Transformers,
    /// As a checkpoint of `NeMo`, which neither vLLM nor SGLang loads.
    Nemo,
}

/// One model.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[expect(clippy::struct_excessive_bools, reason = "each is a key of the table, named where it is written")]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ModelRow {
    /// Its name on the hub.
    pub name: String,
    /// Further names for the same config: copies, former names, relatives of the same size.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Whether it is published at all.
    #[serde(default = "yes")]
    pub exists: bool,
    /// If it isn't: published models that may have been meant.
    #[serde(default)]
    pub nearest: Vec<String>,
    /// Whether the hub asks for consent and a token.
    #[serde(default)]
    pub gated: bool,
    /// In which form it is published.
    #[serde(default)]
    pub form: ModelForm,
    /// Whether it takes more than text.
    #[serde(default)]
    pub multimodal: bool,
    /// Whether it is published with code of its own.
    #[serde(default)]
    pub trust_remote_code: bool,
    /// Whether its files hold a shared embedding twice, so that they are larger than what is loaded.
    #[serde(default)]
    pub lm_head_stored_twice: bool,
    /// Parameters in 10^9, as published; what is reckoned with is computed from the config.
    #[serde(default)]
    pub parameters_b: Option<f64>,
    /// Parameters that one token uses, in 10^9, as published.
    #[serde(default)]
    pub active_parameters_b: Option<f64>,
    /// Size of its files of weights in GB (10^9 bytes), as published.
    #[serde(default)]
    pub stored_gb: Option<f64>,
    /// Smaller models that may stand in for it, the best first.
    #[serde(default)]
    pub proxies: Vec<String>,
    /// The keys of its `config.json` from which its size follows; absent for one that isn't published.
    #[serde(default)]
    pub config: Option<Value>,
    /// Where the row comes from.
    pub source: String,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rows {
    model: Vec<ModelRow>,
}

/// The models.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Models {
    rows: Vec<ModelRow>,
    /// Places in `rows` by name and alias, in lower case.
    index: HashMap<String, usize>,
}

impl Models {
    pub(super) fn embedded() -> Self {
        let Rows { model: rows } = table("models.toml", include_str!("../../../../knowledge/models.toml"));
        let mut index = HashMap::new();
        for (place, row) in rows.iter().enumerate() {
            for name in std::iter::once(&row.name).chain(&row.aliases) {
                index.insert(name.to_lowercase(), place);
            }
        }
        Self { rows, index }
    }

    /// Returns every model.
    pub fn rows(&self) -> &[ModelRow] {
        &self.rows
    }

    /// Returns the model of a name or alias, whatever its case, as on the hub.
    pub fn find(&self, name: &str) -> Option<&ModelRow> {
        self.rows.get(*self.index.get(&name.trim().to_lowercase())?)
    }

    /// Returns the published model whose name is nearest to one that isn't known.
    pub fn nearest(&self, name: &str) -> Option<&str> {
        let published = self.rows.iter().filter(|row| row.exists);
        nearest(name, published.flat_map(|row| std::iter::once(&row.name).chain(&row.aliases)).map(String::as_str))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_by_each_of_its_names() {
        let models = Models::embedded();
        for (name, row) in [
            ("meta-llama/Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
            ("neuralmagic/Meta-Llama-3-8B-Instruct-FP8", "RedHatAI/Meta-Llama-3-8B-Instruct-FP8"),
            ("Meta-Llama-3-70B", "meta-llama/Meta-Llama-3-70B"),
            ("qwen/qwen3-30b-a3b-fp8", "Qwen/Qwen3-30B-A3B-FP8"),
        ] {
            assert_eq!(models.find(name).map(|row| row.name.as_str()), Some(row), "{name}");
        }
        assert_eq!(models.find("MODEL"), None);
        assert_eq!(models.nearest("meta-llama/Llama-3.1-8B-Instuct"), Some("meta-llama/Llama-3.1-8B-Instruct"));
        assert_eq!(models.nearest("x"), None);
    }

    #[test]
    fn no_name_means_two_models_and_every_reference_leads_to_a_published_one() {
        let models = Models::embedded();
        let mut names = std::collections::BTreeSet::new();
        for row in models.rows() {
            for name in std::iter::once(&row.name).chain(&row.aliases) {
                assert!(names.insert(name.to_lowercase()), "{name} is the name of two models");
            }
            assert_eq!(row.exists, row.config.is_some(), "{}", row.name);
            assert_eq!(row.exists, row.nearest.is_empty(), "{}", row.name);
            for other in row.proxies.iter().chain(&row.nearest) {
                let found = models.find(other).unwrap_or_else(|| panic!("{}: {other} is no row", row.name));
                assert!(found.exists && found.form == ModelForm::Transformers, "{}: {other}", row.name);
            }
            assert!(!row.source.is_empty());
        }
    }
}
