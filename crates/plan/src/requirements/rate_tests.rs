//! Rates, deadlines and stand-ins, and what must hold of every need.

use std::collections::BTreeMap;

use isobench_schema::deviation::DeviationKind;
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use isobench_schema::units::Seconds;
use isobench_schema::workload::{Arrival, Prompts, Workload};
use proptest::prelude::*;

use super::*;
use crate::knowledge::Knowledge;

fn known(name: &str) -> Model {
    model(&Knowledge::embedded().models, name, None).unwrap()
}

fn place<'a>(device: &str, moment: Option<&'a Moment>) -> Place<'a> {
    let knowledge = Knowledge::embedded();
    let device = knowledge.devices.find(device).unwrap();
    Place { engine: EngineKind::Vllm, moment, device, architectures: &knowledge.architectures }
}

fn workload(input_tokens: u32, output_tokens: u32, requests: u32, arrival: Arrival) -> Workload {
    let preset = Knowledge::embedded().presets.find("seed-local").unwrap();
    let workload = preset.workload(EngineKind::Vllm, None);
    Workload { prompts: Prompts::Words { input_tokens }, output_tokens, requests, arrival, ..workload }
}

fn rate(name: &str, workload: &Workload, tensor_parallel: u32) -> Option<ServiceRate> {
    service_rate(&known(name), &ServerOptions::default(), workload, &place("h100-sxm", None), tensor_parallel)
}

#[test]
fn the_rate_is_that_of_the_formula() {
    let load = workload(512, 64, 100, Arrival::closed(16));
    let found = rate("meta-llama/Llama-3.1-8B-Instruct", &load, 1).unwrap();
    let active = 8_030_261_248.0 - 525_336_576.0;
    let prompt = 2.0 * active * 512.0 / (989e12 * 0.6);
    let read = 2.0 * active + 16.0 * 131_072.0 * 544.0;
    let step = read / (3350e9 * 0.8) + 0.002;
    assert!((found.prompt_s - prompt).abs() < 1e-9 && (found.step_s - step).abs() < 1e-9, "{found:?}");
    assert!((found.requests_per_s - 1.0 / (prompt + 64.0 * step / 16.0)).abs() < 1e-6, "{found:?}");
    assert_eq!(found.concurrency, 16);
}

#[test]
fn a_model_that_does_not_fit_has_no_rate_and_more_devices_are_faster() {
    let load = workload(512, 64, 100, Arrival::AllAtOnce);
    assert_eq!(rate("meta-llama/Llama-2-70b-hf", &load, 1), None);
    let four = rate("meta-llama/Llama-2-70b-hf", &load, 4).unwrap();
    let eight = rate("meta-llama/Llama-2-70b-hf", &load, 8).unwrap();
    assert!(eight.requests_per_s > 1.5 * four.requests_per_s);
}

#[test]
fn a_mixture_of_experts_reads_only_the_experts_that_its_tokens_choose() {
    let one = workload(512, 64, 10, Arrival::closed(1));
    let sparse = rate("mistralai/Mixtral-8x7B-v0.1", &one, 2).unwrap();
    let dense = rate("meta-llama/Llama-2-70b-hf", &one, 4).unwrap();
    // 2 of 8 experts: 25 of 93 GB.
    assert!(sparse.step_s < 0.6 * dense.step_s, "{sparse:?} {dense:?}");
}

#[test]
fn deadlines_scale_with_the_model_and_with_what_was_measured() {
    let settings = DeadlineSettings::default();
    let options = ServerOptions::default();
    let load = workload(512, 64, 100, Arrival::closed(16));
    let limits = |name: &str, tensor_parallel: u32, history: History| {
        let (model, place) = (known(name), place("h100-sxm", None));
        let launch = Launch { model: &model, options: &options, workload: &load, place: &place, tensor_parallel };
        let rate = service_rate(&model, &options, &load, &place, tensor_parallel);
        deadlines(&launch, rate.as_ref(), &history, &settings).0
    };
    let small = limits("facebook/opt-125m", 1, History::default());
    let large = limits("deepseek-ai/DeepSeek-R1", 16, History::default());
    assert!((small.ready_s.get() - 600.0).abs() < 1e-9);
    // 60 s imports, 673 GB at 0.5 GB/s, 90 s compilation, 30 s graphs, 30 s to join: three times that.
    assert!((large.ready_s.get() - 4670.0).abs() < 10.0, "{large:?}");
    let history = History { ready_s: Some(1000.0), workload_s: Some(2000.0) };
    let measured = limits("facebook/opt-125m", 1, history);
    assert_eq!((measured.ready_s.get(), measured.workload_s.get()), (3000.0, 6000.0));
    assert_eq!(Some(small.workload_s), Seconds::new(600.0));
}

#[test]
fn a_slow_arrival_prolongs_the_deadline_of_the_load() {
    let (model, place, options) = (known("facebook/opt-125m"), place("h100-sxm", None), ServerOptions::default());
    let load = workload(512, 64, 1000, Arrival::Open { rate_per_s: 1.0, burstiness: 1.0 });
    let launch = Launch { model: &model, options: &options, workload: &load, place: &place, tensor_parallel: 1 };
    let rate = service_rate(&model, &options, &load, &place, 1);
    let (limits, because) = deadlines(&launch, rate.as_ref(), &History::default(), &DeadlineSettings::default());
    assert!(limits.workload_s.get() >= 1010.0, "{because:?}");
    assert!(limits.stall_s <= limits.request_s && limits.request_s <= limits.workload_s);
}

#[test]
fn a_stand_in_is_the_first_that_fits_and_is_written_down() {
    let knowledge = Knowledge::embedded();
    let find = |name: &str, devices: u32, max_model_len: Option<u64>| {
        let options = ServerOptions { max_model_len, tensor_parallel: Some(8), ..ServerOptions::default() };
        let place = place("h100-sxm", None);
        proxy(&knowledge.models, &known(name), &options, None, (&place, devices))
    };
    let found = find("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 1, Some(8192)).unwrap();
    assert_eq!(found.model.name, "RedHatAI/Llama-4-Scout-17B-16E-Instruct-quantized.w4a16");
    assert_eq!((found.tensor_parallel, found.deviation.kind), (1, DeviationKind::ProxyModel));
    assert_eq!(found.deviation.asked, "meta-llama/Llama-4-Maverick-17B-128E-Instruct");
    assert_eq!(find("deepseek-ai/DeepSeek-R1", 1, Some(8192)).unwrap().model.name, "deepseek-ai/DeepSeek-V2-Lite-Chat");
    // Its context is too short for what the command asks.
    assert_eq!(find("meta-llama/Llama-2-70b-hf", 1, Some(8192)), None);
    // It has none.
    assert_eq!(find("nvidia/Nemotron-4-340B-Instruct", 1, None), None);
    let options = ServerOptions::default();
    let fitting =
        proxy(&knowledge.models, &known("meta-llama/Meta-Llama-3-8B"), &options, None, (&place("h100", None), 1));
    assert_eq!(fitting, None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_need_never_shrinks_with_context_or_requests(
        row in 0..Knowledge::embedded().models.rows().len(),
        device in 0..Knowledge::embedded().devices.device.len(),
        lengths in (1..20_000_u64, 0..20_000_u64),
        concurrency in (1..500_u32, 0..500_u32),
        old in any::<bool>(),
    ) {
        let knowledge = Knowledge::embedded();
        let row = &knowledge.models.rows()[row];
        prop_assume!(row.exists);
        let model = known(&row.name);
        let moment = Moment::new(if old { "2024-12-01T00:00:00Z" } else { "2025-07-20T00:00:00Z" }).unwrap();
        let place = place(&knowledge.devices.device[device].id, Some(&moment));
        let needed = |context: u64, concurrency: u32| {
            let options = ServerOptions { max_model_len: Some(context), ..ServerOptions::default() };
            let load = workload(512, 64, 1000, Arrival::closed(concurrency));
            let needed = need(&model, &options, Some(&load), &place);
            if let Some(devices) = needed.devices {
                let sizing = Sizing::new(&model, &options, &place, None);
                prop_assert!(sizing.device_gb(devices) <= 0.9 * place.device.memory_gb + 1e-9);
                prop_assert!(model.heads.is_multiple_of(u64::from(devices)));
                prop_assert!(SIZES.iter().filter(|size| **size < devices).all(|size| !sizing.fits(*size)));
            }
            Ok(needed)
        };
        let less = needed(lengths.0, concurrency.0)?;
        let longer = needed(lengths.0 + lengths.1, concurrency.0)?;
        let more = needed(lengths.0, concurrency.0 + concurrency.1)?;
        prop_assert!(less.devices.unwrap_or(99) <= longer.devices.unwrap_or(99));
        prop_assert!(less.devices == longer.devices || longer.devices > less.devices || longer.devices.is_none());
        prop_assert!(less.workload_tokens <= more.workload_tokens);
        if less.devices == longer.devices {
            prop_assert!(less.device_gb <= longer.device_gb);
        }
    }

    #[test]
    fn no_config_makes_the_reader_panic(
        kind in prop::sample::select(vec!["llama", "opt", "phi", "deepseek_v3", "qwen3_moe", "llama4_text", "bamba", "nemotron_h", "jamba", "gemma3"]),
        numbers in prop::collection::btree_map(
            prop::sample::select(vec![
                "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size",
                "intermediate_size", "max_position_embeddings", "kv_lora_rank", "qk_rope_head_dim", "qk_nope_head_dim",
                "v_head_dim", "num_experts", "moe_intermediate_size", "num_experts_per_tok", "sliding_window",
                "mamba_n_heads", "mamba_d_head", "mamba_num_heads", "mamba_head_dim", "attn_layer_period",
                "num_nextn_predict_layers", "n_routed_experts", "first_k_dense_replace", "decoder_sparse_step",
            ]),
            prop_oneof![Just(0_i64), Just(1), 2..20_000_i64, Just(1_000_000_000), Just(-1), Just(i64::MAX)],
            0..25,
        ),
    ) {
        let mut config: serde_json::Map<String, serde_json::Value> =
            numbers.into_iter().map(|(key, number)| (key.to_owned(), number.into())).collect();
        config.insert("model_type".to_owned(), kind.into());
        config.insert("hybrid_override_pattern".to_owned(), "M*-".into());
        if let Ok(model) = Model::from_config("m", &config.into()) {
            let place = place("h100-sxm", None);
            let load = workload(512, 64, 100, Arrival::AllAtOnce);
            let needed = need(&model, &ServerOptions::default(), Some(&load), &place);
            prop_assert!(needed.device_gb.is_finite() && needed.weights_gb.is_finite());
            let rate = service_rate(&model, &ServerOptions::default(), &load, &place, 1);
            prop_assert!(rate.as_ref().is_none_or(|rate| rate.requests_per_s.is_finite() && rate.requests_per_s > 0.0));
            let options = ServerOptions::default();
            let launch = Launch { model: &model, options: &options, workload: &load, place: &place, tensor_parallel: 1 };
            let (limits, _) = deadlines(&launch, rate.as_ref(), &History::default(), &DeadlineSettings::default());
            prop_assert!(limits.ready_s >= Seconds::new(600.0).unwrap());
        }
    }
}

#[test]
fn lengths_of_a_dataset_are_its_options_or_assumed() {
    let prompts = |name: &str, options: &[(&str, i64)]| {
        let options: BTreeMap<_, _> = options
            .iter()
            .map(|(key, value)| ((*key).to_owned(), isobench_schema::task::OptionValue::Whole(*value)))
            .collect();
        Lengths::of(&Workload {
            prompts: Prompts::Dataset { name: name.to_owned(), options },
            ..workload(1, 128, 10, Arrival::AllAtOnce)
        })
    };
    let random = prompts("random", &[("random-input-len", 1024)]);
    assert_eq!((random.input, random.output, random.longest, random.assumed), (1024.0, 128.0, 1152, None));
    let shared = prompts("sharegpt", &[]);
    assert_eq!((shared.input, shared.output, shared.longest), (220.0, 128.0, 1152));
    assert_eq!(
        shared.assumed.as_deref(),
        Some("prompts of dataset `sharegpt` are taken for 220 tokens, answers for 128")
    );
}
