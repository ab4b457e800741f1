//! Containers, over the API that Docker's and Podman's daemons serve on a socket of this machine.
//!
//! A daemon is asked for everything but the proof: what runs in a container is looked at from outside, by the files that
//! this machine's kernel has of its processes.

mod build;
mod daemon;
mod error;
mod held;
mod host;
mod image_build;
mod image_proof;
pub mod init;
mod init_files;
mod keeper;
mod labels;
mod limits;
mod load;
mod login;
mod once;
mod options;
mod proven;
mod pull;
mod room;
mod sweep;
mod tree_archive;
mod watched;
mod work;

use std::future::Future;

pub(crate) use build::{BuildCommand, run_build};
pub use daemon::Daemon;
pub(crate) use daemon::with_cause;
pub use error::ContainerError;
pub use held::{HeldImage, ImageRemoved};
pub(crate) use host::{Asked, ContainerHost};
pub use image_build::{BuildImageError, BuiltImage, IMAGE_LABEL, ImageBuild, Say, build_image};
pub use load::{ImageSource, LoadImageError, LoadWatch};
pub use login::with_login;
pub(crate) use once::Asking;
pub use options::{ContainerOptions, Devices, Input, Log, Network, RootFiles, Ulimit};
pub use proven::ProvenImage;
pub(crate) use pull::{PullWatch, Pulled};
pub use room::{DaemonDisk, NoRoom};
pub use sweep::{Swept, sweep};
pub(crate) use watched::Ended;
pub use work::{ContainerState, Executed};

/// Runs a question to a daemon to its end, from a thread that has no runtime.
///
/// # Errors
/// Returns the question's own error, or that of a runtime that can't be made.
pub fn ask<T>(question: impl Future<Output = Result<T, ContainerError>>) -> Result<T, ContainerError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(|source| ContainerError::Thread { source })?.block_on(question)
}
