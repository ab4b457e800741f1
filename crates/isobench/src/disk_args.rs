//! What is typed on the command line about the disk and the cache.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use isobench_runner::disk::DEFAULT_FLOOR_BYTES;

/// Bytes of a GiB.
const GIB: f64 = 1_073_741_824.0;

/// The most that can be given, in GiB.
const MOST_GIB: f64 = 1_000_000.0;

/// Reads a number of GiB.
pub(crate) fn gib(text: &str) -> Result<u64, String> {
    let number = text.parse::<f64>().ok().filter(|gib| (0.0..=MOST_GIB).contains(gib));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is from 0 to 2^50")]
    let bytes = number.map(|gib| (gib * GIB) as u64);
    bytes.ok_or_else(|| format!("give GiB, from 0 to {MOST_GIB}"))
}

/// What is left on the disk.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DiskArgs {
    /// Leave so many GiB free on the disk of the cache: what no run uses is removed from it for that, the least recently used
    /// first; by default 1.
    #[arg(long, value_name = "GIB", env = "ISOBENCH_DISK_FLOOR", value_parser = gib)]
    disk_floor: Option<u64>,
}

impl DiskArgs {
    /// Returns the room that is always left, in bytes.
    pub(crate) fn floor_bytes(&self) -> u64 {
        self.disk_floor.unwrap_or(DEFAULT_FLOOR_BYTES)
    }
}

/// What is left on the disks that images are put on.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct DaemonDiskArgs {
    /// Begin nothing that would leave fewer GiB free where the daemon keeps images; by default 1.
    #[arg(long, value_name = "GIB", env = "ISOBENCH_DISK_FLOOR", value_parser = gib)]
    disk_floor: Option<u64>,
}

impl DaemonDiskArgs {
    /// Returns the room that is always left, in bytes.
    pub(crate) fn floor_bytes(&self) -> u64 {
        self.disk_floor.unwrap_or(DEFAULT_FLOOR_BYTES)
    }
}

/// Up to which room something is removed.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct PruneFloorArgs {
    /// Remove until so many GiB are free on the disk, as much as runs leave there.
    #[arg(long, value_name = "GIB", env = "ISOBENCH_DISK_FLOOR", value_parser = gib)]
    pub(crate) disk_floor: Option<u64>,
}

/// Arguments of `environments`.
#[derive(Debug, Args)]
pub(crate) struct EnvironmentsArgs {
    /// What to do with the cache.
    #[command(subcommand)]
    pub(crate) act: EnvironmentsAct,
    /// The folder of environments, shared by runs.
    #[arg(long, value_name = "DIR", env = "ISOBENCH_CACHE", global = true)]
    pub(crate) cache: Option<PathBuf>,
}

/// What is done with the cache.
#[derive(Debug, Subcommand)]
pub(crate) enum EnvironmentsAct {
    /// List what the cache holds: its size, when it was used last, and by which run.
    List,
    /// Prove what the cache holds again: every file against the record that was written when it was made.
    Prove(ProveArgs),
    /// Remove what no run uses, the least recently used first, until the bounds hold; unfinished entries always.
    Prune(PruneArgs),
}

/// Arguments of `environments prove`.
#[derive(Debug, Args)]
pub(crate) struct ProveArgs {
    /// Only entries whose name begins so; all by default.
    pub(crate) ids: Vec<String>,
}

/// Arguments of `environments prune`.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Remove until no more than so many GiB are left.
    #[arg(long, value_name = "GIB", value_parser = gib)]
    pub(crate) max_size: Option<u64>,
    /// Remove what wasn't used for so many days.
    #[arg(long, value_name = "DAYS")]
    pub(crate) unused_days: Option<u32>,
    #[command(flatten)]
    pub(crate) floor: PruneFloorArgs,
    /// Only say what would be removed.
    #[arg(long)]
    pub(crate) dry_run: bool,
}
