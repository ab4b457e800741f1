//! On what and at what time an engine runs, and what it does then.

use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Moment;

use crate::knowledge::Architectures;
use crate::knowledge::architectures::EngineFeature;
use crate::knowledge::devices::{DeviceRow, Vendor};

/// An engine at a moment, on a kind of device.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// The engine.
    pub engine: EngineKind,
    /// The revision's place in time; absent: the newest.
    pub moment: Option<&'a Moment>,
    /// The device.
    pub device: &'a DeviceRow,
    /// What engines can do when.
    pub architectures: &'a Architectures,
}

impl Place<'_> {
    /// Returns whether the engine has a feature at the moment.
    pub(super) fn has(&self, feature: EngineFeature) -> bool {
        let features = self.architectures.features();
        features.iter().filter(|row| row.engine == self.engine && row.id == feature).any(|row| match self.moment {
            Some(moment) => row.holds(moment),
            None => row.until.is_none(),
        })
    }

    /// Returns the sequences that the engine runs at once without an option.
    pub(super) fn default_sequences(&self) -> u32 {
        /// The memory in GB above which vLLM takes more sequences: 70 GiB.
        const LARGE_GB: f64 = 75.0;
        let large = self.device.memory_gb >= LARGE_GB
            && self.device.vendor == Vendor::Nvidia
            && !self.device.id.starts_with("a100");
        if large && self.has(EngineFeature::Sequences1024) { 1024 } else { 256 }
    }

    /// Returns the share of a device's memory that the engine takes without an option.
    pub(super) fn default_memory_share() -> f64 {
        0.9
    }
}
