//! Content-addressed evidence: each file compressed under the digest of its bytes.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use isobench_schema::ids::Digest;
use isobench_schema::outcome::Artifact;
use sha2::{Digest as _, Sha256};

use crate::atomic::{self, StoreError};

/// The zstd level: logs and records shrink five to twenty times at several hundred MB/s.
const LEVEL: i32 = 3;
/// How much is read at once.
const CHUNK: usize = 1 << 17;
/// The end of each artifact's name.
const SUFFIX: &str = ".zst";

/// Why an artifact can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadArtifactError {
    /// It isn't there.
    #[error("the artifact {digest} is missing: there is no `{path}`")]
    Missing {
        /// Its digest.
        digest: Digest,
        /// Its file.
        path: PathBuf,
    },
    /// Its bytes aren't those that its name says.
    #[error("the artifact {digest} is damaged: `{path}` was cut or altered")]
    Damaged {
        /// Its digest.
        digest: Digest,
        /// Its file.
        path: PathBuf,
    },
    /// Its file can't be read.
    #[error(transparent)]
    Storage(#[from] StoreError),
}

/// The artifacts of a run or a block. Cheap to clone, and safe to use from several threads at once.
#[derive(Debug, Clone)]
pub struct Artifacts {
    dir: PathBuf,
}

impl Artifacts {
    pub(crate) fn new(dir: PathBuf) -> Self {
        Self { dir }
    }

    /// Returns the file that holds the artifact, compressed, whether it is there or not.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        let first = digest.as_str().get(..2).expect("a digest has 64 ASCII digits");
        self.dir.join(first).join(format!("{digest}{SUFFIX}"))
    }

    /// Returns whether the artifact is there. Its bytes aren't looked at.
    pub fn holds(&self, digest: &Digest) -> bool {
        self.path(digest).is_file()
    }

    /// Stores a file's bytes, in constant memory, and returns when they have reached the disk. Bytes that are there
    /// already are not stored again.
    ///
    /// # Errors
    /// Returns an error if `path` isn't a plain file, or if there is no space; then nothing was stored.
    pub fn put_file(&self, path: &Path) -> Result<Artifact, StoreError> {
        let data = path.symlink_metadata().map_err(StoreError::on("read", path))?;
        if !data.is_file() {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file");
            return Err(StoreError::new("read", path, source));
        }
        let file = File::open(path).map_err(StoreError::on("read", path))?;
        self.put(file, path)
    }

    /// Stores bytes, as [`Artifacts::put_file`] does.
    ///
    /// # Errors
    /// Returns an error if there is no space; then nothing was stored.
    pub fn put_bytes(&self, bytes: &[u8]) -> Result<Artifact, StoreError> {
        self.put(bytes, Path::new("memory"))
    }

    fn put(&self, mut input: impl Read, origin: &Path) -> Result<Artifact, StoreError> {
        let file = atomic::temporary_in(&self.dir)?;
        let failed = |source| StoreError::new("write", &self.dir, source);
        let mut output = zstd::Encoder::new(file, LEVEL).map_err(failed)?;
        let mut hasher = Sha256::new();
        let mut bytes = 0_u64;
        let mut chunk = vec![0_u8; CHUNK];
        loop {
            let read = match input.read(&mut chunk) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other.map_err(StoreError::on("read", origin))?,
            };
            let Some(part) = chunk.get(..read).filter(|part| !part.is_empty()) else { break };
            hasher.update(part);
            output.write_all(part).map_err(failed)?;
            bytes += part.len() as u64;
        }
        let file = output.finish().map_err(failed)?;
        let digest = Digest::finish(hasher);
        self.keep(file, &digest)?;
        Ok(Artifact { digest, bytes })
    }

    /// Takes in an artifact from another folder. Bytes that are there already are not looked at.
    pub(crate) fn take_in(&self, from: &Self, digest: &Digest) -> Result<(), ReadArtifactError> {
        if self.holds(digest) {
            return Ok(());
        }
        let mut input = from.open_file(digest)?;
        let mut file = atomic::temporary_in(&self.dir)?;
        io::copy(&mut input, &mut file).map_err(StoreError::on("write", &self.dir))?;
        // The copy is checked, not the original, which somebody else may still be writing.
        let copy = file.reopen().map_err(StoreError::on("read", file.path()))?;
        let path = from.path(digest);
        ArtifactReader::new(copy, digest, &path)
            .and_then(|mut reader| io::copy(&mut reader, &mut io::sink()))
            .map_err(|error| describe(error, digest, &path))?;
        Ok(self.keep(file, digest)?)
    }

    fn keep(&self, file: tempfile::NamedTempFile, digest: &Digest) -> Result<(), StoreError> {
        let path = self.path(digest);
        let folder = path.parent().expect("an artifact lies in a folder");
        atomic::create_folder(folder)?;
        if path.is_file() {
            // Whoever stored it may have been killed before its name reached the disk.
            return atomic::sync_folder(folder);
        }
        atomic::put_in_place(file, &path)
    }

    /// Opens an artifact. The reader verifies it: its end is an error if the bytes aren't those that the digest names.
    ///
    /// # Errors
    /// Returns an error if the artifact is missing or can't be opened.
    pub fn open(&self, digest: &Digest) -> Result<ArtifactReader, ReadArtifactError> {
        let path = self.path(digest);
        let file = self.open_file(digest)?;
        ArtifactReader::new(file, digest, &path).map_err(|error| describe(error, digest, &path))
    }

    /// Returns all bytes of an artifact, verified.
    ///
    /// # Errors
    /// Returns an error if the artifact is missing, damaged, or can't be read.
    pub fn read(&self, digest: &Digest) -> Result<Vec<u8>, ReadArtifactError> {
        let mut bytes = Vec::new();
        let read = self.open(digest)?.read_to_end(&mut bytes);
        read.map_err(|error| describe(error, digest, &self.path(digest)))?;
        Ok(bytes)
    }

    /// Reads an artifact to its end and verifies it, in constant memory. Returns its length.
    pub(crate) fn verify(&self, digest: &Digest) -> Result<u64, ReadArtifactError> {
        let mut reader = self.open(digest)?;
        io::copy(&mut reader, &mut io::sink()).map_err(|error| describe(error, digest, &self.path(digest)))
    }

    /// Returns every file below the folder, with the digest that its name says, if it says one.
    pub(crate) fn files(&self) -> Result<Vec<(PathBuf, Option<Digest>)>, StoreError> {
        let mut files = Vec::new();
        for path in atomic::names(&self.dir)? {
            let inside = if path.is_dir() { atomic::names(&path)? } else { vec![path] };
            files.extend(inside.into_iter().map(|path| {
                let digest = digest_of_name(&path).filter(|digest| self.path(digest) == path);
                (path, digest)
            }));
        }
        Ok(files)
    }

    fn open_file(&self, digest: &Digest) -> Result<File, ReadArtifactError> {
        let path = self.path(digest);
        // Before it is opened: opening a pipe waits for whoever writes to it.
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return Err(ReadArtifactError::Damaged { digest: digest.clone(), path });
        }
        match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(ReadArtifactError::Missing { digest: digest.clone(), path })
            }
            Err(source) => Err(StoreError::new("read", path, source).into()),
            Ok(file) => Ok(file),
        }
    }
}

fn digest_of_name(path: &Path) -> Option<Digest> {
    Digest::new(path.file_name()?.to_str()?.strip_suffix(SUFFIX)?).ok()
}

/// Returns the error for one that an [`ArtifactReader`] gave: the damage that it carries, or what the system said.
fn describe(error: io::Error, digest: &Digest, path: &Path) -> ReadArtifactError {
    if error.kind() == io::ErrorKind::InvalidData {
        ReadArtifactError::Damaged { digest: digest.clone(), path: path.to_owned() }
    } else {
        StoreError::new("read", path, error).into()
    }
}

/// The uncompressed bytes of an artifact.
///
/// Its end is an error of the kind [`io::ErrorKind::InvalidData`] that carries [`ReadArtifactError::Damaged`] if the
/// bytes aren't those that the digest names. Bytes that were read before that must not be believed until the end came.
pub struct ArtifactReader {
    input: zstd::Decoder<'static, io::BufReader<File>>,
    hasher: Option<Sha256>,
    digest: Digest,
    path: PathBuf,
}

impl ArtifactReader {
    fn new(file: File, digest: &Digest, path: &Path) -> io::Result<Self> {
        let input = zstd::Decoder::new(file)?;
        Ok(Self { input, hasher: Some(Sha256::new()), digest: digest.clone(), path: path.to_owned() })
    }

    fn damaged(&self) -> io::Error {
        let error = ReadArtifactError::Damaged { digest: self.digest.clone(), path: self.path.clone() };
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}

impl Read for ArtifactReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let read = match self.input.read(buffer) {
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Err(error),
            // An error number is the disk's; without one it is the decoder's.
            Err(error) if error.raw_os_error().is_some() => return Err(error),
            Err(_decoding) => return Err(self.damaged()),
        };
        let part = buffer.get(..read).filter(|part| !part.is_empty());
        match (part, self.hasher.as_mut()) {
            (Some(part), Some(hasher)) => hasher.update(part),
            (Some(_), None) => return Err(self.damaged()),
            (None, _) => {
                if self.hasher.take().is_some_and(|hasher| Digest::finish(hasher) != self.digest) {
                    return Err(self.damaged());
                }
            }
        }
        Ok(read)
    }
}

impl std::fmt::Debug for ArtifactReader {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ArtifactReader").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Creates the folder for artifacts.
pub(crate) fn create(dir: &Path) -> Result<(), StoreError> {
    atomic::create_folder(dir)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::samples::noise;

    fn empty() -> (tempfile::TempDir, Artifacts) {
        let dir = tempfile::tempdir().unwrap();
        let artifacts = Artifacts::new(dir.path().join("artifacts"));
        create(&artifacts.dir).unwrap();
        (dir, artifacts)
    }

    #[test]
    fn every_size_comes_back_as_it_was() {
        let (dir, artifacts) = empty();
        for size in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 9_000_001] {
            let bytes = noise(size);
            let file = dir.path().join("evidence");
            fs::write(&file, &bytes).unwrap();
            let artifact = artifacts.put_file(&file).unwrap();
            assert_eq!(artifact, Artifact { digest: Digest::of(&bytes), bytes: size as u64 });
            assert!(artifacts.read(&artifact.digest).unwrap() == bytes, "{size}");
        }
    }

    #[test]
    fn the_same_bytes_are_stored_once_and_leave_nothing_else() {
        let (_dir, artifacts) = empty();
        let first = artifacts.put_bytes(b"log\n").unwrap();
        let inode = |artifact: &Artifact| {
            use std::os::unix::fs::MetadataExt as _;
            artifacts.path(&artifact.digest).metadata().unwrap().ino()
        };
        let before = inode(&first);
        assert_eq!(artifacts.put_bytes(b"log\n").unwrap(), first);
        assert_eq!(inode(&first), before);
        assert_eq!(artifacts.files().unwrap(), [(artifacts.path(&first.digest), Some(first.digest))]);
    }

    #[test]
    fn a_cut_or_altered_artifact_is_named() {
        let (_dir, artifacts) = empty();
        let Artifact { digest, .. } = artifacts.put_bytes(&noise(100_000)).unwrap();
        let path = artifacts.path(&digest);
        let whole = fs::read(&path).unwrap();
        for length in [0, 1, 8, 1000, whole.len() - 1] {
            check_damaged(&artifacts, &digest, &whole[..length]);
        }
        for place in [0, 20, 500, whole.len() / 2, whole.len() - 1] {
            let mut altered = whole.clone();
            altered[place] ^= 0x10;
            check_damaged(&artifacts, &digest, &altered);
        }
        check_damaged(&artifacts, &digest, &[whole.as_slice(), b"more"].concat());
        check_damaged(&artifacts, &digest, &[whole.as_slice(), whole.as_slice()].concat());
        fs::remove_file(&path).unwrap();
        let error = artifacts.read(&digest).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the artifact {digest} is missing")), "{error}");
        fs::create_dir(&path).unwrap();
        let error = artifacts.read(&digest).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the artifact {digest} is damaged")), "{error}");
    }

    fn check_damaged(artifacts: &Artifacts, digest: &Digest, stored: &[u8]) {
        fs::write(artifacts.path(digest), stored).unwrap();
        let error = artifacts.read(digest).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the artifact {digest} is damaged")), "{error}");
    }

    #[test]
    fn only_plain_files_are_stored() {
        let (dir, artifacts) = empty();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/etc/hostname", &link).unwrap();
        for path in [link.as_path(), dir.path(), Path::new("/dev/zero")] {
            let error = artifacts.put_file(path).unwrap_err();
            assert_eq!(error.to_string(), format!("failed to read `{}`", path.display()));
        }
    }
}
