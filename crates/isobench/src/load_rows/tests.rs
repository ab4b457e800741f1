//! Rows of made-up records, written and read back.

use std::fs;

use ::parquet::file::reader::{FileReader as _, SerializedFileReader};
use ::parquet::record::Field;
use isobench_schema::failure::FailureClass;
use isobench_schema::ids::Digest;
use isobench_schema::record::{Phase, RequestFailure, Usage};

use super::columns::Kind;
use super::*;

fn header() -> String {
    let header = RecordHeader {
        client: "isobench".to_owned(),
        clock: "a clock".to_owned(),
        epoch_unix_ns: 0,
        seed: 1,
        workload: Digest::of(b""),
    };
    format::to_line(&header).unwrap()
}

fn record(index: u32) -> RequestRecord {
    let mut record = RequestRecord::intended(Phase::Measure, index, 1_000_000);
    record.sent_ns = Some(2_000_000);
    record.chunk_ns = vec![11_000_000, 31_000_000];
    record.chunk_tokens = vec![1, 2];
    record.end_ns = 31_000_000;
    record.usage = Some(Usage { prompt_tokens: 8, completion_tokens: 3 });
    record
}

fn failed(index: u32) -> RequestRecord {
    let mut record = RequestRecord::intended(Phase::Measure, index, 5);
    let message = "the server said \"no\",\nand closed".to_owned();
    record.failure = Some(RequestFailure { class: FailureClass::HttpError, message });
    record
}

fn lines(records: &[RequestRecord]) -> String {
    let records = records.iter().map(|record| serde_json::to_string(record).unwrap());
    let mut text = std::iter::once(header().trim_end().to_owned()).chain(records).collect::<Vec<_>>().join("\n");
    text.push('\n');
    text
}

#[test]
fn each_request_is_a_row_of_csv_whether_the_records_are_packed_or_not() {
    let folder = tempfile::tempdir().unwrap();
    let text = lines(&[record(0), failed(1)]);
    let plain = folder.path().join("r.jsonl");
    fs::write(&plain, &text).unwrap();
    let packed = folder.path().join("r.jsonl.zst");
    fs::write(&packed, zstd::encode_all(text.as_bytes(), 1).unwrap()).unwrap();
    let out = folder.path().join("out.csv");
    for records in [plain, packed] {
        assert_eq!(write_csv(&records, &out).unwrap(), 2);
        let csv = fs::read_to_string(&out).unwrap();
        let mut rows = csv.split("\r\n");
        let names: Vec<&str> = rows.next().unwrap().split(',').collect();
        let fields: Vec<&str> = rows.next().unwrap().split(',').collect();
        let field = |name: &str| fields[names.iter().position(|known| *known == name).unwrap()];
        assert_eq!((field("ttft_ms"), field("tpot_ms"), field("e2el_ms")), ("10", "10", "30"));
        assert_eq!((field("output_tokens"), field("usage_completion_tokens"), field("failure")), ("3", "3", ""));
        assert!(csv.contains("\"the server said \"\"no\"\",\nand closed\""), "{csv}");
    }
}

#[test]
fn more_requests_than_a_row_group_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut records: Vec<RequestRecord> = (0..20_000).map(record).collect();
    records.push(failed(20_000));
    let path = folder.path().join("r.jsonl");
    fs::write(&path, lines(&records)).unwrap();
    let out = folder.path().join("out.parquet");
    assert_eq!(write_parquet(&path, &out).unwrap(), 20_001);
    let reader = SerializedFileReader::new(fs::File::open(&out).unwrap()).unwrap();
    assert_eq!(reader.num_row_groups(), 2);
    let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 20_001);
    let value = |row: usize, name: &str| {
        rows[row].get_column_iter().find(|(column, _)| *column == name).map(|(_, field)| field.clone()).unwrap()
    };
    assert_eq!(value(7, "index"), Field::Long(7));
    assert_eq!(value(7, "ttft_ms"), Field::Double(10.0));
    assert_eq!(value(20_000, "ttft_ms"), Field::Null);
    assert_eq!(value(20_000, "failure"), Field::Str("http-error".to_owned()));
}

#[test]
fn a_line_that_is_no_record_is_named_and_one_without_its_end_never_happened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.jsonl");
    let out = folder.path().join("out.csv");
    fs::write(&path, lines(&[record(0)]) + "{}\n").unwrap();
    let error = write_csv(&path, &out).unwrap_err().to_string();
    assert!(error.starts_with("line 3 of the records"), "{error}");
    fs::write(&path, lines(&[record(0)]) + "{\"index\":").unwrap();
    assert_eq!(write_csv(&path, &out).unwrap(), 1);
    assert!(write_csv(&folder.path().join("none"), &out).unwrap_err().to_string().contains("cannot read the records"));
}

#[test]
fn values_are_of_the_kind_of_their_column_and_documented() {
    let documents = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/formats.md")).unwrap();
    for column in &COLUMNS {
        for record in [record(0), failed(1)] {
            let fits = match ((column.value)(&record), column.kind) {
                (Value::Absent, _) => true,
                (Value::Text(_), kind) => kind == Kind::Text,
                (Value::Whole(_), kind) => kind == Kind::Whole,
                (Value::Number(_), kind) => kind == Kind::Number,
            };
            assert!(fits, "{}", column.name);
        }
        assert!(documents.contains(&format!("| `{}` |", column.name)), "`{}` isn't in docs/formats.md", column.name);
    }
}
