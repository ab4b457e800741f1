//! The schedules of all phases of one launch.

use std::io;
use std::sync::Arc;

use isobench_schema::ids::Digest;
use isobench_schema::record::Phase;
use isobench_schema::workload::Workload;
use sha2::{Digest as _, Sha256};

use super::{Resources, Schedule, ScheduleError};

/// The schedules of all phases of one launch.
#[derive(Debug)]
pub struct Schedules {
    first: Arc<Schedule>,
    probe_before: Arc<Schedule>,
    warm_up: Arc<Schedule>,
    measure: Arc<Schedule>,
    probe_after: Arc<Schedule>,
}

impl Schedules {
    /// Returns the schedules of every phase.
    ///
    /// # Errors
    /// Returns what in the workload can't be sent, or can't be sent with these resources.
    pub fn new(workload: &Workload, seed: u64, resources: &Resources) -> Result<Self, ScheduleError> {
        Self::of(|phase| Schedule::new(workload, seed, phase, resources))
    }

    /// Returns the schedules that `make` gives for each phase.
    pub(crate) fn of<E>(mut make: impl FnMut(Phase) -> Result<Schedule, E>) -> Result<Self, E> {
        Ok(Self {
            first: make(Phase::First)?.into(),
            probe_before: make(Phase::ProbeBefore)?.into(),
            warm_up: make(Phase::WarmUp)?.into(),
            measure: make(Phase::Measure)?.into(),
            probe_after: make(Phase::ProbeAfter)?.into(),
        })
    }

    /// Returns the schedule of `phase`.
    pub fn phase(&self, phase: Phase) -> &Arc<Schedule> {
        match phase {
            Phase::First => &self.first,
            Phase::ProbeBefore => &self.probe_before,
            Phase::WarmUp => &self.warm_up,
            Phase::Measure => &self.measure,
            Phase::ProbeAfter => &self.probe_after,
        }
    }

    /// Returns the digest of all prompts, lengths, times and sampling fields of warm-up and window, and of the tokenizer
    /// where one is needed.
    ///
    /// It is equal for all arms of a block; the model's name and the server's address are no part of it.
    pub fn digest(&self) -> Digest {
        let mut hasher = Sha256::new();
        for schedule in [&self.warm_up, &self.measure] {
            hasher.update(schedule.digest.as_str());
        }
        Digest::finish(hasher)
    }

    /// Returns the digest of the first so many requests of warm-up and window: of their bodies and times. Schedules that
    /// differ only in how many requests they have share it, where requests don't depend on their number.
    ///
    /// # Errors
    /// Returns an error if the prepared bytes can't be read back.
    pub fn digest_of_first(&self, requests: usize) -> io::Result<Digest> {
        let mut hasher = Sha256::new();
        let mut body = Vec::new();
        for schedule in [&self.warm_up, &self.measure] {
            hasher.update(schedule.phase.as_str());
            for entry in schedule.entries.iter().take(requests) {
                body.clear();
                schedule.write_body(entry, "", b"", &mut body)?;
                for number in [body.len() as u64, entry.offset_ns, entry.think_ns] {
                    hasher.update(number.to_le_bytes());
                }
                hasher.update(&body);
            }
            if let Some(input) = &schedule.input {
                hasher.update(input.digest.as_str());
            }
        }
        Ok(Digest::finish(hasher))
    }
}
