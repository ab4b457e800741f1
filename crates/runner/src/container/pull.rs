//! Fetching an image by the daemon: with Docker's credentials, given up when it is told to, when nothing comes any more, or when
//! the disk has too little room left.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bollard::models::CreateImageInfo;
use bollard::query_parameters::CreateImageOptions;
use futures_util::StreamExt as _;
use isobench_schema::units::size_text;

use super::held::revealed;
use super::work::check_name;
use super::{ContainerError, Daemon};
use crate::images::{Credentials, DockerConfig, parse_reference};

/// How long nothing may come of a pull. Large layers are unpacked without a word.
const STALL: Duration = Duration::from_secs(1800);
/// How long a pull may take in all.
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// How often it is looked whether it is to go on.
const LOOK: Duration = Duration::from_millis(200);
/// How often the disk is looked at.
const LOOK_AT_DISK: Duration = Duration::from_secs(1);
/// How often somebody is told how far it has come.
const TELL: Duration = Duration::from_secs(10);

/// What a pull is watched with.
pub(crate) struct PullWatch<'a> {
    /// What must be fetched in bytes, if it is known.
    pub(crate) bytes: Option<u64>,
    /// Set from elsewhere to give up.
    pub(crate) cancel: &'a AtomicBool,
    /// Told how far it has come.
    pub(crate) say: &'a mut dyn FnMut(&str),
    /// Asked each second whether the disk still has room.
    pub(crate) has_room: &'a mut dyn FnMut() -> bool,
}

/// How a pull ended that the daemon and the registry didn't refuse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pulled {
    /// The image is there.
    Whole,
    /// It was cancelled.
    Cancelled,
    /// The disk has too little room left.
    NoRoom,
}

impl Daemon {
    /// Fetches an image from its registry, with the credentials that Docker's configuration has for that.
    ///
    /// # Errors
    /// Returns an error if the daemon can't, with its words, or if nothing comes for too long.
    pub(crate) async fn pull(&self, name: &str, watch: &mut PullWatch<'_>) -> Result<Pulled, ContainerError> {
        check_name(name)?;
        let what = || format!("pull the image `{name}`");
        let credentials = credentials(name).map_err(|message| ContainerError::Credentials { what: what(), message })?;
        let shown = credentials.as_ref().map(|(registry, credentials)| revealed(credentials, registry));
        let options = CreateImageOptions { from_image: Some(name.to_owned()), ..CreateImageOptions::default() };
        let steps = self.docker.create_image(Some(options), None, shown);
        // Whoever drops the answer ends the pull: the daemon sees that nobody listens.
        tokio::pin!(steps);
        let begun = Instant::now();
        let (mut heard, mut looked, mut told) = (begun, begun, begun);
        let mut meter = Meter::default();
        loop {
            let step = tokio::time::timeout(LOOK, steps.next()).await;
            match step {
                Ok(None) => return Ok(Pulled::Whole),
                Ok(Some(step)) => {
                    heard = Instant::now();
                    let step = step.map_err(ContainerError::asked(what()))?;
                    if let Some(message) = step.error_detail.as_ref().and_then(|detail| detail.message.clone()) {
                        return Err(ContainerError::Refused { what: what(), status: 500, message });
                    }
                    meter.take(&step);
                }
                Err(_elapsed) => {}
            }
            if watch.cancel.load(Ordering::Relaxed) {
                return Ok(Pulled::Cancelled);
            }
            if looked.elapsed() > LOOK_AT_DISK {
                looked = Instant::now();
                if !(watch.has_room)() {
                    return Ok(Pulled::NoRoom);
                }
            }
            if told.elapsed() > TELL {
                told = Instant::now();
                (watch.say)(&format!("pulling {name}: {}", meter.words(watch.bytes)));
            }
            let waited = if heard.elapsed() > STALL { Some(STALL) } else { None };
            if let Some(waited) = waited.or_else(|| (begun.elapsed() > LONGEST).then_some(LONGEST)) {
                return Err(ContainerError::TooLate { what: what(), seconds: waited.as_secs() });
            }
        }
    }
}

/// Returns what Docker's configuration has for the registry of an image, with that registry.
fn credentials(name: &str) -> Result<Option<(String, Credentials)>, String> {
    // A name that only the daemon understands is left to it.
    let Ok((repository, _)) = parse_reference(name) else { return Ok(None) };
    let config = DockerConfig::load(|name| std::env::var(name).ok()).map_err(|error| super::with_cause(&error))?;
    let Some(config) = config else { return Ok(None) };
    let registry = repository.registry();
    let found = config.credentials(registry).map_err(|error| super::with_cause(&error))?;
    Ok(found.map(|credentials| (registry.to_owned(), credentials)))
}

/// How much of each layer has come.
#[derive(Debug, Default)]
struct Meter(BTreeMap<String, (u64, u64)>);

impl Meter {
    fn take(&mut self, step: &CreateImageInfo) {
        let Some(id) = step.id.clone() else { return };
        let number = |number: Option<i64>| number.and_then(|number| u64::try_from(number).ok());
        match step.status.as_deref() {
            Some("Downloading") => {
                let Some(detail) = &step.progress_detail else { return };
                let (Some(current), Some(total)) = (number(detail.current), number(detail.total)) else { return };
                self.0.insert(id, (current, total));
            }
            Some("Download complete" | "Pull complete") => {
                if let Some((current, total)) = self.0.get_mut(&id) {
                    *current = *total;
                }
            }
            Some(_) | None => {}
        }
    }

    fn words(&self, bytes: Option<u64>) -> String {
        let have: u64 = self.0.values().map(|(current, _)| current).sum();
        let named: u64 = self.0.values().map(|(_, total)| total).sum();
        match bytes.filter(|bytes| *bytes >= named) {
            Some(bytes) => format!("{} of {}", size_text(have), size_text(bytes)),
            None => format!("{} of {}", size_text(have), size_text(named)),
        }
    }
}

#[cfg(test)]
mod tests {
    use bollard::models::ProgressDetail;

    use super::*;

    fn step(id: &str, status: &str, progress: Option<(i64, i64)>) -> CreateImageInfo {
        CreateImageInfo {
            id: Some(id.to_owned()),
            status: Some(status.to_owned()),
            progress_detail: progress
                .map(|(current, total)| ProgressDetail { current: Some(current), total: Some(total) }),
            error_detail: None,
        }
    }

    #[test]
    fn what_has_come_is_counted_by_layer() {
        let mut meter = Meter::default();
        for step in [
            step("a", "Pulling fs layer", None),
            step("a", "Downloading", Some((1_000_000_000, 4_000_000_000))),
            step("b", "Downloading", Some((100_000_000, 200_000_000))),
            step("a", "Downloading", Some((3_000_000_000, 4_000_000_000))),
            step("c", "Already exists", None),
            step("b", "Extracting", Some((1, 200_000_000))),
        ] {
            meter.take(&step);
        }
        assert_eq!(meter.words(Some(8_200_000_000)), "3.1 GB of 8.2 GB");
        meter.take(&step("b", "Pull complete", None));
        assert_eq!(meter.words(None), "3.2 GB of 4.2 GB");
    }

    #[test]
    fn a_name_that_is_no_reference_has_no_credentials() {
        assert_eq!(credentials("Not a name").unwrap().map(|(registry, _)| registry), None);
    }
}
