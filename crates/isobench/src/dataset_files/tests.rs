//! Parquet there and back, and files that are broken or hostile.

use std::panic::{self, AssertUnwindSafe};

use isobench_plan::dataset::{self, Dataset, Entry, EntryKind, Files, ReadFileError};
use isobench_plan::intake::export::{Rows, published};
use isobench_plan::intake::{Table, to_lines};
use isobench_schema::commit_task::ParquetShape;
use serde_json::{Map, Value, json};

use super::pages::{LIMITS, Limits};
use super::{parquet_reader, write_parquet};

/// The rows of `examples/iso-bench/vllm-96.jsonl`, as `isobench export` wrote them.
const COMMITS: &[u8] = include_bytes!("../../tests/data/vllm-96.parquet");

/// Rows of every type, as pyarrow writes them, packed with zstd; `tests/data/make_types.py` wrote them.
const TYPES: &[u8] = include_bytes!("../../tests/data/types.parquet");

fn read(bytes: &[u8]) -> Result<Table, String> {
    parquet_reader::read(bytes.to_vec(), LIMITS)
}

/// A file with this content, whatever it is called.
struct OneFile<'b>(&'b [u8]);

impl Files for OneFile<'_> {
    fn read(&self, _: &str) -> Result<Vec<u8>, ReadFileError> {
        Ok(self.0.to_vec())
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadFileError> {
        Err(ReadFileError::Missing)
    }

    fn kind(&self, _: &str) -> Option<EntryKind> {
        Some(EntryKind::File)
    }

    fn table(&self, _: &str) -> Result<Table, ReadFileError> {
        read(self.0).map_err(|message| ReadFileError::Refused { message })
    }
}

fn dataset(name: &str, bytes: &[u8]) -> Dataset {
    dataset::read(&OneFile(bytes), "/data", name, &[]).unwrap()
}

fn rows(values: &[Value]) -> Rows {
    let rows: Vec<Map<String, Value>> = values.iter().map(|value| value.as_object().unwrap().clone()).collect();
    let mut columns: Vec<String> = rows.iter().flat_map(|row| row.keys().cloned()).collect();
    columns.sort_unstable();
    columns.dedup();
    Rows { columns, rows }
}

/// Checks that rows are written and read again as they were.
fn there_and_back(values: &[Value], expected_schema: &str) {
    let rows = rows(values);
    let table = read(&write_parquet(&rows, None).unwrap()).unwrap();
    assert_eq!(table.rows, rows.rows);
    assert_eq!(table.columns, rows.columns);
    let shape = table.parquet.unwrap();
    assert_eq!(shape.schema.split_whitespace().collect::<Vec<_>>().join(" "), expected_schema);
    let again = read(&write_parquet(&rows, Some(&shape)).unwrap()).unwrap();
    assert_eq!((again.rows, again.parquet), (rows.rows, Some(shape)));
}

#[test]
fn rows_of_all_plain_and_nested_types_come_back() {
    there_and_back(
        &[
            json!({"a": "é", "b": true, "c": -5, "d": 0.1, "e": null, "f": ["x", null, ""], "g": {"h": 1, "i": [[1], [], null]}}),
            json!({"a": null, "b": null, "c": i64::MAX, "d": 3.0, "e": null, "f": [], "g": null}),
            json!({"a": "", "b": false, "c": 0, "d": null, "e": null, "f": null, "g": {"h": null, "i": null}}),
        ],
        "message schema { OPTIONAL BYTE_ARRAY a (STRING); OPTIONAL BOOLEAN b; OPTIONAL INT64 c; OPTIONAL DOUBLE d; \
         OPTIONAL BYTE_ARRAY e (STRING); \
         OPTIONAL group f (LIST) { REPEATED group list { OPTIONAL BYTE_ARRAY element (STRING); } } \
         OPTIONAL group g { OPTIONAL INT64 h; \
         OPTIONAL group i (LIST) { REPEATED group list { \
         OPTIONAL group element (LIST) { REPEATED group list { OPTIONAL INT64 element; } } } } } }",
    );
}

#[test]
fn the_fixture_holds_the_96_public_commits() {
    let text = include_str!("../../../../examples/iso-bench/vllm-96.jsonl");
    let expected: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<Value> = read(COMMITS).unwrap().rows.into_iter().map(Value::Object).collect();
    assert_eq!(found, expected);
}

/// Checks that an import and an export of a Parquet file gives the same rows, columns, types and metadata.
fn imported_and_exported(bytes: &[u8]) {
    let first = dataset("rows.parquet", bytes);
    assert_eq!(first.problems, []);
    let imported = to_lines(&first.header, &first.commit_tasks).unwrap();
    let again = dataset("imported.jsonl", imported.as_bytes());
    assert_eq!(again.problems, []);
    let written = write_parquet(&published(&again.header, &again.commit_tasks), again.header.parquet.as_ref()).unwrap();
    assert_eq!(read(&written), read(bytes));
    assert!(read(bytes).unwrap().parquet.is_some());
}

#[test]
fn an_import_and_an_export_keep_rows_and_column_types() {
    imported_and_exported(COMMITS);
    imported_and_exported(TYPES);
}

#[test]
fn every_type_of_another_writer_comes_through() {
    let table = read(TYPES).unwrap();
    let hex = |digit: &str| json!(digit.repeat(40));
    assert_eq!(
        table.rows.into_iter().map(Value::Object).collect::<Vec<_>>(),
        [
            json!({
                "commit_hash": hex("a"), "repo": "vllm-project/vllm", "large": "l", "flag": true, "i8": -8, "i16": -16,
                "i32": -32, "i64": i64::MIN, "u32": u32::MAX, "u64": u64::MAX, "f32": 0.5, "f64": 0.1, "day": "2026-01-02",
                "millis": "2026-01-02T03:04:05.678Z", "micros": "1969-12-31T23:59:59.999999Z", "nanos": 1_767_323_045_000_000_001_i64,
                "bytes": "AP8=", "list": ["a", null], "struct": {"x": 1, "y": [{"z": 0.25}]}, "map": {"k": 1, "l": null},
            }),
            json!({
                "commit_hash": hex("b"), "repo": "vllm-project/vllm", "large": null, "flag": null, "i8": null, "i16": null,
                "i32": null, "i64": null, "u32": null, "u64": null, "f32": null, "f64": null, "day": null,
                "millis": null, "micros": null, "nanos": null,
                "bytes": null, "list": [], "struct": null, "map": {},
            }),
        ]
    );
}

#[test]
fn a_column_without_one_type_is_named() {
    for (values, expected) in [
        (
            vec![json!({"a": 1}), json!({"a": "x"})],
            "the column `a` can't be written as Parquet: it holds texts and whole numbers, and Parquet has one type for each column",
        ),
        (
            vec![json!({"a": {}})],
            "the column `a` can't be written as Parquet: it holds objects without keys, and Parquet has no such type",
        ),
        (
            vec![json!({"a": {"b": [1, [2]]}})],
            "the column `a` can't be written as Parquet: `b` in it: it holds lists and whole numbers, and Parquet has one type for each column",
        ),
    ] {
        assert_eq!(write_parquet(&rows(&values), None).unwrap_err().to_string(), expected);
    }
    let schema = "message schema { OPTIONAL INT32 a; REQUIRED BYTE_ARRAY b (STRING); }".to_owned();
    let shape = ParquetShape { schema, ..ParquetShape::default() };
    for (value, expected) in [
        (
            json!({"a": 5_000_000_000_i64, "b": "x"}),
            "the column `a` can't be written as Parquet: row 1: `a` must be a whole number of 32 bits or a date by its type",
        ),
        (json!({"a": 5}), "the column `b` can't be written as Parquet: row 1: `b` is missing, and its type demands it"),
    ] {
        assert_eq!(write_parquet(&rows(&[value]), Some(&shape)).unwrap_err().to_string(), expected);
    }
}

#[test]
fn added_columns_drop_metadata_that_describes_the_others() {
    let schema = "message schema { OPTIONAL INT64 a; }".to_owned();
    let entry = |key: &str| (key.to_owned(), Some("x".to_owned()));
    let shape = ParquetShape { schema, metadata: [entry("ARROW:schema"), entry("mine")].into() };
    let table = read(&write_parquet(&rows(&[json!({"a": 1, "b": "x"})]), Some(&shape)).unwrap()).unwrap();
    assert_eq!(table.parquet.unwrap().metadata, [entry("mine")].into());
    assert_eq!(table.columns, ["a", "b"]);
}

/// Returns what reading these bytes says; a panic would end the test.
fn refusal(bytes: &[u8]) -> String {
    panic::catch_unwind(AssertUnwindSafe(|| read(bytes))).expect("no panic").unwrap_err()
}

#[test]
fn what_is_no_parquet_file_is_refused() {
    for bytes in [&b""[..], b"PAR1", b"{\"commit\": 1}", b"PAR1\xff\xff\xff\x7fPAR1", &COMMITS[..COMMITS.len() - 9]] {
        let refusal = refusal(bytes);
        assert!(refusal.starts_with("it is no Parquet file that can be read: "), "{refusal}");
        assert!(refusal.len() < 500);
    }
    let shifted = refusal(&COMMITS[8..]);
    assert_eq!(shifted, "the column `commit_hash`: a page header can't be read");
}

#[test]
fn broken_bytes_give_an_error_or_other_rows_and_never_a_panic() {
    for at in (0..TYPES.len()).step_by(7) {
        for flip in [0x01, 0x80, 0xFF] {
            let mut bytes = TYPES.to_vec();
            bytes[at] ^= flip;
            let result = panic::catch_unwind(AssertUnwindSafe(|| read(&bytes)));
            assert!(result.is_ok(), "byte {at} flipped by {flip}");
        }
    }
}

#[test]
fn a_file_that_claims_or_takes_too_much_is_refused() {
    let row = json!({"a": "x".repeat(10_000)});
    let bytes = write_parquet(&rows(&vec![row; 50]), None).unwrap();
    assert!(bytes.len() < 10_000, "fifty texts are one: {}", bytes.len());
    for (limits, expected) in [
        (Limits { page: 5_000, ..LIMITS }, "the column `a`: a page claims to hold 10004 bytes, more than 5000"),
        (Limits { unpacked: 10_000, ..LIMITS }, "the column `a`: the file claims to hold more than 10000 bytes"),
        (Limits { values: 49, ..LIMITS }, "the column `a`: the file claims to hold more than 49 values"),
        (Limits { rows: 49, ..LIMITS }, "it has 50 rows, more than 49"),
        (Limits { memory: 100_000, ..LIMITS }, "its rows take more than 100000 bytes of memory"),
    ] {
        assert_eq!(parquet_reader::read(bytes.clone(), limits), Err(expected.to_owned()));
    }
    assert_eq!(read(&bytes).unwrap().rows.len(), 50);
}
