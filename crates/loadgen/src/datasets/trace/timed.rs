//! Traces that are JSON lines: those of Mooncake, and any other with a time and lengths in each line.

use serde_json::{Map, Value};

use super::{DatasetError, Options, Parsed, Traced, moment};

/// What holds where nothing else is asked for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Defaults {
    /// Seconds in one unit of its times.
    unit_s: f64,
    /// Tokens of a block.
    block: u32,
}

/// Mooncake's times are milliseconds, and its blocks have 512 tokens.
pub(super) const MOONCAKE: Defaults = Defaults { unit_s: 0.001, block: 512 };

/// As `timed_trace` of vLLM's benchmark.
pub(super) const TIMED: Defaults = Defaults { unit_s: 1.0, block: 16 };

/// Which fields hold what.
#[derive(Debug)]
pub(super) struct Fields {
    time: String,
    input: String,
    output: String,
    blocks: String,
    unit_s: f64,
    block: u32,
}

impl Fields {
    /// Reads the names of the fields from the options.
    pub(super) fn open(options: &mut Options<'_>, defaults: Defaults) -> Result<Self, DatasetError> {
        let mut name = |option, default: &str| -> Result<String, DatasetError> {
            Ok(options.text(&[option])?.unwrap_or(default).to_owned())
        };
        let time = name("timed-trace-label-timestamp", "timestamp")?;
        let input = name("timed-trace-label-input-length", "input_length")?;
        let output = name("timed-trace-label-output-length", "output_length")?;
        let blocks = name("timed-trace-label-hash-ids", "hash_ids")?;
        let unit_s = options.number("timed-trace-sec-multiplier", 1e-9, 1e9)?.unwrap_or(defaults.unit_s);
        let block = options.whole(&["timed-trace-chunk-hash-size"], 1, 1 << 20)?.unwrap_or(defaults.block);
        Ok(Self { time, input, output, blocks, unit_s, block })
    }

    /// Returns the tokens of a block.
    pub(super) fn block(&self) -> u32 {
        self.block
    }

    /// Reads a line.
    pub(super) fn row(&self, bytes: &[u8]) -> Parsed<Traced> {
        match self.traced(bytes) {
            Ok(traced) => Parsed::Row(traced),
            Err(what) => Parsed::Bad(what),
        }
    }

    fn traced(&self, bytes: &[u8]) -> Result<Traced, String> {
        let row: Map<String, Value> =
            serde_json::from_slice(bytes).map_err(|error| format!("it is no JSON object: {error}"))?;
        let time = row.get(&self.time).and_then(Value::as_f64);
        let at_ns = time.and_then(|time| moment::from_seconds(time * self.unit_s));
        let prompt = match row.get("prompt") {
            None => None,
            Some(Value::String(prompt)) if !prompt.is_empty() => Some(prompt.clone()),
            Some(_) => return Err("`prompt` must be a text".to_owned()),
        };
        let length = |name: &str| {
            let length = row.get(name).and_then(Value::as_u64).and_then(|length| u32::try_from(length).ok());
            length.ok_or_else(|| format!("`{name}` must be a whole number of tokens"))
        };
        let blocks: Vec<u64> = match row.get(&self.blocks) {
            None => Vec::new(),
            Some(blocks) => serde_json::from_value(blocks.clone())
                .map_err(|_no_names| format!("`{}` must be a list of whole numbers", self.blocks))?,
        };
        Ok(Traced {
            at_ns: at_ns.ok_or_else(|| format!("`{}` must be a time, which is not negative", self.time))?,
            // With a prompt of its own the length is that prompt's.
            input_tokens: if prompt.is_some() { 0 } else { length(&self.input)? },
            output_tokens: length(&self.output)?,
            blocks,
            prompt,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(row: &str, expected: &str) {
        let options = [].into();
        let fields = Fields::open(&mut Options::new("mooncake", &options), MOONCAKE).unwrap();
        let found = match fields.traced(row.as_bytes()) {
            Ok(row) => {
                format!("{} {} {} {:?} {:?}", row.at_ns, row.input_tokens, row.output_tokens, row.blocks, row.prompt)
            }
            Err(what) => what,
        };
        assert_eq!(found, expected, "{row}");
    }

    #[test]
    fn lines_are_read_and_wrong_ones_are_told_apart() {
        for (row, expected) in [
            (
                r#"{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}"#,
                "27482000000 6955 52 [46, 47, 2353] None",
            ),
            (r#"{"timestamp": 0.5, "prompt": "hello", "output_length": 1}"#, "500000 0 1 [] Some(\"hello\")"),
            (r#"{"input_length": 1, "output_length": 1}"#, "`timestamp` must be a time, which is not negative"),
            (
                r#"{"timestamp": -1, "input_length": 1, "output_length": 1}"#,
                "`timestamp` must be a time, which is not negative",
            ),
            (
                r#"{"timestamp": 1, "input_length": "1", "output_length": 1}"#,
                "`input_length` must be a whole number of tokens",
            ),
            (
                r#"{"timestamp": 1, "input_length": 1, "output_length": 5000000000}"#,
                "`output_length` must be a whole number of tokens",
            ),
            (
                r#"{"timestamp": 1, "input_length": 1, "output_length": 1, "hash_ids": ["a"]}"#,
                "`hash_ids` must be a list of whole numbers",
            ),
            (r#"{"timestamp": 1, "prompt": 3, "output_length": 1}"#, "`prompt` must be a text"),
        ] {
            check(row, expected);
        }
    }
}
