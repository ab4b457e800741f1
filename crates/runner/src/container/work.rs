//! What a daemon is asked to do with images and containers.

use std::collections::{BTreeMap, HashMap};
use std::fs::{File, OpenOptions};
use std::future::Future;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bollard::container::{AttachContainerResults, LogOutput};
use bollard::errors::Error;
use bollard::exec::{CreateExecOptions, StartExecResults};
use bollard::models::{ContainerConfig, NetworkCreateRequest};
use bollard::query_parameters::{
    AttachContainerOptions, CommitContainerOptions, CreateContainerOptions, DownloadFromContainerOptions,
    KillContainerOptions, ListContainersOptions, LogsOptions, RemoveContainerOptions, StopContainerOptions,
    UploadToContainerOptions, WaitContainerOptions,
};
use futures_util::StreamExt as _;
use isobench_schema::container::ImageFacts;

use super::{ContainerError, ContainerOptions, Daemon};

/// How long a container may take from one state to the next.
const SETTLING: Duration = Duration::from_secs(10);
/// How often it is asked again meanwhile.
const STEP: Duration = Duration::from_millis(20);

/// The state of a container, as the daemon has it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerState {
    /// Its id.
    pub id: String,
    /// The id of its image.
    pub image_id: String,
    /// Whether it runs.
    pub running: bool,
    /// Its first process on this machine, if it runs.
    pub process: Option<u32>,
    /// How its first process ended, if it has.
    pub exit_code: Option<i64>,
    /// Whether the kernel killed something in it for want of memory.
    pub out_of_memory: bool,
    /// Why it couldn't be started.
    pub error: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
}

/// The longest name of an image, in bytes.
const LONGEST_NAME: usize = 512;
/// The status of what isn't there.
const NOT_FOUND: u16 = 404;
/// The most bytes that an answer of a container may have.
const MOST_SAID: usize = 64 << 20;

/// What a container says in answer to a question, in memory: a stranger's program may say more than there is room for.
#[derive(Debug, Default)]
pub(super) struct Said(pub(super) Vec<u8>);

impl Write for Said {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len().saturating_add(bytes.len()) > MOST_SAID {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("it says more than {MOST_SAID} bytes")));
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A command that ran in a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Executed {
    /// Its exit code.
    pub code: i64,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it wrote of errors.
    pub stderr: Vec<u8>,
}

/// Refuses what is no name of an image: names go into paths of the daemon's interface, which others than images have, too.
pub(super) fn check_name(name: &str) -> Result<(), ContainerError> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:@/".contains(&byte);
    let is_name = name.len() <= LONGEST_NAME
        && name.starts_with(|sign: char| sign.is_ascii_alphanumeric())
        && name.bytes().all(is_part)
        && !name.ends_with('/')
        && !name.contains("..")
        && !name.contains("//");
    if is_name {
        return Ok(());
    }
    let what = format!("show the image `{}`", name.escape_debug());
    Err(ContainerError::Refused { what, status: NOT_FOUND, message: "no image has such a name".to_owned() })
}

impl Daemon {
    /// Returns an image that is on this machine, with the variables that it brings along.
    ///
    /// # Errors
    /// Returns an error if it isn't there or the daemon doesn't answer.
    pub async fn image(&self, name: &str) -> Result<(ImageFacts, BTreeMap<String, String>), ContainerError> {
        check_name(name)?;
        let found = self.docker.inspect_image(name).await;
        let found = found.map_err(ContainerError::asked(format!("show the image `{name}`")))?;
        let variables = found.config.and_then(|config| config.env).unwrap_or_default();
        let pair = |line: &String| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut repo_digests = found.repo_digests.unwrap_or_default();
        repo_digests.sort();
        let id = found.id.unwrap_or_default();
        // Podman leaves the kind of the digest out.
        let id = if id.contains(':') || id.is_empty() { id } else { format!("sha256:{id}") };
        Ok((ImageFacts { name: name.to_owned(), id, repo_digests }, variables.iter().filter_map(pair).collect()))
    }

    /// Makes a container, and returns its id.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn create(&self, name: &str, options: &ContainerOptions) -> Result<String, ContainerError> {
        let query = CreateContainerOptions { name: Some(name.to_owned()), platform: String::new() };
        let made = self.docker.create_container(Some(query), options.body()).await;
        Ok(made.map_err(ContainerError::asked(format!("make a container of `{}`", options.image)))?.id)
    }

    /// Starts a container.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn start(&self, id: &str) -> Result<(), ContainerError> {
        self.docker.start_container(id, None).await.map_err(ContainerError::asked("start a container"))
    }

    /// Attaches to a container that isn't started yet: what is written goes to its first process, until this is dropped.
    pub(super) async fn attach(&self, id: &str) -> Result<AttachContainerResults, ContainerError> {
        let options = AttachContainerOptions {
            detach_keys: None,
            logs: false,
            stream: true,
            stdin: true,
            stdout: true,
            stderr: true,
        };
        self.docker.attach_container(id, Some(options)).await.map_err(ContainerError::asked("attach to a container"))
    }

    /// Runs a command in a running container to its end.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn exec(&self, id: &str, command: &[&str]) -> Result<Executed, ContainerError> {
        let what = || "run a command in a container";
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(command.to_vec()),
            ..CreateExecOptions::default()
        };
        let exec = self.docker.create_exec(id, options).await.map_err(ContainerError::asked(what()))?.id;
        let started = self.docker.start_exec(&exec, None).await.map_err(ContainerError::asked(what()))?;
        let (mut stdout, mut stderr) = (Said::default(), Said::default());
        if let StartExecResults::Attached { mut output, input: _ } = started {
            while let Some(chunk) = output.next().await {
                let chunk = chunk.map_err(ContainerError::asked(what()))?;
                write_chunk(&chunk, &mut stdout, &mut stderr).map_err(|source| file("the output", source))?;
            }
        }
        let ended = self.docker.inspect_exec(&exec).await.map_err(ContainerError::asked(what()))?;
        Ok(Executed { code: ended.exit_code.unwrap_or(-1), stdout: stdout.0, stderr: stderr.0 })
    }

    /// Unpacks a tar archive into a folder of a container.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn copy_in(&self, id: &str, folder: &str, archive: Vec<u8>) -> Result<(), ContainerError> {
        let options =
            UploadToContainerOptions { path: folder.to_owned(), no_overwrite_dir_non_dir: None, copy_uidgid: None };
        let sent = self.docker.upload_to_container(id, Some(options), bollard::body_full(archive.into())).await;
        sent.map_err(ContainerError::asked(format!("copy files to `{folder}` of a container")))
    }

    /// Writes a file or folder of a container as a tar archive.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer, or the archive can't be written.
    pub async fn copy_out(&self, id: &str, path: &str, mut archive: impl Write) -> Result<(), ContainerError> {
        let options = DownloadFromContainerOptions { path: path.to_owned() };
        let chunks = self.docker.download_from_container(id, Some(options));
        tokio::pin!(chunks);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(ContainerError::asked(format!("copy `{path}` out of a container")))?;
            archive.write_all(&chunk).map_err(|source| file(path, source))?;
        }
        Ok(())
    }

    /// Makes an image of a container's files, and returns the image's id.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn commit(&self, id: &str, repository: &str, tag: &str) -> Result<String, ContainerError> {
        let options = CommitContainerOptions {
            container: Some(id.to_owned()),
            repo: Some(repository.to_owned()),
            tag: Some(tag.to_owned()),
            pause: true,
            ..CommitContainerOptions::default()
        };
        let made = self.docker.commit_container(options, ContainerConfig::default()).await;
        Ok(made.map_err(ContainerError::asked(format!("commit a container as `{repository}:{tag}`")))?.id)
    }

    /// Writes everything that a container has written, and goes on to write it, until it ends.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer, or the files can't be written.
    pub async fn follow_logs(&self, id: &str, stdout: &Path, stderr: &Path) -> Result<(), ContainerError> {
        while self.look(id).await?.running {
            self.read_logs(id, Reading::UntilItEnds, (stdout, stderr)).await?;
        }
        self.read_logs_again(id, (stdout, stderr)).await
    }

    /// Reads the output of a container that has ended once more, and puts it in the place of what was followed: Podman loses
    /// lines to those who follow.
    pub(super) async fn read_logs_again(&self, id: &str, files: (&Path, &Path)) -> Result<(), ContainerError> {
        let again = [files.0, files.1].map(|path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".again");
            PathBuf::from(name)
        });
        let [stdout, stderr] = &again;
        self.read_logs(id, Reading::SoFar, (stdout, stderr)).await?;
        for (whole, path) in again.iter().zip([files.0, files.1]) {
            std::fs::rename(whole, path).map_err(|source| file(&path.to_string_lossy(), source))?;
        }
        Ok(())
    }

    /// Writes everything that a container writes to one file from a place on, until it ends, and once more then.
    pub(super) async fn follow_whole(&self, id: &str, log: (&Path, u64)) -> Result<(), ContainerError> {
        while self.look(id).await?.running {
            self.read_whole(id, Reading::UntilItEnds, log).await?;
        }
        self.read_whole(id, Reading::SoFar, log).await
    }

    async fn read_whole(&self, id: &str, reading: Reading, (log, since): (&Path, u64)) -> Result<(), ContainerError> {
        let failed = |source| file(&log.to_string_lossy(), source);
        let open = OpenOptions::new().create(true).append(true).open(log).map_err(failed)?;
        open.set_len(since).map_err(failed)?;
        self.read_into(id, reading, &open, &open).await
    }

    /// Writes a container's output from its beginning.
    async fn read_logs(&self, id: &str, reading: Reading, files: (&Path, &Path)) -> Result<(), ContainerError> {
        let create = |path: &Path| File::create(path).map_err(|source| file(&path.to_string_lossy(), source));
        self.read_into(id, reading, &create(files.0)?, &create(files.1)?).await
    }

    async fn read_into(&self, id: &str, reading: Reading, stdout: &File, stderr: &File) -> Result<(), ContainerError> {
        let options = LogsOptions {
            follow: reading == Reading::UntilItEnds,
            stdout: true,
            stderr: true,
            tail: "all".to_owned(),
            ..LogsOptions::default()
        };
        let chunks = self.docker.logs(id, Some(options));
        tokio::pin!(chunks);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(ContainerError::asked("tell what a container writes"))?;
            let written = write_chunk(&chunk, stdout, stderr);
            written.map_err(|source| file("the log of a container", source))?;
        }
        Ok(())
    }

    /// Waits until a container has ended, and returns its exit code.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn wait(&self, id: &str) -> Result<i64, ContainerError> {
        let options = WaitContainerOptions { condition: "not-running".to_owned() };
        let ends = self.docker.wait_container(id, Some(options));
        tokio::pin!(ends);
        match ends.next().await {
            Some(Ok(end)) => Ok(end.status_code),
            // The client takes every other code than 0 for an error.
            Some(Err(Error::DockerContainerWaitError { code, .. })) => Ok(code),
            Some(Err(error)) => Err(ContainerError::asked("wait for a container")(error)),
            None => Ok(self.look(id).await?.exit_code.unwrap_or(-1)),
        }
    }

    /// Returns the state of a container.
    ///
    /// # Errors
    /// Returns an error if there is none by that id or the daemon doesn't answer.
    pub async fn look(&self, id: &str) -> Result<ContainerState, ContainerError> {
        let found = settled("show a container", || self.docker.inspect_container(id, None)).await?;
        let state = found.state.unwrap_or_default();
        let running = state.running.unwrap_or(false);
        let image = found.image.unwrap_or_default();
        Ok(ContainerState {
            id: found.id.unwrap_or_else(|| id.to_owned()),
            image_id: if image.contains(':') { image } else { format!("sha256:{image}") },
            running,
            process: state.pid.and_then(|pid| u32::try_from(pid).ok()).filter(|pid| *pid > 0),
            exit_code: state.exit_code.filter(|_| !running),
            out_of_memory: state.oom_killed.unwrap_or(false),
            error: state.error.filter(|error| !error.is_empty()),
            labels: found.config.and_then(|config| config.labels).unwrap_or_default().into_iter().collect(),
        })
    }

    /// Asks a container to end, and kills it after the grace time.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn stop(&self, id: &str, grace: Duration) -> Result<(), ContainerError> {
        let seconds = i32::try_from(grace.as_secs()).unwrap_or(i32::MAX);
        let options = StopContainerOptions { signal: None, t: Some(seconds) };
        self.docker.stop_container(id, Some(options)).await.map_err(ContainerError::asked("stop a container"))
    }

    /// Kills a container. One that has ended isn't an error.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn kill(&self, id: &str) -> Result<(), ContainerError> {
        let options = KillContainerOptions { signal: "SIGKILL".to_owned() };
        match self.docker.kill_container(id, Some(options)).await.map_err(ContainerError::asked("kill a container")) {
            // Not found, or not running.
            Err(ContainerError::Refused { status: 404 | 409 | 500, .. }) | Ok(()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Removes a container with everything of it, also if it runs. One that is gone isn't an error.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn remove(&self, id: &str) -> Result<(), ContainerError> {
        let options = RemoveContainerOptions { force: true, v: true, link: false };
        match self.docker.remove_container(id, Some(options)).await.map_err(ContainerError::asked("remove a container"))
        {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        }
    }

    /// Returns the containers, running or not, that have a label: their ids and labels.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn labelled(&self, label: &str) -> Result<Vec<(String, BTreeMap<String, String>)>, ContainerError> {
        let filters = HashMap::from([("label".to_owned(), vec![label.to_owned()])]);
        let options = ListContainersOptions { all: true, filters: Some(filters), ..ListContainersOptions::default() };
        let found = settled("list containers", || self.docker.list_containers(Some(options.clone()))).await?;
        let named = |summary: bollard::models::ContainerSummary| {
            Some((summary.id?, summary.labels.unwrap_or_default().into_iter().collect()))
        };
        Ok(found.into_iter().filter_map(named).collect())
    }

    /// Makes a network that has no way out.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn create_internal_network(&self, name: &str) -> Result<(), ContainerError> {
        let request =
            NetworkCreateRequest { name: name.to_owned(), internal: Some(true), ..NetworkCreateRequest::default() };
        let made = self.docker.create_network(request).await;
        made.map(drop).map_err(ContainerError::asked(format!("make the network `{name}`")))
    }

    /// Removes a network. One that is gone isn't an error.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub async fn remove_network(&self, name: &str) -> Result<(), ContainerError> {
        let removed = self.docker.remove_network(name).await;
        match removed.map_err(ContainerError::asked(format!("remove the network `{name}`"))) {
            Err(error) if error.is_not_found() => Ok(()),
            other => other,
        }
    }
}

/// Asks until the answer can be read, for a while: between running and ended, Podman names states that Docker hasn't, and
/// that the client doesn't know.
async fn settled<T, A: Future<Output = Result<T, Error>>>(
    what: &str,
    mut ask: impl FnMut() -> A,
) -> Result<T, ContainerError> {
    let deadline = Instant::now() + SETTLING;
    loop {
        let answer = ask().await;
        if !matches!(answer, Err(Error::JsonDataError { .. })) || Instant::now() > deadline {
            return answer.map_err(ContainerError::asked(what));
        }
        tokio::time::sleep(STEP).await;
    }
}

/// How much of a container's output is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    /// What it has written so far.
    SoFar,
    /// That, and what it writes until it ends.
    UntilItEnds,
}

/// Writes a piece of a container's output to where it belongs.
pub(super) fn write_chunk(chunk: &LogOutput, mut stdout: impl Write, mut stderr: impl Write) -> io::Result<()> {
    match chunk {
        LogOutput::StdErr { message } => stderr.write_all(message),
        LogOutput::StdOut { message } | LogOutput::Console { message } => stdout.write_all(message),
        LogOutput::StdIn { .. } => Ok(()),
    }
}

/// Opens a file for a container's output.
pub(super) fn append(path: &Path) -> Result<File, ContainerError> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map_err(|source| file(&path.to_string_lossy(), source))
}

fn file(path: &str, source: io::Error) -> ContainerError {
    ContainerError::File { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_container_says_in_answer_has_a_bound() {
        let mut said = Said(vec![0; MOST_SAID - 3]);
        said.write_all(b"abc").unwrap();
        let error = said.write_all(b"d").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert_eq!(said.0.len(), MOST_SAID);
    }

    #[test]
    fn only_names_of_images_go_into_the_daemons_paths() {
        let hex = "a".repeat(64);
        for name in
            ["engine", "engine:1.0", "127.0.0.1:5000/team/engine:x_y", &format!("team/engine@sha256:{hex}"), &hex]
        {
            check_name(name).unwrap();
        }
        let long = "x".repeat(600);
        for name in
            ["", "--privileged", "x/../../events?a=", "../x", "a b", "bøokworm", "a//b", "a/", "x\u{1b}[2J", &long]
        {
            let refused = check_name(name).unwrap_err();
            assert!(refused.is_not_found() && !refused.to_string().contains('\u{1b}'), "{name}: {refused}");
        }
    }
}
