//! Environments from images: what an image's Python is and has, and its engine's package, copied out once for each image.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use isobench_schema::container::ImageFacts;
use isobench_schema::environment::ImagePython;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::format::Stored;
use isobench_schema::ids::Digest;
use serde::{Deserialize, Serialize};

use super::cache::{read_record, write_record};
use super::image_copy::copy_out;
use super::lock::FolderLock;
use super::remove::discard;
use super::safe_path::to_text;
use super::venv::isolated;
use super::venv::look::{Look, NativeFile};
use super::{EnvironmentError, PrepareContext, Stop, sync};
use crate::cache_use::UseLock;
use crate::container::{Asking, ContainerError, ContainerOptions, Daemon, Executed, ask};

/// The most lines of what a container wrote that a failure carries as evidence.
const EVIDENCE_LINES: usize = 20;

/// Prints what an interpreter is and has, and where the package is that it would import. Nothing of the package runs.
const INSPECT: &str = r#"
import importlib.metadata, importlib.util, json, os, platform, sys
package = sys.argv[1] if sys.argv[1:] else None
distributions = [(d, d.metadata["Name"]) for d in importlib.metadata.distributions()]
found = {(name, d.version) for d, name in distributions if name}
place = owner = None
if package:
    spec = importlib.util.find_spec(package)
    places = list(spec.submodule_search_locations or []) if spec else []
    place = os.path.realpath(places[0]) if places else None
    def owns(d, name):
        return name == package or any(file.parts[0] == package for file in d.files or [])
    owner = next((f"{name}=={d.version}" for d, name in distributions if name and owns(d, name)), None)
print(json.dumps({
    "program": sys.executable,
    "version": platform.python_version(),
    "packages": sorted(f"{name}=={version}" for name, version in found),
    "place": place,
    "owner": owner,
}))
"#;

/// What an image's interpreter says of itself.
#[derive(Debug, Deserialize)]
struct Inspected {
    program: PathBuf,
    version: String,
    packages: Vec<String>,
    place: Option<String>,
    owner: Option<String>,
}

/// An image's Python, with what was copied of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageRecord {
    /// Its folder in the cache.
    pub folder: PathBuf,
    /// The id of the image.
    pub image: String,
    /// The interpreter in the image.
    pub program: PathBuf,
    /// Its Python version.
    pub python_version: String,
    /// Its packages as `name==version`, sorted.
    pub packages: Vec<String>,
    /// The package that was copied, if one was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied: Option<CopiedPackage>,
}

/// A package that was copied out of an image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CopiedPackage {
    /// The package.
    pub name: String,
    /// Where it is in the image.
    pub place: String,
    /// The distribution that brought it, as `name==version`; absent if no installer recorded it.
    pub owner: Option<String>,
    /// A digest over what the file system tells of each of its files.
    pub stamp: Digest,
    /// Its native libraries, by path inside it: trees share their bytes, so that they are known by content.
    pub native: BTreeMap<String, NativeFile>,
}

impl Stored for ImageRecord {
    const NAME: &'static str = "image-python";
    const VERSION: u32 = 1;
}

impl ImageRecord {
    /// Returns what it is, in a few words.
    pub(crate) fn words(&self) -> String {
        let package = self.copied.as_ref().map(|copied| format!(", `{}`", copied.name)).unwrap_or_default();
        let (python, packages) = (&self.python_version, self.packages.len());
        let image = self.image.split_once(':').map_or(self.image.as_str(), |(_, hex)| hex);
        let short: String = image.chars().take(12).collect();
        format!("image {short}, Python {python}, {packages} packages{package}")
    }

    /// Returns the folder of the package's copy.
    pub(super) fn package_folder(&self, package: &str) -> Option<PathBuf> {
        self.copied.as_ref().filter(|copied| copied.name == package).map(|_| self.copy_of(package))
    }

    fn copy_of(&self, package: &str) -> PathBuf {
        self.folder.join("packages").join(package)
    }

    /// Returns the version of the distribution that brought the package.
    pub(super) fn version(&self) -> Option<String> {
        let owner = self.copied.as_ref()?.owner.as_ref()?;
        owner.split_once("==").map(|(_, version)| version.to_owned())
    }

    /// Returns the digest that a native library of the copy had when it was copied.
    pub(super) fn native_digest(&self, path: &Path) -> Option<&Digest> {
        let copied = self.copied.as_ref()?;
        let name = to_text(path.strip_prefix(self.copy_of(&copied.name)).ok()?);
        copied.native.get(&name).map(|file| &file.sha256)
    }

    /// Returns whether none of the copied files was changed, added or removed since.
    pub(super) fn is_unchanged(&self) -> bool {
        let Some(copied) = &self.copied else { return true };
        let place = self.copy_of(&copied.name);
        Look::at(&place).is_ok_and(|look| look.stamp == copied.stamp && look.holds(&copied.native, &place))
    }

    /// Returns what of it must be equal in arms that are compared: its Python and its packages, but for the engine's own,
    /// which differs from revision to revision.
    pub(super) fn compared(&self) -> Vec<String> {
        let owner = self.copied.as_ref().and_then(|copied| copied.owner.as_ref());
        let packages = self.packages.iter().filter(|package| Some(*package) != owner).cloned();
        std::iter::once(format!("python=={}", self.python_version)).chain(packages).collect()
    }
}

/// Returns the folder of the cache that holds what was copied out of images.
pub(crate) fn image_packages_folder(cache: &Path) -> PathBuf {
    cache.join("image-packages")
}

/// Takes what is known of an image's Python from the cache, or looks into the image; held, so that no prune takes it.
pub(super) fn held(
    python: &ImagePython,
    package: Option<&str>,
    context: &PrepareContext<'_>,
) -> Result<(ImageRecord, UseLock), Stop> {
    let Some(image) = &python.pinned else {
        let message = format!("the plan doesn't pin the image `{}`; make it again", python.image);
        return Err(Failure::new(FailureStage::Acquire, FailureClass::EnvironmentUnproven, message).into());
    };
    let key = serde_json::json!({ "image": image.id, "program": python.program, "package": package });
    let folder = image_packages_folder(context.cache).join(Digest::of_json(&key)?.as_str());
    // Held before it is looked at, so that no prune takes it in between.
    let used = UseLock::take(&folder).map_err(EnvironmentError::write(&folder))?;
    let _lock = FolderLock::take(&folder.with_extension("lock"), context)?;
    let known = read_record::<ImageRecord>(&folder).filter(|record| record.folder == folder && record.is_unchanged());
    let record = if let Some(record) = known {
        record
    } else {
        discard(&folder)?;
        std::fs::create_dir_all(&folder).map_err(EnvironmentError::write(&folder))?;
        let record = look_into(image, python, (package, &folder), context)?;
        sync(&folder).map_err(EnvironmentError::write(&folder))?;
        write_record(&folder, &record)?;
        record
    };
    Ok((record, used))
}

fn look_into(
    image: &ImageFacts,
    python: &ImagePython,
    (package, folder): (Option<&str>, &Path),
    context: &PrepareContext<'_>,
) -> Result<ImageRecord, Stop> {
    let arguments: Vec<String> = package.map(str::to_owned).into_iter().collect();
    let output = run(&image.id, (Path::new(&python.program), INSPECT, &arguments), &[], context)?;
    let text = String::from_utf8_lossy(&output.stdout);
    let inspected = text.lines().last().and_then(|line| serde_json::from_str::<Inspected>(line).ok());
    let Some(found) = inspected.filter(|_| output.code == 0) else {
        let message =
            format!("the interpreter `{}` of the image `{}` can't say what it has", python.program, image.name);
        return Err(unusable(message, &output).into());
    };
    let mut record = ImageRecord {
        folder: folder.to_owned(),
        image: image.id.clone(),
        program: found.program,
        python_version: found.version,
        packages: found.packages,
        copied: None,
    };
    if let Some(package) = package {
        let Some(place) = found.place else {
            let message =
                format!("the overlay needs the package `{package}`, which the image `{}` doesn't have", image.name);
            return Err(Failure::new(FailureStage::Acquire, FailureClass::ToolMissing, message).into());
        };
        let copy = record.copy_of(package);
        copy_out((&image.id, &place), &copy, context)?;
        let look = Look::at(&copy).map_err(EnvironmentError::read(&copy))?;
        let native = look.digests(&copy)?;
        let name = package.to_owned();
        record.copied = Some(CopiedPackage { name, place, owner: found.owner, stamp: look.stamp, native });
    }
    Ok(record)
}

/// Runs a script by an image's interpreter, in a container without network or rights, which sees these folders of this machine
/// at their own paths.
pub(super) fn run(
    image: &str,
    (program, script, arguments): (&Path, &str, &[String]),
    reads: &[PathBuf],
    context: &PrepareContext<'_>,
) -> Result<Executed, Stop> {
    let mut command = vec![program.to_string_lossy().into_owned()];
    command.extend(isolated(Path::new("/nothing")).iter().map(|word| word.to_string_lossy().into_owned()));
    command.push(script.to_owned());
    command.extend_from_slice(arguments);
    let user = format!("{}:{}", rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let options = ContainerOptions {
        image: image.to_owned(),
        command,
        folder: Some(PathBuf::from("/")),
        user: Some(user),
        reads: reads.iter().map(|path| (path.clone(), path.clone())).collect(),
        ..ContainerOptions::default()
    };
    let asking = asking(context);
    let ran = ask(async { Daemon::connect().await?.run_once(options, asking).await });
    let ran = ran.map_err(|error| refused(&error))?;
    context.check_cancelled()?;
    Ok(ran)
}

pub(super) fn asking<'a>(context: &PrepareContext<'a>) -> Asking<'a> {
    let marker = context.reaper.map_or("none", |reaper| reaper.marker());
    Asking { marker, timeout: context.timeout }
}

/// Returns the failure of an image that the daemon couldn't do its part for.
pub(super) fn refused(error: &ContainerError) -> Failure {
    let text = crate::container::with_cause(error);
    let line = EvidenceLine::new("container", None, &text);
    let failure = Failure::new(FailureStage::Acquire, FailureClass::ContainerRefused, text);
    failure.with_evidence([line])
}

fn unusable(message: String, output: &Executed) -> Failure {
    let said = [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let lines: Vec<&str> = said.iter().flat_map(|text| text.lines()).collect();
    let last = lines.len().saturating_sub(EVIDENCE_LINES);
    let lines = lines.iter().skip(last).map(|line| EvidenceLine::new("container", None, line));
    Failure::new(FailureStage::Acquire, FailureClass::ToolMissing, message).with_evidence(lines)
}
