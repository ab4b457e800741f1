//! The lease of a device: held for a block, so that two runs never measure on the same device at once.
//!
//! A lease is a lock on a file that every run of the machine uses. The kernel frees it when its holder dies, in whatever
//! way.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Where leases are kept unless it is said otherwise: one place for all users of the machine.
pub const DEFAULT_FOLDER: &str = "/tmp/isobench-leases";
/// The variable that names another folder.
pub const FOLDER_VARIABLE: &str = "ISOBENCH_LEASES";
/// How often a lease that is held by another is tried again.
const STEP: Duration = Duration::from_millis(100);

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
        let mut file = open(folder, &path).map_err(failed)?;
        let begun = Instant::now();
        let mut told = false;
        loop {
            match file.try_lock() {
                Ok(()) => break,
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
        use std::os::unix::fs::MetadataExt as _;
        let (Ok(held), Ok(there)) = (self.file.metadata(), std::fs::metadata(&self.path)) else { return false };
        held.ino() == there.ino() && held.dev() == there.dev()
    }
}

fn open(folder: &Path, path: &Path) -> io::Result<File> {
    if !folder.is_dir() {
        std::fs::create_dir_all(folder)?;
        // Every user of the machine takes the same leases, and nobody may remove another's.
        std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o1777))?;
    }
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o666).open(path)?;
    // The mask of the process may have taken the others' rights away; only the owner can give them back.
    let _ = file.set_permissions(std::fs::Permissions::from_mode(0o666));
    Ok(file)
}

fn holder(file: &mut File) -> String {
    let mut text = String::new();
    let _ = file.seek(SeekFrom::Start(0)).and_then(|_| file.take(100).read_to_string(&mut text));
    let text = text.trim();
    if text.is_empty() { "another run".to_owned() } else { text.to_owned() }
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
        assert_eq!(holder, format!("process {}", std::process::id()));
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
}
