//! Folders that every process of the machine shares: what appears in them while an engine runs.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use isobench_schema::failure::EvidenceLine;

use super::process_table;

/// The folders that are watched.
pub const SHARED: &[&str] = &["/tmp", "/var/tmp", "/dev/shm"];

/// What stood in the shared folders at one moment.
#[derive(Debug)]
pub struct Snapshot {
    entries: BTreeSet<PathBuf>,
    taken_s: i64,
    own: Vec<PathBuf>,
}

impl Snapshot {
    /// Returns what stands in the shared folders now. Entries that hold or are one of `own` are never reported.
    pub fn take(own: &[&Path]) -> Self {
        let taken = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs());
        Self {
            entries: entries().collect(),
            taken_s: i64::try_from(taken).unwrap_or(i64::MAX),
            own: own.iter().map(|path| path.to_path_buf()).collect(),
        }
    }

    /// Returns whether an entry stood there already.
    pub fn held(&self, path: &Path) -> bool {
        self.entries.contains(path)
    }

    /// Returns the entries of this user that have appeared since, as evidence. No process of the launch lives any more, so
    /// that what a living one holds open isn't the launch's, nor are the folders of runs that are under way.
    ///
    /// On a bare process host nobody can tell whose the others are, so that they are evidence, not proof.
    pub fn appeared(&self) -> Vec<EvidenceLine> {
        let user = rustix::process::geteuid().as_raw();
        let new = entries().filter(|path| !self.entries.contains(path));
        let foreign = new.filter(|path| !self.own.iter().any(|own| own.starts_with(path) || path.starts_with(own)));
        let mut lines = Vec::new();
        let mut open = None;
        for path in foreign {
            if is_of_living_run(&path)
                || open.get_or_insert_with(process_table::open_paths).iter().any(|held| held.starts_with(&path))
            {
                continue;
            }
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            // A file system's clock may lag the wall clock by a tick.
            if metadata.uid() == user && metadata.ctime() >= self.taken_s - 1 {
                let kind = if metadata.is_dir() { "folder" } else { "file" };
                let text = format!("new {kind} of {} bytes: {}", metadata.len(), path.display());
                lines.push(EvidenceLine::new(path.display().to_string(), None, &text));
            }
        }
        lines
    }
}

/// The prefix of the temporary folders of launches, before the mark of their run.
pub(crate) const LAUNCH_PREFIX: &str = "ib-";

/// Returns whether an entry is the temporary folder of a launch of a run under way: it is named by that run's mark, which
/// its processes carry.
fn is_of_living_run(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    let marker = name.and_then(|name| name.strip_prefix(LAUNCH_PREFIX)?.rsplit_once('-'));
    marker.is_some_and(|(marker, _)| !process_table::marked(marker).is_empty())
}

fn entries() -> impl Iterator<Item = PathBuf> {
    let list = |folder: &&str| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    SHARED.iter().flat_map(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_reported_and_an_own_one_is_not() {
        let own = tempfile::Builder::new().prefix("isobench-own-").tempdir_in("/tmp").unwrap();
        let snapshot = Snapshot::take(&[own.path()]);
        let own_later = Path::new("/tmp").join(own.path().file_name().unwrap()).join("x");
        fs::write(own_later, "x").unwrap();
        let file = tempfile::Builder::new().prefix("isobench-left-").tempfile_in("/dev/shm").unwrap().into_temp_path();
        let lines = snapshot.appeared();
        assert!(lines.iter().any(|line| line.text.contains("isobench-left-")), "{lines:?}");
        assert!(!lines.iter().any(|line| line.text.contains("isobench-own-")), "{lines:?}");
        drop(file);
    }

    #[test]
    fn what_a_living_process_holds_and_the_folder_of_another_run_are_not_the_launchs() {
        let snapshot = Snapshot::take(&[]);
        let marker = format!("otherrun{}", std::process::id());
        let file = |prefix: &str| tempfile::Builder::new().prefix(prefix).tempfile_in("/dev/shm").unwrap();
        let (held, free) = (file("isobench-held-"), file("isobench-free-").into_temp_path());
        let folder = tempfile::Builder::new().prefix(&format!("{LAUNCH_PREFIX}{marker}-")).tempdir_in("/tmp").unwrap();
        let name = folder.path().file_name().unwrap().to_str().unwrap().to_owned();
        let has = |name: &str| snapshot.appeared().iter().any(|line| line.text.contains(name));
        assert!(has(&name), "nobody carries its mark");
        let mut other =
            std::process::Command::new("sleep").arg("600").env(process_table::RUN_MARKER, &marker).spawn().unwrap();
        let found = [has(&name), has("isobench-held-"), has("isobench-free-")];
        other.kill().unwrap();
        other.wait().unwrap();
        assert_eq!(found, [false, false, true]);
        drop((held, free));
    }
}
