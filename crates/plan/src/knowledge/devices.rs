//! The table `knowledge/devices.toml`.

use serde::Deserialize;

use super::table;

/// Whose programming interface a device has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Vendor {
    /// NVIDIA: CUDA.
    Nvidia,
    /// AMD: `ROCm`.
    Amd,
    /// None: the processor itself.
    Cpu,
}

/// One kind of accelerator.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceRow {
    /// Its short name here: `h100-sxm`.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// The names that its driver reports.
    pub driver_names: Vec<String>,
    /// Further names that people use.
    pub aliases: Vec<String>,
    /// Whose it is.
    pub vendor: Vendor,
    /// Its nominal memory in GB (10^9 bytes).
    pub memory_gb: f64,
    /// The memory in GiB that a process sees, if known.
    #[serde(default)]
    pub usable_gib: Option<f64>,
    /// Its memory's bandwidth in GB per second.
    pub bandwidth_gb_per_s: f64,
    /// Its speed at bfloat16 (half precision where it has none) in 10^12 operations per second, without sparsity.
    pub bf16_tflops: f64,
    /// Its speed at 8-bit floating point; absent: it has none.
    #[serde(default)]
    pub fp8_tflops: Option<f64>,
    /// Its compute capability (NVIDIA) or architecture.
    pub compute_capability: String,
    /// What one costs in US dollars an hour, if a price is known.
    #[serde(default)]
    pub price_usd_per_hour: Option<f64>,
    /// Whose price it is.
    #[serde(default)]
    pub price_source: Option<String>,
    /// The day of the price.
    #[serde(default)]
    pub price_date: Option<String>,
    /// Where the row comes from.
    pub source: String,
}

impl DeviceRow {
    /// Returns the compute capability as a pair of numbers, for NVIDIA's devices.
    pub fn capability(&self) -> Option<(u32, u32)> {
        match self.vendor {
            Vendor::Nvidia => {
                let (major, minor) = self.compute_capability.split_once('.')?;
                Some((major.parse().ok()?, minor.parse().ok()?))
            }
            Vendor::Amd | Vendor::Cpu => None,
        }
    }
}

/// The table's rows.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Devices {
    /// The devices.
    pub device: Vec<DeviceRow>,
}

impl Devices {
    pub(super) fn embedded() -> Self {
        table("devices.toml", include_str!("../../../../knowledge/devices.toml"))
    }

    /// Returns the device of a short name, a driver's name or another name, whatever its case.
    pub fn find(&self, name: &str) -> Option<&DeviceRow> {
        let name = name.trim();
        let is = |known: &String| known.eq_ignore_ascii_case(name);
        let by_id = self.device.iter().find(|device| is(&device.id) || is(&device.name));
        by_id
            .or_else(|| self.device.iter().find(|device| device.driver_names.iter().any(is)))
            .or_else(|| self.device.iter().find(|device| device.aliases.iter().any(is)))
    }

    /// Returns the short names, for hints.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.device.iter().map(|device| device.id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_device_is_found_by_every_name_it_has() {
        let devices = Devices::embedded();
        for (name, id) in [
            ("NVIDIA H100 80GB HBM3", "h100-sxm"),
            ("h100", "h100-sxm"),
            ("NVIDIA H100 PCIe", "h100-pcie"),
            ("NVIDIA H200", "h200"),
            ("Tesla T4", "t4"),
            ("A100-80GB", "a100-80gb-sxm"),
            ("CPU", "cpu"),
        ] {
            assert_eq!(devices.find(name).map(|device| device.id.as_str()), Some(id), "{name}");
        }
        assert_eq!(devices.find("NVIDIA H900"), None);
    }

    #[test]
    fn no_name_means_two_devices() {
        let devices = Devices::embedded();
        let mut seen = BTreeSet::new();
        for device in &devices.device {
            let own = [&device.id, &device.name].into_iter().chain(&device.driver_names).chain(&device.aliases);
            let own: BTreeSet<String> = own.map(|name| name.to_lowercase()).collect();
            for name in own {
                assert!(seen.insert(name.clone()), "{name} is the name of two devices");
            }
        }
    }

    #[test]
    fn every_number_is_plausible_and_every_price_has_its_source() {
        for device in Devices::embedded().device {
            let id = &device.id;
            assert!(device.memory_gb > 0.0 && device.bandwidth_gb_per_s > 0.0 && device.bf16_tflops > 0.0, "{id}");
            // A GiB is 7.4 % more than a GB; makers name the size in GiB or GB, less what the firmware keeps.
            assert!(device.usable_gib.is_none_or(|gib| (0.85..=1.01).contains(&(gib / device.memory_gb))), "{id}");
            assert!(device.fp8_tflops.is_none_or(|fp8| fp8 > device.bf16_tflops), "{id}");
            assert_eq!(device.price_usd_per_hour.is_some(), device.price_source.is_some(), "{id}");
            assert_eq!(device.price_usd_per_hour.is_some(), device.price_date.is_some(), "{id}");
            assert_eq!(device.capability().is_some(), device.vendor == Vendor::Nvidia, "{id}");
            assert!(!device.source.is_empty(), "{id}");
        }
    }
}
