//! What each container of isobench is labelled with, so that one which nobody watches over any more is found and ended.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::host::process_table;

/// The label of every container; its value is the mark of its run.
pub(super) const RUN: &str = "io.isobench.run";
/// The process that made it: boot, process namespace, id, and start.
const COORDINATOR: &str = "io.isobench.coordinator";
/// When it was made, in seconds since 1970.
const CREATED: &str = "io.isobench.created";
/// When it must be gone, in seconds since 1970.
const EXPIRES: &str = "io.isobench.expires";

/// The names of these labels.
pub(super) const NAMES: [&str; 4] = [RUN, COORDINATOR, CREATED, EXPIRES];

/// Returns the labels of a container that this process makes now.
pub(super) fn labels(marker: &str, lifetime: Duration) -> BTreeMap<String, String> {
    let now = now_s();
    let expires = now.saturating_add(lifetime.as_secs());
    let pairs = [
        (RUN, marker.to_owned()),
        (COORDINATOR, Coordinator::this().to_string()),
        (CREATED, now.to_string()),
        (EXPIRES, expires.to_string()),
    ];
    pairs.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Why a container is nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Orphaned {
    /// It belongs to a run whose lock this process holds, so that nobody else runs it.
    OwnRun,
    /// Its time has passed.
    Expired,
    /// The process that made it is gone.
    CoordinatorGone,
}

impl Orphaned {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::OwnRun => "left by an earlier command of this run",
            Self::Expired => "past its time",
            Self::CoordinatorGone => "its coordinator is gone",
        }
    }
}

/// Returns why a container with these labels is nobody's, or `None` if it may still be somebody's. `own` is the run whose
/// lock is held.
pub(super) fn orphaned(labels: &BTreeMap<String, String>, own: Option<&str>, now_s: u64) -> Option<Orphaned> {
    let run = labels.get(RUN)?;
    if own.is_some_and(|own| own == run) {
        return Some(Orphaned::OwnRun);
    }
    let expires: Option<u64> = labels.get(EXPIRES).and_then(|text| text.parse().ok());
    if expires.is_some_and(|expires| now_s > expires) {
        return Some(Orphaned::Expired);
    }
    let coordinator = Coordinator::parse(labels.get(COORDINATOR)?)?;
    (!coordinator.may_live()).then_some(Orphaned::CoordinatorGone)
}

pub(super) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

/// The process that made a container, named for ever.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Coordinator {
    boot: String,
    /// The namespace that its id belongs to: a coordinator in a container has other ids.
    namespace: String,
    process: u32,
    started: u64,
}

impl std::fmt::Display for Coordinator {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}/{}/{}/{}", self.boot, self.namespace, self.process, self.started)
    }
}

impl Coordinator {
    fn this() -> Self {
        let process = std::process::id();
        Self { boot: boot(), namespace: namespace(), process, started: started(process).unwrap_or(0) }
    }

    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let (boot, namespace) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        let (process, started) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        parts.next().is_none().then_some(Self { boot, namespace, process, started })
    }

    /// Returns whether it may still live. One of an earlier boot can't; of one elsewhere nothing is known.
    fn may_live(&self) -> bool {
        if self.boot != boot() {
            return false;
        }
        self.namespace != namespace() || started(self.process) == Some(self.started)
    }
}

fn boot() -> String {
    fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

fn namespace() -> String {
    let link = fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    link.to_string_lossy().chars().filter(char::is_ascii_digit).collect()
}

fn started(process: u32) -> Option<u64> {
    process_table::find(process).filter(|found| !found.zombie).map(|found| found.started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_an_orphan_when_its_time_or_its_coordinator_is_gone() {
        let made = labels("run", Duration::from_secs(60));
        let now = now_s();
        assert_eq!(orphaned(&made, None, now), None, "this process lives");
        assert_eq!(orphaned(&made, Some("other"), now), None);
        assert_eq!(orphaned(&made, Some("run"), now), Some(Orphaned::OwnRun));
        assert_eq!(orphaned(&made, None, now + 62), Some(Orphaned::Expired));
        let with = |change: fn(&mut Coordinator)| {
            let mut coordinator = Coordinator::this();
            change(&mut coordinator);
            let mut labels = made.clone();
            labels.insert(COORDINATOR.to_owned(), coordinator.to_string());
            orphaned(&labels, None, now)
        };
        assert_eq!(with(|other| other.started += 1), Some(Orphaned::CoordinatorGone), "its id is another's now");
        assert_eq!(with(|other| other.boot = "earlier".to_owned()), Some(Orphaned::CoordinatorGone));
        assert_eq!(with(|other| other.namespace = "1".to_owned()), None, "nobody here can tell");
        assert_eq!(orphaned(&BTreeMap::new(), Some("run"), now), None, "it isn't isobench's");
    }
}
