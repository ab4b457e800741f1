//! What else is written to the console, and what consoles do to lines, loses values at most but never changes one.

use std::fmt::Write as _;

use proptest::prelude::*;

use crate::support::{Sample, Truth, console_samples, read, read_in_chunks};

/// Whole writes of others: lines, and segments of progress bars that no line feed ends.
const NOISE: &[&str] = &[
    "\r 50%|███▏   | 3/6 [00:01<00:01,  1.23it/s]",
    "\rProcessed prompts:  50%|██▌  | 3/6 [00:01<00:01,  2.50it/s, est. speed input: 77.77 toks/s, output: 88.88 toks/s]",
    "\r |          | 00:02 elapsed, 16:40:00 remaining",
    "\r3it [00:01,  2.51it/s]",
    "\r",
    "\n",
    "12345\n",
    "  7\n",
    "INFO 06-13 11:42:20 metrics.py:455] Avg prompt throughput: 999.9 tokens/s, Avg generation throughput: 51.2 tokens/s\n",
    "(EngineCore_DP0 pid=7) INFO 08-03 11:42:20 [core.py:632] Loading weights took 5.10 seconds\n",
    "[2025-07-01 10:00:00 TP0] Decode batch. #running-req: 1, gen throughput (token/s): 22.5, #queue-req: 0\n",
    "\x1b[33mWARNING\x1b[0m: /usr/lib/python3/x.py:11: UserWarning: latency: 1.5 s\n",
    "----------------Client-side notes-----------------\n",
    "Token indices sequence length is longer than the specified maximum sequence length (4096 > 2048).\n",
    "Requests/sec:   748868.53\n",
    "Traceback (most recent call last):\n",
    "ERROR 06-13 11:42:20 x.py:1] TimeoutError: 30 s\n",
    "Namespace(backend='vllm', num_prompts=7, request_rate=4.0)\n",
    "\u{fffd}\x00\x07 \x1b]0;title\x07\n",
];

/// Returns the places of a text at which one write may end and another begin.
fn boundaries(bytes: &[u8]) -> Vec<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| matches!(byte, b'\n' | b'\r')).map(|(place, _)| place + 1);
    std::iter::once(0).chain(ends).filter(|place| bytes.get(*place) != Some(&b'\n')).collect()
}

fn with_noise(sample: &Sample, places: &[(usize, &str)]) -> Vec<u8> {
    let mut places = places.to_vec();
    places.sort_by_key(|(place, _)| *place);
    let mut bytes = Vec::new();
    let mut done = 0;
    for (place, noise) in places {
        bytes.extend(&sample.bytes[done..place]);
        bytes.extend(noise.as_bytes());
        done = place;
    }
    bytes.extend(&sample.bytes[done..]);
    bytes
}

#[test]
fn a_write_of_another_between_any_two_writes_changes_no_value() {
    for sample in console_samples() {
        let truth = Truth::of(sample);
        for (number, place) in boundaries(&sample.bytes).into_iter().enumerate() {
            // Each place has a quarter of the noise, so that each noise is at many places of every sample.
            for noise in NOISE.iter().skip(number % 4).step_by(4) {
                let reading = read_in_chunks(&with_noise(sample, &[(place, noise)]), usize::MAX);
                truth.check(&reading, &|| format!("{} with {noise:?} at byte {place}", sample.name));
            }
        }
    }
}

#[test]
fn a_progress_bar_before_a_row_costs_no_value() {
    for sample in console_samples() {
        let whole = read(&sample.bytes);
        for noise in NOISE.iter().take(3) {
            let places: Vec<_> = boundaries(&sample.bytes)
                .into_iter()
                .filter(|place| *place == 0 || sample.bytes[place - 1] == b'\n')
                .map(|place| (place, *noise))
                .collect();
            let reading = read(&with_noise(sample, &places));
            assert_eq!(reading.metrics, whole.metrics, "{} with {noise:?} before each line", sample.name);
            let kind = |problem: &isobench_schema::reading::ReadingProblem| problem.kind;
            assert_eq!(reading.problem.as_ref().map(kind), whole.problem.as_ref().map(kind), "{}", sample.name);
        }
    }
}

#[test]
fn line_ends_of_windows_and_colours_change_nothing() {
    for sample in console_samples() {
        let whole = read(&sample.bytes);
        let text = String::from_utf8(sample.bytes.clone()).expect("samples are text");
        let plain = text.replace("\x1b[91m", "").replace("\x1b[0m", "");
        let coloured: String = plain
            .split_inclusive('\n')
            .map(|line| match line.strip_suffix('\n') {
                Some(line) => format!("\x1b[1;32m{line}\x1b[0m\x1b[K\n"),
                None => line.to_owned(),
            })
            .collect();
        let labels: String =
            plain.split_inclusive('\n').map(|line| line.replacen(':', "\x1b[0m:\x1b[36m", 1)).collect();
        for (what, changed) in [
            ("line ends", text.replace('\n', "\r\n")),
            ("line ends behind a terminal", text.replace('\n', "\r\r\n")),
            ("coloured lines", coloured),
            ("coloured labels", labels),
        ] {
            assert_eq!(read(changed.as_bytes()).metrics, whole.metrics, "{}: {what}", sample.name);
        }
    }
}

#[test]
fn no_number_is_made_of_pieces_between_which_the_cursor_moved() {
    for sample in console_samples() {
        let truth = Truth::of(sample);
        let text = String::from_utf8(sample.bytes.clone()).expect("samples are text");
        for control in ["\x08", "\0", "\x1b[1D", "\x1b[2K\x1b[1G", "\x1b[1K", "\x1b[A", "\x1b7"] {
            // Before the first digit of each value, as if other digits had been written over.
            let mut changed = String::new();
            for line in text.split_inclusive('\n') {
                match line.rfind(|c: char| c.is_ascii_digit()) {
                    Some(place) => {
                        let (before, digit) = line.split_at(place);
                        changed = changed + before + "7" + control + digit;
                    }
                    None => changed.push_str(line),
                }
            }
            truth.check(&read(changed.as_bytes()), &|| format!("{}: {control:?}", sample.name));
        }
    }
}

#[test]
fn trailing_blanks_that_someone_stripped_and_invalid_bytes_change_nothing() {
    for sample in console_samples() {
        let whole = read(&sample.bytes);
        let text = String::from_utf8(sample.bytes.clone()).expect("samples are text");
        let stripped: String = text.split('\n').map(|line| line.trim_end_matches(' ').to_owned() + "\n").collect();
        assert_eq!(read(stripped.as_bytes()).metrics, whole.metrics, "{}: stripped", sample.name);
        let mut invalid = b"\xff\xfe\x80 12 \xc3\n".to_vec();
        invalid.extend(&sample.bytes);
        invalid.extend(b"\n\xf0\x9f 34\n");
        assert_eq!(read(&invalid).metrics, whole.metrics, "{}: invalid bytes", sample.name);
    }
}

#[test]
fn what_collectors_write_before_each_line_costs_a_table_nothing() {
    for sample in console_samples() {
        let whole = read(&sample.bytes);
        let truth = Truth::of(sample);
        let text = String::from_utf8(sample.bytes.clone()).expect("samples are text");
        let mut prefixed = String::new();
        for (number, line) in text.split_inclusive('\n').enumerate() {
            let _ = write!(prefixed, "2025-07-01T10:00:{:02}.123Z bench-1  | {line}", number % 60);
        }
        let reading = read(prefixed.as_bytes());
        truth.check(&reading, &|| format!("{} with prefixes", sample.name));
        if whole.format.as_deref().is_some_and(|format| format.ends_with("serve-table")) {
            assert_eq!(reading.metrics, whole.metrics, "{} with prefixes", sample.name);
        }
    }
}

/// Returns a text as a terminal of so many columns would break it.
fn wrapped(text: &str, width: usize) -> String {
    let mut broken = String::new();
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        let characters: Vec<char> = line.chars().collect();
        let pieces: Vec<String> = characters.chunks(width).map(|piece| piece.iter().collect()).collect();
        broken.push_str(&pieces.join("\n"));
        broken.push_str(end);
    }
    broken
}

#[test]
fn lines_that_a_terminal_wrapped_give_no_false_value() {
    for sample in console_samples() {
        let truth = Truth::of(sample);
        let whole = read(&sample.bytes);
        let text = String::from_utf8(sample.bytes.clone()).expect("samples are text");
        let is_table = whole.format.as_deref().is_some_and(|format| format.ends_with("serve-table"));
        for width in 32..120 {
            let reading = read(wrapped(&text, width).as_bytes());
            truth.check(&reading, &|| format!("{} wrapped at {width}", sample.name));
            if is_table && (38..50).contains(&width) && sample.name.starts_with("serving-v0.6.4") {
                assert_eq!(reading.metrics, whole.metrics, "{} wrapped at {width}", sample.name);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn any_writes_of_others_at_any_places_change_no_value(
        place in any::<prop::sample::Index>(),
        writes in prop::collection::vec((any::<prop::sample::Index>(), 0..NOISE.len()), 1..12),
        chunk in 1_usize..200,
    ) {
        let samples = console_samples();
        let sample = &samples[place.index(samples.len())];
        let boundaries = boundaries(&sample.bytes);
        let writes: Vec<_> = writes
            .iter()
            .map(|(place, noise)| (boundaries[place.index(boundaries.len())], NOISE[*noise]))
            .collect();
        let bytes = with_noise(sample, &writes);
        let reading = read_in_chunks(&bytes, chunk);
        Truth::of(sample).check(&reading, &|| format!("{} with {writes:?}", sample.name));
        prop_assert_eq!(read_in_chunks(&bytes, usize::MAX), reading);
    }

    #[test]
    fn no_text_of_pieces_of_results_panics_or_depends_on_how_it_is_fed(
        pieces in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0_usize..80), 1..20),
        chunk in 1_usize..200,
    ) {
        let samples = console_samples();
        let mut bytes = Vec::new();
        for (place, begin, length) in &pieces {
            let sample = &samples[place.index(samples.len())].bytes;
            let begin = begin.index(sample.len());
            bytes.extend(&sample[begin..sample.len().min(begin + length)]);
        }
        prop_assert_eq!(read_in_chunks(&bytes, chunk), read_in_chunks(&bytes, usize::MAX));
    }
}
