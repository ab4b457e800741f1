//! Whatever a log is cut into and mixed with, it shows the same; whatever bytes it has, it is read.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test may fail so")]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use isobench_analysis::classify::{Classifier, Ending, FileRole, Signatures};
use isobench_schema::cause::Cause;
use proptest::collection::vec;
use proptest::prelude::*;

/// A sample: the signature's id, a name of its file, and its text.
type Sample = (String, &'static str, String);

fn samples() -> &'static [Sample] {
    static SAMPLES: OnceLock<Vec<Sample>> = OnceLock::new();
    SAMPLES.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus/signatures");
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let id = name.split('-').next().unwrap().to_owned();
            let row = Signatures::embedded().find(&id).unwrap();
            // What must come last can't have anything after it.
            if row.ending == Ending::Anywhere {
                let file = if row.file == Some(FileRole::Client) { "client.log" } else { "log" };
                all.push((id, file, fs::read_to_string(path).unwrap()));
            }
        }
        all.sort();
        all
    })
}

fn classify(file: &str, text: &[u8], chunks: &[usize]) -> Cause {
    let mut reader = Classifier::new().log(file);
    let mut rest = text;
    for &chunk in chunks.iter().cycle().take(text.len() + 1) {
        let (piece, tail) = rest.split_at(chunk.min(rest.len()));
        reader.feed(piece);
        rest = tail;
        if rest.is_empty() {
            break;
        }
    }
    reader.feed(rest);
    Classifier::new().classify(&[reader.finish()], None)
}

fn whole(file: &str, text: &[u8]) -> Cause {
    classify(file, text, &[text.len().max(1)])
}

/// Lines that healthy programs write between others'.
const HEALTHY: &[&str] = &[
    "INFO 08-03 11:42:05 [loggers.py:123] Engine 000: Avg prompt throughput: 5.0 tokens/s, Running: 1 reqs",
    "INFO:     127.0.0.1:51264 - \"POST /v1/completions HTTP/1.1\" 200 OK",
    "(APIServer pid=99) INFO 08-03 11:42:05 [logger.py:41] Received request cmpl-1: prompt: 'KeyError: error', params: x",
    "WARNING 08-03 11:42:05 [utils.py:12] Failed to read a file, retrying: TimeoutError: slow",
    "Loading safetensors checkpoint shards:  25% Completed | 1/4 [00:00<00:01,  2.04it/s]",
    "DEBUG 08-03 11:42:05 [x.py:1] Error 12 was expected",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn how_a_log_is_cut_does_not_matter(pick in any::<prop::sample::Index>(), chunks in vec(1_usize..40, 1..6)) {
        let (_, file, text) = pick.get(samples());
        prop_assert_eq!(classify(file, text.as_bytes(), &chunks), whole(file, text.as_bytes()));
    }

    #[test]
    fn any_bytes_are_read(bytes in vec(any::<u8>(), 0..2000), chunk in 1_usize..300) {
        let cause = classify("log", &bytes, &[chunk]);
        prop_assert_eq!(&cause, &whole("log", &bytes));
        prop_assert!(cause.evidence.iter().all(|line| line.offset <= bytes.len() as u64 && line.line >= 1));
    }

    #[test]
    fn pieces_of_logs_in_any_order_are_read(
        picks in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..8),
        chunk in 1_usize..300,
    ) {
        let mut bytes = Vec::new();
        for (pick, from, to) in picks {
            let text = pick.get(samples()).2.as_bytes();
            let (from, to) = (from.index(text.len()), to.index(text.len()));
            bytes.extend_from_slice(&text[from.min(to)..from.max(to)]);
        }
        prop_assert_eq!(classify("log", &bytes, &[chunk]), whole("log", &bytes));
    }

    #[test]
    fn healthy_lines_between_change_nothing(
        pick in any::<prop::sample::Index>(),
        places in vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..30),
    ) {
        let (id, file, text) = pick.get(samples());
        let mut lines: Vec<&str> = text.lines().collect();
        for (place, healthy) in places {
            let healthy: &str = healthy.get::<&str>(HEALTHY);
            lines.insert(place.index(lines.len() + 1), healthy);
        }
        let cause = whole(file, lines.join("\n").as_bytes());
        prop_assert_eq!(cause.signature.as_deref(), Some(id.as_str()), "{}", lines.join("\n"));
    }

    #[test]
    fn prefixes_colours_and_carriage_returns_change_nothing(
        pick in any::<prop::sample::Index>(),
        prefix in prop::sample::select(vec!["", "(EngineCore_7 pid=12) ", "[rank3]: ", "\u{1b}[1;36m(Worker pid=4)\u{1b}[0;0m "]),
        bar in prop::sample::select(vec!["", " 10%|#   | 1/10 [00:00<00:09,  1.00it/s]\r"]),
        end in prop::sample::select(vec!["\n", "\r\n", "\u{1b}[0m\n", "\u{1b}[K\r\n"]),
    ) {
        let (id, file, text) = pick.get(samples());
        let dressed: Vec<String> = text.lines().map(|line| [bar, prefix, line, end].concat()).collect();
        let dressed = dressed.concat();
        let cause = whole(file, dressed.as_bytes());
        prop_assert_eq!(cause.signature.as_deref(), Some(id.as_str()), "{}", dressed);
    }
}
