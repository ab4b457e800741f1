//! What result files of earlier benchmark systems say: read, checked, grouped as their reports did, and followed on the
//! way to a verdict. Nothing here measures or judges: the records hold too little for that.

mod category;
mod command;
mod compare;
mod coverage;
mod equal;
mod export;
mod fields;
mod flags;
mod lines;
mod lost;
mod metrics;
mod read;
mod retry;
mod rules;
mod shapes;
mod summary;
pub mod tables;

pub use category::{category, taxonomy};
pub use coverage::{Explained, coverage};
pub use equal::{mark_equal, mark_several};
pub use export::{ExportInput, ExportedFile, export};
pub use read::{LARGEST_BYTES, LegacyFile, ReadLegacyError, read, shape};
pub use rules::{AgentRun, hard_class, is_hard_success, is_target_right, quadrant};
pub use summary::report;
