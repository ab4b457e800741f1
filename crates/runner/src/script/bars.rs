//! Progress bars as they appear in logs: what each is called, how far it came, and when it was seen to move.
//!
//! A bar is text such as `Processed prompts:  40%|####      | 4/10 [00:01<00:02]`, written again and again after a carriage
//! return. What it says is the program's own word; that it said so at this moment was seen by this process.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use isobench_schema::script::SeenBar;
use isobench_schema::units::Millis;

/// The most bars that are kept.
const MOST_BARS: usize = 256;
/// The longest piece of a line that is looked at, in bytes.
const LONGEST: usize = 4096;
/// How much of a log is read at once, and how much in one look.
const CHUNK: usize = 1 << 16;
const MOST_AT_ONCE: usize = 1 << 22;

/// The bars of one log.
#[derive(Debug, Default)]
pub(crate) struct Bars {
    seen: Vec<SeenBar>,
    piece: Vec<u8>,
    /// Whether the bar in `piece` was taken already.
    is_taken: bool,
}

impl Bars {
    /// Takes bytes that were in the log at this time.
    pub(crate) fn feed(&mut self, bytes: &[u8], now: Millis) {
        for part in bytes.split_inclusive(|byte| matches!(byte, b'\r' | b'\n')) {
            let ended = part.last().is_some_and(|byte| matches!(byte, b'\r' | b'\n'));
            let room = LONGEST.saturating_sub(self.piece.len());
            self.piece.extend(part.iter().take(room));
            if !self.is_taken
                && let Some((caption, percent)) = bar(&self.piece)
            {
                self.is_taken = true;
                self.take(&caption, percent, now);
            }
            if ended {
                self.piece.clear();
                self.is_taken = false;
            }
        }
    }

    fn take(&mut self, caption: &str, percent: u8, now: Millis) {
        let last = self.seen.iter_mut().rev().find(|bar| bar.caption == caption);
        // One that falls back is another bar of the same name.
        if let Some(bar) = last.filter(|bar| bar.percent <= percent) {
            if bar.percent < percent || percent < 100 {
                bar.last_ms = now;
            }
            bar.percent = percent;
        } else if self.seen.len() < MOST_BARS {
            self.seen.push(SeenBar { caption: caption.to_owned(), first_ms: now, last_ms: now, percent });
        }
    }

    /// Returns whether any bar was seen.
    pub(crate) fn is_empty(&self) -> bool {
        self.seen.is_empty()
    }

    /// Returns the bars in the order in which they appeared.
    pub(crate) fn into_seen(self) -> Vec<SeenBar> {
        self.seen
    }
}

/// Returns a bar's caption and percentage, if there is one in a piece of a line.
fn bar(piece: &[u8]) -> Option<(String, u8)> {
    let text = String::from_utf8_lossy(piece);
    let (head, _) = text.split_once("%|")?;
    let digits = head.trim_end_matches(|c: char| c.is_ascii_digit());
    let percent = head.get(digits.len()..)?.parse::<u8>().ok().filter(|percent| *percent <= 100)?;
    let caption = digits.trim_end();
    let caption = match caption.strip_suffix(':') {
        Some(caption) => caption,
        None if caption.is_empty() => "",
        None => return None,
    };
    // What a terminal would do with the text before it isn't the caption's.
    let caption = caption.rsplit(['\r', '\u{1b}']).next().unwrap_or(caption).trim();
    let caption = caption.rsplit_once("[A").map_or(caption, |(_, rest)| rest).trim();
    Some((caption.chars().take(80).collect(), percent))
}

/// A log that grows, followed from its start.
#[derive(Debug)]
pub(crate) struct Followed {
    path: PathBuf,
    file: Option<File>,
    offset: u64,
    bars: Bars,
}

impl Followed {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, offset: 0, bars: Bars::default() }
    }

    /// Looks at what was written since the last look. A log that can't be read has no bars.
    pub(crate) fn look(&mut self, now: Millis) {
        if self.file.is_none() && self.path.symlink_metadata().is_ok_and(|data| data.is_file()) {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = self.file.as_mut() else { return };
        if file.seek(SeekFrom::Start(self.offset)).is_err() {
            return;
        }
        let mut chunk = vec![0; CHUNK];
        let mut left = MOST_AT_ONCE;
        while left > 0 {
            match file.read(&mut chunk) {
                Ok(0) => return,
                Ok(count) => {
                    let bytes = chunk.get(..count).unwrap_or_default();
                    self.bars.feed(bytes, now);
                    self.offset = self.offset.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
                    left = left.saturating_sub(count);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    /// Returns the bars that were seen in it.
    pub(crate) fn into_bars(self) -> Bars {
        self.bars
    }

    /// Returns whether a bar was seen in it.
    pub(crate) fn has_bars(&self) -> bool {
        !self.bars.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(pieces: &[(f64, &str)], expected: &[(&str, f64, f64, u8)]) {
        let mut bars = Bars::default();
        for (now, piece) in pieces {
            bars.feed(piece.as_bytes(), Millis::new(*now).unwrap());
        }
        let found = bars.into_seen();
        let found: Vec<_> = found
            .iter()
            .map(|bar| (bar.caption.as_str(), bar.first_ms.get(), bar.last_ms.get(), bar.percent))
            .collect();
        assert_eq!(found, expected, "{pieces:?}");
    }

    #[test]
    fn a_bar_is_seen_from_its_first_to_its_last_move() {
        let caption = "Processed prompts";
        check(
            &[
                (10.0, "INFO start\n\rProcessed prompts:   0%|     "),
                (12.0, "     | 0/4 [00:00<?, ?it/s]"),
                (30.0, "\rProcessed prompts:  50%|##   | 2/4 [00:01<00:01,  2.00it/s]"),
                (50.0, "\rProcessed prompts: 100%|#####| 4/4 [00:02<00:00,  2.00it/s]"),
                (90.0, "\rProcessed prompts: 100%|#####| 4/4 [00:02<00:00,  2.00it/s]\nThroughput: 1\n"),
            ],
            &[(caption, 10.0, 50.0, 100)],
        );
        // The second pass has a bar of the same name.
        check(
            &[
                (1.0, "\rProcessed prompts:   0%|  | 0/1 [00:00<?]\rProcessed prompts: 100%|##| 1/1 [00:00<00:00]\n"),
                (2.0, "\rProcessed prompts:   0%|  | 0/1 [00:00<?]"),
                (7.0, "\rProcessed prompts: 100%|##| 1/1 [00:00<00:00]\n"),
            ],
            &[(caption, 1.0, 1.0, 100), (caption, 2.0, 7.0, 100)],
        );
    }

    #[test]
    fn what_is_no_bar_is_none() {
        check(&[(1.0, "progress 50%|no colon\n101%|x\nratio: x%|\n50 %|x\n")], &[]);
        check(&[(1.0, "\r 30%|###       | 3/10\n")], &[("", 1.0, 1.0, 30)]);
        check(&[(1.0, "\u{1b}[A\rWarmup iterations:   0%|")], &[("Warmup iterations", 1.0, 1.0, 0)]);
    }
}
