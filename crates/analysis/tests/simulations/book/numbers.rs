//! How shares and their errors are printed.

use isobench_analysis::simulation::Tally;

/// Returns a share in percent with so many digits, with two standard errors beside it: where the truth is, in 95 of 100
/// cases.
pub(crate) fn rate(tally: &Tally, count: u32, digits: usize) -> String {
    if count == 0 {
        return "0".to_owned();
    }
    let share = tally.share(count);
    let least = 0.1_f64.powi(i32::try_from(digits).unwrap());
    if 100.0 * share < least / 2.0 {
        return format!("< {least:.digits$}");
    }
    format!("{:.digits$} ± {:.digits$}", 100.0 * share, 200.0 * error(share, tally.runs))
}

/// Returns a small number with its sign and two digits, and none of nothing.
pub(crate) fn signed(value: f64) -> String {
    if value.abs() < 0.005 { "0.00".to_owned() } else { format!("{value:+.2}") }
}

/// Returns a share in percent with so many digits.
pub(crate) fn percent(tally: &Tally, count: u32, digits: usize) -> String {
    format!("{:.digits$}", 100.0 * tally.share(count))
}

/// Returns the standard error of a share of so many runs.
pub(crate) fn error(share: f64, runs: u32) -> f64 {
    (share * (1.0 - share) / f64::from(runs.max(1))).sqrt()
}

/// Returns whether two shares can be of the same truth: less than so many standard errors apart.
pub(crate) fn agree(one: (u32, u32), other: (u32, u32), errors: f64) -> bool {
    // The arcsine of a share's root varies by 1/(2 √n) wherever the share is, also close to none.
    let turned = |(count, runs): (u32, u32)| (f64::from(count) / f64::from(runs.max(1))).sqrt().asin();
    let spread = (0.25 / f64::from(one.1.max(1)) + 0.25 / f64::from(other.1.max(1))).sqrt();
    (turned(one) - turned(other)).abs() <= errors * spread
}

/// Returns a table in Markdown.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule = vec!["---".to_owned(); head.len()];
    let mut text = line(&head) + &line(&rule);
    text.extend(rows.iter().map(|row| line(row)));
    text
}

/// Returns thousands with commas.
pub(crate) fn thousands(count: u32) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns looks as `6, 10, 16, 24`.
pub(crate) fn looks(blocks: &[u32]) -> String {
    blocks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
