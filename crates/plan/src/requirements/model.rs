//! What is known of a model: how large it is, what it caches for each token, and what limits its sharding.

use serde_json::Value;

use super::keys::{ConfigError, Keys};
use super::quantization::{Quantization, whole};
use super::tally::{self, Basics, Experts, Hybrid, Tally};
use super::vision::vision;
use crate::knowledge::Models;

/// What a layer of attention caches for each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// A key and a value for each head.
    Heads {
        /// Heads of keys and values.
        kv_heads: u64,
        /// Numbers in each.
        head_dim: u64,
    },
    /// One latent vector (multi-head latent attention).
    Latent {
        /// Numbers in the vector.
        rank: u64,
        /// Numbers with the position.
        rope_dim: u64,
        /// Numbers of a head as engines cache them that don't know the latent vector: padded to 256.
        padded_head_dim: u64,
    },
    /// No layer has attention.
    None,
}

/// Which layers cache only the last tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// How many tokens.
    pub tokens: u64,
    /// In how many layers.
    pub layers: u64,
    /// Whether the window slides or is cut into chunks.
    pub kind: WindowKind,
}

/// How a window moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowKind {
    /// Each token sees so many before it.
    Sliding,
    /// Each token sees those of its own chunk.
    Chunked,
}

/// The experts that are chosen for each token.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelExperts {
    /// Experts in a layer.
    pub count: u64,
    /// Of these, chosen for a token.
    pub used: u64,
    /// The width of one.
    pub width: u64,
    /// The share of all parameters that is in them.
    pub share: f64,
}

/// What is known of a model's size and shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// Its name, as it was asked for.
    pub name: String,
    /// Its architecture, the first of the config's list.
    pub architecture: Option<String>,
    /// Its `model_type`.
    pub kind: String,
    /// Parameters that are loaded.
    pub parameters: u64,
    /// Parameters that one token uses, embeddings included.
    pub active_parameters: u64,
    /// Parameters of layers that predict further tokens: stored, not loaded.
    pub draft_parameters: u64,
    /// Bytes of the weights as loaded without further options.
    pub weights_bytes: u64,
    /// Of these, bytes of the table of token embeddings, of which a token reads one row.
    pub embedding_bytes: u64,
    /// The size of the hidden state.
    pub hidden: u64,
    /// Layers.
    pub layers: u64,
    /// Layers with attention.
    pub attention_layers: u64,
    /// Attention heads.
    pub heads: u64,
    /// What attention caches.
    pub attention: Attention,
    /// The width of a dense feed-forward block.
    pub width: u64,
    /// Experts, if any.
    pub experts: Option<ModelExperts>,
    /// Layers that cache only the last tokens, if any.
    pub window: Option<Window>,
    /// Bytes of state that each sequence takes beside its cache, in 16-bit numbers.
    pub state_bytes: u64,
    /// How its weights are quantised, if they are.
    pub quantization: Option<Quantization>,
    /// Tokens in its vocabulary.
    pub vocabulary: u64,
    /// The longest context that it takes without further options.
    pub context: u64,
    /// The type of its scaled rotary embeddings, such as `llama3`.
    pub rope: Option<String>,
    /// Whether it has a part that sees images or hears.
    pub multimodal: bool,
    /// Parameters by their part, to reckon with another precision.
    pub(super) tally: Tally,
}

/// Bytes of a number in half precision, in which engines load what isn't quantised.
pub(super) const HALF_BYTES: f64 = 2.0;

impl Model {
    /// Reads a model's `config.json`.
    ///
    /// # Errors
    /// Returns which key is missing or wrong, or that the size of such a model isn't known.
    pub fn from_config(name: &str, config: &Value) -> Result<Self, ConfigError> {
        let root = Keys::new(name, config)?;
        // A model of several parts keeps the text's keys in an object of their own; older ones keep them at the top.
        let keys = root.object("text_config").or_else(|| root.object("llm_config")).unwrap_or(root);
        let architecture = root.list("architectures").and_then(|list| list.first()?.as_str()).map(str::to_owned);
        let kind = keys.text("model_type").or_else(|| root.text("model_type"));
        let unknown = |kind: &str| ConfigError::UnknownKind { model: name.to_owned(), kind: kind.to_owned() };
        let kind = kind.ok_or_else(|| unknown(architecture.as_deref().unwrap_or("unnamed")))?;
        let family = tally::family(kind).ok_or_else(|| unknown(kind))?;
        let basics = basics(keys)?;
        let mut counted = tally::text(keys, kind, family, basics)?;
        let tower = root.object("vision_config");
        if let Some(tower) = tower {
            counted.vision = vision(tower, basics.hidden)?;
        }
        let quantization = Quantization::read(root)?.or(Quantization::read(keys)?);
        let experts = Experts::read(keys, kind, basics.layers)?;
        let hybrid = match kind {
            "bamba" | "nemotron_h" | "jamba" => Some(Hybrid::read(keys, kind, basics)?),
            _ => None,
        };
        let attention_layers = hybrid.map_or(basics.layers, |hybrid| hybrid.attention);
        let used_share = experts.map_or(1.0, |experts| experts.used / experts.count);
        Ok(Self {
            name: name.to_owned(),
            architecture,
            kind: kind.to_owned(),
            parameters: whole(counted.loaded()),
            active_parameters: whole(counted.loaded() - counted.experts * (1.0 - used_share)),
            draft_parameters: whole(counted.draft),
            weights_bytes: whole(weights(&counted, quantization.as_ref(), HALF_BYTES)),
            embedding_bytes: whole(counted.embedding * HALF_BYTES),
            hidden: whole(basics.hidden),
            layers: whole(basics.layers),
            attention_layers: whole(attention_layers),
            heads: whole(basics.heads),
            attention: attention(keys, basics, attention_layers)?,
            width: whole(keys.first(&["intermediate_size_mlp", "intermediate_size", "ffn_dim"])?.unwrap_or(0.0)),
            experts: experts.map(|experts| ModelExperts {
                count: whole(experts.count),
                used: whole(experts.used),
                width: whole(experts.width),
                share: counted.experts / counted.loaded(),
            }),
            window: window(keys, kind, basics.layers)?,
            state_bytes: hybrid.map_or(0, |hybrid| whole(hybrid.state * hybrid.state_numbers * HALF_BYTES)),
            quantization,
            vocabulary: whole(basics.vocabulary),
            context: whole(keys.needed_first(&["max_position_embeddings", "n_positions", "max_sequence_length"])?),
            rope: rope(keys),
            multimodal: tower.is_some() || root.object("audio_config").is_some(),
            tally: counted,
        })
    }

    /// Returns the bytes of the weights in the files, layers that predict further tokens included.
    pub fn stored_bytes(&self) -> u64 {
        let draft = Tally { experts: self.tally.draft, ..Tally::default() };
        self.weights_bytes + whole(weights(&draft, self.quantization.as_ref(), HALF_BYTES))
    }

    /// Returns the bytes of key-value cache that one token takes in all layers together, on all devices together, if engines
    /// cache what the model's attention needs, in numbers of `bytes` bytes.
    pub fn kv_bytes_per_token(&self, bytes: f64) -> u64 {
        let layers = lossy(self.attention_layers);
        whole(layers * bytes * self.attention.numbers())
    }
}

impl Attention {
    /// Returns the numbers that one layer caches for a token.
    pub(super) fn numbers(self) -> f64 {
        match self {
            Self::Heads { kv_heads, head_dim } => 2.0 * lossy(kv_heads) * lossy(head_dim),
            Self::Latent { rank, rope_dim, .. } => lossy(rank) + lossy(rope_dim),
            Self::None => 0.0,
        }
    }
}

/// Returns a whole number as `f64`: exact below 9 * 10^15, beyond what any model has.
pub(super) fn lossy(number: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
    let number = number as f64;
    number
}

/// Returns the bytes of weights whose unquantised part takes `bytes` a number.
pub(super) fn weights(tally: &Tally, quantization: Option<&Quantization>, bytes: f64) -> f64 {
    let plain = (tally.rest + tally.embedding + tally.head + tally.vision) * bytes;
    let (matrices, attention) = (tally.dense + tally.experts, tally.attention);
    match quantization {
        None => plain + (matrices + attention) * bytes,
        Some(quantized) => {
            let small = quantized.bits / 8.0;
            plain + matrices * small + attention * if quantized.attention { small } else { bytes }
        }
    }
}

fn basics(keys: Keys<'_>) -> Result<Basics, ConfigError> {
    let hidden = keys.needed_first(&["hidden_size", "n_embd", "d_model"])?;
    let heads = keys.needed_first(&["num_attention_heads", "n_head", "attention_heads"])?;
    let multi_query = keys.switch("multi_query") == Some(true);
    let kv_heads = keys.first(&["num_key_value_heads", "num_kv_heads"])?;
    let head_dim = keys.first(&["head_dim", "attention_head_dim"])?.filter(|dim| *dim >= 1.0);
    Ok(Basics {
        hidden,
        layers: keys.needed_first(&["num_hidden_layers", "n_layer", "num_layers"])?,
        heads,
        kv_heads: kv_heads.filter(|heads| *heads >= 1.0).unwrap_or(if multi_query { 1.0 } else { heads }),
        head_dim: head_dim.unwrap_or((hidden / heads).floor().max(1.0)),
        vocabulary: keys.needed("vocab_size")?,
    })
}

fn attention(keys: Keys<'_>, basics: Basics, layers: f64) -> Result<Attention, ConfigError> {
    /// The head sizes that attention kernels have.
    const HEAD_SIZES: [f64; 4] = [32.0, 64.0, 128.0, 256.0];
    if layers < 1.0 {
        return Ok(Attention::None);
    }
    if let Some(rank) = keys.number("kv_lora_rank")? {
        let rope_dim = keys.needed("qk_rope_head_dim")?;
        let query = keys.needed("qk_nope_head_dim")? + rope_dim;
        let padded = HEAD_SIZES.into_iter().find(|size| *size >= query).unwrap_or(query);
        let (rank, rope_dim) = (whole(rank), whole(rope_dim));
        return Ok(Attention::Latent { rank, rope_dim, padded_head_dim: whole(padded) });
    }
    Ok(Attention::Heads { kv_heads: whole(basics.kv_heads), head_dim: whole(basics.head_dim) })
}

fn window(keys: Keys<'_>, kind: &str, layers: f64) -> Result<Option<Window>, ConfigError> {
    let listed = |name: &str| {
        let types = keys.list("layer_types")?;
        let count = types.iter().filter(|layer| layer.as_str() == Some(name)).count();
        u32::try_from(count).ok().map(f64::from)
    };
    let of = |tokens: f64, in_layers: f64, kind| {
        let (tokens, layers) = (whole(tokens), whole(in_layers.clamp(0.0, layers)));
        (tokens > 0 && layers > 0).then_some(Window { tokens, layers, kind })
    };
    if let Some(chunk) = keys.number("attention_chunk_size")? {
        let full = (layers / keys.number("no_rope_layer_interval")?.unwrap_or(4.0).max(1.0)).floor();
        return Ok(of(chunk, listed("chunked_attention").unwrap_or(layers - full), WindowKind::Chunked));
    }
    let Some(tokens) = keys.number("sliding_window")? else { return Ok(None) };
    if keys.switch("use_sliding_window") == Some(false) {
        return Ok(None);
    }
    let every = match kind {
        "gemma2" => Some(2.0),
        "gemma3" | "gemma3_text" => Some(keys.number("sliding_window_pattern")?.unwrap_or(6.0)),
        "cohere2" => Some(keys.number("sliding_window_pattern")?.unwrap_or(4.0)),
        _ => None,
    };
    let in_layers = listed("sliding_attention").unwrap_or(match every {
        Some(every) => layers - (layers / every.max(1.0)).floor(),
        None => layers - keys.number("max_window_layers")?.filter(|_| kind.starts_with("qwen")).unwrap_or(0.0),
    });
    Ok(of(tokens, in_layers, WindowKind::Sliding))
}

fn rope(keys: Keys<'_>) -> Option<String> {
    let scaling = keys.object("rope_scaling").or_else(|| keys.object("rope_parameters"))?;
    scaling.text("rope_type").or_else(|| scaling.text("type")).map(str::to_owned)
}

/// Why nothing can be reckoned with for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// It is in no table, and no config of it was found.
    #[error("nothing is known of the model `{name}`{hint}; put its config.json into the hub's cache or a folder")]
    Unknown {
        /// Its name.
        name: String,
        /// `; did you mean ..?`, or nothing.
        hint: String,
    },
    /// It was never published.
    #[error("no model `{name}` was ever published; the nearest is {instead}")]
    NotPublished {
        /// Its name.
        name: String,
        /// What may have been meant, between backticks.
        instead: String,
    },
    /// Its config can't be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Returns what is known of a model: by its config where one was read, else by the table.
///
/// # Errors
/// Returns that neither knows it, or what is wrong with its config.
pub fn model(models: &Models, name: &str, config: Option<&Value>) -> Result<Model, ModelError> {
    if let Some(config) = config {
        return Ok(Model::from_config(name, config)?);
    }
    let Some(row) = models.find(name) else {
        let hint = models.nearest(name).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        return Err(ModelError::Unknown { name: name.to_owned(), hint });
    };
    let Some(config) = &row.config else {
        let instead: Vec<String> = row.nearest.iter().map(|near| format!("`{near}`")).collect();
        return Err(ModelError::NotPublished { name: name.to_owned(), instead: instead.join(" or ") });
    };
    Ok(Model::from_config(name, config)?)
}
