//! Statistics over block differences, over time, of rates and of suites. Every function is checked against `SciPy`,
//! `NumPy` or `statsmodels`, or against values counted one by one.

mod betting;
mod bootstrap;
pub(crate) mod draws;
mod enough;
mod location;
mod mann_whitney;
mod mcnemar;
mod multiplicity;
mod positions;
mod power;
mod quadrature;
mod quantile;
mod ranks;
mod ratio;
pub mod sequential;
mod serial;
mod signed_rank;
mod signflip;
mod student;
mod summary;
mod trend;
mod wilson;

pub use betting::SignBets;
pub use bootstrap::{Resampling, cluster_bootstrap};
pub use enough::enough_for_quantile;
pub use location::{hodges_lehmann, mean, standard_deviation};
pub use mann_whitney::{Alternative, MannWhitney};
pub use mcnemar::mcnemar_exact;
pub use multiplicity::{benjamini_hochberg, holm};
pub use positions::{Adjusted, Placed, position_model};
pub use power::{blocks_for_difference, blocks_for_equivalence, minimum_detectable_effect};
pub use quantile::Weighted;
pub use ranks::quantile_ranks;
pub use ratio::{Cluster, ratio_error, ratio_interval};
pub use serial::{SerialCorrelation, serial_correlation, serial_correlation_below};
pub use signed_rank::hodges_lehmann_interval;
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
