//! A file in a second place without a second copy of its bytes, where the file system can do that.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::Path;

/// Puts the file `from` at `to`, where nothing stands yet: as a clone with extents of its own once either is written, else as
/// a second name of the same bytes, else as a copy.
///
/// Only for what nobody writes in place. Whoever trusts the bytes compares digests: a second name lets one writer change both.
pub(super) fn share(from: &Path, to: &Path) -> io::Result<()> {
    if try_clone(from, to)? || fs::hard_link(from, to).is_ok() {
        return Ok(());
    }
    fs::copy(from, to).map(|_| ())
}

/// Returns whether the file could be cloned. Nothing is left at `to` if it couldn't.
fn try_clone(from: &Path, to: &Path) -> io::Result<bool> {
    let source = File::open(from)?;
    let target = OpenOptions::new().write(true).create_new(true).open(to)?;
    if rustix::fs::ioctl_ficlone(&target, &source).is_err() {
        fs::remove_file(to)?;
        return Ok(false);
    }
    target.set_permissions(source.metadata()?.permissions())?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_shared_file_has_the_bytes_and_the_mode_and_replaces_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        fs::write(&from, "content").unwrap();
        fs::set_permissions(&from, fs::Permissions::from_mode(0o750)).unwrap();
        share(&from, &to).unwrap();
        assert_eq!(fs::read_to_string(&to).unwrap(), "content");
        assert_eq!(to.metadata().unwrap().permissions().mode() & 0o777, 0o750);
        assert_eq!(share(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    }
}
