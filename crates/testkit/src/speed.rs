//! How fast the fake engine answers, and the file that says so.

/// How fast the fake engine answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Speed {
    /// From the start of a request to its first token, in microseconds.
    pub ttft_us: u64,
    /// From one token to the next, in microseconds.
    pub itl_us: u64,
}

/// Why a line of a `speed.txt` can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{line}` is not `ttft_us=NUMBER` or `itl_us=NUMBER`")]
pub struct InvalidSpeedError {
    line: String,
}

impl Speed {
    /// Returns the speed with the lines of a `speed.txt` applied. Empty lines and lines that start with `#` count for nothing.
    ///
    /// # Errors
    /// Returns the first line that can't be read.
    pub fn with_lines(mut self, text: &str) -> Result<Self, InvalidSpeedError> {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let pair = line.split_once('=').and_then(|(key, value)| Some((key, value.parse().ok()?)));
            match pair {
                Some(("ttft_us", value)) => self.ttft_us = value,
                Some(("itl_us", value)) => self.itl_us = value,
                Some(_) | None => return Err(InvalidSpeedError { line: line.to_owned() }),
            }
        }
        Ok(self)
    }

    /// Returns the lines of a `speed.txt`.
    pub fn lines(self) -> [String; 2] {
        [format!("ttft_us={}", self.ttft_us), format!("itl_us={}", self.itl_us)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_override_the_speed() {
        let speed = Speed { ttft_us: 1, itl_us: 2 };
        assert_eq!(speed.with_lines("# slower\nitl_us=30\n\n").unwrap(), Speed { ttft_us: 1, itl_us: 30 });
        assert_eq!(speed.with_lines(&Speed { ttft_us: 5, itl_us: 6 }.lines().join("\n")).unwrap().itl_us, 6);
        for line in ["itl=3", "itl_us=-1", "itl_us"] {
            assert!(speed.with_lines(line).is_err(), "{line}");
        }
    }
}
