//! Images in registries: how they are named, whether they are there, what they take, and fetching and sending them.
//!
//! Nothing here needs a container engine. Every request has deadlines and every answer a bound; lists are read to their end, and
//! one that has none is an error; credentials come from Docker's configuration and are never shown.

mod address;
mod authorities;
mod blobs;
mod challenge;
mod docker_config;
mod error;
mod http;
mod hub;
mod layout;
mod limits;
mod look;
mod manifest;
mod platform;
mod reference;
mod registry;
mod secret;
mod stored;
mod tags;

pub use address::{Address, AddressError};
pub use authorities::{Authorities, AuthoritiesError};
pub use blobs::Sent;
pub use docker_config::{CredentialsError, DockerConfig};
pub use error::RegistryError;
pub use http::{Notice, Patience};
pub use hub::{HUB, HubTags, hub_tags};
pub use layout::{Layout, Moved, Progress};
pub use look::{ChosenImage, missing};
pub use manifest::{ImageManifest, ListedManifest, Manifest};
pub use platform::{Platform, PlatformError};
pub use reference::{ReferenceError, Repository, Target, parse_reference};
pub use registry::{FetchedManifest, Head, Registry};
pub use secret::{Credentials, Secret};
pub use stored::StoredImage;
pub use tags::Tags;
