//! Published wheels whose native files fit a revision: its own, another one's of an equal native tree, a release's.

use isobench_schema::assessment::RevisionFacts;
use isobench_schema::ids::{ArmId, Moment};

use super::{ArmSource, Platform, Probe, Request};
use crate::knowledge::engines::{Engine, WheelLayout};
use crate::knowledge::packages::Group;
use crate::knowledge::releases::Release;

/// A wheel that can be installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wheel {
    /// The requirement, as pip writes it.
    pub(super) requirement: String,
    /// A further index that it is found on.
    pub(super) index: Option<String>,
    /// The only Python that it is for.
    pub(super) python: Option<String>,
    /// Its URL, or name and version.
    pub(super) artifact: String,
    /// Why it is held to be there.
    pub(super) because: String,
}

/// Why a revision has no wheel of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoWheel {
    /// What it would be called.
    pub(super) artifact: Option<String>,
    /// Why it isn't there.
    pub(super) reason: String,
}

impl NoWheel {
    fn because(reason: impl Into<String>) -> Self {
        Self { artifact: None, reason: reason.into() }
    }
}

/// Returns the wheel of exactly this revision.
pub(super) fn own_wheel(request: &Request<'_>, revision: &RevisionFacts) -> Result<Wheel, NoWheel> {
    let engine = request.knowledge.engines.of(request.engine);
    let engine = engine.ok_or_else(|| NoWheel::because("nothing is known of this engine's wheels"))?;
    if let Some(release) = release_of(request, revision) {
        let because = format!("the revision is the tagged commit of {}", release.name);
        return Ok(release_wheel(engine, release, because));
    }
    let platform = name(request.means.platform);
    let Some(layout) = engine.wheel_at(request.means.platform, &revision.committed) else {
        let reason = match engine.wheels_since(request.means.platform) {
            None => format!("no wheels of single commits are published for `{platform}`"),
            Some(since) => format!(
                "wheels of single commits are published since {}, and this one is of {}",
                day(since),
                day(&revision.committed)
            ),
        };
        return Err(NoWheel::because(reason));
    };
    let wheel = of_layout(engine, layout, revision)?;
    published(request, engine, layout, revision, wheel)
}

/// Returns the wheel if it is held to be there, by what the archive answered, was seen to answer, or is known to keep.
fn published(
    request: &Request<'_>,
    engine: &Engine,
    layout: &WheelLayout,
    revision: &RevisionFacts,
    wheel: Wheel,
) -> Result<Wheel, NoWheel> {
    let absent = |reason: String| Err(NoWheel { artifact: Some(wheel.artifact.clone()), reason });
    match request.means.probes.get(&revision.commit) {
        Some(Probe::Present) => {
            let because = "the archive was asked and has it".to_owned();
            return Ok(Wheel { because, ..wheel });
        }
        Some(Probe::Absent) => return absent("the archive was asked and doesn't have it".to_owned()),
        None => {}
    }
    if let Some(missing) = engine.missing_wheel(revision.commit.as_str()) {
        let seen =
            format!("the archive didn't have it on {} ({}); asking it again may tell", missing.seen, missing.source);
        return absent(seen);
    }
    if layout.optional {
        return absent("only some commits of that time have a wheel, and the archive wasn't asked".to_owned());
    }
    let parent = revision.parent.as_ref().and_then(|parent| engine.missing_wheel(parent.as_str()));
    let doubt =
        parent.map_or_else(String::new, |missing| format!(", and lacked that of its parent on {}", missing.seen));
    let because = format!("{}{doubt}", wheel.because);
    Ok(Wheel { because, ..wheel })
}

fn of_layout(engine: &Engine, layout: &WheelLayout, revision: &RevisionFacts) -> Result<Wheel, NoWheel> {
    let package = &engine.package;
    let commit = revision.commit.as_str();
    let because =
        "assumed: the archive keeps wheels of the main branch's commits of that time; it wasn't asked".to_owned();
    let python = layout.python.clone();
    if let Some(url) = &layout.url {
        let url = with_release(url, revision)?.replace("{commit}", commit);
        let requirement = format!("{package} @ {url}");
        return Ok(Wheel { requirement, index: None, python, artifact: url, because });
    }
    let index = layout.index.as_deref().unwrap_or_default().replace("{commit}", commit);
    Ok(Wheel { requirement: package.clone(), index: Some(index.clone()), python, artifact: index, because })
}

/// Returns a layout's text with the release put in.
fn with_release(text: &str, revision: &RevisionFacts) -> Result<String, NoWheel> {
    if !text.contains("{release}") {
        return Ok(text.to_owned());
    }
    let release = revision.after_release.as_deref();
    let release = release.ok_or_else(|| NoWheel::because("its name holds the release before, which isn't known"))?;
    Ok(text.replace("{release}", release.trim_start_matches('v')))
}

/// Returns the requirement and index of the wheels of both revisions with `{commit}` left in, if one text serves both.
pub(super) fn common_template(
    request: &Request<'_>,
    one: &RevisionFacts,
    other: &RevisionFacts,
) -> Option<(String, Option<String>, Option<String>)> {
    let engine = request.knowledge.engines.of(request.engine)?;
    let of = |revision: &RevisionFacts| {
        if release_of(request, revision).is_some() {
            return None;
        }
        let layout = engine.wheel_at(request.means.platform, &revision.committed)?;
        let package = &engine.package;
        let requirement = match &layout.url {
            Some(url) => format!("{package} @ {}", with_release(url, revision).ok()?),
            None => package.clone(),
        };
        let index = layout.index.clone().filter(|_| layout.url.is_none());
        Some((requirement, index, layout.python.clone()))
    };
    of(one).filter(|found| Some(found) == of(other).as_ref())
}

/// Returns the wheel whose native files serve an arm: of an arm of an equal native tree, a release, a known commit.
pub(super) fn serving(request: &Request<'_>, revision: &RevisionFacts) -> Result<Wheel, NoWheel> {
    let Some(key) = revision.native_key.as_deref() else {
        return Err(NoWheel::because("its native key isn't known: name a clone of the repository"));
    };
    let supplier = supplier(request, key).and_then(|arm| {
        let wheel = own_wheel(request, arm.revision?).ok()?;
        let because = format!("the native tree of `{}` is equal ({key}); {}", arm.arm, wheel.because);
        Some(Wheel { because, ..wheel })
    });
    supplier
        .or_else(|| equal_release(request, revision, key))
        .or_else(|| equal_commit(request, revision, key))
        .ok_or_else(|| {
            NoWheel::because(format!("no release and no known commit with a wheel has an equal native tree ({key})"))
        })
}

/// Returns the arm whose own wheel gives the native files of all arms with a native key.
pub(super) fn supplier<'a>(request: &Request<'a>, key: &str) -> Option<&'a ArmSource<'a>> {
    request.arms.iter().filter(|arm| matches!(arm.arm, ArmId::Baseline | ArmId::Human)).find(|arm| {
        let equal = |revision: &&RevisionFacts| revision.native_key.as_deref() == Some(key);
        arm.revision.filter(equal).is_some_and(|revision| own_wheel(request, revision).is_ok())
    })
}

fn equal_release(request: &Request<'_>, revision: &RevisionFacts, key: &str) -> Option<Wheel> {
    if request.means.platform != Platform::Cuda {
        return None;
    }
    let engine = request.knowledge.engines.of(request.engine)?;
    let releases = request.knowledge.releases.of(request.engine);
    let equal = |release: &&Release| {
        let torch = |moment| torch(request, moment);
        release.native_key.as_deref() == Some(key) && torch(release.since()) == torch(&revision.committed)
    };
    let release = releases.iter().find(equal)?;
    let because = format!("the native tree of {} is equal ({key}), and so is its PyTorch", release.name);
    Some(release_wheel(engine, release, because))
}

fn equal_commit(request: &Request<'_>, revision: &RevisionFacts, key: &str) -> Option<Wheel> {
    let equal = |known: &&RevisionFacts| {
        let torch = |moment| torch(request, moment);
        known.native_key.as_deref() == Some(key) && torch(&known.committed) == torch(&revision.committed)
    };
    request.knowledge.commits.of(request.engine).filter(equal).find_map(|known| {
        let wheel = own_wheel(request, known).ok()?;
        let because = format!("the native tree of commit {} is equal ({key}); {}", known.commit.short(), wheel.because);
        Some(Wheel { because, ..wheel })
    })
}

/// Returns the release whose tagged commit a revision is.
pub(super) fn release_of<'a>(request: &Request<'a>, revision: &RevisionFacts) -> Option<&'a Release> {
    let tagged = |release: &&Release| release.commit.as_deref() == Some(revision.commit.short());
    let releases = request.knowledge.releases.of(request.engine).iter();
    releases.filter(|_| request.means.platform == Platform::Cuda).find(tagged)
}

/// Returns the wheel of a release on the package index.
pub(super) fn release_wheel(engine: &Engine, release: &Release, because: String) -> Wheel {
    let requirement = format!("{}=={}", engine.package, release.version());
    Wheel { artifact: requirement.clone(), requirement, index: None, python: None, because }
}

/// Returns what is asked for of `torch` at a moment: native files only fit the one that they were linked with.
pub(super) fn torch<'a>(request: &Request<'a>, moment: &Moment) -> &'a [String] {
    let packages = request.knowledge.engines.packages(request.engine);
    packages.map_or(&[], |packages| packages.package_at("torch", &[Group::Cuda, Group::Common], moment))
}

/// Returns a file of an arm's patch that must be compiled.
pub(super) fn compiled_change<'a>(engine: &Engine, arm: &ArmSource<'a>, revision: &RevisionFacts) -> Option<&'a str> {
    let native = |file: &&String| engine.is_native(file, &revision.committed);
    arm.touched?.iter().find(native).map(String::as_str)
}

/// Returns the day of a moment.
pub(super) fn day(moment: &Moment) -> &str {
    moment.as_str().get(..10).unwrap_or(moment.as_str())
}

/// Returns a platform's name.
pub(super) fn name(platform: Platform) -> &'static str {
    match platform {
        Platform::Cuda => "cuda",
        Platform::Cpu => "cpu",
    }
}
