//! What can go wrong when a registry is asked.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use isobench_schema::ids::ImageDigest;
use isobench_schema::units::size_text;

use super::address::AddressError;

/// Why a registry can't be asked, or what it answers can't be used.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// Nobody answers.
    #[error("`{address}` can't be reached")]
    Unreachable {
        /// What was asked.
        address: String,
        /// Why.
        #[source]
        source: Box<ureq::Error>,
    },
    /// It took too long.
    #[error("`{address}` didn't answer in time: {what} took longer than {}", seconds(.allowed))]
    Deadline {
        /// What was asked.
        address: String,
        /// What took so long.
        what: &'static str,
        /// How long it might have taken.
        allowed: Duration,
    },
    /// An answer broke off.
    #[error("the answer of `{address}` broke off after {got} bytes")]
    BrokenOff {
        /// What was asked.
        address: String,
        /// The bytes that came.
        got: u64,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It doesn't know the credentials, or wants some.
    #[error("`{registry}` refuses {what}: {said}")]
    Refused {
        /// The registry.
        registry: String,
        /// What was asked.
        what: String,
        /// What it said.
        said: String,
    },
    /// It has no such repository.
    #[error("`{registry}` has no repository `{repository}`, or doesn't show it: {said}")]
    NoRepository {
        /// The registry.
        registry: String,
        /// The repository.
        repository: String,
        /// What it said.
        said: String,
    },
    /// It lets one ask no more for now.
    #[error("`{registry}` lets one ask no more for now{}: {said}", wait(.retry_after.as_ref()))]
    Throttled {
        /// The registry.
        registry: String,
        /// How long it wants one to wait.
        retry_after: Option<Duration>,
        /// What it said.
        said: String,
    },
    /// It answered with an error.
    #[error("`{address}` answers with status {status}: {said}")]
    Status {
        /// What was asked.
        address: String,
        /// The status.
        status: u16,
        /// What it said.
        said: String,
    },
    /// Too much of an answer.
    #[error("the answer of `{address}` is longer than {limit} bytes")]
    TooLong {
        /// What was asked.
        address: String,
        /// The most that is read.
        limit: u64,
    },
    /// Pages that never end.
    #[error("the list of `{address}` doesn't end: {why}")]
    Endless {
        /// What was asked.
        address: String,
        /// How that was noticed.
        why: String,
    },
    /// It leads to another host, where credentials must not go.
    #[error("`{address}` leads to `{target}`, {why}")]
    LeadsElsewhere {
        /// What was asked.
        address: String,
        /// Where it leads.
        target: String,
        /// Why nobody goes there.
        why: &'static str,
    },
    /// An address that may not be asked.
    #[error("`{address}` names an address that isn't asked")]
    Address {
        /// What was asked.
        address: String,
        /// Why.
        #[source]
        source: AddressError,
    },
    /// It isn't what a registry answers.
    #[error("the answer of `{address}` isn't a registry's: {why}")]
    NotARegistry {
        /// What was asked.
        address: String,
        /// What is wrong with it.
        why: String,
    },
    /// The bytes aren't those that were named.
    #[error("`{address}` gave other bytes than it names: {expected} was asked for, and {found} came")]
    OtherBytes {
        /// What was asked.
        address: String,
        /// The digest that was asked for.
        expected: ImageDigest,
        /// The digest of what came.
        found: ImageDigest,
    },
    /// A blob of another size.
    #[error("`{address}` gave {found} bytes of {digest}, which has {expected}")]
    OtherSize {
        /// What was asked.
        address: String,
        /// The blob.
        digest: ImageDigest,
        /// Its size.
        expected: u64,
        /// What came.
        found: u64,
    },
    /// An image for other machines.
    #[error("the image {digest} is for {found}, and {asked} is asked for")]
    OtherPlatform {
        /// The image's manifest.
        digest: ImageDigest,
        /// The platform that its configuration names.
        found: String,
        /// The platform that was asked for.
        asked: String,
    },
    /// The disk is too small.
    #[error("{} are to be fetched into `{path}`, and its disk has {} free", size_text(*.needed), size_text(*.free))]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// What is to be fetched, in bytes.
        needed: u64,
        /// What is free, in bytes.
        free: u64,
    },
    /// A folder of images can't be used.
    #[error("cannot {what} `{path}`")]
    Folder {
        /// What was tried.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// What a folder of images holds isn't what it should be.
    #[error("`{path}` isn't an image as OCI lays it out: {why}")]
    Layout {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// TLS can't be set up.
    #[error("no certificate of an authority is known on this machine")]
    NoAuthorities,
}

impl RegistryError {
    /// Changes every text that may hold words of the other side.
    pub(super) fn map_texts(mut self, change: &dyn Fn(&str) -> String) -> Self {
        let texts: Vec<&mut String> = match &mut self {
            Self::Unreachable { address, .. }
            | Self::Deadline { address, .. }
            | Self::BrokenOff { address, .. }
            | Self::TooLong { address, .. }
            | Self::Address { address, .. }
            | Self::OtherBytes { address, .. }
            | Self::OtherSize { address, .. } => vec![address],
            Self::Refused { said, .. } | Self::NoRepository { said, .. } | Self::Throttled { said, .. } => vec![said],
            Self::Status { address, said: other, .. }
            | Self::Endless { address, why: other }
            | Self::LeadsElsewhere { address, target: other, .. }
            | Self::NotARegistry { address, why: other } => vec![address, other],
            Self::Layout { why, .. } => vec![why],
            Self::OtherPlatform { found, .. } => vec![found],
            Self::NoRoom { .. } | Self::Folder { .. } | Self::NoAuthorities => Vec::new(),
        };
        for text in texts {
            *text = change(text);
        }
        self
    }

    /// Returns whether the registry's certificate isn't trusted.
    pub fn is_distrust(&self) -> bool {
        let Self::Unreachable { source, .. } = self else { return false };
        matches!(**source, ureq::Error::Rustls(rustls::Error::InvalidCertificate(_)))
            || source.to_string().contains("invalid peer certificate")
    }
}

fn seconds(duration: &Duration) -> String {
    format!("{} s", duration.as_secs_f64())
}

fn wait(retry_after: Option<&Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| format!(", and wants one to wait {} s", wait.as_secs()))
}
