//! What a registry has under a tag: digest, sizes, layers and platforms, or why that can't be told.

use isobench_schema::images::{ImageFound, ImageState};

use super::error::RegistryError;
use super::manifest::{ImageConfig, ImageManifest, ListedManifest, Manifest};
use super::platform::Platform;
use super::reference::Target;
use super::registry::{FetchedManifest, Registry};

/// The longest configuration of an image, in bytes.
pub(super) const LONGEST_CONFIG: u64 = 8 << 20;

/// The image that serves a platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChosenImage {
    /// Its manifest.
    pub fetched: FetchedManifest,
    /// What it is made of.
    pub manifest: ImageManifest,
}

/// What stands where an image was looked for.
enum Stands {
    Image(ChosenImage),
    OtherPlatforms(Vec<String>),
    Unreadable(String),
}

impl Registry {
    /// Looks at what a tag or digest names. What is there and can't be used is an answer, not an error.
    ///
    /// # Errors
    /// Returns an error if the registry can't be asked, refuses, or lets one ask no more.
    pub fn look(&self, target: &Target, platform: &Platform) -> Result<ImageFound, RegistryError> {
        let found = self.look_at(target, platform).map_err(|error| self.http.without_secrets(error))?;
        Ok(ImageFound { reason: self.http.hide(&found.reason), ..found })
    }

    fn look_at(&self, target: &Target, platform: &Platform) -> Result<ImageFound, RegistryError> {
        let named = match self.manifest(target) {
            Ok(Some(named)) => named,
            Ok(None) => return Ok(missing()),
            Err(error) => return unreadable(error),
        };
        let found = ImageFound { digest: Some(named.digest.clone()), ..ImageFound::only(ImageState::Unreadable, "") };
        let stands = match self.choose(named, platform) {
            Ok(stands) => stands,
            Err(error) => Stands::Unreadable(unreadable(error)?.reason),
        };
        Ok(match stands {
            Stands::Unreadable(reason) => ImageFound { reason, ..found },
            Stands::OtherPlatforms(platforms) => other_platforms(found, platforms, platform),
            Stands::Image(image) => self.described(found, &image, platform)?,
        })
    }

    /// Fetches the manifest of the image that serves a platform; none if the registry has no such tag.
    ///
    /// # Errors
    /// Returns an error as [`Registry::look`], and if what is there is no image for the platform.
    pub fn image(&self, target: &Target, platform: &Platform) -> Result<Option<ChosenImage>, RegistryError> {
        self.serving_image(target, platform).map_err(|error| self.http.without_secrets(error))
    }

    fn serving_image(&self, target: &Target, platform: &Platform) -> Result<Option<ChosenImage>, RegistryError> {
        let Some(named) = self.manifest(target)? else { return Ok(None) };
        let address = self.manifest_address(target)?.to_string();
        match self.choose(named, platform)? {
            Stands::Image(image) => Ok(Some(image)),
            Stands::OtherPlatforms(platforms) => {
                let why = format!("it has no image for {platform}, but for {}", platforms.join(", "));
                Err(RegistryError::NotARegistry { address, why })
            }
            Stands::Unreadable(why) => Err(RegistryError::NotARegistry { address, why }),
        }
    }

    fn choose(&self, named: FetchedManifest, platform: &Platform) -> Result<Stands, RegistryError> {
        match named.read() {
            Err(why) => Ok(Stands::Unreadable(why)),
            Ok(Manifest::Image(manifest)) => Ok(Stands::Image(ChosenImage { fetched: named, manifest })),
            Ok(Manifest::List(list)) => {
                let Some(listed) = serving(&list, platform) else {
                    return Ok(Stands::OtherPlatforms(platforms(&list)));
                };
                let digest = listed.manifest.digest.clone();
                let Some(fetched) = self.manifest(&Target::Digest(digest.clone()))? else {
                    let why = format!("its list names `{digest}` for {platform}, which isn't there");
                    return Ok(Stands::Unreadable(why));
                };
                Ok(match fetched.read() {
                    Ok(Manifest::Image(manifest)) => Stands::Image(ChosenImage { fetched, manifest }),
                    Ok(Manifest::List(_)) => Stands::Unreadable(format!("`{digest}` in its list is a list again")),
                    Err(why) => Stands::Unreadable(why),
                })
            }
        }
    }

    /// Adds what an image says of itself.
    fn described(
        &self,
        found: ImageFound,
        image: &ChosenImage,
        platform: &Platform,
    ) -> Result<ImageFound, RegistryError> {
        let found = ImageFound {
            manifest: Some(image.fetched.digest.clone()),
            config: Some(image.manifest.config.digest.clone()),
            bytes: image.manifest.bytes(),
            layers: image.manifest.layers.clone(),
            ..found
        };
        let part = &image.manifest.config;
        if part.bytes > LONGEST_CONFIG {
            let reason = format!("its configuration is {} bytes long, more than {LONGEST_CONFIG}", part.bytes);
            return Ok(ImageFound { reason, ..found });
        }
        let mut bytes = Vec::new();
        let config = match self.blob(part, &mut bytes, &|_| ()) {
            Ok(()) => ImageConfig::read(&bytes),
            Err(error) => Err(unreadable(error)?.reason),
        };
        let config = match config {
            Ok(config) => config,
            Err(reason) => return Ok(ImageFound { reason, ..found }),
        };
        let found = ImageFound { created: config.created, claimed_revision: config.revision, ..found };
        if !platform.accepts(&config.platform) {
            return Ok(other_platforms(found, vec![config.platform.to_string()], platform));
        }
        Ok(ImageFound {
            state: ImageState::Present,
            reason: "it is there".to_owned(),
            platforms: vec![config.platform.to_string()],
            ..found
        })
    }
}

/// Returns the answer that there is no such tag.
pub fn missing() -> ImageFound {
    ImageFound::only(ImageState::Missing, "the registry answers that it has no such tag")
}

fn other_platforms(found: ImageFound, platforms: Vec<String>, platform: &Platform) -> ImageFound {
    let there = if platforms.is_empty() { "none that it names".to_owned() } else { platforms.join(", ") };
    let reason = format!("it is there for {there}, and not for {platform}");
    ImageFound { state: ImageState::OtherPlatform, reason, platforms, ..found }
}

/// Turns the error of an image that is there and broken into an answer; errors of the registry stay errors.
fn unreadable(error: RegistryError) -> Result<ImageFound, RegistryError> {
    match &error {
        RegistryError::OtherBytes { .. }
        | RegistryError::OtherSize { .. }
        | RegistryError::TooLong { .. }
        | RegistryError::NotARegistry { .. }
        | RegistryError::OtherPlatform { .. }
        | RegistryError::LeadsElsewhere { .. }
        | RegistryError::Address { .. } => Ok(ImageFound::only(ImageState::Unreadable, error.to_string())),
        RegistryError::Status { status: 404, .. } => {
            Ok(ImageFound::only(ImageState::Unreadable, "a part of it isn't there"))
        }
        RegistryError::Unreachable { .. }
        | RegistryError::Deadline { .. }
        | RegistryError::BrokenOff { .. }
        | RegistryError::Refused { .. }
        | RegistryError::NoRepository { .. }
        | RegistryError::Throttled { .. }
        | RegistryError::Status { .. }
        | RegistryError::Endless { .. }
        | RegistryError::NoRoom { .. }
        | RegistryError::Folder { .. }
        | RegistryError::Layout { .. }
        | RegistryError::NoAuthorities => Err(error),
    }
}

fn serving<'l>(list: &'l [ListedManifest], platform: &Platform) -> Option<&'l ListedManifest> {
    list.iter().find(|listed| listed.platform.as_ref().is_some_and(|other| platform.accepts(other)))
}

fn platforms(list: &[ListedManifest]) -> Vec<String> {
    let known = list.iter().filter_map(|listed| listed.platform.as_ref()).filter(|platform| !platform.is_unknown());
    known.map(ToString::to_string).collect()
}
