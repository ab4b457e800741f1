//! Commands that run in a container to their end, watched over: the first process is this program, which ends the container
//! when whoever made it is gone, however that ended, and at a deadline of its own.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use bollard::container::AttachContainerResults;
use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;

use super::init::{MEMORY, REFUSED, REFUSED_LINE, Start};
use super::init_files::InitFiles;
use super::labels::labels;
use super::options::{Input, Log};
use super::{ContainerError, ContainerOptions, Daemon};
use crate::environment::PrepareContext;

/// How often a container is looked at.
const STEP: Duration = Duration::from_millis(100);
/// How much longer than its commands a container may live by itself.
const LONGER: Duration = Duration::from_secs(60);
/// Variables that would change which code runs as the first process; there they are empty.
pub(super) const LOADER_VARIABLES: &[&str] = &["LD_AUDIT", "LD_LIBRARY_PATH", "LD_PRELOAD"];
/// Where programs are looked for in an image that doesn't say it.
const SEARCH_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// How a command in a container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with this exit code.
    Exited(i64),
    /// The kernel killed something of it for want of memory.
    LackedMemory(i64),
    /// It couldn't be started, for this reason.
    Refused(String),
    /// It was killed at its deadline.
    TooLate,
    /// It was killed because somebody gave up.
    Cancelled,
}

/// A command that has ended, and where in the log of its context its output begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Watched {
    pub(crate) ended: Ended,
    pub(crate) since: u64,
}

/// Returns the variables of an image, with a search path.
pub(super) fn variables_of(image: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut variables = image;
    variables.entry("PATH".to_owned()).or_insert_with(|| SEARCH_PATH.to_owned());
    variables
}

/// Returns those variables of an image that would change which code runs as the first process; there they are empty.
pub(super) fn loader_variables(image: &BTreeMap<String, String>) -> impl Iterator<Item = (&String, &String)> {
    image.iter().filter(|(name, _)| LOADER_VARIABLES.contains(&name.as_str()))
}

/// Makes a container for a command that [`finish`] runs in it. It is labelled as one of the run with this marker.
pub(super) async fn make(
    daemon: &Daemon,
    (marker, name): (&str, &str),
    mut options: ContainerOptions,
    timeout: Duration,
) -> Result<String, ContainerError> {
    let own = std::env::current_exe();
    let own = own.map_err(|source| ContainerError::File { path: "/proc/self/exe".to_owned(), source })?;
    let init = InitFiles::of(&own);
    options.command = init.command;
    options.command.push((timeout + LONGER).as_secs().to_string());
    options.reads.splice(0..0, init.files);
    let (_, variables) = daemon.image(&options.image).await?;
    options.environment.extend(loader_variables(&variables).map(|(name, _)| (name.clone(), String::new())));
    options.labels = labels(marker, timeout + LONGER);
    options.input = Input::Attached;
    // It is read again at the end: who follows may lose lines.
    options.log = Log::Kept;
    daemon.create(name, &options).await
}

/// Starts the command in a container of [`make`] and waits for its end. Everything that it writes is appended to the log of the
/// context as it comes; the deadline is that of the context.
pub(super) async fn finish(
    daemon: &Daemon,
    container: &str,
    start: &Start,
    context: &PrepareContext<'_>,
    progress: &dyn Fn(u64),
) -> Result<Watched, ContainerError> {
    let file = |source| ContainerError::File { path: context.log.to_string_lossy().into_owned(), source };
    let opened = File::options().create(true).append(true).open(context.log).map_err(file)?;
    let since = opened.metadata().map_err(file)?.len();
    let AttachContainerResults { mut output, mut input } = daemon.attach(container).await?;
    daemon.start(container).await?;
    let mut line = serde_json::to_vec(start).map_err(|error| file(io::Error::other(error)))?;
    line.push(b'\n');
    // One that has ended reads it no more, and its end says why.
    let _ = input.write_all(&line).await;
    let _ = input.flush().await;
    let deadline = Instant::now() + context.timeout;
    let follow = daemon.follow_whole(container, (context.log, since));
    tokio::pin!(follow);
    let mut is_read = false;
    let given_up = loop {
        tokio::select! {
            ended = &mut follow => break ended.map(|()| None)?,
            // It is in the log; what nobody takes would wait in the daemon.
            chunk = output.next(), if !is_read => {
                is_read = !matches!(chunk, Some(Ok(_)));
                continue;
            }
            () = tokio::time::sleep(STEP) => {}
        }
        progress(context.log.metadata().map_or(0, |metadata| metadata.len().saturating_sub(since)));
        let is_cancelled = context.cancel.load(Ordering::Relaxed);
        if is_cancelled || Instant::now() > deadline {
            daemon.kill(container).await?;
            let _ = follow.await;
            break Some(if is_cancelled { Ended::Cancelled } else { Ended::TooLate });
        }
    };
    // Its first process lives no longer than this.
    drop(input);
    let ended = match given_up {
        Some(given_up) => given_up,
        None => end(daemon, container, (context.log, since)).await?,
    };
    Ok(Watched { ended, since })
}

async fn end(daemon: &Daemon, container: &str, log: (&Path, u64)) -> Result<Ended, ContainerError> {
    let code = daemon.wait(container).await?;
    let is = |of: u8| code == i64::from(of);
    if is(REFUSED)
        && let Some(why) = last_line(log).and_then(|line| line.strip_prefix(REFUSED_LINE).map(str::to_owned))
    {
        return Ok(Ended::Refused(why));
    }
    let lacked = is(MEMORY) || (code != 0 && daemon.look(container).await?.out_of_memory);
    Ok(if lacked { Ended::LackedMemory(code) } else { Ended::Exited(code) })
}

/// Returns the last line of a log from a place on.
fn last_line((log, since): (&Path, u64)) -> Option<String> {
    let mut file = File::open(log).ok()?;
    file.seek(SeekFrom::Start(since)).ok()?;
    BufReader::new(file)
        .split(b'\n')
        .map_while(Result::ok)
        .last()
        .map(|line| String::from_utf8_lossy(&line).into_owned())
}
