//! Pages from judgements, plans, assessments and legacy evidence: terminal, Markdown, JSON, CSV, one self-contained HTML file, and the live view.
//!
//! Every function here is pure, from data to text. Numbers are formatted once, in [`view`]; the renderers only place them.

pub mod csv;
pub mod explain;
pub mod funnel;
pub mod guide;
pub mod html;
pub(crate) mod images;
pub mod json;
mod legacy;
pub mod lint;
pub mod live;
pub mod load;
pub mod markdown;
pub(crate) mod noise;
pub(crate) mod number;
pub mod svg;
pub mod terminal;
pub(crate) mod text;
pub use text::{clean, clean_lines};
pub mod view;
pub mod words;
