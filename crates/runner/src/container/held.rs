//! The images that a daemon holds: listed by label, committed, named, removed, and sent to registries.

use std::collections::{BTreeMap, HashMap};

use bollard::auth::DockerCredentials;
use bollard::models::ContainerConfig;
use bollard::query_parameters::{
    CommitContainerOptions, ListImagesOptions, PushImageOptions, RemoveImageOptions, TagImageOptions,
};
use futures_util::StreamExt as _;

use super::work::check_name;
use super::{ContainerError, Daemon};
use crate::images::{Credentials, Repository};

/// An image that a daemon holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HeldImage {
    /// Its id.
    pub id: String,
    /// Its names, `REPOSITORY:TAG`.
    pub names: Vec<String>,
    /// What it takes with all its layers, which others may share.
    pub bytes: u64,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// What an image does when nothing else is said: a build must leave it as it was.
#[derive(Debug, Clone, Default)]
pub(super) struct Manners {
    pub(super) entry: Vec<String>,
    pub(super) command: Vec<String>,
    pub(super) user: String,
}

/// Whether an image could be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageRemoved {
    /// It is gone.
    Gone,
    /// A container or another image needs it.
    Used,
}

impl Daemon {
    /// Returns the images that have a label, the oldest first.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn held_images(&self, label: &str) -> Result<Vec<HeldImage>, ContainerError> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let options = ListImagesOptions { filters: Some(filters), ..ListImagesOptions::default() };
        let found = self.docker.list_images(Some(options)).await.map_err(ContainerError::asked("list images"))?;
        let held = |summary: bollard::models::ImageSummary| HeldImage {
            id: whole_id(summary.id),
            names: summary.repo_tags.into_iter().filter(|name| !name.contains("<none>")).collect(),
            bytes: u64::try_from(summary.size).unwrap_or(0),
            created: u64::try_from(summary.created).unwrap_or(0),
            labels: summary.labels.into_iter().collect(),
        };
        let mut held: Vec<HeldImage> = found.into_iter().map(held).collect();
        held.sort_by(|one, other| (one.created, &one.id).cmp(&(other.created, &other.id)));
        Ok(held)
    }

    /// Returns what an image does when nothing else is said.
    pub(super) async fn manners(&self, name: &str) -> Result<Manners, ContainerError> {
        check_name(name)?;
        let found = self.docker.inspect_image(name).await;
        let config = found.map_err(ContainerError::asked(format!("show the image `{name}`")))?.config;
        let config = config.unwrap_or_default();
        Ok(Manners {
            entry: config.entrypoint.unwrap_or_default(),
            command: config.cmd.unwrap_or_default(),
            user: config.user.unwrap_or_default(),
        })
    }

    /// Makes an image without a name of a container's files, changed by these instructions, and returns its id.
    pub(super) async fn commit_unnamed(&self, id: &str, changes: &[String]) -> Result<String, ContainerError> {
        let options = CommitContainerOptions {
            container: Some(id.to_owned()),
            changes: Some(changes.join("\n")),
            pause: true,
            ..CommitContainerOptions::default()
        };
        let made = self.docker.commit_container(options, ContainerConfig::default()).await;
        Ok(whole_id(made.map_err(ContainerError::asked("commit a container"))?.id))
    }

    /// Gives an image one more name; another image that has it loses it.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn name_image(&self, id: &str, repository: &str, tag: &str) -> Result<(), ContainerError> {
        let options = TagImageOptions { repo: Some(repository.to_owned()), tag: Some(tag.to_owned()) };
        let named = self.docker.tag_image(id, Some(options)).await;
        named.map_err(ContainerError::asked(format!("name an image `{repository}:{tag}`")))
    }

    /// Removes an image with all its names, unless something needs it.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses for another reason or doesn't answer.
    pub async fn remove_image(&self, image: &HeldImage) -> Result<ImageRemoved, ContainerError> {
        let options = RemoveImageOptions { force: false, noprune: false, platforms: None };
        // Without its last name an image goes by itself, and is gone when it is asked for by its id.
        for name in image.names.iter().chain([&image.id]) {
            let removed = self.docker.remove_image(name, Some(options.clone()), None).await;
            match removed.map_err(ContainerError::asked(format!("remove the image `{name}`"))) {
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(ContainerError::Refused { status: 409, .. }) => return Ok(ImageRemoved::Used),
                Err(error) => return Err(error),
            }
        }
        Ok(ImageRemoved::Gone)
    }

    /// Takes a name by digest from an image, which goes with its last one, unless something needs it.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses for another reason or doesn't answer.
    pub(crate) async fn release_image(&self, reference: &str) -> Result<ImageRemoved, ContainerError> {
        let options = RemoveImageOptions { force: false, noprune: false, platforms: None };
        let removed = self.docker.remove_image(reference, Some(options), None).await;
        match removed.map_err(ContainerError::asked(format!("remove the image `{reference}`"))) {
            Ok(_) => Ok(ImageRemoved::Gone),
            Err(error) if error.is_not_found() => Ok(ImageRemoved::Gone),
            Err(ContainerError::Refused { status: 409, .. }) => Ok(ImageRemoved::Used),
            Err(error) => Err(error),
        }
    }

    /// Returns what an image takes with all its layers, in bytes.
    pub(crate) async fn image_bytes(&self, name: &str) -> Result<u64, ContainerError> {
        let found = self.docker.inspect_image(name).await;
        let found = found.map_err(ContainerError::asked(format!("show the image `{name}`")))?;
        Ok(found.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0))
    }

    /// Sends an image to the registry that its name is of. What stands there then is to be asked of the registry itself.
    ///
    /// # Errors
    /// Returns an error if the daemon or the registry refuses, or the daemon doesn't answer.
    pub async fn push_image(
        &self,
        repository: &Repository,
        tag: &str,
        credentials: Option<&Credentials>,
        progress: &dyn Fn(&str),
    ) -> Result<(), ContainerError> {
        let what = format!("push `{repository}:{tag}`");
        let options = PushImageOptions { tag: Some(tag.to_owned()), platform: None };
        let credentials = credentials.map(|credentials| revealed(credentials, repository.registry()));
        let name = repository.to_string();
        let steps = self.docker.push_image(&name, Some(options), credentials);
        tokio::pin!(steps);
        while let Some(step) = steps.next().await {
            let step = step.map_err(ContainerError::asked(what.clone()))?;
            if let Some(error) = step.error_detail {
                let message = error.message.unwrap_or_default();
                return Err(ContainerError::Refused { what, status: 500, message });
            }
            progress(&step.status.unwrap_or_default());
        }
        Ok(())
    }
}

pub(super) fn revealed(credentials: &Credentials, registry: &str) -> DockerCredentials {
    let mut shown = DockerCredentials { serveraddress: Some(registry.to_owned()), ..DockerCredentials::default() };
    match credentials {
        Credentials::Password { user, password } => {
            shown.username = Some(user.clone());
            shown.password = Some(password.reveal().to_owned());
        }
        Credentials::IdentityToken(token) => shown.identitytoken = Some(token.reveal().to_owned()),
    }
    shown
}

/// Podman leaves the kind of the digest out.
fn whole_id(id: String) -> String {
    if id.contains(':') || id.is_empty() { id } else { format!("sha256:{id}") }
}
