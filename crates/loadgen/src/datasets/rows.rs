//! The rows of a dataset's file: where each one is, so that it is read when its turn comes.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use isobench_schema::ids::Digest;
use memchr::{memchr, memchr2};
use sha2::{Digest as _, Sha256};

use super::{DatasetError, Input};

/// The longest row, in bytes. A longer one is no request that anyone would send.
const LONGEST: u64 = 64 << 20;

/// How much is read at a time.
const BUFFER: usize = 1 << 20;

/// The rows of a file.
#[derive(Debug)]
pub(crate) struct Rows {
    path: PathBuf,
    file: File,
    form: Form,
    places: Vec<Place>,
    digest: Digest,
}

/// How rows follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Each is a line.
    Lines,
    /// Each is an item of one JSON array.
    List,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    at: u64,
    length: u32,
    /// The line, or the place in the list, from 1.
    number: u32,
}

impl Rows {
    /// Finds the rows of a file: the items of a JSON array if it begins as one, else its lines. Blank lines are no rows.
    pub(crate) fn open(path: &Path) -> Result<Self, DatasetError> {
        let failed = |source| DatasetError::Read { path: path.to_owned(), source };
        let file = File::open(path).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file")));
        }
        let mut scan = Scan { path, places: Vec::new(), at: 0 };
        let mut reader = BufReader::with_capacity(BUFFER, Hashing { inner: &file, hasher: Sha256::new() });
        let first = scan.first(&mut reader)?;
        let form = if first == Some(b'[') { Form::List } else { Form::Lines };
        match form {
            Form::List => scan.list(&mut reader)?,
            Form::Lines => scan.lines(&mut reader)?,
        }
        let places = scan.places;
        let digest = Digest::finish(reader.into_inner().hasher);
        Ok(Self { path: path.to_owned(), file, form, places, digest })
    }

    /// Returns how many there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Reads a row into `buffer`, in place of what that holds.
    pub(crate) fn read(&self, index: usize, buffer: &mut Vec<u8>) -> Result<(), DatasetError> {
        let Some(place) = self.places.get(index) else {
            buffer.clear();
            return Ok(());
        };
        buffer.resize(usize::try_from(place.length).unwrap_or(usize::MAX), 0);
        let failed = |source| DatasetError::Read { path: self.path.clone(), source };
        self.file.read_exact_at(buffer, place.at).map_err(failed)
    }

    /// Returns the error for a row that is no request.
    pub(crate) fn bad(&self, index: usize, what: String) -> DatasetError {
        let number = self.places.get(index).map_or(0, |place| place.number);
        let place = match self.form {
            Form::Lines => format!("line {number}"),
            Form::List => format!("item {number}"),
        };
        DatasetError::Row { path: self.path.clone(), place, what }
    }

    /// Returns the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the file with its digest.
    pub(crate) fn input(&self) -> Input {
        Input { path: self.path.clone(), digest: self.digest.clone() }
    }
}

/// A reader that takes the digest of what goes through.
struct Hashing<R> {
    inner: R,
    hasher: Sha256,
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.hasher.update(buffer.get(..read).unwrap_or_default());
        Ok(read)
    }
}

type Reader<'a> = BufReader<Hashing<&'a File>>;

/// A walk through a file.
struct Scan<'a> {
    path: &'a Path,
    places: Vec<Place>,
    /// How many bytes are behind.
    at: u64,
}

impl Scan<'_> {
    /// Returns the first byte of the text, with a mark of its encoding and white space before it left behind if it begins
    /// a list.
    fn first(&mut self, reader: &mut Reader<'_>) -> Result<Option<u8>, DatasetError> {
        let bytes = self.fill(reader)?;
        let mark = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let text = bytes.get(mark..).unwrap_or_default();
        let space = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let first = text.get(space).copied();
        let behind = if first == Some(b'[') { mark + space } else { mark };
        self.consume(reader, behind);
        Ok(first)
    }

    fn lines(&mut self, reader: &mut Reader<'_>) -> Result<(), DatasetError> {
        let (mut begin, mut number, mut is_blank) = (self.at, 1_u32, true);
        loop {
            let at = self.at;
            let bytes = self.fill(reader)?;
            if bytes.is_empty() {
                self.add(begin, at, number, is_blank)?;
                return Ok(());
            }
            let end = memchr(b'\n', bytes);
            let line = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            is_blank = is_blank && line.iter().all(u8::is_ascii_whitespace);
            let length = line.len() as u64;
            if end.is_some() {
                self.add(begin, at + length, number, is_blank)?;
                self.consume(reader, line_length(length) + 1);
                (begin, number, is_blank) = (self.at, number.saturating_add(1), true);
            } else {
                self.consume(reader, line_length(length));
                self.refuse_long(begin, number)?;
            }
        }
    }

    fn list(&mut self, reader: &mut Reader<'_>) -> Result<(), DatasetError> {
        self.fill(reader)?;
        // The bracket.
        self.consume(reader, 1);
        let mut walk = Walk { depth: 1, at: self.at, end: self.at, ..Walk::default() };
        loop {
            let bytes = self.fill(reader)?;
            if bytes.is_empty() {
                return if walk.depth == 0 {
                    Ok(())
                } else {
                    Err(self.form("the list has no end: the file is cut off"))
                };
            }
            let length = bytes.len();
            for item in walk.items(bytes).map_err(|what| self.form(what))? {
                self.add(item.at, item.end, item.number, false)?;
            }
            self.consume(reader, length);
            if let Some(begin) = walk.begin {
                self.refuse_long(begin, walk.number.saturating_add(1))?;
            }
        }
    }

    fn add(&mut self, begin: u64, end: u64, number: u32, is_blank: bool) -> Result<(), DatasetError> {
        if is_blank || end <= begin {
            return Ok(());
        }
        match u32::try_from(end - begin) {
            Ok(length) if u64::from(length) <= LONGEST => self.places.push(Place { at: begin, length, number }),
            Ok(_) | Err(_) => return Err(self.long(number)),
        }
        Ok(())
    }

    fn refuse_long(&self, begin: u64, number: u32) -> Result<(), DatasetError> {
        if self.at - begin > LONGEST { Err(self.long(number)) } else { Ok(()) }
    }

    fn long(&self, number: u32) -> DatasetError {
        let what = format!("it is longer than {} MiB: remove it", LONGEST >> 20);
        DatasetError::Row { path: self.path.to_owned(), place: format!("row {number}"), what }
    }

    fn form(&self, what: &str) -> DatasetError {
        DatasetError::Form { path: self.path.to_owned(), what: what.to_owned() }
    }

    fn fill<'r>(&self, reader: &'r mut Reader<'_>) -> Result<&'r [u8], DatasetError> {
        reader.fill_buf().map_err(|source| DatasetError::Read { path: self.path.to_owned(), source })
    }

    fn consume(&mut self, reader: &mut Reader<'_>, bytes: usize) {
        reader.consume(bytes);
        self.at += bytes as u64;
    }
}

/// A walk through a JSON array, which finds its items without understanding them.
#[derive(Debug, Default)]
struct Walk {
    /// The brackets that are open, the array's own among them.
    depth: u32,
    at: u64,
    /// Where the item began that is walked through, and where it ends if nothing more of it comes.
    begin: Option<u64>,
    end: u64,
    /// Items before that.
    number: u32,
    in_text: bool,
    is_escaped: bool,
}

struct Item {
    at: u64,
    end: u64,
    number: u32,
}

impl Walk {
    /// Returns the items that end in the next bytes.
    fn items(&mut self, bytes: &[u8]) -> Result<Vec<Item>, &'static str> {
        let mut items = Vec::new();
        let mut place = 0;
        while let Some(byte) = bytes.get(place).copied() {
            let at = self.at + place as u64;
            place += 1;
            if self.in_text {
                place += self.text(byte, bytes.get(place..).unwrap_or_default());
                self.end = self.at + place as u64;
                continue;
            }
            if byte.is_ascii_whitespace() {
                continue;
            }
            if self.depth == 0 {
                return Err("something follows the list");
            }
            if self.depth == 1 && matches!(byte, b',' | b']') {
                if let Some(begin) = self.begin.take() {
                    self.number = self.number.saturating_add(1);
                    items.push(Item { at: begin, end: self.end, number: self.number });
                }
                self.depth -= u32::from(byte == b']');
                continue;
            }
            match byte {
                b'"' => self.in_text = true,
                b'[' | b'{' => self.depth += 1,
                b']' | b'}' => self.depth -= 1,
                _ => {}
            }
            self.begin.get_or_insert(at);
            self.end = at + 1;
        }
        self.at += bytes.len() as u64;
        Ok(items)
    }

    /// Takes a byte of a text, and returns how many of those behind it are of no interest.
    fn text(&mut self, byte: u8, rest: &[u8]) -> usize {
        if self.is_escaped {
            self.is_escaped = false;
            return 0;
        }
        match byte {
            b'"' => self.in_text = false,
            b'\\' => self.is_escaped = true,
            _ => return memchr2(b'"', b'\\', rest).unwrap_or(rest.len()),
        }
        0
    }
}

fn line_length(length: u64) -> usize {
    usize::try_from(length).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8]) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("data");
        std::fs::write(&path, bytes).unwrap();
        let rows = Rows::open(&path).map_err(|error| error.to_string().replace(path.to_str().unwrap(), "data"))?;
        assert_eq!(rows.input().digest, Digest::of(bytes));
        let read = |index| {
            let mut buffer = b"old".to_vec();
            rows.read(index, &mut buffer).unwrap();
            format!("{}: {}", rows.places[index].number, String::from_utf8(buffer).unwrap())
        };
        Ok((0..rows.len()).map(read).collect())
    }

    #[test]
    fn lines_are_found_with_their_numbers() {
        assert_eq!(rows(b"{\"a\": 1}\n\n  \r\n[2]\r\nlast").unwrap(), ["1: {\"a\": 1}", "4: [2]\r", "5: last"]);
        assert_eq!(rows(b"\xef\xbb\xbf{}\n").unwrap(), ["1: {}"]);
        assert_eq!(rows(b"").unwrap(), [""; 0]);
        assert_eq!(rows(b"\n \n").unwrap(), [""; 0]);
        assert_eq!(rows(b"a\0b\n\0").unwrap(), ["1: a\0b", "2: \0"]);
    }

    #[test]
    fn items_of_a_list_are_found_whatever_they_hold() {
        let list = br#" [ {"a": "]},{\"\\" , "b": [1, [2]]} , "x,]" ,7,[ ] , null ] "#;
        let expected = [r#"1: {"a": "]},{\"\\" , "b": [1, [2]]}"#, "2: \"x,]\"", "3: 7", "4: [ ]", "5: null"];
        assert_eq!(rows(list).unwrap(), expected);
        assert_eq!(rows(b"[]").unwrap(), [""; 0]);
        assert_eq!(rows(b"[\n]\n").unwrap(), [""; 0]);
    }

    #[test]
    fn a_list_is_found_wherever_its_bytes_are_cut() {
        let list = br#"{"a": "]},\"{\\" , "b": [1, [2]]} , "x,]\\" ,7] "#;
        let all = |cut: usize| {
            let mut walk = Walk { depth: 1, ..Walk::default() };
            let (before, after) = list.split_at(cut);
            let items = [walk.items(before).unwrap(), walk.items(after).unwrap()].concat_items();
            (items, walk.depth)
        };
        for cut in 0..=list.len() {
            assert_eq!(all(cut), all(0), "{cut}");
        }
    }

    trait ConcatItems {
        fn concat_items(self) -> Vec<(u64, u64)>;
    }

    impl ConcatItems for [Vec<Item>; 2] {
        fn concat_items(self) -> Vec<(u64, u64)> {
            self.into_iter().flatten().map(|item| (item.at, item.end)).collect()
        }
    }

    #[test]
    fn files_that_are_no_rows_are_refused_by_name() {
        let cut = "`data` can't be read as a dataset: the list has no end: the file is cut off";
        assert_eq!(rows(b"[{\"a\": 1}, {").unwrap_err(), cut);
        assert_eq!(rows(b"[\"").unwrap_err(), cut);
        assert_eq!(rows(b"[1] 2").unwrap_err(), "`data` can't be read as a dataset: something follows the list");
        let error = Rows::open(Path::new("/dev/zero")).unwrap_err();
        assert_eq!(error.to_string(), "failed to read the dataset `/dev/zero`");
        assert!(matches!(Rows::open(Path::new("/nowhere/at/all")), Err(DatasetError::Read { .. })));
    }

    #[test]
    fn a_row_of_a_hundred_megabytes_is_refused_before_it_is_read_whole() {
        let folder = tempfile::tempdir().unwrap();
        for (begin, place) in [(&b"{}\n"[..], "row 2"), (b"[3, ", "row 2")] {
            let path = folder.path().join("long");
            let file = File::create(&path).unwrap();
            file.write_all_at(begin, 0).unwrap();
            file.set_len(100 << 20).unwrap();
            // Zeros are no white space and no line end.
            let error = Rows::open(&path).unwrap_err().to_string();
            assert!(error.ends_with(&format!("{place}: it is longer than 64 MiB: remove it")), "{error}");
        }
    }
}
