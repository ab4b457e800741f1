//! Sending proven images from the daemon to their registry: what is there isn't sent again, and what was sent is read back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isobench_runner::container::{ContainerError, Daemon, ask};
use isobench_runner::images::{Credentials, Manifest, Registry, RegistryError, Repository, Target};
use isobench_schema::ids::ImageTag;

use super::ask as registry;
use super::progress::Progress;
use crate::commands::Context;
use crate::exit::CommandError;
use crate::images_args::RegistryArgs;

/// How often it is looked whether somebody gave up.
const STEP: Duration = Duration::from_millis(100);

/// Who sends images of one repository.
pub(super) struct Sender<'a> {
    pub(super) images: &'a Repository,
    pub(super) credentials: Option<&'a Credentials>,
    pub(super) registry: &'a RegistryArgs,
    pub(super) context: Context,
    pub(super) cancel: &'a AtomicBool,
}

/// What became of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Sent {
    /// The registry had it, by this digest.
    There(String),
    /// It was sent, and the registry has it by this digest.
    Whole(String),
    /// It wasn't, and why.
    Failed(String),
    /// Somebody gave up.
    Cancelled,
}

impl Sender<'_> {
    /// Asks the registry whether it lets one in, before anything takes hours.
    ///
    /// # Errors
    /// Returns an error if the registry refuses to be asked, can't be, or isn't one.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        let asking = registry::open(self.images.clone(), self.registry, self.context)?;
        let any = Target::Tag(ImageTag::new("latest").expect("`latest` is a tag"));
        asking.registry.head(&any).map(|_| ()).map_err(registry::error)
    }

    /// Sends the image of an id that the daemon has under a tag, unless the registry has it, and asks the registry for it then.
    ///
    /// # Errors
    /// Returns an error if the registry refuses to be asked, or isn't one.
    pub(super) fn send(&self, id: &str, tag: &ImageTag) -> Result<Sent, CommandError> {
        let asking = registry::open(self.images.clone(), self.registry, self.context)?;
        match held(&asking.registry, id, tag) {
            Ok(Some(digest)) => return Ok(Sent::There(digest)),
            Ok(None) => {}
            Err(error) => return failed(error),
        }
        match self.push(tag) {
            Ok(true) => {}
            Ok(false) => return Ok(Sent::Cancelled),
            Err(error @ ContainerError::Refused { .. }) => return Ok(Sent::Failed(error.to_string())),
            Err(error) => {
                // The daemon hands on what the registry said in the midst of its own answer.
                let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                return Ok(Sent::Failed(format!("{error}: {cause}")));
            }
        }
        match held(&asking.registry, id, tag) {
            Ok(Some(digest)) => Ok(Sent::Whole(digest)),
            Ok(None) => Ok(Sent::Failed(format!("the registry took `{tag}`, and has another image under it"))),
            Err(error) => failed(error),
        }
    }

    /// Lets the daemon send what it has under a tag; false if somebody gave up. The daemon ends what nobody waits for.
    fn push(&self, tag: &ImageTag) -> Result<bool, ContainerError> {
        let progress = Progress::new(self.context.terminal);
        ask(async {
            let daemon = Daemon::connect().await?;
            let say = |step: &str| progress.say(|| format!("sending {tag}: {step}"));
            let push = daemon.push_image(self.images, tag.as_str(), self.credentials, &say);
            tokio::pin!(push);
            loop {
                tokio::select! {
                    sent = &mut push => return sent.map(|()| true),
                    () = tokio::time::sleep(STEP) => {}
                }
                if self.cancel.load(Ordering::Relaxed) {
                    return Ok(false);
                }
            }
        })
    }
}

/// Returns a registry's momentary trouble as what became of one image, and all else as the command's error.
fn failed(error: RegistryError) -> Result<Sent, CommandError> {
    let is_momentary = matches!(
        error,
        RegistryError::Unreachable { .. }
            | RegistryError::Deadline { .. }
            | RegistryError::BrokenOff { .. }
            | RegistryError::Throttled { .. }
            | RegistryError::Status { status: 500.., .. }
    );
    if is_momentary { Ok(Sent::Failed(error.to_string())) } else { Err(registry::error(error)) }
}

/// Asks the registry itself whether a tag is of this image, and for the digest.
fn held(registry: &Registry, id: &str, tag: &ImageTag) -> Result<Option<String>, RegistryError> {
    let target = Target::Tag(tag.clone());
    let Some(found) = registry.manifest(&target)? else { return Ok(None) };
    let is_same = match found.read() {
        // An image's id is the digest of its configuration; newer stores of daemons take that of the manifest.
        Ok(Manifest::Image(image)) => image.config.digest.as_str() == id || found.digest.as_str() == id,
        Ok(Manifest::List(_)) | Err(_) => false,
    };
    Ok(is_same.then(|| found.digest.to_string()))
}
