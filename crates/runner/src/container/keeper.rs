//! One engine's container from its making to its removal, on a thread of its own that talks to the daemon.

use std::fs::File;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use bollard::container::{AttachContainerResults, LogOutput};
use futures_util::StreamExt as _;
use isobench_schema::container::{ContainerFacts, DaemonFacts};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::daemon::with_cause;
use super::init::{ALONE, MEMORY, REFUSED, REFUSED_LINE, SIGNAL_BASE, STOP, Start, TOO_LATE};
use super::limits::{self, Groups};
use super::options::Log;
use super::work::{append, write_chunk};
use super::{ContainerError, ContainerOptions, ContainerState, Daemon};
use crate::host::engine_host::Keeper;
use crate::host::guard::{Farewell, GuardGoneError, Report};
use crate::host::process_table::{self, ProcessInfo};

/// How long a container may take to be made and started.
const OPENING: Duration = Duration::from_secs(300);
/// How long the daemon may take to remove a container, after it was killed.
const REMOVAL: Duration = Duration::from_secs(60);
/// How long what an ended container has written may take to come.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// How often the memory of a container is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How long a daemon may take to hear that a container lacked memory.
const NEWS: Duration = Duration::from_secs(2);
/// How often it is looked whether something has ended that is about to.
const STEP: Duration = Duration::from_millis(10);
/// What is kept of the end of standard error, in bytes.
const TAIL: usize = 4096;

/// What makes a container.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) socket: PathBuf,
    pub(super) name: String,
    pub(super) options: ContainerOptions,
    pub(super) stdout: PathBuf,
    pub(super) stderr: PathBuf,
}

/// What the thread is told.
#[derive(Debug)]
enum Order {
    Start(Start),
    Stop(Duration),
}

/// A container with its thread. Dropping it kills and removes the container.
#[derive(Debug)]
pub(super) struct Container {
    orders: Option<UnboundedSender<Order>>,
    reports: Receiver<Report>,
    thread: Option<JoinHandle<()>>,
    state: ContainerState,
    process: u32,
    daemon: DaemonFacts,
}

impl Container {
    /// Makes and starts a container, in which nothing runs yet but this program.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub(super) fn open(plan: Plan, daemon: DaemonFacts) -> Result<Self, ContainerError> {
        let (orders, receiver) = unbounded_channel();
        let (sender, reports) = channel();
        let (opened, opening) = channel();
        let thread = thread::Builder::new().name("container".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => runtime.block_on(keep(plan, &opened, receiver, &sender)),
                Err(source) => drop(opened.send(Err(ContainerError::Thread { source }))),
            }
        });
        let thread = thread.map_err(|source| ContainerError::Thread { source })?;
        let mut container = Self {
            orders: Some(orders),
            reports,
            thread: Some(thread),
            state: ContainerState::default(),
            process: 0,
            daemon,
        };
        // From here on, dropping the container removes whatever was made.
        let late = || ContainerError::TooLate { what: "start a container".to_owned(), seconds: OPENING.as_secs() };
        container.state = match opening.recv_timeout(OPENING) {
            Ok(opened) => opened?,
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return Err(late()),
        };
        container.process = container.state.process.ok_or_else(|| ContainerError::Refused {
            what: "start a container".to_owned(),
            status: 200,
            message: container.state.error.clone().unwrap_or_else(|| "it ended at once".to_owned()),
        })?;
        Ok(container)
    }

    /// Returns its first process, by this machine's process table.
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    /// Returns what is seen of it by one of its processes.
    pub(super) fn facts(&self, process: u32) -> ContainerFacts {
        let known = ContainerFacts {
            id: self.state.id.clone(),
            image_id: self.state.image_id.clone(),
            daemon: self.daemon.clone(),
            process: self.process,
            ..ContainerFacts::default()
        };
        limits::look(process, known)
    }

    /// Starts the engine in it.
    pub(super) fn start(&self, start: Start) {
        self.order(Order::Start(start));
    }

    /// A thread that is gone has told why already.
    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
        }
    }
}

impl Keeper for Container {
    fn root(&self) -> u32 {
        self.process
    }

    fn name(&self) -> &'static str {
        "container"
    }

    fn report(&mut self) -> Result<Option<Report>, GuardGoneError> {
        match self.reports.try_recv() {
            Ok(report) => Ok(Some(report)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(GuardGoneError),
        }
    }

    fn stop(&mut self, grace: Duration) -> Farewell {
        self.order(Order::Stop(grace));
        let deadline = Instant::now() + grace + LAST_WORDS + REMOVAL;
        let mut reports = Vec::new();
        while let Ok(report) = self.reports.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            let is_last = matches!(report, Report::Ended { .. });
            reports.push(report);
            if is_last {
                break;
            }
        }
        Farewell { reports, was_held: false }
    }

    fn container(&self, engine: u32) -> Option<ContainerFacts> {
        Some(self.facts(engine))
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        drop(self.orders.take());
        if let Some(thread) = self.thread.take() {
            // It has deadlines of its own; one that panicked has dropped its connection, which ends the container.
            let _ = thread.join();
        }
    }
}

/// What comes from an attached container.
type Output = Pin<Box<dyn futures_util::Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// A container under way.
struct Kept<'a> {
    daemon: &'a Daemon,
    id: &'a str,
    /// Its first process, with its start, which names it for ever.
    process: Option<ProcessInfo>,
    input: Pin<Box<dyn AsyncWrite + Send>>,
    stdout: File,
    stderr: File,
    plan: &'a Plan,
    /// The end of what was written to standard error.
    tail: Vec<u8>,
    /// The most memory that it was seen to have used.
    peak: Option<u64>,
    /// Whether it was killed, because it was asked to stop and didn't.
    forced: bool,
    /// Why it was killed unasked.
    trouble: Option<String>,
}

/// Makes a container, keeps it until its end, and removes it.
async fn keep(
    plan: Plan,
    opened: &Sender<Result<ContainerState, ContainerError>>,
    mut orders: UnboundedReceiver<Order>,
    reports: &Sender<Report>,
) {
    let made = async {
        let daemon = Daemon::connect_to(&plan.socket).await?;
        let id = daemon.create(&plan.name, &plan.options).await?;
        Ok((daemon, id))
    };
    let (daemon, id) = match made.await {
        Ok(made) => made,
        Err(error) => return drop(opened.send(Err(error))),
    };
    let (mut kept, output) = match begin(&daemon, &id, &plan).await {
        Ok((kept, output, state)) => {
            // Nobody who waits: then nobody gives orders either.
            let _ = opened.send(Ok(state));
            (kept, output)
        }
        Err(error) => {
            // What can't be removed now is found by its labels.
            let _ = daemon.remove(&id).await;
            return drop(opened.send(Err(error)));
        }
    };
    let end = kept.watch(output, &mut orders).await;
    let _ = reports.send(end);
    let unkillable = kept.remove().await;
    let _ = reports.send(Report::Ended { forced: kept.forced, survivors: Vec::new(), unkillable });
}

/// Attaches to a container and starts it.
async fn begin<'a>(
    daemon: &'a Daemon,
    id: &'a str,
    plan: &'a Plan,
) -> Result<(Kept<'a>, Output, ContainerState), ContainerError> {
    let (stdout, stderr) = (append(&plan.stdout)?, append(&plan.stderr)?);
    let AttachContainerResults { output, input } = daemon.attach(id).await?;
    daemon.start(id).await?;
    let state = daemon.look(id).await?;
    let process = state.process.and_then(process_table::find);
    let (tail, trouble) = (Vec::new(), None);
    let kept = Kept { daemon, id, process, input, stdout, stderr, plan, tail, peak: None, forced: false, trouble };
    Ok((kept, output, state))
}

impl Kept<'_> {
    /// Carries output and orders until the container has ended, and returns how it did.
    async fn watch(&mut self, mut output: Output, orders: &mut UnboundedReceiver<Order>) -> Report {
        let mut looks = tokio::time::interval(LOOK);
        let mut kill_at = None;
        let mut has_orders = true;
        loop {
            tokio::select! {
                // The daemon closes it with the end of the first process.
                chunk = output.next() => match chunk {
                    Some(Ok(chunk)) => self.write(&chunk).await,
                    Some(Err(_)) | None => break,
                },
                order = orders.recv(), if has_orders => match order {
                    Some(Order::Start(start)) => {
                        let line = serde_json::to_string(&start).expect("what is started has only string keys");
                        self.tell(&line).await;
                    }
                    Some(Order::Stop(grace)) => {
                        self.tell(STOP).await;
                        kill_at = Some(tokio::time::Instant::now() + grace);
                    }
                    None => {
                        has_orders = false;
                        self.kill().await;
                    }
                },
                () = at(kill_at) => {
                    kill_at = None;
                    self.forced = true;
                    self.kill().await;
                }
                _ = looks.tick() => if !self.look() { break },
            }
        }
        let rest = async {
            while let Some(Ok(chunk)) = output.next().await {
                self.write(&chunk).await;
            }
        };
        let _ = tokio::time::timeout(LAST_WORDS, rest).await;
        let end = self.end().await;
        if self.plan.options.log == Log::Kept {
            let again = self.daemon.read_logs_again(self.id, (&self.plan.stdout, &self.plan.stderr));
            // What was passed on is there in any case.
            let _ = tokio::time::timeout(REMOVAL, again).await;
        }
        end
    }

    /// Writes a line to the first process. One that has ended reads it no more.
    async fn tell(&mut self, line: &str) {
        let line = format!("{line}\n");
        let write = async {
            self.input.write_all(line.as_bytes()).await?;
            self.input.flush().await
        };
        let _ = tokio::time::timeout(LAST_WORDS, write).await;
    }

    async fn write(&mut self, chunk: &LogOutput) {
        if let LogOutput::StdErr { message } = chunk {
            self.tail.extend_from_slice(message);
            let too_much = self.tail.len().saturating_sub(TAIL);
            self.tail.drain(..too_much);
        }
        let written = write_chunk(chunk, &mut self.stdout, &mut self.stderr);
        if let Some(error) = written.err().filter(|_| self.trouble.is_none()) {
            self.trouble = Some(format!("its output can't be kept: {error}"));
            self.kill().await;
        }
    }

    async fn kill(&self) {
        // One that can't be killed is told of when it can't be removed.
        let _ = self.daemon.kill(self.id).await;
    }

    /// Notes the memory used, and returns whether the first process still lives.
    fn look(&mut self) -> bool {
        let Some(process) = &self.process else { return false };
        self.peak = Groups::of(process.pid).peak().max(self.peak);
        lives(process)
    }

    /// Returns whether its first process was killed by somebody else, and not for want of memory as far as is known.
    fn is_killed(&self, state: &ContainerState) -> bool {
        let by_signal = state.exit_code == Some(i64::from(SIGNAL_BASE + 9));
        by_signal && !state.out_of_memory && !self.forced
    }

    /// Returns how the container ended.
    async fn end(&self) -> Report {
        let begun = Instant::now();
        let ended = async {
            loop {
                match self.daemon.look(self.id).await {
                    Ok(state) if state.running => tokio::time::sleep(STEP).await,
                    // A daemon may hear of a lack of memory after it hears of the end.
                    Ok(state) if self.is_killed(&state) && begun.elapsed() < NEWS => tokio::time::sleep(STEP).await,
                    other => return other,
                }
            }
        };
        let state = match tokio::time::timeout(LAST_WORDS, ended).await {
            Ok(Ok(state)) => state,
            Ok(Err(error)) => {
                let status = format!("an end that the daemon can't tell: {}", with_cause(&error));
                return Report::Exited { status, memory: None };
            }
            Err(_late) => {
                let status = "an end that the daemon doesn't know of".to_owned();
                return Report::Exited { status, memory: None };
            }
        };
        let code = state.exit_code.unwrap_or(-1);
        if code == i64::from(REFUSED)
            && let Some(error) = refusal(&self.tail)
        {
            return Report::Refused { error };
        }
        let lacked = state.out_of_memory || code == i64::from(MEMORY);
        let memory = (lacked && !self.forced).then(|| {
            let peak = self.peak.map_or_else(String::new, |peak| format!("; {peak} bytes were seen to be used"));
            format!("the kernel killed a process of the container for want of memory{peak}")
        });
        let status = self.trouble.clone().unwrap_or_else(|| words(code));
        Report::Exited { status, memory }
    }

    /// Removes the container, and returns what can't be ended.
    async fn remove(&self) -> Vec<String> {
        let removed = match tokio::time::timeout(REMOVAL, self.daemon.remove(self.id)).await {
            Ok(Ok(())) => return Vec::new(),
            Ok(Err(error)) => with_cause(&error),
            Err(_late) => format!("the daemon didn't answer within {} s", REMOVAL.as_secs()),
        };
        // Without its daemon the container is ended by its first process.
        let Some(process) = &self.process else { return Vec::new() };
        process_table::kill(process);
        let deadline = Instant::now() + LAST_WORDS;
        while lives(process) && Instant::now() < deadline {
            tokio::time::sleep(STEP).await;
        }
        if lives(process) { vec![format!("container {}: {removed}", self.id)] } else { Vec::new() }
    }
}

/// Sleeps until a time; for ever without one.
async fn at(time: Option<tokio::time::Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

fn lives(process: &ProcessInfo) -> bool {
    let same = |found: &ProcessInfo| found.started == process.started && !found.zombie;
    process_table::find(process.pid).as_ref().is_some_and(same)
}

/// Returns why the engine couldn't be started, from the end of standard error.
fn refusal(tail: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(tail);
    text.lines().last()?.strip_prefix(REFUSED_LINE).map(str::to_owned)
}

/// Returns an exit code in words.
fn words(code: i64) -> String {
    let signal = code - i64::from(SIGNAL_BASE);
    match u8::try_from(code) {
        Ok(TOO_LATE) => format!("exit status {code}, as at its deadline"),
        Ok(ALONE) => format!("exit status {code}, as when nobody watches over it"),
        Ok(_) if (1..=64).contains(&signal) => format!("signal {signal}"),
        Ok(_) | Err(_) => format!("exit status {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_in_words() {
        let cases = [
            (0, "exit status 0"),
            (3, "exit status 3"),
            (137, "signal 9"),
            (124, "exit status 124, as at its deadline"),
        ];
        for (code, expected) in cases {
            assert_eq!(words(code), expected);
        }
    }

    #[test]
    fn only_the_last_line_says_why_nothing_was_started() {
        let line = format!("warning\n{REFUSED_LINE}`x`: not found\n");
        assert_eq!(refusal(line.as_bytes()).as_deref(), Some("`x`: not found"));
        assert_eq!(refusal(format!("{line}more\n").as_bytes()), None);
    }
}
