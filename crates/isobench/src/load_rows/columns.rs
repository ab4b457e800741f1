//! The columns of a table of requests.

use isobench_analysis::measure::RequestNumbers;
use isobench_schema::record::RequestRecord;

/// The value of a column.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'r> {
    /// It isn't known.
    Absent,
    /// A text.
    Text(&'r str),
    /// A whole number.
    Whole(i64),
    /// A number.
    Number(f64),
}

/// What a column's values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Texts.
    Text,
    /// Whole numbers.
    Whole,
    /// Numbers.
    Number,
}

/// A column.
pub(super) struct Column {
    /// Its name.
    pub(super) name: &'static str,
    /// What its values are.
    pub(super) kind: Kind,
    /// Returns its value of a request.
    pub(super) value: for<'r> fn(&'r RequestRecord) -> Value<'r>,
}

const fn texts(name: &'static str, value: for<'r> fn(&'r RequestRecord) -> Value<'r>) -> Column {
    Column { name, kind: Kind::Text, value }
}

const fn wholes(name: &'static str, value: for<'r> fn(&'r RequestRecord) -> Value<'r>) -> Column {
    Column { name, kind: Kind::Whole, value }
}

const fn numbers(name: &'static str, value: for<'r> fn(&'r RequestRecord) -> Value<'r>) -> Column {
    Column { name, kind: Kind::Number, value }
}

/// The columns in their order. Times in nanoseconds are of the clock of the records; `docs/formats.md` says what each means.
pub(super) const COLUMNS: [Column; 26] = [
    texts("phase", |record| Value::Text(record.phase.as_str())),
    wholes("index", |record| Value::Whole(i64::from(record.index))),
    texts("model", |record| text(record.model.as_deref())),
    wholes("session", |record| whole(record.turn.map(|turn| turn.session))),
    wholes("turn", |record| whole(record.turn.map(|turn| turn.turn))),
    wholes("input_tokens", |record| Value::Whole(i64::from(record.input_tokens))),
    wholes("output_tokens_asked", |record| Value::Whole(i64::from(record.output_tokens_asked))),
    wholes("output_tokens", |record| whole(Some(RequestNumbers::of(record).output_tokens))),
    wholes("scheduled_ns", |record| whole(Some(record.intended_ns))),
    wholes("released_ns", |record| whole(record.released_ns)),
    wholes("connected_ns", |record| whole(record.connected_ns)),
    wholes("first_out_ns", |record| whole(record.first_out_ns)),
    wholes("sent_ns", |record| whole(record.sent_ns)),
    wholes("first_byte_ns", |record| whole(record.first_byte_ns)),
    wholes("end_ns", |record| whole(Some(record.end_ns))),
    numbers("ttft_ms", |record| number(RequestNumbers::of(record).ttft_ms)),
    numbers("tpot_ms", |record| number(RequestNumbers::of(record).tpot_ms)),
    numbers("e2el_ms", |record| number(Some(RequestNumbers::of(record).e2el_ms))),
    wholes("chunks", |record| whole(Some(record.chunk_ns.len()))),
    wholes("lag_ns", |record| whole(record.lag_ns)),
    wholes("status", |record| whole(record.status)),
    texts("finish_reason", |record| text(record.finish_reason.as_deref())),
    wholes("usage_prompt_tokens", |record| whole(record.usage.map(|usage| usage.prompt_tokens))),
    wholes("usage_completion_tokens", |record| whole(record.usage.map(|usage| usage.completion_tokens))),
    texts("failure", |record| text(record.failure.as_ref().map(|failure| failure.class.as_str()))),
    texts("failure_message", |record| text(record.failure.as_ref().map(|failure| failure.message.as_str()))),
];

fn text(value: Option<&str>) -> Value<'_> {
    value.map_or(Value::Absent, Value::Text)
}

fn number(value: Option<f64>) -> Value<'static> {
    value.map_or(Value::Absent, Value::Number)
}

/// A number that is too large for a column is absent rather than wrong: no clock runs for 292 years.
fn whole(value: Option<impl TryInto<i64>>) -> Value<'static> {
    value.and_then(|value| value.try_into().ok()).map_or(Value::Absent, Value::Whole)
}
