//! What is in a wheel, looked through without unpacking or running any of it: whether every file is where it may be, is
//! listed, has the digest that the list says, and whether there is anything to import at all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::DeflateDecoder;
use isobench_schema::ids::Digest;
use rawzip::{CompressionMethod, RECOMMENDED_BUFFER_SIZE, ZipArchive};
use sha2::{Digest as _, Sha256};

use super::name::{WheelName, WheelNameError, normalised};
use super::record;
use crate::environment::safe_path::relative;

/// The most files that a wheel may have; the largest known have a few ten thousand.
const MOST_FILES: u64 = 200_000;
/// The most bytes that a wheel may unpack to.
const MOST_BYTES: u64 = 32 << 30;
/// From this many bytes on a file is asked how it can be packed so tightly.
const LARGE_BYTES: u64 = 64 << 20;
/// How many times as large as packed a large file may be: no library or text comes near it.
const MOST_RATIO: u64 = 200;
/// The most bytes of a file that is read as text.
const LONGEST_TEXT: u64 = 64 << 20;
/// How much is read at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// What a wheel must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expected {
    /// Its digest, which pins its publisher.
    pub sha256: Option<Digest>,
    /// Modules that must be importable from it, such as `vllm.entrypoints`.
    pub modules: Vec<String>,
}

/// What a wheel holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WheelContents {
    /// What its name says.
    pub name: WheelName,
    /// Its digest.
    pub sha256: Digest,
    /// Its size in bytes.
    pub bytes: u64,
    /// The size of all its files.
    pub unpacked_bytes: u64,
    /// The digest and size of each file, by path.
    pub files: BTreeMap<String, (Digest, u64)>,
    /// The version that its metadata says.
    pub version: String,
    /// The names under which something can be imported.
    pub modules: BTreeSet<String>,
    /// What is odd about it, but no reason to refuse it.
    pub notes: Vec<String>,
}

/// Why a wheel is refused, or can't be looked through.
#[derive(Debug, thiserror::Error)]
pub enum CheckWheelError {
    /// Its name isn't a wheel's.
    #[error(transparent)]
    Name(#[from] WheelNameError),
    /// It can't be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no sound archive.
    #[error("`{file}` is no sound archive: {reason}")]
    Archive {
        /// The file's name.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// It isn't what it says or what is wanted.
    #[error("`{file}` is refused: {reason}")]
    Refused {
        /// The file's name.
        file: String,
        /// What is wrong.
        reason: String,
    },
}

/// Looks through the wheel at `path`.
///
/// # Errors
/// Returns an error if the wheel can't be read, isn't sound, or isn't what is expected.
pub fn check(path: &Path, expected: &Expected) -> Result<WheelContents, CheckWheelError> {
    let file_name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = WheelName::parse(&file_name)?;
    let look = Look { path, file_name };
    let (sha256, bytes) = look.digest()?;
    if let Some(wanted) = expected.sha256.as_ref().filter(|wanted| **wanted != sha256) {
        return Err(look.refused(format!("its SHA-256 is {sha256}, and {wanted} is wanted")));
    }
    let (files, texts) = look.files()?;
    let mut contents = WheelContents {
        name,
        sha256,
        bytes,
        unpacked_bytes: files.values().map(|(_, size)| size).sum(),
        files,
        version: String::new(),
        modules: BTreeSet::new(),
        notes: Vec::new(),
    };
    let folder = look.dist_info(&contents)?;
    let text = |name: &str| texts.get(&format!("{folder}/{name}"));
    look.check_listed(&contents, &folder, text("RECORD"))?;
    look.check_metadata(&mut contents, text("METADATA"), text("WHEEL"))?;
    contents.modules = modules(&contents.files);
    look.check_modules(&contents, text("top_level.txt"), &expected.modules)?;
    let own = contents.name.distribution.replace('-', "_");
    if !contents.modules.iter().any(|module| module.eq_ignore_ascii_case(&own)) {
        // Many have another name; one that was taken over by a stranger does too.
        contents.notes.push(format!("nothing in it is imported as `{own}`"));
    }
    Ok(contents)
}

/// A wheel under the glass.
struct Look<'a> {
    path: &'a Path,
    file_name: String,
}

type Files = BTreeMap<String, (Digest, u64)>;
type Texts = BTreeMap<String, String>;

impl Look<'_> {
    fn refused(&self, reason: impl Into<String>) -> CheckWheelError {
        CheckWheelError::Refused { file: self.file_name.clone(), reason: reason.into() }
    }

    fn unsound(&self, reason: impl Into<String>) -> CheckWheelError {
        CheckWheelError::Archive { file: self.file_name.clone(), reason: reason.into() }
    }

    fn read_error(&self, source: io::Error) -> CheckWheelError {
        CheckWheelError::Read { path: self.path.to_owned(), source }
    }

    fn digest(&self) -> Result<(Digest, u64), CheckWheelError> {
        // Of a pipe or a device there is no end.
        if !std::fs::metadata(self.path).map_err(|error| self.read_error(error))?.is_file() {
            return Err(self.refused("it is no regular file"));
        }
        let mut file = File::open(self.path).map_err(|error| self.read_error(error))?;
        let mut bytes = 0;
        let digest = Digest::of_written(|hasher| io::copy(&mut file, hasher).map(|copied| bytes = copied));
        Ok((digest.map_err(|error| self.read_error(error))?, bytes))
    }

    /// Returns the digest and size of every file, and the texts of the folder of metadata.
    fn files(&self) -> Result<(Files, Texts), CheckWheelError> {
        let file = File::open(self.path).map_err(|error| self.read_error(error))?;
        let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
        let archive = ZipArchive::from_file(file, &mut buffer).map_err(|error| self.unsound(error.to_string()))?;
        let (mut files, mut texts, mut ranges) = (Files::new(), Texts::new(), Vec::new());
        let (mut counted, mut total) = (0_u64, 0_u64);
        let mut entries = archive.entries(&mut buffer);
        while let Some(entry) = entries.next_entry().map_err(|error| self.unsound(error.to_string()))? {
            counted += 1;
            let raw = entry.file_path().as_ref().to_vec();
            let path = self.path_of(&raw, entry.is_dir())?;
            if counted > MOST_FILES {
                return Err(self.unsound(format!("it has more than {MOST_FILES} files")));
            }
            let kind = (entry.external_attributes() >> 16) & 0o170_000;
            if kind != 0 && kind != 0o100_000 && kind != 0o040_000 {
                return Err(self.unsound(format!("`{path}` is neither a file nor a folder")));
            }
            let found = archive.get_entry(entry.wayfinder()).map_err(|error| self.unsound(error.to_string()))?;
            let mut local = vec![0; 2 * usize::from(u16::MAX)];
            let header = found.local_header(&mut local).map_err(|error| self.unsound(error.to_string()))?;
            if header.file_path().as_ref() != raw.as_slice() {
                return Err(self.unsound(format!("`{path}` has two names, which readers choose between")));
            }
            ranges.push(found.compressed_data_range());
            if entry.is_dir() {
                continue;
            }
            let (packed, size) = (entry.compressed_size_hint(), entry.uncompressed_size_hint());
            total = total.saturating_add(size);
            if total > MOST_BYTES || size > LARGE_BYTES && size / packed.max(1) > MOST_RATIO {
                return Err(self.unsound(format!("`{path}` unpacks from {packed} to {size} bytes")));
            }
            let is_text = path.split('/').next().is_some_and(|folder| folder.ends_with(".dist-info"));
            let reader: Box<dyn Read + '_> = match entry.compression_method() {
                CompressionMethod::STORE => Box::new(found.verifying_reader(found.reader())),
                CompressionMethod::DEFLATE => Box::new(found.verifying_reader(DeflateDecoder::new(found.reader()))),
                method => return Err(self.unsound(format!("`{path}` is packed in an unknown way ({method:?})"))),
            };
            let (digest, text) = self.read(&path, reader, size, is_text)?;
            if let Some(text) = text {
                texts.insert(path.clone(), text);
            }
            if files.insert(path.clone(), (digest, size)).is_some() {
                return Err(self.unsound(format!("`{path}` is in it twice")));
            }
        }
        ranges.sort_unstable();
        if ranges.windows(2).any(|pair| matches!(pair, [(_, end), (start, _)] if start < end)) {
            return Err(self.unsound("files of it lie in each other"));
        }
        if counted != archive.entries_hint() {
            return Err(self.unsound(format!("it has {counted} files and says that it has {}", archive.entries_hint())));
        }
        Ok((files, texts))
    }

    /// Returns the name of an entry as a path that stays in the folder that it is unpacked to.
    fn path_of(&self, raw: &[u8], is_folder: bool) -> Result<String, CheckWheelError> {
        let shown = raw.escape_ascii().to_string();
        let plain = if is_folder { raw.strip_suffix(b"/").unwrap_or(raw) } else { raw };
        relative(plain).map_err(|reason| self.unsound(format!("the name `{shown}` {reason}")))?;
        if plain.contains(&b'\\') {
            return Err(self.unsound(format!("the name `{shown}` has a backslash")));
        }
        String::from_utf8(plain.to_vec()).map_err(|_cause| self.unsound(format!("the name `{shown}` isn't UTF-8")))
    }

    /// Reads a file to its end, which also checks its sum. It may not be longer than it says.
    fn read(
        &self,
        path: &str,
        reader: Box<dyn Read + '_>,
        size: u64,
        is_text: bool,
    ) -> Result<(Digest, Option<String>), CheckWheelError> {
        // One byte more, so that a longer file is noticed and its checks at the end are reached.
        let mut reader = reader.take(size.saturating_add(1));
        let (mut hasher, mut kept, mut read) = (Sha256::new(), Vec::new(), 0_u64);
        let mut chunk = vec![0; CHUNK];
        loop {
            let length = reader.read(&mut chunk).map_err(|error| self.unsound(format!("`{path}`: {error}")))?;
            let Some(bytes) = chunk.get(..length).filter(|bytes| !bytes.is_empty()) else { break };
            read += bytes.len() as u64;
            hasher.update(bytes);
            if is_text && read <= LONGEST_TEXT {
                kept.extend_from_slice(bytes);
            }
        }
        if read != size {
            return Err(self.unsound(format!("`{path}` says that it has {size} bytes and has others")));
        }
        let text = if is_text { String::from_utf8(kept).ok() } else { None };
        Ok((Digest::finish(hasher), text))
    }

    /// Returns the folder of metadata: one, and of the distribution that the name says.
    fn dist_info(&self, contents: &WheelContents) -> Result<String, CheckWheelError> {
        let first = |path: &String| path.split('/').next().map(str::to_owned);
        let folders: BTreeSet<String> =
            contents.files.keys().filter_map(first).filter(|folder| folder.ends_with(".dist-info")).collect();
        let mut folders = folders.into_iter();
        let (Some(folder), None) = (folders.next(), folders.next()) else {
            return Err(self.refused("it doesn't have exactly one folder of metadata (`.dist-info`)"));
        };
        let stem = folder.trim_end_matches(".dist-info");
        let owner = stem.rsplit_once('-').map_or(stem, |(owner, _)| owner);
        if normalised(owner) != contents.name.distribution {
            return Err(self.refused(format!("its metadata lie in `{folder}`, which is another distribution's")));
        }
        Ok(folder)
    }

    /// Checks that every file is listed with its digest, and nothing is listed that isn't there.
    fn check_listed(
        &self,
        contents: &WheelContents,
        folder: &str,
        text: Option<&String>,
    ) -> Result<(), CheckWheelError> {
        let text = text.ok_or_else(|| self.refused("it has no list of its files (`RECORD`)"))?;
        let mut unlisted: BTreeSet<&String> = contents.files.keys().collect();
        let own = ["RECORD", "RECORD.jws", "RECORD.p7s"].map(|name| format!("{folder}/{name}"));
        for line in record::read(text).map_err(|reason| self.refused(reason))? {
            let Some((digest, size)) = contents.files.get(&line.path) else {
                if own.contains(&line.path) {
                    continue;
                }
                return Err(self.refused(format!("it lists `{}`, which it doesn't have", line.path)));
            };
            unlisted.remove(&line.path);
            if own.contains(&line.path) {
                continue;
            }
            if line.sha256.as_ref() != Some(digest) || line.size.is_some_and(|listed| listed != *size) {
                return Err(self.refused(format!("`{}` isn't the file that its list says", line.path)));
            }
        }
        unlisted.retain(|path| !own.contains(path));
        match unlisted.first() {
            None => Ok(()),
            Some(path) => Err(self.refused(format!("it has `{path}`, which its list doesn't name"))),
        }
    }

    fn check_metadata(
        &self,
        contents: &mut WheelContents,
        metadata: Option<&String>,
        wheel: Option<&String>,
    ) -> Result<(), CheckWheelError> {
        let metadata = metadata.ok_or_else(|| self.refused("it has no metadata (`METADATA`)"))?;
        let wheel = wheel.ok_or_else(|| self.refused("it doesn't say how it was made (`WHEEL`)"))?;
        let name = header(metadata, "Name").next().unwrap_or_default();
        if normalised(name) != contents.name.distribution {
            return Err(self.refused(format!("its metadata are those of `{name}`")));
        }
        header(metadata, "Version").next().unwrap_or_default().clone_into(&mut contents.version);
        let version = contents.version.parse::<super::name::Version>();
        if version.as_ref() != Ok(&contents.name.version) {
            // Archives of single commits name files after a placeholder.
            let note = format!("its name says version {}, its metadata `{}`", contents.name.version, contents.version);
            contents.notes.push(note);
        }
        let named: BTreeSet<String> = contents.name.tags.iter().map(ToString::to_string).collect();
        let said: BTreeSet<String> = header(wheel, "Tag").map(str::to_owned).collect();
        if said != named {
            let said: Vec<String> = said.into_iter().collect();
            contents.notes.push(format!("its name says {}, it itself `{}`", contents.name.tag_text(), said.join(", ")));
        }
        Ok(())
    }

    /// Checks that there is something to import, and that what is declared and wanted is there.
    fn check_modules(
        &self,
        contents: &WheelContents,
        top_level: Option<&String>,
        wanted: &[String],
    ) -> Result<(), CheckWheelError> {
        if contents.modules.is_empty() {
            return Err(self.refused("it is empty: there is nothing in it that could be imported"));
        }
        let declared = top_level.map(|text| text.lines().map(str::trim).filter(|name| !name.is_empty()));
        for name in declared.into_iter().flatten() {
            if !contents.modules.contains(&name.replace('/', ".")) {
                return Err(self.refused(format!("it says that `{name}` can be imported, and has no file of it")));
            }
        }
        match wanted.iter().find(|module| !contents.modules.contains(*module)) {
            None => Ok(()),
            Some(module) => Err(self.refused(format!("the module `{module}` isn't in it"))),
        }
    }
}

/// Returns the values of a header of metadata.
fn header<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let lines = text.lines().take_while(|line| !line.is_empty());
    lines.filter_map(move |line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then_some(value.trim())
    })
}

/// Returns the names under which Python would find something: modules, native ones too, and the folders that hold any.
fn modules(files: &Files) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for path in files.keys() {
        let path = match path.split_once(".data/") {
            Some((_, rest)) => match rest.split_once('/') {
                Some(("purelib" | "platlib", rest)) => rest,
                Some(_) | None => continue,
            },
            None => path.as_str(),
        };
        let Some(stem) = stem(path) else { continue };
        let parts: Vec<&str> = stem.split('/').filter(|part| *part != "__init__").collect();
        let is_importable = |part: &&str| part.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
        if parts.is_empty() || !parts.iter().all(is_importable) {
            continue;
        }
        for length in 1..=parts.len() {
            modules.insert(parts.get(..length).unwrap_or_default().join("."));
        }
    }
    modules
}

/// Returns a module's path without what its kind of file adds to it.
fn stem(path: &str) -> Option<&str> {
    if let Some(stem) = path.strip_suffix(".py") {
        return Some(stem);
    }
    let stem = path.strip_suffix(".so")?;
    let name = stem.rfind('/').map_or(0, |at| at + 1);
    let end = stem.get(name..)?.find('.').map_or(stem.len(), |at| name + at);
    stem.get(..end)
}
