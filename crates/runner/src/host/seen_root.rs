//! The files as a process sees them: this machine's own, or those of a container, looked at from outside.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};

use isobench_schema::ids::Digest;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

use crate::inputs::of_file;

/// The root folder of a process. Links are followed within it, also absolute ones.
#[derive(Debug)]
pub enum SeenRoot {
    /// This machine's own.
    Own,
    /// That of a container.
    Container(OwnedFd),
}

impl SeenRoot {
    /// Returns the root folder of a process in a container.
    ///
    /// # Errors
    /// Returns the operating system's error: the process is gone, or this one may not look at it.
    pub fn of_container(process: u32) -> io::Result<Self> {
        let path = format!("/proc/{process}/root");
        // The root of a process is a link that leads into its own file system, not by a name of this one's.
        let folder = openat2(CWD, path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty(), ResolveFlags::empty())?;
        Ok(Self::Container(folder))
    }

    /// Returns where a path leads, with every link resolved, as a path of that root; `None` if nothing is there.
    pub fn resolve(&self, path: &Path) -> Option<PathBuf> {
        match self {
            Self::Own => fs::canonicalize(path).ok(),
            Self::Container(_) => fs::read_link(self.handle(path)?.1).ok(),
        }
    }

    /// Returns the digest of a regular file.
    pub fn digest(&self, path: &Path) -> Option<Digest> {
        match self {
            Self::Own => of_file(path).ok(),
            Self::Container(_) => {
                let (_open, handle) = self.handle(path)?;
                // Whatever else a container has made there, a pipe for instance, isn't read.
                fs::metadata(&handle).ok().filter(fs::Metadata::is_file)?;
                of_file(&handle).ok()
            }
        }
    }

    /// Returns the first bytes of a regular file, up to `most`.
    pub fn beginning(&self, path: &Path, most: u64) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        let (_open, place) = match self {
            Self::Own => (None, path.to_owned()),
            Self::Container(_) => self.handle(path).map(|(open, place)| (Some(open), place))?,
        };
        fs::metadata(&place).ok().filter(fs::Metadata::is_file)?;
        File::open(place).ok()?.take(most).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// Returns a handle of what a path leads to within a container, and the name under which this process can open it.
    fn handle(&self, path: &Path) -> Option<(OwnedFd, PathBuf)> {
        let Self::Container(root) = self else { return None };
        let inside = path.strip_prefix("/").unwrap_or(path);
        let inside = if inside.as_os_str().is_empty() { Path::new(".") } else { inside };
        let handle = openat2(root, inside, OFlags::PATH, Mode::empty(), ResolveFlags::IN_ROOT).ok()?;
        let name = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        Some((handle, name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_lead_nowhere_out_of_the_root_of_a_container() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("etc")).unwrap();
        fs::write(root.join("etc/hostname"), "inside").unwrap();
        symlink("/etc/hostname", root.join("absolute")).unwrap();
        symlink("../../../../etc/hostname", root.join("relative")).unwrap();
        let open = openat2(CWD, &root, OFlags::PATH | OFlags::DIRECTORY, Mode::empty(), ResolveFlags::empty());
        let seen = SeenRoot::Container(open.unwrap());
        for name in ["/absolute", "/relative", "/etc/hostname"] {
            assert_eq!(seen.beginning(Path::new(name), 100).unwrap(), b"inside", "{name}");
            assert_eq!(seen.digest(Path::new(name)), Some(Digest::of(b"inside")));
            assert_eq!(seen.resolve(Path::new(name)), Some(root.join("etc/hostname")));
        }
        assert_eq!(seen.digest(Path::new("/etc")), None, "a folder has none");
        assert_eq!(seen.resolve(Path::new("/none")), None);
    }
}
