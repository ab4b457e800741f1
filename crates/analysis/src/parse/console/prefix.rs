//! What a collector of logs writes before each line, such as the time or a container's name.

/// The text before a heading, which stands before each row as well, with other digits at most.
#[derive(Debug, Clone)]
pub(super) struct Prefix(String);

impl Prefix {
    /// Returns the prefix that a heading has.
    pub(super) fn new(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// Returns a line without the prefix, or as it is if it has none of that shape.
    pub(super) fn strip<'a>(&self, line: &'a str) -> &'a str {
        let Some((prefix, rest)) = line.split_at_checked(self.0.len()) else { return line };
        let is_alike = |(one, other): (u8, u8)| one == other || (one.is_ascii_digit() && other.is_ascii_digit());
        if prefix.bytes().zip(self.0.bytes()).all(is_alike) { rest } else { line }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_before_the_heading_is_left_out_of_the_rows() {
        let prefix = Prefix::new("2025-07-01T10:00:00.123Z | ");
        assert_eq!(prefix.strip("2025-07-01T10:00:01.456Z | Mean TTFT (ms): 1"), "Mean TTFT (ms): 1");
        assert_eq!(
            prefix.strip("Mean TTFT (ms):                          1"),
            "Mean TTFT (ms):                          1"
        );
        assert_eq!(prefix.strip("2025"), "2025");
        assert_eq!(Prefix::new("").strip("Mean TTFT (ms): 1"), "Mean TTFT (ms): 1");
        assert_eq!(Prefix::new("ab").strip("ä"), "ä");
    }
}
