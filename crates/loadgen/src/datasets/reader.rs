//! Rows in the order in which they are sent: shuffled or not, again from the begin if there are too few.

use super::rows::Rows;
use super::{Context, DatasetError, Input, Options, Part, Times};

/// What a row is.
#[derive(Debug)]
pub(crate) enum Parsed<T> {
    /// A request, or several.
    Row(T),
    /// One that the dataset's rules leave out.
    LeftOut,
    /// No request, for this reason.
    Bad(String),
}

/// How the rows of a dataset are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// In a random order, unless its options say otherwise.
    Shuffled,
    /// As they are in the file.
    InOrder,
}

/// Reads rows, one after the other.
#[derive(Debug)]
pub(crate) struct RowReader {
    rows: Rows,
    order: Vec<u32>,
    next: usize,
    /// Where the order begins again from the file's begin, if not at its own.
    seam: usize,
    /// How often the order was gone through.
    rounds: u32,
    again: Again,
    bad: BadRows,
    left_out: u64,
    /// Rows that were given after the first round.
    again_sent: u64,
    buffer: Vec<u8>,
    /// The row that was read last.
    last: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    Allowed,
    Refused { requests: u32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BadRows {
    AreErrors,
    AreLeftOut,
}

impl RowReader {
    /// Opens the file of a dataset. `head` rows at its begin are no requests.
    ///
    /// The window takes rows from the order's begin and the warm-up from its end, so that they share none if there are
    /// enough; by the times of a trace the warm-up takes its last rows.
    pub(crate) fn open(
        options: &mut Options<'_>,
        context: &Context<'_>,
        choice: Choice,
        head: u32,
    ) -> Result<Self, DatasetError> {
        let path = options.needed_path(context)?;
        let may_shuffle = !options.switch("disable-shuffle", false)?;
        let is_shuffled = choice == Choice::Shuffled && may_shuffle;
        let requests = context.requests;
        let again = if options.switch("no-oversample", false)? { Again::Refused { requests } } else { Again::Allowed };
        let bad = if options.switch("skip-bad-rows", false)? { BadRows::AreLeftOut } else { BadRows::AreErrors };
        let rows = Rows::open(&path)?;
        if rows.len() == 0 {
            return Err(DatasetError::Form { path, what: "it is empty".to_owned() });
        }
        let count = u32::try_from(rows.len()).unwrap_or(u32::MAX);
        let mut order: Vec<u32> = (head..count).collect();
        if is_shuffled && context.times == Times::Process {
            context.shared_draws("rows").shuffle(&mut order);
        }
        let mut seam = 0;
        match (context.part, context.times) {
            (Part::Measure, _) => {}
            (Part::WarmUp, Times::Process) => order.reverse(),
            (Part::WarmUp, Times::Trace) => {
                seam = order.len().min(usize::try_from(requests).unwrap_or(usize::MAX));
                order.rotate_right(seam);
            }
        }
        Ok(Self {
            rows,
            order,
            next: 0,
            seam,
            rounds: 0,
            again,
            bad,
            left_out: 0,
            again_sent: 0,
            buffer: Vec::new(),
            last: 0,
        })
    }

    /// Returns the first row, as text, where it is the head of a table.
    pub(crate) fn head(&mut self) -> Result<String, DatasetError> {
        self.rows.read(0, &mut self.buffer)?;
        Ok(String::from_utf8_lossy(&self.buffer).into_owned())
    }

    /// Returns the next row that `parse` takes, and how often the file was gone through before; `rule` says which rows are
    /// left out.
    pub(crate) fn next<T>(
        &mut self,
        rule: &'static str,
        mut parse: impl FnMut(&[u8]) -> Result<Parsed<T>, DatasetError>,
    ) -> Result<(T, u32), DatasetError> {
        let mut refused = 0;
        loop {
            if refused >= self.order.len() {
                return Err(DatasetError::Empty { path: self.rows.path().to_owned(), rule });
            }
            let index = self.following()?;
            self.last = index;
            self.rows.read(index, &mut self.buffer)?;
            match (parse(&self.buffer)?, self.bad) {
                (Parsed::Row(row), _) => {
                    self.again_sent += u64::from(self.rounds > 0);
                    return Ok((row, self.rounds));
                }
                (Parsed::Bad(what), BadRows::AreErrors) => return Err(self.rows.bad(index, what)),
                (Parsed::Bad(_), BadRows::AreLeftOut) | (Parsed::LeftOut, _) => {
                    refused += 1;
                    self.left_out += u64::from(self.rounds == 0);
                }
            }
        }
    }

    /// Returns how many rows `parse` takes of the whole file.
    ///
    /// # Errors
    /// As for reading them one by one.
    pub(crate) fn count<T>(&mut self, mut parse: impl FnMut(&[u8]) -> Parsed<T>) -> Result<u64, DatasetError> {
        let mut taken = 0;
        for place in &self.order {
            let index = *place as usize;
            self.rows.read(index, &mut self.buffer)?;
            match (parse(&self.buffer), self.bad) {
                (Parsed::Row(_), _) => taken += 1,
                (Parsed::Bad(what), BadRows::AreErrors) => return Err(self.rows.bad(index, what)),
                (Parsed::Bad(_), BadRows::AreLeftOut) | (Parsed::LeftOut, _) => {}
            }
        }
        Ok(taken)
    }

    /// Returns the error for the row that was read last.
    pub(crate) fn bad_last(&self, what: String) -> DatasetError {
        self.rows.bad(self.last, what)
    }

    /// Returns how many rows were left out.
    pub(crate) fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Returns how many rows were given that had been given before.
    pub(crate) fn again(&self) -> u64 {
        self.again_sent
    }

    /// Returns the file with its digest.
    pub(crate) fn input(&self) -> Input {
        self.rows.input()
    }

    /// Returns the error that a file is none of this dataset.
    pub(crate) fn not_this(&self, what: String) -> DatasetError {
        DatasetError::Form { path: self.rows.path().to_owned(), what }
    }

    fn following(&mut self) -> Result<usize, DatasetError> {
        if self.next >= self.order.len() {
            if let Again::Refused { requests } = self.again {
                let path = self.rows.path().to_owned();
                return Err(DatasetError::TooFew { path, rows: self.order.len(), wanted: requests });
            }
            self.next = 0;
            self.rounds = self.rounds.saturating_add(1);
        }
        if self.seam > 0 && self.next == self.seam {
            self.rounds = self.rounds.saturating_add(1);
        }
        let place = self.order.get(self.next).copied().unwrap_or_default();
        self.next += 1;
        Ok(place as usize)
    }
}
