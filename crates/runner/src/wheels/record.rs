//! The list of a wheel's files with their digests: the file `RECORD`, lines of comma-separated values.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use isobench_schema::ids::Digest;

/// A line of the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// The file's path in the wheel.
    pub(super) path: String,
    /// Its digest, if the line has one.
    pub(super) sha256: Option<Digest>,
    /// Its size, if the line has one.
    pub(super) size: Option<u64>,
}

/// Reads the list.
///
/// # Errors
/// Returns what is wrong with the first line that can't be read.
pub(super) fn read(text: &str) -> Result<Vec<Line>, String> {
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |what: &str| format!("line {} of `RECORD` {what}", number + 1);
        let fields = fields(line).ok_or_else(|| wrong("has a quote that doesn't end"))?;
        let [path, hash, size] =
            <[String; 3]>::try_from(fields).map_err(|_cause| wrong("doesn't have three values"))?;
        let sha256 = match hash.split_once('=') {
            None if hash.is_empty() => None,
            Some(("sha256", encoded)) => Some(digest(encoded).ok_or_else(|| wrong("has a hash that is none"))?),
            Some(_) | None => return Err(wrong("has another hash than SHA-256")),
        };
        let size =
            if size.is_empty() { None } else { Some(size.parse().map_err(|_cause| wrong("has a size that is none"))?) };
        lines.push(Line { path, sha256, size });
    }
    Ok(lines)
}

/// Splits a line at its commas. In quotes a comma is one of the value's, and two quotes are one.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields.last_mut()?.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            letter => fields.last_mut()?.push(letter),
        }
    }
    (!quoted).then_some(fields)
}

fn digest(encoded: &str) -> Option<Digest> {
    use std::fmt::Write as _;
    let bytes = URL_SAFE_NO_PAD.decode(encoded.trim_end_matches('=')).ok().filter(|bytes| bytes.len() == 32)?;
    let mut text = String::new();
    for byte in bytes {
        write!(text, "{byte:02x}").ok()?;
    }
    Digest::new(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_with_quotes_and_empty_values() {
        let hash = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
        let lines = read(&format!("a.py,sha256={hash},0\n\"b,\"\"c\"\".py\",,\nx.dist-info/RECORD,,\n")).unwrap();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], Line { path: "a.py".to_owned(), sha256: Some(Digest::of(b"")), size: Some(0) });
        assert_eq!(lines[1], Line { path: "b,\"c\".py".to_owned(), sha256: None, size: None });
        for (text, expected) in [
            ("a.py,sha256=zzz,1", "line 1 of `RECORD` has a hash that is none"),
            ("a.py,md5=00,1", "line 1 of `RECORD` has another hash than SHA-256"),
            ("\na.py,,x", "line 2 of `RECORD` has a size that is none"),
            ("a.py", "line 1 of `RECORD` doesn't have three values"),
            ("\"a.py,,", "line 1 of `RECORD` has a quote that doesn't end"),
        ] {
            assert_eq!(read(text).unwrap_err(), expected);
        }
    }
}
