//! The images that launches run from: found on this machine or fetched by the daemon, held while they are used, and gone when
//! others need their room.

pub(crate) mod record;
mod room;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isobench_schema::block::BlockSpec;
use isobench_schema::container::ImageFacts;
use isobench_schema::environment::Isolation;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::images::{ImagePart, PlannedImage};
use isobench_schema::units::size_text;

use crate::block::{BlockContext, RunBlockError};
use crate::cache_use::{UseLock, unused};
use crate::container::{ContainerError, Daemon, PullWatch, Pulled, ask, with_cause};
use crate::disk::free_bytes;
use crate::environment::lock::FolderLock;
use crate::environment::remove::discard;
use crate::environment::{EnvironmentError, PrepareContext, Stop};
use crate::sink::Sink;
use record::PulledImage;
use room::ImageRoom;

/// The deadline by which the patience for another process that fetches the same image is reckoned.
const PATIENCE: Duration = Duration::from_secs(3600);

/// The images of a block's launches.
#[derive(Debug, Default)]
pub(crate) struct BlockImages {
    /// Why images of launches can't be had, by their ids.
    pub(crate) failed: BTreeMap<String, Failure>,
    /// Whether it was given up because the run is cancelled.
    pub(crate) is_cancelled: bool,
    /// Keeps them from being removed.
    _held: Vec<UseLock>,
}

/// Finds or fetches the images of a block, and holds them.
///
/// # Errors
/// Returns an error if this machine can't do the work: no daemon answers, the image of all containers can't be had, or the
/// disk has too little room. An image of a launch's own that can't be had is that launch's failure.
pub(crate) fn hold(
    spec: &BlockSpec,
    context: &BlockContext<'_>,
    sink: &mut dyn Sink,
) -> Result<BlockImages, RunBlockError> {
    let mut images = BlockImages::default();
    let mut held = Vec::new();
    let contained = spec.container.as_ref().filter(|_| spec.isolation == Isolation::Container);
    let engines = contained.and_then(|container| container.image.as_ref());
    // Builds may run in a container where engines don't.
    let own = spec.launches.iter().flat_map(|launch| {
        let python = launch.environment.python.image().filter(|_| contained.is_some());
        python.into_iter().chain(launch.environment.toolkit.as_ref().map(|toolkit| &toolkit.image))
    });
    let all = engines.into_iter().map(|image| (image, true)).chain(own.map(|image| (image, false)));
    let log = context.scratch.join("log");
    let prepare = PrepareContext {
        cache: context.cache,
        scratch: context.scratch,
        log: &log,
        timeout: PATIENCE,
        cancel: context.cancel,
        reaper: None,
        steps: None,
    };
    let floor_bytes = context.hub.settings().floor_bytes;
    let images_here = ImagesHere { run: &spec.run, prepare, floor_bytes, later: context.later };
    let mut seen = BTreeSet::new();
    for (image, is_of_all) in all {
        if !seen.insert(&image.id) {
            continue;
        }
        let known = spec.images.iter().find(|known| known.id == image.id);
        match images_here.hold(image, known, &mut |text| sink.note(text)) {
            Ok(Ok(used)) => held.push(used),
            Ok(Err(error)) if is_of_all => return Err(error.into()),
            Ok(Err(error @ (ContainerError::NoDaemon { .. } | ContainerError::Elsewhere { .. }))) => {
                return Err(error.into());
            }
            Ok(Err(error)) => {
                images.failed.insert(image.id.clone(), refused(&image.name, &error));
            }
            Err(Stop::Failed(failure)) if failure.class == FailureClass::Interrupted => {
                images.is_cancelled = true;
                return Ok(images);
            }
            Err(Stop::Failed(failure)) => {
                images.failed.insert(image.id.clone(), *failure);
            }
            Err(Stop::Error(error)) => return Err(RunBlockError::Prepare(error)),
        }
    }
    Ok(BlockImages { _held: held, ..images })
}

fn refused(name: &str, error: &ContainerError) -> Failure {
    let text = with_cause(error);
    let line = EvidenceLine::new("container", None, &text);
    let message = format!("the image `{name}` can't be had: {text}");
    Failure::new(FailureStage::Acquire, FailureClass::ContainerRefused, message).with_evidence([line])
}

/// Returns whether a run of this cache uses an image of the daemon now.
///
/// # Errors
/// Returns an error if the cache can't be read or written.
pub fn is_held(cache: &Path, id: &str) -> std::io::Result<bool> {
    let folder = record::entry(cache, id);
    if !crate::cache_use::path(&folder).exists() {
        return Ok(false);
    }
    Ok(unused(&folder)?.is_none())
}

/// Where images are looked for by name when a plan is made, and with what they are fetched.
#[derive(Debug, Clone, Copy)]
pub struct FindImage<'a> {
    /// The cache, which knows what was fetched.
    pub cache: &'a Path,
    /// The room in bytes that is left on the disk.
    pub floor_bytes: u64,
    /// Set from elsewhere to give up.
    pub cancel: &'a AtomicBool,
}

/// Why an image can't be looked for.
#[derive(Debug, thiserror::Error)]
pub enum FindImageError {
    /// No daemon can be asked.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The disk has too little room, or the cache can't be written.
    #[error(transparent)]
    Cache(#[from] EnvironmentError),
}

/// Returns the image that stands under a name on this machine, or that its registry has: then it is fetched. If it can't be
/// had, returns why, in one sentence without a full stop.
///
/// # Errors
/// Returns an error if no daemon answers, or the disk has too little room.
pub fn find_or_fetch(
    name: &str,
    asked: FindImage<'_>,
    say: &mut dyn FnMut(&str),
) -> Result<Result<ImageFacts, String>, FindImageError> {
    let missing = match ask(async { Daemon::connect().await?.image(name).await }) {
        Ok((image, _)) => return Ok(Ok(image)),
        Err(error @ ContainerError::Refused { status: 404, .. }) => error,
        Err(error) => return Err(error.into()),
    };
    let log = asked.cache.join("log");
    let prepare = PrepareContext {
        cache: asked.cache,
        scratch: asked.cache,
        log: &log,
        timeout: PATIENCE,
        cancel: asked.cancel,
        reaper: None,
        steps: None,
    };
    let none = BTreeSet::new();
    let here = ImagesHere { run: "", prepare, floor_bytes: asked.floor_bytes, later: &none };
    match here.fetch(&Wanted { reference: name, name, id: None, layers: &[] }, say) {
        Ok(Ok(found)) => Ok(Ok(found)),
        Ok(Err(ContainerError::Refused { message, .. })) => {
            Ok(Err(format!("it isn't on this machine, and the daemon can't pull it: {message}")))
        }
        Ok(Err(
            error
            @ (ContainerError::NoDaemon { .. } | ContainerError::Elsewhere { .. } | ContainerError::Thread { .. }),
        )) => Err(error.into()),
        Ok(Err(
            error @ (ContainerError::Unanswered { .. }
            | ContainerError::TooLate { .. }
            | ContainerError::Credentials { .. }
            | ContainerError::OtherImage { .. }
            | ContainerError::File { .. }),
        )) => Ok(Err(format!("{}; {}", with_cause(&missing), with_cause(&error)))),
        Err(Stop::Failed(failure)) => Ok(Err(failure.message)),
        Err(Stop::Error(error)) => Err(error.into()),
    }
}

/// An image that is to be fetched.
#[derive(Debug, Clone, Copy)]
struct Wanted<'a> {
    /// The name by which it is fetched.
    reference: &'a str,
    /// Its name, for people.
    name: &'a str,
    /// Its id, if it is known before.
    id: Option<&'a str>,
    /// Its layers, if they are known before.
    layers: &'a [ImagePart],
}

/// The images of this machine's daemon, and how others are fetched.
#[derive(Debug)]
struct ImagesHere<'a> {
    /// The run, for the note of who used an image last.
    run: &'a str,
    prepare: PrepareContext<'a>,
    floor_bytes: u64,
    later: &'a BTreeSet<String>,
}

impl ImagesHere<'_> {
    /// Returns what holds a planned image, which is fetched by the digest that its registry knows it by if it isn't here.
    fn hold(
        &self,
        image: &ImageFacts,
        known: Option<&PlannedImage>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Result<UseLock, ContainerError>, Stop> {
        let folder = record::entry(self.prepare.cache, &image.id);
        // Held before it is looked at, so that nobody removes it in between; also one that was here before any run, which no
        // run removes, but `isobench images prune` may.
        let held = UseLock::take(&folder).map_err(EnvironmentError::write(&folder))?;
        let is_ours = record::read(&folder).is_some();
        if is_ours {
            held.note(self.run);
        }
        match ask(async { Daemon::connect().await?.image(&image.id).await }) {
            Ok((found, _)) if found.id == image.id => {
                if let Some(unfinished) = record::read(&folder).filter(|_| is_ours) {
                    self.adopt(unfinished, &folder)?;
                }
                Ok(Ok(held))
            }
            Ok((found, _)) => Ok(Err(other(image, found))),
            Err(error) if !error.is_not_found() => Ok(Err(error)),
            Err(error) => {
                let Some(reference) = image.repo_digests.first() else { return Ok(Err(error)) };
                let layers = known.map_or(&[][..], |known| &known.layers);
                let wanted = Wanted { reference, name: &image.name, id: Some(&image.id), layers };
                Ok(match self.fetch(&wanted, say)? {
                    Ok(found) if found.id == image.id => {
                        held.note(self.run);
                        Ok(held)
                    }
                    Ok(found) => Err(other(image, found)),
                    Err(error) => Err(error),
                })
            }
        }
    }

    /// Finishes the entry of an image that came when nobody could write its record any more.
    fn adopt(&self, image: PulledImage, folder: &Path) -> Result<(), Stop> {
        if image.bytes > 0 {
            return Ok(());
        }
        let _lock = FolderLock::take(&folder.with_extension("lock"), &self.prepare)?;
        let bytes = ask(async { Daemon::connect().await?.image_bytes(&image.id).await }).unwrap_or(0);
        Ok(PulledImage { bytes, ..image }.note_there(folder)?)
    }

    /// Has the daemon fetch an image, when there is room for it, and notes that it is there for isobench's sake.
    fn fetch(
        &self,
        wanted: &Wanted<'_>,
        say: &mut dyn FnMut(&str),
    ) -> Result<Result<ImageFacts, ContainerError>, Stop> {
        let Wanted { reference, name, layers, .. } = *wanted;
        let (socket, root) = match ask(async {
            let daemon = Daemon::connect().await?;
            Ok((daemon.socket().to_owned(), daemon.facts().await?.root))
        }) {
            Ok((socket, root)) => (socket, root.map(PathBuf::from)),
            Err(error) => return Ok(Err(error)),
        };
        // One at a time: two that share layers would each reckon with all of them.
        let lock = record::pulled_images_folder(self.prepare.cache).join("fetch.lock");
        let _lock = FolderLock::take(&lock, &self.prepare)?;
        if let Ok((found, _)) = ask(async { Daemon::connect_to(&socket).await?.image(reference).await }) {
            return Ok(Ok(found));
        }
        let cache = self.prepare.cache;
        let seen = root.as_deref().filter(|root| root.is_dir());
        let room = seen.map(|root| ImageRoom { cache, root, floor_bytes: self.floor_bytes, later: self.later, layers });
        let missing = room.as_ref().map(ImageRoom::missing_bytes).filter(|bytes| *bytes > 0);
        if let Some(room) = &room {
            room.make()?;
        }
        let size = missing.map_or_else(String::new, |bytes| format!(", {}", size_text(bytes)));
        say(&format!("pulling {name}{size}"));
        let digests = layers.iter().map(|layer| layer.digest.clone()).collect();
        let image = PulledImage {
            id: wanted.id.unwrap_or_default().to_owned(),
            name: name.to_owned(),
            reference: reference.to_owned(),
            socket: socket.clone(),
            root: root.clone(),
            bytes: 0,
            layers: digests,
        };
        let asked = wanted.id.map(|id| record::entry(cache, id));
        if let Some(folder) = &asked {
            image.note_asked(folder)?;
        }
        let pulled = self.pull(&image, (room.as_ref(), missing), say);
        if !matches!(pulled, Ok(Ok(_)))
            && let Some(folder) = &asked
        {
            // What stands under its name later is somebody else's.
            discard(folder)?;
        }
        let found = match pulled? {
            Ok(found) => found,
            Err(error) => return Ok(Err(error)),
        };
        let bytes = ask(async { Daemon::connect_to(&socket).await?.image_bytes(&found.id).await }).unwrap_or(0);
        let folder = record::entry(cache, &found.id);
        PulledImage { id: found.id.clone(), bytes, ..image }.note_there(&folder)?;
        say(&format!("{name} is there, {} with all its layers", size_text(bytes)));
        Ok(Ok(found))
    }

    /// Has the daemon fetch an image for which there is room.
    fn pull(
        &self,
        image: &PulledImage,
        (room, missing): (Option<&ImageRoom<'_>>, Option<u64>),
        say: &mut dyn FnMut(&str),
    ) -> Result<Result<ImageFacts, ContainerError>, Stop> {
        let PulledImage { name, reference, socket, .. } = image;
        let mut has_room = || room.is_none_or(ImageRoom::keep_floor);
        let mut watch = PullWatch { bytes: missing, cancel: self.prepare.cancel, say, has_room: &mut has_room };
        match ask(async { Daemon::connect_to(socket).await?.pull(reference, &mut watch).await }) {
            Ok(Pulled::Whole) => {}
            Ok(Pulled::Cancelled) => {
                let message = format!("pulling `{name}` was interrupted");
                let failure = Failure::new(FailureStage::Acquire, FailureClass::Interrupted, message);
                return Err(failure.transient().into());
            }
            Ok(Pulled::NoRoom) => {
                let path = room.map_or(self.prepare.cache, |room| room.root).to_owned();
                let free = free_bytes(&path).unwrap_or(0);
                let (needed, floor) = (missing.unwrap_or(0), self.floor_bytes);
                return Err(EnvironmentError::NoRoom { path, needed, free, floor }.into());
            }
            Err(error) => return Ok(Err(error)),
        }
        Ok(ask(async { Daemon::connect_to(socket).await?.image(reference).await }).map(|(found, _)| found))
    }
}

fn other(planned: &ImageFacts, found: ImageFacts) -> ContainerError {
    ContainerError::OtherImage { name: planned.name.clone(), found: found.id, planned: planned.id.clone() }
}
