//! What is written is read back, and what is unknown is refused.

use super::*;

#[test]
fn states_are_spelt_in_kebab_case() {
    let text = serde_json::to_string(&Halves::TooFew { slices: 3, needed: 10 }).unwrap();
    assert_eq!(text, r#"{"state":"too-few","slices":3,"needed":10}"#);
    assert_eq!(serde_json::from_str::<Halves>(&text).unwrap(), Halves::TooFew { slices: 3, needed: 10 });
    assert_eq!(serde_json::to_string(&LittlesLaw::TooFew).unwrap(), r#"{"state":"too-few"}"#);
    assert_eq!(AuditVerdict::ClientBound.as_str(), "client-bound");
}

#[test]
fn an_unknown_key_is_refused() {
    assert!(serde_json::from_str::<Bounds>(r#"{"low":0,"high":1,"middle":0.5}"#).is_err());
    assert!(serde_json::from_str::<Halves>(r#"{"state":"too-few","slices":3,"needed":10,"more":1}"#).is_err());
}

#[test]
fn a_paired_metric_is_read_back() {
    let difference = Difference {
        change: 0.03,
        interval: Some(Bounds { low: 0.01, high: 0.05 }),
        slices: 30,
        merged: 2,
        correlation: 0.1,
    };
    let metric = PairedMetric::Compared { pairs: 500, by_time: difference, by_pair: None };
    let text = serde_json::to_string(&metric).unwrap();
    assert!(!text.contains("by_pair"), "{text}");
    assert_eq!(serde_json::from_str::<PairedMetric>(&text).unwrap(), metric);
}
