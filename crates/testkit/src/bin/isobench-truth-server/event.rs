//! The events of a stream, byte by byte.

use std::io::Write as _;

use crate::config::{Config, Framing};
use crate::gzip::Gzip;
use crate::request::Api;

/// When every answer was made, in seconds since 1970.
const CREATED: u64 = 1_764_275_000;

/// The words that are sent as tokens, as JSON has them, each with a space before.
#[derive(Debug)]
pub(crate) struct Words(Vec<Vec<u8>>);

impl Words {
    /// Takes one word from each line; a few of our own if there is none.
    pub(crate) fn new(text: &str) -> Self {
        let text = if text.trim().is_empty() { "the\nof\nand\nto\nin" } else { text };
        let escaped = |word: &str| {
            let json = serde_json::Value::from(format!(" {word}")).to_string();
            json.trim_matches('"').as_bytes().to_vec()
        };
        Self(text.lines().filter(|line| !line.is_empty()).map(escaped).collect())
    }

    fn id(&self, stream: u64, place: u64) -> usize {
        let count = u64::try_from(self.0.len()).unwrap_or(1);
        usize::try_from(stream.wrapping_mul(7919).wrapping_add(place) % count).unwrap_or(0)
    }

    fn put(&self, id: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(self.0.get(id).map_or(b"", Vec::as_slice));
    }
}

/// What all events of one stream have in common.
#[derive(Clone, Debug)]
pub(crate) struct Voice {
    api: Api,
    id: u64,
    /// From `data:` to the choice's index.
    head: Vec<u8>,
    /// Whether each event tells the usage.
    pub(crate) continuous: bool,
    /// Whether each event tells the ids of its tokens.
    pub(crate) ids: bool,
    pub(crate) prompt_tokens: u64,
}

/// The tokens of one event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// The place of the first.
    pub(crate) from: u64,
    pub(crate) tokens: u64,
    /// Whether it is the stream's last.
    pub(crate) last: bool,
    pub(crate) choice: u64,
}

impl Config {
    fn line_end(&self) -> &'static str {
        match (self.crlf, self.cr) {
            (true, _) => "\r\n",
            (false, true) => "\r",
            (false, false) => "\n",
        }
    }
}

impl Voice {
    /// Returns that of the stream `id` of the model.
    pub(crate) fn new(api: Api, id: u64, model: &str, config: &Config) -> Self {
        let (kind, object) = names(api);
        let parts = [
            format!("{{\"id\":\"{kind}-{id:032x}\""),
            format!("\"object\":\"{object}\""),
            format!("\"created\":{CREATED}"),
            format!("\"model\":\"{model}\""),
            "\"choices\":[{\"index\":".to_owned(),
        ];
        let mut head = "data: ".to_owned();
        for (part, number) in parts.iter().zip(0..) {
            if number > 0 {
                head.push(',');
                if number < config.lines {
                    head.push_str(config.line_end());
                    head.push_str("data: ");
                }
            }
            head.push_str(part);
        }
        Self { api, id, head: head.into_bytes(), continuous: config.contusage, ids: config.ids, prompt_tokens: 0 }
    }

    /// Appends the event with some tokens.
    pub(crate) fn tokens(&self, config: &Config, words: &Words, piece: Piece, out: &mut Vec<u8>) {
        let end = config.line_end();
        if config.ka {
            out.extend_from_slice(b": keepalive");
            out.extend_from_slice(end.as_bytes());
            out.extend_from_slice(end.as_bytes());
        }
        out.extend_from_slice(&self.head);
        number(piece.choice, out);
        let text = |out: &mut Vec<u8>| self.text(config, words, piece, out);
        match self.api {
            Api::Completions => {
                out.extend_from_slice(b",\"text\":\"");
                text(out);
                out.extend_from_slice(b"\"");
            }
            Api::Chat if piece.from < config.reason => {
                let fields: &[&str] = match config.reason_field {
                    0 => &["reasoning_content"],
                    1 => &["reasoning"],
                    _ => &["reasoning_content", "reasoning"],
                };
                out.extend_from_slice(b",\"delta\":{");
                for (field, place) in fields.iter().zip(0..) {
                    out.extend_from_slice(if place == 0 { b"\"" } else { b",\"" });
                    out.extend_from_slice(field.as_bytes());
                    out.extend_from_slice(b"\":\"");
                    text(out);
                    out.extend_from_slice(b"\"");
                }
                out.extend_from_slice(b"}");
            }
            Api::Chat if piece.from < config.reason + config.tool => {
                out.extend_from_slice(b",\"delta\":{\"tool_calls\":[{\"index\":0,");
                if piece.from == config.reason {
                    // Writing to a vector can't fail.
                    write!(out, "\"id\":\"call-{:x}\",\"type\":\"function\",", self.id).ok();
                    out.extend_from_slice(b"\"function\":{\"name\":\"look_up\",\"arguments\":\"");
                } else {
                    out.extend_from_slice(b"\"function\":{\"arguments\":\"");
                }
                text(out);
                out.extend_from_slice(b"\"}}]}");
            }
            Api::Chat => {
                out.extend_from_slice(b",\"delta\":{\"content\":\"");
                text(out);
                out.extend_from_slice(b"\"}");
            }
        }
        out.extend_from_slice(b",\"logprobs\":null,\"finish_reason\":");
        if piece.last && !config.nofinish {
            out.push(b'"');
            out.extend_from_slice(config.finish.as_bytes());
            out.push(b'"');
        } else {
            out.extend_from_slice(b"null");
        }
        self.token_ids(config, words, piece, out);
        out.extend_from_slice(b"}]");
        if config.huge > 0 && piece.from == 0 {
            out.extend_from_slice(b",\"padding\":\"");
            out.resize(out.len() + usize::try_from(config.huge).unwrap_or(0), b'x');
            out.push(b'"');
        }
        if self.continuous {
            self.usage(piece.from + piece.tokens, out);
        }
        out.push(b'}');
        out.extend_from_slice(end.as_bytes());
        out.extend_from_slice(end.as_bytes());
    }

    fn text(&self, config: &Config, words: &Words, piece: Piece, out: &mut Vec<u8>) {
        for place in piece.from..piece.from + piece.tokens {
            if config.utf8 {
                out.extend_from_slice(" é中😀".as_bytes());
            } else {
                words.put(words.id(self.id, place), out);
            }
        }
    }

    fn token_ids(&self, config: &Config, words: &Words, piece: Piece, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"stop_reason\":null,\"token_ids\":");
        if !self.ids {
            out.extend_from_slice(b"null");
            return;
        }
        out.push(b'[');
        for place in piece.from..piece.from + piece.tokens {
            if place > piece.from {
                out.push(b',');
            }
            let id = if config.utf8 { 0 } else { words.id(self.id, place) };
            number(u64::try_from(id).unwrap_or(0), out);
        }
        out.push(b']');
    }

    fn usage(&self, tokens: u64, out: &mut Vec<u8>) {
        let (prompt, total) = (self.prompt_tokens, self.prompt_tokens + tokens);
        // Writing to a vector can't fail.
        write!(
            out,
            ",\"usage\":{{\"prompt_tokens\":{prompt},\"total_tokens\":{total},\"completion_tokens\":{tokens}}}"
        )
        .ok();
    }

    /// Appends the event without text that some servers begin with.
    pub(crate) fn opening(&self, config: &Config, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        out.extend_from_slice(match self.api {
            Api::Completions => b"0,\"text\":\"\"".as_slice(),
            Api::Chat => b"0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}",
        });
        out.extend_from_slice(b",\"logprobs\":null,\"finish_reason\":null}]}");
        out.extend_from_slice(config.line_end().repeat(2).as_bytes());
    }

    /// Appends the event with the usage alone.
    pub(crate) fn last_usage(&self, config: &Config, model: &str, tokens: u64, out: &mut Vec<u8>) {
        let (kind, object) = names(self.api);
        // Writing to a vector can't fail.
        write!(
            out,
            "data: {{\"id\":\"{kind}-{:032x}\",\"object\":\"{object}\",\"created\":{CREATED},\"model\":\"{model}\",\"choices\":[]",
            self.id
        )
        .ok();
        self.usage((tokens * config.choices).saturating_add_signed(config.wrongusage), out);
        out.push(b'}');
        out.extend_from_slice(config.line_end().repeat(2).as_bytes());
    }

    /// Returns the body of an answer that isn't a stream.
    pub(crate) fn whole(&self, config: &Config, words: &Words, model: &str, tokens: u64) -> Vec<u8> {
        let (kind, object) = match self.api {
            Api::Completions => ("cmpl", "text_completion"),
            Api::Chat => ("chatcmpl", "chat.completion"),
        };
        let mut out = format!(
            "{{\"id\":\"{kind}-{:032x}\",\"object\":\"{object}\",\"created\":{CREATED},\"model\":\"{model}\",\"choices\":[",
            self.id
        )
        .into_bytes();
        for choice in 0..config.choices {
            let piece = Piece { from: 0, tokens, last: true, choice };
            out.extend_from_slice(if choice == 0 { b"{\"index\":" } else { b",{\"index\":" });
            number(choice, &mut out);
            out.extend_from_slice(match self.api {
                Api::Completions => b",\"text\":\"".as_slice(),
                Api::Chat => b",\"message\":{\"role\":\"assistant\",\"content\":\"",
            });
            self.text(config, words, piece, &mut out);
            out.extend_from_slice(if self.api == Api::Chat { b"\"}" } else { b"\"" });
            // Writing to a vector can't fail.
            write!(out, ",\"logprobs\":null,\"finish_reason\":\"{}\"", config.finish).ok();
            self.token_ids(config, words, piece, &mut out);
            out.push(b'}');
        }
        out.push(b']');
        if !config.nousage {
            self.usage((tokens * config.choices).saturating_add_signed(config.wrongusage), &mut out);
        }
        out.push(b'}');
        out
    }
}

fn names(api: Api) -> (&'static str, &'static str) {
    match api {
        Api::Completions => ("cmpl", "text_completion"),
        Api::Chat => ("chatcmpl", "chat.completion.chunk"),
    }
}

fn number(number: u64, out: &mut Vec<u8>) {
    // Writing to a vector can't fail.
    write!(out, "{number}").ok();
}

/// Appends an event with an error.
pub(crate) fn error(config: &Config, out: &mut Vec<u8>) {
    let end = config.line_end();
    let inner = r#""message":"EngineCore died","type":"InternalServerError","param":null,"code":500"#;
    if config.errkind == 1 {
        out.extend_from_slice(b"event: error");
        out.extend_from_slice(end.as_bytes());
    }
    let data = match config.errkind {
        0 | 1 => format!("{{\"error\":{{{inner}}}}}"),
        _ => format!("{{\"object\":\"error\",{inner}}}"),
    };
    // Writing to a vector can't fail.
    write!(out, "data: {data}{end}{end}").ok();
}

/// Appends the event that says that the stream is over.
pub(crate) fn done(config: &Config, out: &mut Vec<u8>) {
    let end = config.line_end();
    // Writing to a vector can't fail.
    write!(out, "data: [DONE]{end}{end}").ok();
}

/// Appends a part of a body as it goes over the wire.
pub(crate) fn frame(config: &Config, gzip: Option<&mut Gzip>, plain: &[u8], out: &mut Vec<u8>) {
    let packed = gzip.map(|gzip| {
        let mut packed = Vec::new();
        gzip.part(plain, &mut packed);
        packed
    });
    chunk(config, packed.as_deref().unwrap_or(plain), out);
}

/// Appends the end of a body as it goes over the wire.
pub(crate) fn frame_end(config: &Config, gzip: Option<&mut Gzip>, out: &mut Vec<u8>) {
    if let Some(gzip) = gzip {
        let mut packed = Vec::new();
        gzip.end(&mut packed);
        chunk(config, &packed, out);
    }
    if config.framing == Framing::Chunked {
        out.extend_from_slice(if config.chunkext { b"0;last=1\r\n" } else { b"0\r\n" });
        if config.trailers {
            out.extend_from_slice(b"x-truth: told\r\n");
        }
        out.extend_from_slice(b"\r\n");
    }
}

fn chunk(config: &Config, bytes: &[u8], out: &mut Vec<u8>) {
    if config.framing != Framing::Chunked {
        out.extend_from_slice(bytes);
        return;
    }
    let extension = if config.chunkext { ";note=\"a;b\"" } else { "" };
    // Writing to a vector can't fail.
    write!(out, "{:x}{extension}\r\n", bytes.len()).ok();
    out.extend_from_slice(bytes);
    out.extend_from_slice(b"\r\n");
}
