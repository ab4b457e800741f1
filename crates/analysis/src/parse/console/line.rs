//! A segment of a console as a line of text, without the progress bars that were drawn before it.

use crate::text::End;

/// A segment as text, without escape sequences.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its text, with the blanks around it.
    pub(super) text: &'a str,
    /// What ends it.
    pub(super) end: End,
}

impl Line<'_> {
    /// Returns whether its last character is the last that was written to the line.
    pub(super) fn is_ended(&self) -> bool {
        match self.end {
            End::Line => true,
            // What comes after a carriage return may be the rest of the line, by whoever wrote in between.
            End::Return | End::Input => false,
        }
    }

    /// Returns the line without the progress bars at its beginning: they go to another stream and end without a line
    /// feed, so that what is printed next stands behind them.
    pub(super) fn without_bars(mut self) -> Self {
        while let Some(behind) = behind_bar(self.text) {
            self.text = behind;
        }
        self
    }

    /// Returns whether it is nothing but so many of one character or more.
    pub(super) fn is_rule(&self, character: char, least: usize) -> bool {
        let text = self.text.trim();
        text.len() >= least && text.chars().all(|found| found == character)
    }
}

/// Returns what stands behind a bar of tqdm, ` 43%|####  | 86/200 [00:58<00:58, 3.39it/s]`, or behind the one of a server
/// that is waited for, ` |    | 00:02 elapsed, 16:40:00 remaining`.
fn behind_bar(text: &str) -> Option<&str> {
    let in_brackets = text.find("it/s").or_else(|| text.find("s/it")).or_else(|| text.find("/s]"));
    if let Some(rate) = in_brackets {
        let (before, rest) = text.split_at(rate);
        let (open, close) = (before.rfind('[')?, rest.find(']')?);
        let clock = before.get(open + 1..)?;
        if clock.starts_with(|c: char| c.is_ascii_digit() || c == '?') && clock.contains(':') {
            return rest.get(close + 1..);
        }
    }
    let elapsed = text.find(" elapsed, ")?;
    let remaining = text.get(elapsed..)?.find(" remaining")?;
    text.get(elapsed + remaining + " remaining".len()..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_behind_bars_is_found() {
        for (text, left) in [
            ("  0%|          | 0/200 [00:00<?, ?it/s]", ""),
            (" 50%|###   | 3/6 [00:01<00:01, 1.20s/it]Mean TTFT (ms):  812.44", "Mean TTFT (ms):  812.44"),
            ("3it [00:01, 2.51it/s] 50%|# | 1/2 [00:00<00:00, 3.1it/s]x", "x"),
            ("100%|##| 1/1 [00:20<00:00, 48.49it/s, est. speed input: 1.00 toks/s, output: 2.00 toks/s]y", "y"),
            (" |    | 00:02 elapsed, 16:40:00 remainingz", "z"),
            ("[INFO] 3 it/s", "[INFO] 3 it/s"),
            ("Mean TTFT (ms):  812.44", "Mean TTFT (ms):  812.44"),
        ] {
            assert_eq!(Line { number: 1, text, end: End::Line }.without_bars().text, left);
        }
    }
}
