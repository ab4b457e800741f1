//! Counts the parameters of the part of a model that sees images.

use super::keys::{ConfigError, Keys};

/// Returns the parameters of a vision tower with what joins it to the text part, whose hidden size is `text_hidden`.
pub(super) fn vision(keys: Keys<'_>, text_hidden: f64) -> Result<f64, ConfigError> {
    match keys.text("model_type") {
        Some("qwen2_vl") => qwen2_vl(keys, text_hidden),
        Some("qwen2_5_vl") => qwen2_5_vl(keys, text_hidden),
        Some("llama4_vision_model") => llama4(keys, text_hidden),
        // A plain vision transformer: SigLIP, CLIP, Pixtral and others, with one projection to the text's size.
        Some(_) | None => plain(keys, text_hidden),
    }
}

fn plain(keys: Keys<'_>, text_hidden: f64) -> Result<f64, ConfigError> {
    let hidden = keys.needed("hidden_size")?;
    let layers = keys.needed_first(&["num_hidden_layers", "depth"])?;
    let width = keys.number("intermediate_size")?.unwrap_or(4.0 * hidden);
    let patch = keys.number("patch_size")?.unwrap_or(14.0);
    let side = keys.number("image_size")?.map_or(0.0, |size| (size / patch.max(1.0)).floor());
    let layer = transformer_layer(hidden, width);
    Ok(layers * layer + (side * side + 3.0 * patch * patch) * hidden + hidden * text_hidden)
}

/// Returns a layer with biases: attention, up and down, two norms.
fn transformer_layer(hidden: f64, width: f64) -> f64 {
    4.0 * hidden * (hidden + 1.0) + 2.0 * hidden * width + width + hidden + 4.0 * hidden
}

fn qwen2_vl(keys: Keys<'_>, text_hidden: f64) -> Result<f64, ConfigError> {
    let hidden = keys.needed("embed_dim")?;
    let layers = keys.needed("depth")?;
    let width = hidden * keys.number("mlp_ratio")?.unwrap_or(4.0);
    Ok(layers * transformer_layer(hidden, width) + patches(keys, hidden)? + merger(keys, hidden, text_hidden)?)
}

fn qwen2_5_vl(keys: Keys<'_>, text_hidden: f64) -> Result<f64, ConfigError> {
    let hidden = keys.needed("hidden_size")?;
    let layers = keys.needed("depth")?;
    let width = keys.needed("intermediate_size")?;
    // The feed-forward block has a gate here.
    let layer = 4.0 * hidden * (hidden + 1.0) + 3.0 * hidden * width + 2.0 * width + hidden + 2.0 * hidden;
    Ok(layers * layer + patches(keys, hidden)? + merger(keys, hidden, text_hidden)?)
}

fn patches(keys: Keys<'_>, hidden: f64) -> Result<f64, ConfigError> {
    let patch = keys.number("patch_size")?.unwrap_or(14.0);
    let frames = keys.number("temporal_patch_size")?.unwrap_or(2.0);
    Ok(3.0 * patch * patch * frames * hidden)
}

/// Returns the two layers that join neighbouring patches and lead to the text's size.
fn merger(keys: Keys<'_>, hidden: f64, text_hidden: f64) -> Result<f64, ConfigError> {
    let merge = keys.number("spatial_merge_size")?.unwrap_or(2.0);
    let joined = hidden * merge * merge;
    Ok(joined * joined + joined * text_hidden)
}

fn llama4(keys: Keys<'_>, text_hidden: f64) -> Result<f64, ConfigError> {
    let hidden = keys.needed("hidden_size")?;
    let layers = keys.needed("num_hidden_layers")?;
    let width = keys.needed("intermediate_size")?;
    let patch = keys.number("patch_size")?.unwrap_or(14.0);
    let side = (keys.number("image_size")?.unwrap_or(336.0) / patch.max(1.0)).floor();
    let output = keys.number("vision_output_dim")?.unwrap_or(4096.0);
    let projected = keys.number("projector_output_dim")?.unwrap_or(output);
    // Pixel shuffle halves both sides: four patches become one of four times the width.
    let adapter = width * projected + projected * output;
    let embeddings = (side * side + 1.0 + 3.0 * patch * patch + 5.0) * hidden;
    Ok(layers * transformer_layer(hidden, width) + embeddings + adapter + output * text_hidden)
}
