//! Quantities that carry their unit and can't be negative, infinite or NaN.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A number that is not a valid quantity of the unit asked for.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("{value} is not a valid number of {unit}: it must be finite and not negative")]
pub struct InvalidQuantityError {
    /// The number.
    pub value: f64,
    /// The unit.
    pub unit: &'static str,
}

/// Defines a quantity over `f64`, finite and not negative.
macro_rules! quantity {
    ($(#[$doc:meta])* $name:ident, $unit:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Serialize, Deserialize)]
        #[serde(try_from = "f64", into = "f64")]
        pub struct $name(f64);

        impl $name {
            /// Returns `None` if `value` is negative, infinite, or not a number.
            pub fn new(value: f64) -> Option<Self> {
                (value.is_finite() && value >= 0.0).then_some(Self(value))
            }

            /// Returns the number in the type's unit.
            pub fn get(self) -> f64 {
                self.0
            }
        }

        impl TryFrom<f64> for $name {
            type Error = InvalidQuantityError;
            fn try_from(value: f64) -> Result<Self, InvalidQuantityError> {
                Self::new(value).ok_or(InvalidQuantityError { value, unit: $unit })
            }
        }

        impl From<$name> for f64 {
            fn from(quantity: $name) -> Self {
                quantity.0
            }
        }
    };
}

quantity!(
    /// A duration in milliseconds.
    Millis,
    "milliseconds"
);
quantity!(
    /// A duration in seconds.
    Seconds,
    "seconds"
);

/// The longest duration that is accepted as a limit: ten years, far below where `Duration` overflows.
const LONGEST_S: f64 = 315_360_000.0;

impl Seconds {
    /// Returns the duration; one of over ten years counts as ten years.
    pub fn duration(self) -> Duration {
        Duration::from_secs_f64(self.0.min(LONGEST_S))
    }
}

impl fmt::Display for Seconds {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} s", self.0)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} ms", self.0)
    }
}

/// Returns a size for people, in powers of 1000 with one decimal.
pub fn size_text(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] =
        [("TB", 1_000_000_000_000), ("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    match UNITS.into_iter().find(|(_, factor)| bytes >= *factor) {
        Some((unit, factor)) => {
            let tenths = bytes / (factor / 10);
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_quantity_is_negative_infinite_or_nan() {
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(Millis::new(bad).is_none());
        }
        assert_eq!(Millis::new(1.5).map(Millis::get), Some(1.5));
        assert!(serde_json::from_str::<Seconds>("-1").is_err());
    }

    #[test]
    fn a_huge_limit_is_ten_years() {
        assert_eq!(Seconds::new(1e300).unwrap().duration().as_secs(), 315_360_000);
    }
}
