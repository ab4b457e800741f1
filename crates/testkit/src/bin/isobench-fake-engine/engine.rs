//! What all connections share: options, faults, speed, and the places for answers under way.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Condvar, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use isobench_testkit::{Fault, InvalidFaultError, InvalidSpeedError, Speed};

use crate::args::Args;

/// Why the engine can't be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SetUpError {
    #[error("cannot read `{}`: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("faults.txt: {0}")]
    Fault(#[from] InvalidFaultError),
    #[error("speed.txt: {0}")]
    Speed(#[from] InvalidSpeedError),
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) args: Args,
    pub(crate) faults: Vec<Fault>,
    speed: Speed,
    exit: Sender<u8>,
    requests: AtomicU64,
    first_request: OnceLock<Instant>,
    under_way: Mutex<u32>,
    place_free: Condvar,
}

impl Engine {
    pub(crate) fn new(args: Args, exit: Sender<u8>) -> Result<Self, SetUpError> {
        let mut faults = args.faults.clone();
        faults.extend(Fault::parse_lines(&read(&args.folder, "faults.txt")?)?);
        let speed = Speed { ttft_us: args.ttft_us, itl_us: args.itl_us };
        let speed = speed.with_lines(&read(&args.folder, "speed.txt")?)?;
        Ok(Self {
            args,
            faults,
            speed,
            exit,
            requests: AtomicU64::new(0),
            first_request: OnceLock::new(),
            under_way: Mutex::new(0),
            place_free: Condvar::new(),
        })
    }

    pub(crate) fn has(&self, fault: &Fault) -> bool {
        self.faults.contains(fault)
    }

    /// Returns the number of a request that asks for an answer, from 1.
    pub(crate) fn count_request(&self) -> u64 {
        self.first_request.get_or_init(Instant::now);
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Ends the program with a status.
    pub(crate) fn exit(&self, status: u8) {
        self.exit.send(status).ok();
    }

    /// Returns the time from a request's start to the token at `place`, from 0.
    pub(crate) fn token_time(&self, place: u64) -> Duration {
        let percent = |fault: &Fault| if let Fault::Drift(percent) = fault { Some(*percent) } else { None };
        let percent = self.faults.iter().find_map(percent).unwrap_or(0);
        let elapsed_ms = self.first_request.get().map_or(0, |start| start.elapsed().as_millis());
        let elapsed_ms = u64::try_from(elapsed_ms).unwrap_or(u64::MAX);
        // In microseconds: percent / 100 of the gap for each 1000 ms.
        let grown = self.speed.itl_us.saturating_mul(percent).saturating_mul(elapsed_ms) / 100_000;
        let gap = self.speed.itl_us.saturating_add(grown);
        Duration::from_micros(self.speed.ttft_us.saturating_add(gap.saturating_mul(place)))
    }

    /// Waits for one of the `--max-num-seqs` places.
    pub(crate) fn take_place(&self) -> Place<'_> {
        let mut under_way = self.under_way.lock().unwrap_or_else(PoisonError::into_inner);
        while *under_way >= self.args.max_num_seqs {
            under_way = self.place_free.wait(under_way).unwrap_or_else(PoisonError::into_inner);
        }
        *under_way += 1;
        Place { engine: self }
    }
}

fn read(folder: &Path, name: &str) -> Result<String, SetUpError> {
    let path = folder.join(name);
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        other => other.map_err(|source| SetUpError::Read { path, source }),
    }
}

/// A place for an answer under way, free again when this is dropped.
pub(crate) struct Place<'e> {
    engine: &'e Engine,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.engine.under_way.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        self.engine.place_free.notify_one();
    }
}
