//! Comma-separated values with a head line (RFC 4180), read by column name.

use super::rows::ReadTableError;

/// A file: its column names, and its rows with the number of their line.
pub(super) struct Csv {
    file: &'static str,
    head: Vec<String>,
    rows: Vec<(u64, Vec<String>)>,
}

/// A row of a file.
pub(super) struct CsvRow<'a> {
    csv: &'a Csv,
    line: u64,
    cells: &'a [String],
}

impl Csv {
    /// Reads a file that must have those columns.
    pub(super) fn read(bytes: &[u8], file: &'static str, columns: &[&'static str]) -> Result<Self, ReadTableError> {
        let text = std::str::from_utf8(bytes).map_err(|source| ReadTableError::NotUtf8 { file, source })?;
        let mut records = records(text.strip_prefix('\u{feff}').unwrap_or(text)).into_iter();
        let (_, head) = records.next().ok_or(ReadTableError::Empty { file })?;
        for &column in columns {
            if !head.iter().any(|name| name == column) {
                return Err(ReadTableError::NoColumn { file, column });
            }
        }
        let rows: Vec<(u64, Vec<String>)> = records.collect();
        for (line, cells) in &rows {
            if cells.len() != head.len() {
                let (line, found, expected) = (*line, cells.len(), head.len());
                return Err(ReadTableError::RowLength { file, line, found, expected });
            }
        }
        Ok(Self { file, head, rows })
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = CsvRow<'_>> {
        self.rows.iter().map(|(line, cells)| CsvRow { csv: self, line: *line, cells })
    }

    /// Returns the names of the columns that end so, without that end.
    pub(super) fn columns_ending(&self, end: &str) -> Vec<String> {
        self.head.iter().filter_map(|name| name.strip_suffix(end)).map(str::to_owned).collect()
    }
}

impl CsvRow<'_> {
    /// Returns what stands in a column; nothing in one that isn't there.
    pub(super) fn text(&self, column: &str) -> &str {
        let place = self.csv.head.iter().position(|name| name == column);
        place.and_then(|place| self.cells.get(place)).map_or("", String::as_str)
    }

    /// Returns the number that stands in a column, if there is something.
    pub(super) fn number(&self, column: &str) -> Result<Option<f64>, ReadTableError> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        number.map(Some).ok_or_else(|| self.wrong(column, "a finite number"))
    }

    /// Returns the error of a cell that holds something else.
    pub(super) fn wrong(&self, column: &str, expected: &'static str) -> ReadTableError {
        ReadTableError::Cell {
            file: self.csv.file,
            line: self.line,
            column: column.to_owned(),
            found: self.text(column).to_owned(),
            expected,
        }
    }
}

/// Returns the records of a text with the lines that they begin on. A line without anything is no record.
fn records(text: &str) -> Vec<(u64, Vec<String>)> {
    let (mut records, mut cells, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut line, mut began, mut is_quoted, mut was_quoted) = (1_u64, 1_u64, false, false);
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        line += u64::from(c == '\n');
        match c {
            '"' if is_quoted && rest.peek() == Some(&'"') => {
                rest.next();
                cell.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            '"' if cell.is_empty() => (is_quoted, was_quoted) = (true, true),
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell)),
            '\r' if !is_quoted && rest.peek() == Some(&'\n') => {}
            '\n' if !is_quoted => {
                if !(cells.is_empty() && cell.is_empty() && !was_quoted) {
                    cells.push(std::mem::take(&mut cell));
                    records.push((began, std::mem::take(&mut cells)));
                }
                (began, was_quoted) = (line, false);
            }
            other => cell.push(other),
        }
    }
    if !(cells.is_empty() && cell.is_empty() && !was_quoted) {
        cells.push(cell);
        records.push((began, cells));
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_commas_quotes_and_line_ends() {
        let found = records("a,b\r\n\"x,\"\"y\"\"\",\"1\n2\"\n\n,last");
        let expected: Vec<(u64, Vec<String>)> = vec![
            (1, vec!["a".into(), "b".into()]),
            (2, vec!["x,\"y\"".into(), "1\n2".into()]),
            (5, vec![String::new(), "last".into()]),
        ];
        assert_eq!(found, expected);
    }
}
