//! What rules ask about a model, read from its `config.json`.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::knowledge::models::ModelRow;

/// Names that conditions in tables may use.
pub const TRAITS: &[&str] = &[
    "moe",
    "mla",
    "ssm",
    "images",
    "quantised",
    "fp8",
    "fp8-block",
    "compressed-tensors",
    "llama3-rope",
    "bfloat16",
    "sliding-window",
];

/// What is known of a model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Traits {
    /// The architectures that its config names.
    pub architectures: Vec<String>,
    /// Which of [`TRAITS`] it has.
    present: BTreeSet<&'static str>,
}

impl Traits {
    /// Returns the traits of a model of the catalogue; none if it isn't published.
    pub fn of_row(row: &ModelRow) -> Option<Self> {
        let mut traits = Self::of_config(row.config.as_ref()?);
        if row.multimodal {
            traits.present.insert("images");
        }
        Some(traits)
    }

    /// Returns the traits of a model by its `config.json`.
    pub fn of_config(config: &Value) -> Self {
        let text = config.get("text_config").unwrap_or(config);
        let number = |name: &str| text.get(name).or_else(|| config.get(name)).and_then(Value::as_u64).unwrap_or(0);
        let architectures: Vec<String> = strings(config.get("architectures"));
        let recurrent = ["Mamba", "Bamba", "NemotronH", "Jamba", "Zamba", "FalconH1"];
        let quantisation = config.get("quantization_config");
        let method = quantisation.and_then(|found| found.get("quant_method")).and_then(Value::as_str).unwrap_or("");
        let rope = text.get("rope_scaling").and_then(|rope| rope.get("rope_type").or_else(|| rope.get("type")));
        let dtype = ["torch_dtype", "dtype"].iter().find_map(|name| text.get(name).or_else(|| config.get(name)));
        let facts = [
            ("moe", ["num_local_experts", "num_experts", "n_routed_experts"].iter().any(|name| number(name) > 1)),
            ("mla", number("kv_lora_rank") > 0),
            ("ssm", architectures.iter().any(|name| recurrent.iter().any(|part| name.contains(part)))),
            ("images", config.get("vision_config").is_some()),
            ("quantised", quantisation.is_some()),
            ("fp8", method == "fp8" || method == "compressed-tensors" && has_float_weights(quantisation)),
            ("fp8-block", quantisation.is_some_and(|found| found.get("weight_block_size").is_some())),
            ("compressed-tensors", method == "compressed-tensors"),
            ("llama3-rope", rope.and_then(Value::as_str) == Some("llama3")),
            ("bfloat16", dtype.and_then(Value::as_str) == Some("bfloat16")),
            ("sliding-window", number("sliding_window") > 0),
        ];
        Self { architectures, present: facts.into_iter().filter(|(_, is)| *is).map(|(name, _)| name).collect() }
    }

    /// Returns whether the model has a trait; absent for a name that is no trait.
    pub fn has(&self, name: &str) -> Option<bool> {
        TRAITS.contains(&name).then(|| self.present.contains(name))
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let values = value.and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    values.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

/// Returns whether the weights are floating-point numbers of 8 bits, as compressed-tensors says it.
fn has_float_weights(quantisation: Option<&Value>) -> bool {
    let groups = quantisation.and_then(|found| found.get("config_groups")).and_then(Value::as_object);
    groups.is_some_and(|groups| {
        groups.values().filter_map(|group| group.get("weights")).any(|weights| {
            weights.get("type").and_then(Value::as_str) == Some("float")
                && weights.get("num_bits").and_then(Value::as_u64) == Some(8)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::Knowledge;

    #[test]
    fn the_catalogue_gives_each_model_its_traits() {
        for (model, expected) in [
            ("meta-llama/Llama-3.1-8B-Instruct", "bfloat16 llama3-rope"),
            ("deepseek-ai/DeepSeek-V3", "bfloat16 fp8 fp8-block mla moe quantised"),
            (
                "RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic",
                "bfloat16 compressed-tensors fp8 images moe quantised",
            ),
            (
                "RedHatAI/Llama-4-Scout-17B-16E-Instruct-quantized.w4a16",
                "bfloat16 compressed-tensors images moe quantised",
            ),
            ("Qwen/Qwen2.5-VL-3B-Instruct", "bfloat16 images"),
            ("ibm-ai-platform/Bamba-9B", "bfloat16 ssm"),
            ("facebook/opt-125m", ""),
        ] {
            let row = Knowledge::embedded().models.find(model).unwrap();
            let traits = Traits::of_row(row).unwrap();
            let present: Vec<&str> = traits.present.iter().copied().collect();
            assert_eq!(present.join(" "), expected, "{model}");
        }
    }
}
