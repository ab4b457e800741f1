//! How the weights of a model are stored in fewer bits.

use super::keys::{ConfigError, Keys};

/// How weights are quantised.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantization {
    /// The method, as the config names it: `fp8`, `compressed-tensors`, `gptq`, ..
    pub method: String,
    /// Bits of one quantised parameter, its share of the scales included.
    pub bits: f64,
    /// The side of a block, or the size of a group, that no device may cut; absent: scales don't limit the sharding.
    pub block: Option<u64>,
    /// Whether the blocks are of two dimensions (FP8 with block scales).
    pub square_blocks: bool,
    /// Whether the matrices of attention are quantised too.
    pub attention: bool,
}

/// Bits that a scale of 32 bits adds for each block of 128 x 128.
const BLOCK_SCALE_BITS: f64 = 32.0;

impl Quantization {
    /// Returns the quantisation that an option of the engine asks for on a model that isn't quantised.
    pub(super) fn asked(method: &str) -> Option<Self> {
        let plain = |bits| Self { method: method.to_owned(), bits, block: None, square_blocks: false, attention: true };
        match method {
            "fp8" | "w8a8_fp8" | "modelopt" | "ptpc_fp8" | "fbgemm_fp8" | "w8a8_int8" | "experts_int8" => {
                Some(plain(8.0))
            }
            // 4 bits, and a scale for each 64 parameters.
            "bitsandbytes" => Some(plain(4.5)),
            _ => None,
        }
    }

    /// Returns the quantisation that a config names, if any.
    pub(super) fn read(config: Keys<'_>) -> Result<Option<Self>, ConfigError> {
        let Some(keys) = config.object("quantization_config").or_else(|| config.object("compression_config")) else {
            return Ok(None);
        };
        let method = keys.text("quant_method").unwrap_or("unnamed").to_lowercase();
        let plain = |bits| Self { method: method.clone(), bits, block: None, square_blocks: false, attention: true };
        let grouped = |bits: f64, group: Option<f64>| match group {
            // A scale of 16 bits and a zero point for each group.
            Some(group) if group >= 1.0 => {
                let block = whole(group);
                Self { bits: bits + 16.0 / group, block: Some(block), ..plain(bits) }
            }
            Some(_) | None => plain(bits),
        };
        Ok(Some(match method.as_str() {
            "fp8" => {
                match keys.list("weight_block_size").and_then(|sizes| sizes.first()).and_then(serde_json::Value::as_u64)
                {
                    Some(side) if (1..=65536).contains(&side) => {
                        let side_number = f64::from(u32::try_from(side).unwrap_or(u32::MAX));
                        let bits = 8.0 + BLOCK_SCALE_BITS / (side_number * side_number);
                        Self { bits, block: Some(side), square_blocks: true, ..plain(8.0) }
                    }
                    Some(_) | None => plain(8.0),
                }
            }
            "modelopt" | "fbgemm_fp8" | "ptpc_fp8" => plain(8.0),
            "gptq" | "awq" | "gptq_marlin" | "awq_marlin" | "auto-round" => {
                grouped(keys.first(&["bits", "w_bit"])?.unwrap_or(4.0), group_size(keys))
            }
            "bitsandbytes" => plain(if keys.switch("load_in_4bit") == Some(true) { 4.5 } else { 8.0 }),
            // 4 bits, and a scale of 8 bits for each 32 parameters.
            "mxfp4" => Self { attention: false, ..plain(4.25) },
            "compressed-tensors" => {
                let (bits, group) = compressed(keys)?;
                Self { attention: !ignores_attention(keys), ..grouped(bits, group) }
            }
            _ => {
                return Err(ConfigError::UnknownQuantization { model: config.model().to_owned(), method });
            }
        }))
    }
}

/// Returns bits and group size of the first group that compressed-tensors names.
fn compressed(keys: Keys<'_>) -> Result<(f64, Option<f64>), ConfigError> {
    let missing = || ConfigError::Missing { model: keys.model().to_owned(), key: "config_groups" };
    let groups = keys.get("config_groups").and_then(|groups| groups.as_object()).ok_or_else(missing)?;
    let group = groups.values().next().ok_or_else(missing)?;
    let weights = Keys::new(keys.model(), group)?.object("weights").ok_or_else(missing)?;
    Ok((weights.number("num_bits")?.unwrap_or(8.0), group_size(weights)))
}

fn ignores_attention(keys: Keys<'_>) -> bool {
    let ignored = keys.list("ignore").unwrap_or_default();
    ignored.iter().filter_map(|name| name.as_str()).any(|name| name.contains("self_attn") && name.starts_with("re:"))
}

/// Returns the size of a group; -1, which means one for each channel, counts as none.
fn group_size(keys: Keys<'_>) -> Option<f64> {
    let size = keys.get("group_size").or_else(|| keys.get("q_group_size"))?.as_u64()?;
    (1..=1_000_000).contains(&size).then(|| f64::from(u32::try_from(size).unwrap_or(u32::MAX)))
}

/// Returns a whole number that is held as `f64`.
pub(super) fn whole(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast of f64 to u64 saturates; the number is rounded and not negative"
    )]
    let number = number.round().max(0.0) as u64;
    number
}
