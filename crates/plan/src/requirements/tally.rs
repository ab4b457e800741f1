//! Counts the parameters of a model, by what becomes of them when it is quantised, sharded or used.

use super::keys::{ConfigError, Keys};

/// Parameters of a model by their part in it. Counts are whole numbers as `f64`: exact up to 9 * 10^15.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Tally {
    /// Matrices of attention (and of state-space layers) without biases.
    pub(super) attention: f64,
    /// Matrices of dense feed-forward layers and of experts that every token uses.
    pub(super) dense: f64,
    /// Matrices of experts that are chosen for each token.
    pub(super) experts: f64,
    /// Norms, biases, routers, positions: never quantised.
    pub(super) rest: f64,
    /// The table of token embeddings.
    pub(super) embedding: f64,
    /// The output matrix, where it isn't the table of embeddings.
    pub(super) head: f64,
    /// The part that sees images.
    pub(super) vision: f64,
    /// Layers that predict further tokens: stored, but loaded only for speculation.
    pub(super) draft: f64,
}

impl Tally {
    /// Returns the parameters that are loaded.
    pub(super) fn loaded(&self) -> f64 {
        self.attention + self.dense + self.experts + self.rest + self.embedding + self.head + self.vision
    }

    fn add(&mut self, layer: &Tally, times: f64) {
        self.attention += layer.attention * times;
        self.dense += layer.dense * times;
        self.experts += layer.experts * times;
        self.rest += layer.rest * times;
    }
}

/// What all families have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basics {
    pub(super) hidden: f64,
    pub(super) layers: f64,
    pub(super) heads: f64,
    pub(super) kv_heads: f64,
    pub(super) head_dim: f64,
    pub(super) vocabulary: f64,
}

/// How a family's layers are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mlp {
    /// Up, gate and down.
    Gated,
    /// Up and down.
    Plain,
}

/// How one family differs from the others.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    mlp: Mlp,
    /// Biases of query, key and value.
    qkv_bias: bool,
    /// Biases of every other matrix, and of norms.
    all_biases: bool,
    /// Whether embeddings and output share a matrix when the config doesn't say.
    tied: bool,
    /// Norms of the hidden size in each layer.
    norms: f64,
}

/// Returns how a family is built, by its `model_type`.
pub(super) fn family(kind: &str) -> Option<Family> {
    let gated = Family { mlp: Mlp::Gated, qkv_bias: false, all_biases: false, tied: false, norms: 2.0 };
    let plain = Family { mlp: Mlp::Plain, qkv_bias: true, all_biases: true, tied: true, norms: 2.0 };
    Some(match kind {
        "llama" | "mistral" | "mixtral" | "qwen3" | "qwen3_moe" | "phi3" | "granite" | "olmo" | "olmo2" | "smollm3"
        | "internlm2" | "internlm3" | "stablelm" | "llama4_text" | "deepseek" | "deepseek_v2" | "deepseek_v3"
        | "bamba" | "nemotron_h" | "jamba" => gated,
        "qwen2" | "qwen2_moe" | "qwen2_vl" | "qwen2_vl_text" | "qwen2_5_vl" | "qwen2_5_vl_text" | "glm" | "glm4" => {
            Family { qkv_bias: true, ..gated }
        }
        "gemma" => Family { tied: true, ..gated },
        "gemma2" | "gemma3" | "gemma3_text" => Family { tied: true, norms: 4.0, ..gated },
        "cohere" | "cohere2" => Family { tied: true, norms: 1.0, ..gated },
        "opt" | "gpt2" | "starcoder2" | "gpt_bigcode" => plain,
        "phi" => Family { tied: false, norms: 1.0, ..plain },
        "gpt_neox" => Family { tied: false, ..plain },
        "nemotron" => Family { qkv_bias: false, all_biases: false, tied: false, norms: 4.0, ..plain },
        _ => return None,
    })
}

/// Counts the parameters of the text part.
pub(super) fn text(keys: Keys<'_>, kind: &str, family: Family, basics: Basics) -> Result<Tally, ConfigError> {
    let Basics { hidden, layers, vocabulary, .. } = basics;
    let mut tally = Tally { embedding: vocabulary * hidden, rest: hidden, ..Tally::default() };
    let tied = keys.switch("tie_word_embeddings").unwrap_or(family.tied);
    if !tied {
        tally.head = vocabulary * hidden;
        tally.rest += if kind == "phi" { vocabulary } else { 0.0 };
    }
    if matches!(kind, "opt" | "gpt2" | "gpt_bigcode") {
        // Learnt positions; OPT has two more than its context.
        let positions = keys.needed_first(&["max_position_embeddings", "n_positions"])?;
        tally.rest += (positions + if kind == "opt" { 2.0 } else { 0.0 }) * hidden;
    }
    match kind {
        "bamba" | "nemotron_h" | "jamba" => hybrid_layers(&mut tally, keys, kind, basics)?,
        _ => {
            let attention = attention(keys, family, basics)?;
            tally.add(&attention, layers);
            feed_forward(&mut tally, keys, kind, family, basics)?;
            draft(&mut tally, keys, &attention, basics)?;
        }
    }
    Ok(tally)
}

/// Counts one attention layer with its norms.
fn attention(keys: Keys<'_>, family: Family, basics: Basics) -> Result<Tally, ConfigError> {
    let Basics { hidden, heads, kv_heads, head_dim, .. } = basics;
    let mut layer = Tally { rest: family.norms * hidden, ..Tally::default() };
    if let Some(rank) = keys.number("kv_lora_rank")? {
        let (nope, rope) = (keys.needed("qk_nope_head_dim")?, keys.needed("qk_rope_head_dim")?);
        let value = keys.needed("v_head_dim")?;
        layer.attention += match keys.number("q_lora_rank")? {
            Some(query) => hidden * query + query * heads * (nope + rope),
            None => hidden * heads * (nope + rope),
        };
        layer.attention += hidden * (rank + rope) + rank * heads * (nope + value) + heads * value * hidden;
        return Ok(layer);
    }
    layer.attention = 2.0 * hidden * head_dim * (heads + kv_heads);
    if keys.switch("attention_bias").unwrap_or(family.qkv_bias) {
        layer.rest += head_dim * (heads + 2.0 * kv_heads);
    }
    if family.all_biases {
        // The output's bias, and those of the norms.
        layer.rest += hidden * (1.0 + family.norms);
    }
    Ok(layer)
}

/// Returns the matrices of one feed-forward block of a width.
fn block(family: Family, hidden: f64, width: f64) -> f64 {
    match family.mlp {
        Mlp::Gated => 3.0 * hidden * width,
        Mlp::Plain => 2.0 * hidden * width,
    }
}

/// Counts the feed-forward blocks of all layers, dense and of experts.
fn feed_forward(
    tally: &mut Tally,
    keys: Keys<'_>,
    kind: &str,
    family: Family,
    basics: Basics,
) -> Result<(), ConfigError> {
    let Basics { hidden, layers, .. } = basics;
    let experts = Experts::read(keys, kind, layers)?;
    let sparse = experts.map_or(0.0, |experts| experts.layers);
    if sparse < layers {
        let width = match kind {
            "llama4_text" => keys.needed("intermediate_size_mlp")?,
            "gpt2" | "gpt_bigcode" => keys.number("n_inner")?.unwrap_or(4.0 * hidden),
            _ => keys.needed_first(&["intermediate_size", "ffn_dim"])?,
        };
        tally.dense += block(family, hidden, width) * (layers - sparse);
        tally.rest += if family.all_biases { (width + hidden) * (layers - sparse) } else { 0.0 };
    }
    if let Some(experts) = experts {
        tally.experts += experts.count * block(family, hidden, experts.width) * experts.layers;
        tally.dense += block(family, hidden, experts.shared_width) * experts.layers;
        tally.rest += experts.count * hidden * experts.layers;
    }
    Ok(())
}

/// Counts layers that predict further tokens: each a whole layer of experts with its own copies of embedding and output.
fn draft(tally: &mut Tally, keys: Keys<'_>, attention: &Tally, basics: Basics) -> Result<(), ConfigError> {
    let (Some(count), Some(width)) = (keys.number("num_nextn_predict_layers")?, keys.number("moe_intermediate_size")?)
    else {
        return Ok(());
    };
    let hidden = basics.hidden;
    let experts = keys.needed("n_routed_experts")?;
    let shared = keys.number("n_shared_experts")?.unwrap_or(0.0);
    let layer = attention.attention + attention.rest + 3.0 * hidden * width * (experts + shared) + experts * hidden;
    tally.draft = count * (layer + 2.0 * hidden * hidden + 2.0 * basics.vocabulary * hidden);
    Ok(())
}

/// The experts of a model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Experts {
    /// In each layer that has any.
    pub(super) count: f64,
    /// Chosen for each token.
    pub(super) used: f64,
    /// The width of one.
    pub(super) width: f64,
    /// The width of those that every token uses, all together.
    pub(super) shared_width: f64,
    /// Layers that have any.
    pub(super) layers: f64,
}

impl Experts {
    /// Returns the experts that a config names, if any.
    pub(super) fn read(keys: Keys<'_>, kind: &str, layers: f64) -> Result<Option<Self>, ConfigError> {
        let count = keys.first(&["num_local_experts", "n_routed_experts", "num_experts"])?;
        let Some(count) = count.filter(|count| *count > 1.0 || kind == "llama4_text") else { return Ok(None) };
        let used = keys.first(&["num_experts_per_tok", "moe_top_k"])?.unwrap_or(1.0).clamp(1.0, count);
        let width = keys.needed_first(&["moe_intermediate_size", "intermediate_size"])?;
        let shared_width = match kind {
            // One shared expert as wide as the others.
            "llama4_text" => width,
            "qwen2_moe" => keys.number("shared_expert_intermediate_size")?.unwrap_or(0.0),
            _ => keys.number("n_shared_experts")?.unwrap_or(0.0) * width,
        };
        let sparse = match kind {
            "llama4_text" => (layers / keys.number("interleave_moe_layer_step")?.unwrap_or(1.0).max(1.0)).floor(),
            "jamba" => {
                let period = keys.number("expert_layer_period")?.unwrap_or(2.0).max(1.0);
                let offset = keys.number("expert_layer_offset")?.unwrap_or(1.0);
                ((layers - offset) / period).ceil().max(0.0)
            }
            "qwen2_moe" | "qwen3_moe" => {
                let step = keys.number("decoder_sparse_step")?.unwrap_or(1.0).max(1.0);
                let dense = keys.list("mlp_only_layers").map_or(0, <[_]>::len);
                ((layers / step).floor() - f64::from(u32::try_from(dense).unwrap_or(u32::MAX))).max(0.0)
            }
            _ => {
                let dense = keys.number("first_k_dense_replace")?.unwrap_or(0.0);
                let step = keys.number("moe_layer_freq")?.unwrap_or(1.0).max(1.0);
                ((layers - dense) / step).ceil().max(0.0)
            }
        };
        Ok(Some(Self { count, used, width, shared_width, layers: sparse }))
    }
}

/// The layers of a hybrid of attention and state-space layers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hybrid {
    /// Layers with attention.
    pub(super) attention: f64,
    /// State-space layers.
    pub(super) state: f64,
    /// Layers with a feed-forward block.
    pub(super) feed_forward: f64,
    /// Numbers that one sequence's state takes in one layer.
    pub(super) state_numbers: f64,
}

impl Hybrid {
    /// Returns the layers of a hybrid model.
    pub(super) fn read(keys: Keys<'_>, kind: &str, basics: Basics) -> Result<Self, ConfigError> {
        let layers = basics.layers;
        let length = |items: usize| f64::from(u32::try_from(items).unwrap_or(u32::MAX));
        let (attention, state, feed_forward) = match kind {
            "bamba" => {
                let attention = keys.list("attn_layer_indices").map_or(0.0, |list| length(list.len())).min(layers);
                (attention, layers - attention, layers)
            }
            "nemotron_h" => {
                let Some(pattern) = keys.text("hybrid_override_pattern") else {
                    return Err(ConfigError::Missing {
                        model: keys.model().to_owned(),
                        key: "hybrid_override_pattern",
                    });
                };
                let count = |wanted| length(pattern.chars().filter(|layer| *layer == wanted).count());
                (count('*'), count('M'), count('-'))
            }
            _ => {
                let period = keys.number("attn_layer_period")?.unwrap_or(8.0).max(1.0);
                let offset = keys.number("attn_layer_offset")?.unwrap_or(4.0);
                let attention = ((layers - offset) / period).ceil().clamp(0.0, layers);
                (attention, layers - attention, layers)
            }
        };
        let shape = StateSpace::read(keys, kind, basics.hidden)?;
        let state_numbers = shape.inner * shape.state + shape.convolved * (shape.kernel - 1.0).max(0.0);
        Ok(Self { attention, state, feed_forward, state_numbers })
    }
}

/// The shape of a state-space layer.
struct StateSpace {
    inner: f64,
    state: f64,
    kernel: f64,
    /// Channels that are convolved.
    convolved: f64,
    /// Parameters of one layer.
    matrices: f64,
}

impl StateSpace {
    fn read(keys: Keys<'_>, kind: &str, hidden: f64) -> Result<Self, ConfigError> {
        let expand = keys.first(&["mamba_expand", "expand"])?.unwrap_or(2.0);
        let state = keys.first(&["mamba_d_state", "ssm_state_size"])?.unwrap_or(128.0);
        let kernel = keys.first(&["mamba_d_conv", "conv_kernel"])?.unwrap_or(4.0);
        if kind == "jamba" {
            let inner = expand * hidden;
            let rank = keys.number("mamba_dt_rank")?.unwrap_or((hidden / 16.0).ceil());
            let matrices = hidden * 2.0 * inner
                + inner * (rank + 2.0 * state)
                + rank * inner
                + inner * (state + kernel + 3.0)
                + inner * hidden;
            return Ok(Self { inner, state, kernel, convolved: inner, matrices });
        }
        let heads = keys.needed_first(&["mamba_n_heads", "mamba_num_heads"])?;
        let inner = heads * keys.needed_first(&["mamba_d_head", "mamba_head_dim"])?;
        let groups = keys.first(&["mamba_n_groups", "n_groups"])?.unwrap_or(1.0);
        let convolved = inner + 2.0 * groups * state;
        let matrices =
            hidden * (inner + convolved + heads) + inner * hidden + convolved * (kernel + 1.0) + inner + 3.0 * heads;
        Ok(Self { inner, state, kernel, convolved, matrices })
    }
}

fn hybrid_layers(tally: &mut Tally, keys: Keys<'_>, kind: &str, basics: Basics) -> Result<(), ConfigError> {
    let Basics { hidden, layers, heads, kv_heads, head_dim, .. } = basics;
    let hybrid = Hybrid::read(keys, kind, basics)?;
    let state = StateSpace::read(keys, kind, hidden)?;
    tally.attention += hybrid.attention * 2.0 * hidden * head_dim * (heads + kv_heads) + hybrid.state * state.matrices;
    tally.rest += 2.0 * hidden * layers;
    let width = keys.needed("intermediate_size")?;
    let matrices = if kind == "nemotron_h" { 2.0 } else { 3.0 };
    let experts = if kind == "jamba" { Experts::read(keys, kind, layers)? } else { None };
    let sparse = experts.map_or(0.0, |experts| experts.layers);
    tally.dense += matrices * hidden * width * (hybrid.feed_forward - sparse).max(0.0);
    if let Some(experts) = experts {
        tally.experts += experts.count * 3.0 * hidden * experts.width * experts.layers;
        tally.rest += experts.count * hidden * experts.layers;
    }
    Ok(())
}
