//! Days.

use isobench_schema::ids::Moment;

/// Returns the day that is some days after a moment's: `2024-12-28`.
pub(crate) fn after(moment: &Moment, days: i64) -> Option<String> {
    let number = |from: usize, to: usize| moment.as_str().get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = civil(number_of(number(0, 4)?, number(5, 7)?, number(8, 10)?) + days);
    Some(format!("{year:04}-{month:02}-{day:02}"))
}

/// Returns the number of a day since 0000-03-01 of the proleptic Gregorian calendar.
fn number_of(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March, so that the leap day is the last one.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1
}

/// Returns year, month and day of a day's number.
fn civil(number: i64) -> (i64, i64, i64) {
    let mut year = number / 365;
    while number_of(year, 3, 1) > number {
        year -= 1;
    }
    let of_year = number - number_of(year, 3, 1);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    if month < 10 { (year, month + 3, day) } else { (year + 1, month - 9, day) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_over_months_years_and_leap_days() {
        let after = |moment: &str, days| after(&Moment::new(moment).unwrap(), days).unwrap();
        assert_eq!(after("2024-11-28T10:00:00Z", 30), "2024-12-28");
        assert_eq!(after("2024-02-01T00:00:00Z", 30), "2024-03-02");
        assert_eq!(after("2023-02-01T00:00:00Z", 30), "2023-03-03");
        assert_eq!(after("2023-12-31T23:59:59Z", 1), "2024-01-01");
        assert_eq!(after("2024-02-28T00:00:00Z", 1), "2024-02-29");
        assert_eq!(after("2024-01-01T00:00:00Z", 0), "2024-01-01");
    }
}
