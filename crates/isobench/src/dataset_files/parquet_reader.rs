//! Reads the rows of a Parquet file.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use isobench_plan::intake::Table;
use isobench_schema::commit_task::ParquetShape;
use jiff::Timestamp;
use jiff::civil::Date;
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use parquet::schema::parser::parse_message_type;
use parquet::schema::printer::print_schema;
use serde_json::{Map, Value, json};

use super::pages::{self, Limits};

/// The longest message of the library that is shown.
const LONGEST_MESSAGE: usize = 300;

/// Returns the rows of a Parquet file.
///
/// # Errors
/// Returns a lower-case fragment that says why it can't be read.
pub(super) fn read(bytes: Vec<u8>, limits: Limits) -> Result<Table, String> {
    let bytes = Bytes::from(bytes);
    // The library panics on some broken files.
    quietly(|| panic::catch_unwind(AssertUnwindSafe(|| decode(&bytes, limits))))
        .unwrap_or_else(|_| Err("it is broken: its pages contradict its schema".to_owned()))
}

/// Runs `work` so that a panic on this thread prints nothing: what it would print is no use to anybody.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    thread_local! {
        static IS_QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_QUIET.get() {
                hook(info);
            }
        }));
    });
    IS_QUIET.set(true);
    let result = work();
    IS_QUIET.set(false);
    result
}

fn decode(bytes: &Bytes, limits: Limits) -> Result<Table, String> {
    let reader = SerializedFileReader::new(bytes.clone()).map_err(|error| broken(&error))?;
    let metadata = reader.metadata();
    let file = metadata.file_metadata();
    if !(0..=limits.rows).contains(&file.num_rows()) {
        return Err(format!("it has {} rows, more than {}", file.num_rows(), limits.rows));
    }
    pages::check(bytes, metadata, limits)?;
    let columns = file.schema().get_fields().iter().map(|field| field.name().to_owned()).collect();
    let (mut rows, mut room) = (Vec::new(), limits.memory);
    for row in reader.get_row_iter(None).map_err(|error| broken(&error))? {
        let row = object(&row.map_err(|error| broken(&error))?);
        room = room
            .checked_sub(size(&row))
            .ok_or_else(|| format!("its rows take more than {} bytes of memory", limits.memory))?;
        rows.push(row);
    }
    Ok(Table { columns, rows, parquet: shape(file) })
}

fn broken(error: &ParquetError) -> String {
    let text: String = error.to_string().chars().take(LONGEST_MESSAGE).collect();
    format!("it is no Parquet file that can be read: {text}")
}

/// Returns what the file says of itself, or `None` if its schema can't be written as text (a column's name with a space).
fn shape(file: &FileMetaData) -> Option<ParquetShape> {
    let mut schema = Vec::new();
    print_schema(&mut schema, file.schema());
    let schema = String::from_utf8(schema).ok()?;
    let again = parse_message_type(&schema).ok()?;
    let entries = file.key_value_metadata().into_iter().flatten();
    let metadata = entries.map(|entry| (entry.key.clone(), entry.value.clone())).collect();
    (again == *file.schema()).then_some(ParquetShape { schema, metadata })
}

/// Returns roughly how much memory a row takes.
fn size(row: &Map<String, Value>) -> usize {
    fn of(value: &Value) -> usize {
        let inner = match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(items) => items.iter().map(of).sum(),
            Value::Object(entries) => size(entries),
        };
        inner + size_of::<Value>()
    }
    row.iter().map(|(key, value)| key.len() + size_of::<String>() + of(value)).sum()
}

fn object(row: &Row) -> Map<String, Value> {
    row.get_column_iter().map(|(name, field)| (name.clone(), value(field))).collect()
}

/// Returns a field as JSON. What JSON can't hold is a text: times, decimals, bytes. NaN and infinities, which are no values,
/// are null.
fn value(field: &Field) -> Value {
    match field {
        Field::Null => Value::Null,
        Field::Bool(value) => json!(value),
        Field::Byte(value) => json!(value),
        Field::Short(value) => json!(value),
        Field::Int(value) | Field::TimeMillis(value) => json!(value),
        Field::Long(value) | Field::TimeMicros(value) => json!(value),
        Field::UByte(value) => json!(value),
        Field::UShort(value) => json!(value),
        Field::UInt(value) => json!(value),
        Field::ULong(value) => json!(value),
        Field::Float16(value) => json!(value.to_f64()),
        Field::Float(value) => json!(f64::from(*value)),
        Field::Double(value) => json!(value),
        Field::Decimal(_) => json!(field.to_string()),
        Field::Str(text) => json!(text),
        Field::Bytes(bytes) => json!(STANDARD.encode(bytes.data())),
        Field::Date(days) => date(*days).map_or(json!(days), Value::from),
        Field::TimestampMillis(time) => moment(*time, Timestamp::from_millisecond),
        Field::TimestampMicros(time) => moment(*time, Timestamp::from_microsecond),
        Field::Group(row) => Value::Object(object(row)),
        Field::ListInternal(list) => list.elements().iter().map(value).collect(),
        Field::MapInternal(map) => {
            Value::Object(map.entries().iter().map(|(key, item)| (key_text(key), value(item))).collect())
        }
    }
}

/// Returns the key of a map as text.
fn key_text(key: &Field) -> String {
    match value(key) {
        Value::String(text) => text,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            other.to_string()
        }
    }
}

fn date(days: i32) -> Option<String> {
    let epoch = Date::constant(1970, 1, 1);
    epoch.checked_add(jiff::Span::new().try_days(days).ok()?).ok().map(|date| date.to_string())
}

fn moment(time: i64, from: fn(i64) -> Result<Timestamp, jiff::Error>) -> Value {
    from(time).map_or(json!(time), |moment| json!(moment.to_string()))
}
