//! The table `knowledge/hardware.toml`: which files run on one kind of hardware only.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;
use serde::Deserialize;

use super::devices::Vendor;
use super::{table, within};

/// One kind of hardware, and how a change for it is known.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hardware {
    /// Its name for people.
    pub name: String,
    /// The engine; absent: all.
    pub engine: Option<EngineKind>,
    /// Whose devices it is, among those that can be planned for.
    pub vendor: Option<Vendor>,
    /// The lowest compute capability that it is, for generations of NVIDIA's devices.
    pub capability: Option<(u32, u32)>,
    /// Patterns of files that run on nothing else.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Patterns of subjects that say so.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// Why.
    pub because: String,
    /// The first moment at which it holds; absent: from the beginning.
    pub since: Option<Moment>,
    /// The first moment at which it no longer holds; absent: it still does.
    pub until: Option<Moment>,
    /// Where this is known from.
    pub source: String,
}

impl Hardware {
    /// Returns whether it holds at a moment.
    pub fn holds(&self, moment: &Moment) -> bool {
        within(self.since.as_ref(), self.until.as_ref(), moment)
    }
}

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HardwareTable {
    /// The kinds.
    pub hardware: Vec<Hardware>,
}

impl HardwareTable {
    pub(super) fn embedded() -> Self {
        table("hardware.toml", include_str!("../../../../knowledge/hardware.toml"))
    }
}
