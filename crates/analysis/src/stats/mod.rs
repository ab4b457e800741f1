//! Statistics over block differences, over time and of rates. Every function is checked against `SciPy`, `NumPy` or
//! `statsmodels`.

mod enough;
mod location;
mod mcnemar;
mod power;
mod quantile;
mod ranks;
mod ratio;
mod serial;
mod signflip;
mod student;
mod summary;
mod trend;
mod wilson;

pub use enough::enough_for_quantile;
pub use location::{hodges_lehmann, mean, standard_deviation};
pub use mcnemar::mcnemar_exact;
pub use power::{blocks_for_difference, blocks_for_equivalence, minimum_detectable_effect};
pub use quantile::Weighted;
pub use ranks::quantile_ranks;
pub use ratio::{Cluster, ratio_error, ratio_interval};
pub use serial::{SerialCorrelation, serial_correlation};
pub use signflip::{EXACT_UP_TO, sign_flip_p};
pub use student::{Interval, OneSample, t_quantile, two_sided_p};
pub use summary::{Ordered, Sorted, Summary, summarise};
pub use trend::{Trend, mann_kendall};
pub use wilson::wilson_interval;

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
