//! The lease of a device: held for a block, so that two runs never measure on the same device at once.
//!
//! A lease is a lock on a file that every run of the machine uses. The kernel frees it when its holder dies, in whatever
//! way.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::host::process_table;

/// Where leases are kept unless it is said otherwise: one place for all users of the machine.
pub const DEFAULT_FOLDER: &str = "/tmp/isobench-leases";
/// The variable that names another folder.
pub const FOLDER_VARIABLE: &str = "ISOBENCH_LEASES";
/// How often a lease that is held by another is tried again.
const STEP: Duration = Duration::from_millis(100);
/// How often a lock file that is removed while it is opened is opened anew.
const TRIES: u32 = 100;
/// The bit of a folder's mode by which only its owner may remove a file from it.
const STICKY: u32 = 0o1000;

/// Why a lease isn't held.
#[derive(Debug, thiserror::Error)]
pub enum LeaseError {
    /// The lock file can't be used.
    #[error("failed to lock `{path}`")]
    File {
        /// The lock file.
        path: PathBuf,
        /// The operating system's error.
        #[source]
        source: io::Error,
    },
    /// What stands at the lease's place could be somebody's trap.
    #[error("the lease `{path}` can't be trusted: {reason}")]
    Untrusted {
        /// The lock file or its folder.
        path: PathBuf,
        /// Why, as a clause.
        reason: &'static str,
    },
    /// Another run held it all the time.
    #[error("the lease `{path}` is still held by {holder} after {waited_s} s")]
    Held {
        /// The lock file.
        path: PathBuf,
        /// Who holds it.
        holder: String,
        /// How long was waited.
        waited_s: u64,
    },
    /// The run was cancelled while it waited.
    #[error("cancelled while waiting for the lease `{path}`, which is held by {holder}")]
    Cancelled {
        /// The lock file.
        path: PathBuf,
        /// Who holds it.
        holder: String,
    },
}

/// A held lease. Dropping it frees the device.
#[derive(Debug)]
pub struct Lease {
    file: File,
    path: PathBuf,
}

/// Returns the folder of leases: [`FOLDER_VARIABLE`], or [`DEFAULT_FOLDER`].
pub fn folder() -> PathBuf {
    std::env::var_os(FOLDER_VARIABLE).map_or_else(|| PathBuf::from(DEFAULT_FOLDER), PathBuf::from)
}

impl Lease {
    /// Takes the lease of `device` (`cpu` for runs without one) in `folder`, waiting up to `patience`.
    /// `on_wait` is told once who holds it.
    ///
    /// # Errors
    /// Returns an error if the lock file can't be used, the lease stays held, or `cancel` is set meanwhile.
    pub fn take(
        folder: &Path,
        device: &str,
        patience: Duration,
        cancel: &AtomicBool,
        mut on_wait: impl FnMut(&str),
    ) -> Result<Self, LeaseError> {
        let path = folder.join(format!("{device}.lock"));
        let failed = |source| LeaseError::File { path: path.clone(), source };
        let mut file = open(folder, &path)?;
        let begun = Instant::now();
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => break,
                // What was locked isn't what others would have to lock.
                Ok(()) => file = open(folder, &path)?,
                Err(TryLockError::WouldBlock) => {
                    let holder = holder(&mut file);
                    if !told {
                        on_wait(&holder);
                        told = true;
                    }
                    if cancel.load(Ordering::Relaxed) {
                        return Err(LeaseError::Cancelled { path, holder });
                    }
                    if begun.elapsed() >= patience {
                        return Err(LeaseError::Held { path, holder, waited_s: begun.elapsed().as_secs() });
                    }
                    thread::sleep(STEP);
                    if !is_at(&file, &path) {
                        file = open(folder, &path)?;
                    }
                }
                Err(TryLockError::Error(source)) => return Err(failed(source)),
            }
        }
        let written = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| writeln!(file, "process {}", std::process::id()));
        written.map_err(failed)?;
        Ok(Self { file, path })
    }

    /// Returns whether the lease is still the one that others would have to take.
    ///
    /// A lock file that was removed or replaced meanwhile no longer keeps anybody out.
    pub fn is_held(&self) -> bool {
        is_at(&self.file, &self.path)
    }
}

/// Returns whether `path` itself is this very file.
fn is_at(file: &File, path: &Path) -> bool {
    let (Ok(held), Ok(there)) = (file.metadata(), fs::symlink_metadata(path)) else { return false };
    held.ino() == there.ino() && held.dev() == there.dev()
}

/// Opens the lock file, which is made if it is missing. Another user could have put anything in its place, so that it is
/// looked at before anything is done to it.
fn open(folder: &Path, path: &Path) -> Result<File, LeaseError> {
    make_folder(folder)?;
    let failed = |source| LeaseError::File { path: path.to_owned(), source };
    let untrusted = |reason| LeaseError::Untrusted { path: path.to_owned(), reason };
    // A pipe would block, and a link lead elsewhere.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY).bits());
    let flags = flags.expect("the flags of `open` fit its argument");
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o666).custom_flags(flags);
    for _ in 0..TRIES {
        // What is there is opened without the right to make it: the kernel refuses that for others' files.
        let file = match options.open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match options.clone().create_new(true).open(path) {
                    // Another run was faster.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    Err(error) => return Err(failed(error)),
                    Ok(file) => {
                        // The mask of the process may have taken the others' rights away; only the owner can give them back.
                        file.set_permissions(fs::Permissions::from_mode(0o666)).map_err(failed)?;
                        file
                    }
                }
            }
            Err(error) if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) => {
                return Err(untrusted("it is a symbolic link; remove it"));
            }
            Err(error) => return Err(failed(error)),
            Ok(file) => file,
        };
        let metadata = file.metadata().map_err(failed)?;
        match metadata.nlink() {
            _ if !metadata.is_file() => return Err(untrusted("it is no regular file; remove it")),
            // It was removed meanwhile.
            0 => {}
            1 => return Ok(file),
            _ => return Err(untrusted("it has further names, under which it may be somebody's file; remove it")),
        }
    }
    Err(untrusted("it is removed again and again by another program"))
}

/// Makes the folder of leases if it is missing, for every user of the machine, and checks that nobody can take another's
/// lease away in it.
fn make_folder(folder: &Path) -> Result<(), LeaseError> {
    let failed = |source| LeaseError::File { path: folder.to_owned(), source };
    let untrusted = |reason| LeaseError::Untrusted { path: folder.to_owned(), reason };
    if let Err(error) = fs::symlink_metadata(folder) {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(failed(error));
        }
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        match fs::DirBuilder::new().mode(0o1777).create(folder) {
            Ok(()) => fs::set_permissions(folder, fs::Permissions::from_mode(0o1777)).map_err(failed)?,
            // Another run was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
    let metadata = fs::symlink_metadata(folder).map_err(failed)?;
    let is_own = metadata.uid() == 0 || metadata.uid() == rustix::process::geteuid().as_raw();
    if !metadata.is_dir() {
        return Err(untrusted("its folder is no folder itself; remove it, or name another one"));
    }
    if metadata.mode() & STICKY == 0 && !is_own {
        return Err(untrusted("its folder belongs to another user, who may remove what is in it; name another one"));
    }
    Ok(())
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(100).read_to_string(&mut text));
    let text = text.trim();
    if text.is_empty() {
        return "another run".to_owned();
    }
    let process = text.strip_prefix("process ").and_then(|id| id.parse().ok());
    match process.and_then(process_table::command_line) {
        Some(command) => format!("{text}, `{command}`,"),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;

    #[test]
    fn a_device_is_held_by_one_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let cancel = AtomicBool::new(false);
        let first = Lease::take(folder.path(), "cpu", NOW, &cancel, |_| ()).unwrap();
        assert!(first.is_held());
        let mut holder = String::new();
        let second = Lease::take(folder.path(), "cpu", NOW, &cancel, |who| holder = who.to_owned());
        assert!(matches!(second, Err(LeaseError::Held { .. })), "{second:?}");
        let own = process_table::command_line(std::process::id()).unwrap();
        assert!(own.contains("isobench_runner"), "{own}");
        assert_eq!(holder, format!("process {}, `{own}`,", std::process::id()));
        Lease::take(folder.path(), "gpu0", NOW, &cancel, |_| ()).unwrap();
        drop(first);
        Lease::take(folder.path(), "cpu", NOW, &cancel, |_| ()).unwrap();
    }

    #[test]
    fn a_removed_lock_file_is_a_lost_lease() {
        let folder = tempfile::tempdir().unwrap();
        let lease = Lease::take(folder.path(), "cpu", NOW, &AtomicBool::new(false), |_| ()).unwrap();
        std::fs::remove_file(folder.path().join("cpu.lock")).unwrap();
        assert!(!lease.is_held());
    }

    #[test]
    fn waiting_can_be_cancelled() {
        let folder = tempfile::tempdir().unwrap();
        let _first = Lease::take(folder.path(), "cpu", NOW, &AtomicBool::new(false), |_| ()).unwrap();
        let second = Lease::take(folder.path(), "cpu", Duration::from_secs(60), &AtomicBool::new(true), |_| ());
        assert!(matches!(second, Err(LeaseError::Cancelled { .. })));
    }

    /// Lets `prepare` put something at the place of the lock file, and checks what is said of it. What stands there stays.
    fn refused(prepare: impl FnOnce(&Path), reason: &str) {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        fs::set_permissions(&victim, fs::Permissions::from_mode(0o600)).unwrap();
        prepare(folder.path());
        let error =
            Lease::take(&folder.path().join("leases"), "cpu", NOW, &AtomicBool::new(false), |_| ()).unwrap_err();
        assert!(matches!(error, LeaseError::Untrusted { .. }) && error.to_string().contains(reason), "{error}");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::metadata(&victim).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_trap_at_the_place_of_a_lease_is_refused_and_nothing_is_changed() {
        use std::os::unix::fs::symlink;
        let at = |folder: &Path| {
            fs::create_dir(folder.join("leases")).unwrap();
            folder.join("leases/cpu.lock")
        };
        refused(|folder| symlink(folder.join("victim"), at(folder)).unwrap(), "symbolic link");
        refused(|folder| symlink(folder.join("new"), at(folder)).unwrap(), "symbolic link");
        refused(|folder| fs::hard_link(folder.join("victim"), at(folder)).unwrap(), "further names");
        let pipe = |path: PathBuf| {
            use rustix::fs::{CWD, FileType, Mode, mknodat};
            mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
        };
        refused(|folder| pipe(at(folder)), "no regular file");
        refused(
            |folder| {
                fs::create_dir(folder.join("other")).unwrap();
                symlink(folder.join("other"), folder.join("leases")).unwrap();
            },
            "no folder itself",
        );
    }

    #[test]
    fn only_what_was_made_gets_the_rights_of_everybody() {
        let place = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o7777;
        let take = |folder: &Path| Lease::take(folder, "cpu", NOW, &AtomicBool::new(false), |_| ()).unwrap();
        let made = place.path().join("inner/leases");
        take(&made);
        assert_eq!((mode(&made), mode(&made.join("cpu.lock"))), (0o1777, 0o666));
        let own = place.path().join("own");
        fs::create_dir(&own).unwrap();
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(own.join("cpu.lock"), "").unwrap();
        fs::set_permissions(own.join("cpu.lock"), fs::Permissions::from_mode(0o600)).unwrap();
        take(&own);
        assert_eq!((mode(&own), mode(&own.join("cpu.lock"))), (0o700, 0o600));
    }

    #[test]
    fn a_lease_whose_file_is_replaced_while_it_is_awaited_is_taken_where_others_take_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("cpu.lock");
        let first = Lease::take(folder.path(), "cpu", NOW, &AtomicBool::new(false), |_| ()).unwrap();
        let replace = |_: &str| {
            fs::remove_file(&path).unwrap();
            fs::write(&path, "").unwrap();
        };
        let patience = Duration::from_secs(600);
        let second = Lease::take(folder.path(), "cpu", patience, &AtomicBool::new(false), replace).unwrap();
        assert!(second.is_held() && !first.is_held());
    }
}
