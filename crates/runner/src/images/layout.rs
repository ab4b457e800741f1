//! A folder that holds images as OCI lays them out: `oci-layout`, `index.json`, and `blobs/sha256/` by digest.
//!
//! A blob is written beside its place and put there whole, so that what was fetched before a crash is there for the next time
//! and nothing is there in part. What is beside a place stays there when a fetch is cut off or killed, and the next one goes on
//! with it; no byte of it is believed before the digest of the whole is right.

use std::fs::{self, File};
use std::io::{self, Read as _, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use isobench_schema::ids::{Digest, ImageDigest};
use isobench_schema::images::ImagePart;
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::Sent;
use super::error::RegistryError;
use super::look::{ChosenImage, LONGEST_CONFIG};
use super::manifest::{self, ImageConfig, ImageManifest};
use super::platform::Platform;
use super::reference::Target;
use super::registry::{FetchedManifest, Registry};
use crate::disk::free_bytes;

/// What stands in `oci-layout`.
const LAYOUT: &str = r#"{"imageLayoutVersion":"1.0.0"}"#;
/// The annotation that names a tag.
const NAME_ANNOTATION: &str = "org.opencontainers.image.ref.name";
/// The longest `index.json` that is read, in bytes.
const LONGEST_INDEX: u64 = 16 << 20;
/// How files begin that aren't whole yet.
const PART: &str = ".part-";
/// How often a blob is gone on with after an answer that broke off, as long as more of it comes each time.
const MOST_CUTS: u32 = 8;
/// The wait after the first time; after the second it is twice as long, and so on.
const AFTER_A_CUT: Duration = Duration::from_millis(250);
/// The file whose lock says that somebody writes.
const LOCK: &str = ".lock";
/// The kind of a manifest where nothing says it.
const IMAGE_KIND: &str = "application/vnd.oci.image.manifest.v1+json";

/// A folder of images.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    folder: PathBuf,
}

/// What was fetched or sent, and what was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    /// The manifest's digest.
    pub digest: ImageDigest,
    /// Blobs that were moved.
    pub blobs: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Blobs that were there.
    pub blobs_there: u64,
    /// Their bytes.
    pub bytes_there: u64,
}

/// Who is told how a fetch or a push goes on: a blob, and how much of it came.
pub type Progress<'p> = &'p dyn Fn(&ImagePart, u64);

impl Layout {
    /// Opens a folder, and makes it if it isn't there.
    ///
    /// # Errors
    /// Returns an error if it can't be made, or holds something else.
    pub fn create(folder: &Path) -> Result<Self, RegistryError> {
        let layout = Self { folder: folder.to_owned() };
        let mark = folder.join("oci-layout");
        fs::create_dir_all(folder).map_err(|source| broken("make the folder", folder, source))?;
        if !mark.is_file() {
            layout.is_empty()?;
            write_whole(&mark, LAYOUT.as_bytes())?;
        }
        let blobs = layout.folder.join("blobs/sha256");
        fs::create_dir_all(&blobs).map_err(|source| broken("make the folder", &blobs, source))?;
        Ok(layout)
    }

    /// Checks that nothing of anybody else's is in the folder.
    fn is_empty(&self) -> Result<(), RegistryError> {
        let failed = |source| broken("read", &self.folder, source);
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name();
            if !name.to_string_lossy().starts_with(PART) {
                let why = format!("it holds `{}`, and no image", name.display());
                return Err(RegistryError::Layout { path: self.folder.clone(), why });
            }
        }
        Ok(())
    }

    /// Opens a folder that is there.
    ///
    /// # Errors
    /// Returns an error if it isn't one of images.
    pub fn open(folder: &Path) -> Result<Self, RegistryError> {
        let mark = folder.join("oci-layout");
        if !mark.is_file() {
            let why = "it has no file `oci-layout`".to_owned();
            return Err(RegistryError::Layout { path: folder.to_owned(), why });
        }
        Ok(Self { folder: folder.to_owned() })
    }

    /// Fetches an image whole; what is there already isn't fetched again. None if the registry has no such image.
    ///
    /// # Errors
    /// Returns an error if it can't be fetched whole or isn't what its digests say; what came whole until then stays.
    pub fn pull(
        &self,
        registry: &Registry,
        target: &Target,
        platform: &Platform,
        progress: Progress<'_>,
    ) -> Result<Option<Moved>, RegistryError> {
        let _lock = self.lock()?;
        self.sweep()?;
        let Some(image) = registry.image(target, platform)? else { return Ok(None) };
        if image.manifest.has_foreign_layers {
            let address = registry.manifest_address(target)?.to_string();
            let why = "layers of it lie elsewhere, and nothing is fetched from where a manifest says".to_owned();
            return Err(RegistryError::NotARegistry { address, why });
        }
        self.check_room(&image.manifest)?;
        let mut moved = Moved::none(&image.fetched.digest);
        for part in image.manifest.parts() {
            if self.has(part)? {
                moved.there(part);
            } else {
                self.fetch(registry, part, progress)?;
                moved.moved(part);
            }
            if part.digest == image.manifest.config.digest {
                self.check_platform(&image, platform)?;
            }
        }
        self.keep(&image, target)?;
        Ok(Some(moved))
    }

    /// Sends an image of this folder: every blob that the registry lacks, and then the manifest, which is read back.
    ///
    /// # Errors
    /// Returns an error if the folder lacks something or the registry can't take it. What was sent until then needn't be sent
    /// again.
    pub fn push(
        &self,
        registry: &Registry,
        from: &Target,
        to: &Target,
        progress: Progress<'_>,
    ) -> Result<Moved, RegistryError> {
        let stored = self.stored(from)?;
        let mut moved = Moved::none(&stored.fetched.digest);
        for part in stored.parts() {
            let path = self.blob_path(&part.digest);
            let file = File::open(&path).map_err(|source| broken("read", &path, source))?;
            match registry.push_blob(part, &file)? {
                Sent::Whole => moved.moved(part),
                Sent::AlreadyThere => moved.there(part),
            }
            progress(part, part.bytes);
        }
        registry.push_manifest(to, &stored.fetched)?;
        Ok(moved)
    }

    /// Checks that the disk has room for what isn't here yet, by the sizes that the manifest says.
    fn check_room(&self, manifest: &ImageManifest) -> Result<(), RegistryError> {
        let size = |path: PathBuf| fs::symlink_metadata(path).map_or(0, |found| found.len());
        let lacks = |part: &&ImagePart| {
            let here = size(self.blob_path(&part.digest)).max(size(self.unfinished(&part.digest)));
            part.bytes.saturating_sub(here)
        };
        let needed = manifest.parts().iter().fold(0_u64, |sum, part| sum.saturating_add(lacks(part)));
        let free = free_bytes(&self.folder).map_err(|source| broken("look at the disk of", &self.folder, source))?;
        if needed <= free {
            return Ok(());
        }
        Err(RegistryError::NoRoom { path: self.folder.clone(), needed, free })
    }

    /// Checks that an image whose configuration is here serves a platform: one that stands alone under its tag says it there.
    fn check_platform(&self, image: &ChosenImage, platform: &Platform) -> Result<(), RegistryError> {
        let path = self.blob_path(&image.manifest.config.digest);
        let malformed = |why: String| RegistryError::Layout { path: path.clone(), why };
        if image.manifest.config.bytes > LONGEST_CONFIG {
            return Err(malformed(format!("as an image's configuration it is longer than {LONGEST_CONFIG} bytes")));
        }
        let bytes = fs::read(&path).map_err(|source| broken("read", &path, source))?;
        let config = ImageConfig::read(&bytes).map_err(malformed)?;
        if platform.accepts(&config.platform) {
            return Ok(());
        }
        let (found, asked) = (config.platform.to_string(), platform.to_string());
        Err(RegistryError::OtherPlatform { digest: image.fetched.digest.clone(), found, asked })
    }

    /// Removes the images, and the folder if it holds nothing else. Returns how many bytes the blobs took.
    ///
    /// # Errors
    /// Returns an error if somebody writes there, or something can't be removed.
    pub fn remove(self) -> Result<u64, RegistryError> {
        let bytes = self.bytes()?;
        let _lock = self.lock()?;
        for name in ["index.json", "blobs", "oci-layout", LOCK] {
            let path = self.folder.join(name);
            match crate::environment::remove::remove_tree(&path) {
                // A pull that was killed leaves no index.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(broken("remove", &path, error)),
                Ok(()) | Err(_) => {}
            }
        }
        match fs::remove_dir(&self.folder) {
            // The folder that one is in can't be removed by that name.
            Err(error) if ![io::ErrorKind::DirectoryNotEmpty, io::ErrorKind::InvalidInput].contains(&error.kind()) => {
                Err(broken("remove", &self.folder, error))
            }
            // What is left is somebody else's.
            Ok(()) | Err(_) => Ok(bytes),
        }
    }

    /// Returns how many bytes the blobs of the folder take.
    ///
    /// # Errors
    /// Returns an error if it can't be read.
    pub fn bytes(&self) -> Result<u64, RegistryError> {
        let folder = self.folder.join("blobs/sha256");
        let failed = |source| broken("read", &folder, source);
        let mut bytes = 0_u64;
        for entry in fs::read_dir(&folder).map_err(failed)? {
            bytes = bytes.saturating_add(entry.and_then(|entry| entry.metadata()).map_err(failed)?.len());
        }
        Ok(bytes)
    }

    /// Lets nobody else write here for as long as what is returned lives.
    fn lock(&self) -> Result<File, RegistryError> {
        let path = self.folder.join(LOCK);
        // A link that somebody put there isn't followed, and nothing is cut off.
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o644));
        let file = File::from(opened.map_err(|source| broken("write", &path, source.into()))?);
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(file),
            Err(Errno::WOULDBLOCK) => {
                let why = "another process is fetching into it".to_owned();
                Err(RegistryError::Layout { path: self.folder.clone(), why })
            }
            Err(error) => Err(broken("lock", &path, error.into())),
        }
    }

    /// Removes what a fetch that was killed left in part, but for blobs that the next one goes on with.
    fn sweep(&self) -> Result<(), RegistryError> {
        let folder = self.folder.join("blobs/sha256");
        let failed = |source| broken("read", &folder, source);
        for entry in fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_blob = |hex: &str| ImageDigest::new(format!("sha256:{hex}")).is_ok();
            if name.strip_prefix(PART).is_some_and(|rest| !is_blob(rest)) {
                fs::remove_file(entry.path()).map_err(|source| broken("remove", &entry.path(), source))?;
            }
        }
        Ok(())
    }

    /// Returns the manifest that the folder has under a tag or digest.
    pub(super) fn manifest(&self, target: &Target) -> Result<FetchedManifest, RegistryError> {
        let path = self.folder.join("index.json");
        let index = self.index()?;
        let entries = index.get("manifests").and_then(Value::as_array).cloned().unwrap_or_default();
        let wanted = target.to_string();
        let is_wanted = |entry: &&Value| {
            let name = entry.get("annotations").and_then(|all| all.get(NAME_ANNOTATION)).and_then(Value::as_str);
            name == Some(&wanted) || entry.get("digest").and_then(Value::as_str) == Some(&wanted)
        };
        let malformed = |why: String| RegistryError::Layout { path: path.clone(), why };
        let entry = entries.iter().find(is_wanted).ok_or_else(|| malformed(format!("it has no image `{wanted}`")))?;
        let digest = entry.get("digest").and_then(Value::as_str).unwrap_or_default();
        let digest = ImageDigest::new(digest).map_err(|error| malformed(error.to_string()))?;
        let path = self.blob_path(&digest);
        let bytes = fs::read(&path).map_err(|source| broken("read", &path, source))?;
        if ImageDigest::of(&bytes) != digest {
            return Err(RegistryError::Layout { path, why: "it isn't what its name says".to_owned() });
        }
        let kind = entry.get("mediaType").and_then(Value::as_str).unwrap_or(IMAGE_KIND).to_owned();
        Ok(FetchedManifest { digest, content_type: kind, bytes })
    }

    /// Writes an image's manifest, and its name into the index.
    fn keep(&self, image: &ChosenImage, target: &Target) -> Result<(), RegistryError> {
        let ChosenImage { fetched, .. } = image;
        write_whole(&self.blob_path(&fetched.digest), &fetched.bytes)?;
        let path = self.folder.join("index.json");
        let mut index = self.index()?;
        let name = target.to_string();
        let kind = kind_of(fetched);
        let entry = json!({
            "mediaType": kind,
            "digest": fetched.digest.as_str(),
            "size": fetched.bytes.len(),
            "annotations": { NAME_ANNOTATION: name },
        });
        let malformed = || RegistryError::Layout { path: path.clone(), why: "it has no list `manifests`".to_owned() };
        let entries = index.get_mut("manifests").and_then(Value::as_array_mut).ok_or_else(malformed)?;
        entries.retain(|entry| {
            entry.get("annotations").and_then(|all| all.get(NAME_ANNOTATION)).and_then(Value::as_str) != Some(&name)
        });
        entries.push(entry);
        let mut text = serde_json::to_vec_pretty(&index).expect("JSON values are written as JSON");
        text.push(b'\n');
        write_whole(&path, &text)
    }

    /// Returns `index.json`, or an empty one.
    fn index(&self) -> Result<Value, RegistryError> {
        let path = self.folder.join("index.json");
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(json!({ "schemaVersion": 2, "manifests": [] }));
            }
            Err(source) => return Err(broken("read", &path, source)),
        };
        let mut bytes = Vec::new();
        file.take(LONGEST_INDEX).read_to_end(&mut bytes).map_err(|source| broken("read", &path, source))?;
        serde_json::from_slice(&bytes)
            .map_err(|error| RegistryError::Layout { path, why: format!("it isn't read: {error}") })
    }

    /// Returns where a blob stands.
    pub fn blob_path(&self, digest: &ImageDigest) -> PathBuf {
        self.folder.join("blobs/sha256").join(digest.hex())
    }

    /// Returns whether a blob is there as its digest says. One that isn't is removed.
    pub(super) fn has(&self, part: &ImagePart) -> Result<bool, RegistryError> {
        let path = self.blob_path(&part.digest);
        let mut file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(source) => return Err(broken("read", &path, source)),
        };
        let mut hasher = Sha256::new();
        let mut chunk = vec![0_u8; 1 << 18];
        loop {
            let read = file.read(&mut chunk).map_err(|source| broken("read", &path, source))?;
            if read == 0 {
                break;
            }
            hasher.update(chunk.get(..read).unwrap_or_default());
        }
        Ok(ImageDigest::from(Digest::finish(hasher)) == part.digest)
    }

    /// Fetches a blob, from where an earlier fetch was cut off, and goes on where this one is.
    fn fetch(&self, registry: &Registry, part: &ImagePart, progress: Progress<'_>) -> Result<(), RegistryError> {
        let path = self.blob_path(&part.digest);
        let unfinished = self.unfinished(&part.digest);
        let folder = path.parent().unwrap_or(&self.folder);
        let failed = |source| broken("write", &path, source);
        // A link that somebody put there isn't followed, and nothing is cut off.
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let opened = rustix::fs::open(&unfinished, flags, Mode::from_raw_mode(0o644));
        let mut file = File::from(opened.map_err(|source| broken("write", &unfinished, source.into()))?);
        let mut cuts = 0;
        loop {
            let before = file.metadata().map_err(failed)?.len();
            let error = match registry.resume_blob(part, &mut file, &|got| progress(part, got)) {
                Ok(()) => break,
                Err(error) => error,
            };
            let after = file.metadata().map_err(failed)?.len();
            if matches!(error, RegistryError::BrokenOff { .. }) && cuts < MOST_CUTS && after > before {
                cuts += 1;
                thread::sleep(AFTER_A_CUT * cuts);
                continue;
            }
            let is_ours = matches!(error, RegistryError::Folder { .. });
            if is_ours || after == 0 {
                // Whoever has to make room needs this room, too.
                fs::remove_file(&unfinished).map_err(failed)?;
            }
            // Whoever writes what came knows its address alone, and who has to make room looks for the folder.
            return Err(if let RegistryError::Folder { source, .. } = error { failed(source) } else { error });
        }
        file.sync_all().map_err(failed)?;
        fs::rename(&unfinished, &path).map_err(failed)?;
        sync_folder(folder)
    }

    /// Returns where a blob stands until it is whole.
    fn unfinished(&self, digest: &ImageDigest) -> PathBuf {
        self.folder.join("blobs/sha256").join(format!("{PART}{}", digest.hex()))
    }
}

/// Returns the kind that a manifest says of itself, or else what the registry says.
fn kind_of(fetched: &FetchedManifest) -> String {
    let own: Option<Value> = serde_json::from_slice(&fetched.bytes).ok();
    let own = own.and_then(|own| own.get("mediaType").and_then(Value::as_str).map(str::to_owned));
    let said = Some(fetched.content_type.clone()).filter(|said| manifest::ACCEPT.contains(said.as_str()));
    own.or(said).unwrap_or_else(|| IMAGE_KIND.to_owned())
}

impl Moved {
    fn none(digest: &ImageDigest) -> Self {
        Self { digest: digest.clone(), blobs: 0, bytes: 0, blobs_there: 0, bytes_there: 0 }
    }

    fn moved(&mut self, part: &ImagePart) {
        self.blobs += 1;
        self.bytes = self.bytes.saturating_add(part.bytes);
    }

    fn there(&mut self, part: &ImagePart) {
        self.blobs_there += 1;
        self.bytes_there = self.bytes_there.saturating_add(part.bytes);
    }
}

fn broken(what: &'static str, path: &Path, source: io::Error) -> RegistryError {
    RegistryError::Folder { what, path: path.to_owned(), source }
}

/// Makes a file that is put into its place when it is whole.
fn beside(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    tempfile::Builder::new().prefix(PART).tempfile_in(folder)
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RegistryError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let failed = |source| broken("write", path, source);
    let mut beside = beside(folder).map_err(failed)?;
    beside.write_all(bytes).and_then(|()| beside.as_file().sync_all()).map_err(failed)?;
    beside.persist(path).map_err(|error| failed(error.error))?;
    sync_folder(folder)
}

fn sync_folder(folder: &Path) -> Result<(), RegistryError> {
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|source| broken("write", folder, source))
}
