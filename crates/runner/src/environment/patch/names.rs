//! File names in a patch: quotes, time stamps, and the prefixes `a/` and `b/`.

/// What stands before every name in a patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Prefix {
    /// One component, as in `a/src/x.py`.
    One,
    /// Nothing, as `git diff --no-prefix` writes.
    None,
}

/// The prefixes that git writes: old and new; commit, index, work tree; object; and those of two plain folders.
const KNOWN: &[&[u8]] = &[b"a/", b"b/", b"c/", b"i/", b"w/", b"o/", b"1/", b"2/"];

impl Prefix {
    /// Returns the prefix of a patch with these names, or, if it has none, with these `diff --git` lines.
    ///
    /// Only a patch in which no name has a prefix that git writes counts as one without prefixes.
    pub(super) fn of(names: &[&[u8]], headers: &[&[u8]]) -> Self {
        let names = if names.is_empty() { headers } else { names };
        // A quoted header is told apart by its names only; without any, git's own prefix is the likely one.
        let has_prefix = |name: &[u8]| name.starts_with(b"\"") || KNOWN.iter().any(|known| name.starts_with(known));
        if names.is_empty() || names.iter().any(|name| has_prefix(name)) { Self::One } else { Self::None }
    }

    /// Returns the option that tells git the same.
    pub(super) fn option(self) -> &'static str {
        match self {
            Self::One => "-p1",
            Self::None => "-p0",
        }
    }

    /// Takes the prefix off. A name without any `/` keeps all of it, and an absolute one stays absolute.
    pub(super) fn strip(self, name: Vec<u8>) -> Vec<u8> {
        match self {
            Self::None => name,
            Self::One => match name.iter().position(|byte| *byte == b'/') {
                Some(slash) if slash > 0 => name.get(slash + 1..).unwrap_or_default().to_vec(),
                Some(_) | None => name,
            },
        }
    }
}

/// Returns the name after `---` or `+++`; `None` for `/dev/null`.
pub(super) fn name_of(text: &[u8]) -> Option<Vec<u8>> {
    // Other tools than git write a time stamp after a tab.
    let name = if text.starts_with(b"\"") {
        unquote(text)
    } else {
        let end = text.iter().position(|byte| *byte == b'\t').unwrap_or(text.len());
        text.get(..end).unwrap_or_default().trim_ascii_end().to_vec()
    };
    (name != b"/dev/null").then_some(name)
}

/// Returns the two names of a `diff --git` line, without their prefixes, if they can be told apart.
pub(super) fn header_names(header: &[u8], prefix: Prefix) -> Option<[Vec<u8>; 2]> {
    if header.starts_with(b"\"") {
        let end = quoted_length(header)?;
        let (old, rest) = header.split_at(end);
        return Some([prefix.strip(unquote(old)), prefix.strip(unquote(rest.strip_prefix(b" ")?))]);
    }
    let blanks = header.iter().enumerate().filter(|(_, byte)| **byte == b' ').map(|(at, _)| at);
    for blank in blanks {
        let (old, new) = header.split_at(blank);
        let new = unquote(new.get(1..)?);
        let names = [prefix.strip(old.to_vec()), prefix.strip(new)];
        let [old, new] = &names;
        // Without a rename line both names are the same, which shows where the first one ends.
        if old == new && !old.is_empty() {
            return Some(names);
        }
    }
    None
}

fn quoted_length(text: &[u8]) -> Option<usize> {
    let mut escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Takes off the quotes of a name as git writes them, if it has any.
pub(super) fn unquote(text: &[u8]) -> Vec<u8> {
    let text = text.strip_suffix(b"\r").unwrap_or(text);
    let inner = quoted_length(text).filter(|_| text.starts_with(b"\"")).and_then(|end| text.get(1..end - 1));
    let Some(inner) = inner else { return text.to_vec() };
    let mut name = Vec::with_capacity(inner.len());
    let mut bytes = inner.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            name.push(byte);
            continue;
        }
        match bytes.next() {
            Some(b'n') => name.push(b'\n'),
            Some(b't') => name.push(b'\t'),
            Some(b'r') => name.push(b'\r'),
            Some(b'a') => name.push(7),
            Some(b'b') => name.push(8),
            Some(b'v') => name.push(11),
            Some(b'f') => name.push(12),
            Some(digit @ b'0'..=b'7') => {
                let mut value = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(next) = bytes.next_if(|next| matches!(next, b'0'..=b'7')) {
                        value = value * 8 + u32::from(next - b'0');
                    }
                }
                // git writes three digits up to \377.
                name.push(u8::try_from(value & 0xff).unwrap_or_default());
            }
            Some(other) => name.push(other),
            None => {}
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_quotes_and_time_stamps() {
        for (text, expected) in [
            (b"a/x.py".as_slice(), Some(b"a/x.py".as_slice())),
            (b"a/x.py\t2026-01-01 00:00:00".as_slice(), Some(b"a/x.py".as_slice())),
            (b"a/with blank.py\t".as_slice(), Some(b"a/with blank.py".as_slice())),
            (b"\"a/\\303\\251\\\"\\n\"".as_slice(), Some(b"a/\xc3\xa9\"\n".as_slice())),
            (b"/dev/null".as_slice(), None),
            (b"/dev/null\t1970".as_slice(), None),
        ] {
            assert_eq!(name_of(text).as_deref(), expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn only_a_patch_without_any_known_prefix_has_none() {
        for (names, expected) in [
            (vec![b"a/x".as_slice(), b"b/x"], Prefix::One),
            (vec![b"src/x".as_slice(), b"src/x"], Prefix::None),
            (vec![b"x".as_slice()], Prefix::None),
            (vec![b"src/x".as_slice(), b"b/y"], Prefix::One),
        ] {
            assert_eq!(Prefix::of(&names, &[]), expected, "{names:?}");
        }
        assert_eq!(Prefix::of(&[], &[b"a/x b/x"]), Prefix::One);
    }

    #[test]
    fn a_header_names_one_file_twice() {
        for (header, expected) in [
            (b"a/x b/x".as_slice(), Some(b"x".as_slice())),
            (b"a/with b/with b/with b/with".as_slice(), Some(b"with b/with".as_slice())),
            (b"\"a/\\t\" \"b/\\t\"".as_slice(), Some(b"\t".as_slice())),
            (b"a/x b/y".as_slice(), None),
        ] {
            let found = header_names(header, Prefix::One).map(|[old, _]| old);
            assert_eq!(found.as_deref(), expected, "{}", header.escape_ascii());
        }
    }
}
