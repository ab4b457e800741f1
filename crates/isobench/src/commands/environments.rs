//! `isobench environments`: what the cache holds, proving it again, and removing what no run uses.

use std::path::Path;

use isobench_runner::cache_entries::{self, CachedEntry, Removed};
use isobench_runner::cache_use::now_ms;
use isobench_schema::units::size_text;
use serde::Serialize;

use super::Context;
use crate::disk_args::{EnvironmentsAct, EnvironmentsArgs, ProveArgs, PruneArgs};
use crate::exit::{CommandError, Exit, WithExit as _};

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 3600 * 1000;

/// Runs the command.
pub(crate) fn run(args: &EnvironmentsArgs, context: Context) -> Result<Exit, CommandError> {
    let cache = super::cache_folder(args.cache.as_ref())?;
    match &args.act {
        EnvironmentsAct::List => list(&cache, context),
        EnvironmentsAct::Prove(args) => prove(&cache, args, context),
        EnvironmentsAct::Prune(args) => prune(&cache, args, context),
    }
}

fn entries(cache: &Path) -> Result<Vec<CachedEntry>, CommandError> {
    cache_entries::list(cache).exit(Exit::Machine)
}

/// Returns an entry as a line: its kind, name, size, last use and contents.
fn line(entry: &CachedEntry, note: &str) -> String {
    let used = match (&entry.last_use, entry.is_used) {
        (_, true) => "used now".to_owned(),
        (Some(last), false) => format!("used {} by {}", when(last.at_ms), last.run),
        (None, false) => format!("made {}", when(entry.at_ms)),
    };
    let id: String = entry.id.chars().take(12).collect();
    format!("{:11}  {id}  {:>9}  {used:42}  {}{note}\n", entry.kind.as_str(), size_text(entry.bytes), entry.what)
}

/// Returns a moment in UTC, to the minute.
fn when(at_ms: u64) -> String {
    let moment = i64::try_from(at_ms).ok().and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
    let text = moment.unwrap_or_default().to_string();
    text.get(..16).map_or_else(|| text.clone(), |minute| minute.replace('T', " "))
}

fn list(cache: &Path, context: Context) -> Result<Exit, CommandError> {
    let entries = entries(cache)?;
    if context.json {
        context.print_json(&entries)?;
        return Ok(Exit::Success);
    }
    for entry in &entries {
        context.terminal.data(&line(entry, ""));
    }
    let free = isobench_runner::disk::free_bytes(cache).exit(Exit::Machine)?;
    let bytes = entries.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.bytes));
    let status = format!(
        "{} entries in `{}`, {} (files that they share counted for each); {} are free on its disk",
        entries.len(),
        cache.display(),
        size_text(bytes),
        size_text(free)
    );
    context.terminal.status(&status);
    Ok(Exit::Success)
}

/// An entry that was proven again, as `--json` prints it.
#[derive(Serialize)]
struct Proven<'e> {
    #[serde(flatten)]
    entry: &'e CachedEntry,
    /// What is wrong with it.
    wrong: Option<String>,
}

fn prove(cache: &Path, args: &ProveArgs, context: Context) -> Result<Exit, CommandError> {
    let all = entries(cache)?;
    let is_asked = |entry: &&CachedEntry| args.ids.is_empty() || args.ids.iter().any(|id| entry.id.starts_with(&**id));
    let asked: Vec<&CachedEntry> = all.iter().filter(is_asked).collect();
    if let Some(id) = args.ids.iter().find(|id| !all.iter().any(|entry| entry.id.starts_with(&***id))) {
        let message = format!("the cache has no entry `{id}`");
        return Err(CommandError::new(Exit::Usage, message).hint("`isobench environments list` names them"));
    }
    let mut proven = Vec::new();
    for entry in asked {
        let wrong = cache_entries::prove(cache, entry).exit(Exit::Machine)?;
        if !context.json {
            let note = wrong.as_ref().map_or_else(|| ": as recorded".to_owned(), |wrong| format!(": {wrong}"));
            context.terminal.data(&line(entry, &note));
        }
        proven.push(Proven { entry, wrong });
    }
    if context.json {
        context.print_json(&proven)?;
    }
    let wrong = proven.iter().filter(|proven| proven.wrong.is_some()).count();
    if wrong == 0 {
        return Ok(Exit::Success);
    }
    let status = format!("{wrong} of {} entries aren't as recorded; a run that needs one makes it anew", proven.len());
    context.terminal.status(&status);
    Ok(Exit::SomeFailed)
}

/// An entry that goes, or would.
#[derive(Serialize)]
struct Gone<'e> {
    #[serde(flatten)]
    entry: &'e CachedEntry,
    /// Whether it was removed; else it is used, or nothing was to be removed.
    removed: bool,
}

fn prune(cache: &Path, args: &PruneArgs, context: Context) -> Result<Exit, CommandError> {
    let floor = args.floor.disk_floor;
    if args.max_size.is_none() && args.unused_days.is_none() && floor.is_none() {
        let message = "nothing says what is to be kept";
        let hint = "give `--max-size GIB`, `--unused-days DAYS`, `--disk-floor GIB` or several of them";
        return Err(CommandError::new(Exit::Usage, message).hint(hint));
    }
    let mut all = entries(cache)?;
    all.sort_by_key(|entry| (entry.is_whole, entry.at_ms));
    let mut left = all.iter().fold(0_u64, |sum, entry| sum.saturating_add(entry.bytes));
    let oldest = args.unused_days.map(|days| now_ms().saturating_sub(u64::from(days).saturating_mul(DAY_MS)));
    let mut gone = Vec::new();
    // What would be free, if nothing is removed but only told.
    let mut told = 0_u64;
    let free = || isobench_runner::disk::free_bytes(cache).exit(Exit::Machine);
    for entry in &all {
        let is_too_full = match floor {
            Some(floor) => free()?.saturating_add(told) < floor,
            None => false,
        };
        let is_old = oldest.is_some_and(|oldest| entry.at_ms < oldest);
        let is_too_much = args.max_size.is_some_and(|most| left > most);
        // What is used doesn't go, and so doesn't count as gone.
        if entry.is_used || !(is_old || is_too_much || is_too_full || !entry.is_whole) {
            continue;
        }
        let removed = !args.dry_run && cache_entries::remove(cache, entry).exit(Exit::Machine)? == Removed::Gone;
        if args.dry_run {
            told = told.saturating_add(entry.bytes);
        } else if floor.is_some() {
            // What was moved away takes room until it is swept.
            cache_entries::sweep(cache).exit(Exit::Machine)?;
        }
        if removed || args.dry_run {
            left = left.saturating_sub(entry.bytes);
            gone.push(Gone { entry, removed });
        }
    }
    if !args.dry_run {
        cache_entries::sweep(cache).exit(Exit::Machine)?;
    }
    if context.json {
        context.print_json(&gone)?;
    } else {
        for Gone { entry, .. } in &gone {
            context.terminal.data(&line(entry, ""));
        }
    }
    let bytes = gone.iter().fold(0_u64, |sum, gone| sum.saturating_add(gone.entry.bytes));
    let word = if args.dry_run { "would go" } else { "are gone" };
    context.terminal.status(&format!(
        "{} entries of {} {word}, {} stay",
        gone.len(),
        size_text(bytes),
        size_text(left)
    ));
    let found = free()?.saturating_add(told);
    if let Some(floor) = floor.filter(|floor| found < *floor) {
        let (cache, found, floor) = (cache.display(), size_text(found), size_text(floor));
        let message = format!("the disk of the cache `{cache}` has {found} left, and {floor} are to stay free");
        let hint = "nothing that no run uses is left in the cache: what else is on the disk must go";
        return Err(CommandError::new(Exit::Machine, message).hint(hint));
    }
    Ok(Exit::Success)
}
