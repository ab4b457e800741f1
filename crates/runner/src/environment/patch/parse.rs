//! Reads a unified diff as git writes it, strictly: every line of a hunk is accounted for.

use std::path::PathBuf;

use super::super::safe_path::relative;
use super::names::{Prefix, header_names, name_of, unquote};
use super::{Refusal, refuse};
use isobench_schema::failure::FailureClass;

/// A change of one file.
#[derive(Debug, Default)]
pub(super) struct FilePatch {
    /// The number of the line in the patch where it begins, from 1.
    pub(super) line: u64,
    /// The file before; absent if it is created.
    pub(super) old: Option<PathBuf>,
    /// The file after; absent if it is deleted.
    pub(super) new: Option<PathBuf>,
    /// Whether the old file stays, because the new one is a copy of it.
    pub(super) copies: bool,
    /// The mode that the patch gives the file, if it says one.
    pub(super) new_mode: Option<u32>,
    /// The line that says that the content is binary.
    pub(super) binary: Option<u64>,
    /// The line that makes it a link or a submodule.
    pub(super) special: Option<u64>,
    /// The changes of its lines.
    pub(super) hunks: Vec<Hunk>,
}

/// A run of changed lines with those around them.
#[derive(Debug, Default)]
pub(super) struct Hunk {
    /// The number of its head line in the patch, from 1.
    pub(super) line: u64,
    /// The first line that it replaces, from 1; the line before, if it replaces none.
    pub(super) old_start: u64,
    /// The lines that must be there, with their line ends.
    pub(super) old: Vec<Vec<u8>>,
    /// The lines that replace them.
    pub(super) new: Vec<Vec<u8>>,
    /// Whether any line is added or removed.
    pub(super) changes: bool,
    /// Number of unchanged lines at its end.
    pub(super) trailing: usize,
}

/// A line of the patch with its number.
type Line<'a> = (u64, &'a [u8]);

/// What stands after `---` or `+++`.
#[derive(Debug, Default)]
enum Written {
    /// There is no such line.
    #[default]
    Absent,
    /// `/dev/null`.
    Nothing,
    /// This name.
    Name(Vec<u8>),
}

impl Written {
    fn of(text: &[u8]) -> Self {
        name_of(text).map_or(Self::Nothing, Self::Name)
    }

    fn name(&self) -> Option<&[u8]> {
        match self {
            Self::Name(name) => Some(name),
            Self::Absent | Self::Nothing => None,
        }
    }
}

/// Names as they stand in the patch, before it is known which prefix they have.
#[derive(Debug, Default)]
struct RawNames {
    header: Option<Vec<u8>>,
    /// After `---` and `+++`.
    old: Written,
    new: Written,
    /// After `rename from` and so on; these have no prefix.
    from: Option<Vec<u8>>,
    to: Option<Vec<u8>>,
    creates: bool,
    deletes: bool,
}

/// A whole patch.
#[derive(Debug)]
pub(super) struct ParsedPatch {
    pub(super) files: Vec<FilePatch>,
    pub(super) prefix: Prefix,
}

/// Parses the whole patch.
pub(super) fn parse(bytes: &[u8]) -> Result<ParsedPatch, Refusal> {
    let mut reader = Reader { lines: split_lines(bytes), next: 0 };
    let mut sections: Vec<(FilePatch, RawNames)> = Vec::new();
    while let Some((number, text)) = reader.peek(0) {
        if let Some(names) = text.strip_prefix(b"diff --git ") {
            reader.next += 1;
            let raw = RawNames { header: Some(names.to_vec()), ..RawNames::default() };
            sections.push((FilePatch { line: number, ..FilePatch::default() }, raw));
            read_extended_headers(&mut reader, &mut sections)?;
        } else if reader.at_traditional_header() {
            sections.push((FilePatch { line: number, ..FilePatch::default() }, RawNames::default()));
        } else if text.starts_with(b"@@ ") {
            return refuse(FailureClass::PatchMalformed, "has a hunk that belongs to no file", number, text);
        } else {
            // A mail's head, a commit message, or what tools print between files.
            reader.next += 1;
            continue;
        }
        read_content(&mut reader, &mut sections)?;
    }
    name_files(sections)
}

/// Splits into lines with numbers; the line ends go.
fn split_lines(bytes: &[u8]) -> Vec<Line<'_>> {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    if lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    (1..).zip(lines).collect()
}

struct Reader<'a> {
    lines: Vec<Line<'a>>,
    next: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> Option<Line<'a>> {
        self.lines.get(self.next + ahead).copied()
    }

    fn peek_starts(&self, ahead: usize, with: &[u8]) -> bool {
        self.peek(ahead).is_some_and(|(_, text)| text.starts_with(with))
    }

    /// Three lines together begin a file; one alone may be part of a message.
    fn at_traditional_header(&self) -> bool {
        self.peek_starts(0, b"--- ") && self.peek_starts(1, b"+++ ") && self.peek_starts(2, b"@@ -")
    }
}

/// Reads what git writes between `diff --git` and `---`.
fn read_extended_headers(reader: &mut Reader<'_>, sections: &mut [(FilePatch, RawNames)]) -> Result<(), Refusal> {
    let Some((file, names)) = sections.last_mut() else { return Ok(()) };
    while let Some((number, text)) = reader.peek(0) {
        let after = |head: &str| text.strip_prefix(head.as_bytes());
        if let Some(mode) = after("old mode ") {
            note_mode(file, mode, number, Side::Old)?;
        } else if let Some(mode) = after("new mode ") {
            note_mode(file, mode, number, Side::New)?;
        } else if let Some(mode) = after("new file mode ") {
            names.creates = true;
            note_mode(file, mode, number, Side::New)?;
        } else if let Some(mode) = after("deleted file mode ") {
            names.deletes = true;
            note_mode(file, mode, number, Side::Old)?;
        } else if let Some(name) = after("rename from ") {
            names.from = Some(unquote(name));
        } else if let Some(name) = after("rename to ") {
            names.to = Some(unquote(name));
        } else if let Some(name) = after("copy from ") {
            names.from = Some(unquote(name));
            file.copies = true;
        } else if let Some(name) = after("copy to ") {
            names.to = Some(unquote(name));
        } else if let Some(index) = after("index ") {
            if let Some(mode) = index.split(|byte| *byte == b' ').nth(1) {
                note_mode(file, mode, number, Side::Old)?;
            }
        } else if after("similarity index ").is_none() && after("dissimilarity index ").is_none() {
            break;
        }
        reader.next += 1;
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

fn note_mode(file: &mut FilePatch, mode: &[u8], number: u64, side: Side) -> Result<(), Refusal> {
    let text = std::str::from_utf8(mode).unwrap_or_default().trim_end();
    let permissions = match text {
        "100644" | "100664" => Some(0o644),
        "100755" => Some(0o755),
        "120000" | "160000" => {
            file.special.get_or_insert(number);
            None
        }
        _ => return refuse(FailureClass::PatchMalformed, "names an unknown file mode", number, mode),
    };
    if side == Side::New {
        file.new_mode = permissions;
    }
    Ok(())
}

/// Reads the names and hunks of a file, or the mark of its binary content.
fn read_content(reader: &mut Reader<'_>, sections: &mut [(FilePatch, RawNames)]) -> Result<(), Refusal> {
    let Some((file, names)) = sections.last_mut() else { return Ok(()) };
    let Some((number, text)) = reader.peek(0) else { return Ok(()) };
    if text.starts_with(b"Binary files ") || text.starts_with(b"GIT binary patch") {
        file.binary = Some(number);
        reader.next += 1;
        // The encoded bytes are git's to read; they end at the next file.
        while reader.peek(0).is_some() && !reader.peek_starts(0, b"diff --git ") {
            reader.next += 1;
        }
        return Ok(());
    }
    if !text.starts_with(b"--- ") {
        return Ok(());
    }
    let Some((_, plus)) = reader.peek(1).filter(|(_, text)| text.starts_with(b"+++ ")) else {
        return refuse(FailureClass::PatchMalformed, "has a `---` line without a `+++` line", number, text);
    };
    names.old = Written::of(text.get(4..).unwrap_or_default());
    names.new = Written::of(plus.get(4..).unwrap_or_default());
    reader.next += 2;
    while reader.peek_starts(0, b"@@ ") {
        let hunk = read_hunk(reader, file)?;
        file.hunks.push(hunk);
    }
    if file.hunks.is_empty() {
        return refuse(FailureClass::PatchMalformed, "names a file without any hunk", number, text);
    }
    Ok(())
}

fn read_hunk(reader: &mut Reader<'_>, file: &mut FilePatch) -> Result<Hunk, Refusal> {
    let Some((line, head)) = reader.peek(0) else { return Ok(Hunk::default()) };
    reader.next += 1;
    let Some([(old_start, mut old_left), (_, mut new_left)]) = parse_hunk_head(head) else {
        return refuse(FailureClass::PatchMalformed, "has a hunk head that can't be read", line, head);
    };
    let mut hunk = Hunk { line, old_start, ..Hunk::default() };
    let mut last = [false, false];
    while old_left > 0 || new_left > 0 || reader.peek_starts(0, b"\\ ") {
        let Some((number, text)) = reader.peek(0) else {
            return refuse(FailureClass::PatchMalformed, "ends inside a hunk", line, head);
        };
        let content = || [text.get(1..).unwrap_or_default(), b"\n"].concat();
        let (takes_old, takes_new) = match text.first() {
            // Some mailers strip the blank of an empty unchanged line.
            Some(b' ') | None => (true, true),
            Some(b'-') => (true, false),
            Some(b'+') => (false, true),
            Some(b'\\') => {
                strip_line_end(&mut hunk, last);
                reader.next += 1;
                continue;
            }
            Some(_) => (false, false),
        };
        if (!takes_old && !takes_new) || (takes_old && old_left == 0) || (takes_new && new_left == 0) {
            let message = "has a hunk whose lines don't match the numbers in its head";
            return refuse(FailureClass::PatchMalformed, message, number, text);
        }
        if text.contains(&0) {
            file.binary.get_or_insert(number);
        }
        if takes_old {
            old_left -= 1;
            hunk.old.push(content());
        }
        if takes_new {
            new_left -= 1;
            hunk.new.push(content());
        }
        hunk.trailing = if takes_old && takes_new { hunk.trailing + 1 } else { 0 };
        hunk.changes |= takes_old != takes_new;
        last = [takes_old, takes_new];
        reader.next += 1;
    }
    Ok(hunk)
}

/// `\ No newline at end of file`: the last line has no line end.
fn strip_line_end(hunk: &mut Hunk, [old, new]: [bool; 2]) {
    for (lines, affected) in [(&mut hunk.old, old), (&mut hunk.new, new)] {
        if let Some(line) = lines.last_mut().filter(|line| affected && line.ends_with(b"\n")) {
            line.pop();
        }
    }
}

/// Parses `@@ -START[,COUNT] +START[,COUNT] @@`.
fn parse_hunk_head(head: &[u8]) -> Option<[(u64, u64); 2]> {
    let text = String::from_utf8_lossy(head);
    let rest = text.strip_prefix("@@ -")?;
    let (ranges, _) = rest.split_once(" @@")?;
    let (old, new) = ranges.split_once(" +")?;
    let range = |text: &str| match text.split_once(',') {
        Some((start, count)) => Some((start.parse().ok()?, count.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    };
    Some([range(old)?, range(new)?])
}

/// Finds out which prefix the names have, takes it off, and checks every path.
fn name_files(sections: Vec<(FilePatch, RawNames)>) -> Result<ParsedPatch, Refusal> {
    let named = sections.iter().flat_map(|(_, names)| [&names.old, &names.new]);
    let written: Vec<&[u8]> = named.filter_map(Written::name).collect();
    let headers: Vec<&[u8]> = sections.iter().filter_map(|(_, names)| names.header.as_deref()).collect();
    let prefix = Prefix::of(&written, &headers);
    let mut files = Vec::new();
    for (mut file, names) in sections {
        let [old, new] = file_names(&file, names, prefix)?;
        let check = |name: Option<Vec<u8>>| match name {
            None => Ok(None),
            Some(name) => match relative(&name) {
                Ok(path) => Ok(Some(path.to_owned())),
                Err(reason) => {
                    refuse(FailureClass::PatchEscapes, format!("names a path that {reason}"), file.line, &name)
                }
            },
        };
        (file.old, file.new) = (check(old)?, check(new)?);
        files.push(file);
    }
    Ok(ParsedPatch { files, prefix })
}

fn file_names(file: &FilePatch, names: RawNames, prefix: Prefix) -> Result<[Option<Vec<u8>>; 2], Refusal> {
    let header = names.header.as_deref().and_then(|header| header_names(header, prefix));
    let [header_old, header_new] = header.map_or([None, None], |[old, new]| [Some(old), Some(new)]);
    let choose = |moved: Option<Vec<u8>>, written: Written, header: Option<Vec<u8>>| match (moved, written) {
        (Some(name), _) => Some(name),
        (None, Written::Name(name)) => Some(prefix.strip(name)),
        (None, Written::Nothing) => None,
        (None, Written::Absent) => header,
    };
    let old = choose(names.from, names.old, header_old);
    let new = choose(names.to, names.new, header_new);
    let old = old.filter(|_| !names.creates);
    let new = new.filter(|_| !names.deletes);
    if old.is_none() && new.is_none() {
        let shown = names.header.unwrap_or_default();
        return refuse(FailureClass::PatchMalformed, "has a change whose file can't be told", file.line, &shown);
    }
    Ok([old, new])
}
