//! Short questions to an image: a command that runs in it to its end, and a folder that is copied out of it.

use std::future::Future;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bollard::query_parameters::LogsOptions;
use futures_util::StreamExt as _;

use super::labels::labels;
use super::options::Log;
use super::work::{Said, write_chunk};
use super::{ContainerError, ContainerOptions, Daemon, Executed};

/// How many containers this process has made for questions.
static MADE: AtomicU64 = AtomicU64::new(0);

/// Whose a container for a question is, and how long it may live.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asking<'a> {
    /// The mark of the run.
    pub(crate) marker: &'a str,
    /// The deadline.
    pub(crate) timeout: Duration,
}

impl Asking<'_> {
    fn name(&self) -> String {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        format!("isobench-{}-{}-asked-{number}", self.marker, std::process::id())
    }

    async fn within<T>(
        &self,
        what: &str,
        question: impl Future<Output = Result<T, ContainerError>>,
    ) -> Result<T, ContainerError> {
        let late = |_elapsed| ContainerError::TooLate { what: what.to_owned(), seconds: self.timeout.as_secs() };
        tokio::time::timeout(self.timeout, question).await.map_err(late)?
    }
}

impl Daemon {
    /// Runs a container to its end, and removes it.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer, or the command takes too long.
    pub(crate) async fn run_once(
        &self,
        mut options: ContainerOptions,
        asking: Asking<'_>,
    ) -> Result<Executed, ContainerError> {
        options.labels = labels(asking.marker, asking.timeout);
        options.log = Log::Bounded;
        let id = self.create(&asking.name(), &options).await?;
        let ran = asking.within("run a command in a container", async {
            self.start(&id).await?;
            let code = self.wait(&id).await?;
            let (stdout, stderr) = self.written(&id).await?;
            Ok(Executed { code, stdout, stderr })
        });
        let ran = ran.await;
        self.remove(&id).await?;
        ran
    }

    /// Writes a file or folder of an image as a tar archive. Nothing of the image runs.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer, the archive can't be written, or it takes too long.
    pub(crate) async fn copy_out_of_image(
        &self,
        (image, path): (&str, &str),
        archive: &Path,
        asking: Asking<'_>,
    ) -> Result<(), ContainerError> {
        let options = ContainerOptions {
            image: image.to_owned(),
            command: vec!["/nothing".to_owned()],
            labels: labels(asking.marker, asking.timeout),
            ..ContainerOptions::default()
        };
        let file = |source| ContainerError::File { path: archive.to_string_lossy().into_owned(), source };
        let out = std::fs::File::create(archive).map_err(file)?;
        let id = self.create(&asking.name(), &options).await?;
        let copied = asking.within("copy a folder out of an image", self.copy_out(&id, path, out)).await;
        self.remove(&id).await?;
        copied
    }

    /// Returns what a container that has ended wrote.
    async fn written(&self, id: &str) -> Result<(Vec<u8>, Vec<u8>), ContainerError> {
        let options = LogsOptions { stdout: true, stderr: true, tail: "all".to_owned(), ..LogsOptions::default() };
        let chunks = self.docker.logs(id, Some(options));
        tokio::pin!(chunks);
        let (mut stdout, mut stderr) = (Said::default(), Said::default());
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(ContainerError::asked("tell what a container wrote"))?;
            let path = || "the output of a container".to_owned();
            let written = write_chunk(&chunk, &mut stdout, &mut stderr);
            written.map_err(|source| ContainerError::File { path: path(), source })?;
        }
        Ok((stdout.0, stderr.0))
    }
}
