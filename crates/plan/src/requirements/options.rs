//! The options of a server that decide what it needs.

use std::collections::BTreeMap;

use isobench_schema::task::OptionValue;

/// The options of a server that decide what it needs; absent: the engine's default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerOptions {
    /// `--max-model-len` (vLLM), `--context-length` (SGLang).
    pub max_model_len: Option<u64>,
    /// `--tensor-parallel-size`, `-tp`, `--tp-size`.
    pub tensor_parallel: Option<u32>,
    /// `--pipeline-parallel-size`.
    pub pipeline_parallel: Option<u32>,
    /// `--data-parallel-size`.
    pub data_parallel: Option<u32>,
    /// `--enable-expert-parallel` (vLLM), `--ep-size` (SGLang).
    pub expert_parallel: bool,
    /// `--gpu-memory-utilization` (vLLM), `--mem-fraction-static` (SGLang).
    pub memory_share: Option<f64>,
    /// `--kv-cache-dtype`.
    pub kv_cache_dtype: Option<String>,
    /// `--quantization`.
    pub quantization: Option<String>,
    /// `--dtype`.
    pub dtype: Option<String>,
    /// `--max-num-seqs` (vLLM), `--max-running-requests` (SGLang).
    pub max_sequences: Option<u32>,
    /// `--load-format`.
    pub load_format: Option<String>,
    /// `--enforce-eager` (vLLM), `--disable-cuda-graph` (SGLang).
    pub eager: bool,
}

impl ServerOptions {
    /// Reads the options by their long names without dashes; `_` and `-` are the same. Others are not looked at.
    ///
    /// The second value says which of them have a value that can't be read; each then counts as not given.
    pub fn read(options: &BTreeMap<String, OptionValue>) -> (Self, Vec<String>) {
        let mut read = Self::default();
        let mut faults = Vec::new();
        for (name, value) in options {
            let name = name.trim_start_matches('-').replace('_', "-");
            if let Err(expected) = read.take(&name, value) {
                faults.push(format!("`--{name}` is `{}`, and not {expected}", shown(value)));
            }
        }
        (read, faults)
    }

    fn take(&mut self, name: &str, value: &OptionValue) -> Result<(), &'static str> {
        match name {
            "max-model-len" | "context-length" => self.max_model_len = tokens(value)?,
            "tensor-parallel-size" | "tp" | "tp-size" => self.tensor_parallel = Some(devices(value)?),
            "pipeline-parallel-size" | "pp" | "pp-size" => self.pipeline_parallel = Some(devices(value)?),
            "data-parallel-size" | "dp" | "dp-size" => self.data_parallel = Some(devices(value)?),
            "enable-expert-parallel" | "enable-ep-moe" => self.expert_parallel = switch(value)?,
            "expert-parallel-size" | "ep-size" | "ep" => self.expert_parallel = devices(value)? > 1,
            "gpu-memory-utilization" | "mem-fraction-static" => self.memory_share = Some(share(value)?),
            "kv-cache-dtype" => self.kv_cache_dtype = Some(shown(value)),
            "quantization" | "q" => self.quantization = Some(shown(value)).filter(|method| method != "None"),
            "dtype" => self.dtype = Some(shown(value)),
            "max-num-seqs" | "max-running-requests" => self.max_sequences = Some(devices(value)?),
            "load-format" => self.load_format = Some(shown(value)),
            "enforce-eager" | "disable-cuda-graph" => self.eager = switch(value)?,
            _ => {}
        }
        Ok(())
    }

    /// Returns the bytes of a number in the key-value cache.
    pub(super) fn kv_bytes(&self) -> f64 {
        match self.kv_cache_dtype.as_deref() {
            Some(dtype) if dtype.starts_with("fp8") || dtype == "int8" => 1.0,
            Some("float32") => 4.0,
            Some(_) | None => self.bytes(),
        }
    }

    /// Returns the bytes of an unquantised number.
    pub(super) fn bytes(&self) -> f64 {
        match self.dtype.as_deref() {
            Some("float32" | "float") => 4.0,
            Some(_) | None => 2.0,
        }
    }
}

fn shown(value: &OptionValue) -> String {
    match value {
        OptionValue::Switch(on) => on.to_string(),
        OptionValue::Whole(number) => number.to_string(),
        OptionValue::Number(number) => number.to_string(),
        OptionValue::Text(text) => text.clone(),
    }
}

fn devices(value: &OptionValue) -> Result<u32, &'static str> {
    let number = shown(value).trim().parse::<u32>().ok().filter(|number| *number >= 1);
    number.ok_or("a whole number above 0")
}

fn share(value: &OptionValue) -> Result<f64, &'static str> {
    let number = shown(value).trim().parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    number.ok_or("a number above 0 and at most 1")
}

fn switch(value: &OptionValue) -> Result<bool, &'static str> {
    match shown(value).to_lowercase().as_str() {
        "true" | "" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("a switch"),
    }
}

/// Returns a length in tokens: a number, also with `k` (1,000) or `K` (1,024) as vLLM takes it, or none for `auto` and -1.
fn tokens(value: &OptionValue) -> Result<Option<u64>, &'static str> {
    let text = shown(value);
    let text = text.trim();
    if matches!(text, "auto" | "-1") {
        return Ok(None);
    }
    let units = [('k', 1_000), ('K', 1_024), ('m', 1_000_000), ('M', 1_048_576)];
    let unit = units.iter().find(|(letter, _)| text.ends_with(*letter));
    let (digits, unit) = match unit {
        Some((letter, unit)) => (text.trim_end_matches(*letter), *unit),
        None => (text, 1),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    number.filter(|number| (1..=1_000_000_000_000).contains(number)).map(Some).ok_or("a number of tokens")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(options: &[(&str, OptionValue)]) -> (ServerOptions, Vec<String>) {
        ServerOptions::read(&options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect())
    }

    #[test]
    fn options_of_both_engines_are_read_in_every_spelling() {
        let text = |text: &str| OptionValue::Text(text.to_owned());
        let (options, faults) = read(&[
            ("max_model_len", text("16k")),
            ("--tp", OptionValue::Whole(4)),
            ("mem-fraction-static", OptionValue::Number(0.85)),
            ("kv-cache-dtype", text("fp8_e5m2")),
            ("enforce-eager", OptionValue::Switch(true)),
            ("other", text("x")),
        ]);
        let expected = ServerOptions {
            max_model_len: Some(16_000),
            tensor_parallel: Some(4),
            memory_share: Some(0.85),
            kv_cache_dtype: Some("fp8_e5m2".to_owned()),
            eager: true,
            ..ServerOptions::default()
        };
        assert_eq!((options.clone(), faults), (expected, vec![]));
        assert!((options.kv_bytes() - 1.0).abs() < 1e-9);
        assert_eq!(read(&[("context-length", OptionValue::Whole(4096))]).0.max_model_len, Some(4096));
        assert_eq!(read(&[("max-model-len", text("4K"))]).0.max_model_len, Some(4096));
        assert_eq!(read(&[("max-model-len", text("auto"))]).0.max_model_len, None);
    }

    #[test]
    fn a_value_that_cannot_be_read_is_named() {
        let text = |text: &str| OptionValue::Text(text.to_owned());
        let (options, faults) = read(&[("tensor-parallel-size", text("TP")), ("gpu-memory-utilization", text("1.5"))]);
        assert_eq!(options, ServerOptions::default());
        assert_eq!(
            faults,
            [
                "`--gpu-memory-utilization` is `1.5`, and not a number above 0 and at most 1",
                "`--tensor-parallel-size` is `TP`, and not a whole number above 0"
            ]
        );
    }
}
