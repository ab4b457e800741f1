//! The table `knowledge/architectures.toml`: which models each engine can load, and when.

use std::collections::HashMap;

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use serde::Deserialize;

use super::table;

/// One span of time in which an engine can load an architecture.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct ArchitectureSpan {
    /// The architecture, as in the key `architectures` of a model's `config.json`.
    pub name: String,
    /// The first moment at which it can be loaded.
    pub since: Moment,
    /// The commit that added it, 12 digits.
    pub commit: String,
    /// The first moment at which it no longer can; absent: it still can.
    #[serde(default)]
    pub until: Option<Moment>,
    /// The commit that removed it, 12 digits.
    #[serde(default)]
    pub until_commit: Option<String>,
}

impl ArchitectureSpan {
    /// Returns whether it holds at a moment.
    pub fn holds(&self, moment: &Moment) -> bool {
        self.since <= *moment && self.until.as_ref().is_none_or(|until| moment < until)
    }
}

/// The architectures of one engine.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct EngineArchitectures {
    /// The engine.
    pub engine: EngineKind,
    /// Where the rows come from.
    pub source: String,
    /// The spans, oldest first.
    pub architecture: Vec<ArchitectureSpan>,
}

/// Something else that decides whether a model loads or how much it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EngineFeature {
    /// Rotary embeddings of type `llama3` (Llama 3.1 and later).
    RopeLlama3,
    /// Weights in FP8 with one scale for each tensor or channel.
    #[serde(rename = "quantization-fp8")]
    Fp8,
    /// Weights in FP8 with a scale for each block.
    #[serde(rename = "quantization-fp8-block")]
    Fp8Block,
    /// Weights as the library compressed-tensors stores them.
    #[serde(rename = "quantization-compressed-tensors")]
    CompressedTensors,
    /// Multi-head latent attention caches its latent vector.
    MlaCache,
    /// Layers with a sliding window cache only the window.
    SlidingWindowCache,
    /// Layers with chunked attention cache only the chunk.
    ChunkedAttentionCache,
    /// The engine doesn't start if one request of the full context doesn't fit.
    ContextMustFit,
    /// Models without an implementation of the engine's own run with the one of transformers.
    TransformersFallback,
    /// The engine compiles the model at its start.
    CompileAtStart,
    /// 1,024 sequences at once by default on large devices.
    #[serde(rename = "sequences-1024")]
    Sequences1024,
}

/// When an engine has a feature.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FeatureSpan {
    /// The feature.
    pub id: EngineFeature,
    /// The engine.
    pub engine: EngineKind,
    /// The first moment at which it has it.
    pub since: Moment,
    /// The commit that brought it, 12 digits.
    pub commit: String,
    /// The first moment at which it no longer has it; absent: it still does.
    #[serde(default)]
    pub until: Option<Moment>,
    /// The commit that took it away, 12 digits.
    #[serde(default)]
    pub until_commit: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

impl FeatureSpan {
    /// Returns whether it holds at a moment.
    pub fn holds(&self, moment: &Moment) -> bool {
        self.since <= *moment && self.until.as_ref().is_none_or(|until| moment < until)
    }
}

/// Whether an engine can load an architecture at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Support<'a> {
    /// It can.
    Yes(&'a ArchitectureSpan),
    /// It can with the implementation of transformers, if that has one.
    Fallback(&'a FeatureSpan),
    /// It can't yet.
    NotYet(&'a ArchitectureSpan),
    /// It can't any more.
    NoLonger(&'a ArchitectureSpan),
    /// It never could, as far as is known.
    Never,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Rows {
    engine: Vec<EngineArchitectures>,
    feature: Vec<FeatureSpan>,
}

/// The table.
#[derive(Debug, Clone, PartialEq)]
pub struct Architectures {
    rows: Rows,
    /// Places of spans in `rows` by engine and name.
    index: HashMap<(EngineKind, String), Vec<(usize, usize)>>,
}

impl Architectures {
    pub(super) fn embedded() -> Self {
        let rows: Rows = table("architectures.toml", include_str!("../../../../knowledge/architectures.toml"));
        let mut index: HashMap<_, Vec<_>> = HashMap::new();
        for (place, engine) in rows.engine.iter().enumerate() {
            for (span, row) in engine.architecture.iter().enumerate() {
                index.entry((engine.engine, row.name.clone())).or_default().push((place, span));
            }
        }
        Self { rows, index }
    }

    /// Returns what is known of an engine's architectures.
    pub fn engines(&self) -> &[EngineArchitectures] {
        &self.rows.engine
    }

    /// Returns every span of every feature.
    pub fn features(&self) -> &[FeatureSpan] {
        &self.rows.feature
    }

    /// Returns the spans in which an engine can load an architecture, oldest first.
    pub fn spans(&self, engine: EngineKind, architecture: &str) -> Vec<&ArchitectureSpan> {
        let places = self.index.get(&(engine, architecture.to_owned())).map_or(&[][..], Vec::as_slice);
        let row = |&(place, span): &(usize, usize)| self.rows.engine.get(place)?.architecture.get(span);
        places.iter().filter_map(row).collect()
    }

    /// Returns the span in which an engine has a feature at a moment.
    pub fn feature(&self, engine: EngineKind, feature: EngineFeature, moment: &Moment) -> Option<&FeatureSpan> {
        self.rows.feature.iter().find(|row| row.engine == engine && row.id == feature && row.holds(moment))
    }

    /// Returns the first moment from which an engine has a feature, if it ever has.
    pub fn first(&self, engine: EngineKind, feature: EngineFeature) -> Option<&FeatureSpan> {
        self.rows.feature.iter().filter(|row| row.engine == engine && row.id == feature).min_by_key(|row| &row.since)
    }

    /// Returns whether an engine can load an architecture at a moment.
    pub fn support(&self, engine: EngineKind, architecture: &str, moment: &Moment) -> Support<'_> {
        let spans = self.spans(engine, architecture);
        if let Some(span) = spans.iter().find(|span| span.holds(moment)) {
            return Support::Yes(span);
        }
        if let Some(fallback) = self.feature(engine, EngineFeature::TransformersFallback, moment) {
            return Support::Fallback(fallback);
        }
        match (spans.iter().find(|span| span.since > *moment), spans.last()) {
            (Some(span), _) => Support::NotYet(span),
            (None, Some(span)) => Support::NoLonger(span),
            (None, None) => Support::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Moment {
        Moment::new(text).unwrap()
    }

    fn check(engine: EngineKind, architecture: &str, at: &str, expected: &str) {
        let architectures = Architectures::embedded();
        let found = match architectures.support(engine, architecture, &moment(at)) {
            Support::Yes(span) => format!("yes since {}", span.commit),
            Support::Fallback(_) => "fallback".to_owned(),
            Support::NotYet(span) => format!("not before {}", span.commit),
            Support::NoLonger(span) => format!("until {}", span.until_commit.as_deref().unwrap_or("now")),
            Support::Never => "never".to_owned(),
        };
        assert_eq!(found, expected, "{engine} {architecture} {at}");
    }

    #[test]
    fn an_architecture_can_be_loaded_from_its_commit_on() {
        use EngineKind::{Sglang, Vllm};
        check(Vllm, "LlamaForCausalLM", "2023-06-01T00:00:00Z", "yes since 80a2f812f17a");
        check(Vllm, "MixtralForCausalLM", "2023-12-01T00:00:00Z", "not before b5f882cc98e2");
        check(Vllm, "MixtralForCausalLM", "2023-12-12T00:00:00Z", "yes since b5f882cc98e2");
        check(Vllm, "DeepseekV3ForCausalLM", "2024-12-26T00:00:00Z", "not before f49777ba62b4");
        check(Vllm, "Qwen3MoeForCausalLM", "2025-04-07T11:06:41Z", "yes since 7699258ef013");
        // From 2025-02-03 on vLLM tries transformers for what it doesn't know itself.
        check(Vllm, "Qwen3MoeForCausalLM", "2025-04-07T11:06:40Z", "fallback");
        check(Vllm, "NoSuchForCausalLM", "2024-01-01T00:00:00Z", "never");
        check(Sglang, "DeepseekV3ForCausalLM", "2024-12-25T16:02:14Z", "yes since 53aed988cbaa");
        check(Sglang, "Llama4ForConditionalGeneration", "2025-04-01T00:00:00Z", "not before f04c80dc42be");
    }

    #[test]
    fn a_feature_has_its_spans() {
        let architectures = Architectures::embedded();
        let has = |feature, at| architectures.feature(EngineKind::Vllm, feature, &moment(at)).is_some();
        assert!(!has(EngineFeature::RopeLlama3, "2024-07-23T16:46:04Z"));
        assert!(has(EngineFeature::RopeLlama3, "2024-07-23T16:46:05Z"));
        assert!(!has(EngineFeature::ChunkedAttentionCache, "2025-07-18T00:00:00Z"));
        assert!(has(EngineFeature::ChunkedAttentionCache, "2025-07-20T00:00:00Z"));
        assert!(!has(EngineFeature::ChunkedAttentionCache, "2025-07-29T00:00:00Z"));
    }

    #[test]
    fn spans_of_one_thing_are_in_order_and_never_overlap() {
        fn ordered(name: &str, spans: &[(&Moment, Option<&Moment>)]) {
            for (since, until) in spans {
                assert!(until.is_none_or(|until| since < &until), "{name} ends before it begins");
            }
            for pair in spans.windows(2) {
                assert!(pair[0].1.is_some_and(|until| until <= pair[1].0), "two spans of {name} overlap");
            }
        }
        let architectures = Architectures::embedded();
        for engine in architectures.engines() {
            for row in &engine.architecture {
                let spans = architectures.spans(engine.engine, &row.name);
                let spans: Vec<_> = spans.iter().map(|span| (&span.since, span.until.as_ref())).collect();
                ordered(&row.name, &spans);
                assert_eq!(row.until.is_some(), row.until_commit.is_some(), "{}", row.name);
                assert_eq!(row.commit.len(), 12, "{}", row.name);
            }
        }
        for row in architectures.features() {
            let same = architectures.features().iter().filter(|other| other.id == row.id && other.engine == row.engine);
            let spans: Vec<_> = same.map(|span| (&span.since, span.until.as_ref())).collect();
            ordered(&format!("{:?}", row.id), &spans);
            assert!(!row.source.is_empty());
        }
    }
}
