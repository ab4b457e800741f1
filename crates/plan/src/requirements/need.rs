//! Devices and memory: the rule of `docs/methodology.md`, "What a launch needs".
//!
//! Per device, in GB (10^9 bytes): weights / TP + cache per token * context + 4 GB must be at most 0.9 * memory. TP must
//! divide the attention heads, and the heads of keys and values or be a multiple of them; blocks of scales must not be cut.

use isobench_schema::assessment::DeviceNeed;
use isobench_schema::environment::EngineKind;
use isobench_schema::workload::Workload;

use super::load::{Lengths, at_once};
use super::model::{Attention, Model, WindowKind, lossy, weights};
use super::options::ServerOptions;
use super::place::Place;
use super::quantization::{Quantization, whole};
use crate::knowledge::architectures::EngineFeature;

/// GB on each device besides weights and cache: activations, graphs, communication, context.
pub const OVERHEAD_GB: f64 = 4.0;

/// The tensor parallel sizes that are tried: up to two machines of eight devices.
pub const SIZES: [u32; 5] = [1, 2, 4, 8, 16];

/// Bytes of a GB.
const GB: f64 = 1e9;

/// One model under one set of options, at one place: everything that its memory follows from.
#[derive(Debug, Clone)]
pub struct Sizing<'a> {
    model: &'a Model,
    options: &'a ServerOptions,
    place: &'a Place<'a>,
    quantization: Option<Quantization>,
    /// Bytes of all weights.
    pub weights_bytes: f64,
    /// Tokens of the longest request that must fit.
    pub context: u64,
    /// Bytes of cache that one token takes in a layer that holds the whole context, on one device of many.
    latent: bool,
}

impl<'a> Sizing<'a> {
    /// Returns the sizes of a model. `longest` is the longest request of the workload, if one is known.
    pub fn new(model: &'a Model, options: &'a ServerOptions, place: &'a Place<'a>, longest: Option<u64>) -> Self {
        let asked = options.quantization.as_deref().and_then(Quantization::asked);
        let quantization = model.quantization.clone().or(asked);
        let weights_bytes = weights(&model.tally, quantization.as_ref(), options.bytes());
        let limit = options.max_model_len.unwrap_or(model.context);
        // An engine that doesn't insist on the whole context needs room for the longest request alone.
        let must_fit = place.has(EngineFeature::ContextMustFit);
        let context = if must_fit { limit } else { longest.map_or(limit, |longest| longest.min(limit)) };
        let latent = place.has(EngineFeature::MlaCache);
        Self { model, options, place, quantization, weights_bytes, context, latent }
    }

    /// Returns the bytes of cache that `tokens` of one sequence take on each device of `tensor_parallel`.
    pub fn cache_bytes(&self, tokens: f64, tensor_parallel: u32) -> f64 {
        let numbers = match (self.model.attention, self.latent) {
            (Attention::Heads { kv_heads, head_dim }, _) => {
                let shared = f64::from(tensor_parallel).min(lossy(kv_heads));
                2.0 * lossy(kv_heads) * lossy(head_dim) / shared
            }
            // Every device holds the whole latent vector.
            (Attention::Latent { rank, rope_dim, .. }, true) => lossy(rank) + lossy(rope_dim),
            (Attention::Latent { padded_head_dim, .. }, false) => {
                let heads = lossy(self.model.heads);
                2.0 * heads * lossy(padded_head_dim) / f64::from(tensor_parallel).min(heads)
            }
            (Attention::None, _) => 0.0,
        };
        let layers = lossy(self.model.attention_layers);
        let windowed = match self.model.window {
            Some(window) if self.place.has(window_feature(window.kind)) => {
                (lossy(window.layers).min(layers), tokens.min(lossy(window.tokens)))
            }
            Some(_) | None => (0.0, 0.0),
        };
        let held = (layers - windowed.0) * tokens + windowed.0 * windowed.1;
        let state = lossy(self.model.state_bytes) / f64::from(tensor_parallel);
        numbers * held * self.options.kv_bytes() + state
    }

    /// Returns the GB that each device needs for weights, one sequence of the full context, and the rest.
    pub fn device_gb(&self, tensor_parallel: u32) -> f64 {
        let split = f64::from(tensor_parallel) * f64::from(self.pipeline());
        // A pipeline also splits the layers' cache.
        let cache = self.cache_bytes(lossy(self.context), tensor_parallel) / f64::from(self.pipeline());
        (self.weights_bytes / split + cache) / GB + OVERHEAD_GB
    }

    /// Returns the GB of each device that the engine may take.
    pub fn available_gb(&self) -> f64 {
        self.memory_share() * self.place.device.memory_gb
    }

    fn memory_share(&self) -> f64 {
        self.options.memory_share.unwrap_or(Place::default_memory_share())
    }

    fn pipeline(&self) -> u32 {
        self.options.pipeline_parallel.unwrap_or(1).max(1)
    }

    /// Returns why the model can't be sharded over so many devices, if it can't.
    pub fn refusal(&self, tensor_parallel: u32) -> Option<String> {
        let tp = u64::from(tensor_parallel);
        if tp <= 1 {
            return None;
        }
        let model = self.model;
        if !model.heads.is_multiple_of(tp) {
            return Some(format!("{} attention heads can't be divided among {tp} devices", model.heads));
        }
        if let Attention::Heads { kv_heads, .. } = model.attention
            && !kv_heads.is_multiple_of(tp)
            && !tp.is_multiple_of(kv_heads)
        {
            return Some(format!("{kv_heads} heads of keys and values can't be divided among {tp} devices"));
        }
        let quantized = self.quantization.as_ref()?;
        let block = quantized.block?;
        let cut = |width: u64| width > 0 && !(width.is_multiple_of(tp) && (width / tp).is_multiple_of(block));
        let experts = model.experts.filter(|_| !self.options.expert_parallel);
        let sparse_only = model.experts.is_some() && model.kind != "deepseek_v2" && model.kind != "deepseek_v3";
        let widths = [experts.map_or(0, |experts| experts.width), if sparse_only { 0 } else { model.width }];
        let width = widths.into_iter().find(|width| cut(*width))?;
        let what = if Some(width) == experts.map(|experts| experts.width) { "experts" } else { "feed-forward layers" };
        Some(format!(
            "the {what} are {width} wide, which {tp} devices can't share without cutting the {} scales' blocks of {block}",
            quantized.method
        ))
    }

    /// Returns whether a launch fits so many devices.
    pub fn fits(&self, tensor_parallel: u32) -> bool {
        self.refusal(tensor_parallel).is_none() && self.device_gb(tensor_parallel) <= self.available_gb()
    }

    /// Returns the smallest tensor parallel size on which a launch fits.
    pub fn smallest(&self) -> Option<u32> {
        SIZES.into_iter().find(|size| self.fits(*size))
    }

    /// Returns the tokens of sequences of a mean length that the cache holds at once.
    pub fn capacity_tokens(&self, tensor_parallel: u32, mean_tokens: f64) -> u64 {
        let split = f64::from(tensor_parallel) * f64::from(self.pipeline());
        let free = (self.available_gb() - OVERHEAD_GB) * GB - self.weights_bytes / split;
        let mean = mean_tokens.max(1.0);
        let one = self.cache_bytes(mean, tensor_parallel) / f64::from(self.pipeline());
        if one <= 0.0 { u64::MAX } else { whole((free / one).max(0.0) * mean) }
    }
}

fn window_feature(kind: WindowKind) -> EngineFeature {
    match kind {
        WindowKind::Sliding => EngineFeature::SlidingWindowCache,
        WindowKind::Chunked => EngineFeature::ChunkedAttentionCache,
    }
}

/// Returns what a launch needs.
pub fn need(model: &Model, options: &ServerOptions, workload: Option<&Workload>, place: &Place<'_>) -> DeviceNeed {
    let lengths = workload.map(Lengths::of);
    let sizing = Sizing::new(model, options, place, lengths.as_ref().map(|lengths| lengths.longest));
    let asked = options.tensor_parallel;
    let smallest = sizing.smallest();
    let taken = asked.filter(|size| sizing.fits(*size)).or(smallest);
    let copies = options.data_parallel.unwrap_or(1).max(1);
    let devices = taken.map(|size| size.saturating_mul(sizing.pipeline()).saturating_mul(copies));
    let shown = taken.or(asked).unwrap_or(1);
    let workload_tokens = match (workload, &lengths) {
        (Some(workload), Some(lengths)) => {
            let sequences = options.max_sequences.unwrap_or_else(|| place.default_sequences()).min(at_once(workload));
            let wanted = whole(f64::from(sequences) * lengths.whole());
            wanted.min(sizing.capacity_tokens(shown, lengths.whole()))
        }
        _ => 0,
    };
    let mut because = weights_sentences(&sizing);
    because.extend(cache_sentences(&sizing));
    because.extend(lengths.and_then(|lengths| lengths.assumed));
    because.extend(size_sentences(&sizing, asked, smallest));
    DeviceNeed {
        model: model.name.clone(),
        devices,
        asked_tensor_parallel: asked,
        weights_gb: rounded(sizing.weights_bytes / GB),
        kv_bytes_per_token: whole(kv_per_token(&sizing)),
        context_tokens: sizing.context,
        workload_tokens,
        device_gb: rounded(sizing.device_gb(shown) / sizing.memory_share()),
        because,
    }
}

/// Returns the cache of one more token in layers that hold the whole context, all devices together.
fn kv_per_token(sizing: &Sizing<'_>) -> f64 {
    let model = sizing.model;
    let numbers = match (model.attention, sizing.latent) {
        (Attention::Latent { padded_head_dim, .. }, false) => 2.0 * lossy(model.heads) * lossy(padded_head_dim),
        (attention, _) => attention.numbers(),
    };
    numbers * lossy(model.attention_layers) * sizing.options.kv_bytes()
}

fn rounded(gb: f64) -> f64 {
    (gb * 100.0).round() / 100.0
}

fn weights_sentences(sizing: &Sizing<'_>) -> Vec<String> {
    let model = sizing.model;
    let billions = lossy(model.parameters) / 1e9;
    let precision = match &sizing.quantization {
        Some(quantized) => format!("{} with {:.3} bits each where quantised", quantized.method, quantized.bits),
        None => format!("{:.0} bytes each", sizing.options.bytes()),
    };
    let mut said =
        vec![format!("{billions:.2} billion parameters, {precision}, are {:.1} GB", sizing.weights_bytes / GB)];
    if let (Some(method), None) = (&sizing.options.quantization, &sizing.quantization) {
        said.push(format!("what `--quantization {method}` saves is not known, so that nothing is subtracted for it"));
    }
    if sizing.options.load_format.as_deref() == Some("dummy") {
        said.push("`--load-format dummy` saves the download, not the memory".to_owned());
    }
    if model.multimodal {
        said.push(
            "a model that sees images also profiles its encoder at the start, which can take several GB more"
                .to_owned(),
        );
    }
    said
}

fn cache_sentences(sizing: &Sizing<'_>) -> Vec<String> {
    let model = sizing.model;
    let mut said = vec![format!(
        "a token takes {:.0} bytes of cache in {} layers with attention",
        kv_per_token(sizing),
        model.attention_layers
    )];
    if let Attention::Latent { padded_head_dim, .. } = model.attention {
        said.push(if sizing.latent {
            "the cache holds the latent vector of multi-head latent attention, whole on each device".to_owned()
        } else {
            format!(
                "at this revision the cache holds every head in full, padded to {padded_head_dim}: \
                 it can't use the latent vector yet"
            )
        });
    }
    if let Some(window) = model.window {
        let held = if sizing.place.has(window_feature(window.kind)) {
            "hold only"
        } else {
            "could hold only, but at this revision don't,"
        };
        said.push(format!("{} of the layers {held} the last {} tokens", window.layers, window.tokens));
    }
    if model.state_bytes > 0 {
        said.push(format!("each sequence also takes {:.0} MB of state", lossy(model.state_bytes) / 1e6));
    }
    let option = match sizing.place.engine {
        EngineKind::Sglang => "--context-length",
        EngineKind::Vllm | EngineKind::Generic => "--max-model-len",
    };
    said.push(match (sizing.place.has(EngineFeature::ContextMustFit), sizing.options.max_model_len) {
        (true, Some(limit)) => format!("one request of {limit} tokens, by `{option}`, must fit"),
        (true, None) => format!(
            "one request of the model's whole context, {} tokens, must fit, since `{option}` isn't given",
            model.context
        ),
        (false, _) => format!("the longest request, {} tokens, must fit", sizing.context),
    });
    said
}

fn size_sentences(sizing: &Sizing<'_>, asked: Option<u32>, smallest: Option<u32>) -> Vec<String> {
    let device = sizing.place.device;
    let sum = |size: u32| {
        format!(
            "{:.1} GB of {:.1} GB that may be used of each {}",
            sizing.device_gb(size),
            sizing.available_gb(),
            device.name
        )
    };
    let mut said = Vec::new();
    if let Some(asked) = asked.filter(|asked| !sizing.fits(*asked)) {
        said.push(match sizing.refusal(asked) {
            Some(why) => format!("tensor parallel size {asked}, as asked, is refused: {why}"),
            None => format!("tensor parallel size {asked}, as asked, needs {}", sum(asked)),
        });
    }
    if let Some(size) = smallest {
        for refused in SIZES.into_iter().filter(|other| *other < size) {
            said.extend(sizing.refusal(refused).map(|why| format!("tensor parallel size {refused} is refused: {why}")));
        }
        said.push(format!("tensor parallel size {size} is the smallest that fits, with {}", sum(size)));
    } else {
        let largest = SIZES.into_iter().rev().find(|size| sizing.refusal(*size).is_none()).unwrap_or(1);
        said.push(format!("no tensor parallel size up to 16 fits: {largest} needs {}", sum(largest)));
        said.extend(SIZES.into_iter().find_map(|size| sizing.refusal(size)));
    }
    said
}
