//! A package of an image, copied to a place of this machine: what an image holds is a stranger's, down to its archive.

use std::fs::File;
use std::path::{Component, Path, PathBuf};

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use tar::{Archive, EntryType};

use super::image::{asking, refused};
use super::remove::{discard, remove_tree};
use super::{EnvironmentError, PrepareContext, Stop};
use crate::container::{Daemon, ask};

/// Copies a folder of an image to a place of this machine: files, folders and links, and nothing else.
pub(super) fn copy_out((image, place): (&str, &str), copy: &Path, context: &PrepareContext<'_>) -> Result<(), Stop> {
    let Some(name) = name_of(Path::new(place)) else {
        return Err(unsafe_tree("the image says that its package is at no plain path", place).into());
    };
    let archive = context.scratch.join("package.tar");
    let asking = asking(context);
    let copied = ask(async { Daemon::connect().await?.copy_out_of_image((image, place), &archive, asking).await });
    copied.map_err(|error| refused(&error))?;
    let parent = copy.parent().unwrap_or(copy);
    let unpacked = parent.with_extension("unpacked");
    discard(&unpacked)?;
    std::fs::create_dir_all(&unpacked).map_err(EnvironmentError::write(&unpacked))?;
    let done = unpack(&archive, &unpacked, context).and_then(|()| {
        std::fs::create_dir_all(parent).map_err(EnvironmentError::write(parent))?;
        std::fs::rename(unpacked.join(name), copy).map_err(EnvironmentError::write(copy))?;
        Ok(())
    });
    // Also where it went wrong: what was unpacked by then takes room, and is nobody's.
    let removed = remove_tree(&unpacked).and_then(|()| std::fs::remove_file(&archive));
    done?;
    removed.map_err(EnvironmentError::write(&unpacked))?;
    Ok(())
}

/// Returns the name of a folder that an absolute path leads to without a detour.
fn name_of(place: &Path) -> Option<PathBuf> {
    let is_plain = place.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    place.file_name().filter(|_| is_plain && place.is_absolute()).map(PathBuf::from)
}

/// Unpacks an archive into a folder. Nothing comes to lie outside of it, and nothing in it gets rights beyond this user's.
fn unpack(archive: &Path, folder: &Path, context: &PrepareContext<'_>) -> Result<(), Stop> {
    let file = File::open(archive).map_err(EnvironmentError::read(archive))?;
    let mut archived = Archive::new(std::io::BufReader::new(file));
    archived.set_preserve_permissions(false);
    archived.set_preserve_ownerships(false);
    archived.set_unpack_xattrs(false);
    for entry in archived.entries().map_err(EnvironmentError::read(archive))? {
        context.check_cancelled()?;
        let mut entry = entry.map_err(EnvironmentError::read(archive))?;
        let path = entry.path().map_err(EnvironmentError::read(archive))?.into_owned();
        let shown = path.to_string_lossy().into_owned();
        let kind = entry.header().entry_type();
        let is_plain = [EntryType::Regular, EntryType::Directory, EntryType::Symlink, EntryType::Link].contains(&kind);
        if !is_plain {
            let message = "the image's package holds what is neither a file, a folder nor a link";
            return Err(unsafe_tree(message, &shown).into());
        }
        let is_inside = entry.unpack_in(folder).map_err(EnvironmentError::write(&folder.join(&path)))?;
        if !is_inside {
            return Err(unsafe_tree("the archive of the image's package leads out of it", &shown).into());
        }
    }
    Ok(())
}

fn unsafe_tree(message: &str, what: &str) -> Failure {
    let line = EvidenceLine::new("image", None, what);
    Failure::new(FailureStage::Acquire, FailureClass::TreeUnsafe, message).with_evidence([line])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::environment::fixture::Place;

    #[test]
    fn an_archive_with_devices_or_paths_that_lead_out_is_refused_and_makes_none_of_them() {
        for (kind, path) in [
            (EntryType::Block, "package/dev.so"),
            (EntryType::Char, "package/tty"),
            (EntryType::Fifo, "package/pipe"),
            (EntryType::Regular, "package/../../outside"),
        ] {
            let place = Place::new();
            let (archive, folder) = (place.path("package.tar"), place.path("unpacked"));
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.set_size(0);
            header.set_mode(0o666);
            // The library's own setter refuses what a stranger's archive may hold.
            header.as_gnu_mut().unwrap().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            let mut made = tar::Builder::new(File::create(&archive).unwrap());
            made.append(&header, std::io::empty()).unwrap();
            made.finish().unwrap();
            std::fs::create_dir(&folder).unwrap();
            let Err(Stop::Failed(failure)) = unpack(&archive, &folder, &place.context()) else {
                panic!("{kind:?} was taken")
            };
            assert_eq!(failure.class, FailureClass::TreeUnsafe, "{failure:?}");
            assert!(!folder.join(path).exists() && !place.path("outside").exists());
        }
    }

    #[test]
    fn only_plain_paths_are_packages() {
        for (place, name) in [
            ("/usr/lib/python3/dist-packages/vllm", Some("vllm")),
            ("/etc/..", None),
            ("/a/../b", None),
            ("/", None),
            ("a/b", None),
        ] {
            assert_eq!(name_of(Path::new(place)), name.map(PathBuf::from), "{place}");
        }
    }
}
