//! A load over time: latencies, requests in flight, throughput and failures.

use isobench_schema::load_result::{LoadResult, LoadSlice};
use maud::{Markup, html};

use super::chart::{Chart, Curve, Stroke};

/// Returns the plots; nothing if there are no slices. `key` tells the loads of a page apart.
pub(super) fn section(result: &LoadResult, key: &str) -> Markup {
    let slices = &result.series;
    // The places of slices are their middles.
    let places: Vec<f64> = slices.iter().map(|slice| slice.t_s + slice.length_s / 2.0).collect();
    let chart = |name: &str, caption, curves| Chart {
        id: format!("{name}-{key}"),
        caption,
        axis_name: "seconds since the first scheduled request",
        places: places.clone(),
        curves,
    };
    let of = |value: fn(&LoadSlice) -> Option<f64>| slices.iter().map(value).collect::<Vec<Option<f64>>>();
    let rate = |count: fn(&LoadSlice) -> u64| {
        let per_s = |slice: &LoadSlice| (slice.length_s > 0.0).then(|| exact(count(slice)) / slice.length_s);
        slices.iter().map(per_s).collect::<Vec<Option<f64>>>()
    };
    let bands = |colour, median: Vec<Option<f64>>, tail: Vec<Option<f64>>| {
        vec![
            Curve { name: "", colour, stroke: Stroke::Fill, values: tail.clone() },
            Curve { name: "median", colour, stroke: Stroke::Whole, values: median },
            Curve { name: "p99 of the slice", colour, stroke: Stroke::Dashed, values: tail },
        ]
    };
    let failed = slices.iter().any(|slice| slice.failed > 0);
    html! {
        @if !slices.is_empty() {
            section {
                h2 { "Over time" }
                p.note { "A slice has few requests: its p99 is a hint and no estimate. A request counts in the slice in which it was due, a gap in the one in which it ended." }
                div.two {
                    (chart("ttft", "TTFT in ms", bands("c1", of(|s| s.median_ttft_ms), of(|s| s.p99_ttft_ms))).draw())
                    (chart("itl", "ITL in ms", bands("c2", of(|s| s.median_itl_ms), of(|s| s.p99_itl_ms))).draw())
                    (chart("flight", "Requests in flight", vec![
                        Curve { name: "in flight", colour: "c0", stroke: Stroke::Whole, values: of(|s| Some(s.in_flight)) },
                    ]).draw())
                    (chart("tokens", "Output tokens per second", vec![
                        Curve { name: "tokens", colour: "c3", stroke: Stroke::Whole, values: of(|s| Some(s.output_throughput)) },
                    ]).draw())
                    (chart("ended", "Requests completed per second", vec![
                        Curve { name: "completed", colour: "c1", stroke: Stroke::Whole, values: rate(|s| s.completed) },
                    ]).draw())
                    @if failed {
                        (chart("failed", "Requests failed per second", vec![
                            Curve { name: "failed", colour: "c2", stroke: Stroke::Whole, values: rate(|s| s.failed) },
                        ]).draw())
                    }
                }
            }
        }
    }
}

/// Returns a count as a number for a plot.
#[expect(clippy::cast_precision_loss, reason = "a plot has fewer places than the mantissa")]
pub(super) fn exact(count: u64) -> f64 {
    count as f64
}
