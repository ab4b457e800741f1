//! Virtual environments: one for each set of packages, shared by the arms that ask for the same.

mod install;
mod interpreter;

use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use isobench_schema::environment::{PackageAlias, Venv};
use isobench_schema::failure::{Failure, FailureClass, FailureStage};
use isobench_schema::format::Stored;
use isobench_schema::ids::Digest;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::cache::{read_record, write_record};
use super::lock::FolderLock;
use super::remove::discard;
use super::{EnvironmentError, PrepareContext, Stop};
use crate::command::Environment;
use interpreter::inspect;
pub(super) use interpreter::{Interpreter, system_python};

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
    /// A digest over the path, size, mode and time of each of its files, bytecode aside.
    pub stamp: Digest,
}

impl Stored for VenvRecord {
    const NAME: &'static str = "venv";
    const VERSION: u32 = 1;
}

impl VenvRecord {
    /// Adds what a process in the virtual environment gets when it is activated.
    pub(super) fn add_to(&self, environment: &mut Environment) {
        let Some(programs) = self.program.parent() else { return };
        let old = environment.get("PATH").cloned().unwrap_or_default();
        let folders = std::iter::once(programs.to_owned()).chain(std::env::split_paths(&old));
        if let Ok(path) = std::env::join_paths(folders) {
            environment.insert("PATH".to_owned(), path);
        }
        environment.insert("VIRTUAL_ENV".to_owned(), self.place().into());
    }

    /// Returns whether none of its files was changed, added or removed since it was made, as far as sizes and times tell.
    pub(super) fn is_unchanged(&self) -> bool {
        stamp(&self.place()).is_ok_and(|stamp| stamp == self.stamp)
    }

    fn place(&self) -> PathBuf {
        self.folder.join("venv")
    }
}

/// Takes the virtual environment with these packages from the cache, or makes it there.
pub(super) fn ensure(venv: &Venv, context: &PrepareContext<'_>) -> Result<(Interpreter, VenvRecord), Stop> {
    check_aliases(&venv.aliases)?;
    let base = interpreter::base(venv.python.as_deref(), context)?;
    let key = serde_json::json!({ "venv": venv, "base": base.program, "python_version": base.version });
    let folder = context.cache.join("venvs").join(Digest::of_json(&key)?.as_str());
    let _lock = FolderLock::take(&folder.with_extension("lock"), context)?;
    // A run that was killed never looked at it again.
    let known = read_record::<VenvRecord>(&folder).filter(|record| record.folder == folder && record.is_unchanged());
    let record = if let Some(record) = known {
        record
    } else {
        discard(&folder)?;
        std::fs::create_dir_all(&folder).map_err(EnvironmentError::write(&folder))?;
        let record = make(venv, &base, &folder, context)?;
        sync(&folder).map_err(EnvironmentError::write(&folder))?;
        write_record(&folder, &record)?;
        record
    };
    Ok((Interpreter { program: record.program.clone(), version: record.python_version.clone() }, record))
}

fn make(venv: &Venv, base: &Interpreter, folder: &Path, context: &PrepareContext<'_>) -> Result<VenvRecord, Stop> {
    let place = folder.join("venv");
    install::install(venv, base, &place, context)?;
    let program = place.join("bin/python");
    let before = inspect(&program, context)?;
    for alias in &venv.aliases {
        let Some(site) = before.site_packages.first() else { break };
        write_alias(site, alias).map_err(EnvironmentError::write(site))?;
    }
    let found = inspect(&program, context)?;
    let stamp = stamp(&place).map_err(EnvironmentError::read(&place))?;
    Ok(VenvRecord {
        folder: folder.to_owned(),
        program,
        python_version: found.version,
        base: base.program.clone(),
        site_packages: found.site_packages,
        packages: found.packages,
        stamp,
    })
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

/// Waits until every file of `folder` is on the disk, along with all else on its file system.
///
/// The stamp that later runs trust is one of sizes and times, which a file may have before its bytes are safe. And
/// gigabytes that are still to be written would disturb the first launch.
fn sync(folder: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::syncfs(std::fs::File::open(folder)?)?)
}

/// Returns the digest over the path, size, mode and time of each file. Bytecode doesn't count: launches never read it.
fn stamp(place: &Path) -> std::io::Result<Digest> {
    let mut hasher = Sha256::new();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        let mut entries = std::fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries.into_iter().filter(|entry| entry.file_name() != "__pycache__") {
            let metadata = entry.metadata()?;
            hasher.update(entry.path().as_os_str().as_bytes());
            hasher.update([0]);
            if metadata.is_dir() {
                folders.push(entry.path());
                continue;
            }
            hasher.update(metadata.mode().to_le_bytes());
            hasher.update(metadata.size().to_le_bytes());
            hasher.update(metadata.mtime().to_le_bytes());
            hasher.update(metadata.mtime_nsec().to_le_bytes());
        }
    }
    Ok(Digest::finish(hasher))
}
