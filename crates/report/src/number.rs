//! How numbers are written for people: units, significant digits, speed-ups, p values and durations.

/// Returns a count as a floating-point number, for layout arithmetic.
pub(crate) fn count(items: usize) -> f64 {
    f64::from(u32::try_from(items).unwrap_or(u32::MAX))
}

/// Returns `value` with four significant digits and thousands grouped by commas.
pub(crate) fn significant(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".to_owned() } else { value.to_string() };
    }
    let size = value.abs();
    if !(0.001..1e9).contains(&size) {
        return format!("{value:.3e}");
    }
    let decimals = match size {
        s if s >= 1000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        s if s >= 1.0 => 3,
        _ => 4,
    };
    group(&format!("{value:.decimals$}"))
}

/// Returns `value` with as many decimals as ticks that are `step` apart need.
pub(crate) fn tick(value: f64, step: f64) -> String {
    let size = value.abs();
    if size >= 1e6 || (size > 0.0 && step < 1e-4) {
        return format!("{value:.1e}");
    }
    let decimals = (0..5).find(|&d| step >= 0.999 * 10f64.powi(-d)).unwrap_or(5);
    group(&format!("{value:.*}", usize::try_from(decimals).unwrap_or(0)))
}

/// Returns a count that is held as a floating-point number, with thousands grouped by commas.
pub(crate) fn whole(value: f64) -> String {
    group(&format!("{value:.0}"))
}

/// Returns a count with thousands grouped by commas.
pub(crate) fn grouped(number: u32) -> String {
    group(&number.to_string())
}

/// Returns gigabytes with one decimal where they are few.
pub(crate) fn gigabytes(size: f64) -> String {
    if size < 99.95 { format!("{size:.1}") } else { group(&format!("{size:.0}")) }
}

/// Returns bytes in the unit that suits them, with one decimal where they are few: kB, MB, GB and TB are powers of 1000.
pub(crate) fn bytes(bytes: u64) -> String {
    let (mut unit, mut name) = (1_u128, "B");
    for larger in ["kB", "MB", "GB", "TB"] {
        if u128::from(bytes) < unit * 1000 {
            break;
        }
        (unit, name) = (unit * 1000, larger);
    }
    let tenths = (u128::from(bytes) * 10 + unit / 2) / unit;
    if unit == 1 || tenths >= 1000 {
        let whole = (u128::from(bytes) + unit / 2) / unit;
        return format!("{} {name}", group(&whole.to_string()));
    }
    format!("{}.{} {name}", tenths / 10, tenths % 10)
}

/// Puts commas between groups of three digits before the decimal point.
fn group(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(w, f)| (w, Some(f)));
    let mut out = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

/// Returns how many decimals show all of these speed-ups: more where one is close to 1.
pub(crate) fn speedup_decimals(speedups: &[f64]) -> usize {
    let needed = |s: &f64| match *s {
        s if (s - 1.0).abs() < 0.095 => 3,
        s if s < 0.1 => 3,
        s if s < 10.0 => 2,
        s if s < 100.0 => 1,
        _ => 0,
    };
    speedups.iter().map(needed).max().unwrap_or(2)
}

/// Returns a speed-up such as `1.24x`.
pub(crate) fn speedup(value: f64, decimals: usize) -> String {
    if value.is_finite() && (0.001..1e6).contains(&value) {
        format!("{}x", group(&format!("{value:.decimals$}")))
    } else {
        format!("{value:.2e}x")
    }
}

/// Returns a log ratio as a signed percentage such as `+24.1 %`.
pub(crate) fn signed_percent(log_ratio: f64) -> String {
    let percent = log_ratio.exp_m1() * 100.0;
    let size = percent.abs();
    if size >= 1e6 {
        return format!("{percent:+.1e} %");
    }
    let decimals = match size {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        _ => 2,
    };
    let text = group(&format!("{size:.decimals$}"));
    if text.chars().all(|c| matches!(c, '0' | '.')) {
        return "0 %".to_owned();
    }
    format!("{}{text} %", if percent < 0.0 { '−' } else { '+' })
}

/// Returns a fraction as a percentage without needless zeros, such as `2 %`.
pub(crate) fn percent(fraction: f64) -> String {
    let text = format!("{:.2}", fraction * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Returns a p value such as `0.013` or `<0.0001`.
pub(crate) fn p_value(p: f64) -> String {
    match p {
        p if p < 0.0001 => "<0.0001".to_owned(),
        p if p < 0.001 => format!("{p:.4}"),
        p if p < 0.1 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

/// Returns the level that a p is held to: two digits that count, so that it never reads as another level.
pub(crate) fn level(level: f64) -> String {
    if level >= 0.001 { format!("{level:.4}") } else { format!("{level:.1e}") }
}

/// Returns an amount with two decimals and thousands grouped by commas, such as `1,234.50`.
pub(crate) fn group_decimal(amount: f64) -> String {
    group(&format!("{amount:.2}"))
}

/// Returns hours with one decimal where they are few, such as `2.5` or `1,204`.
pub(crate) fn hours(hours: f64) -> String {
    if hours < 99.95 { format!("{hours:.1}") } else { group(&format!("{hours:.0}")) }
}

/// Returns a duration in seconds such as `1 h 12 min`, `3 min 20 s` or `1.5 s`.
pub(crate) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "an unknown time".to_owned();
    }
    let seconds = seconds.max(0.0);
    if seconds < 9.95 {
        let text = format!("{seconds:.1}");
        return format!("{} s", text.trim_end_matches('0').trim_end_matches('.'));
    }
    let whole = seconds.round();
    let (days, hours) = ((whole / 86_400.0).floor(), (whole % 86_400.0 / 3600.0).floor());
    let (minutes, rest) = ((whole % 3600.0 / 60.0).floor(), whole % 60.0);
    let two = |large: f64, unit: &str, small: f64, small_unit: &str| match small {
        0.0 => format!("{large} {unit}"),
        small => format!("{large} {unit} {small} {small_unit}"),
    };
    if days >= 1e6 {
        format!("{days:.1e} d")
    } else if days > 0.0 {
        two(days, "d", hours, "h")
    } else if hours > 0.0 {
        two(hours, "h", minutes, "min")
    } else if minutes > 0.0 {
        two(minutes, "min", rest, "s")
    } else {
        format!("{rest} s")
    }
}

/// Returns `1 block`, `2 blocks` and the like.
pub(crate) fn counted(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    let digits = group(&number.to_string());
    if number == 1 {
        return format!("1 {noun}");
    }
    let plural = match noun {
        "launch" => "launches".to_owned(),
        _ => noun.strip_suffix('y').map_or_else(|| format!("{noun}s"), |stem| format!("{stem}ies")),
    };
    format!("{digits} {plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_the_unit_that_suits_them() {
        for (count, text) in [
            (0, "0 B"),
            (999, "999 B"),
            (1000, "1.0 kB"),
            (99_949, "99.9 kB"),
            (99_950, "100 kB"),
            (8_123_456_789, "8.1 GB"),
            (2_345_678_900_000, "2.3 TB"),
            (u64::MAX, "18,446,744 TB"),
        ] {
            assert_eq!(bytes(count), text, "{count}");
        }
    }

    #[test]
    fn a_count_of_millions_has_all_its_digits() {
        assert_eq!(whole(1_000_000.0), "1,000,000");
        assert_eq!(whole(64.0), "64");
    }

    #[test]
    fn values_have_four_significant_digits() {
        for (value, text) in [
            (0.0, "0"),
            (1.0, "1.000"),
            (0.012_345, "0.0123"),
            (12.3456, "12.35"),
            (123.456, "123.5"),
            (1_234_567.8, "1,234,568"),
            (-1234.0, "-1,234"),
            (1.5e300, "1.500e300"),
            (0.000_012, "1.200e-5"),
        ] {
            assert_eq!(significant(value), text);
        }
    }

    #[test]
    fn speedups_close_to_one_have_three_decimals() {
        for (value, text) in [
            (1.24, "1.24x"),
            (1.004, "1.004x"),
            (0.5, "0.50x"),
            (23.456, "23.5x"),
            (4321.0, "4,321x"),
            (1e9, "1.00e9x"),
        ] {
            assert_eq!(speedup(value, speedup_decimals(&[value])), text);
        }
    }

    #[test]
    fn percentages_carry_their_sign() {
        for (ratio, text) in [(1.241, "+24.1 %"), (0.98, "−2.00 %"), (1.0, "0 %"), (3.5, "+250 %")] {
            assert_eq!(signed_percent(f64::ln(ratio)), text);
        }
        assert_eq!(percent(0.02), "2 %");
        assert_eq!(percent(0.025), "2.5 %");
    }

    #[test]
    fn small_p_values_are_bounds() {
        for (p, text) in [(0.5, "0.50"), (0.0132, "0.013"), (0.00042, "0.0004"), (1e-9, "<0.0001")] {
            assert_eq!(p_value(p), text);
        }
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, text) in [
            (1.5, "1.5 s"),
            (12.0, "12 s"),
            (200.0, "3 min 20 s"),
            (600.0, "10 min"),
            (4320.0, "1 h 12 min"),
            (180_000.0, "2 d 2 h"),
        ] {
            assert_eq!(duration(seconds), text);
        }
    }

    #[test]
    fn nouns_have_their_plural() {
        for (number, noun, text) in [
            (1u64, "launch", "1 launch"),
            (2, "launch", "2 launches"),
            (0, "block", "0 blocks"),
            (1500, "entry", "1,500 entries"),
        ] {
            assert_eq!(counted(number, noun), text);
        }
    }
}
