//! Statistics over block differences and over time. Every function is checked against `SciPy` or `NumPy`.

mod location;
mod power;
mod quantile;
mod serial;
mod signflip;
mod student;
mod trend;

pub use location::{hodges_lehmann, mean, standard_deviation};
pub use power::{blocks_for_difference, blocks_for_equivalence, minimum_detectable_effect};
pub use quantile::Weighted;
pub use serial::{SerialCorrelation, serial_correlation};
pub use signflip::{EXACT_UP_TO, sign_flip_p};
pub use student::{Interval, OneSample, t_quantile, two_sided_p};
pub use trend::{Trend, mann_kendall};

/// Returns a count as a number to calculate with; exact below 2^53, which no count here reaches.
#[expect(clippy::cast_precision_loss, reason = "counts of requests, tokens and nanoseconds stay below 2^53")]
pub(crate) fn real(count: u64) -> f64 {
    count as f64
}

/// Returns a length as a number to calculate with; exact below 2^53.
#[expect(clippy::cast_precision_loss, reason = "no collection in memory has 2^53 items")]
pub(crate) fn length(count: usize) -> f64 {
    count as f64
}
