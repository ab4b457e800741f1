//! Cuts rows into the leaf columns of a Parquet schema, with the levels that put them together again.
//!
//! A value's definition level says how many of the optional and repeated steps on its path are there, its repetition level at
//! which repeated step it begins a new element (the Parquet format's *Nested Encoding*).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::civil::Date;
use parquet::basic::{ConvertedType, Repetition, Type as Physical};
use parquet::schema::types::Type;
use serde_json::{Map, Value, json};

use super::parquet_writer::WriteParquetError;

/// The values of a leaf column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum LeafValues {
    /// Switches.
    Bool(Vec<bool>),
    /// Whole numbers of 32 bits.
    Int32(Vec<i32>),
    /// Whole numbers of 64 bits.
    Int64(Vec<i64>),
    /// Numbers of 32 bits.
    Float(Vec<f32>),
    /// Numbers of 64 bits.
    Double(Vec<f64>),
    /// Texts and bytes.
    Bytes(Vec<Vec<u8>>),
}

/// A leaf column.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    /// Its values, without those that are absent.
    pub(super) values: LeafValues,
    /// The definition levels.
    pub(super) definition: Vec<i16>,
    /// The repetition levels.
    pub(super) repetition: Vec<i16>,
}

/// Where a value stands.
#[derive(Debug, Clone, Copy)]
struct Levels {
    definition: i16,
    repetition: i16,
    /// How many repeated steps there are on the path.
    depth: i16,
}

/// Returns the leaf columns of rows.
///
/// # Errors
/// Returns the column whose value doesn't fit its type.
pub(super) fn shred_rows(schema: &Type, rows: &[Map<String, Value>]) -> Result<Vec<Leaf>, WriteParquetError> {
    let mut all = Vec::new();
    for field in schema.get_fields() {
        let failed = |reason: String| WriteParquetError::Column { column: field.name().to_owned(), reason };
        let mut leaves = Vec::new();
        empty_leaves(field, &mut leaves).map_err(failed)?;
        for (number, row) in (1..).zip(rows) {
            let top = Levels { definition: 0, repetition: 0, depth: 0 };
            let value = row.get(field.name()).unwrap_or(&Value::Null);
            shred(field, value, top, &mut leaves).map_err(|reason| failed(format!("row {number}: {reason}")))?;
        }
        all.append(&mut leaves);
    }
    Ok(all)
}

/// Adds the empty leaf columns of a field.
fn empty_leaves(field: &Type, leaves: &mut Vec<Leaf>) -> Result<(), String> {
    if field.is_group() {
        return field.get_fields().iter().try_for_each(|child| empty_leaves(child, leaves));
    }
    let physical = field.get_physical_type();
    let is_decimal = field.get_basic_info().converted_type() == ConvertedType::DECIMAL;
    let values = match physical {
        Physical::BOOLEAN => LeafValues::Bool(Vec::new()),
        Physical::INT32 if !is_decimal => LeafValues::Int32(Vec::new()),
        Physical::INT64 if !is_decimal => LeafValues::Int64(Vec::new()),
        Physical::FLOAT => LeafValues::Float(Vec::new()),
        Physical::DOUBLE => LeafValues::Double(Vec::new()),
        Physical::BYTE_ARRAY if !is_decimal => LeafValues::Bytes(Vec::new()),
        Physical::INT32 | Physical::INT64 | Physical::BYTE_ARRAY | Physical::INT96 | Physical::FIXED_LEN_BYTE_ARRAY => {
            let name = if is_decimal { "DECIMAL".to_owned() } else { physical.to_string() };
            return Err(format!("the type {name} is read, and not written"));
        }
    };
    leaves.push(Leaf { values, definition: Vec::new(), repetition: Vec::new() });
    Ok(())
}

/// Returns how many leaf columns a field has.
fn width(field: &Type) -> usize {
    if field.is_group() { field.get_fields().iter().map(|child| width(child)).sum() } else { 1 }
}

/// Puts a value into the leaf columns of its field.
fn shred(field: &Type, value: &Value, levels: Levels, leaves: &mut [Leaf]) -> Result<(), String> {
    match field.get_basic_info().repetition() {
        Repetition::REQUIRED if value.is_null() => {
            Err(format!("`{}` is missing, and its type demands it", field.name()))
        }
        Repetition::REQUIRED => content(field, value, levels, leaves),
        Repetition::OPTIONAL if value.is_null() => {
            absent(levels, leaves);
            Ok(())
        }
        Repetition::OPTIONAL => content(field, value, Levels { definition: levels.definition + 1, ..levels }, leaves),
        Repetition::REPEATED => {
            let items = value.as_array().map(Vec::as_slice).or(value.is_null().then_some(&[]));
            let items = items.ok_or_else(|| mismatch(field, "a list"))?;
            repeated(items, levels, leaves, |item, levels, leaves| content(field, item, levels, leaves))
        }
    }
}

/// Notes that the value ends here, for all leaf columns below it.
fn absent(levels: Levels, leaves: &mut [Leaf]) {
    for leaf in leaves {
        leaf.definition.push(levels.definition);
        leaf.repetition.push(levels.repetition);
    }
}

/// Puts the elements of a repeated step into their leaf columns.
fn repeated<T>(
    items: impl IntoIterator<Item = T>,
    levels: Levels,
    leaves: &mut [Leaf],
    mut put: impl FnMut(T, Levels, &mut [Leaf]) -> Result<(), String>,
) -> Result<(), String> {
    let depth = levels.depth + 1;
    let mut repetition = levels.repetition;
    let mut is_empty = true;
    for item in items {
        put(item, Levels { definition: levels.definition + 1, repetition, depth }, leaves)?;
        (repetition, is_empty) = (depth, false);
    }
    if is_empty {
        absent(levels, leaves);
    }
    Ok(())
}

/// Puts a value that is there into the leaf columns of its field.
fn content(field: &Type, value: &Value, levels: Levels, leaves: &mut [Leaf]) -> Result<(), String> {
    if !field.is_group() {
        return leaf(field, value, levels, leaves);
    }
    let converted = field.get_basic_info().converted_type();
    match (converted, field.get_fields()) {
        (ConvertedType::LIST, [step]) => {
            let items = value.as_array().ok_or_else(|| mismatch(field, "a list"))?;
            // The step is a structure around the element, except in files of old writers, where it is the element.
            let element = match step.is_group().then(|| step.get_fields()) {
                Some([element]) if step.name() != "array" && !step.name().ends_with("_tuple") => Some(element),
                Some(_) | None => None,
            };
            repeated(items, levels, leaves, |item, levels, leaves| match element {
                Some(element) => shred(element, item, levels, leaves),
                None => content(step, item, levels, leaves),
            })
        }
        (ConvertedType::MAP | ConvertedType::MAP_KEY_VALUE, [step]) => {
            let entries = value.as_object().ok_or_else(|| mismatch(field, "an object"))?;
            let fields = if step.is_group() { step.get_fields() } else { &[] };
            let [key_type, value_type] = fields else {
                return Err(format!("the map `{}` has no keys and values", field.name()));
            };
            repeated(entries, levels, leaves, |(key, item), levels, leaves| {
                let (keys, values) =
                    leaves.split_at_mut_checked(width(key_type)).ok_or("the map has too few columns")?;
                shred(key_type, &json!(key), levels, keys)?;
                shred(value_type, item, levels, values)
            })
        }
        (_, fields) => {
            let object = value.as_object().ok_or_else(|| mismatch(field, "an object"))?;
            if let Some(key) = object.keys().find(|key| !fields.iter().any(|field| field.name() == *key)) {
                return Err(format!("`{}` has no field `{key}`", field.name()));
            }
            let mut rest = leaves;
            for child in fields {
                let (own, after) = rest.split_at_mut_checked(width(child)).ok_or("the group has too few columns")?;
                shred(child, object.get(child.name()).unwrap_or(&Value::Null), levels, own)?;
                rest = after;
            }
            Ok(())
        }
    }
}

fn mismatch(field: &Type, what: &str) -> String {
    format!("`{}` must be {what} by its type", field.name())
}

/// Puts a value into its leaf column.
fn leaf(field: &Type, value: &Value, levels: Levels, leaves: &mut [Leaf]) -> Result<(), String> {
    let [leaf] = leaves else { return Err(format!("`{}` is no leaf", field.name())) };
    let wrong = |what: &str| mismatch(field, what);
    match &mut leaf.values {
        LeafValues::Bool(values) => values.push(value.as_bool().ok_or_else(|| wrong("true or false"))?),
        LeafValues::Int32(values) => {
            values.push(int32(field, value).ok_or_else(|| wrong("a whole number of 32 bits or a date"))?);
        }
        LeafValues::Int64(values) => {
            values.push(int64(field, value).ok_or_else(|| wrong("a whole number of 64 bits or a time"))?);
        }
        #[expect(clippy::cast_possible_truncation, reason = "a number that was 32 bits wide when it was read still is")]
        LeafValues::Float(values) => values.push(value.as_f64().ok_or_else(|| wrong("a number"))? as f32),
        LeafValues::Double(values) => values.push(value.as_f64().ok_or_else(|| wrong("a number"))?),
        LeafValues::Bytes(values) => values.push(bytes(field, value).ok_or_else(|| wrong("a text"))?),
    }
    leaf.definition.push(levels.definition);
    leaf.repetition.push(levels.repetition);
    Ok(())
}

fn int32(field: &Type, value: &Value) -> Option<i32> {
    if field.get_basic_info().converted_type() == ConvertedType::DATE
        && let Some(text) = value.as_str()
    {
        let date: Date = text.parse().ok()?;
        return Some(Date::constant(1970, 1, 1).until(date).ok()?.get_days());
    }
    let whole = value.as_i64()?;
    let is_unsigned = field.get_basic_info().converted_type() == ConvertedType::UINT_32;
    if is_unsigned { u32::try_from(whole).ok().map(u32::cast_signed) } else { i32::try_from(whole).ok() }
}

fn int64(field: &Type, value: &Value) -> Option<i64> {
    if let Some(text) = value.as_str() {
        let moment: Timestamp = text.parse().ok()?;
        let is_millis = field.get_basic_info().converted_type() == ConvertedType::TIMESTAMP_MILLIS;
        return Some(if is_millis { moment.as_millisecond() } else { moment.as_microsecond() });
    }
    let is_unsigned = field.get_basic_info().converted_type() == ConvertedType::UINT_64;
    value.as_i64().or_else(|| is_unsigned.then(|| value.as_u64().map(u64::cast_signed)).flatten())
}

fn bytes(field: &Type, value: &Value) -> Option<Vec<u8>> {
    let text = value.as_str()?;
    let info = field.get_basic_info();
    let is_text = matches!(info.converted_type(), ConvertedType::UTF8 | ConvertedType::ENUM | ConvertedType::JSON);
    if is_text { Some(text.as_bytes().to_vec()) } else { STANDARD.decode(text).ok() }
}
