//! `image`: a random text with generated images in one message of a chat.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use isobench_schema::workload::Api;
use serde_json::{Value, json};

use super::{Context, DatasetError, Maker, Options, Source};
use crate::schedule::draw::Draws;
use crate::schedule::{Content, Request};

/// Lengths in tokens and sizes in pixels where nothing else is asked for.
const INPUT: u32 = 128;
const OUTPUT: u32 = 128;
const SIDE: u32 = 512;

/// The largest image's side in pixels, and the most images of a request.
const LARGEST: u32 = 8192;
const MOST: u32 = 64;

/// The side in pixels of the squares that an image is made of: few enough that its bytes stay few.
const SQUARE: u32 = 16;

/// Requests with images.
pub(super) struct Image {
    maker: Maker,
    draws: Draws,
    input: u32,
    images: u32,
    width: u32,
    height: u32,
    output_tokens: u32,
}

impl Image {
    /// Opens it. The length of a request is that of its text: how many tokens an image is only the server knows.
    pub(super) fn open(options: &mut Options<'_>, context: &Context<'_>) -> Result<Self, DatasetError> {
        let input = options.tokens(&["random-input-len", "input-len"], INPUT)?;
        let output = options.whole(&["random-output-len", "output-len"], 0, u32::MAX / 4)?;
        let names = &["images-per-request", "image-count", "random-image-num-images"];
        let images = options.whole(names, 1, MOST)?.unwrap_or(1);
        let width = options.whole(&["image-width"], 1, LARGEST)?.unwrap_or(SIDE);
        let height = options.whole(&["image-height"], 1, LARGEST)?.unwrap_or(SIDE);
        if context.api != Api::Chat {
            return Err(DatasetError::Interface {
                dataset: "image".to_owned(),
                api: context.api.as_str(),
                instead: "the chat interface",
            });
        }
        let maker = Maker::new(context.tokenizer("image")?)?;
        let output_tokens = context.output_tokens(output, OUTPUT);
        Ok(Self { maker, draws: context.draws("images"), input, images, width, height, output_tokens })
    }
}

impl Source for Image {
    fn next(&mut self) -> Result<Request, DatasetError> {
        let text = self.maker.text(self.input, &mut self.draws)?;
        let input_tokens = text.tokens();
        let mut parts = vec![json!({ "type": "text", "text": text.into_text() })];
        for _ in 0..self.images {
            let bytes = png(self.width, self.height, &mut self.draws).map_err(|cause| DatasetError::Image {
                width: self.width,
                height: self.height,
                cause: cause.to_string(),
            })?;
            let url = format!("data:image/png;base64,{}", STANDARD.encode(bytes));
            parts.push(json!({ "type": "image_url", "image_url": { "url": url } }));
        }
        let messages = json!([{ "role": "user", "content": Value::Array(parts) }]);
        Ok(Request::new(Content::Messages(messages), input_tokens, self.output_tokens))
    }
}

/// Returns a PNG of squares in random colours, so that no two are the same.
fn png(width: u32, height: u32, draws: &mut Draws) -> Result<Vec<u8>, png::EncodingError> {
    let columns = width.div_ceil(SQUARE);
    let mut pixels = Vec::new();
    for _ in 0..height.div_ceil(SQUARE) {
        let mut row = Vec::new();
        for column in 0..columns {
            let [red, green, blue, _] = draws.below(1 << 24).to_le_bytes();
            for _ in 0..SQUARE.min(width - column * SQUARE) {
                row.extend_from_slice(&[red, green, blue]);
            }
        }
        for _ in 0..SQUARE {
            pixels.extend_from_slice(&row);
        }
    }
    pixels.truncate(3 * width as usize * height as usize);
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pixels)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_have_their_size_and_are_all_different() {
        let mut draws = Draws::new(3, "test");
        let mut seen = std::collections::BTreeSet::new();
        for (width, height) in [(1, 1), (16, 16), (17, 33), (512, 512), (300, 7), (512, 512)] {
            let bytes = png(width, height, &mut draws).unwrap();
            let decoder = png::Decoder::new(std::io::Cursor::new(&bytes));
            let mut reader = decoder.read_info().unwrap();
            assert_eq!((reader.info().width, reader.info().height), (width, height));
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            assert!(bytes.len() < 64 << 10, "{}", bytes.len());
            assert!(seen.insert(bytes));
        }
    }
}
