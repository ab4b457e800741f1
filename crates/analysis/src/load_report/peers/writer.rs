//! Writes JSON as Python's `json.dumps` does: keys in the order in which they were put, `", "` and `": "` in between, and
//! `Infinity` for what has no limit.

use std::fmt::Write as _;

/// A value of a result file.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    /// Infinity, which JSON doesn't have and Python writes.
    Unlimited,
    Text(String),
    Count(u64),
    Real(f64),
    Reals(Vec<f64>),
    Object(Object),
}

impl Value {
    /// Returns the text, or null without one.
    pub(super) fn text(text: Option<&str>) -> Self {
        text.map_or(Self::Null, |text| Self::Text(text.to_owned()))
    }

    fn write(&self, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Unlimited => out.push_str("Infinity"),
            Self::Text(text) => out.push_str(&quoted(text)),
            Self::Count(count) => write!(out, "{count}").expect("a String takes every write"),
            Self::Real(value) => write_real(out, *value),
            Self::Reals(values) => {
                out.push('[');
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        out.push_str(", ");
                    }
                    write_real(out, *value);
                }
                out.push(']');
            }
            Self::Object(object) => object.write(out),
        }
    }
}

/// An object whose keys keep their order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object(Vec<(String, Value)>);

impl Object {
    pub(super) fn put(&mut self, key: impl Into<String>, value: Value) {
        self.0.push((key.into(), value));
    }

    pub(super) fn to_json(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }

    fn write(&self, out: &mut String) {
        out.push('{');
        for (place, (key, value)) in self.0.iter().enumerate() {
            if place > 0 {
                out.push_str(", ");
            }
            out.push_str(&quoted(key));
            out.push_str(": ");
            value.write(out);
        }
        out.push('}');
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes the shortest number that reads back the same; every number here is finite.
fn write_real(out: &mut String, value: f64) {
    out.push_str(&serde_json::Value::from(value).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_keep_the_order_of_their_keys() {
        let mut inner = Object::default();
        inner.put("ttft", Value::Real(200.0));
        let mut object = Object::default();
        object.put("z", Value::Text("a \"b\"".to_owned()));
        object.put("a", Value::Count(3));
        object.put("rate", Value::Unlimited);
        object.put("list", Value::Reals(vec![0.5, 1e-7]));
        object.put("none", Value::text(None));
        object.put("inner", Value::Object(inner));
        let expected = r#"{"z": "a \"b\"", "a": 3, "rate": Infinity, "list": [0.5, 1e-7], "none": null, "inner": {"ttft": 200.0}}"#;
        assert_eq!(object.to_json(), expected);
    }
}
