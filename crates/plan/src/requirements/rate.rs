//! How fast a model could be served at best: a roofline, for deadlines and for finding hopeless request rates.
//!
//! A step that decodes `b` sequences reads each weight that they touch once, and their caches: it takes
//! `bytes read / (0.8 * bandwidth) + 2 ms`, or, if that is longer, `2 * active parameters * b / (0.6 * speed)`. A prompt of
//! `n` tokens takes `2 * active parameters * n / (0.6 * speed)`. A request of `n` tokens in and `m` out then takes
//! `prompt + m * step(b) / b` of the devices' time, and the rate is its inverse. Of `e` experts of which each token takes `k`,
//! `b` tokens touch the share `1 - (1 - k/e)^b`. Tensor parallelism multiplies bandwidth and speed by 0.85 per device.
//! It is a bound, not a forecast: nothing here was measured on a device.

use isobench_schema::workload::Workload;

use super::load::{Lengths, at_once};
use super::model::{Model, lossy};
use super::need::Sizing;
use super::options::ServerOptions;
use super::place::Place;

/// The share of the bandwidth that good kernels reach.
const BANDWIDTH_SHARE: f64 = 0.8;

/// The share of the speed that good kernels reach.
const SPEED_SHARE: f64 = 0.6;

/// Seconds of each step that the device doesn't compute.
const STEP_S: f64 = 0.002;

/// What each of several devices adds.
const PARALLEL_SHARE: f64 = 0.85;

/// How fast a workload could be served at best.
#[derive(Debug, Clone, PartialEq)]
pub struct ServiceRate {
    /// Requests in a second.
    pub requests_per_s: f64,
    /// Requests at once that this is reckoned with.
    pub concurrency: u32,
    /// Seconds for a prompt of mean length.
    pub prompt_s: f64,
    /// Seconds for a step that decodes one token of every sequence.
    pub step_s: f64,
    /// Seconds that one request takes from its start to its end, beside so many others.
    pub request_s: f64,
    /// How the numbers came about, a sentence each.
    pub because: Vec<String>,
}

/// Returns how fast a workload could be served at best on `tensor_parallel` devices, or nothing if the model doesn't fit them.
pub fn service_rate(
    model: &Model,
    options: &ServerOptions,
    workload: &Workload,
    place: &Place<'_>,
    tensor_parallel: u32,
) -> Option<ServiceRate> {
    let lengths = Lengths::of(workload);
    let sizing = Sizing::new(model, options, place, Some(lengths.longest));
    let tp = tensor_parallel.max(1);
    let capacity = sizing.capacity_tokens(tp, lengths.whole());
    let fitting = (lossy(capacity) / lengths.whole().max(1.0)).floor();
    if fitting < 1.0 {
        return None;
    }
    let sequences = options.max_sequences.unwrap_or_else(|| place.default_sequences());
    let concurrency = f64::from(at_once(workload).min(sequences).max(1)).min(fitting);
    let gain = if tp > 1 { f64::from(tp) * PARALLEL_SHARE } else { 1.0 };
    let bandwidth = place.device.bandwidth_gb_per_s * 1e9 * BANDWIDTH_SHARE * gain;
    let tflops = match &model.quantization {
        Some(quantized) if quantized.bits < 9.0 && quantized.bits >= 8.0 => {
            place.device.fp8_tflops.unwrap_or(place.device.bf16_tflops)
        }
        Some(_) | None => place.device.bf16_tflops,
    };
    let speed = tflops * 1e12 * SPEED_SHARE * gain;
    // A token looks its embedding up, it doesn't multiply by the table.
    let active = (lossy(model.active_parameters) - lossy(model.embedding_bytes) / 2.0).max(1.0);
    let touched = model.experts.map_or(1.0, |experts| {
        let share = 1.0 - (1.0 - lossy(experts.used) / lossy(experts.count)).powf(concurrency);
        1.0 - experts.share * (1.0 - share)
    });
    let read = (sizing.weights_bytes - lossy(model.embedding_bytes)).max(0.0) * touched;
    let context = lengths.input + lengths.output / 2.0;
    let cache = concurrency * sizing.cache_bytes(context, tp) * f64::from(tp);
    let step_s = ((read + cache) / bandwidth + STEP_S).max(2.0 * active * concurrency / speed);
    let prompt_s = 2.0 * active * lengths.input / speed;
    let per_request = prompt_s + lengths.output * step_s / concurrency;
    let concurrency_whole = whole_u32(concurrency);
    let because = vec![
        format!(
            "at best {:.3} requests/s: a prompt of {:.0} tokens takes {:.1} ms, and each of {:.0} steps {:.1} ms for {concurrency_whole} sequences on {tp} x {}",
            1.0 / per_request,
            lengths.input,
            prompt_s * 1e3,
            lengths.output,
            step_s * 1e3,
            place.device.name
        ),
        format!(
            "reckoned with {:.0} % of the bandwidth, {:.0} % of the speed and {:.0} ms between steps",
            BANDWIDTH_SHARE * 100.0,
            SPEED_SHARE * 100.0,
            STEP_S * 1e3
        ),
    ];
    Some(ServiceRate {
        requests_per_s: 1.0 / per_request,
        concurrency: concurrency_whole,
        prompt_s,
        step_s,
        request_s: per_request * concurrency,
        because,
    })
}

fn whole_u32(number: f64) -> u32 {
    u32::try_from(super::quantization::whole(number)).unwrap_or(u32::MAX)
}
