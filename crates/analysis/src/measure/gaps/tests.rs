//! Gaps on both clocks, and packed ones against a plain sort.

use isobench_schema::record::Phase;
use proptest::prelude::*;

use super::*;
use crate::measure::tests::record;
use crate::stats::summarise;

fn answer(chunks: &[(u64, u32)]) -> RequestRecord {
    let mut record = record(Phase::Measure, 0);
    (record.chunk_ns, record.chunk_tokens) = chunks.iter().copied().unzip();
    record
}

fn gaps(answers: &[&[(u64, u32)]]) -> Gaps {
    let mut gaps = Gaps::default();
    for chunks in answers {
        gaps.take(&answer(chunks), |_| {});
    }
    gaps
}

fn values(view: &GapView<'_>) -> Vec<(f64, u64)> {
    let mut values = Vec::new();
    view.each(&mut |value, times| values.push((value, times)));
    values
}

#[test]
fn the_clocks_differ_by_tokens_and_by_chunks_without_any() {
    const MS: u64 = 1_000_000;
    let found = gaps(&[&[(MS, 2), (3 * MS, 1), (4 * MS, 0), (9 * MS, 3)]]);
    assert_eq!(values(&found.by_token()), [(2.0, 1), (2.0, 3)]);
    assert_eq!(values(&found.by_chunk()), [(1.0, 1), (2.0, 1), (5.0, 1)]);
    assert_eq!((found.by_token().total(), found.by_chunk().total(), found.clocks_agree()), (4, 3, false));
    let empty_first = gaps(&[&[(MS, 0), (3 * MS, 1), (4 * MS, 1)]]);
    assert_eq!(values(&empty_first.by_token()), [(1.0, 1)]);
    assert_eq!(values(&empty_first.by_chunk()), [(1.0, 1), (2.0, 1)]);
    assert!(gaps(&[&[(MS, 7), (2 * MS, 1)], &[(0, 1)], &[]]).clocks_agree());
    assert!(!gaps(&[&[(MS, 1), (2 * MS, 2)]]).clocks_agree());
}

#[test]
fn gaps_that_fit_into_no_word_are_kept_as_they_are() {
    let far = 1 << 49;
    let found = gaps(&[&[(5_000_000, 1), (2_000_000, 1)], &[(0, 1), (far, 1)], &[(0, 1), (1_000_000, 70_000)]]);
    let expected = [(-3.0, 1), (1.0 / 70_000.0, 70_000), (real(far) / 1e6, 1)];
    assert_eq!(values(&found.by_token()), expected);
    assert_eq!(values(&found.by_chunk()), [(-3.0, 1), (1.0, 1), (real(far) / 1e6, 1)]);
}

/// Answers with gaps of every size, many of them equal.
fn answers() -> impl Strategy<Value = Vec<Vec<(u64, u32)>>> {
    let gap =
        prop_oneof![0..4_u64, 0..40_000_000_u64, 9_990_000..10_010_000_u64, any::<u64>().prop_map(|gap| gap >> 8)];
    let chunks = prop::collection::vec((gap, 0..5_u32), 0..40);
    prop::collection::vec(chunks, 0..40).prop_map(|answers| {
        let absolute = |chunks: Vec<(u64, u32)>| {
            let mut at = 0_u64;
            let absolute = chunks.into_iter().map(|(gap, tokens)| {
                at = at.saturating_add(gap);
                (at, tokens)
            });
            absolute.collect()
        };
        answers.into_iter().map(absolute).collect()
    })
}

/// Returns the same by definition, from a list of everything.
fn plain(answers: &[Vec<(u64, u32)>], clock: Clock) -> Weighted {
    let mut values = Vec::new();
    for chunks in answers {
        let counted: Vec<_> = chunks.iter().filter(|(_, tokens)| clock == Clock::Chunks || *tokens > 0).collect();
        for pair in counted.windows(2) {
            let gap_ms = real(pair[1].0 - pair[0].0) / 1e6;
            let tokens = if clock == Clock::Chunks { 1 } else { pair[1].1 };
            values.push((gap_ms / f64::from(tokens), u64::from(tokens)));
        }
    }
    Weighted::new(values)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn packed_gaps_are_those_of_a_plain_sort(answers in answers(), every in 1..200_usize) {
        let mut gaps = Gaps::default();
        for chunks in &answers {
            gaps.take(&answer(chunks), |_| {});
            for set in [&mut gaps.both, &mut gaps.tokens, &mut gaps.chunks] {
                if set.gathered.len() >= every {
                    set.pack();
                }
            }
        }
        let shares = [0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0];
        for (view, clock) in [(gaps.by_token(), Clock::Tokens), (gaps.by_chunk(), Clock::Chunks)] {
            let expected = plain(&answers, clock);
            let found = summarise(&view, &shares, |_, _| {});
            prop_assert_eq!(found.is_some(), expected.mean().is_some());
            let Some(found) = found else { continue };
            let quantiles: Vec<f64> = shares.iter().filter_map(|share| expected.quantile(*share)).collect();
            prop_assert_eq!(found.quantiles, quantiles);
            let mean = expected.mean().unwrap_or(0.0);
            prop_assert!((found.mean - mean).abs() <= 1e-12 * mean.abs());
        }
    }

    #[test]
    fn numbers_are_packed_and_unpacked(numbers in prop::collection::vec(any::<u64>(), 0..50)) {
        let mut packed = Vec::new();
        for number in &numbers {
            put(&mut packed, *number);
        }
        let mut rest = packed.as_slice();
        let found: Vec<u64> = std::iter::from_fn(|| get(&mut rest)).collect();
        prop_assert_eq!(found, numbers);
    }
}
