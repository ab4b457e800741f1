//! Prepares an environment: takes it from the cache, or makes it there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use isobench_schema::environment::{EnvironmentSpec, Python, Rung, Venv};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::ids::{CommitId, Digest, EnvironmentId};

use super::build::{self, Commands};
use super::cache::CacheEntry;
use super::image::{self, ImageRecord};
use super::manifest::{Manifest, digest_file, scan, scan_again};
use super::native::{self, Author, NativeNote, Objects};
use super::overlay;
use super::patch::{self, BinaryContent};
use super::remove::remove_tree;
use super::safe_path::{relative, to_text};
use super::venv::{self, Interpreter, VenvRecord};
use super::{EnvironmentError, PrepareContext, Stop, split};
use crate::cache_use::UseLock;
use crate::command::Environment;
use crate::git::Repository;

/// An environment on disk.
#[derive(Debug, Clone)]
pub struct Prepared {
    /// The environment's name.
    pub id: EnvironmentId,
    /// Its folder in the cache.
    pub folder: PathBuf,
    /// The files that are served: the working folder of the engine.
    pub tree: PathBuf,
    /// The interpreter, if the engine is a Python program.
    pub python: Option<PathBuf>,
    /// The folders that come first on Python's search path.
    pub python_path: Vec<PathBuf>,
    /// Everything that is known of it.
    pub manifest: Manifest,
    /// Keeps it and its virtual environment from being pruned.
    uses: Vec<UseLock>,
}

impl Prepared {
    /// Returns the installed packages of its virtual environment or its image as `name==version`, sorted.
    pub fn packages(&self) -> &[String] {
        let of_venv = self.manifest.venv.as_ref().map(|venv| venv.packages.as_slice());
        let of_image = self.manifest.image.as_ref().map(|image| image.packages.as_slice());
        of_venv.or(of_image).unwrap_or_default()
    }

    /// Returns those packages that must be equal in arms that are compared.
    pub(crate) fn compared_packages(&self) -> Vec<String> {
        let of_image = self.manifest.image.as_ref().map(super::image::ImageRecord::compared);
        of_image.unwrap_or_else(|| self.packages().to_vec())
    }

    /// Notes that a run uses it.
    pub(crate) fn note_use(&self, run: &str) {
        self.uses.iter().for_each(|used| used.note(run));
    }

    /// Returns the folder of its virtual environment, if it has one.
    pub fn venv_folder(&self) -> Option<&Path> {
        self.manifest.venv.as_ref().map(|venv| venv.folder.as_path())
    }

    /// Adds to `environment` what a process needs to run in this environment: Python's search path, a bytecode cache that
    /// is private and empty, and the virtual environment. `scratch` is a private folder of the launch.
    ///
    /// Without a private bytecode cache Python would write into the tree, or read what another launch wrote there.
    pub fn add_to(&self, environment: &mut Environment, scratch: &Path) {
        if self.python.is_none() {
            return;
        }
        if let Ok(path) = std::env::join_paths(&self.python_path) {
            environment.insert("PYTHONPATH".to_owned(), path);
        }
        environment.insert("PYTHONPYCACHEPREFIX".to_owned(), scratch.join("pycache").into());
        environment.insert("PYTHONNOUSERSITE".to_owned(), "1".into());
        if let Some(venv) = &self.manifest.venv {
            venv.add_to(environment);
        }
    }
}

/// Prepares the environment that `spec` describes, or takes it from the cache.
///
/// # Errors
/// The outer error is the tool's own inability, such as a full disk; the inner failure says why the arm can't have its
/// environment.
pub fn prepare(
    spec: &EnvironmentSpec,
    context: &PrepareContext<'_>,
) -> Result<Result<Prepared, Failure>, EnvironmentError> {
    split(try_prepare(spec, context))
}

fn try_prepare(spec: &EnvironmentSpec, context: &PrepareContext<'_>) -> Result<Prepared, Stop> {
    let id = spec.id()?;
    let python_path = check_python_path(spec)?;
    std::fs::create_dir_all(context.cache).map_err(EnvironmentError::write(context.cache))?;
    // The cache's own name goes into what builds write and into every proof, so links are resolved here, once.
    let cache = context.cache.canonicalize().map_err(EnvironmentError::read(context.cache))?;
    let context = &PrepareContext { cache: &cache, ..*context };
    let mut uses = Vec::new();
    let base = match &spec.python {
        Python::Absent => Base::default(),
        Python::System => Base { python: Some(venv::system_python(context)?), ..Base::default() },
        Python::Venv(packages) => {
            let (interpreter, record, used) = held_venv(packages, context)?;
            uses.push(used);
            Base { python: Some(interpreter), venv: Some(record), image: None }
        }
        Python::Image(python) => {
            let (record, used) = image::held(python, spec.overlay.as_deref(), context)?;
            uses.push(used);
            let interpreter = Interpreter { program: record.program.clone(), version: record.python_version.clone() };
            Base { python: Some(interpreter), venv: None, image: Some(record) }
        }
    };
    let entry = CacheEntry::lock(&id, context)?;
    uses.push(UseLock::take(&entry.folder).map_err(EnvironmentError::write(&entry.folder))?);
    let tree = entry.folder.join("tree");
    // The interpreter may have been replaced since; and a run that was killed never looked at the tree again.
    let is_whole = |manifest: &Manifest| scan_again(&tree, &manifest.files).is_ok_and(|files| files == manifest.files);
    // So may the compiler; arms that share native files must have them from one build.
    let is_current = |manifest: &Manifest| {
        let is_of_these = |note: &NativeNote| note.is_of_these_tools(spec.toolkit.as_ref());
        manifest.native_build.as_ref().is_none_or(is_of_these)
    };
    let fits = |manifest: &Manifest| {
        manifest.venv == base.venv && manifest.image == base.image && is_current(manifest) && is_whole(manifest)
    };
    let known = entry.manifest(&id).filter(fits);
    let manifest = if let Some(manifest) = known {
        manifest
    } else {
        entry.start_anew()?;
        let manifest = make(spec, &entry, &base, context)?;
        entry.finish(&manifest)?;
        manifest
    };
    if let Some(note) = &manifest.native_build {
        uses.push(UseLock::take(&note.folder).map_err(EnvironmentError::write(&note.folder))?);
    }
    let python_path = match &spec.overlay {
        Some(_) => vec![tree.clone()],
        None => python_path.iter().map(|folder| tree.join(folder)).collect(),
    };
    let folder = entry.folder.clone();
    Ok(Prepared { id, folder, tree, python: base.python.map(|python| python.program), python_path, manifest, uses })
}

/// Returns the commit whose files an environment's image must hold, if its registry says so.
fn holds(spec: &EnvironmentSpec) -> Option<&CommitId> {
    match &spec.python {
        Python::Image(image) => image.holds.as_ref(),
        Python::Absent | Python::System | Python::Venv(_) => None,
    }
}

/// What an environment is made on.
#[derive(Debug, Default)]
struct Base {
    python: Option<Interpreter>,
    venv: Option<VenvRecord>,
    image: Option<ImageRecord>,
}

impl Base {
    /// Returns where the native files of an overlay come from.
    fn origin(&self) -> Option<overlay::Origin<'_>> {
        let of_venv = self.venv.as_ref().map(overlay::Origin::Venv);
        of_venv.or_else(|| self.image.as_ref().map(overlay::Origin::Image))
    }
}

/// Takes a virtual environment and holds it, so that no prune takes it.
fn held_venv(packages: &Venv, context: &PrepareContext<'_>) -> Result<(Interpreter, VenvRecord, UseLock), Stop> {
    loop {
        let (interpreter, record) = venv::ensure(packages, context)?;
        let used = UseLock::take(&record.folder).map_err(EnvironmentError::write(&record.folder))?;
        // A prune may have been faster; then it is made again.
        if record.program.exists() {
            return Ok((interpreter, record, used));
        }
        context.check_cancelled()?;
    }
}

/// Returns the folders of Python's search path, relative to the tree.
fn check_python_path(spec: &EnvironmentSpec) -> Result<Vec<PathBuf>, Failure> {
    let check = |folder: &String| match folder.trim_end_matches('/') {
        "." | "" => Ok(PathBuf::new()),
        folder => relative(folder.as_bytes()).map(Path::to_owned).map_err(|reason| {
            let message = format!("the folder `{folder}` of Python's search path {reason}");
            Failure::new(FailureStage::Dataset, FailureClass::TreeUnsafe, message)
        }),
    };
    spec.python_path.iter().map(check).collect()
}

/// Makes the environment in its entry of the cache.
fn make(
    spec: &EnvironmentSpec,
    entry: &CacheEntry,
    base: &Base,
    context: &PrepareContext<'_>,
) -> Result<Manifest, Stop> {
    let (python, venv) = (base.python.as_ref(), base.venv.as_ref());
    let tree = entry.folder.join("tree");
    // An overlay serves another folder than the export: the package alone.
    let source = if spec.overlay.is_some() { entry.folder.join("source") } else { tree.clone() };
    let repository = Repository::open(&spec.source.repository, context)??;
    let exported = repository.try_export(&spec.source.commit, &source, context)?;
    let patched = match &spec.source.patch {
        None => BTreeSet::new(),
        Some(patch) => {
            let binary = if spec.source.allow_binary_patch { BinaryContent::Allowed } else { BinaryContent::Refused };
            patch::try_apply(patch, binary, &source, context)?
        }
    };
    let overlay = match &spec.overlay {
        None => None,
        Some(package) => {
            // An image that gives native files of an equal tree must be of the commit that it was taken for.
            let other = holds(spec).filter(|commit| **commit != spec.source.commit);
            let exported_too = match other {
                None => None,
                Some(commit) => {
                    let folder = entry.folder.join("held");
                    repository.try_export(commit, &folder, context)?;
                    Some(folder)
                }
            };
            let held = match &exported_too {
                Some(folder) => Some(overlay::Held::Another(folder)),
                None => (spec.rung == Rung::Image || holds(spec).is_some()).then_some(overlay::Held::Source),
            };
            let plan = overlay::Overlay { package, held, source: &source, tree: &tree, patched: &patched };
            let note = overlay::lay(&plan, base.origin())?;
            if let Some(folder) = &exported_too {
                remove_tree(folder).map_err(EnvironmentError::write(folder))?;
            }
            Some(note)
        }
    };
    let native = match &spec.native {
        None => None,
        Some(native) => {
            native::check_patch(native, &patched)?;
            let author = native::author(native, &patched);
            let build = (native, spec.toolkit.as_ref());
            let built = native::ensure(build, (&source, author), (python, venv), context)?;
            built.lay(&tree)?;
            Some(built)
        }
    };
    let changed = changed_files(&source, &patched, spec.overlay.as_deref())?;
    if spec.overlay.is_some() {
        remove_tree(&source).map_err(EnvironmentError::write(&source))?;
    }
    build_in_tree(spec, (&entry.folder, &tree), (python, venv), context)?;
    let files = scan(&tree)?;
    if let Some(native) = &native {
        native.check_laid(&files)?;
    }
    Ok(Manifest {
        id: spec.id()?,
        commit: spec.source.commit.clone(),
        tree: Digest::of_json(&files)?,
        files,
        changed,
        submodules: exported.submodules,
        overlay,
        native_build: native.map(|native| native.note()),
        venv: base.venv.clone(),
        image: base.image.clone(),
    })
}

/// Runs the build commands in an arm's tree, with the objects of earlier builds.
fn build_in_tree(
    spec: &EnvironmentSpec,
    (folder, tree): (&Path, &Path),
    with: (Option<&Interpreter>, Option<&VenvRecord>),
    context: &PrepareContext<'_>,
) -> Result<(), Stop> {
    if spec.build.is_empty() {
        return Ok(());
    }
    let objects = Objects::begin(folder, &spec.build, context)?;
    let mut variables = objects.variables(tree);
    variables.extend(spec.build_environment.clone());
    let commands = Commands {
        lists: &spec.build,
        variables: &variables,
        tree,
        objects: Some(objects.folder()),
        memory_per_job_mib: native::tools::MEMORY_PER_JOB_MIB,
        jobs: native::tools::jobs(native::tools::MEMORY_PER_JOB_MIB),
        toolkit: spec.toolkit.as_ref(),
    };
    build::run_all(&commands, with, context)?;
    // Whatever of the tree a patch changes, the commands may have run it.
    Ok(objects.end(if spec.source.patch.is_some() { Author::Patch } else { Author::Revision })?)
}

/// Returns the digest of each file that the patch changed, by its path in the tree that is served.
fn changed_files(
    source: &Path,
    patched: &BTreeSet<PathBuf>,
    overlay: Option<&str>,
) -> Result<BTreeMap<String, Option<Digest>>, EnvironmentError> {
    let mut changed = BTreeMap::new();
    for path in patched.iter().filter(|path| overlay.is_none_or(|package| path.starts_with(package))) {
        let place = source.join(path);
        let digest = match place.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(EnvironmentError::read(&place)(error)),
            Ok(metadata) if metadata.is_file() => Some(digest_file(&place)?.0),
            // A link is proven by the manifest, which holds its target.
            Ok(_) => continue,
        };
        changed.insert(to_text(path), digest);
    }
    Ok(changed)
}
