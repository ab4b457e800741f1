//! What each rung offers an arm, and what making all arms alike takes from it.

use std::collections::BTreeMap;

use isobench_schema::assessment::RevisionFacts;
use isobench_schema::environment::Rung;
use isobench_schema::ids::ArmId;

use super::images;
use super::native::{self, NoWheel, day};
use super::offer::{Offer, Offers};
use super::{ArmSource, Images, Platform, ReleaseOverlay, Request};
use crate::knowledge::engines::Engine;
use crate::knowledge::packages::Group;
use crate::knowledge::releases::Release;

/// The native key of a revision that has none of the native tree's paths.
const NOTHING_COMPILED: &str = "e3b0c44298fc";

/// One arm in its request.
struct Asked<'a> {
    request: &'a Request<'a>,
    engine: &'a Engine,
    arm: &'a ArmSource<'a>,
    revision: &'a RevisionFacts,
    /// The images of all arms, or why images don't serve them.
    supplied: Result<&'a images::Supply<'a>, &'a str>,
}

/// Returns what every rung offers an arm; `supplied` are the images of all arms, or why images don't serve them.
pub(super) fn of_arm(
    request: &Request<'_>,
    arm: &ArmSource<'_>,
    supplied: Result<&images::Supply<'_>, &str>,
) -> Offers {
    let Some(engine) = request.knowledge.engines.of(request.engine) else {
        return Offers::new(|rung| match rung {
            Rung::Source => Offer::yes(None, "the engine is made by the task's own commands"),
            Rung::Image | Rung::Wheel | Rung::NativeTree | Rung::Overlay => {
                Offer::no(None, "nothing is known of this engine's images, wheels and releases")
            }
        });
    };
    let Some(revision) = arm.revision else {
        return Offers::new(|_| Offer::no(None, "nothing is known of its revision: name a clone that has it"));
    };
    let asked = Asked { request, engine, arm, revision, supplied };
    Offers::new(|rung| match rung {
        Rung::Image => asked.image(),
        Rung::Wheel => asked.wheel(),
        Rung::NativeTree => asked.native_tree(),
        Rung::Overlay => asked.overlay(),
        Rung::Source => asked.source(),
    })
}

impl Asked<'_> {
    fn image(&self) -> Offer {
        let found = images::own(self.request, self.revision);
        let image = match found {
            Err(images::NoImage { artifact, reason }) => return Offer::no(artifact, reason),
            Ok(image) => image,
        };
        let artifact = Some(image.artifact());
        match (self.request.means.images, self.supplied) {
            (Images::Unusable, _) => {
                let tag = &image.fact.tag;
                let reason = format!(
                    "`{tag}` is there, and engines would run on the machine itself; `--isolation container` runs them from images"
                );
                Offer::no(artifact, reason)
            }
            (Images::Usable, Err(reason)) => Offer::no(artifact, reason),
            (Images::Usable, Ok(supply)) => match supply.of(&self.arm.arm) {
                Some(given) if given.commit != self.revision.commit => {
                    let reason = format!(
                        "its native tree is that of `{}`, whose image serves every arm, so that their native files are the same bytes",
                        given.owner
                    );
                    Offer::no(artifact, reason)
                }
                Some(_) | None => {
                    let over = if self.arm.touched.is_some() { ", with the patched files over it" } else { "" };
                    Offer::yes(artifact, format!("the image of exactly this revision, `{}`{over}", image.fact.tag))
                }
            },
        }
    }

    /// Returns the image of another arm that gives this one its native files.
    fn image_of_another(&self) -> Option<&images::Given<'_>> {
        let given = self.supplied.ok()?.of(&self.arm.arm)?;
        (given.commit != self.revision.commit).then_some(given)
    }

    fn wheel(&self) -> Offer {
        if self.arm.touched.is_some() {
            return Offer::no(None, "a patch is in no wheel");
        }
        if let Some(given) = self.image_of_another() {
            return Offer::no(None, format!("the image of `{}` serves every arm", given.owner));
        }
        match native::own_wheel(self.request, self.revision) {
            Err(NoWheel { artifact, reason }) => Offer::no(artifact, reason),
            Ok(wheel) => match self.supplied_by_another() {
                Some(other) => {
                    let reason = format!(
                        "its native tree is that of `{other}`, whose wheel serves both, so that their native files are the same bytes"
                    );
                    Offer::no(Some(wheel.artifact), reason)
                }
                None => {
                    Offer::yes(Some(wheel.artifact), format!("the wheel of exactly this revision; {}", wheel.because))
                }
            },
        }
    }

    /// Returns the other arm whose wheel gives this one its native files.
    fn supplied_by_another(&self) -> Option<&ArmId> {
        let supplier = native::supplier(self.request, self.revision.native_key.as_deref()?)?;
        (supplier.arm != self.arm.arm).then_some(&supplier.arm)
    }

    fn native_tree(&self) -> Offer {
        if let Some(file) = self.compiled_change() {
            return Offer::no(None, format!("its patch changes `{file}`, which must be compiled"));
        }
        if let Some(given) = self.image_of_another() {
            let reason = format!(
                "its Python files over the native files of the image of `{}`, whose native tree is equal",
                given.owner
            );
            return Offer::yes(Some(given.artifact()), reason);
        }
        if let Some(kernels) = &self.engine.kernels {
            return self.kernels(&kernels.package);
        }
        match native::serving(self.request, self.revision) {
            Ok(wheel) => {
                let reason = format!("its Python files over native files of an equal tree: {}", wheel.because);
                Offer::yes(Some(wheel.artifact), reason)
            }
            Err(NoWheel { artifact, reason }) => Offer::no(artifact, reason),
        }
    }

    /// What is compiled is a package that the revision asks for by its version.
    fn kernels(&self, package: &str) -> Offer {
        if self.request.means.platform != Platform::Cuda {
            return Offer::no(None, format!("`{package}` is published for NVIDIA devices only"));
        }
        let Some(key) = self.revision.native_key.as_deref() else {
            return Offer::no(None, "its native key isn't known: name a clone of the repository");
        };
        if let Some(other) = self.differing_arm(key) {
            let reason =
                format!("its sources of `{package}` differ from those of `{other}`, and no published one shows that");
            return Offer::no(None, reason);
        }
        let packages = self.request.knowledge.engines.packages(self.request.engine);
        let groups = [Group::Cuda, Group::Common];
        let asks = packages.map_or(&[][..], |packages| packages.package_at(package, &groups, &self.revision.committed));
        match asks.first() {
            Some(ask) => {
                let reason =
                    format!("its Python files with the published kernels that it asks for, `{ask}`, in every arm");
                Offer::yes(Some(ask.clone()), reason)
            }
            None if key == NOTHING_COMPILED => Offer::yes(None, "nothing of this revision is compiled"),
            None => Offer::no(None, format!("the version of `{package}` that it asks for isn't known")),
        }
    }

    fn overlay(&self) -> Offer {
        if let Some(file) = self.compiled_change() {
            return Offer::no(None, format!("its patch changes `{file}`, which must be compiled"));
        }
        if self.request.means.platform != Platform::Cuda {
            return Offer::no(None, "releases are published for NVIDIA devices only");
        }
        let Some(release) = nearest_release(self.request, self.revision) else {
            return Offer::no(None, "no release of that time is known");
        };
        let artifact = Some(format!("{}=={}", self.engine.package, release.version()));
        let name = &release.name;
        if let Some(other) = self.revision.native_key.as_deref().and_then(|key| self.differing_arm(key)) {
            let reason = format!("its native tree differs from that of `{other}`, and {name} would give both the same");
            return Offer::no(artifact, reason);
        }
        match self.request.means.release_overlay {
            ReleaseOverlay::Refused => {
                let reason = format!(
                    "the native files of {name} aren't known to be those of this revision; they stand in only if asked to"
                );
                Offer::no(artifact, reason)
            }
            ReleaseOverlay::Allowed => {
                let reason =
                    format!("its Python files over the native files of {name}, which aren't known to be the same");
                Offer::yes(artifact, reason)
            }
        }
    }

    fn source(&self) -> Offer {
        let platform = self.request.means.platform;
        if self.engine.build_at(platform, &self.revision.committed).is_none() {
            let reason = format!(
                "no way is known to build a revision of {} for `{}`",
                day(&self.revision.committed),
                native::name(platform)
            );
            return Offer::no(None, reason);
        }
        Offer::yes(None, "its whole tree is built; the build must be able to fetch what it asks for")
    }

    /// Returns a file of the patch that must be compiled.
    fn compiled_change(&self) -> Option<&str> {
        native::compiled_change(self.engine, self.arm, self.revision)
    }

    /// Returns an arm whose native key is known to be another one.
    fn differing_arm(&self, key: &str) -> Option<&ArmId> {
        let differs = |arm: &&ArmSource<'_>| {
            arm.revision.and_then(|revision| revision.native_key.as_deref()).is_some_and(|other| other != key)
        };
        self.request.arms.iter().find(differs).map(|arm| &arm.arm)
    }
}

/// Returns the release before a revision, or else the first one that contains it.
pub(super) fn nearest_release<'a>(request: &Request<'a>, revision: &RevisionFacts) -> Option<&'a Release> {
    let named = |name: &Option<String>| request.knowledge.releases.named(request.engine, name.as_deref()?);
    named(&revision.after_release).or_else(|| named(&revision.first_release))
}

/// Takes from each arm what can't be given to all: one recipe makes every arm.
pub(super) fn make_alike(request: &Request<'_>, offers: &mut BTreeMap<ArmId, Offers>) {
    let built = offers.iter().find(|(_, offers)| offers.best() == Some(Rung::Source)).map(|(arm, _)| arm.clone());
    if let Some(built) = built {
        let reason = format!("`{built}` must be built, and all arms are made the same way");
        for offers in offers.values_mut() {
            offers.withdraw_above(Rung::Source, &reason);
        }
    } else if let Some(reason) = no_common_recipe(request, offers) {
        for offers in offers.values_mut() {
            offers.withdraw_above(Rung::Source, reason);
        }
    }
}

/// Arms of different native trees need a wheel each, found in the same way; everything else is the same for all arms.
fn no_common_recipe(request: &Request<'_>, offers: &BTreeMap<ArmId, Offers>) -> Option<&'static str> {
    let arm = |wanted: &ArmId| request.arms.iter().find(|arm| arm.arm == *wanted)?.revision;
    let (baseline, human) = (arm(&ArmId::Baseline)?, arm(&ArmId::Human)?);
    if baseline.native_key.is_some() && baseline.native_key == human.native_key {
        return None;
    }
    let best = |arm: &ArmId| offers.get(arm).and_then(Offers::best);
    let bests = [best(&ArmId::Baseline), best(&ArmId::Human)];
    match bests {
        [None, _]
        | [_, None]
        | [Some(Rung::Image | Rung::Source), Some(Rung::Image | Rung::Source)]
        | [Some(Rung::Overlay), Some(Rung::Overlay)] => None,
        [Some(Rung::Wheel), Some(Rung::Wheel)] if native::common_template(request, baseline, human).is_some() => None,
        [Some(_), Some(_)] => Some("the native trees of the arms differ, and no one recipe finds a wheel for each"),
    }
}
