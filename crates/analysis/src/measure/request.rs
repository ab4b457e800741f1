//! The numbers of one request for tables with a row each.

use isobench_schema::record::RequestRecord;

use super::sample::Sample;

/// The numbers of one request, by the definitions of every other number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestNumbers {
    /// From the scheduled send to the first token, in milliseconds; absent if no token came.
    pub ttft_ms: Option<f64>,
    /// The time per output token after the first, in milliseconds; absent below two tokens.
    pub tpot_ms: Option<f64>,
    /// From the scheduled send to the end, in milliseconds.
    pub e2el_ms: f64,
    /// Tokens of the answer, counted by the client.
    pub output_tokens: u64,
}

impl RequestNumbers {
    /// Returns the numbers of a request.
    pub fn of(record: &RequestRecord) -> Self {
        let sample = Sample::of(record, 0);
        Self { ttft_ms: sample.ttft_ms, tpot_ms: sample.tpot_ms, e2el_ms: sample.e2el_ms, output_tokens: sample.tokens }
    }
}
