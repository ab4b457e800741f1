//! Versions of stored formats: an older one is upgraded, an unknown newer one is refused by name.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// A type that is stored as a JSON object whose first field is `"format": "isobench.NAME/VERSION"`.
pub trait Stored: Serialize + DeserializeOwned {
    /// The name of the format, for example `plan`.
    const NAME: &'static str;
    /// The version that is written now, from 1.
    const VERSION: u32;

    /// Turns a value of `version`, which is older than [`Stored::VERSION`], into one of `version + 1`.
    ///
    /// Returns `None` if that version was never written.
    fn upgrade(version: u32, value: Value) -> Option<Value> {
        let _ = (version, value);
        None
    }
}

/// Why stored bytes can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadFormatError {
    /// The bytes aren't JSON, or not of the format's shape.
    #[error("this is not a valid `isobench.{name}` object")]
    Malformed {
        /// The format that was asked for.
        name: &'static str,
        /// What is wrong, with line and column.
        #[source]
        source: serde_json::Error,
    },
    /// There is no format tag, or it names another format.
    #[error("expected the format `isobench.{name}/{version}`, found {found}")]
    OtherFormat {
        /// The format that was asked for.
        name: &'static str,
        /// The version that is written now.
        version: u32,
        /// What stands in the field `format`.
        found: String,
    },
    /// A later isobench wrote it.
    #[error("the format `isobench.{name}/{found}` is newer than this isobench, which reads up to version {version}")]
    Newer {
        /// The format.
        name: &'static str,
        /// The version of the bytes.
        found: u32,
        /// The newest version that can be read.
        version: u32,
    },
    /// A version that was never written.
    #[error("the format `isobench.{name}/{found}` is not known")]
    Unknown {
        /// The format.
        name: &'static str,
        /// The version of the bytes.
        found: u32,
    },
}

/// Returns the tag of the format as it is written now.
pub fn tag<T: Stored>() -> String {
    format!("isobench.{}/{}", T::NAME, T::VERSION)
}

/// A value with its tag, which comes first.
#[derive(Serialize)]
struct Tagged<'a, T> {
    format: String,
    #[serde(flatten)]
    value: &'a T,
}

impl<'a, T: Stored> Tagged<'a, T> {
    fn new(value: &'a T) -> Self {
        Self { format: tag::<T>(), value }
    }
}

/// Returns `value` as indented JSON with its format tag and a last line end. Same input, same bytes.
///
/// # Errors
/// Returns an error if `value` can't be written as a JSON object.
pub fn to_pretty<T: Stored>(value: &T) -> Result<String, serde_json::Error> {
    Ok(serde_json::to_string_pretty(&Tagged::new(value))? + "\n")
}

/// Writes what [`to_pretty`] returns, piece by piece, so that a plan of many thousand tasks needs no second copy in memory.
///
/// # Errors
/// Returns an error if `value` can't be written as a JSON object, or what `out` says.
pub fn write_pretty<T: Stored>(value: &T, mut out: impl io::Write) -> Result<(), serde_json::Error> {
    serde_json::to_writer_pretty(&mut out, &Tagged::new(value))?;
    out.write_all(b"\n").map_err(serde_json::Error::io)
}

/// Returns `value` as one line of JSON with its format tag, without a line end.
///
/// # Errors
/// Returns an error if `value` can't be written as a JSON object.
pub fn to_line<T: Stored>(value: &T) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Tagged::new(value))
}

/// Reads a stored object of this version or an older one.
///
/// # Errors
/// Returns what is wrong with the bytes: not JSON, another format, or a version that isn't known here.
pub fn from_slice<T: Stored>(bytes: &[u8]) -> Result<T, ReadFormatError> {
    let malformed = |source| ReadFormatError::Malformed { name: T::NAME, source };
    let mut value: Value = serde_json::from_slice(bytes).map_err(malformed)?;
    let found = take_tag(&mut value);
    let prefix = format!("isobench.{}/", T::NAME);
    let version =
        found.as_ref().and_then(Value::as_str).and_then(|text| text.strip_prefix(&prefix)?.parse::<u32>().ok());
    let Some(mut version) = version else {
        let found = found.map_or_else(|| "no `format` field".to_owned(), |value| format!("`{value}`"));
        return Err(ReadFormatError::OtherFormat { name: T::NAME, version: T::VERSION, found });
    };
    if version > T::VERSION {
        return Err(ReadFormatError::Newer { name: T::NAME, found: version, version: T::VERSION });
    }
    let found = version;
    while version < T::VERSION {
        value = T::upgrade(version, value).ok_or(ReadFormatError::Unknown { name: T::NAME, found })?;
        version += 1;
    }
    serde_json::from_value(value).map_err(malformed)
}

fn take_tag(value: &mut Value) -> Option<Value> {
    value.as_object_mut()?.remove("format")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Example {
        length_ms: u32,
    }

    impl Stored for Example {
        const NAME: &'static str = "example";
        const VERSION: u32 = 3;

        fn upgrade(version: u32, mut value: Value) -> Option<Value> {
            // Version 2 called the field `length_s`, and nothing ever wrote version 1.
            let seconds = (version == 2).then(|| value.as_object_mut()?.remove("length_s")?.as_u64())??;
            Some(json!({ "length_ms": seconds * 1000 }))
        }
    }

    fn check(text: &str, expected: Result<u32, &str>) {
        let found = from_slice::<Example>(text.as_bytes()).map(|example| example.length_ms).map_err(|e| e.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn the_version_written_now_round_trips() {
        let text = to_pretty(&Example { length_ms: 5 }).unwrap();
        assert_eq!(text, "{\n  \"format\": \"isobench.example/3\",\n  \"length_ms\": 5\n}\n");
        check(&text, Ok(5));
    }

    #[test]
    fn an_older_version_is_read() {
        check(r#"{"format":"isobench.example/2","length_s":7}"#, Ok(7000));
    }

    #[test]
    fn a_newer_version_is_refused_by_name() {
        check(
            r#"{"format":"isobench.example/4","length_ms":7}"#,
            Err("the format `isobench.example/4` is newer than this isobench, which reads up to version 3"),
        );
    }

    #[test]
    fn other_formats_and_unknown_versions_are_refused() {
        check(r#"{"format":"isobench.example/1"}"#, Err("the format `isobench.example/1` is not known"));
        let expected = "expected the format `isobench.example/3`, found ";
        check(r#"{"length_ms":1}"#, Err(&format!("{expected}no `format` field")));
        check(r#"{"format":"isobench.plan/1"}"#, Err(&format!("{expected}`\"isobench.plan/1\"`")));
        check("[]", Err(&format!("{expected}no `format` field")));
        check("{", Err("this is not a valid `isobench.example` object"));
    }
}
