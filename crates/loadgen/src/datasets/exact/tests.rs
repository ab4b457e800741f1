//! Tests of exact texts over every kind of tokenizer.

use proptest::prelude::*;

use super::*;
use crate::tokenizer::tests::Sample;

#[test]
fn tokenizers_that_split_at_spaces_get_words() {
    for kind in Sample::ALL {
        let maker = Maker::new(&kind.tokenizer()).unwrap();
        let has_words = matches!(maker.kind, Kind::Words(_));
        let expected = !matches!(kind, Sample::Plain | Sample::Beyond);
        assert_eq!(has_words, expected, "{kind:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn a_text_has_exactly_the_tokens_asked_for_and_keeps_what_it_had(
        seed in any::<u64>(),
        parts in prop::collection::vec(0_u32..40, 1..5),
        kind in prop::sample::select(Sample::ALL.to_vec()),
    ) {
        let tokenizer = kind.tokenizer();
        let mut maker = Maker::new(&tokenizer).unwrap();
        let mut draws = Draws::new(seed, "test");
        let mut text = ExactText::default();
        let (mut before, mut length) = (Vec::new(), 0);
        for tokens in parts {
            maker.extend(&mut text, tokens, &mut draws).unwrap();
            maker.check(&text).unwrap();
            length += tokens;
            let ids = tokenizer.encode(&text.text).unwrap();
            prop_assert_eq!(ids.len(), length as usize);
            prop_assert_eq!(text.tokens(), length);
            prop_assert!(ids.starts_with(&before), "{:?}: the part before is tokenised as it was", kind);
            prop_assert_eq!(text.text.trim(), &text.text);
            before = ids;
        }
    }

    #[test]
    fn words_that_are_drawn_apart_may_be_put_together(
        seeds in prop::collection::vec(any::<u64>(), 2..6),
        kind in prop::sample::select(vec![Sample::Bytes, Sample::Pairs, Sample::Pieces, Sample::Likeliest, Sample::Words]),
    ) {
        let tokenizer = kind.tokenizer();
        let mut maker = Maker::new(&tokenizer).unwrap();
        let mut parts = Vec::new();
        for seed in &seeds {
            parts.push(maker.text(17, &mut Draws::new(*seed, "test")).unwrap().into_text());
        }
        prop_assert_eq!(tokenizer.count(&parts.join(" ")).unwrap() as usize, 17 * seeds.len());
    }
}

#[test]
fn the_same_seed_gives_the_same_text_whatever_was_drawn_before() {
    for kind in Sample::ALL {
        let tokenizer = kind.tokenizer();
        let mut fresh = Maker::new(&tokenizer).unwrap();
        let mut used = Maker::new(&tokenizer).unwrap();
        used.text(200, &mut Draws::new(1, "other")).unwrap();
        let text = |maker: &mut Maker| maker.text(50, &mut Draws::new(7, "test")).unwrap();
        assert_eq!(text(&mut fresh), text(&mut used), "{kind:?}");
    }
}
