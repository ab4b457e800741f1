//! Virtual environments: one for each set of packages, shared by the arms that ask for the same.

mod install;
mod interpreter;
pub(super) mod look;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use isobench_schema::environment::{PackageAlias, StubModule, Venv};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::format::Stored;
use isobench_schema::ids::Digest;
use serde::{Deserialize, Serialize};

use super::cache::{read_record, write_record};
use super::lock::FolderLock;
use super::orphans;
use super::remove::discard;
use super::safe_path::to_text;
use super::{EnvironmentError, PrepareContext, Stop, sync};
use crate::command::Environment;
use interpreter::inspect;
pub(super) use interpreter::{Interpreter, isolated, system_python};
use look::{Look, NativeFile};

/// A virtual environment on disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VenvRecord {
    /// Its folder in the cache.
    pub folder: PathBuf,
    /// Its interpreter.
    pub program: PathBuf,
    /// Its Python version.
    pub python_version: String,
    /// The interpreter that it was made from.
    pub base: PathBuf,
    /// Where its packages are.
    pub site_packages: Vec<PathBuf>,
    /// Its packages as `name==version`, sorted.
    pub packages: Vec<String>,
    /// Its packages that have nothing which could be imported, sorted: some are empty on purpose, others were taken over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty_packages: Vec<String>,
    /// The digest of the list that its packages were installed by, each with its version and hashes; absent without uv.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock: Option<Digest>,
    /// A digest over what the file system tells of each of its files.
    pub stamp: Digest,
    /// Its native libraries, by path inside it: trees share their bytes, so that they are known by content.
    pub native: BTreeMap<String, NativeFile>,
}

impl Stored for VenvRecord {
    const NAME: &'static str = "venv";
    const VERSION: u32 = 1;
}

impl VenvRecord {
    /// Adds what a process in the virtual environment gets when it is activated.
    pub(super) fn add_to(&self, environment: &mut Environment) {
        let Some(programs) = self.programs() else { return };
        let old = environment.get("PATH").cloned().unwrap_or_default();
        let folders = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&old));
        if let Ok(path) = std::env::join_paths(folders) {
            environment.insert("PATH".to_owned(), path);
        }
        environment.insert("VIRTUAL_ENV".to_owned(), self.place().into());
    }

    /// Returns the folder of its programs.
    pub(super) fn programs(&self) -> Option<&Path> {
        self.program.parent()
    }

    /// Returns whether none of its files was changed, added or removed since it was made.
    pub(super) fn is_unchanged(&self) -> bool {
        let place = self.place();
        Look::at(&place).is_ok_and(|look| look.stamp == self.stamp && look.holds(&self.native, &place))
    }

    /// Returns the digest that the native library at `path` had when it was installed.
    pub(super) fn native_digest(&self, path: &Path) -> Option<&Digest> {
        let name = to_text(path.strip_prefix(self.place()).ok()?);
        self.native.get(&name).map(|file| &file.sha256)
    }

    pub(super) fn place(&self) -> PathBuf {
        self.folder.join("venv")
    }
}

/// Takes the virtual environment with these packages from the cache, or makes it there.
pub(super) fn ensure(venv: &Venv, context: &PrepareContext<'_>) -> Result<(Interpreter, VenvRecord), Stop> {
    check_aliases(&venv.aliases)?;
    check_stubs(&venv.stub_modules)?;
    let base = interpreter::base(venv.python.as_deref(), context)?;
    let key = serde_json::json!({ "venv": venv, "base": base.program, "python_version": base.version });
    let key = Digest::of_json(&key)?;
    let folder = context.cache.join("venvs").join(key.as_str());
    let _lock = FolderLock::take(&folder.with_extension("lock"), context)?;
    // A run that was killed never looked at it again.
    let known = read_record::<VenvRecord>(&folder).filter(|record| record.folder == folder && record.is_unchanged());
    let record = if let Some(record) = known {
        record
    } else {
        orphans::end_below(&folder)?;
        discard(&folder)?;
        std::fs::create_dir_all(&folder).map_err(EnvironmentError::write(&folder))?;
        let locked = context.cache.join("locks").join(key.as_str()).with_extension("txt");
        let record = make(venv, &base, (&folder, &locked), context)?;
        sync(&folder).map_err(EnvironmentError::write(&folder))?;
        write_record(&folder, &record)?;
        record
    };
    Ok((Interpreter { program: record.program.clone(), version: record.python_version.clone() }, record))
}

fn make(
    venv: &Venv,
    base: &Interpreter,
    (folder, locked): (&Path, &Path),
    context: &PrepareContext<'_>,
) -> Result<VenvRecord, Stop> {
    let place = folder.join("venv");
    let lock = install::install(venv, base, (&place, locked), context)?;
    let program = place.join("bin/python");
    let before = inspect(&program, context)?;
    for alias in &venv.aliases {
        let Some(site) = before.site_packages.first() else { break };
        write_alias(site, alias).map_err(EnvironmentError::write(site))?;
    }
    for stub in &venv.stub_modules {
        let Some(site) = before.site_packages.first() else { break };
        write_stub(site, stub)?;
    }
    let found = inspect(&program, context)?;
    let look = Look::at(&place).map_err(EnvironmentError::read(&place))?;
    let empty_packages = empty_packages(&found.site_packages);
    if !empty_packages.is_empty() {
        let line = format!("packages in which nothing can be imported: {}\n", empty_packages.join(", "));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(context.log);
        log.and_then(|mut log| log.write_all(line.as_bytes())).map_err(EnvironmentError::write(context.log))?;
    }
    Ok(VenvRecord {
        folder: folder.to_owned(),
        program,
        python_version: found.version,
        base: base.program.clone(),
        site_packages: found.site_packages,
        packages: found.packages,
        empty_packages,
        lock,
        native: look.digests(&place)?,
        stamp: look.stamp,
    })
}

/// Returns the packages, as `name-version`, whose lists of files name nothing but metadata. Second names are none.
fn empty_packages(site_packages: &[PathBuf]) -> Vec<String> {
    let is_own = |line: &str, folder: &str| {
        let path = line.split(',').next().unwrap_or_default().trim_matches('"');
        path.is_empty() || path.starts_with(folder) || path.starts_with("..")
    };
    let mut empty = Vec::new();
    for entry in site_packages.iter().filter_map(|site| std::fs::read_dir(site).ok()).flatten().flatten() {
        let folder = entry.file_name().to_string_lossy().into_owned();
        let Some(name) = folder.strip_suffix(".dist-info") else { continue };
        let Ok(record) = std::fs::read_to_string(entry.path().join("RECORD")) else { continue };
        if record.lines().all(|line| is_own(line, &folder)) {
            empty.push(name.to_owned());
        }
    }
    empty.sort_unstable();
    empty
}

/// Refuses aliases that would be written outside the folder of packages.
fn check_aliases(aliases: &[PackageAlias]) -> Result<(), Failure> {
    let plain = |text: &str, extra: &[u8]| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte) || extra.contains(&byte);
        text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric) && text.bytes().all(good)
    };
    match aliases.iter().find(|alias| !plain(&alias.name, b"") || !plain(&alias.version, b"+!")) {
        None => Ok(()),
        Some(PackageAlias { name, version }) => {
            let message = format!("`{name}=={version}` is no valid name and version of a package");
            Err(Failure::new(FailureStage::Dataset, FailureClass::PackageInstallFailed, message))
        }
    }
}

/// Writes what `importlib.metadata` reads: a package under a second name, without any file of its own.
fn write_alias(site: &Path, PackageAlias { name, version }: &PackageAlias) -> std::io::Result<()> {
    let folder = site.join(format!("{}-{version}.dist-info", name.replace(['-', '.'], "_")));
    std::fs::create_dir_all(&folder)?;
    let mut file = std::fs::File::create(folder.join("METADATA"))?;
    write!(file, "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")?;
    std::fs::write(folder.join("INSTALLER"), "isobench\n")
}

/// Refuses modules that would be written outside the folder of packages, or that Python couldn't import.
fn check_stubs(stubs: &[StubModule]) -> Result<(), Failure> {
    let is_name = |part: &str| {
        let good = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        part.bytes().all(good) && part.as_bytes().first().is_some_and(|byte| !byte.is_ascii_digit())
    };
    let good = |path: &str| path.strip_suffix(".py").is_some_and(|module| module.split('/').all(is_name));
    match stubs.iter().find(|stub| !good(&stub.path)) {
        None => Ok(()),
        Some(StubModule { path, .. }) => {
            let message = format!("`{path}` is no file of a Python module");
            Err(Failure::new(FailureStage::Dataset, FailureClass::PackageInstallFailed, message))
        }
    }
}

/// Writes a module and makes the folders above it packages. What a package brought is never replaced.
fn write_stub(site: &Path, StubModule { path, content }: &StubModule) -> Result<(), Stop> {
    let file = site.join(path);
    let exists = |file: &Path| {
        let message = format!("the module `{path}` is to be written, and a package brought `{}`", file.display());
        Failure::new(FailureStage::Build, FailureClass::PackageInstallFailed, message)
    };
    if file.exists() {
        return Err(exists(&file).into());
    }
    let mut folder = site.to_owned();
    for part in Path::new(path).parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        std::fs::create_dir_all(&folder).map_err(EnvironmentError::write(&folder))?;
        let init = folder.join("__init__.py");
        if !init.exists() {
            std::fs::write(&init, "").map_err(EnvironmentError::write(&init))?;
        }
    }
    std::fs::write(&file, content).map_err(EnvironmentError::write(&file))?;
    Ok(())
}
