//! Values of the flags of `isobench load`: each has one reader, whose error says what is meant.

use std::fmt;

use isobench_schema::task::OptionValue;
use isobench_schema::workload::{Arrival, Stage};
use serde_json::Value;

/// The longest time that is taken, in seconds: about three years.
const LONGEST: f64 = 1e8;
/// The highest processor's number.
const MOST_PROCESSORS: usize = 65_536;

/// Reads seconds: `30`, `30s`, `5m`.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    let (number, unit) = match text.strip_suffix('m') {
        Some(minutes) => (minutes, 60.0),
        None => (text.strip_suffix('s').unwrap_or(text), 1.0),
    };
    let found = number.trim().parse::<f64>().ok().map(|number| number * unit);
    found
        .filter(|seconds| *seconds > 0.0 && *seconds <= LONGEST)
        .ok_or_else(|| "give seconds above 0, such as `30`, `30s` or `5m`".to_owned())
}

/// Reads a number above 0.
pub(crate) fn positive(text: &str) -> Result<f64, String> {
    let found = text.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    found.ok_or_else(|| "give a number above 0".to_owned())
}

/// Reads the shape of gaps.
pub(crate) fn ratio_above_zero(text: &str) -> Result<f64, String> {
    positive(text).map_err(|error| format!("{error}: 1 is Poisson"))
}

/// Reads a number that isn't below 0.
pub(crate) fn not_negative(text: &str) -> Result<f64, String> {
    let found = text.parse::<f64>().ok().filter(|number| *number >= 0.0 && number.is_finite());
    found.ok_or_else(|| "give a number of at least 0".to_owned())
}

/// What comes before the window.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum WarmUp {
    /// So many requests.
    Requests(u32),
    /// So many seconds.
    Seconds(f64),
    /// Until the latencies no longer change.
    Steady,
}

/// Reads a warm-up.
pub(crate) fn warm_up(text: &str) -> Result<WarmUp, String> {
    if text == "steady" {
        return Ok(WarmUp::Steady);
    }
    if let Ok(requests) = text.parse() {
        return Ok(WarmUp::Requests(requests));
    }
    let has_unit = text.ends_with(['s', 'm']);
    let found = seconds(text).ok().filter(|_| has_unit).map(WarmUp::Seconds);
    found.ok_or_else(|| "give requests (`8`), seconds (`10s`) or `steady`".to_owned())
}

/// Percentiles, ascending, each above 0 and below 100.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Percentiles(pub(crate) Vec<f64>);

/// Reads percentiles.
pub(crate) fn percentiles(text: &str) -> Result<Percentiles, String> {
    let parse = |part: &str| part.trim().trim_start_matches(['p', 'P']).parse::<f64>().ok();
    let found: Option<Vec<f64>> = text.split(',').map(|part| parse(part).filter(|p| *p > 0.0 && *p < 100.0)).collect();
    let mut found = found.ok_or_else(|| "give percentiles between 0 and 100, such as `50,90,99.9`".to_owned())?;
    found.sort_by(f64::total_cmp);
    found.dedup();
    Ok(Percentiles(found))
}

/// A header of each request. Its debug text hides a secret value.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// Its name.
    pub(crate) name: String,
    /// Its value.
    pub(crate) value: String,
}

impl Header {
    /// Returns whether the value looks secret by its name: it is then never recorded.
    pub(crate) fn is_secret(&self) -> bool {
        /// Parts of the names of headers that carry secrets.
        const SECRET: [&str; 8] = ["auth", "key", "token", "secret", "cookie", "password", "credential", "session"];
        let name = self.name.to_ascii_lowercase();
        SECRET.iter().any(|part| name.contains(part))
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.is_secret() { "(secret)" } else { &self.value };
        write!(f, "{}: {value}", self.name)
    }
}

/// Reads a header: `NAME: VALUE` or `NAME=VALUE`.
pub(crate) fn header(text: &str) -> Result<Header, String> {
    let wrong = || "give a header as `NAME: VALUE`".to_owned();
    let is_name = |name: &&str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
    };
    let (name, value) = text
        .split_once(':')
        .map(|(name, value)| (name.trim(), value))
        .filter(|(name, _)| is_name(name))
        .or_else(|| text.split_once('=').map(|(name, value)| (name.trim(), value)))
        .filter(|(name, _)| is_name(name))
        .ok_or_else(wrong)?;
    if value.bytes().any(|byte| byte < b' ' && byte != b'\t') {
        return Err("a header's value is one line of text".to_owned());
    }
    Ok(Header { name: name.to_owned(), value: value.trim().to_owned() })
}

/// A field of each request's body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BodyField {
    /// Its key.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: Value,
}

/// Reads a field: `KEY=JSON`.
pub(crate) fn body_field(text: &str) -> Result<BodyField, String> {
    let (key, value) = key_value(text, "top_p=0.9")?;
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned()));
    Ok(BodyField { key: key.to_owned(), value })
}

/// An option of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DatasetOption {
    /// Its name.
    pub(crate) key: String,
    /// Its value.
    pub(crate) value: OptionValue,
}

/// Reads an option of a dataset: `KEY=VALUE`.
pub(crate) fn dataset_option(text: &str) -> Result<DatasetOption, String> {
    let (key, value) = key_value(text, "random-range-ratio=0.5")?;
    let value = match value {
        "true" => OptionValue::Switch(true),
        "false" => OptionValue::Switch(false),
        text => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(whole), _) => OptionValue::Whole(whole),
            (Err(_), Ok(number)) if number.is_finite() => OptionValue::Number(number),
            (Err(_), Ok(_) | Err(_)) => OptionValue::Text(text.to_owned()),
        },
    };
    Ok(DatasetOption { key: key.to_owned(), value })
}

fn key_value<'t>(text: &'t str, example: &str) -> Result<(&'t str, &'t str), String> {
    let found = text.split_once('=').filter(|(key, _)| !key.trim().is_empty());
    found.map(|(key, value)| (key.trim(), value)).ok_or_else(|| format!("give a key and a value, such as `{example}`"))
}

/// Numbers of processors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuList(pub(crate) Vec<usize>);

/// Reads a list of processors: `2,4-6`.
pub(crate) fn cpu_list(text: &str) -> Result<CpuList, String> {
    let wrong = || "give processors such as `2,4-6`".to_owned();
    let mut found = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<usize>().ok().filter(|cpu| *cpu < MOST_PROCESSORS);
        let (first, last) = (number(first).ok_or_else(wrong)?, number(last).ok_or_else(wrong)?);
        if first > last {
            return Err(wrong());
        }
        found.extend(first..=last);
    }
    Ok(CpuList(found))
}

/// How requests arrive, as it is typed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ArrivalArg {
    /// So many at any time (`--concurrency`).
    Closed,
    /// Independent of each other (`--rate`).
    Poisson,
    /// With equal gaps (`--rate`).
    Constant,
    /// With gaps of a shape (`--rate`, `--burstiness`).
    Gamma,
    /// Complete by itself: bursts, stages, a trace, or all at once.
    Whole(Arrival),
}

/// Reads an arrival.
pub(crate) fn arrival(text: &str) -> Result<ArrivalArg, String> {
    let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
    match (kind, rest) {
        ("closed", None) => Ok(ArrivalArg::Closed),
        ("poisson", None) => Ok(ArrivalArg::Poisson),
        ("constant", None) => Ok(ArrivalArg::Constant),
        ("gamma", None) => Ok(ArrivalArg::Gamma),
        ("all-at-once", None) => Ok(ArrivalArg::Whole(Arrival::AllAtOnce)),
        ("trace", speed) => {
            let speed = positive(speed.unwrap_or("1"))
                .map_err(|error| format!("{error} as a trace's speed, such as `trace:2`"))?;
            Ok(ArrivalArg::Whole(Arrival::Trace { speed }))
        }
        ("bursts", Some(rest)) => bursts(rest),
        ("stages", Some(rest)) => stages(rest),
        (_, _) => Err("give one of `closed`, `poisson`, `constant`, `gamma`, `bursts:SIZE/SECONDS`, \
                       `stages:10s@1..20,30s@20`, `trace`, `all-at-once`"
            .to_owned()),
    }
}

fn bursts(text: &str) -> Result<ArrivalArg, String> {
    let found = text.split_once('/').and_then(|(size, period)| {
        let size = size.trim().parse::<u32>().ok().filter(|size| *size > 0)?;
        Some(Arrival::Bursts { size, period_s: seconds(period).ok()? })
    });
    found
        .map(ArrivalArg::Whole)
        .ok_or_else(|| "give bursts as `bursts:SIZE/SECONDS`, such as `bursts:50/10s`".to_owned())
}

fn stages(text: &str) -> Result<ArrivalArg, String> {
    let stage = |part: &str| {
        let (time, rates) = part.split_once('@')?;
        let (from, to) = rates.split_once("..").unwrap_or((rates, rates));
        let (from_per_s, to_per_s) = (not_negative(from.trim()).ok()?, not_negative(to.trim()).ok()?);
        Some(Stage { seconds: seconds(time.trim()).ok()?, from_per_s, to_per_s })
    };
    let found: Option<Vec<Stage>> = text.split(',').map(stage).collect();
    let wrong = "give stages as `stages:SECONDS@RATE..RATE,…`, such as `stages:10s@1..20,30s@20`";
    let stages = found.ok_or_else(|| wrong.to_owned())?;
    if stages.last().is_none_or(|last| last.to_per_s <= 0.0) {
        return Err("the last stage goes on at its final rate, which must be above 0".to_owned());
    }
    Ok(ArrivalArg::Whole(Arrival::Stages { stages, burstiness: None }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_are_read_in_each_form() {
        let stage = |seconds, from_per_s, to_per_s| Stage { seconds, from_per_s, to_per_s };
        let whole = |arrival| Ok(ArrivalArg::Whole(arrival));
        for (text, expected) in [
            ("closed", Ok(ArrivalArg::Closed)),
            ("bursts:50/10s", whole(Arrival::Bursts { size: 50, period_s: 10.0 })),
            (
                "stages:10s@1..20,30s@20",
                whole(Arrival::Stages {
                    stages: vec![stage(10.0, 1.0, 20.0), stage(30.0, 20.0, 20.0)],
                    burstiness: None,
                }),
            ),
            ("trace", whole(Arrival::Trace { speed: 1.0 })),
            ("trace:2.5", whole(Arrival::Trace { speed: 2.5 })),
            ("all-at-once", whole(Arrival::AllAtOnce)),
        ] {
            assert_eq!(arrival(text), expected, "{text}");
        }
        for wrong in
            ["", "burst", "bursts", "bursts:0/1", "bursts:5/0", "stages:", "stages:10@5..0", "trace:0", "closed:8"]
        {
            assert!(arrival(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_and_warm_ups_carry_units() {
        assert_eq!(seconds("30"), Ok(30.0));
        assert_eq!(seconds("1.5m"), Ok(90.0));
        for wrong in ["0", "-1", "inf", "nan", "s", "1h"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        assert_eq!(warm_up("8"), Ok(WarmUp::Requests(8)));
        assert_eq!(warm_up("10s"), Ok(WarmUp::Seconds(10.0)));
        assert_eq!(warm_up("steady"), Ok(WarmUp::Steady));
        for wrong in ["1.5", "-1", "stable", "inf"] {
            assert!(warm_up(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn lists_and_pairs_are_read() {
        assert_eq!(percentiles("99,p50,99.9"), Ok(Percentiles(vec![50.0, 99.0, 99.9])));
        assert!(percentiles("0").is_err() && percentiles("100").is_err() && percentiles("").is_err());
        assert_eq!(cpu_list("2,4-6"), Ok(CpuList(vec![2, 4, 5, 6])));
        assert!(cpu_list("6-4").is_err() && cpu_list("x").is_err() && cpu_list("0-99999999").is_err());
        let field = body_field("stop=[\"a\"]").unwrap();
        assert_eq!(field.value, serde_json::json!(["a"]));
        assert_eq!(body_field("user=a b").unwrap().value, serde_json::json!("a b"));
        assert_eq!(dataset_option("range-ratio=0.5").unwrap().value, OptionValue::Number(0.5));
        assert_eq!(dataset_option("dataset-path=a=b").unwrap().value, OptionValue::Text("a=b".to_owned()));
    }

    #[test]
    fn headers_have_two_forms_and_secrets_are_known_by_their_names() {
        for text in ["X-Tenant: a:b", "X-Tenant=a:b"] {
            let found = header(text).unwrap();
            assert_eq!((found.name.as_str(), found.value.as_str()), ("X-Tenant", "a:b"), "{text}");
            assert!(!found.is_secret());
        }
        let secret = header("Authorization: Bearer x").unwrap();
        assert!(secret.is_secret());
        assert_eq!(format!("{secret:?}"), "Authorization: (secret)");
        assert!(header("x-api-key=1").unwrap().is_secret());
        for wrong in ["", "no value", ": x", "A: b\r\nC: d"] {
            assert!(header(wrong).is_err(), "{wrong}");
        }
    }
}
