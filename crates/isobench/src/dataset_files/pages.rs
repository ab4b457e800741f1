//! Looks at the page headers of a Parquet file before anything is unpacked: a few bytes can claim to hold gigabytes.

use parquet::file::metadata::ParquetMetaData;

/// What a file may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// The most bytes that one page may unpack to.
    pub(super) page: i64,
    /// The most bytes that all pages may unpack to.
    pub(super) unpacked: i64,
    /// The most values that all pages may hold.
    pub(super) values: i64,
    /// The most rows.
    pub(super) rows: i64,
    /// The most memory that rows may take, in bytes: a page of few bytes can stand for one text many times.
    pub(super) memory: usize,
}

/// What a dataset stays far below.
pub(super) const LIMITS: Limits = Limits {
    page: 256 * 1024 * 1024,
    unpacked: 1024 * 1024 * 1024,
    values: 50_000_000,
    rows: 1_000_000,
    memory: 1024 * 1024 * 1024,
};

/// How deep structures of a page header may lie in each other; the format needs three.
const DEEPEST: u32 = 8;

/// What the headers of pages claim.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Claims {
    unpacked: i64,
    values: i64,
}

/// Checks that the file's pages lie inside it, and that what they claim can be held in memory.
///
/// # Errors
/// Returns a sentence that names the column.
pub(super) fn check(bytes: &[u8], metadata: &ParquetMetaData, limits: Limits) -> Result<(), String> {
    let mut all = Claims::default();
    for group in metadata.row_groups() {
        for chunk in group.columns() {
            let column = chunk.column_path().string();
            let start = chunk.dictionary_page_offset().unwrap_or(i64::MAX).min(chunk.data_page_offset());
            let end = start.checked_add(chunk.compressed_size());
            let range = usize::try_from(start).ok().zip(end.and_then(|end| usize::try_from(end).ok()));
            let pages = range.and_then(|(start, end)| bytes.get(start..end));
            let pages = pages.ok_or_else(|| format!("the pages of the column `{column}` lie outside the file"))?;
            walk(pages, limits, &mut all).map_err(|what| format!("the column `{column}`: {what}"))?;
        }
    }
    Ok(())
}

/// Adds what the pages of one column claim.
fn walk(mut pages: &[u8], limits: Limits, all: &mut Claims) -> Result<(), String> {
    while !pages.is_empty() {
        let mut header = Compact { rest: pages };
        let page = header.page().ok_or("a page header can't be read")?;
        if !(0..=limits.page).contains(&page.unpacked) {
            return Err(format!("a page claims to hold {} bytes, more than {}", page.unpacked, limits.page));
        }
        all.unpacked += page.unpacked;
        all.values = all.values.saturating_add(page.values.max(0));
        if all.unpacked > limits.unpacked {
            return Err(format!("the file claims to hold more than {} bytes", limits.unpacked));
        }
        if all.values > limits.values {
            return Err(format!("the file claims to hold more than {} values", limits.values));
        }
        let packed = usize::try_from(page.packed).ok();
        pages = packed.and_then(|packed| header.rest.get(packed..)).ok_or("a page lies outside its column")?;
    }
    Ok(())
}

/// What is read of a page header.
#[derive(Debug, Default, PartialEq, Eq)]
struct Page {
    unpacked: i64,
    packed: i64,
    values: i64,
}

/// Reads Thrift's compact protocol, as far as page headers need it.
struct Compact<'b> {
    rest: &'b [u8],
}

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let value = self.varint()?;
        Some((value >> 1).cast_signed() ^ -((value & 1).cast_signed()))
    }

    /// Returns the kind and number of the next field of a structure, or `None` twice over: outside for broken bytes, inside
    /// for the structure's end.
    #[expect(clippy::option_option, reason = "the outer one is what `?` passes on")]
    fn field(&mut self, last: &mut i64) -> Option<Option<u8>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let step = i64::from(head >> 4);
        *last = if step == 0 { self.integer()? } else { last.checked_add(step)? };
        Some(Some(head & 0x0F))
    }

    /// Reads a page header: its fields 2 and 3, and field 1 of the structure that tells the page's kind (5, 7 or 8).
    fn page(&mut self) -> Option<Page> {
        let (mut page, mut last) = (Page::default(), 0);
        while let Some(kind) = self.field(&mut last)? {
            match (last, kind) {
                (2, 5) => page.unpacked = self.integer()?,
                (3, 5) => page.packed = self.integer()?,
                (5 | 7 | 8, 12) => page.values = self.first_integer()?,
                (_, kind) => self.skip(kind, 0)?,
            }
        }
        Some(page)
    }

    /// Reads a structure and returns its field 1.
    fn first_integer(&mut self) -> Option<i64> {
        let (mut first, mut last) = (0, 0);
        while let Some(kind) = self.field(&mut last)? {
            if (last, kind) == (1, 5) {
                first = self.integer()?;
            } else {
                self.skip(kind, 1)?;
            }
        }
        Some(first)
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            1 | 2 => {}
            3 => {
                self.byte()?;
            }
            4..=6 => {
                self.varint()?;
            }
            7 => self.rest = self.rest.get(8..)?,
            8 => {
                let length = usize::try_from(self.varint()?).ok()?;
                self.rest = self.rest.get(length..)?;
            }
            9 | 10 => {
                let head = self.byte()?;
                let short = u64::from(head >> 4);
                let length = if short == 15 { self.varint()? } else { short };
                for _ in 0..length {
                    // Elements that are switches take a byte each.
                    self.skip(if matches!(head & 0x0F, 1 | 2) { 3 } else { head & 0x0F }, depth + 1)?;
                }
            }
            12 => {
                let mut last = 0;
                while let Some(kind) = self.field(&mut last)? {
                    self.skip(kind, depth + 1)?;
                }
            }
            _ => return None,
        }
        Some(())
    }
}
