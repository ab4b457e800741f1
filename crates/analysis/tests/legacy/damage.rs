//! Damaged files are named, and lose nothing but what is damaged.

use isobench_analysis::legacy::{LARGEST_BYTES, ReadLegacyError, read, shape};
use isobench_schema::legacy::{LegacyFlag, LegacySource};
use proptest::prelude::*;
use serde_json::Value;

use crate::{bytes, flags, text};

const NAME: &str = "r/015069b0_human_result.json";
const WHOLE: &str = r#"{"human_commit": "015069b0", "status": "success", "model": "m",
    "metrics": {"throughput_tok_s": 198.29, "mean_ttft_ms": 45.2}, "duration_s": 120.5}"#;

#[test]
fn a_file_cut_at_any_byte_is_an_error_that_names_it() {
    for end in 0..WHOLE.len() {
        let error = read(&WHOLE.as_bytes()[..end], NAME).unwrap_err();
        assert!(error.to_string().contains(NAME), "{end}: {error}");
        let is_cut = matches!(error, ReadLegacyError::NotJson { .. } | ReadLegacyError::Empty { .. });
        assert!(is_cut, "{end}: {error}");
    }
    assert_eq!(text(WHOLE, NAME).unwrap().records.len(), 1);
}

#[test]
fn a_cut_row_loses_no_other_row() {
    let mut rows = bytes("errors-94.jsonl");
    rows.truncate(rows.len() - 20);
    let found = read(&rows, "errors-94.jsonl").unwrap();
    assert_eq!((found.records.len(), found.problems.len()), (93, 1));
    assert_eq!(found.problems[0].line, Some(94));
    assert!(found.problems[0].message.starts_with("not JSON: EOF while parsing"), "{}", found.problems[0].message);
}

#[test]
fn words_for_no_numbers_are_flagged_and_kept() {
    let written = WHOLE.replace("198.29", "NaN").replace("45.2", "\"N/A\"");
    let found = text(&written, NAME).unwrap();
    let record = &found.records[0];
    assert!(!record.has_numbers());
    let expected = [LegacyFlag::TextForNumber, LegacyFlag::NotFinite, LegacyFlag::SuccessWithoutMetrics];
    assert_eq!(flags(record), expected);
    assert_eq!(record.metrics[0].written, Some(Value::from("N/A")));
    for word in ["Infinity", "-Infinity", "\"inf\""] {
        let found = text(&WHOLE.replace("198.29", word), NAME).unwrap();
        assert!(flags(&found.records[0]).contains(&LegacyFlag::NotFinite), "{word}");
        assert!(found.records[0].has_numbers(), "the other number stays");
    }
}

#[test]
fn a_wrong_type_is_a_problem_that_names_the_key_and_the_value_stays() {
    for (from, to, key, message) in [
        ("120.5", "\"two minutes\"", "duration_s", "`duration_s` holds text, where a number was expected"),
        ("\"m\"", "7", "model", "`model` holds a number, where text was expected"),
        ("45.2", "[45.2]", "metrics.mean_ttft_ms", "`metrics.mean_ttft_ms` holds a list, where a number was expected"),
        ("\"success\"", "true", "status", "`status` holds a truth value, where text was expected"),
    ] {
        let found = text(&WHOLE.replace(from, to), NAME).unwrap();
        assert_eq!(found.records.len(), 1, "{key}");
        let problem = &found.problems[0];
        assert_eq!((problem.column.as_deref(), problem.message.as_str()), (Some(key), message));
        assert!(found.records[0].other.contains_key(key), "{key} is kept");
    }
    let found =
        text(&WHOLE.replace(r#"{"throughput_tok_s": 198.29, "mean_ttft_ms": 45.2}"#, "\"none\""), NAME).unwrap();
    assert_eq!(found.problems[0].message, "`metrics` holds text, where an object was expected");
}

#[test]
fn empty_huge_deep_and_foreign_files_are_refused() {
    let empty = read(b" \n", NAME).unwrap_err();
    assert_eq!(empty.to_string(), format!("`{NAME}` is empty"));
    let huge = vec![b' '; LARGEST_BYTES + 1];
    assert!(matches!(read(&huge, NAME).unwrap_err(), ReadLegacyError::TooLarge { .. }));
    let deep = "[".repeat(100_000);
    assert!(matches!(text(&deep, NAME).unwrap_err(), ReadLegacyError::NotJson { .. }));
    assert!(matches!(read(b"\x00\xff\xfe", NAME).unwrap_err(), ReadLegacyError::NotJson { .. }));
    let row = b"{\"commit_hash\": \"015069b0\", \"perf_command\": \"x\"}\n";
    assert_eq!(shape(row, "rows.jsonl"), None, "a row of a dataset");
    assert_eq!(shape(WHOLE.as_bytes(), NAME), Some(LegacySource::ThreeWay));
}

#[test]
fn invalid_utf8_and_a_byte_order_mark_are_read() {
    let mut marked = b"\xef\xbb\xbf".to_vec();
    marked.extend_from_slice(WHOLE.replace("\"m\"", "\"m\u{e9}\"").as_bytes());
    assert_eq!(read(&marked, NAME).unwrap().records[0].model.as_deref(), Some("m\u{e9}"));
    let broken: Vec<u8> = WHOLE.bytes().map(|byte| if byte == b'm' { 0xff } else { byte }).collect();
    assert!(read(&broken, NAME).is_err() || !read(&broken, NAME).unwrap().records.is_empty());
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic_and_what_is_read_can_be_written(
        place in 0..WHOLE.len(), with in proptest::collection::vec(any::<u8>(), 0..6), taken in 0_usize..6,
    ) {
        let mut bytes = WHOLE.as_bytes().to_vec();
        let end = (place + taken).min(bytes.len());
        bytes.splice(place..end, with);
        if let Ok(found) = read(&bytes, NAME) {
            for record in found.records {
                let line = serde_json::to_string(&record).unwrap();
                let again: isobench_schema::legacy::LegacyRecord = serde_json::from_str(&line).unwrap();
                prop_assert_eq!(again, record);
            }
        }
    }
}
