//! The commands, one file each.

pub(crate) mod block;
pub(crate) mod classify;
pub(crate) mod compare;
pub(crate) mod confirm;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod environments;
pub(crate) mod explain;
pub(crate) mod export;
mod export_legacy;
mod history;
pub(crate) mod images;
pub(crate) mod import;
mod import_legacy;
mod input;
pub(crate) mod judge;
pub(crate) mod lint;
pub(crate) mod load;
pub(crate) mod load_explain;
pub(crate) mod noise;
pub(crate) mod parse;
pub(crate) mod plan;
mod plan_for;
pub(crate) mod report;
mod report_legacy;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod verify;
pub(crate) mod wheels;

use std::path::PathBuf;
use std::sync::Arc;

use isobench_runner::host::client_thread::Scheduling;
use isobench_runner::inputs::{Hub, HubSettings};
use isobench_runner::{inventory, lease};
use isobench_store::StoreError;
use serde::Serialize;

use crate::coordinator::Machine;
use crate::disk_args::DiskArgs;
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::terminal::Terminal;

/// How every command prints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context {
    /// Where.
    pub(crate) terminal: Terminal,
    /// Whether data is JSON.
    pub(crate) json: bool,
}

impl Context {
    /// Prints a value as indented JSON.
    ///
    /// # Errors
    /// Returns an error if the value can't be written as JSON.
    pub(crate) fn print_json(self, value: &impl Serialize) -> Result<(), CommandError> {
        let text = serde_json::to_string_pretty(value).exit(Exit::Error)?;
        self.terminal.data(&(text + "\n"));
        Ok(())
    }
}

/// Returns the error of a file that the user asked for and that can't be written.
pub(crate) fn write_error(error: StoreError) -> CommandError {
    match error {
        full @ StoreError::DiskFull { .. } => CommandError::from_error(Exit::Machine, full)
            .hint("the disk is full: free some room, then give the same command again"),
        other @ StoreError::Io { .. } => CommandError::from_error(Exit::Usage, other),
    }
}

/// Returns the error of a file of a run's record that can't be written.
pub(crate) fn record_error(error: StoreError) -> CommandError {
    match error {
        full @ StoreError::DiskFull { .. } => CommandError::from_error(Exit::Machine, full)
            .hint("the disk is full: free some room, then give the same command again to resume"),
        other @ StoreError::Io { .. } => CommandError::from_error(Exit::Error, other),
    }
}

/// Returns the folder of environments: the one that was given, or the user's cache folder.
///
/// # Errors
/// Returns an error if there is neither, or the folder can't be made.
pub(crate) fn cache_folder(given: Option<&PathBuf>) -> Result<PathBuf, CommandError> {
    let folder = if let Some(folder) = given {
        folder.clone()
    } else {
        let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // Commands without `--cache` go by the same variable.
        let of_user = || from("XDG_CACHE_HOME").or_else(|| Some(from("HOME")?.join(".cache")));
        let folder = from("ISOBENCH_CACHE").or_else(|| Some(of_user()?.join("isobench")));
        let message = "there is no folder for environments: neither HOME nor XDG_CACHE_HOME is set";
        folder.ok_or_else(|| CommandError::new(Exit::Usage, message).hint("give `--cache DIR`"))?
    };
    let failed = |error: std::io::Error| {
        let message = format!("cannot use the folder of environments `{}`: {error}", folder.display());
        CommandError::new(Exit::Machine, message).hint("give `--cache DIR`")
    };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    std::fs::canonicalize(&folder).map_err(failed)
}

/// Returns where inputs are taken from: as the hub's own library would be told, with the room that is left on the disk.
pub(crate) fn hub_settings(disk: &DiskArgs) -> HubSettings {
    let settings = HubSettings::from_variables(&|name: &str| std::env::var(name).ok());
    HubSettings { floor_bytes: disk.floor_bytes(), ..settings }
}

/// Returns what runs need of this machine.
///
/// # Errors
/// Returns an error if this program's own path can't be found.
pub(crate) fn machine(cache: PathBuf, disk: &DiskArgs) -> Result<Machine, CommandError> {
    let program = std::env::current_exe().exit(Exit::Machine)?;
    let host = inventory::host(&[&cache]);
    let hub = Arc::new(Hub::new(hub_settings(disk)));
    Ok(Machine { program, cache, scheduling: Scheduling::available(), leases: lease::folder(), host, hub })
}
