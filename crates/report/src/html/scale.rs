//! Axes: from numbers to places on a plot, and the ticks that people can read.

use crate::number;

/// A tick of an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    /// Its place, 0 to 1.
    pub(crate) at: f64,
    /// Its label.
    pub(crate) label: String,
}

/// A range of finite numbers, mapped onto 0 to 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Returns a range around `values` with some room on both sides, or `None` if there is no value.
    pub(crate) fn around(values: impl Iterator<Item = f64>) -> Option<Self> {
        // The bounds keep every difference below finite.
        let values = values.filter(|value| value.is_finite()).map(|value| value.clamp(-1e300, 1e300));
        let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
        if low > high {
            return None;
        }
        let span = high - low;
        let room = if span > high.abs().max(low.abs()) * 1e-9 { span * 0.07 } else { (high.abs() * 0.05).max(1e-9) };
        Some(Self { low: low - room, high: high + room })
    }

    /// Returns a range from 0 to a little above `high`, or `None` if that isn't finite or is below 0.
    pub(crate) fn from_zero(high: f64) -> Option<Self> {
        let fits = high.is_finite() && high >= 0.0;
        fits.then(|| Self { low: 0.0, high: if high > 0.0 { high.min(1e300) * 1.07 } else { 1.0 } })
    }

    /// Returns the place of `value`, from 0 to 1; what lies outside is put on the edge.
    pub(crate) fn place(self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    /// Returns about `wanted` round numbers inside the range, and how far they are apart.
    fn round_numbers(self, wanted: f64) -> (Vec<f64>, f64) {
        let raw = (self.high - self.low) / wanted;
        let power = 10f64.powf(raw.log10().floor());
        let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= raw).unwrap_or(10.0);
        let step = factor * power;
        let first = (self.low / step).ceil();
        let places = (0..20u8).map(|place| (first + f64::from(place)) * step);
        (places.take_while(|value| *value <= self.high).collect(), step)
    }

    /// Returns ticks at round numbers.
    pub(crate) fn ticks(self) -> Vec<Tick> {
        let (values, step) = self.round_numbers(5.0);
        values.into_iter().map(|value| Tick { at: self.place(value), label: number::tick(value, step) }).collect()
    }

    /// Returns ticks for a range of base-10 logarithms, at 1, 2 and 5 times powers of ten.
    pub(crate) fn log10_ticks(self) -> Vec<Tick> {
        let (first, last) = (self.low.floor(), self.high.ceil());
        let decades = last - first;
        let factors: &[f64] = if self.high - self.low > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        let stride = (decades / 6.0).ceil().max(1.0);
        let powers = (0..=6u8).map(|place| first + f64::from(place) * stride).filter(|power| *power <= last);
        let values = powers.flat_map(|power| factors.iter().map(move |factor| (power + factor.log10(), power)));
        let inside = values.filter(|(value, _)| (self.low..=self.high).contains(value));
        inside
            .map(|(value, power)| Tick {
                at: self.place(value),
                label: number::tick(10f64.powf(value), 10f64.powf(power)),
            })
            .collect()
    }

    /// Returns ticks for a range of base-10 logarithms at round numbers, also where it spans less than one power of ten.
    pub(crate) fn narrow_log10_ticks(self) -> Vec<Tick> {
        if self.high - self.low > 0.8 {
            return self.log10_ticks();
        }
        let plain = Self { low: 10f64.powf(self.low), high: 10f64.powf(self.high) };
        let (values, step) = plain.round_numbers(5.0);
        let inside = values.into_iter().filter(|value| *value > 0.0);
        inside.map(|value| Tick { at: self.place(value.log10()), label: number::tick(value, step) }).collect()
    }

    /// Returns ticks for a range of natural log ratios: percentages if it is narrow, multiples if it is wide.
    pub(crate) fn ratio_ticks(self) -> Vec<Tick> {
        let (low, high) = (self.low.max(-600.0), self.high.min(600.0));
        if high - low <= 0.6 {
            let percent = Self { low: low.exp_m1() * 100.0, high: high.exp_m1() * 100.0 };
            let (values, step) = percent.round_numbers(5.0);
            let tick = |value: f64| {
                let label = match value {
                    v if v.abs() < step / 2.0 => "0 %".to_owned(),
                    v if v < 0.0 => format!("−{} %", number::tick(-v, step)),
                    v => format!("+{} %", number::tick(v, step)),
                };
                Tick { at: self.place((value / 100.0).ln_1p()), label }
            };
            return values.into_iter().map(tick).collect();
        }
        let factors: &[f64] = match high - low {
            span if span < 1.5 => &[1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
            span if span < 5.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0],
        };
        let (first, last) = ((low / std::f64::consts::LN_10).floor(), (high / std::f64::consts::LN_10).ceil());
        let stride = ((last - first) / 8.0).ceil().max(1.0);
        // Counted from 10^0, so that 1x always has its tick.
        let powers = (-9..=9i8).map(|place| f64::from(place) * stride);
        let values = powers.flat_map(|power| factors.iter().map(move |factor| factor * 10f64.powf(power)));
        let inside = values.filter(|value| (low..=high).contains(&value.ln()));
        inside.map(|value| Tick { at: self.place(value.ln()), label: multiple(value) }).collect()
    }
}

fn multiple(value: f64) -> String {
    if (0.001..1e5).contains(&value) {
        let text = format!("{value:.3}");
        return format!("{}x", text.trim_end_matches('0').trim_end_matches('.'));
    }
    format!("{value:.0e}x")
}

/// Returns the ticks that are at least `gap` (a part of the axis) apart from the one kept before.
pub(crate) fn thin(ticks: Vec<Tick>, gap: f64) -> Vec<Tick> {
    let mut kept: Vec<Tick> = Vec::new();
    for tick in ticks {
        if kept.last().is_none_or(|last| tick.at - last.at >= gap) {
            kept.push(tick);
        }
    }
    kept
}

/// Returns a place from 0 to 1 as a percentage of the width, for SVG attributes.
pub(crate) fn across(place: f64) -> String {
    format!("{:.2}%", place * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn ticks_are_round() {
        let scale = Scale::around([103.0, 298.0].into_iter()).unwrap();
        assert_eq!(labels(&scale.ticks()), ["100", "150", "200", "250", "300"]);
        let scale = Scale::around([1.0, 3.0].into_iter()).unwrap();
        assert_eq!(labels(&scale.log10_ticks()), ["10", "20", "50", "100", "200", "500", "1,000"]);
        let scale = Scale::around([9.0_f64, 12.0].map(f64::log10).into_iter()).unwrap();
        assert_eq!(labels(&scale.narrow_log10_ticks()), ["9", "10", "11", "12"]);
    }

    #[test]
    fn ratios_are_percentages_or_multiples() {
        let check = |low: f64, high: f64, expected: &[&str]| {
            let scale = Scale { low: low.ln(), high: high.ln() };
            assert_eq!(labels(&scale.ratio_ticks()), expected, "{low} {high}");
        };
        check(0.94, 1.12, &["−5 %", "0 %", "+5 %", "+10 %"]);
        check(0.9, 2.6, &["1x", "1.25x", "1.5x", "2x", "2.5x"]);
        check(0.9, 30.0, &["1x", "2x", "5x", "10x", "20x"]);
    }

    #[test]
    fn odd_ranges_have_few_ticks_and_finite_places() {
        for values in [vec![0.0], vec![5.0, 5.0], vec![-1e300, 1e300], vec![1e-300], vec![f64::MAX, f64::MIN]] {
            let scale = Scale::around(values.iter().copied()).unwrap();
            for ticks in [scale.ticks(), scale.ratio_ticks(), scale.log10_ticks()] {
                assert!(ticks.len() <= 200);
                assert!(ticks.iter().all(|tick| (0.0..=1.0).contains(&tick.at)), "{values:?} {ticks:?}");
            }
            assert!(values.iter().all(|value| (0.0..=1.0).contains(&scale.place(*value))));
        }
        assert_eq!(Scale::around([f64::NAN].into_iter()), None);
    }
}
