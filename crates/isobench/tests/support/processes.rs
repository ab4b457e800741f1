//! What is left of a run on the machine, seen without the program's own eyes.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use isobench_schema::ids::Digest;

/// Returns what every process of a run is marked with.
fn marker(run: &Path) -> String {
    Digest::of(fs::canonicalize(run).unwrap().as_os_str().as_bytes()).short().to_owned()
}

/// Returns a run's folders for temporary files of engines.
pub(crate) fn tmp_folders(run: &Path) -> Vec<PathBuf> {
    let name = format!("ib-{}", marker(run));
    let entries = fs::read_dir("/tmp").unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(&name)).map(|entry| entry.path()).collect()
}

/// Returns the processes that carry a run's mark, that work in a test's folder, or whose arguments or variables name it.
pub(crate) fn of_run(run: &Path, place: &Path) -> Vec<String> {
    let mark = format!("ISOBENCH_RUN={}", marker(run)).into_bytes();
    let place = fs::canonicalize(place).unwrap();
    let name = place.as_os_str().as_bytes();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(process) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        if process == std::process::id() {
            continue;
        }
        let read = |file: &str| fs::read(entry.path().join(file)).unwrap_or_default();
        let (arguments, variables) = (read("cmdline"), read("environ"));
        // The process is as good as gone once it is a zombie, and then it has neither.
        let is_marked = variables.split(|&byte| byte == 0).any(|variable| variable == mark);
        let names_it = [&arguments, &variables].iter().any(|bytes| holds(bytes, name));
        let works_in_it = fs::read_link(entry.path().join("cwd")).is_ok_and(|folder| folder.starts_with(&place));
        if is_marked || names_it || works_in_it {
            found.push(format!("{process}: {}", String::from_utf8_lossy(&arguments).replace('\0', " ")));
        }
    }
    found
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
