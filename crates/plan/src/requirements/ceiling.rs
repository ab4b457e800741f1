//! What devices can do for a model at the very most: a bound that no engine goes beyond, for finding what can't be believed.
//!
//! Each step that gives every request one token reads the weights once: it takes at least `bytes / bandwidth`, with the whole
//! bandwidth of the devices that share the model, and nothing else counted. So `b` requests under way get at most
//! `b * bandwidth / bytes` tokens per second together, and never more than `speed / (2 * active parameters)`. Of experts only
//! those are read that one token takes. Several tokens for one step (speculative decoding) go beyond it, so that there is no
//! ceiling where an option asks for them.

use isobench_schema::task::Ceiling;
use isobench_schema::workload::Workload;

use super::load::at_once;
use super::model::{Model, lossy};
use super::need::Sizing;
use super::options::ServerOptions;
use super::place::Place;

/// Returns the ceiling of a workload on devices that share the model `tensor_parallel` times, or nothing if a model without
/// weights is asked about.
pub fn ceiling(
    model: &Model,
    options: &ServerOptions,
    workload: &Workload,
    place: &Place<'_>,
    tensor_parallel: u32,
) -> Option<Ceiling> {
    let sizing = Sizing::new(model, options, place, None);
    let copies = |count: Option<u32>| f64::from(count.unwrap_or(1).max(1));
    let sharing = f64::from(tensor_parallel.max(1));
    let devices = sharing * copies(options.pipeline_parallel) * copies(options.data_parallel);
    let touched = model.experts.map_or(1.0, |experts| {
        let share = lossy(experts.used) / lossy(experts.count).max(1.0);
        1.0 - experts.share * (1.0 - share)
    });
    let read = (sizing.weights_bytes - lossy(model.embedding_bytes)) * touched;
    let active = lossy(model.active_parameters) - lossy(model.embedding_bytes) / 2.0;
    if read <= 0.0 || active <= 0.0 {
        return None;
    }
    let bandwidth = place.device.bandwidth_gb_per_s * 1e9 * sharing;
    let tflops = place.device.fp8_tflops.unwrap_or(place.device.bf16_tflops).max(place.device.bf16_tflops);
    let step_s = read / bandwidth;
    let requests = at_once(workload);
    let by_memory = f64::from(requests) / step_s;
    let by_speed = tflops * 1e12 * devices / (2.0 * active);
    let because = format!(
        "{} of {} read {:.1} GB of weights for each step, in no less than {:.3} ms, with {requests} requests under way",
        if devices > 1.0 { format!("{devices:.0} devices") } else { "one device".to_owned() },
        place.device.name,
        read / 1e9,
        step_s * 1e3
    );
    Some(Ceiling { output_tok_per_s: by_memory.min(by_speed), step_ms: step_s * 1e3, because })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knowledge::Knowledge;
    use crate::requirements::{model, service_rate};
    use isobench_schema::environment::EngineKind;
    use isobench_schema::workload::Arrival;

    fn of(name: &str, concurrency: u32, tensor_parallel: u32) -> (Ceiling, f64) {
        let knowledge = Knowledge::embedded();
        let device = knowledge.devices.find("h100-sxm").unwrap();
        let place = Place { engine: EngineKind::Vllm, moment: None, device, architectures: &knowledge.architectures };
        let model = model(&knowledge.models, name, None).unwrap();
        let preset = knowledge.presets.find("seed-local").unwrap().workload(EngineKind::Vllm, None);
        let workload = Workload { arrival: Arrival::closed(concurrency), requests: 1000, ..preset };
        let options = ServerOptions::default();
        let rate = service_rate(&model, &options, &workload, &place, tensor_parallel).unwrap();
        let reckoned = rate.requests_per_s * f64::from(workload.output_tokens);
        (ceiling(&model, &options, &workload, &place, tensor_parallel).unwrap(), reckoned)
    }

    #[test]
    fn the_ceiling_is_that_of_the_formula() {
        let (found, _) = of("meta-llama/Llama-3.1-8B-Instruct", 16, 1);
        let step = 2.0 * (8_030_261_248.0 - 525_336_576.0) / 3350e9;
        assert!((found.step_ms - step * 1e3).abs() < 1e-9, "{found:?}");
        assert!((found.output_tok_per_s - 16.0 / step).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn nothing_that_is_reckoned_to_be_reached_is_beyond_it() {
        for (name, tensor_parallel) in [
            ("meta-llama/Llama-3.1-8B-Instruct", 1),
            ("facebook/opt-125m", 1),
            ("mistralai/Mixtral-8x7B-v0.1", 2),
            ("meta-llama/Llama-2-70b-hf", 4),
        ] {
            for concurrency in [1, 16, 256] {
                let (ceiling, reckoned) = of(name, concurrency, tensor_parallel);
                assert!(ceiling.output_tok_per_s > reckoned, "{name} {concurrency}: {ceiling:?} {reckoned}");
            }
        }
    }
}
