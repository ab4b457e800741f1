//! Files that are whole or not there, and the difference between a full disk and every other refusal.

use std::error::Error;
use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use crate::layout::TEMPORARY;

/// Why a file couldn't be read or written.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk, the quota or the file size limit doesn't hold any more.
    #[error("no space is left to write `{path}`")]
    DiskFull {
        /// What was being written.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
    /// Anything else.
    #[error("failed to {action} `{path}`")]
    Io {
        /// What was tried: a verb.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the operating system said.
        #[source]
        source: io::Error,
    },
}

impl StoreError {
    /// Returns the error for what the operating system said when `action` (a verb) was tried on `path`.
    pub fn new(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        let path = path.into();
        if says_disk_full(&source) { Self::DiskFull { path, source } } else { Self::Io { action, path, source } }
    }

    /// Returns a function that makes the error, for `map_err`.
    pub(crate) fn on<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Self + use<'a> {
        move |source| Self::new(action, path, source)
    }
}

fn says_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge)
}

/// Returns whether an error, or anything that caused it, is a full disk: ENOSPC, EDQUOT or EFBIG.
pub fn is_disk_full(error: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.downcast_ref::<io::Error>().is_some_and(says_disk_full) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// Writes a file so that after any crash it has either its old bytes or all of the new ones, and the new ones once this
/// has returned.
///
/// # Errors
/// Returns [`StoreError::DiskFull`] if there is no space, and the old file is as it was.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_atomically_with(path, |out| out.write_all(bytes))
}

/// As [`write_atomically`], for a path that a person named: a link is followed, and what is no plain file is refused, because a
/// file in the place of a device, a pipe or a folder would not be what was named.
///
/// # Errors
/// Returns an error whose cause is [`io::ErrorKind::InvalidInput`] if the path is no plain file.
pub fn write_named(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    write_atomically(&plain_file(path)?, bytes)
}

/// Returns the path of the plain file that `path` stands for, whether it is there or not.
pub(crate) fn plain_file(path: &Path) -> Result<PathBuf, StoreError> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let target = if is_link { path.canonicalize().map_err(StoreError::on("follow", path))? } else { path.to_owned() };
    check_plain(&target).map_err(|source| StoreError::new("use", path, source))?;
    Ok(target)
}

/// Refuses what is there and is no plain file: opening a pipe would wait for whoever writes to it.
fn check_plain(path: &Path) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no plain file"));
    }
    Ok(())
}

/// Opens a plain file to be read.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    check_plain(path)?;
    File::open(path)
}

/// As [`write_atomically`], with what `write` writes.
///
/// # Errors
/// Returns [`StoreError::DiskFull`] if there is no space, and the old file is as it was; likewise for what `write` returns.
pub fn write_atomically_with(
    path: &Path,
    write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>,
) -> Result<(), StoreError> {
    put_in_place(written(path, write)?, path)
}

/// As [`write_atomically`], but a file that is there stays as it is.
///
/// # Errors
/// Returns an error whose cause is [`io::ErrorKind::AlreadyExists`] if something has that name.
pub fn write_new_atomically(path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
    let file = written(path, |out| out.write_all(bytes))?;
    file.as_file().sync_all().map_err(StoreError::on("write", path))?;
    file.persist_noclobber(path).map_err(|error| StoreError::new("write", path, error.error))?;
    sync_folder(folder_of(path))
}

/// What writes a file's bytes.
pub type WriteFile<'w> = &'w dyn Fn(&mut dyn io::Write) -> io::Result<()>;

/// Writes files that belong together: each is whole on the disk before the first gets its name.
///
/// # Errors
/// Returns [`StoreError::DiskFull`] if there is no space, and all old files are as they were; likewise for what a writer
/// returns.
pub fn write_together(files: &[(&Path, WriteFile<'_>)]) -> Result<(), StoreError> {
    let mut ready = Vec::new();
    for (path, write) in files {
        let file = written(path, write)?;
        file.as_file().sync_all().map_err(StoreError::on("write", path))?;
        ready.push((file, *path));
    }
    for (file, path) in ready {
        put_in_place(file, path)?;
    }
    Ok(())
}

/// Returns a file beside `path` that holds what `write` writes and has no name yet.
fn written(path: &Path, write: impl FnOnce(&mut dyn io::Write) -> io::Result<()>) -> Result<NamedTempFile, StoreError> {
    let mut file = temporary_in(folder_of(path))?;
    let mut out = io::BufWriter::with_capacity(1 << 16, file.as_file_mut());
    write(&mut out).and_then(|()| out.flush()).map_err(StoreError::on("write", path))?;
    drop(out);
    Ok(file)
}

/// Returns an empty file of the folder that vanishes unless [`put_in_place`] is called with it.
pub(crate) fn temporary_in(folder: &Path) -> Result<NamedTempFile, StoreError> {
    // Others may read what the umask lets them; `tempfile` alone would make a file for its owner only.
    let permissions = Permissions::from_mode(0o666);
    tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(permissions)
        .tempfile_in(folder)
        .map_err(StoreError::on("create a file in", folder))
}

/// Gives a finished file its name, and returns when both have reached the disk.
pub(crate) fn put_in_place(file: NamedTempFile, path: &Path) -> Result<(), StoreError> {
    file.as_file().sync_all().map_err(StoreError::on("write", path))?;
    file.persist(path).map_err(|error| StoreError::new("write", path, error.error))?;
    sync_folder(folder_of(path))
}

/// Returns when the names in a folder have reached the disk.
pub(crate) fn sync_folder(folder: &Path) -> Result<(), StoreError> {
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // Some network file systems can't do it and need not.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
        other => other.map_err(StoreError::on("write", folder)),
    }
}

/// Creates a folder and those above it, each on the disk when this returns.
pub(crate) fn create_folder(path: &Path) -> Result<(), StoreError> {
    if path.is_dir() {
        return Ok(());
    }
    let above = folder_of(path);
    create_folder(above)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        other => other.map_err(StoreError::on("create the folder", path)),
    }?;
    sync_folder(above)
}

/// Removes unfinished files and folders that a process which was killed has left in a folder. A folder that isn't there
/// has none.
pub(crate) fn sweep(folder: &Path) -> Result<(), StoreError> {
    for path in names(folder)? {
        let unfinished = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY));
        let kind = path.symlink_metadata().map(|data| data.file_type()).ok().filter(|_| unfinished);
        if kind.is_some_and(|kind| kind.is_file()) {
            fs::remove_file(&path).map_err(StoreError::on("remove", &path))?;
        } else if kind.is_some_and(|kind| kind.is_dir()) {
            fs::remove_dir_all(&path).map_err(StoreError::on("remove", &path))?;
        }
    }
    Ok(())
}

/// Returns the paths in a folder, sorted; none if it isn't there.
pub(crate) fn names(folder: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(StoreError::on("read the folder", folder))?,
    };
    let paths: io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.map_err(StoreError::on("read the folder", folder))?;
    paths.sort();
    Ok(paths)
}

/// Returns a whole file's bytes, or `None` if it isn't there.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StoreError> {
    match check_plain(path).and_then(|()| fs::read(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some).map_err(StoreError::on("read", path)),
    }
}

pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_is_refused_without_waiting_for_its_writer() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("events.jsonl");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0).unwrap();
        assert_eq!(open_plain(&pipe).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        assert!(read_if_there(&pipe).unwrap_err().to_string().contains("events.jsonl"));
        assert!(plain_file(&pipe).is_err());
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.json");
        for text in ["one", "two"] {
            write_atomically(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        assert_eq!(names(dir.path()).unwrap(), [path]);
    }

    #[test]
    fn a_new_file_takes_no_name_that_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("x"), dir.path().join("link"));
        std::os::unix::fs::symlink("nowhere", &link).unwrap();
        write_new_atomically(&path, b"one").unwrap();
        for taken in [&path, &link] {
            let error = write_new_atomically(taken, b"two").unwrap_err();
            let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>()).unwrap();
            assert_eq!(cause.kind(), io::ErrorKind::AlreadyExists, "{error:?}");
        }
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(names(dir.path()).unwrap(), [link, path]);
    }

    #[test]
    fn of_files_that_belong_together_none_is_replaced_if_one_cannot_be_written() {
        let dir = tempfile::tempdir().unwrap();
        let (first, second) = (dir.path().join("a"), dir.path().join("b"));
        let text = |text: &'static str| move |out: &mut dyn io::Write| out.write_all(text.as_bytes());
        let full = |_: &mut dyn io::Write| Err(io::Error::from(io::ErrorKind::StorageFull));
        write_together(&[(&first, &text("old")), (&second, &text("old"))]).unwrap();
        let error = write_together(&[(&first, &text("new")), (&second, &full)]).unwrap_err();
        assert!(is_disk_full(&error), "{error:?}");
        for path in [&first, &second] {
            assert_eq!(fs::read_to_string(path).unwrap(), "old");
        }
        assert_eq!(names(dir.path()).unwrap(), [first, second]);
    }

    #[test]
    fn what_a_killed_process_left_is_swept() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("tmp-abc"), "half").unwrap();
        fs::write(dir.path().join("whole"), "").unwrap();
        sweep(dir.path()).unwrap();
        assert_eq!(names(dir.path()).unwrap(), [dir.path().join("whole")]);
        sweep(&dir.path().join("absent")).unwrap();
    }

    #[test]
    fn a_full_disk_is_told_from_other_refusals() {
        let path = Path::new("/dev/full");
        let mut file = File::options().write(true).open(path).unwrap();
        let full = StoreError::new("write", path, file.write_all(b"x").unwrap_err());
        assert!(matches!(full, StoreError::DiskFull { .. }), "{full:?}");
        assert_eq!(full.to_string(), "no space is left to write `/dev/full`");
        let cases = [(libc_code("ENOSPC"), true), (libc_code("EDQUOT"), true), (libc_code("EFBIG"), true), (13, false)];
        for (code, expected) in cases {
            let error = StoreError::new("write", "x", io::Error::from_raw_os_error(code));
            assert_eq!(is_disk_full(&error), expected, "{code}");
            assert_eq!(matches!(error, StoreError::DiskFull { .. }), expected, "{code}");
        }
    }

    fn libc_code(name: &str) -> i32 {
        use rustix::io::Errno;
        match name {
            "ENOSPC" => Errno::NOSPC,
            "EDQUOT" => Errno::DQUOT,
            _ => Errno::FBIG,
        }
        .raw_os_error()
    }

    #[test]
    fn a_refusal_names_the_action_and_the_path() {
        let error = write_atomically(Path::new("/proc/none/x"), b"").unwrap_err();
        assert_eq!(error.to_string(), "failed to create a file in `/proc/none`");
        assert!(!is_disk_full(&error));
    }
}
