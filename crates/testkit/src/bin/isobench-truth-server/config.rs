//! The settings: speed, and faults by name.

/// A text that is no setting.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InvalidSettingError {
    #[error("there is no setting `{key}`; the nearest is `{nearest}`")]
    Unknown { key: String, nearest: &'static str },
    #[error("the setting `{key}` can't be `{value}`")]
    Value { key: String, value: String },
}

/// A type of settings.
pub(crate) trait Setting: Sized {
    /// Reads a value; `None` if the text is none.
    fn read(text: &str) -> Option<Self>;
    /// Returns the value as it is read.
    fn show(&self) -> String;
}

impl Setting for u64 {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for i64 {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Setting for bool {
    fn read(text: &str) -> Option<Self> {
        match text {
            "0" => Some(false),
            "1" => Some(true),
            _ => None,
        }
    }
    fn show(&self) -> String {
        u8::from(*self).to_string()
    }
}

impl Setting for String {
    fn read(text: &str) -> Option<Self> {
        // It lands in heads and in JSON as it is.
        text.chars().all(|c| !c.is_control() && c != '"' && c != '\\').then(|| text.to_owned())
    }
    fn show(&self) -> String {
        self.clone()
    }
}

/// What a gauge of `/metrics` shows: `None` is what the server's own state says.
impl Setting for Option<f64> {
    fn read(text: &str) -> Option<Self> {
        if text == "real" {
            return Some(None);
        }
        text.parse().ok().filter(|value: &f64| value.is_finite()).map(Some)
    }
    fn show(&self) -> String {
        self.map_or_else(|| "real".to_owned(), |value| value.to_string())
    }
}

/// How the end of an answer's body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Chunked,
    Length,
    Close,
}

impl Setting for Framing {
    fn read(text: &str) -> Option<Self> {
        match text {
            "chunked" => Some(Self::Chunked),
            "length" => Some(Self::Length),
            "close" => Some(Self::Close),
            _ => None,
        }
    }
    fn show(&self) -> String {
        match self {
            Self::Chunked => "chunked",
            Self::Length => "length",
            Self::Close => "close",
        }
        .to_owned()
    }
}

macro_rules! settings {
    ($(#[doc = $meaning:literal] $key:ident: $type:ty = $default:literal;)*) => {
        /// All settings.
        #[derive(Clone, Debug)]
        pub(crate) struct Config {
            $(#[doc = $meaning] pub(crate) $key: $type,)*
        }

        /// Each setting's key, default and meaning.
        pub(crate) const KEYS: &[(&str, &str, &str)] = &[$((stringify!($key), $default, $meaning),)*];

        impl Config {
            /// Returns what holds if nothing is said.
            pub(crate) fn new() -> Self {
                Self { $($key: <$type as Setting>::read($default).expect("each default can be read"),)* }
            }

            /// Sets one setting.
            pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<(), InvalidSettingError> {
                let wrong = || InvalidSettingError::Value { key: key.to_owned(), value: value.to_owned() };
                match key {
                    $(stringify!($key) => self.$key = Setting::read(value).ok_or_else(wrong)?,)*
                    _ => return Err(unknown(key)),
                }
                Ok(())
            }

            /// Returns all settings, one a line.
            pub(crate) fn show(&self) -> String {
                let mut lines = String::new();
                $(
                    lines.push_str(stringify!($key));
                    lines.push('=');
                    lines.push_str(&self.$key.show());
                    lines.push('\n');
                )*
                lines
            }
        }
    };
}

settings! {
    /// Microseconds from a request's last byte to its first token.
    ttft_us: u64 = "0";
    /// Microseconds from one token to the next; with 0, streams take turns as fast as they can.
    itl_us: u64 = "0";
    /// Microseconds that each stream in service adds to every stream's `itl_us`.
    itl_per_active_us: u64 = "0";
    /// Streams served at once, the others wait in order; 0 is any number.
    slots: u64 = "0";
    /// Tokens of a request that doesn't say how many.
    deftok: u64 = "128";
    /// Events in one write; the write leaves when its first event is due.
    coalesce: u64 = "1";
    /// Tokens in one event.
    tpc: u64 = "1";
    /// Cuts each write in two, within a character where it can, the second part so many microseconds later; 0 doesn't.
    split_us: u64 = "0";
    /// Sends a stream so many bytes at a time; 0 is whole writes.
    split_bytes: u64 = "0";
    /// The chat's event with the role: 0 none, 1 with the first token, 2 as soon as the request is read.
    role: u64 = "1";
    /// An event with an empty text as soon as the request is read.
    empty: bool = "0";
    /// So many first tokens of a chat are reasoning.
    reason: u64 = "0";
    /// The field of reasoning: 0 `reasoning_content`, 1 `reasoning`, 2 both.
    reason_field: u64 = "0";
    /// So many tokens of a chat, after the reasoning, are arguments of a tool call.
    tool: u64 = "0";
    /// Tokens are characters of two to four bytes instead of words.
    utf8: bool = "0";
    /// Token ids in each event though nobody asked.
    ids: bool = "0";
    /// The first token's event has so many bytes of padding in a field that nobody knows.
    huge: u64 = "0";
    /// Choices in each stream; the second repeats the first in events of its own.
    choices: u64 = "1";
    /// Lines of `data:` in each token's event, up to 5.
    lines: u64 = "1";
    /// A comment before each token's event.
    ka: bool = "0";
    /// Lines end with CR LF.
    crlf: bool = "0";
    /// Lines end with CR.
    cr: bool = "0";
    /// An event with an error once so many tokens are out, and then the end; 0 never.
    errmid: u64 = "0";
    /// That event: 0 `{"error":{..}}`, 1 the same with `event: error`, 2 `{"object":"error",..}`.
    errkind: u64 = "0";
    /// Closes the connection once so many tokens are out; 0 never.
    abort: u64 = "0";
    /// Resets the connection once so many tokens are out; 0 never.
    rst: u64 = "0";
    /// Sends nothing more once so many tokens are out; 0 never.
    stall: u64 = "0";
    /// No `[DONE]`.
    nodone: bool = "0";
    /// No finish reason.
    nofinish: bool = "0";
    /// The finish reason.
    finish: String = "length";
    /// No usage though asked.
    nousage: bool = "0";
    /// The last usage claims so many tokens more than were sent.
    wrongusage: i64 = "0";
    /// Usage in each event though nobody asked.
    contusage: bool = "0";
    /// So many tokens fewer than asked, but at least one.
    short: u64 = "0";
    /// An event with a token after the end.
    after_done: bool = "0";
    /// Each so-manieth request is refused; 0 none.
    http_every: u64 = "0";
    /// The status of refused requests: 400, 429, 500 or 503.
    http_status: u64 = "500";
    /// The content type of streams.
    ctype: String = "text/event-stream; charset=utf-8";
    /// Streams are sent as gzip.
    gzip: bool = "0";
    /// How a stream's end is told: `chunked`, `length` or `close`.
    framing: Framing = "chunked";
    /// Chunks have extensions.
    chunkext: bool = "0";
    /// A trailer follows the last chunk.
    trailers: bool = "0";
    /// Closes the connection after each so-manieth answer on it without having said so; 0 never.
    close_idle: u64 = "0";
    /// Microseconds from that answer to the close.
    close_idle_us: u64 = "0";
    /// Microseconds between a stream's status line and the rest of its head.
    slow_head_us: u64 = "0";
    /// A stream's head leaves with its first token and not as soon as the request is read.
    late_head: bool = "0";
    /// Tokens that the key-value cache holds, of which `/metrics` tells the use.
    kv_tokens: u64 = "1000000";
    /// Overrides `vllm:num_requests_running`; `real` is the server's own state.
    running: Option<f64> = "real";
    /// Overrides `vllm:num_requests_waiting`.
    waiting: Option<f64> = "real";
    /// Overrides `vllm:kv_cache_usage_perc`, a share of 1.
    kv_usage: Option<f64> = "real";
    /// Overrides `vllm:prefix_cache_queries_total`.
    prefix_queries: Option<f64> = "real";
    /// Overrides `vllm:prefix_cache_hits_total`.
    prefix_hits: Option<f64> = "real";
    /// Overrides `vllm:num_preemptions_total`.
    preemptions: Option<f64> = "real";
}

fn unknown(key: &str) -> InvalidSettingError {
    let likeness = |name: &str| strsim::jaro_winkler(name, key);
    let names = KEYS.iter().map(|(name, _, _)| *name);
    let nearest = names.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or("reset");
    InvalidSettingError::Unknown { key: key.to_owned(), nearest }
}

/// Returns the pairs of a text `key=value&key=value`, with `%xx` decoded. A key alone is 1.
pub(crate) fn pairs(text: &str) -> impl Iterator<Item = (String, String)> {
    text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, "1"));
        (decode(key), decode(value))
    })
}

fn decode(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        let hex = (first == b'%').then(|| after.split_at_checked(2)).flatten();
        let byte = hex.and_then(|(hex, _)| u8::from_str_radix(str::from_utf8(hex).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(first));
        rest = match (byte, hex) {
            (Some(_), Some((_, after))) => after,
            _ => after,
        };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read_back_as_they_are_shown() {
        let mut config = Config::new();
        for (key, value) in pairs("ttft_us=50000&finish=abort&framing=length&wrongusage=-3&kv_usage=0.5&crlf") {
            config.set(&key, &value).unwrap();
        }
        let mut again = Config::new();
        for line in config.show().lines() {
            let (key, value) = line.split_once('=').unwrap();
            again.set(key, value).unwrap();
        }
        assert_eq!(again.show(), config.show());
        assert_eq!((again.ttft_us, again.wrongusage, again.kv_usage, again.crlf), (50_000, -3, Some(0.5), true));
    }

    #[test]
    fn what_is_no_setting_is_refused_with_the_nearest() {
        let mut config = Config::new();
        let unknown = config.set("tft_us", "1").unwrap_err();
        assert_eq!(unknown.to_string(), "there is no setting `tft_us`; the nearest is `ttft_us`");
        assert_eq!(config.set("abort", "x").unwrap_err().to_string(), "the setting `abort` can't be `x`");
        assert_eq!(config.set("framing", "none").unwrap_err().to_string(), "the setting `framing` can't be `none`");
    }

    #[test]
    fn percent_signs_are_decoded() {
        assert_eq!(
            pairs("ctype=text%2Fplain%3b%20a&b%").collect::<Vec<_>>(),
            [("ctype".to_owned(), "text/plain; a".to_owned()), ("b%".to_owned(), "1".to_owned())]
        );
    }
}
