//! Puts the hunks of one file in place: at exactly the lines that they name, or not at all.

use super::parse::Hunk;

/// How a hunk fits the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fit {
    /// Exactly where it says.
    Exact,
    /// Only at this other line, from 1.
    Elsewhere(u64),
    /// Nowhere. The line of the file, from 1, that differs from the hunk, and what stands there, if anything.
    Nowhere(u64, Option<Vec<u8>>),
}

/// Returns how each hunk fits, and the new lines if all fit exactly.
pub(super) fn place(lines: &[Vec<u8>], hunks: &[Hunk]) -> (Vec<Fit>, Option<Vec<Vec<u8>>>) {
    let mut fits = Vec::new();
    let mut result = Vec::new();
    let mut taken = 0;
    for hunk in hunks {
        let fit = fit(lines, hunk, taken);
        if fit == Fit::Exact {
            let start = first_index(hunk);
            result.extend(lines.iter().take(start).skip(taken).cloned());
            result.extend(hunk.new.iter().cloned());
            taken = start + hunk.old.len();
        }
        fits.push(fit);
    }
    result.extend(lines.iter().skip(taken).cloned());
    let exact = fits.iter().all(|fit| *fit == Fit::Exact);
    (fits, exact.then_some(result))
}

/// The index of the first line that the hunk replaces, or before which it inserts.
fn first_index(hunk: &Hunk) -> usize {
    let start = usize::try_from(hunk.old_start).unwrap_or(usize::MAX);
    if hunk.old.is_empty() { start } else { start.saturating_sub(1) }
}

fn fit(lines: &[Vec<u8>], hunk: &Hunk, taken: usize) -> Fit {
    let start = first_index(hunk);
    if start >= taken && fits_at(lines, hunk, start) {
        return Fit::Exact;
    }
    let others = (taken..=lines.len()).filter(|at| *at != start && fits_at(lines, hunk, *at));
    // The nearest one is where a lenient tool would put it.
    if let Some(at) = others.min_by_key(|at| at.abs_diff(start)).filter(|_| !hunk.old.is_empty()) {
        return Fit::Elsewhere(at as u64 + 1);
    }
    let differs = hunk.old.iter().zip(start..).find(|(line, at)| lines.get(*at) != Some(line));
    let at = differs.map_or(start, |(_, at)| at);
    Fit::Nowhere(at as u64 + 1, lines.get(at).cloned())
}

fn fits_at(lines: &[Vec<u8>], hunk: &Hunk, start: usize) -> bool {
    let end = start.saturating_add(hunk.old.len());
    // A hunk that ends with a change says that the file ends there, as git understands it.
    let ends_well = hunk.trailing > 0 || end == lines.len();
    ends_well && lines.get(start..end) == Some(hunk.old.as_slice())
}

/// Splits a file into lines that keep their line ends.
pub(super) fn to_lines(bytes: &[u8]) -> Vec<Vec<u8>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hunk(old_start: u64, old: &str, new: &str, trailing: usize) -> Hunk {
        Hunk {
            line: 1,
            old_start,
            old: to_lines(old.as_bytes()),
            new: to_lines(new.as_bytes()),
            changes: true,
            trailing,
        }
    }

    fn check(file: &str, hunks: &[Hunk], fits: &[Fit], expected: Option<&str>) {
        let (found, result) = place(&to_lines(file.as_bytes()), hunks);
        assert_eq!(found, fits);
        assert_eq!(result.map(|lines| String::from_utf8(lines.concat()).unwrap()).as_deref(), expected);
    }

    #[test]
    fn hunks_fit_only_where_they_say() {
        let file = "a\nb\nc\nd\n";
        check(file, &[hunk(2, "b\nc\n", "B\nc\n", 1)], &[Fit::Exact], Some("a\nB\nc\nd\n"));
        check(file, &[hunk(1, "b\nc\n", "B\nc\n", 1)], &[Fit::Elsewhere(2)], None);
        check(file, &[hunk(2, "b\nx\n", "B\nx\n", 1)], &[Fit::Nowhere(3, Some(b"c\n".to_vec()))], None);
        check(file, &[hunk(9, "x\n", "y\n", 0)], &[Fit::Nowhere(9, None)], None);
        check("", &[hunk(0, "", "new\n", 0)], &[Fit::Exact], Some("new\n"));
        check(file, &[hunk(4, "d\n", "d\ne\n", 0)], &[Fit::Exact], Some("a\nb\nc\nd\ne\n"));
    }

    #[test]
    fn a_hunk_without_lines_after_its_change_must_end_the_file() {
        check("a\nb\nc\n", &[hunk(2, "b\n", "B\n", 0)], &[Fit::Nowhere(2, Some(b"b\n".to_vec()))], None);
    }

    #[test]
    fn hunks_may_not_overlap_or_go_back() {
        let hunks = [hunk(2, "b\nc\n", "B\nc\n", 1), hunk(1, "a\nb\n", "A\nb\n", 1)];
        check("a\nb\nc\n", &hunks, &[Fit::Exact, Fit::Nowhere(1, Some(b"a\n".to_vec()))], None);
    }
}
