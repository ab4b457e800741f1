//! Requirements against what is published of models.

use super::*;
use crate::knowledge::Knowledge;

fn known(name: &str) -> Model {
    model(&Knowledge::embedded().models, name, None).unwrap()
}

/// Billions or GB, with so many decimals as the table has.
fn off(computed: u64, stated: f64) -> f64 {
    (model::lossy(computed) / 1e9 / stated - 1.0).abs()
}

#[test]
fn computed_sizes_agree_with_the_published_ones_within_two_percent() {
    let mut wrong = Vec::new();
    for row in Knowledge::embedded().models.rows().iter().filter(|row| row.exists) {
        let model = known(&row.name);
        if let Some(stated) = row.parameters_b {
            let computed = model.parameters + model.draft_parameters;
            if off(computed, stated) > 0.02 {
                wrong.push(format!("{}: {computed} parameters, {stated} B", row.name));
            }
        }
        if let Some(stated) = row.stored_gb {
            let twice = if row.lm_head_stored_twice { model.embedding_bytes } else { 0 };
            let computed = model.stored_bytes() + twice;
            if off(computed, stated) > 0.02 {
                wrong.push(format!("{}: {computed} bytes, {stated} GB", row.name));
            }
        }
        if let Some(stated) = row.active_parameters_b {
            let computed = model.active_parameters;
            // Cards count the embeddings among the active parameters, or they don't.
            let without = computed - model.embedding_bytes / 2;
            if off(computed, stated).min(off(without, stated)) > 0.05 {
                wrong.push(format!("{}: {computed} active, {stated} B", row.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;

fn place<'a>(device: &str, engine: EngineKind, moment: Option<&'a Moment>) -> Place<'a> {
    let knowledge = Knowledge::embedded();
    let device = knowledge.devices.find(device).unwrap();
    Place { engine, moment, device, architectures: &knowledge.architectures }
}

/// The smallest tensor parallel sizes: on 80 GB with the default context, on 80 GB with 8,192 tokens, on 141 GB with 8,192.
fn sizes(name: &str, moment: &str) -> [Option<u32>; 3] {
    let model = known(name);
    let moment = Moment::new(moment).unwrap();
    let short = ServerOptions { max_model_len: Some(model.context.min(8192)), ..ServerOptions::default() };
    let smallest = |device: &str, options: &ServerOptions| {
        need(&model, options, None, &place(device, EngineKind::Vllm, Some(&moment))).devices
    };
    [smallest("h100-sxm", &ServerOptions::default()), smallest("h100-sxm", &short), smallest("h200", &short)]
}

/// The columns "smallest TP" of the published table, default context on 80 GB, 8,192 tokens on 80 GB, and on 141 GB.
#[test]
fn the_smallest_sizes_are_those_of_the_rule() {
    for (name, expected) in [
        ("facebook/opt-125m", [1, 1, 1]),
        ("facebook/opt-13b", [1, 1, 1]),
        ("huggyllama/llama-7b", [1, 1, 1]),
        ("meta-llama/Llama-2-7b-chat-hf", [1, 1, 1]),
        ("meta-llama/Llama-2-70b-hf", [4, 4, 2]),
        ("meta-llama/Meta-Llama-3-8B", [1, 1, 1]),
        ("neuralmagic/Meta-Llama-3-8B-Instruct-FP8", [1, 1, 1]),
        ("meta-llama/Meta-Llama-3-70B", [4, 4, 2]),
        ("meta-llama/Llama-3.1-8B-Instruct", [1, 1, 1]),
        ("meta-llama/Llama-3.2-1B-Instruct", [1, 1, 1]),
        ("meta-llama/Llama-3.2-3B-Instruct", [1, 1, 1]),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", [0, 4, 2]),
        ("RedHatAI/Llama-4-Scout-17B-16E-Instruct-FP8-dynamic", [0, 2, 1]),
        ("mistralai/Mistral-7B-Instruct-v0.3", [1, 1, 1]),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", [2, 2, 1]),
        ("nm-testing/Mixtral-8x7B-Instruct-v0.1-FP8", [1, 1, 1]),
        ("Qwen/Qwen1.5-0.5B", [1, 1, 1]),
        ("Qwen/Qwen2-7B-Instruct", [1, 1, 1]),
        ("Qwen/Qwen2.5-1.5B", [1, 1, 1]),
        ("Qwen/Qwen2-VL-7B", [1, 1, 1]),
        ("Qwen/Qwen2.5-VL-3B-Instruct", [1, 1, 1]),
        ("Qwen/Qwen3-1.7B", [1, 1, 1]),
        ("Qwen/Qwen3-30B-A3B", [1, 1, 1]),
        ("Qwen/Qwen3-30B-A3B-FP8", [1, 1, 1]),
        ("google/gemma-2b", [1, 1, 1]),
        ("google/gemma-3-12b-it", [2, 1, 1]),
        ("ibm-ai-platform/Bamba-9B", [1, 1, 1]),
        ("01-ai/Yi-1.5-9B-Chat", [1, 1, 1]),
        ("microsoft/phi-1_5", [1, 1, 1]),
        ("nvidia/Nemotron-4-340B-Instruct", [16, 16, 8]),
        ("deepseek-ai/DeepSeek-V2-Lite", [1, 1, 1]),
        ("deepseek-ai/DeepSeek-V2", [16, 8, 4]),
        ("deepseek-ai/DeepSeek-V3-0324", [16, 16, 8]),
        ("deepseek-ai/DeepSeek-R1", [16, 16, 8]),
    ] {
        let found = sizes(name, "2025-05-01T00:00:00Z").map(|size| size.unwrap_or(0));
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn an_older_or_newer_engine_caches_more_or_less() {
    let kv = |name: &str, engine, at: &str| {
        let moment = Moment::new(at).unwrap();
        need(&known(name), &ServerOptions::default(), None, &place("h100-sxm", engine, Some(&moment)))
    };
    // Before v0.7.1 vLLM cached every head, padded to 256 numbers: 14 times as much for the small model, 114 for the large.
    let before = kv("deepseek-ai/DeepSeek-V2-Lite", EngineKind::Vllm, "2025-01-31T07:49:36Z");
    let after = kv("deepseek-ai/DeepSeek-V2-Lite", EngineKind::Vllm, "2025-01-31T07:49:37Z");
    assert_eq!((before.kv_bytes_per_token, after.kv_bytes_per_token), (442_368, 31_104));
    assert_eq!((before.devices, after.devices), (Some(2), Some(1)));
    let sglang = kv("deepseek-ai/DeepSeek-V2-Lite", EngineKind::Sglang, "2024-12-01T00:00:00Z");
    assert_eq!(sglang.kv_bytes_per_token, 31_104);
    // From v0.9.1 on vLLM's layers with a sliding window hold the window alone.
    let before = kv("google/gemma-3-12b-it", EngineKind::Vllm, "2025-06-06T03:47:08Z");
    let after = kv("google/gemma-3-12b-it", EngineKind::Vllm, "2025-06-06T03:47:09Z");
    assert_eq!((before.devices, after.devices), (Some(2), Some(1)));
}

#[test]
fn a_size_that_the_model_refuses_is_named() {
    let model = known("Qwen/Qwen3-30B-A3B-FP8");
    let refusal = |options: ServerOptions, size| {
        let place = place("h100-sxm", EngineKind::Vllm, None);
        Sizing::new(&model, &options, &place, None).refusal(size)
    };
    assert_eq!(refusal(ServerOptions::default(), 2), None);
    assert_eq!(
        refusal(ServerOptions::default(), 4).as_deref(),
        Some("the experts are 768 wide, which 4 devices can't share without cutting the fp8 scales' blocks of 128")
    );
    assert_eq!(refusal(ServerOptions { expert_parallel: true, ..ServerOptions::default() }, 4), None);
    let heads = known("facebook/opt-125m");
    let place = place("h100-sxm", EngineKind::Vllm, None);
    let options = ServerOptions { tensor_parallel: Some(8), ..ServerOptions::default() };
    let needed = need(&heads, &options, None, &place);
    assert_eq!((needed.devices, needed.asked_tensor_parallel), (Some(1), Some(8)));
    let said = needed.because.join("; ");
    assert!(said.contains("12 attention heads can't be divided among 8 devices"), "{said}");
}

#[test]
fn a_model_too_large_for_what_the_command_asks_gets_the_size_that_it_needs() {
    let moment = Moment::new("2023-12-01T00:00:00Z").unwrap();
    let options = ServerOptions { tensor_parallel: Some(1), ..ServerOptions::default() };
    let needed =
        need(&known("meta-llama/Llama-2-70b-hf"), &options, None, &place("H100", EngineKind::Vllm, Some(&moment)));
    assert_eq!((needed.devices, needed.asked_tensor_parallel), (Some(4), Some(1)));
    assert!(
        needed.because.iter().any(|said| said.starts_with("tensor parallel size 1, as asked, needs 14")),
        "{needed:?}"
    );
}

#[test]
fn a_model_that_nothing_is_known_of_says_so() {
    let models = &Knowledge::embedded().models;
    let said = |name: &str| model(models, name, None).unwrap_err().to_string();
    assert_eq!(
        said("Qwen/Qwen3-7B-Instruct"),
        "no model `Qwen/Qwen3-7B-Instruct` was ever published; the nearest is `Qwen/Qwen3-8B`"
    );
    assert_eq!(
        said("zzzz"),
        "nothing is known of the model `zzzz`; put its config.json into the hub's cache or a folder"
    );
    let config = serde_json::json!({"model_type": "rwkv", "hidden_size": 1});
    assert_eq!(
        model(models, "x", Some(&config)).unwrap_err().to_string(),
        "how the size of a model of type `rwkv` (`x`) follows from its config is not known"
    );
    let config = serde_json::json!({"model_type": "llama", "hidden_size": -1});
    assert_eq!(
        model(models, "x", Some(&config)).unwrap_err().to_string(),
        "`hidden_size` in the config of `x` is -1, and not a whole number from 0 to 10^9"
    );
}
