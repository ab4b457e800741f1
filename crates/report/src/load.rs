//! Pages of one load: terminal, HTML, CSV, the live view, and how a command line was understood.

mod against;
mod checks;
pub mod csv;
pub mod flags;
pub mod html;
pub mod live;
mod rows;
mod sent;
mod server;
pub mod terminal;

pub use rows::{MetricRow, metric_rows};
