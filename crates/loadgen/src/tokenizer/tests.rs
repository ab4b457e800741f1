//! Tests of the tokenizer, and small tokenizers of every kind that other tests use.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use proptest::prelude::*;
use tokenizers::decoders::DecoderWrapper;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::models::unigram::{Unigram, UnigramTrainer};
use tokenizers::models::wordlevel::WordLevel;
use tokenizers::models::wordpiece::{WordPiece, WordPieceTrainer};
use tokenizers::normalizers::{BertNormalizer, NormalizerWrapper, Prepend, Replace, Sequence};
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::metaspace::{Metaspace, PrependScheme};
use tokenizers::pre_tokenizers::whitespace::Whitespace;
use tokenizers::processors::template::TemplateProcessing;
use tokenizers::{AddedToken, PaddingParams, Tokenizer as Inner, TruncationParams};

use super::*;
use crate::schedule::words::WORDS;

/// Kinds of tokenizers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Sample {
    /// Pairs of bytes, split at spaces, with a token for a text's begin, as Llama 3 and GPT-2 have it.
    Bytes,
    /// Pairs of characters of a whole text, with bytes for what it doesn't know, as Llama 2 has it.
    Pairs,
    /// Pieces of words in lower case, as BERT has it.
    Pieces,
    /// The likeliest pieces, as T5 has it.
    Likeliest,
    /// Whole words only.
    Words,
    /// Bytes and nothing else.
    Plain,
    /// Pairs that reach over the ends of words.
    Beyond,
}

impl Sample {
    pub(crate) const ALL: [Self; 7] =
        [Self::Bytes, Self::Pairs, Self::Pieces, Self::Likeliest, Self::Words, Self::Plain, Self::Beyond];

    /// Returns the tokenizer, read from its file.
    pub(crate) fn tokenizer(self) -> Arc<Tokenizer> {
        static MADE: OnceLock<HashMap<Sample, Arc<Tokenizer>>> = OnceLock::new();
        let made = MADE.get_or_init(|| Self::ALL.into_iter().map(|kind| (kind, kind.load())).collect());
        Arc::clone(&made[&self])
    }

    /// Writes its file into a folder.
    pub(crate) fn save(self, folder: &Path) {
        self.make().save(folder.join(FILE), false).unwrap();
    }

    fn load(self) -> Arc<Tokenizer> {
        let folder = tempfile::tempdir().unwrap();
        self.save(folder.path());
        let tokenizer = Tokenizer::at(folder.path()).unwrap();
        assert!(!tokenizer.is_loaded());
        tokenizer.special_tokens().unwrap();
        assert!(tokenizer.is_loaded());
        Arc::new(tokenizer)
    }

    fn make(self) -> Inner {
        match self {
            Self::Bytes => {
                let mut inner = byte_level(900, true);
                inner.add_special_tokens([AddedToken::from("<|begin|>", true)]).unwrap();
                let id = inner.token_to_id("<|begin|>").unwrap();
                let template = TemplateProcessing::builder()
                    .try_single("<|begin|> $A")
                    .unwrap()
                    .special_tokens(vec![("<|begin|>", id)])
                    .build()
                    .unwrap();
                inner.with_post_processor(Some(template));
                // What some files hold, and must not be obeyed.
                inner.with_truncation(Some(TruncationParams { max_length: 8, ..TruncationParams::default() })).unwrap();
                inner.with_padding(Some(PaddingParams::default()));
                inner
            }
            Self::Pairs => {
                let mut inner =
                    Inner::new(BPE::builder().byte_fallback(true).unk_token("<unk>".into()).build().unwrap());
                let marks: Vec<NormalizerWrapper> =
                    vec![Prepend::new("\u{2581}".into()).into(), Replace::new(" ", "\u{2581}").unwrap().into()];
                // Trained on words, used on whole texts.
                inner.with_pre_tokenizer(Some(Metaspace::new('\u{2581}', PrependScheme::Never, true)));
                inner.with_normalizer(Some(Sequence::new(marks))).unwrap();
                let bytes = (0..=255_u8).map(|byte| AddedToken::from(format!("<0x{byte:02X}>"), true));
                let special = std::iter::once(AddedToken::from("<unk>", true)).chain(bytes).collect();
                train(
                    &mut inner,
                    BpeTrainer::builder().vocab_size(1100).special_tokens(special).show_progress(false).build(),
                );
                let json: serde_json::Value = serde_json::from_str(&inner.to_string(false).unwrap()).unwrap();
                // The bytes are ordinary tokens of the vocabulary.
                let mut json = json;
                json["added_tokens"].as_array_mut().unwrap().truncate(1);
                json["pre_tokenizer"] = serde_json::Value::Null;
                let mut inner = Inner::from_bytes(json.to_string()).unwrap();
                let decoders: Vec<DecoderWrapper> = vec![
                    tokenizers::normalizers::Replace::new("\u{2581}", " ").unwrap().into(),
                    tokenizers::decoders::byte_fallback::ByteFallback::new().into(),
                    tokenizers::decoders::fuse::Fuse::new().into(),
                    tokenizers::decoders::strip::Strip::new(' ', 1, 0).into(),
                ];
                inner.with_decoder(Some(tokenizers::decoders::sequence::Sequence::new(decoders)));
                inner
            }
            Self::Pieces => {
                let mut inner = Inner::new(WordPiece::builder().unk_token("[UNK]".into()).build().unwrap());
                inner.with_normalizer(Some(BertNormalizer::default())).unwrap();
                inner.with_pre_tokenizer(Some(BertPreTokenizer));
                inner.with_decoder(Some(tokenizers::decoders::wordpiece::WordPiece::default()));
                let special = vec![AddedToken::from("[UNK]", true), AddedToken::from("[CLS]", true)];
                let trainer =
                    WordPieceTrainer::builder().vocab_size(900).special_tokens(special).show_progress(false).build();
                train(&mut inner, trainer);
                inner
            }
            Self::Likeliest => {
                let mut inner = Inner::new(Unigram::default());
                inner.with_pre_tokenizer(Some(Metaspace::new('\u{2581}', PrependScheme::Always, true)));
                inner.with_decoder(Some(Metaspace::new('\u{2581}', PrependScheme::Always, true)));
                let special = vec![AddedToken::from("<unk>", true), AddedToken::from("</s>", true)];
                let mut builder = UnigramTrainer::builder();
                builder.vocab_size(700).special_tokens(special).unk_token(Some("<unk>".into())).show_progress(false);
                train(&mut inner, builder.build().unwrap());
                inner
            }
            Self::Words => {
                let words =
                    std::iter::once("<unk>").chain(WORDS).zip(0..).map(|(word, id)| (word.to_owned(), id)).collect();
                let mut inner =
                    Inner::new(WordLevel::builder().vocab(words).unk_token("<unk>".into()).build().unwrap());
                inner.with_pre_tokenizer(Some(Whitespace {}));
                inner
            }
            Self::Plain => byte_level(0, true),
            Self::Beyond => byte_level(900, false),
        }
    }
}

/// Returns a tokenizer of bytes and pairs of them, up to so many tokens.
fn byte_level(vocabulary: usize, use_regex: bool) -> Inner {
    let mut inner = Inner::new(BPE::default());
    inner.with_pre_tokenizer(Some(ByteLevel::new(false, false, use_regex)));
    inner.with_decoder(Some(ByteLevel::default()));
    inner.with_post_processor(Some(ByteLevel::default()));
    let alphabet = ByteLevel::alphabet().into_iter().collect();
    train(
        &mut inner,
        BpeTrainer::builder().vocab_size(vocabulary.max(256)).initial_alphabet(alphabet).show_progress(false).build(),
    );
    inner
}

fn train(inner: &mut Inner, trainer: impl Into<TrainerWrapper>) {
    let texts = (0..600).map(|n| (0..9).map(|k| WORDS[(n * 7 + k * n + k * k) % 300]).collect::<Vec<_>>().join(" "));
    inner.train(&mut trainer.into(), texts).unwrap();
}

#[test]
fn a_text_has_as_many_tokens_as_it_is_made_of() {
    for kind in Sample::ALL {
        let tokenizer = kind.tokenizer();
        let text = "about the house able to dance, alone";
        let ids = tokenizer.encode(text).unwrap();
        assert_eq!(tokenizer.count(text).unwrap() as usize, ids.len(), "{kind:?}");
        assert!(ids.len() > 6, "{kind:?}: no limit of the file is obeyed");
        assert_eq!(tokenizer.count("").unwrap(), 0, "{kind:?}");
    }
    assert_eq!(Sample::Bytes.tokenizer().special_tokens().unwrap(), 1);
    assert_eq!(Sample::Plain.tokenizer().special_tokens().unwrap(), 0);
    for kind in [Sample::Bytes, Sample::Pairs, Sample::Likeliest, Sample::Plain, Sample::Beyond] {
        let tokenizer = kind.tokenizer();
        let text = "about the house able to dance";
        assert_eq!(tokenizer.decode(&tokenizer.encode(text).unwrap()).unwrap(), text, "{kind:?}");
    }
}

#[test]
fn a_token_belongs_to_the_chunk_of_its_last_byte() {
    let tokenizer = Sample::Plain.tokenizer();
    // Every byte is a token: 1, 2, and 4 bytes for the sign, which comes whole.
    assert_eq!(tokenizer.chunk_tokens("abc\u{1F600}", &[1, 2, 4]).unwrap(), [1, 2, 4]);
    assert_eq!(tokenizer.chunk_tokens("abc", &[0, 1, 0, 2, 0]).unwrap(), [0, 1, 0, 2, 0]);
    // More text than chunks, and more chunks than text.
    assert_eq!(tokenizer.chunk_tokens("abcdef", &[1, 2]).unwrap(), [1, 5]);
    assert_eq!(tokenizer.chunk_tokens("ab", &[1, 2, 3]).unwrap(), [1, 1, 0]);
    assert_eq!(tokenizer.chunk_tokens("ab", &[]).unwrap(), [0_u32; 0]);
    let words = Sample::Words.tokenizer();
    // The second word comes in two chunks.
    assert_eq!(words.chunk_tokens("able about", &[4, 3, 3]).unwrap(), [1, 0, 1]);
}

#[test]
fn what_is_no_tokenizer_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let error = Tokenizer::at(folder.path()).unwrap_err().to_string();
    let path = folder.path().display();
    assert_eq!(
        error,
        format!("there is no tokenizer at `{path}`: give a `tokenizer.json`, or the folder of a model that holds one")
    );
    let file = folder.path().join(FILE);
    for bytes in [&b""[..], b"{}", b"[1, 2", b"\0\0\0", b"{\"model\": {\"type\": \"BPE\", \"vocab\": 3}}", &[0xff; 9]] {
        std::fs::write(&file, bytes).unwrap();
        let tokenizer = Tokenizer::at(&file).unwrap();
        assert!(matches!(tokenizer.count("a"), Err(TokenizerError::Malformed { .. })), "{bytes:?}");
        assert_eq!(*tokenizer.digest().unwrap(), Digest::of(bytes));
    }
    let gone = Tokenizer::at(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(matches!(gone.encode("a"), Err(TokenizerError::Read { .. })));
}

proptest! {
    #[test]
    fn the_chunks_of_any_text_hold_all_its_tokens(
        parts in prop::collection::vec("[a-z ]{0,9}|\\PC{0,4}|the |\u{1F600}", 0..12),
        kind in prop::sample::select(Sample::ALL.to_vec()),
    ) {
        let tokenizer = kind.tokenizer();
        let text = parts.concat();
        let bytes: Vec<usize> = parts.iter().map(String::len).collect();
        let counts = tokenizer.chunk_tokens(&text, &bytes).unwrap();
        prop_assert_eq!(counts.len(), parts.len());
        let expected = if parts.is_empty() { 0 } else { tokenizer.count(&text).unwrap() };
        prop_assert_eq!(counts.iter().sum::<u32>(), expected);
        // A chunk without bytes brings nothing, unless there is no other.
        for (count, bytes) in counts.iter().zip(&bytes) {
            prop_assert!(*bytes > 0 || *count == 0 || text.is_empty());
        }
    }
}
