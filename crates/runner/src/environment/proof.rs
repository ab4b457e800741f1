//! The static proof: before a launch, from outside the measured code, that a tree is what its manifest says and that the
//! interpreter would import from it; and after the launch, that nothing in it changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use isobench_schema::check::Check;
use isobench_schema::environment::{EnvironmentSpec, StaticProof};
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::Digest;
use serde::Deserialize;

use super::image;
use super::manifest::{Entry, differences, scan_again};
use super::venv::isolated;
use super::{EnvironmentError, PrepareContext, Prepared, Stop, split};
use crate::command::{Invocation, Watch, run_into};

/// The most differing paths that a failure carries as evidence.
const EVIDENCE_LINES: usize = 20;

/// Modules that the interpreter itself imports when it starts: one in the tree would run before anything is measured.
const START_UP_MODULES: &[&str] = &["sitecustomize", "usercustomize"];

/// Resolves modules as an import would, without importing any. It runs isolated, so that no file of the tree is executed,
/// and puts the engine's search path together itself: the working folder, `PYTHONPATH`, the interpreter's own.
const RESOLVE: &str = r#"
import json, os, platform, sys
paths, modules = json.loads(sys.argv[1]), json.loads(sys.argv[2])
own = list(sys.path)
def resolve(name, path):
    sys.path[:] = path
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        spec = find(name, None, None) if find else None
        if spec is not None:
            places = [spec.origin] if spec.has_location and spec.origin else list(spec.submodule_search_locations or [])
            return [os.path.realpath(place) for place in places] or [str(spec.origin)]
    return []
# A program started by its file, not by `-m`, doesn't have the working folder on its path: both ways must agree.
ways = [paths + own] + ([paths[1:] + own] if paths[1:] else [])
found = {name: [resolve(name, way) for way in ways] for name in modules}
sys.path[:] = own
print(json.dumps({
    "executable": os.path.realpath(sys.executable),
    "version": platform.python_version(),
    "modules": found,
}))
"#;

#[derive(Debug, Deserialize)]
struct Resolved {
    executable: String,
    version: String,
    /// For each module and way of starting: the files or folders that an import would take.
    modules: BTreeMap<String, Vec<Vec<String>>>,
}

/// Proves a prepared environment before a launch.
///
/// # Errors
/// The outer error is the tool's own inability; the inner failure, of class `environment-unproven`, says what isn't as it
/// should be. The caller should evict the environment then.
pub fn prove_static(
    prepared: &Prepared,
    spec: &EnvironmentSpec,
    context: &PrepareContext<'_>,
) -> Result<Result<StaticProof, Failure>, EnvironmentError> {
    split(try_prove(prepared, spec, context))
}

fn try_prove(prepared: &Prepared, spec: &EnvironmentSpec, context: &PrepareContext<'_>) -> Result<StaticProof, Stop> {
    let manifest = &prepared.manifest;
    let files = scan_again(&prepared.tree, &manifest.files)?;
    let differing = differences(&manifest.files, &files);
    if !differing.is_empty() || Digest::of_json(&files)? != manifest.tree {
        return Err(unproven("the tree isn't what was prepared", differing).into());
    }
    let unseen: Vec<String> = files.iter().filter(|(_, entry)| **entry == Entry::Other).map(unseen_line).collect();
    if !unseen.is_empty() {
        return Err(unproven("the tree holds what can't be looked at", unseen).into());
    }
    check_changed(&manifest.changed, &files)?;
    if let Some(venv) = manifest.venv.as_ref().filter(|venv| !venv.is_unchanged()) {
        let lines = vec![format!("changed: {}", venv.folder.display())];
        return Err(unproven("the virtual environment was changed since it was made", lines).into());
    }
    if let Some(image) = manifest.image.as_ref().filter(|image| !image.is_unchanged()) {
        let lines = vec![format!("changed: {}", image.folder.display())];
        return Err(unproven("the image's package was changed since it was copied out", lines).into());
    }
    let mut proof = StaticProof {
        tree: Some(manifest.tree.clone()),
        files: manifest.file_count(),
        changed: manifest.changed.clone(),
        native: manifest.native(),
        native_build: manifest.native_build.as_ref().map(|native| native.key.clone()),
        toolkit: spec.toolkit.as_ref().map(|toolkit| toolkit.image.clone()),
        packages: prepared.packages().to_vec(),
        ..StaticProof::default()
    };
    match &prepared.python {
        Some(python) => {
            let resolved = resolve(prepared, python, &spec.modules, context)?;
            proof.modules = check_modules(&resolved, &spec.modules, &prepared.tree)?;
            proof.executable = Some(resolved.executable);
            proof.python_version = Some(resolved.version);
        }
        None if spec.modules.is_empty() => {}
        None => return Err(unproven("modules are named, but no Python to import them", spec.modules.clone()).into()),
    }
    Ok(proof)
}

fn unseen_line((path, _): (&String, &Entry)) -> String {
    format!("neither a file, a folder nor a link, or closed: {path}")
}

fn unproven(message: impl Into<String>, lines: Vec<String>) -> Failure {
    let lines = lines.into_iter().take(EVIDENCE_LINES);
    Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message)
        .breaking(Check::StaticProof)
        .with_evidence(lines.map(|line| EvidenceLine::new("tree", None, &line)))
}

/// Checks that the files that the patch wrote are still as it left them: a build may have written over them.
fn check_changed(changed: &BTreeMap<String, Option<Digest>>, files: &BTreeMap<String, Entry>) -> Result<(), Failure> {
    let is_kept = |path: &String, digest: &Option<Digest>| match (digest, files.get(path)) {
        (None, None) => true,
        (Some(digest), Some(Entry::File { sha256, .. })) => digest == sha256,
        (None, Some(_)) | (Some(_), None | Some(Entry::Link { .. } | Entry::Folder | Entry::Other)) => false,
    };
    let lost = changed.iter().filter(|(path, digest)| !is_kept(path, digest));
    let lost: Vec<String> = lost.map(|(path, _)| format!("not as the patch left it: {path}")).collect();
    if lost.is_empty() { Ok(()) } else { Err(unproven("the patch isn't wholly in the tree that is served", lost)) }
}

fn resolve(
    prepared: &Prepared,
    python: &Path,
    modules: &[String],
    context: &PrepareContext<'_>,
) -> Result<Resolved, Stop> {
    let paths = std::iter::once(&prepared.tree).chain(&prepared.python_path);
    let paths: Vec<String> = paths.map(|path| path.to_string_lossy().into_owned()).collect();
    let names: Vec<&str> = modules.iter().map(String::as_str).chain(START_UP_MODULES.iter().copied()).collect();
    let can_not = || format!("the interpreter `{}` can't resolve modules", python.display());
    let last = |text: &str| text.lines().last().and_then(|line| serde_json::from_str(line).ok());
    if let Some(image) = &prepared.manifest.image {
        let arguments = [serde_json::to_string(&paths)?, serde_json::to_string(&names)?];
        let reads = std::slice::from_ref(&prepared.tree);
        let ran = image::run(&image.image, (python, RESOLVE, &arguments), reads, context)?;
        let resolved = last(&String::from_utf8_lossy(&ran.stdout)).filter(|_| ran.code == 0);
        let said = String::from_utf8_lossy(&ran.stderr).lines().map(str::to_owned).collect();
        return resolved.ok_or_else(|| unproven(can_not(), said).into());
    }
    let environment = context.own_environment();
    let invocation = Invocation::new(python, context.scratch, environment).with(isolated(context.scratch));
    let invocation = invocation.with([RESOLVE]).with([serde_json::to_string(&paths)?, serde_json::to_string(&names)?]);
    let deadline = Instant::now() + context.timeout;
    let watch = Watch { log: context.log, deadline, cancel: context.cancel };
    let mut output = Vec::new();
    let finished = run_into(&invocation, &watch, &mut output)?;
    context.check_cancelled()?;
    let text = String::from_utf8_lossy(&output);
    last(&text).filter(|_| finished.ending.is_success()).ok_or_else(|| {
        let evidence = finished.tail.evidence(&context.log_name(), EVIDENCE_LINES);
        unproven(can_not(), Vec::new()).with_evidence(evidence).into()
    })
}

/// Checks that each module would be taken from the tree, and none that runs before it.
fn check_modules(resolved: &Resolved, modules: &[String], tree: &Path) -> Result<BTreeMap<String, String>, Stop> {
    let tree = tree.canonicalize().map_err(EnvironmentError::read(tree))?;
    let is_inside = |place: &String| PathBuf::from(place).starts_with(&tree);
    let mut proven = BTreeMap::new();
    for module in modules {
        let ways = resolved.modules.get(module).map(Vec::as_slice).unwrap_or_default();
        let outside = ways.iter().find(|places| places.is_empty() || !places.iter().all(is_inside));
        let first = ways.first().and_then(|places| places.first());
        match (outside, first) {
            (None, Some(place)) => {
                proven.insert(module.clone(), place.clone());
            }
            (outside, _) => {
                let found = outside.map(|places| places.join(", ")).filter(|places| !places.is_empty());
                let found = found.unwrap_or_else(|| "nowhere".to_owned());
                let lines =
                    vec![format!("`{module}` is found at: {found}"), format!("the tree is: {}", tree.display())];
                return Err(unproven(format!("the module `{module}` wouldn't be imported from the tree"), lines).into());
            }
        }
    }
    for module in START_UP_MODULES {
        let places = resolved.modules.get(*module).into_iter().flatten().flatten();
        if let Some(place) = places.into_iter().find(|place| is_inside(place)) {
            let lines = vec![format!("`{module}` is found at: {place}")];
            let message = format!("the tree holds a `{module}`, which would run when the interpreter starts");
            return Err(unproven(message, lines).into());
        }
    }
    Ok(proven)
}

/// Looks at every file again after a launch.
///
/// # Errors
/// The outer error is the tool's own inability; the inner failure, of class `environment-modified`, names what changed.
/// The caller must evict the environment then.
pub fn verify_unmodified(prepared: &Prepared) -> Result<Result<(), Failure>, EnvironmentError> {
    let differing = differences(&prepared.manifest.files, &scan_again(&prepared.tree, &prepared.manifest.files)?);
    let venv = prepared.manifest.venv.as_ref().filter(|venv| !venv.is_unchanged());
    let image = prepared.manifest.image.as_ref().filter(|image| !image.is_unchanged());
    let folders = venv.map(|venv| &venv.folder).into_iter().chain(image.map(|image| &image.folder));
    let changed = folders.map(|folder| format!("changed: {}", folder.display()));
    let lines: Vec<String> = differing.into_iter().chain(changed).collect();
    if lines.is_empty() {
        return Ok(Ok(()));
    }
    let message = format!("{} files of the environment changed during the launch", lines.len());
    let evidence = lines.iter().take(EVIDENCE_LINES).map(|line| EvidenceLine::new("tree", None, line));
    let failure = Failure::new(FailureStage::Verify, FailureClass::EnvironmentModified, message);
    let failure = failure.breaking(Check::TreeUnmodified);
    Ok(Err(failure.with_evidence(evidence)))
}
