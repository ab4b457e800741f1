//! HTTP/1.1 answers: head, framing and body, pushed in as bytes and pulled out in pieces.

pub mod chunked;
pub mod head;
pub mod response;

/// An answer that breaks the protocol, as a lower-case fragment that shows the bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The head can't be read.
    #[error("the answer's head can't be read ({reason}): {shown}")]
    Head {
        /// What is wrong with it.
        reason: String,
        /// Its first bytes.
        shown: String,
    },
    /// The head is too long.
    #[error("the answer's head is longer than {} bytes", head::LONGEST_HEAD)]
    HeadTooLong,
    /// It is no HTTP but TLS.
    #[error("the server speaks TLS here: begin its URL with `https://`")]
    Tls,
    /// The head announces a body that can't be read.
    #[error("the answer's header `{name}: {value}` is not supported: {rule}")]
    Header {
        /// The header's name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What it should be.
        rule: &'static str,
    },
    /// The chunked encoding is broken.
    #[error("the chunked encoding is broken: {reason}")]
    Chunk {
        /// What is wrong, with the byte.
        reason: String,
    },
}
