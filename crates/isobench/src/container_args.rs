//! The arguments that keep measured code from the rest of the machine, and what they mean.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use isobench_runner::container::{self, ContainerError, Daemon};
use isobench_schema::container::{ContainerLimits, ContainerSpec};

use crate::exit::{CommandError, Exit};

/// The fewest bytes of memory or shared memory that a container can be given: daemons refuse less.
const LEAST_BYTES: u64 = 6 << 20;

/// How measured code is kept from the rest of the machine.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Isolation")]
pub(crate) struct ContainerArgs {
    /// Run engines as bare processes, or each in a container of its own, which lets agent patches run.
    #[arg(long, value_enum, default_value_t)]
    isolation: IsolationArg,
    /// Make the containers of this image, which must be on this machine; the plan pins its digest. Tasks that bring images of
    /// their own don't need it.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Give each container so much memory and no swap, such as `32GiB`.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    container_memory: Option<u64>,
    /// Let each container run on these processors only, such as `0-7,16`.
    #[arg(long, value_name = "LIST", value_parser = processors)]
    container_processors: Option<String>,
    /// Give each container so much shared memory, such as `16GiB`.
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    container_shm: Option<u64>,
    /// Let each container have so many processes and threads.
    #[arg(long, value_name = "N", default_value_t = PROCESSES)]
    container_processes: u64,
    /// Give containers this device by its CDI name, such as `nvidia.com/gpu=all`, in the place of all GPUs (repeatable).
    #[arg(long = "container-device", value_name = "NAME")]
    container_devices: Vec<String>,
    /// Allow the system calls of this profile, as Docker reads it, in the place of the daemon's own.
    #[arg(long, value_name = "FILE")]
    container_seccomp: Option<PathBuf>,
}

/// Whether tasks bring the images that their engines run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BroughtImages {
    /// None does.
    None,
    /// Some do.
    Some,
}

/// Processes and threads of a container unless it is said: more than engines have, fewer than a machine bears.
const PROCESSES: u64 = 32_768;

/// How far measured code is kept from the rest of the machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum IsolationArg {
    /// A bare process.
    #[default]
    None,
    /// A container.
    Container,
}

fn bytes(text: &str) -> Result<u64, String> {
    let unit = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let factor = match unit.trim() {
        "" | "B" => 1,
        "KiB" | "k" | "K" => 1 << 10,
        "MiB" | "m" | "M" => 1 << 20,
        "GiB" | "g" | "G" => 1 << 30,
        _ => 0,
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(factor));
    bytes
        .filter(|bytes| *bytes >= LEAST_BYTES)
        .ok_or_else(|| "give at least 6MiB, in bytes, KiB, MiB or GiB".to_owned())
}

fn processors(text: &str) -> Result<String, String> {
    let number = |text: &str| text.parse::<u32>().ok();
    let is_part = |part: &str| match part.split_once('-') {
        Some((first, last)) => number(first).zip(number(last)).is_some_and(|(first, last)| first <= last),
        None => number(part).is_some(),
    };
    if text.split(',').all(is_part) {
        Ok(text.to_owned())
    } else {
        Err("give numbers and ranges, such as `0-7,16`".to_owned())
    }
}

impl ContainerArgs {
    /// Returns what containers are made with; `None` for bare processes. The image is looked up, so that the plan can pin it.
    ///
    /// # Errors
    /// Returns an error if the arguments contradict each other, no daemon answers, or the image isn't there.
    pub(crate) fn meant(&self, brought: BroughtImages) -> Result<Option<ContainerSpec>, CommandError> {
        match (self.isolation, &self.image) {
            (IsolationArg::None, None) if self.says_nothing() => Ok(None),
            (IsolationArg::None, _) => {
                let message =
                    "`--image` and `--container-..` are for containers, and engines would run as bare processes";
                Err(CommandError::new(Exit::Usage, message).hint("give `--isolation container` as well"))
            }
            (IsolationArg::Container, None) if brought == BroughtImages::Some => self.spec(None).map(Some),
            (IsolationArg::Container, None) => {
                let message =
                    "`--isolation container` needs the image that containers are made of, as no task brings one";
                Err(CommandError::new(Exit::Usage, message).hint("name one of `docker images` with `--image IMAGE`"))
            }
            (IsolationArg::Container, Some(image)) => self.spec(Some(image)).map(Some),
        }
    }

    fn says_nothing(&self) -> bool {
        self.container_memory.is_none()
            && self.container_processors.is_none()
            && self.container_shm.is_none()
            && self.container_devices.is_empty()
            && self.container_seccomp.is_none()
    }

    fn spec(&self, image: Option<&str>) -> Result<ContainerSpec, CommandError> {
        let seccomp = self.container_seccomp.as_ref().map(|path| {
            std::fs::read_to_string(path)
                .map_err(|error| CommandError::new(Exit::Usage, format!("cannot read `{}`: {error}", path.display())))
        });
        let seccomp = seccomp.transpose()?;
        let found = image.map(|image| {
            let found = container::ask(async { Daemon::connect().await?.image(image).await });
            found.map(|(image, _)| image).map_err(|error| {
                let next = next_step(&error);
                CommandError::from_error(Exit::Machine, error).hint(next)
            })
        });
        let image = found.transpose()?;
        let limits = ContainerLimits {
            memory_bytes: self.container_memory,
            processors: self.container_processors.clone(),
            processes: Some(self.container_processes),
            shared_memory_bytes: self.container_shm,
        };
        Ok(ContainerSpec { image, limits, devices: self.container_devices.clone(), seccomp })
    }
}

/// Returns what to do about an error of containers.
pub(crate) fn next_step(error: &ContainerError) -> &'static str {
    match error {
        ContainerError::NoDaemon { .. } | ContainerError::Elsewhere { .. } => {
            "start docker or podman's service on this machine, and name its socket with `DOCKER_HOST=unix://PATH`"
        }
        ContainerError::Refused { status: 404, .. } => {
            "pull or load the image on this machine, and look with `docker images`"
        }
        ContainerError::Credentials { .. } => {
            "mend Docker's configuration, or set DOCKER_CONFIG to a folder without one to ask as nobody"
        }
        ContainerError::OtherImage { .. } => "pull the planned image by its digest, or make the plan again",
        ContainerError::Refused { .. }
        | ContainerError::Unanswered { .. }
        | ContainerError::TooLate { .. }
        | ContainerError::File { .. }
        | ContainerError::Thread { .. } => {
            "`isobench doctor` says what the daemon of this machine is; its own log says more"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_processors_are_read_as_they_are_meant() {
        for (text, expected) in [
            ("64MiB", Some(64 << 20)),
            ("2g", Some(2 << 30)),
            ("8388608", Some(8 << 20)),
            ("1MiB", None),
            ("64MB", None),
            ("-1", None),
            ("99999999999GiB", None),
        ] {
            assert_eq!(bytes(text).ok(), expected, "{text}");
        }
        for (text, is_right) in [("0", true), ("0-3,8", true), ("3-0", false), ("", false), ("all", false)] {
            assert_eq!(processors(text).is_ok(), is_right, "{text}");
        }
    }

    #[test]
    fn an_image_without_containers_is_a_mistake() {
        let with = |isolation, image: Option<&str>| {
            ContainerArgs { isolation, image: image.map(str::to_owned), ..ContainerArgs::default() }
                .meant(BroughtImages::None)
        };
        assert_eq!(with(IsolationArg::None, None).unwrap(), None);
        for mistake in [with(IsolationArg::None, Some("base")), with(IsolationArg::Container, None)] {
            assert_eq!(mistake.unwrap_err().exit, Exit::Usage);
        }
    }
}
