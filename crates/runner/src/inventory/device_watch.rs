//! What the driver says of the devices while a window is measured.
//!
//! One process of the driver's tool prints a line for each device and second, and a thread of its own reads it: nothing waits
//! for it, and the client's thread has nothing to do with it. What the bits of the reasons mean is told by the driver's
//! header `nvml.h` (`nvmlClocksEventReason*`, before R535 `nvmlClocksThrottleReason*`).

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use isobench_schema::facts::Host;
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::outcome::DeviceClocks;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::command::{clean_environment, find_program};
use crate::host::process_table::RUN_MARKER;

/// The driver's tool.
const TOOL: &str = "nvidia-smi";
/// The old names of the fields, which newer drivers still know.
const QUERY: [&str; 3] = [
    "--query-gpu=clocks_throttle_reasons.active,clocks.sm,temperature.gpu",
    "--format=csv,noheader,nounits",
    "--loop-ms=1000",
];

/// Slow-downs that invalidate a measurement, by the bit of their reason.
const SLOWED: [(u64, &str); 4] = [
    (0x08, "hardware slow-down"),
    (0x20, "software thermal slow-down"),
    (0x40, "hardware thermal slow-down"),
    (0x80, "hardware power brake"),
];
/// Clocks that are held at the power cap.
const POWER_CAP: u64 = 0x04;

/// The devices under watch.
pub(crate) struct DeviceWatch {
    child: Child,
    reader: Option<JoinHandle<DeviceClocks>>,
}

impl DeviceWatch {
    /// Starts to look at the devices of a machine that has some and whose driver's tool is there. The process is marked as
    /// the run's.
    pub(crate) fn start(host: &Host, marker: &str, folder: &Path) -> Option<Self> {
        if host.devices.is_empty() {
            return None;
        }
        Self::start_tool(&find_program(TOOL)?, marker, folder)
    }

    fn start_tool(program: &Path, marker: &str, folder: &Path) -> Option<Self> {
        let mut command = Command::new(program);
        command.args(QUERY).env_clear().envs(clean_environment(folder, folder)).env(RUN_MARKER, marker);
        command.current_dir(folder).process_group(0);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().ok()?;
        let output = child.stdout.take()?;
        let reader = thread::Builder::new().name("device-watch".to_owned()).spawn(move || read(output)).ok();
        Some(Self { child, reader })
    }

    /// Stops looking, and returns what was seen.
    pub(crate) fn stop(mut self) -> Option<DeviceClocks> {
        self.end();
        self.reader.take()?.join().ok()
    }

    /// Ends the tool and what it has started, so that its output ends too.
    fn end(&mut self) {
        // It may have ended by itself.
        let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        let _ = self.child.wait();
    }
}

impl Drop for DeviceWatch {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            self.end();
            // What it has seen is of a launch that failed.
            drop(reader.join());
        }
    }
}

fn read(output: ChildStdout) -> DeviceClocks {
    let mut seen = Seen::default();
    for line in BufReader::new(output).lines().map_while(Result::ok) {
        seen.take(&line);
    }
    seen.clocks()
}

/// What was seen so far.
#[derive(Debug, Default)]
struct Seen {
    samples: u32,
    slowed: u32,
    power_capped: u32,
    reasons: BTreeSet<&'static str>,
    clocks_mhz: Option<(u32, u32)>,
    hottest_celsius: Option<u32>,
}

impl Seen {
    /// Takes a line such as `0x0000000000000004, 1980, 65`. A field that the device doesn't report is none; a line without
    /// reasons is no look at it.
    fn take(&mut self, line: &str) {
        let mut fields = line.split(',').map(str::trim);
        let reasons = fields.next().and_then(|field| u64::from_str_radix(field.strip_prefix("0x")?, 16).ok());
        let Some(reasons) = reasons else { return };
        let mut number = || fields.next().and_then(|field| field.parse::<u32>().ok());
        let (clock, celsius) = (number(), number());
        let slowed: Vec<&'static str> =
            SLOWED.iter().filter(|(bit, _)| reasons & bit != 0).map(|(_, name)| *name).collect();
        self.samples += 1;
        self.slowed += u32::from(!slowed.is_empty());
        self.reasons.extend(slowed);
        self.power_capped += u32::from(reasons & POWER_CAP != 0);
        if let Some(clock) = clock {
            let (low, high) = self.clocks_mhz.unwrap_or((clock, clock));
            self.clocks_mhz = Some((low.min(clock), high.max(clock)));
        }
        self.hottest_celsius = self.hottest_celsius.max(celsius);
    }

    fn clocks(&self) -> DeviceClocks {
        DeviceClocks {
            samples: self.samples,
            slowed: self.slowed,
            power_capped: self.power_capped,
            reasons: self.reasons.iter().map(|reason| (*reason).to_owned()).collect(),
            lowest_mhz: self.clocks_mhz.map(|(low, _)| low),
            highest_mhz: self.clocks_mhz.map(|(_, high)| high),
            hottest_celsius: self.hottest_celsius,
        }
    }
}

/// Returns the incident of a launch whose devices were held at their power cap: to be known, and no fault of anybody.
pub(crate) fn power_capped(clocks: &DeviceClocks) -> Option<Failure> {
    let DeviceClocks { samples, power_capped, lowest_mhz, highest_mhz, .. } = clocks;
    let range = lowest_mhz.zip(*highest_mhz).map(|(low, high)| format!(", at {low} to {high} MHz")).unwrap_or_default();
    let message = format!("the devices' clocks were held at the power cap in {power_capped} of {samples} looks{range}");
    (*power_capped > 0).then(|| Failure::new(FailureStage::Workload, FailureClass::DevicePowerCapped, message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::time::{Duration, Instant};

    fn seen(lines: &[&str]) -> DeviceClocks {
        let mut seen = Seen::default();
        for line in lines {
            seen.take(line);
        }
        seen.clocks()
    }

    #[test]
    fn reasons_are_told_apart() {
        let found = seen(&[
            "0x0000000000000000, 1980, 60",
            "0x0000000000000004, 1700, 65",
            "0x0000000000000048, 900, 91",
            "[N/A], 1980, 60",
            "No devices were found",
            "0x0000000000000001, [N/A], [N/A]",
        ]);
        assert_eq!((found.samples, found.slowed, found.power_capped), (4, 1, 1));
        assert_eq!(found.reasons, ["hardware slow-down", "hardware thermal slow-down"]);
        assert_eq!((found.lowest_mhz, found.highest_mhz, found.hottest_celsius), (Some(900), Some(1980), Some(91)));
    }

    #[test]
    fn a_power_cap_is_an_incident_and_no_fault() {
        let found = seen(&["0x4, 1700, 65", "0x0, 1980, 60"]);
        let incident = power_capped(&found).unwrap();
        let expected = "the devices' clocks were held at the power cap in 1 of 2 looks, at 1700 to 1980 MHz";
        assert_eq!((incident.class, incident.message.as_str()), (FailureClass::DevicePowerCapped, expected));
        assert_eq!(power_capped(&seen(&["0x8, 900, 90"])), None);
    }

    #[test]
    fn what_the_tool_prints_until_it_is_stopped_is_seen_and_nothing_of_it_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let (tool, printed) = (folder.path().join("nvidia-smi"), folder.path().join("printed"));
        let script = format!(
            "#!/bin/sh\necho '0x0000000000000040, 900, 92'\necho '0x0000000000000004, 1500, 80'\ntouch {}\nsleep 600\n",
            printed.display()
        );
        fs::write(&tool, script).unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        let watch = DeviceWatch::start_tool(&tool, "device-watch-test", folder.path()).unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        while !printed.exists() && Instant::now() < deadline {
            thread::yield_now();
        }
        let begun = Instant::now();
        let found = watch.stop().unwrap();
        assert_eq!((found.samples, found.slowed, found.power_capped), (2, 1, 1));
        assert!(begun.elapsed() < Duration::from_secs(60), "the tool's own child would sleep for ten minutes");
    }

    #[test]
    fn a_machine_without_devices_is_not_looked_at() {
        let folder = tempfile::tempdir().unwrap();
        assert!(DeviceWatch::start(&Host::default(), "device-watch-test", folder.path()).is_none());
    }
}
