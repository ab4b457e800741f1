//! A commit's tree, or a folder of it, as plain files: the bytes that git stores, without filters, attributes or history.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::CommitId;

use super::Git;
use crate::command::{RunCommandError, run_into};
use crate::environment::safe_path::{link_stays_inside, relative, to_text};
use crate::environment::{EnvironmentError, Stop};

/// The time stamp of every exported file: 1980-01-01T00:00:00Z, the oldest that zip archives can hold.
const TIME_STAMP: Duration = Duration::from_secs(315_532_800);

/// What an export left out or changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Number of files and links.
    pub files: u64,
    /// Submodules, which are left as empty folders, by path.
    pub submodules: Vec<String>,
}

/// An entry of a tree, as `ls-tree` lists it.
struct Entry {
    path: PathBuf,
    object: String,
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File { mode: u32 },
    Link,
    Submodule,
}

pub(super) fn export(git: &Git<'_>, commit: &CommitId, under: &str, folder: &Path) -> Result<Exported, Stop> {
    let (finished, listing) = git.output(["ls-tree", "-r", "-z", "--full-tree", commit.as_str()])?;
    git.check(&finished, || format!("the tree of `{}` can't be listed", commit.short()))?;
    let mut entries = parse_listing(&listing, commit)?;
    entries.retain(|entry| entry.path.starts_with(under));
    let io_error = |path: &Path| {
        let path = path.to_owned();
        move |source| EnvironmentError::Write { path, source }
    };
    std::fs::create_dir_all(folder).map_err(io_error(folder))?;
    let mut exported = Exported::default();
    for entry in &entries {
        let parent = if entry.kind == Kind::Submodule { Some(entry.path.as_path()) } else { entry.path.parent() };
        if let Some(parent) = parent {
            let path = folder.join(parent);
            std::fs::create_dir_all(&path).map_err(|error| clash(error, &path, commit))?;
        }
        match entry.kind {
            Kind::Submodule => exported.submodules.push(to_text(&entry.path)),
            Kind::File { .. } | Kind::Link => exported.files += 1,
        }
    }
    let blobs: Vec<&Entry> = entries.iter().filter(|entry| entry.kind != Kind::Submodule).collect();
    let links = write_files(git, commit, folder, &blobs)?;
    // Links come last, so that no file was written through one.
    for (path, target) in &links {
        let place = folder.join(path);
        symlink(OsStr::from_bytes(target), &place).map_err(|error| clash(error, &place, commit))?;
    }
    for (path, target) in &links {
        if !link_stays_inside(folder, path, OsStr::from_bytes(target)).map_err(io_error(folder))? {
            let message = format!("the tree of `{}` holds a link that leaves it", commit.short());
            let line = format!("{} -> {}", to_text(path), String::from_utf8_lossy(target));
            return Err(tree_unsafe(message, line).into());
        }
    }
    set_times(folder).map_err(io_error(folder))?;
    Ok(exported)
}

fn tree_unsafe(message: String, line: impl AsRef<str>) -> Failure {
    let failure = Failure::new(FailureStage::Acquire, FailureClass::TreeUnsafe, message);
    failure.with_evidence([EvidenceLine::new("git ls-tree", None, line.as_ref())])
}

/// Two entries with one name make a tree unsafe; any other refusal is the machine's.
fn clash(error: io::Error, path: &Path, commit: &CommitId) -> Stop {
    let kinds = [io::ErrorKind::AlreadyExists, io::ErrorKind::NotADirectory, io::ErrorKind::IsADirectory];
    if kinds.contains(&error.kind()) {
        let message = format!("the tree of `{}` names one path twice", commit.short());
        return tree_unsafe(message, to_text(path)).into();
    }
    EnvironmentError::Write { path: path.to_owned(), source: error }.into()
}

fn parse_listing(listing: &[u8], commit: &CommitId) -> Result<Vec<Entry>, Stop> {
    let mut entries = Vec::new();
    for line in listing.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
        let shown = || line.escape_ascii().to_string();
        let parsed = parse_entry(line).map_err(|reason| {
            tree_unsafe(format!("the tree of `{}` has an entry that {reason}", commit.short()), shown())
        })?;
        entries.push(parsed);
    }
    Ok(entries)
}

/// Parses `MODE TYPE OBJECT<tab>PATH`.
fn parse_entry(line: &[u8]) -> Result<Entry, &'static str> {
    let tab = line.iter().position(|byte| *byte == b'\t').ok_or("can't be read")?;
    let (head, path) = line.split_at(tab);
    let path = relative(path.get(1..).unwrap_or_default())?.to_owned();
    let head = std::str::from_utf8(head).ok().ok_or("can't be read")?;
    let mut fields = head.split(' ');
    let kind = match fields.next() {
        Some("100755") => Kind::File { mode: 0o755 },
        // 100664 is what the first versions of git wrote.
        Some("100644" | "100664") => Kind::File { mode: 0o644 },
        Some("120000") => Kind::Link,
        Some("160000") => Kind::Submodule,
        Some(_) | None => return Err("has an unknown mode"),
    };
    let object = fields.nth(1).ok_or("can't be read")?.to_owned();
    Ok(Entry { path, object, kind })
}

/// Writes every file and returns the links with their targets.
fn write_files(
    git: &Git<'_>,
    commit: &CommitId,
    folder: &Path,
    blobs: &[&Entry],
) -> Result<Vec<(PathBuf, Vec<u8>)>, Stop> {
    let mut invocation = git.invocation(["cat-file", "--batch", "--buffer"]);
    invocation.stdin = Some(git.input(blobs.iter().map(|blob| &blob.object))?);
    let mut files = Files { folder, blobs: blobs.iter(), links: Vec::new(), state: State::Head(Vec::new()) };
    let result = run_into(&invocation, &git.watch(), &mut files);
    let Files { mut blobs, links, state, .. } = files;
    match state {
        State::Missing(line) => {
            let message =
                format!("the repository lacks files of `{}`; fetch it whole, without a filter", commit.short());
            let failure = Failure::new(FailureStage::Acquire, FailureClass::RepositoryUnavailable, message);
            return Err(failure.with_evidence([EvidenceLine::new("git cat-file", None, &line)]).into());
        }
        State::Clash(path) => {
            return Err(clash(io::ErrorKind::AlreadyExists.into(), &path, commit));
        }
        State::Head(_) | State::Body { .. } => {}
    }
    let finished = match result {
        // What git writes is taken by the folder: a full disk is the folder's, not git's.
        Err(RunCommandError::Sink { source, .. }) if source.kind() != io::ErrorKind::Other => {
            return Err(EnvironmentError::Write { path: folder.to_owned(), source }.into());
        }
        other => other?,
    };
    git.check(&finished, || format!("the files of `{}` can't be read", commit.short()))?;
    if blobs.next().is_some() {
        let message = format!("git ended before all files of `{}` were read", commit.short());
        return Err(super::unavailable(message).transient().into());
    }
    Ok(links)
}

/// Takes the output of `git cat-file --batch`: for each object a line `OBJECT TYPE SIZE`, its bytes, and a line end.
struct Files<'a> {
    folder: &'a Path,
    blobs: std::slice::Iter<'a, &'a Entry>,
    links: Vec<(PathBuf, Vec<u8>)>,
    state: State<'a>,
}

enum State<'a> {
    Head(Vec<u8>),
    Body { entry: &'a Entry, target: Target, left: u64 },
    Missing(String),
    Clash(PathBuf),
}

enum Target {
    File(File),
    Link(Vec<u8>),
}

impl<'a> Files<'a> {
    /// Takes bytes of a head line and returns how many.
    fn take_head(&mut self, mut head: Vec<u8>, bytes: &[u8]) -> io::Result<usize> {
        let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
            head.extend_from_slice(bytes);
            self.state = State::Head(head);
            return Ok(bytes.len());
        };
        head.extend(bytes.iter().take(end));
        let line = String::from_utf8_lossy(&head).into_owned();
        let size = line.split(' ').nth(2).and_then(|size| size.parse::<u64>().ok());
        let (Some(size), Some(entry)) = (size, self.blobs.next()) else {
            self.state = State::Missing(line);
            return Err(io::Error::other("an object is missing"));
        };
        let entry: &'a Entry = entry;
        let target = match entry.kind {
            Kind::File { mode } => Target::File(self.create(entry, mode)?),
            Kind::Link | Kind::Submodule => Target::Link(Vec::new()),
        };
        // One more for the line end after the bytes.
        self.state = State::Body { entry, target, left: size + 1 };
        Ok(end + 1)
    }

    fn create(&mut self, entry: &Entry, mode: u32) -> io::Result<File> {
        let path = self.folder.join(&entry.path);
        let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
        if file.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists) {
            self.state = State::Clash(path);
        }
        let file = file?;
        file.set_permissions(std::fs::Permissions::from_mode(mode))?;
        Ok(file)
    }
}

impl Write for Files<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::mem::replace(&mut self.state, State::Head(Vec::new())) {
            State::Head(head) => self.take_head(head, bytes),
            State::Body { entry, mut target, left } => {
                let length = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                let taken = bytes.get(..length).unwrap_or_default();
                let left = left - taken.len() as u64;
                let content = if left == 0 { taken.split_last().map_or(taken, |(_, rest)| rest) } else { taken };
                match &mut target {
                    Target::File(file) => file.write_all(content)?,
                    Target::Link(link) => link.extend_from_slice(content),
                }
                match (left, target) {
                    (0, Target::File(_)) => {}
                    (0, Target::Link(link)) => self.links.push((entry.path.clone(), link)),
                    (_, target) => self.state = State::Body { entry, target, left },
                }
                Ok(length)
            }
            State::Missing(_) | State::Clash(_) => Err(io::Error::other("the export has failed already")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Gives every file and folder under `folder` the fixed time stamp and every folder the mode 755.
fn set_times(folder: &Path) -> io::Result<()> {
    let time = SystemTime::UNIX_EPOCH + TIME_STAMP;
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                File::open(entry.path())?.set_modified(time)?;
            }
        }
        let handle = File::open(&folder)?;
        handle.set_permissions(std::fs::Permissions::from_mode(0o755))?;
        handle.set_modified(time)?;
    }
    Ok(())
}
