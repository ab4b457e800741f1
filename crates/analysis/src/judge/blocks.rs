//! Which attempts count, at which look.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::comparability::{ComparabilityKey, KeyDifference, KeyField};
use isobench_schema::confirmation::Confirmations;
use isobench_schema::event::BlockEnd;
use isobench_schema::failure::{Charge, Failure};
use isobench_schema::ids::{ArmId, LaunchId};
use isobench_schema::measurement::Direction;
use isobench_schema::outcome::Outcome;
use isobench_schema::plan::{Look, PlannedContrast, PlannedTask};
use isobench_schema::task::MetricSpec;
use isobench_schema::verdict::{BlockCounts, CheckEffect, LaunchCheck, Unlike};

use super::looks::Point;
use super::{Attempt, JudgeError};
use crate::launch::LaunchInput;
use crate::measure::LaunchDigest;

/// A launch of a block that counts.
#[derive(Debug)]
pub(super) struct Launch<'a> {
    pub(super) input: &'a LaunchInput,
    /// Why it doesn't count.
    pub(super) failure: Option<Failure>,
    /// Its failure, or else every check that it breaks, those too that a person has confirmed.
    pub(super) broken: Vec<Failure>,
}

impl<'a> Launch<'a> {
    pub(super) fn arm(&self) -> &'a ArmId {
        &self.input.record.launch.arm
    }

    /// Returns what was read of the launch, if it counts.
    pub(super) fn valid(&self) -> Option<&'a LaunchDigest> {
        self.input.digest.as_ref().filter(|_| self.failure.is_none())
    }

    /// Returns what was read of the launch, if nothing is charged to its arm so far: wrong answers count as such also
    /// where the window was too short or the machine was disturbed.
    pub(super) fn uncharged(&self) -> Option<&'a LaunchDigest> {
        let charged = self.failure.as_ref().is_some_and(|failure| failure.class.charge() == Charge::Arm);
        self.input.digest.as_ref().filter(|_| !charged && self.input.record.outcome == Outcome::Measured)
    }

    /// Returns the primary metric, if the launch counts and has it.
    pub(super) fn value(&self, metric: &MetricSpec) -> Option<f64> {
        let value = *self.valid()?.measurement.values.get(&metric.primary)?;
        (value.is_finite() && value > 0.0).then_some(value)
    }

    /// Returns in what the launch can't be compared with another one of its block: the fields of their keys, and seed and
    /// prompts as the client recorded them.
    pub(super) fn differences(&self, other: &Self) -> Vec<KeyDifference> {
        let mut found = self.input.record.key.differences(&other.input.record.key);
        if let (Some(own), Some(its)) = (&self.input.digest, &other.input.digest) {
            let recorded = recorded(own).differences(&recorded(its));
            // Where the keys differ themselves, they say it better.
            let told: Vec<KeyField> = found.iter().map(|difference| difference.field).collect();
            found.extend(recorded.into_iter().filter(|difference| !told.contains(&difference.field)));
        }
        found.sort_unstable();
        found
    }
}

/// Returns what the client recorded of the fields of a key.
fn recorded(digest: &LaunchDigest) -> ComparabilityKey {
    ComparabilityKey(
        [
            (KeyField::Client, digest.client.clone()),
            (KeyField::Workload, digest.workload.to_string()),
            (KeyField::Seed, digest.seed.to_string()),
            (KeyField::Definition, digest.measurement.definition.clone()),
        ]
        .into(),
    )
}

/// The attempt at a block that counts, its launches in the order of their positions.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub(super) block: u32,
    pub(super) launches: Vec<Launch<'a>>,
}

impl<'a> Block<'a> {
    pub(super) fn of(attempt: &'a Attempt, confirmations: &Confirmations) -> Self {
        let launch = |input: &'a LaunchInput| {
            let broken = input.failures();
            let counts = |failure: &&Failure| !is_confirmed(confirmations, &input.record.launch, failure);
            Launch { input, failure: broken.iter().find(counts).cloned(), broken }
        };
        let mut launches: Vec<Launch<'_>> = attempt.launches.iter().map(launch).collect();
        launches.sort_by_key(|launch| launch.input.record.position);
        Self { block: attempt.id.block, launches }
    }

    pub(super) fn launch(&self, arm: &ArmId) -> Option<&Launch<'a>> {
        self.launches.iter().find(|launch| launch.arm() == arm)
    }

    /// Returns the difference of one arm to another with their positions, if both count and can be compared.
    pub(super) fn point(&self, metric: &MetricSpec, of: &ArmId, against: &ArmId) -> Option<Point> {
        let position = |arm: &ArmId| self.launch(arm).map(|launch| launch.input.record.position);
        Some(Point {
            block: self.block,
            difference: self.log_ratio(metric, of, against)?,
            of: position(of)?,
            against: position(against)?,
        })
    }

    /// Returns the log ratio of one arm to another, positive is better, if both count and can be compared.
    pub(super) fn log_ratio(&self, metric: &MetricSpec, of: &ArmId, against: &ArmId) -> Option<f64> {
        let (of, against) = (self.launch(of)?, self.launch(against)?);
        if !of.differences(against).is_empty() {
            return None;
        }
        let ratio = (of.value(metric)? / against.value(metric)?).ln();
        Some(match metric.direction {
            Direction::Higher => ratio,
            Direction::Lower => -ratio,
        })
    }
}

/// Returns whether a person has confirmed that a launch counts although it breaks this check.
pub(super) fn is_confirmed(confirmations: &Confirmations, launch: &LaunchId, failure: &Failure) -> bool {
    let check = failure.check.map(|check| check.name);
    check.is_some_and(|check| confirmations.reach(&launch.block.task, &launch.arm, check))
}

/// The blocks by which a task is judged.
#[derive(Debug)]
pub(super) struct TaskBlocks<'a> {
    pub(super) counts: BlockCounts,
    /// The looks whose blocks are all done.
    looks: Vec<Look>,
    /// The blocks of the last such look that are done, or all of them if no look is complete; in order.
    pub(super) blocks: Vec<Block<'a>>,
    /// The attempts that infrastructure spoilt and in whose place the block ran again.
    spoilt: Vec<Block<'a>>,
}

impl<'a> TaskBlocks<'a> {
    /// Chooses the one attempt of each block that counts, and the look.
    ///
    /// A block is done if it has a complete attempt, or if infrastructure spoilt its last one and the task's
    /// replacements are used up; of the latter those launches count that failed in nothing, so that one arm's
    /// misfortune doesn't undo the others. A look is complete when all its blocks are done; later blocks don't count at
    /// it. Looks beyond `most_looks` are not taken.
    pub(super) fn choose(
        task: &PlannedTask,
        attempts: Vec<&'a Attempt>,
        confirmations: &Confirmations,
        most_looks: usize,
    ) -> Result<Self, JudgeError> {
        let planned = task.design.blocks();
        let mut counts = BlockCounts { planned, ..BlockCounts::default() };
        let mut complete: BTreeMap<u32, &Attempt> = BTreeMap::new();
        let mut last: BTreeMap<u32, &Attempt> = BTreeMap::new();
        let attempts = sorted(attempts);
        for attempt in attempts.iter().copied() {
            check(attempt, planned)?;
            last.insert(attempt.id.block, attempt);
            match attempt.end {
                BlockEnd::Complete => {
                    if let Some(first) = complete.insert(attempt.id.block, attempt) {
                        let (first, second) = (first.id.clone(), attempt.id.clone());
                        return Err(JudgeError::TwoComplete { first, second });
                    }
                    counts.complete += 1;
                }
                BlockEnd::Interrupted => counts.interrupted += 1,
                BlockEnd::Spoilt { .. } => counts.spoilt += 1,
            }
        }
        let used_up = counts.spoilt > task.design.replacements;
        let mut done = complete;
        for (block, attempt) in last {
            match attempt.end {
                BlockEnd::Spoilt { .. } if used_up => {
                    done.entry(block).or_insert(attempt);
                }
                BlockEnd::Spoilt { .. } | BlockEnd::Complete | BlockEnd::Interrupted => {}
            }
        }
        let looks = task.design.looks.iter().copied().take(most_looks);
        let is_complete = |look: &Look| (0..look.blocks).all(|block| done.contains_key(&block));
        let looks: Vec<Look> = looks.take_while(is_complete).collect();
        if let Some(last) = looks.last() {
            done.retain(|block, _| *block < last.blocks);
        }
        let is_replaced = |attempt: &&&Attempt| {
            let counts = done.get(&attempt.id.block).is_some_and(|done| done.id == attempt.id);
            matches!(attempt.end, BlockEnd::Spoilt { .. }) && !counts
        };
        let of = |attempt| Block::of(attempt, confirmations);
        let spoilt = attempts.iter().filter(is_replaced).map(|attempt| of(*attempt)).collect();
        let blocks = done.values().map(|attempt| of(*attempt)).collect();
        Ok(Self { counts, looks, blocks, spoilt })
    }

    /// Returns the last look whose blocks are all done, if there is one.
    pub(super) fn look(&self) -> Option<Look> {
        self.looks.last().copied()
    }

    /// Returns how many looks are complete.
    pub(super) fn reached(&self) -> usize {
        self.looks.len()
    }

    /// Returns which launches can't be compared, and in what.
    ///
    /// Only launches of one block are compared, so a block on another host than the others is a remark, not a fault.
    pub(super) fn unlike(&self, task: &PlannedTask) -> Vec<Unlike> {
        let mut found = Vec::new();
        for block in &self.blocks {
            for PlannedContrast { of, against } in &task.contrasts {
                let pair = block.launch(of).zip(block.launch(against));
                let differences = pair.map(|(of, against)| of.differences(against)).unwrap_or_default();
                let (of, against) = (of.clone(), against.clone());
                found.push(Unlike { block: block.block, of, against_block: block.block, against, differences });
            }
        }
        if let Some(first) = self.blocks.first() {
            for block in self.blocks.iter().skip(1) {
                found.extend(block.launches.iter().filter_map(|launch| launch.unlike_in(block, first)));
            }
        }
        found.retain(|unlike| !unlike.differences.is_empty());
        found.sort();
        found.dedup();
        found
    }

    /// Returns every check that launches broke, in the order of blocks and positions; those of attempts in whose place the
    /// block ran again come first.
    pub(super) fn broken(&self, confirmations: &Confirmations) -> Vec<LaunchCheck> {
        let checks = |blocks: &[Block<'_>], decides| -> Vec<LaunchCheck> {
            let of = |block: &Block<'_>| -> Vec<LaunchCheck> {
                let launches = block.launches.iter();
                launches.flat_map(|launch| launch.checks(block.block, (confirmations, decides))).collect()
            };
            blocks.iter().flat_map(of).collect()
        };
        [checks(&self.spoilt, CheckEffect::Spoilt), checks(&self.blocks, CheckEffect::Decides)].concat()
    }
}

impl Launch<'_> {
    /// Returns in what the launch differs from its arm's in the first block, but for the seed, which is each block's own.
    fn unlike_in(&self, block: &Block<'_>, first: &Block<'_>) -> Option<Unlike> {
        let earlier = first.launch(self.arm())?;
        let mut differences = self.input.record.key.differences(&earlier.input.record.key);
        differences.retain(|difference| difference.field != KeyField::Seed);
        let (of, against) = (self.arm().clone(), self.arm().clone());
        Some(Unlike { block: block.block, of, against_block: first.block, against, differences })
    }

    /// Returns the checks that the launch breaks; what follows from the one that decides is given.
    fn checks(&self, block: u32, (confirmations, decides): (&Confirmations, CheckEffect)) -> Vec<LaunchCheck> {
        let check = |failure: &Failure| {
            let effect = if is_confirmed(confirmations, &self.input.record.launch, failure) {
                CheckEffect::Confirmed
            } else if self.failure.as_ref() == Some(failure) {
                decides
            } else {
                CheckEffect::Also
            };
            Some(LaunchCheck {
                block,
                arm: self.arm().clone(),
                class: failure.class,
                check: failure.check?,
                message: failure.message.clone(),
                effect,
            })
        };
        self.broken.iter().filter_map(check).collect()
    }
}

fn sorted(mut attempts: Vec<&Attempt>) -> Vec<&Attempt> {
    attempts.sort_by(|a, b| a.id.cmp(&b.id));
    attempts
}

fn check(attempt: &Attempt, planned: u32) -> Result<(), JudgeError> {
    let id = &attempt.id;
    if id.block >= planned {
        return Err(JudgeError::UnknownBlock { id: id.clone(), planned });
    }
    let mut seen = BTreeSet::new();
    for LaunchInput { record, .. } in &attempt.launches {
        if record.launch.block != *id {
            return Err(JudgeError::WrongBlock { launch: record.launch.clone(), id: id.clone() });
        }
        if !seen.insert(&record.launch.arm) {
            return Err(JudgeError::TwoLaunches { launch: record.launch.clone() });
        }
    }
    Ok(())
}
