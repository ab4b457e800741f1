//! Why a daemon of containers can't do what it was asked to, and which failure of an arm that is.

use std::io;

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

/// What a daemon says, in part, when a container can't have the devices that were asked for.
const NO_DEVICE: &[&str] = &[
    "could not select device driver",
    "unresolvable CDI devices",
    "CDI device injection failed",
    "CDI devices requested",
    "error setting CDI devices",
    "nvidia-container-cli",
    "unknown or invalid runtime name: nvidia",
];

/// Why a daemon of containers didn't do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// There is no daemon.
    #[error("no daemon of containers answers; looked at {places}")]
    NoDaemon {
        /// The sockets that were tried, with what became of each.
        places: String,
    },
    /// `DOCKER_HOST` names a daemon that isn't on this machine.
    #[error("`DOCKER_HOST` is `{address}`; only a socket of this machine, `unix://PATH`, can be used")]
    Elsewhere {
        /// The address.
        address: String,
    },
    /// The daemon said no.
    #[error("the daemon of containers refused to {what}: {message}")]
    Refused {
        /// What it was asked.
        what: String,
        /// The HTTP status.
        status: u16,
        /// Its own words.
        message: String,
    },
    /// The daemon didn't answer, or not as it should.
    #[error("the daemon of containers couldn't be asked to {what}")]
    Unanswered {
        /// What it was asked.
        what: String,
        /// Why.
        #[source]
        source: Box<bollard::errors::Error>,
    },
    /// It took too long.
    #[error("the daemon of containers didn't {what} within {seconds} s")]
    TooLate {
        /// What it was asked.
        what: String,
        /// How long was waited.
        seconds: u64,
    },
    /// Docker's configuration can't tell with what a registry is asked.
    #[error("no credentials can be had to {what}: {message}")]
    Credentials {
        /// What they are for.
        what: String,
        /// Why.
        message: String,
    },
    /// Another image stands under the name that the plan has pinned.
    #[error("the image `{name}` is `{found}` on this machine, planned was `{planned}`")]
    OtherImage {
        /// Its name.
        name: String,
        /// Its id here.
        found: String,
        /// Its id in the plan.
        planned: String,
    },
    /// A file of this machine can't be used.
    #[error("failed to use `{path}` for a container")]
    File {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// No thread or runtime can be had for talking to the daemon.
    #[error("failed to start what talks to the daemon of containers")]
    Thread {
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl ContainerError {
    /// Returns a function that makes the error of a daemon that was asked to do `what`.
    pub(super) fn asked(what: impl Into<String>) -> impl FnOnce(bollard::errors::Error) -> Self {
        let what = what.into();
        move |error| {
            if let bollard::errors::Error::DockerResponseServerError { status_code, message } = error {
                Self::Refused { what, status: status_code, message: message.trim().to_owned() }
            } else {
                Self::Unanswered { what, source: Box::new(error) }
            }
        }
    }

    /// Returns whether the daemon refused for want of room on its disk.
    pub fn is_disk_full(&self) -> bool {
        matches!(self, Self::Refused { message, .. } if message.contains("no space left on device"))
    }

    /// Returns whether there is nothing by that name.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Returns the failure of an arm whose container was refused, with the daemon's words; an error that isn't the daemon's
    /// answer is given back.
    ///
    /// # Errors
    /// Returns the error if the daemon didn't answer at all.
    pub fn into_failure(self) -> Result<Failure, Self> {
        let Self::Refused { what, status, message } = self else { return Err(self) };
        let is_device = NO_DEVICE.iter().any(|part| message.contains(part));
        let line = EvidenceLine::new("container", None, &format!("status {status}: {message}"));
        let (class, text) = if is_device {
            let text = format!("the engine's container can't have the machine's devices: {message}");
            (FailureClass::DeviceUnavailable, text)
        } else {
            (FailureClass::ContainerRefused, format!("the daemon of containers refused to {what}: {message}"))
        };
        Ok(Failure::new(FailureStage::Start, class, text).with_evidence([line]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_want_of_a_device_has_a_class_of_its_own() {
        for (message, class) in [
            (r#"could not select device driver "" with capabilities: [[gpu]]"#, FailureClass::DeviceUnavailable),
            (
                "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=all",
                FailureClass::DeviceUnavailable,
            ),
            ("No such image: none:latest", FailureClass::ContainerRefused),
        ] {
            let refused =
                ContainerError::Refused { what: "start it".to_owned(), status: 500, message: message.to_owned() };
            let failure = refused.into_failure().unwrap();
            assert_eq!(failure.class, class);
            assert!(failure.evidence[0].text.contains(message), "{failure:?}");
        }
        let none = ContainerError::NoDaemon { places: String::new() };
        assert!(none.into_failure().is_err());
    }
}
