//! Writes rows as a Parquet file, with the column types of the file that they came from, or with the plainest that hold them.

use std::sync::Arc;

use isobench_plan::intake::export::Rows;
use isobench_schema::commit_task::ParquetShape;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{Type, TypePtr};
use serde_json::Value;

use super::shred::{Leaf, LeafValues, shred_rows};

/// Why rows can't be written as Parquet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WriteParquetError {
    /// A column's values have no one type, or not the type that the file's schema gives it.
    #[error("the column `{column}` can't be written as Parquet: {reason}")]
    Column {
        /// The column.
        column: String,
        /// Why.
        reason: String,
    },
    /// The schema that the dataset was read with isn't one.
    #[error("the Parquet schema of the dataset's header can't be read")]
    Schema(#[source] ParquetError),
    /// The library refuses to write.
    #[error("the rows can't be written as Parquet")]
    Write(#[source] ParquetError),
}

/// Metadata that describes a schema in another way, and is wrong once columns are added.
const DESCRIBING: [&str; 3] = ["ARROW:schema", "huggingface", "pandas"];

/// Returns rows as a Parquet file.
///
/// # Errors
/// Returns which column can't be written, and why.
pub(crate) fn write(rows: &Rows, shape: Option<&ParquetShape>) -> Result<Vec<u8>, WriteParquetError> {
    let empty = ParquetShape::default();
    let shape = shape.unwrap_or(&empty);
    let (schema, is_extended) = schema(rows, shape)?;
    let entries = shape.metadata.iter().filter(|(key, _)| !is_extended || !DESCRIBING.contains(&key.as_str()));
    let metadata: Vec<KeyValue> =
        entries.map(|(key, value)| KeyValue { key: key.clone(), value: value.clone() }).collect();
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("isobench {}", env!("CARGO_PKG_VERSION")))
        .set_key_value_metadata((!metadata.is_empty()).then_some(metadata))
        .build();
    let leaves = shred_rows(&schema, &rows.rows)?;
    let mut bytes = Vec::new();
    let mut file =
        SerializedFileWriter::new(&mut bytes, schema, Arc::new(properties)).map_err(WriteParquetError::Write)?;
    if !rows.rows.is_empty() {
        let mut group = file.next_row_group().map_err(WriteParquetError::Write)?;
        write_leaves(&mut group, &leaves).map_err(WriteParquetError::Write)?;
        group.close().map_err(WriteParquetError::Write)?;
    }
    file.close().map_err(WriteParquetError::Write)?;
    Ok(bytes)
}

fn write_leaves<W: std::io::Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    leaves: &[Leaf],
) -> Result<(), ParquetError> {
    for leaf in leaves {
        let Some(mut column) = group.next_column()? else { break };
        let (definition, repetition) = (Some(leaf.definition.as_slice()), Some(leaf.repetition.as_slice()));
        match &leaf.values {
            LeafValues::Bool(values) => column.typed::<BoolType>().write_batch(values, definition, repetition)?,
            LeafValues::Int32(values) => column.typed::<Int32Type>().write_batch(values, definition, repetition)?,
            LeafValues::Int64(values) => column.typed::<Int64Type>().write_batch(values, definition, repetition)?,
            LeafValues::Float(values) => column.typed::<FloatType>().write_batch(values, definition, repetition)?,
            LeafValues::Double(values) => column.typed::<DoubleType>().write_batch(values, definition, repetition)?,
            LeafValues::Bytes(values) => {
                let values: Vec<ByteArray> = values.iter().map(|bytes| ByteArray::from(bytes.clone())).collect();
                column.typed::<ByteArrayType>().write_batch(&values, definition, repetition)?
            }
        };
        column.close()?;
    }
    Ok(())
}

/// Returns the schema of the rows: the file's own, with the columns that it lacks. Tells whether it lacks any.
fn schema(rows: &Rows, shape: &ParquetShape) -> Result<(TypePtr, bool), WriteParquetError> {
    let own = match shape.schema.as_str() {
        "" => None,
        text => Some(parse_message_type(text).map_err(WriteParquetError::Schema)?),
    };
    let name = own.as_ref().map_or("schema", Type::name).to_owned();
    let mut fields: Vec<TypePtr> = own.as_ref().map(|own| own.get_fields().to_vec()).unwrap_or_default();
    let known = fields.len();
    for column in &rows.columns {
        if !fields.iter().any(|field| field.name() == column) {
            let values: Vec<&Value> = rows.rows.iter().filter_map(|row| row.get(column)).collect();
            let failed = |reason| WriteParquetError::Column { column: column.clone(), reason };
            fields.push(Arc::new(guess(column, &values).map_err(failed)?));
        }
    }
    let is_extended = fields.len() > known && known > 0;
    let schema = Type::group_type_builder(&name).with_fields(fields).build().map_err(WriteParquetError::Write)?;
    Ok((Arc::new(schema), is_extended))
}

/// Returns the plainest type that holds all of these values; a column of nothing holds text.
fn guess(name: &str, values: &[&Value]) -> Result<Type, String> {
    let mut kinds: Vec<&str> = values.iter().filter_map(|value| kind(value)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let physical = match kinds.as_slice() {
        [] | ["texts"] => Physical::BYTE_ARRAY,
        ["switches"] => Physical::BOOLEAN,
        ["whole numbers"] => Physical::INT64,
        ["numbers"] | ["numbers", "whole numbers"] => Physical::DOUBLE,
        ["lists"] => return list(name, values),
        ["objects"] => return structure(name, values),
        mixed => return Err(format!("it holds {}, and Parquet has one type for each column", mixed.join(" and "))),
    };
    let text = (physical == Physical::BYTE_ARRAY).then_some(LogicalType::String);
    let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
    builder.with_logical_type(text).build().map_err(|error| error.to_string())
}

fn kind(value: &Value) -> Option<&'static str> {
    match value {
        Value::Null => None,
        Value::Bool(_) => Some("switches"),
        Value::Number(number) if number.is_i64() => Some("whole numbers"),
        Value::Number(_) => Some("numbers"),
        Value::String(_) => Some("texts"),
        Value::Array(_) => Some("lists"),
        Value::Object(_) => Some("objects"),
    }
}

fn list(name: &str, values: &[&Value]) -> Result<Type, String> {
    let items: Vec<&Value> = values.iter().filter_map(|value| value.as_array()).flatten().collect();
    let element = Arc::new(guess("element", &items)?);
    let repeated =
        Type::group_type_builder("list").with_repetition(Repetition::REPEATED).with_fields(vec![element]).build();
    let repeated = Arc::new(repeated.map_err(|error| error.to_string())?);
    let builder = Type::group_type_builder(name).with_repetition(Repetition::OPTIONAL).with_fields(vec![repeated]);
    builder.with_logical_type(Some(LogicalType::List)).build().map_err(|error| error.to_string())
}

fn structure(name: &str, values: &[&Value]) -> Result<Type, String> {
    let objects: Vec<_> = values.iter().filter_map(|value| value.as_object()).collect();
    let keys: std::collections::BTreeSet<&String> = objects.iter().flat_map(|object| object.keys()).collect();
    if keys.is_empty() {
        return Err("it holds objects without keys, and Parquet has no such type".to_owned());
    }
    let field = |key: &&String| {
        let values: Vec<&Value> = objects.iter().filter_map(|object| object.get(*key)).collect();
        guess(key, &values).map(Arc::new).map_err(|reason| format!("`{key}` in it: {reason}"))
    };
    let fields = keys.iter().map(field).collect::<Result<Vec<_>, _>>()?;
    let builder = Type::group_type_builder(name).with_repetition(Repetition::OPTIONAL).with_fields(fields);
    builder.build().map_err(|error| error.to_string())
}
