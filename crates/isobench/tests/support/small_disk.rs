//! A small file system in memory, to see what a full disk loses.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One that is unmounted when the test is over.
pub(crate) struct SmallDisk(PathBuf);

impl SmallDisk {
    /// Returns `None`, with the reason printed, if this user can't mount one. The size is as `mount` takes it, such as `4m`.
    pub(crate) fn mount(path: &Path, size: &str) -> Option<Self> {
        fs::create_dir(path).unwrap();
        let options = format!("size={size}");
        let output = Command::new("mount").args(["-t", "tmpfs", "-o", &options, "none"]).arg(path).output();
        match output {
            Ok(output) if output.status.success() => Some(Self(path.to_owned())),
            Ok(output) => {
                println!("skipped: no small disk can be mounted: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                println!("skipped: mount can't be started: {error}");
                None
            }
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn grow(&self, size: &str) {
        let options = format!("remount,size={size}");
        assert!(Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily, because the test may have failed while something still looks at it.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
