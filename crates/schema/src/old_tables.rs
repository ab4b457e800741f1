//! Published tables, recomputed: each number beside the one that was printed, and every difference with its reason.

use serde::{Deserialize, Serialize};

use crate::format::Stored;

/// A number that was computed, beside the one that was printed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableCell {
    /// The number as it comes out of the data; absent where the data have none.
    pub here: Option<f64>,
    /// The number that was printed; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<f64>,
    /// How many decimals were printed.
    pub decimals: u8,
}

impl TableCell {
    /// Returns the number that was computed as it would be printed.
    pub fn text(&self) -> Option<String> {
        self.here.map(|value| self.print(value))
    }

    /// Returns the number that was published as it was printed.
    pub fn published_text(&self) -> Option<String> {
        self.published.map(|value| self.print(value))
    }

    /// Returns whether nothing else was published: the two are the same as printed, or nothing was printed.
    pub fn agrees(&self) -> bool {
        self.published.is_none() || self.text() == self.published_text()
    }

    fn print(&self, value: f64) -> String {
        let text = format!("{value:.*}", usize::from(self.decimals));
        // What is rounded to zero has no sign.
        let is_zero = text.chars().all(|c| matches!(c, '-' | '0' | '.'));
        if is_zero { text.trim_start_matches('-').to_owned() } else { text }
    }
}

/// A row of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableRow {
    /// What the row is about, one text for each of the table's labels.
    pub labels: Vec<String>,
    /// Its numbers, one for each of the table's columns.
    pub cells: Vec<TableCell>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OldTable {
    /// Its name for scripts, such as `quadrants`.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How its numbers come about, in whole sentences.
    pub about: String,
    /// The titles of the labels.
    pub labels: Vec<String>,
    /// The titles of the columns of numbers.
    pub columns: Vec<String>,
    /// The rows.
    pub rows: Vec<TableRow>,
}

impl OldTable {
    /// Returns how many numbers were published, and how many of them come out of the data as they were printed.
    pub fn agreement(&self) -> (usize, usize) {
        let published = self.rows.iter().flat_map(|row| &row.cells).filter(|cell| cell.published.is_some());
        let (mut all, mut equal) = (0, 0);
        for cell in published {
            all += 1;
            equal += usize::from(cell.agrees());
        }
        (all, equal)
    }
}

/// A number that was published otherwise than it comes out of the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TableDifference {
    /// The table, by its name for scripts.
    pub table: String,
    /// The row's labels.
    pub row: Vec<String>,
    /// The column's title.
    pub column: String,
    /// The number as it comes out of the data.
    pub here: Option<String>,
    /// The number as it was printed.
    pub published: Option<String>,
    /// Where the difference comes from, in one sentence: a lower-case fragment without a full stop.
    pub reason: String,
}

/// A published table that can't be computed from what is public.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotRecomputed {
    /// The table, by the name that the published figures give it.
    pub table: String,
    /// What it would take: a lower-case fragment without a full stop.
    pub missing: String,
}

/// Every published table, recomputed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OldTables {
    /// How many results there are: one for each commit and agent.
    pub results: u64,
    /// The tables.
    pub tables: Vec<OldTable>,
    /// Every number that was published otherwise.
    pub differences: Vec<TableDifference>,
    /// The tables that can't be computed.
    pub not_recomputed: Vec<NotRecomputed>,
    /// What else the data show, in whole sentences.
    pub remarks: Vec<String>,
}

impl Stored for OldTables {
    const NAME: &'static str = "old-tables";
    const VERSION: u32 = 1;
}
