//! What objectives mean, and where they can't be read.

use proptest::prelude::*;

use super::*;

/// Returns whether a request with these numbers meets the objective.
fn met(objective: &str, numbers: &[(RequestMetric, f64)]) -> bool {
    let number = |wanted| numbers.iter().find(|(metric, _)| *metric == wanted).map(|(_, value)| *value);
    Objective::parse(objective).unwrap().is_met(number)
}

#[test]
fn objectives_join_bounds() {
    use RequestMetric::{E2el, InputTokens, ItlMax, Tokens, Tpot, Ttft};
    let request = [(Ttft, 200.0), (Tpot, 50.0), (E2el, 3500.0), (Tokens, 15.0), (InputTokens, 8.0), (ItlMax, 0.0)];
    for (objective, expected) in [
        ("ttft<200ms", false),
        ("ttft<=200ms", true),
        ("ttft <= 0.2 s", true),
        ("ttft>=200000us && ttft>199.9ms", true),
        ("ttft<=200ms && tpot<=50ms && (e2el<3s || tokens<16)", true),
        ("ttft<=200ms && tpot<=50ms && (e2el<3s || tokens<15)", false),
        // `&&` binds more tightly than `||`.
        ("tokens>0 || ttft<1ms && tpot<1ms", true),
        ("(tokens>0 || ttft<1ms) && tpot<1ms", false),
        ("!(ttft<200ms) && !tpot<1ms && !!tokens>1", true),
        ("input_tokens<=8 && itl_max<=0ms", true),
        ("ttfc<1s", false),
        ("ttft:200 tpot:50", true),
        ("ttft:200,tpot:49.9", false),
        ("ttft:200 , e2el:3500", true),
    ] {
        assert_eq!(met(objective, &request), expected, "{objective}");
    }
}

#[test]
fn errors_name_the_place_and_what_is_expected() {
    for (objective, place, problem) in [
        ("", 1, "expected a metric, one of ttft, ttfc, tpot, e2el, itl_p99, itl_max, icl_max, tokens, input_tokens"),
        ("ttfb<1s", 1, "`ttfb` is no metric of a request, which are ttft, ttfc"),
        ("ttft<200", 9, "expected a unit of time: `us`, `ms` or `s`"),
        ("ttft<200min", 9, "expected a unit of time"),
        ("ttft=200ms", 5, "expected `<`, `<=`, `>` or `>=`"),
        ("ttft<-1ms", 6, "expected a number that isn't negative"),
        ("ttft<1.2.3ms", 6, "expected a number"),
        ("ttft<1s tpot<1s", 9, "expected `&&`, `||` or the end"),
        ("ttft<1s && ", 12, "expected a metric"),
        ("(ttft<1s", 9, "expected `)`, `&&` or `||`"),
        ("ttft<1s)", 8, "this parenthesis was never opened"),
        ("tokens<16ms", 10, "expected `&&`, `||` or the end"),
        ("ttft:200ms", 9, "expected a blank, `,` or the end: bounds of this form are in milliseconds"),
        ("ttft:200 tpot<50ms", 14, "expected `:` and a bound in milliseconds; the forms"),
        ("ttft:", 6, "expected a number"),
        ("ttft<1µs && x<1", 13, "`x` is no metric"),
    ] {
        let error = Objective::parse(objective).unwrap_err();
        assert_eq!(error.place, place, "{error}");
        assert!(error.to_string().contains(problem), "{error}");
    }
    let deep = "(".repeat(100_000) + "ttft<1s";
    assert!(Objective::parse(&deep).unwrap_err().to_string().ends_with("nested deeper than 64"));
    assert!(Objective::parse(&"!".repeat(100_000)).is_err());
}

#[test]
fn bounds_that_other_tools_know_are_told_from_the_rest() {
    let bounds = |ttft_ms, tpot_ms| Some(UpperBounds { ttft_ms, tpot_ms, e2el_ms: None });
    for (objective, expected) in [
        ("ttft:200 tpot:50 ttft:300", bounds(Some(200.0), Some(50.0))),
        ("ttft<=0.2s", bounds(Some(200.0), None)),
        ("ttft<200ms", None),
        ("ttft<=1s || tpot<=1s", None),
        ("ttft<=1s && tokens<=4", None),
    ] {
        assert_eq!(Objective::parse(objective).unwrap().upper_bounds(), expected, "{objective}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read_or_refused_at_a_place_in_it(text in "[a-z_<>=!&|():,. 0-9µms]{0,40}") {
        if let Err(error) = Objective::parse(&text) {
            prop_assert!((1..=text.chars().count() + 1).contains(&error.place));
        }
    }

    #[test]
    fn bounds_hold_as_numbers_compare(value in 0.0..1000.0_f64, bound in 0.0..1000.0_f64) {
        let request = [(RequestMetric::Ttft, value)];
        prop_assert_eq!(met(&format!("ttft<{bound}ms"), &request), value < bound);
        prop_assert_eq!(met(&format!("ttft:{bound}"), &request), value <= bound);
        prop_assert_eq!(met(&format!("!ttft>{bound}ms"), &request), value <= bound);
    }
}
