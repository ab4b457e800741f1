//! Logs as text: segments of a stream of bytes, and lines without what terminals and loggers add to them.

mod clean;
mod segments;

pub use clean::{clean, without_prefixes};
pub use segments::{End, LONGEST, Segment, Segments};
