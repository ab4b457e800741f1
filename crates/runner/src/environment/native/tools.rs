//! What a native build is made with beside its tree: compilers, and how many jobs the machine has memory for.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use procfs::{Current as _, Meminfo};

use crate::command::find_program;

/// Programs whose replacement may change what a build makes.
const TOOLS: &[&str] = &["c++", "cargo", "cc", "clang", "cmake", "g++", "gcc", "ld", "make", "ninja", "nvcc", "rustc"];
/// What one job of a build is held to need, in MiB, where nobody has said it: what a compiler of CUDA takes for a large file.
pub(crate) const MEMORY_PER_JOB_MIB: u32 = 4096;
/// The part of the memory that is free which a build in a container may take, in sixteenths: the rest is for this program, the
/// daemon and the files that are written.
const SIXTEENTHS: u64 = 15;

/// Where a control group says how much memory it has and uses.
const GROUP_LIMIT: &str = "/sys/fs/cgroup/memory.max";
const GROUP_USE: &str = "/sys/fs/cgroup/memory.current";

/// Returns the build tools that are found on the search path, each with its real place, size and time of change.
pub(super) fn present() -> BTreeMap<String, String> {
    let look = |name: &&str| {
        let place = find_program(name)?.canonicalize().ok()?;
        let metadata = fs::metadata(&place).ok()?;
        let said = format!("{}, {} bytes, {}", place.display(), metadata.len(), metadata.mtime());
        Some(((*name).to_owned(), said))
    };
    TOOLS.iter().filter_map(look).collect()
}

/// Returns how many jobs of this need may run at once: one for each processor, as far as memory that is free now allows it.
pub(crate) fn jobs(memory_per_job_mib: u32) -> u32 {
    let processors = std::thread::available_parallelism().map_or(1, |count| u32::try_from(count.get()).unwrap_or(1));
    of_memory(processors, free_bytes(), memory_per_job_mib)
}

/// Returns the most bytes of memory that a build in a container may take now; at least what one job needs.
pub(crate) fn bound(memory_per_job_mib: u32) -> Option<u64> {
    let one = u64::from(memory_per_job_mib.max(1)) * 1024 * 1024;
    free_bytes().map(|free| (free / 16 * SIXTEENTHS).max(one))
}

fn of_memory(processors: u32, free_bytes: Option<u64>, memory_per_job_mib: u32) -> u32 {
    let need = u64::from(memory_per_job_mib.max(1)) * 1024 * 1024;
    let fitting = free_bytes.map_or(u32::MAX, |free| u32::try_from(free / need).unwrap_or(u32::MAX));
    processors.min(fitting).max(1)
}

/// Returns the memory that can be had without pushing anything out: the machine's, and the control group's if it has less.
fn free_bytes() -> Option<u64> {
    let machine = Meminfo::current().ok().and_then(|info| info.mem_available);
    let number = |path: &str| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = number(GROUP_LIMIT).zip(number(GROUP_USE)).map(|(limit, used)| limit.saturating_sub(used));
    machine.into_iter().chain(group).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_bounded_by_processors_and_by_memory() {
        let gib = |number: u64| Some(number * 1024 * 1024 * 1024);
        for (processors, free, need, expected) in [
            (8, gib(64), 4096, 8),
            (64, gib(64), 4096, 16),
            (64, gib(1), 4096, 1),
            (64, None, 4096, 64),
            (1, gib(64), 1, 1),
        ] {
            assert_eq!(of_memory(processors, free, need), expected);
        }
        assert!(jobs(1) >= 1);
    }

    #[test]
    fn a_tool_is_known_by_its_place_and_its_state() {
        assert!(present().iter().all(|(_, said)| said.starts_with('/') && said.contains(" bytes, ")));
    }
}
