//! An overlay: a revision's files of one package over the native files of the installed package.
//!
//! A revision that changes only Python files needs no compile: its files are laid over those that only a build makes,
//! taken from an installed release. What the revision doesn't have is not taken over, except by a rule with a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use isobench_schema::check::Check;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::Digest;

use super::image::ImageRecord;
use super::manifest::{OverlayNote, digest_file};
use super::safe_path::{link_stays_inside, relative, to_text};
use super::share;
use super::venv::VenvRecord;
use super::{EnvironmentError, Stop};

/// Python files that a build makes and no revision holds: which, and why they are taken from the installed package.
const GENERATED: &[(Rule, &str)] = &[
    (Rule::Name("_version.py"), "setuptools-scm writes the version when it builds"),
    (Rule::Name("version.py"), "the build writes the version"),
    (Rule::Name("commit_id.py"), "the build writes the commit"),
    (Rule::Suffix("_pb2.py"), "protoc generates it from a .proto file"),
    (Rule::Suffix("_pb2_grpc.py"), "protoc generates it from a .proto file"),
    (Rule::Folder("vllm_flash_attn"), "the build copies the interface of flash attention from its own repository"),
    (Rule::Folder("third_party"), "the build copies it from another repository"),
];

/// File names whose change needs a compile, which an overlay doesn't do.
const NATIVE_EXTENSIONS: &[&str] =
    &["c", "cc", "cmake", "cpp", "cu", "cuh", "cxx", "h", "hip", "hpp", "inc", "pyx", "rs", "so"];
/// Files outside the package that decide how it is compiled.
const NATIVE_FILES: &[&str] = &["CMakeLists.txt", "setup.py"];

/// The most differing files that a failure carries as evidence.
const EVIDENCE_LINES: usize = 20;

/// Which files a rule is about.
enum Rule {
    /// Those with this name.
    Name(&'static str),
    /// Those whose name ends so.
    Suffix(&'static str),
    /// Those in a folder of this name.
    Folder(&'static str),
}

impl Rule {
    fn matches(&self, path: &Path) -> bool {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        match self {
            Self::Name(exact) => name == *exact,
            Self::Suffix(suffix) => name.ends_with(suffix),
            Self::Folder(folder) => path.parent().is_some_and(|parent| parent.iter().any(|part| part == *folder)),
        }
    }
}

/// Where the native files come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin<'a> {
    /// A virtual environment.
    Venv(&'a VenvRecord),
    /// An image.
    Image(&'a ImageRecord),
}

impl Origin<'_> {
    fn find(&self, package: &str) -> Option<PathBuf> {
        match self {
            Self::Venv(venv) => find_installed(venv, package),
            Self::Image(image) => image.package_folder(package),
        }
    }

    fn version_of(&self, package: &str) -> Option<String> {
        match self {
            Self::Venv(venv) => version_of(venv, package),
            Self::Image(image) => image.version(),
        }
    }

    fn native_digest(&self, path: &Path) -> Option<&Digest> {
        match self {
            Self::Venv(venv) => venv.native_digest(path),
            Self::Image(image) => image.native_digest(path),
        }
    }
}

/// The revision that an installed package is said to be of.
#[derive(Debug, Clone, Copy)]
pub(super) enum Held<'a> {
    /// That of the tree itself, but for what a patch changes.
    Source,
    /// Another one, whose tree is here.
    Another(&'a Path),
}

/// What to lay where.
pub(super) struct Overlay<'a> {
    /// The revision whose files the installed package must hold, if it is said to be of one.
    pub(super) held: Option<Held<'a>>,
    /// The package: a folder at the root of the revision's tree and of the installed packages.
    pub(super) package: &'a str,
    /// The revision's tree, patched.
    pub(super) source: &'a Path,
    /// The new tree, which will hold the package alone.
    pub(super) tree: &'a Path,
    /// The files that the patch changed.
    pub(super) patched: &'a BTreeSet<PathBuf>,
}

/// Lays the overlay.
pub(super) fn lay(overlay: &Overlay<'_>, origin: Option<Origin<'_>>) -> Result<OverlayNote, Stop> {
    let package = overlay.package;
    check_name(package)?;
    check_patch(overlay)?;
    let Some((origin, installed)) = origin.and_then(|origin| Some((origin, origin.find(package)?))) else {
        let message = format!("the overlay needs the package `{package}`, which its Python doesn't have");
        return Err(Failure::new(FailureStage::Acquire, FailureClass::ToolMissing, message).into());
    };
    let revision = overlay.source.join(package);
    check_folder(&revision, package)?;
    let ours = list(&revision)?;
    let mut note = OverlayNote {
        package: package.to_owned(),
        version: origin.version_of(package),
        from_revision: ours.len() as u64,
        generated: BTreeMap::new(),
        left_out: Vec::new(),
    };
    let target = overlay.tree.join(package);
    std::fs::create_dir_all(&target).map_err(EnvironmentError::write(&target))?;
    for path in list(&installed)?.iter().filter(|path| !ours.contains(*path)) {
        if is_bytecode(path) {
            continue;
        }
        if path.extension() == Some(OsStr::new("py")) {
            let Some((_, reason)) = GENERATED.iter().find(|(rule, _)| rule.matches(path)) else {
                note.left_out.push(to_text(path));
                continue;
            };
            note.generated.insert(to_text(path), (*reason).to_owned());
        }
        let (from, to) = (installed.join(path), target.join(path));
        put(&from, &to, is_native(path))?;
        check_native(&from, &to, origin)?;
    }
    match overlay.held {
        None => {}
        Some(Held::Source) => {
            let is_free = |path: &Path| overlay.patched.contains(&Path::new(package).join(path));
            check_revision(package, (&installed, &revision), is_free)?;
        }
        Some(Held::Another(tree)) => {
            let revision = tree.join(package);
            check_folder(&revision, package)?;
            check_revision(package, (&installed, &revision), |_| false)?;
        }
    }
    for path in &ours {
        put(&revision.join(path), &target.join(path), false)?;
    }
    check_links(&target, overlay.tree)?;
    Ok(note)
}

/// Checks that a revision has the package's folder.
fn check_folder(revision: &Path, package: &str) -> Result<(), Failure> {
    if revision.is_dir() && !revision.is_symlink() {
        return Ok(());
    }
    let message = format!("the revision has no folder `{package}`, which the overlay needs");
    let failure = Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message);
    Err(failure.breaking(Check::StaticProof))
}

/// Checks that the installed package is that of the very revision: each Python file that the patch leaves alone and no build
/// makes is the same in both.
fn check_revision(
    package: &str,
    (installed, revision): (&Path, &Path),
    is_free: impl Fn(&Path) -> bool,
) -> Result<(), Stop> {
    let counts = |path: &PathBuf| {
        let is_python = path.extension() == Some(OsStr::new("py")) && !is_bytecode(path);
        is_python && !is_free(path) && !GENERATED.iter().any(|(rule, _)| rule.matches(path))
    };
    let there = list(revision)?;
    let mut lines = Vec::new();
    for path in there.iter().filter(|path| counts(path)) {
        let place = revision.join(path);
        if place.is_symlink() {
            continue;
        }
        let read = |place: &Path| std::fs::read(place).map_err(EnvironmentError::read(place));
        let there = installed.join(path);
        if !there.is_file() {
            lines.push(format!("not in the image: {}", to_text(path)));
        } else if read(&place)? != read(&there)? {
            lines.push(format!("another file in the image: {}", to_text(path)));
        }
    }
    let installed = list(installed)?;
    let only_there = installed.difference(&there).filter(|path| counts(path));
    lines.extend(only_there.map(|path| format!("not in the revision: {}", to_text(path))));
    if lines.is_empty() {
        return Ok(());
    }
    let message = format!("the image's `{package}` isn't of the revision: {} Python files differ", lines.len());
    let lines = lines.iter().take(EVIDENCE_LINES).map(|line| EvidenceLine::new("overlay", None, line));
    let failure = Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message);
    Err(failure.breaking(Check::StaticProof).with_evidence(lines).into())
}

fn check_name(package: &str) -> Result<(), Failure> {
    let plain = relative(package.as_bytes()).is_ok() && !package.contains('/');
    let message = || format!("`{package}` can't be the package of an overlay: it is no top-level name");
    if plain { Ok(()) } else { Err(Failure::new(FailureStage::Dataset, FailureClass::TreeUnsafe, message())) }
}

/// A patch of files that are compiled would have no effect, which must never pass in silence.
fn check_patch(overlay: &Overlay<'_>) -> Result<(), Failure> {
    let compiled: Vec<String> =
        overlay.patched.iter().filter(|path| is_compiled(path)).map(|path| to_text(path)).collect();
    let Some(first) = compiled.first() else { return Ok(()) };
    let message = format!("the patch changes `{first}`, which must be compiled, and an overlay compiles nothing");
    let lines = compiled.iter().map(|path| EvidenceLine::new("patch", None, path));
    let failure = Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message);
    Err(failure.breaking(Check::StaticProof).with_evidence(lines))
}

/// Returns whether a file is compiled, or decides how others are, by its name.
pub(super) fn is_compiled(path: &Path) -> bool {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    NATIVE_EXTENSIONS.contains(&extension) || NATIVE_FILES.iter().any(|name| path.as_os_str() == *name)
}

fn find_installed(venv: &VenvRecord, package: &str) -> Option<PathBuf> {
    venv.site_packages.iter().map(|folder| folder.join(package)).find(|folder| folder.is_dir())
}

/// Returns the version of the distribution whose record lists the package's files.
fn version_of(venv: &VenvRecord, package: &str) -> Option<String> {
    let beginning = format!("{package}/");
    let records = venv.site_packages.iter().filter_map(|site| std::fs::read_dir(site).ok()).flatten().flatten();
    let owner = records.map(|entry| entry.path()).find(|folder| {
        let record = std::fs::read_to_string(folder.join("RECORD"));
        record.is_ok_and(|record| record.lines().any(|line| line.starts_with(&beginning)))
    })?;
    let name = owner.file_name()?.to_str()?.strip_suffix(".dist-info")?;
    name.split_once('-').map(|(_, version)| version.to_owned())
}

/// Returns every file and link under `folder`, relative to it.
fn list(folder: &Path) -> Result<BTreeSet<PathBuf>, EnvironmentError> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(inner) = folders.pop() {
        let here = folder.join(&inner);
        for entry in std::fs::read_dir(&here).map_err(EnvironmentError::read(&here))? {
            let entry = entry.map_err(EnvironmentError::read(&here))?;
            let path = inner.join(entry.file_name());
            if entry.file_type().map_err(EnvironmentError::read(&here))?.is_dir() {
                folders.push(path);
            } else {
                found.insert(path);
            }
        }
    }
    Ok(found)
}

fn is_bytecode(path: &Path) -> bool {
    path.extension() == Some(OsStr::new("pyc")) || path.iter().any(|part| part == "__pycache__")
}

/// A native library: `x.so`, `x.so.1`, `x.cpython-311-x86_64-linux-gnu.so`.
pub(super) fn is_native(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    path.extension() == Some(OsStr::new("so")) || name.contains(".so.")
}

/// Puts a file or link in place. Native libraries, which are large and are never written in place, may share their bytes with
/// the installed package; the digests of the tree and of the package tell whether somebody wrote into them all the same.
fn put(from: &Path, to: &Path, share: bool) -> Result<(), EnvironmentError> {
    let write_error = EnvironmentError::write(to);
    if let Some(folder) = to.parent() {
        std::fs::create_dir_all(folder).map_err(&write_error)?;
    }
    let kind = from.symlink_metadata().map_err(EnvironmentError::read(from))?;
    if kind.is_symlink() {
        let target = std::fs::read_link(from).map_err(EnvironmentError::read(from))?;
        return symlink(target, to).map_err(write_error);
    }
    if share { share::share(from, to) } else { std::fs::copy(from, to).map(|_| ()) }.map_err(write_error)
}

/// Checks that a native library is the one that was installed: its bytes are shared with every other tree, and an engine of
/// another run may just have written into them.
fn check_native(from: &Path, to: &Path, origin: Origin<'_>) -> Result<(), Stop> {
    let metadata = to.symlink_metadata().map_err(EnvironmentError::read(to))?;
    if !metadata.is_file() || !is_native(to) {
        return Ok(());
    }
    let (found, _, _) = digest_file(to)?;
    if origin.native_digest(from) == Some(&found) {
        return Ok(());
    }
    let message = format!("the library `{}` isn't what was installed", from.display());
    let line = EvidenceLine::new("overlay", None, &format!("{}: {}", to_text(from), found.as_str()));
    let failure = Failure::new(FailureStage::Acquire, FailureClass::HostError, message);
    Err(failure.with_evidence([line]).transient().into())
}

fn check_links(target: &Path, tree: &Path) -> Result<(), Stop> {
    for path in list(target)? {
        let place = target.join(&path);
        let Ok(link) = std::fs::read_link(&place) else { continue };
        let inner = place.strip_prefix(tree).unwrap_or(&path);
        if !link_stays_inside(tree, inner, link.as_os_str()).map_err(EnvironmentError::read(&place))? {
            let message = "the overlay would hold a link that leaves it";
            let line = format!("{} -> {}", to_text(inner), to_text(&link));
            let failure = Failure::new(FailureStage::Acquire, FailureClass::TreeUnsafe, message);
            return Err(failure.with_evidence([EvidenceLine::new("overlay", None, &line)]).into());
        }
    }
    Ok(())
}
