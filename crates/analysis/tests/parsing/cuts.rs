//! A log that is cut, wherever it is, loses values but never gives a false one.

use isobench_analysis::parse::console::Console;
use proptest::prelude::*;

use crate::support::{Truth, console_samples, read, read_in_chunks};

#[test]
fn a_log_that_is_cut_at_its_end_gives_no_false_value() {
    for sample in console_samples() {
        let truth = Truth::of(sample);
        let mut console = Console::default();
        for (place, byte) in sample.bytes.iter().enumerate() {
            truth.check(&console.clone().finish(), &|| format!("{} cut at byte {place}", sample.name));
            console.feed(std::slice::from_ref(byte));
        }
        assert_eq!(console.finish(), read(&sample.bytes), "{} byte by byte", sample.name);
    }
}

/// Every place with `ISOBENCH_SLOW=1`; else every seventh, beginning at another byte in each sample: layouts are much alike.
#[test]
fn a_log_that_is_cut_at_its_beginning_gives_no_false_value() {
    let step = if std::env::var_os("ISOBENCH_SLOW").is_some() { 1 } else { 7 };
    for (number, sample) in console_samples().iter().enumerate() {
        let truth = Truth::of(sample);
        for place in (number % step..sample.bytes.len()).step_by(step) {
            let reading = read_in_chunks(&sample.bytes[place..], usize::MAX);
            truth.check(&reading, &|| format!("{} from byte {place}", sample.name));
        }
    }
}

#[test]
fn how_a_log_is_fed_makes_no_difference() {
    for sample in console_samples() {
        let whole = read(&sample.bytes);
        for size in [1, 2, 3, 5, 7, 50, 51, 52, 64, 1000] {
            assert_eq!(read_in_chunks(&sample.bytes, size), whole, "{} in chunks of {size}", sample.name);
        }
    }
}

#[test]
fn a_table_without_its_closing_rule_is_broken_and_keeps_what_is_whole() {
    let samples = console_samples();
    let sample = samples.iter().find(|sample| sample.name == "serving-v0.6.4-v0.9.1.txt").expect("it is there");
    let text = String::from_utf8(sample.bytes.clone()).expect("it is text");
    let cut = text.find("4.35").expect("it has a last value");
    let reading = read(&sample.bytes[..cut]);
    let problem = reading.problem.expect("it isn't whole");
    assert_eq!(problem.kind.as_str(), "broken");
    assert_eq!(problem.message, "the table `Serving Benchmark Result` isn't closed by a line of `=`");
    assert_eq!(reading.metrics.len() + 1, read(text.as_bytes()).metrics.len());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_log_that_is_cut_at_both_ends_gives_no_false_value(
        place in any::<prop::sample::Index>(),
        begin in any::<prop::sample::Index>(),
        end in any::<prop::sample::Index>(),
    ) {
        // Before v0.2.12 SGLang's one batch prints its warm-up and its measurement alike, one after the other: a piece of
        // it can't show which of the two it is.
        let samples: Vec<_> = console_samples()
            .iter()
            .filter(|sample| !sample.name.starts_with("sglang-one-batch-v0.1.18") && !sample.name.starts_with("sglang-one-batch-v0.2.12"))
            .filter(|sample| !sample.bytes.windows(6).any(|bytes| bytes == b"Warmup"))
            .collect();
        let sample = samples[place.index(samples.len())];
        let begin = begin.index(sample.bytes.len());
        let end = begin + end.index(sample.bytes.len() - begin);
        let reading = read_in_chunks(&sample.bytes[begin..end], usize::MAX);
        Truth::of(sample).check(&reading, &|| format!("{} from {begin} to {end}", sample.name));
    }
}
