//! Where each arm's environment comes from: the ladder, rung by rung, the first that serves. A pure function of facts.
//!
//! All arms of a task are made the same way. Where one arm must be built, all are; where native trees are equal, one image or
//! wheel gives its native files to all of them, so that they are the same bytes.

mod answers;
mod builds;
pub(crate) mod day;
mod environment;
mod images;
mod native;
mod offer;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use isobench_schema::assessment::{RevisionFacts, RungAnswer, RungVerdict};
use isobench_schema::environment::{EngineKind, Rung};
use isobench_schema::ids::{ArmId, CommitId};
use isobench_schema::images::ImageFacts;

use crate::knowledge::Knowledge;
pub use crate::knowledge::engines::Platform;
pub use builds::{Builds, builds};
pub use environment::task_environment;

/// The rungs from the top.
pub const RUNGS: [Rung; 5] = [Rung::Image, Rung::Wheel, Rung::NativeTree, Rung::Overlay, Rung::Source];

/// Whether environments can be made from images.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Images {
    /// They can't: the engine runs as a bare process.
    #[default]
    Unusable,
    /// They can.
    Usable,
}

/// Whether a release's native files may stand in for those of a revision whose native tree differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReleaseOverlay {
    /// They may not: what would be measured isn't the revision.
    #[default]
    Refused,
    /// They may, as a deviation.
    Allowed,
}

/// What an archive answered when it was asked for the wheel of a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probe {
    /// The wheel is there.
    Present,
    /// It isn't.
    Absent,
}

/// What environments can be made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Means {
    /// What the engine runs on.
    pub platform: Platform,
    /// Whether images can be used.
    pub images: Images,
    /// Whether a release may stand in.
    pub release_overlay: ReleaseOverlay,
    /// What archives answered; it counts more than what is known or assumed.
    pub probes: BTreeMap<CommitId, Probe>,
}

impl Means {
    /// Returns the means of this program on a platform, with no archive asked.
    pub fn on(platform: Platform) -> Self {
        Self {
            platform,
            images: Images::default(),
            release_overlay: ReleaseOverlay::default(),
            probes: BTreeMap::new(),
        }
    }
}

/// One arm: its revision and what a patch changes on it.
#[derive(Debug, Clone)]
pub struct ArmSource<'a> {
    /// The arm.
    pub arm: ArmId,
    /// Its revision, for an agent the baseline; absent if nothing is known of it.
    pub revision: Option<&'a RevisionFacts>,
    /// The files that its patch touches; absent without a patch.
    pub touched: Option<&'a [String]>,
}

/// What is asked of the ladder.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The engine.
    pub engine: EngineKind,
    /// The arms of the task.
    pub arms: &'a [ArmSource<'a>],
    /// What environments can be made with.
    pub means: &'a Means,
    /// The tables.
    pub knowledge: &'a Knowledge,
    /// What a registry said of images, if one was asked.
    pub registry: Option<&'a ImageFacts>,
}

/// Returns every rung with its answer for each arm of a task, from the top.
///
/// At most one rung of an arm is taken: those above it are refused with a reason each, those below it not needed. An arm
/// without a taken rung can't be had, and every rung of it says why.
pub fn ladders(request: &Request<'_>) -> BTreeMap<ArmId, Vec<RungAnswer>> {
    let supply = images::supply(request);
    let supplied = supply.as_ref().map_err(String::as_str);
    let offers = request.arms.iter().map(|arm| (arm.arm.clone(), answers::of_arm(request, arm, supplied)));
    let mut offers: BTreeMap<ArmId, offer::Offers> = offers.collect();
    answers::make_alike(request, &mut offers);
    offers.into_iter().map(|(arm, offers)| (arm, offers.answers())).collect()
}

/// Returns the rung that is taken, if one is.
pub fn taken(answers: &[RungAnswer]) -> Option<&RungAnswer> {
    answers.iter().find(|answer| answer.answer == RungVerdict::Taken)
}
