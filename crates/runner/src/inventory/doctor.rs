//! What this machine lacks, what that forbids, and how to get it.

use std::path::Path;

use isobench_schema::container::DaemonFacts;
use isobench_schema::facts::Host;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;

use super::tools::ask;
use super::{disk_free_mib, host, read_line};
use crate::container::{self, Daemon, Swept};

/// The oldest git that isobench's options work with.
const OLDEST_GIT: (u32, u32) = (2, 25);
/// Open files that an engine with its client needs.
const OPEN_FILES: u64 = 4096;
/// Processes and threads that an engine needs.
const PROCESSES: u64 = 4096;
/// Shared memory that engines of several processes need, in MiB.
const SHARED_MEMORY_MIB: u64 = 1024;
/// Free disk below which a run is likely to end early, in MiB.
const DISK_MIB: u64 = 1024;
/// Free disk that an environment of a large engine needs, in MiB.
const LARGE_DISK_MIB: u64 = 20 * 1024;
/// The coarsest clock that request times can be taken with, in nanoseconds.
const CLOCK_NS: i64 = 1_000;

/// How a check came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckStatus {
    /// All is well.
    Ok,
    /// Something works less well, or some tasks can't run.
    Warning,
    /// Something that every run needs isn't there.
    Missing,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How it came out.
    pub status: CheckStatus,
    /// What was found.
    pub found: String,
    /// What the state of things forbids or spoils, unless all is well.
    pub forbids: Option<&'static str>,
    /// How to change it, unless all is well.
    pub advice: Option<&'static str>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, status: CheckStatus::Ok, found: found.into(), forbids: None, advice: None }
    }

    fn bad(self, status: CheckStatus, forbids: &'static str, advice: &'static str) -> Self {
        Self { status, forbids: Some(forbids), advice: Some(advice), ..self }
    }

    /// A check that came out well only if `good` says so.
    fn warn_unless(self, good: Good, forbids: &'static str, advice: &'static str) -> Self {
        match good {
            Good::Yes => self,
            Good::No => self.bad(CheckStatus::Warning, forbids, advice),
        }
    }
}

/// Whether what was found is good enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Good {
    Yes,
    No,
}

impl From<bool> for Good {
    fn from(good: bool) -> Self {
        if good { Self::Yes } else { Self::No }
    }
}

/// Looks at everything that runs depend on. `cache` and `runs` are the folders for environments and records.
pub fn doctor(cache: &Path, runs: &Path) -> Vec<Check> {
    let host = host(&[cache, runs]);
    let [daemon, left] = containers();
    vec![
        git(&host),
        python(&host),
        uv(&host),
        daemon,
        left,
        devices(&host),
        disk("disk of the cache", cache),
        disk("disk of the runs", runs),
        clock(),
        limit("open files", Resource::Nofile, OPEN_FILES, "`ulimit -n`"),
        limit("processes", Resource::Nproc, PROCESSES, "`ulimit -u`"),
        core_dumps(),
        shared_memory(),
        cgroups(),
        load(&host),
        frequency(),
    ]
}

fn git(host: &Host) -> Check {
    const FORBIDS: &str = "every run: revisions are taken from git";
    const ADVICE: &str = "install git 2.25 or newer with the system's package manager";
    let Some(version) = host.tools.get("git") else {
        return Check::ok("git", "not found").bad(CheckStatus::Missing, FORBIDS, ADVICE);
    };
    let check = Check::ok("git", version);
    if parse_version(version) < Some(OLDEST_GIT) {
        return check.bad(CheckStatus::Missing, FORBIDS, ADVICE);
    }
    check
}

fn python(host: &Host) -> Check {
    let Some(version) = host.tools.get("python3") else {
        return Check::ok("python3", "not found").bad(
            CheckStatus::Missing,
            "engines that are Python programs, the demo among them",
            "install python3 with the system's package manager",
        );
    };
    let has_venv = ask("python3", &["-I", "-c", "import venv, ensurepip"]).is_some();
    let found = if has_venv { version.clone() } else { format!("{version}, without venv and pip") };
    Check::ok("python3", found).warn_unless(
        (has_venv || host.tools.contains_key("uv")).into(),
        "environments with packages",
        "install python3-venv with the system's package manager, or install uv",
    )
}

fn uv(host: &Host) -> Check {
    let found = host.tools.get("uv").map_or("not found", String::as_str);
    Check::ok("uv", found).warn_unless(
        host.tools.contains_key("uv").into(),
        "tasks that override what packages ask for, such as vLLM on a CPU; other installs are slower with pip",
        "install uv, for example with `python3 -m pip install uv`",
    )
}

/// Looks at the daemon of containers, and ends what earlier runs have left of them.
fn containers() -> [Check; 2] {
    let looked = container::ask(async {
        let daemon = Daemon::connect().await?;
        let facts = daemon.facts().await?;
        let swept = container::sweep(&daemon, None).await;
        Ok((format!("{} it listens at {}", in_words(&facts), daemon.socket().display()), swept))
    });
    let is_root = rustix::process::geteuid().is_root();
    let (found, good, left) = match looked {
        Ok((found, swept)) => {
            let user = if is_root { "" } else { "; this user may not be let into a container's network" };
            (
                format!("{found}{user}"),
                is_root,
                swept.map_or_else(|error| error.to_string(), |swept| in_words_swept(&swept)),
            )
        }
        Err(error) => (error.to_string(), false, "none that can be seen".to_owned()),
    };
    let daemon = Check::ok("containers", found).warn_unless(
        good.into(),
        "isolation by containers; untrusted patches run as bare processes, if that is allowed",
        "install docker or podman, start its service, name its socket with `DOCKER_HOST=unix://PATH`, and run isobench as root",
    );
    [daemon, Check::ok("left containers", left)]
}

fn in_words(facts: &DaemonFacts) -> String {
    let DaemonFacts { engine, version, api, .. } = facts;
    let unknown = || "unknown".to_owned();
    let storage = facts.storage_driver.clone().unwrap_or_else(unknown);
    let groups = facts.cgroup_version.clone().unwrap_or_else(unknown);
    let free = match (&facts.root, facts.root_free_mib) {
        (Some(root), Some(free)) => format!("{free} MiB free at {root}"),
        (Some(root), None) => format!("images at {root}"),
        (None, _) => "images at an unknown place".to_owned(),
    };
    let runtimes = facts.runtimes.join(" ");
    format!("{engine} {version}, API {api}, control groups {groups}, {storage}, runtimes {runtimes}, {free};")
}

fn in_words_swept(swept: &[Swept]) -> String {
    let one = |swept: &Swept| format!("{} ({})", swept.id.chars().take(12).collect::<String>(), swept.why);
    match swept {
        [] => "none".to_owned(),
        some => format!("ended: {}", some.iter().map(one).collect::<Vec<_>>().join(", ")),
    }
}

fn devices(host: &Host) -> Check {
    let names: Vec<String> = host
        .devices
        .iter()
        .map(|device| format!("{} with {} MiB, driver {}", device.name, device.memory_mib, device.driver))
        .collect();
    let found = if names.is_empty() { "none that `nvidia-smi` lists".to_owned() } else { names.join("; ") };
    Check::ok("devices", found).warn_unless(
        (!names.is_empty()).into(),
        "tasks that need an accelerator; those for a CPU run",
        "on a machine with one, install its driver so that `nvidia-smi` works",
    )
}

fn disk(name: &'static str, folder: &Path) -> Check {
    let free = disk_free_mib(folder);
    let found = free.map_or_else(|| "unknown".to_owned(), |free| format!("{free} MiB free at {}", folder.display()));
    let check = Check::ok(name, found);
    if free < Some(DISK_MIB) {
        let advice = "free at least 1 GiB, or name a folder on another disk";
        return check.bad(CheckStatus::Missing, "every run: a full disk stops it", advice);
    }
    check.warn_unless(
        (free >= Some(LARGE_DISK_MIB)).into(),
        "environments of large engines, which take 6 GiB and more each",
        "free at least 20 GiB, or name a folder on another disk",
    )
}

fn clock() -> Check {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
    let source = read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    let source = source.unwrap_or_else(|| "unknown".to_owned());
    let resolution_ns = resolution.tv_sec.saturating_mul(1_000_000_000).saturating_add(resolution.tv_nsec);
    // These two are read without a call into the kernel's slow paths.
    let is_fast = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"].contains(&source.as_str());
    Check::ok("clock", format!("monotonic with {resolution_ns} ns, from {source}")).warn_unless(
        (resolution_ns <= CLOCK_NS && is_fast).into(),
        "exact request times: reading the clock is slow or coarse",
        "boot with a stable processor clock (`clocksource=tsc`), or use another machine",
    )
}

fn limit(name: &'static str, resource: Resource, wanted: u64, how: &'static str) -> Check {
    let current = getrlimit(resource).current;
    let found = current.map_or_else(|| "unlimited".to_owned(), |current| current.to_string());
    Check::ok(name, format!("{found} by {how}")).warn_unless(
        current.is_none_or(|current| current >= wanted).into(),
        "engines and loads with many connections, files or threads",
        "raise the limit to 4096 or more in the shell that starts isobench, or in `/etc/security/limits.conf`",
    )
}

fn core_dumps() -> Check {
    let current = getrlimit(Resource::Core).current;
    let found = current.map_or_else(|| "unlimited".to_owned(), |current| format!("at most {current} bytes"));
    Check::ok("core dumps", found).warn_unless(
        (current == Some(0)).into(),
        "nothing, but an engine that crashes may fill the disk with its memory",
        "set `ulimit -c 0` in the shell that starts isobench",
    )
}

fn shared_memory() -> Check {
    let size = rustix::fs::statvfs("/dev/shm").ok().map(|stat| stat.f_blocks.saturating_mul(stat.f_frsize) >> 20);
    let found = size.map_or_else(|| "no /dev/shm".to_owned(), |size| format!("{size} MiB at /dev/shm"));
    Check::ok("shared memory", found).warn_unless(
        (size >= Some(SHARED_MEMORY_MIB)).into(),
        "engines whose processes share memory, such as tensor parallel ones",
        "mount a larger /dev/shm, in a container with `--shm-size` or `--ipc=host`",
    )
}

fn cgroups() -> Check {
    let controllers = read_line("/sys/fs/cgroup/cgroup.controllers");
    let found = match controllers {
        Some(controllers) => format!("version 2 with {controllers}"),
        None if Path::new("/sys/fs/cgroup/memory").is_dir() => "version 1".to_owned(),
        None => "none".to_owned(),
    };
    let good = found != "none";
    Check::ok("control groups", found).warn_unless(
        good.into(),
        "limits of memory and processors for containers",
        "mount the control groups at /sys/fs/cgroup",
    )
}

fn load(host: &Host) -> Check {
    let load = read_line("/proc/loadavg").and_then(|line| line.split(' ').next()?.parse::<f64>().ok());
    let found = load.map_or_else(|| "unknown".to_owned(), |load| format!("{load} on {} processors", host.processors));
    // Half of the processors busy before anything is measured leaves too little room.
    let quiet = load.is_none_or(|load| load <= 0.5 * f64::from(host.processors));
    Check::ok("load average", found).warn_unless(
        quiet.into(),
        "steady measurements: other work disturbs them, and more blocks are needed",
        "wait until the machine is quiet, or end what runs on it",
    )
}

fn frequency() -> Check {
    let governor = read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let found = governor.clone().unwrap_or_else(|| "not visible here".to_owned());
    Check::ok("processor frequency", found).warn_unless(
        governor.is_none_or(|governor| governor == "performance").into(),
        "steady measurements: the frequency follows the load",
        "set the governor to `performance`, for example with `cpupower frequency-set -g performance`",
    )
}

/// Returns the first two numbers of a version.
fn parse_version(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_says_what_it_forbids_and_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let checks = doctor(folder.path(), folder.path());
        assert_eq!(checks.len(), 16);
        for check in &checks {
            let has_advice = check.forbids.is_some() && check.advice.is_some();
            assert_eq!(has_advice, check.status != CheckStatus::Ok, "{check:?}");
            assert!(!check.found.is_empty());
        }
    }

    #[test]
    fn a_missing_or_old_git_forbids_every_run() {
        for (version, expected) in [
            (None, CheckStatus::Missing),
            (Some("2.9.5"), CheckStatus::Missing),
            (Some("odd"), CheckStatus::Missing),
            (Some("2.25.1"), CheckStatus::Ok),
            (Some("3.0.0"), CheckStatus::Ok),
        ] {
            let mut host = Host::default();
            host.tools.extend(version.map(|version| ("git".to_owned(), version.to_owned())));
            assert_eq!(git(&host).status, expected, "{version:?}");
        }
    }

    #[test]
    fn without_uv_some_tasks_cannot_run() {
        let mut host = Host::default();
        assert_eq!(uv(&host).status, CheckStatus::Warning);
        host.tools.insert("uv".to_owned(), "0.11.2".to_owned());
        assert_eq!(uv(&host).status, CheckStatus::Ok);
    }
}
