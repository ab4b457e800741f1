//! Rows of requests as a Parquet file: row groups of some thousand rows, so that memory stays small.

use std::io::Write;
use std::sync::Arc;

use isobench_schema::record::RequestRecord;
use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};

use super::columns::{COLUMNS, Kind, Value};

/// Rows of a group.
const GROUP: usize = 16_384;

/// The values of one column of the group that is being filled.
struct Filling {
    values: Values,
    /// 1 where there is a value, 0 where there is none.
    definition: Vec<i16>,
}

enum Values {
    Texts(Vec<ByteArray>),
    Wholes(Vec<i64>),
    Numbers(Vec<f64>),
}

/// Writes rows as they come.
pub(super) struct RowsWriter<W: Write + Send> {
    file: SerializedFileWriter<W>,
    columns: Vec<Filling>,
    filled: usize,
    written: u64,
}

impl<W: Write + Send> RowsWriter<W> {
    pub(super) fn new(out: W) -> Result<Self, ParquetError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("isobench {}", env!("CARGO_PKG_VERSION")))
            .build();
        let file = SerializedFileWriter::new(out, schema()?, Arc::new(properties))?;
        Ok(Self { file, columns: empty(), filled: 0, written: 0 })
    }

    /// Adds the row of a request.
    pub(super) fn push(&mut self, record: &RequestRecord) -> Result<(), ParquetError> {
        for (column, filling) in COLUMNS.iter().zip(&mut self.columns) {
            filling.push((column.value)(record));
        }
        self.filled += 1;
        if self.filled == GROUP { self.group() } else { Ok(()) }
    }

    /// Writes what is left; returns how many rows there are.
    pub(super) fn finish(mut self) -> Result<u64, ParquetError> {
        if self.filled > 0 {
            self.group()?;
        }
        self.file.close()?;
        Ok(self.written)
    }

    fn group(&mut self) -> Result<(), ParquetError> {
        let mut group = self.file.next_row_group()?;
        for filling in std::mem::replace(&mut self.columns, empty()) {
            let Some(mut column) = group.next_column()? else { break };
            let definition = Some(filling.definition.as_slice());
            match &filling.values {
                Values::Texts(values) => column.typed::<ByteArrayType>().write_batch(values, definition, None)?,
                Values::Wholes(values) => column.typed::<Int64Type>().write_batch(values, definition, None)?,
                Values::Numbers(values) => column.typed::<DoubleType>().write_batch(values, definition, None)?,
            };
            column.close()?;
        }
        group.close()?;
        self.written += u64::try_from(self.filled).unwrap_or(u64::MAX);
        self.filled = 0;
        Ok(())
    }
}

impl Filling {
    fn push(&mut self, value: Value<'_>) {
        match (&mut self.values, value) {
            (Values::Texts(values), Value::Text(text)) => values.push(ByteArray::from(text)),
            (Values::Wholes(values), Value::Whole(number)) => values.push(number),
            (Values::Numbers(values), Value::Number(number)) => values.push(number),
            // A value of another kind than its column's would be a column that is declared wrongly, which a test looks for.
            (_, _) => {
                self.definition.push(0);
                return;
            }
        }
        self.definition.push(1);
    }
}

fn empty() -> Vec<Filling> {
    let values = |kind| match kind {
        Kind::Text => Values::Texts(Vec::new()),
        Kind::Whole => Values::Wholes(Vec::new()),
        Kind::Number => Values::Numbers(Vec::new()),
    };
    COLUMNS.iter().map(|column| Filling { values: values(column.kind), definition: Vec::new() }).collect()
}

fn schema() -> Result<TypePtr, ParquetError> {
    let field = |name: &str, kind| {
        let physical = match kind {
            Kind::Text => Physical::BYTE_ARRAY,
            Kind::Whole => Physical::INT64,
            Kind::Number => Physical::DOUBLE,
        };
        let text = (kind == Kind::Text).then_some(LogicalType::String);
        let builder = Type::primitive_type_builder(name, physical).with_repetition(Repetition::OPTIONAL);
        builder.with_logical_type(text).build().map(Arc::new)
    };
    let fields = COLUMNS.iter().map(|column| field(column.name, column.kind)).collect::<Result<Vec<_>, _>>()?;
    Type::group_type_builder("requests").with_fields(fields).build().map(Arc::new)
}
