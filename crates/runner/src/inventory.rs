//! What the machine is and has: facts for plans and records, and what its user should know before a run.

pub(crate) mod device_watch;
mod doctor;
mod models;
pub mod revisions;
mod tools;

use std::path::Path;
use std::time::Duration;

use isobench_schema::facts::{Device, Host};
use isobench_schema::ids::Digest;

pub use doctor::{Check, CheckStatus, doctor};
pub use models::{ReadConfigError, hub_cache, model_config};
use tools::{ask, versions};

/// How long a program may take to say its version. A container client waits for its service.
const PATIENCE: Duration = Duration::from_secs(20);

/// Returns the facts of this machine. What can't be read is absent.
///
/// `folders` are where runs and the cache are, or will be: the free disk is the least of theirs.
pub fn host(folders: &[&Path]) -> Host {
    let mut host = Host {
        fingerprint: String::new(),
        kernel: read_line("/proc/sys/kernel/osrelease"),
        processor: processor_model(),
        processors: usable_processors(),
        memory_mib: memory_mib(),
        disk_free_mib: folders.iter().filter_map(|folder| disk_free_mib(folder)).min(),
        devices: devices(),
        tools: versions(),
    };
    host.fingerprint = fingerprint(&host);
    host
}

/// Returns the digest of the facts that must be equal before numbers of two runs may be compared.
///
/// Free disk and tools don't count. Memory is rounded to GiB, because kernels keep a little more or less for themselves.
fn fingerprint(host: &Host) -> String {
    let memory_gib = host.memory_mib.map(|memory| (memory + 512) / 1024);
    let devices: Vec<_> = host.devices.iter().map(|device| (&device.name, device.memory_mib, &device.driver)).collect();
    let facts = serde_json::json!({
        "kernel": host.kernel,
        "processor": host.processor,
        "processors": host.processors,
        "memory_gib": memory_gib,
        "devices": devices,
        "governor": read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        "boost": read_line("/sys/devices/system/cpu/cpufreq/boost"),
        "smt": read_line("/sys/devices/system/cpu/smt/control"),
    });
    Digest::of(facts.to_string().as_bytes()).as_str().to_owned()
}

/// Returns the first line of a file of the kernel's, if there is one.
fn read_line(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let line = text.lines().next()?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}

/// Returns the value of `name` in a file of lines `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    let fields = text.lines().filter_map(|line| line.split_once(':'));
    fields.filter(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned()).next()
}

fn processor_model() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    // ARM machines have no model name there.
    field(&text, "model name").or_else(|| field(&text, "CPU part"))
}

/// Returns the number of processors that this process may run on, which a container or `taskset` may have limited.
fn usable_processors() -> u32 {
    match rustix::thread::sched_getaffinity(None) {
        Ok(set) => set.count(),
        Err(_) => std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1)),
    }
}

fn memory_mib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let kib: u64 = field(&text, "MemTotal")?.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024)
}

/// Returns the free disk for ordinary users, in MiB, where `folder` is or will be.
fn disk_free_mib(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    let stat = rustix::fs::statvfs(existing).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize) / (1024 * 1024))
}

fn devices() -> Vec<Device> {
    let query = ["--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"];
    ask("nvidia-smi", &query).map(|output| parse_devices(&output)).unwrap_or_default()
}

/// Parses lines such as `NVIDIA H100 80GB HBM3, 81559 MiB, 535.129.03`.
fn parse_devices(output: &str) -> Vec<Device> {
    let parse = |line: &str| {
        let mut fields = line.rsplitn(3, ',').map(str::trim);
        let (driver, memory, name) = (fields.next()?, fields.next()?, fields.next()?);
        let memory_mib = memory.strip_suffix("MiB")?.trim().parse().ok()?;
        Some(Device { name: name.to_owned(), memory_mib, driver: driver.to_owned() })
    };
    output.lines().filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_as_the_driver_prints_them() {
        let output = "NVIDIA H100 80GB HBM3, 81559 MiB, 535.129.03\nOdd, Name, 100 MiB, 1\nNo devices were found\n";
        let device = |name: &str, memory_mib, driver: &str| Device {
            name: name.to_owned(),
            memory_mib,
            driver: driver.to_owned(),
        };
        let expected = [device("NVIDIA H100 80GB HBM3", 81559, "535.129.03"), device("Odd, Name", 100, "1")];
        assert_eq!(parse_devices(output), expected);
    }

    #[test]
    fn fields_are_read_as_the_kernel_prints_them() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC: 9V74\nMemTotal:       24576000 kB\n";
        assert_eq!(field(text, "model name").as_deref(), Some("AMD EPYC: 9V74"));
        assert_eq!(field(text, "MemTotal").as_deref(), Some("24576000 kB"));
        assert_eq!(field(text, "other"), None);
    }

    #[test]
    fn the_fingerprint_is_of_the_machine_and_not_of_the_moment() {
        let host = host(&[Path::new("/")]);
        assert!(host.processors > 0 && host.kernel.is_some() && host.memory_mib > Some(0));
        assert!(host.tools.contains_key("git") && host.tools.contains_key("python3"));
        let later = Host { disk_free_mib: Some(1), tools: std::collections::BTreeMap::new(), ..host.clone() };
        assert_eq!(fingerprint(&later), host.fingerprint);
        let other = Host { processors: host.processors + 1, ..host.clone() };
        assert_ne!(fingerprint(&other), host.fingerprint);
    }

    #[test]
    fn the_free_disk_of_a_folder_yet_to_be_made_is_that_of_its_parent() {
        assert_eq!(disk_free_mib(Path::new("/no/such/folder")).is_some(), disk_free_mib(Path::new("/")).is_some());
    }
}
