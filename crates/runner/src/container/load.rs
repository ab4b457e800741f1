//! Images of a folder, loaded into a daemon: as one archive, which is written while the daemon reads it.
//!
//! The archive is laid out both as OCI and as Docker's `save` do, so that daemons of either kind read it. What the daemon has then
//! is found by its id, which is a digest of the image: nothing is believed for its name.

use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bollard::query_parameters::ImportImageOptions;
use futures_util::{StreamExt as _, stream};
use isobench_schema::ids::ImageDigest;
use serde_json::json;
use tokio::sync::mpsc;

use super::{ContainerError, Daemon, NoRoom};
use crate::images::{Layout, RegistryError, StoredImage, Target};

/// How long a daemon may take over an image, in all.
const LONGEST: Duration = Duration::from_secs(6 * 3600);
/// How often it is looked whether the load is to go on.
const STEP: Duration = Duration::from_millis(200);
/// How much of the archive is sent at once, in bytes.
const CHUNK: usize = 1 << 20;
/// How many such pieces may wait for the daemon.
const WAITING: usize = 4;
/// The moment of all files of the archive, as exported trees have it.
const MOMENT: u64 = 315_532_800;

/// An image of a folder.
#[derive(Debug, Clone, Copy)]
pub struct ImageSource<'a> {
    /// The folder.
    pub layout: &'a Layout,
    /// The tag or digest that it has there.
    pub target: &'a Target,
}

/// What a load is watched with.
pub struct LoadWatch<'a> {
    /// Set from elsewhere to give up.
    pub cancel: &'a AtomicBool,
    /// The room that is left on the daemon's disk, in bytes.
    pub floor_bytes: u64,
    /// Told how many bytes of how many the daemon has taken.
    pub progress: &'a dyn Fn(u64, u64),
}

/// Why an image wasn't loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadImageError {
    /// The folder doesn't have it.
    #[error(transparent)]
    Folder(#[from] RegistryError),
    /// The daemon can't.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// The daemon's disk has too little room.
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    /// The daemon took it, and doesn't have it.
    #[error("the daemon took the image `{digest}`, and has no image of its id afterwards")]
    NotThere {
        /// The digest of its manifest.
        digest: String,
    },
    /// Somebody gave up.
    #[error("loading the image was interrupted")]
    Cancelled,
}

impl Daemon {
    /// Returns the id by which the daemon has an image; none if it hasn't.
    ///
    /// # Errors
    /// Returns an error if the daemon refuses or doesn't answer.
    pub(crate) async fn id_of(&self, image: &StoredImage) -> Result<Option<String>, ContainerError> {
        // Newer stores of daemons name images by their manifests.
        for digest in [&image.manifest.config.digest, &image.fetched.digest] {
            match self.image(digest.as_str()).await {
                Ok((found, _)) if found.id == digest.as_str() => return Ok(Some(found.id)),
                Ok(_) => {}
                Err(error) if error.is_not_found() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Loads an image of a folder, unless the daemon has it; returns its id, and whether it was there. It has no name then but
    /// those that the daemon has for it already.
    ///
    /// # Errors
    /// Returns an error if the folder doesn't hold it whole, the daemon can't take it, or its disk has too little room.
    pub async fn load_image(
        &self,
        source: ImageSource<'_>,
        watch: &LoadWatch<'_>,
    ) -> Result<(String, bool), LoadImageError> {
        let image = Arc::new(source.layout.stored(source.target)?);
        if let Some(id) = self.id_of(&image).await? {
            return Ok((id, true));
        }
        let disk = self.disk().await?;
        let room = |needed: u64| disk.check(needed, watch.floor_bytes);
        // The daemon keeps the archive until it has unpacked the layers, which take more than that.
        room(image.bytes().saturating_mul(2))?;
        let whole = image.bytes();
        let (sender, receiver) = mpsc::channel(WAITING);
        let (layout, written) = (source.layout.clone(), Arc::clone(&image));
        // Nobody waits for it: it ends when the archive is whole, or when whoever reads it is gone.
        let writer = thread::Builder::new().name("image-archive".to_owned()).spawn(move || {
            // Who reads it sees an end that comes too early, and says so.
            if let Err(error) = write_archive(&layout, &written, Pieces::new(&sender)) {
                let _ = sender.blocking_send(Err(error));
            }
        });
        writer.map_err(|source| ContainerError::Thread { source })?;
        self.take_in(receiver, (whole, &room), watch).await?;
        let digest = image.fetched.digest.to_string();
        let id = self.id_of(&image).await?.ok_or(LoadImageError::NotThere { digest })?;
        Ok((id, false))
    }

    /// Sends the archive, and waits until the daemon has taken it in.
    async fn take_in(
        &self,
        receiver: mpsc::Receiver<io::Result<Vec<u8>>>,
        (whole, room): (u64, &dyn Fn(u64) -> Result<(), NoRoom>),
        watch: &LoadWatch<'_>,
    ) -> Result<(), LoadImageError> {
        let what = "load an image";
        let sent = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&sent);
        let pieces =
            stream::unfold(
                receiver,
                |mut receiver| async move { receiver.recv().await.map(|piece| (piece, receiver)) },
            );
        let pieces = pieces.map(move |piece| {
            let length = piece.as_ref().map_or(0, Vec::len);
            counted.fetch_add(u64::try_from(length).unwrap_or(0), Ordering::Relaxed);
            piece.map(Into::into)
        });
        let docker = self.docker.clone().with_timeout(LONGEST);
        let options = ImportImageOptions::default();
        let steps = docker.import_image(options, bollard::body_try_stream(pieces), None);
        tokio::pin!(steps);
        let begun = Instant::now();
        loop {
            match tokio::time::timeout(STEP, steps.next()).await {
                Ok(None) => return Ok(()),
                Ok(Some(step)) => {
                    let step = step.map_err(refused)?;
                    if let Some(message) = step.error_detail.and_then(|detail| detail.message) {
                        return Err(ContainerError::Refused { what: what.to_owned(), status: 500, message }.into());
                    }
                }
                Err(_elapsed) => {}
            }
            (watch.progress)(sent.load(Ordering::Relaxed).min(whole), whole);
            if watch.cancel.load(Ordering::Relaxed) {
                return Err(LoadImageError::Cancelled);
            }
            room(0)?;
            if begun.elapsed() > LONGEST {
                let late = ContainerError::TooLate { what: what.to_owned(), seconds: LONGEST.as_secs() };
                return Err(late.into());
            }
        }
    }
}

/// What the daemon says in the midst of its answer is a refusal, too.
fn refused(error: bollard::errors::Error) -> ContainerError {
    let what = "load an image";
    if let bollard::errors::Error::DockerStreamError { error: message } = error {
        return ContainerError::Refused { what: what.to_owned(), status: 500, message };
    }
    ContainerError::asked(what)(error)
}

/// Cuts what is written into pieces for the daemon.
struct Pieces<'a> {
    sender: &'a mpsc::Sender<io::Result<Vec<u8>>>,
    piece: Vec<u8>,
}

impl<'a> Pieces<'a> {
    fn new(sender: &'a mpsc::Sender<io::Result<Vec<u8>>>) -> Self {
        Self { sender, piece: Vec::with_capacity(CHUNK) }
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.piece.extend_from_slice(bytes);
        if self.piece.len() >= CHUNK {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(CHUNK));
        if piece.is_empty() {
            return Ok(());
        }
        let sent = self.sender.blocking_send(Ok(piece));
        sent.map_err(|_gone| io::Error::new(io::ErrorKind::BrokenPipe, "the daemon reads no more"))
    }
}

/// Writes an image as an archive: as OCI lays it out, with the list that Docker's `save` leaves beside.
fn write_archive(layout: &Layout, image: &StoredImage, into: impl Write) -> io::Result<()> {
    let mut archive = tar::Builder::new(into);
    let path = |digest: &ImageDigest| format!("blobs/sha256/{}", digest.hex());
    let index = json!({
        "schemaVersion": 2,
        "manifests": [{
            "mediaType": image.fetched.content_type,
            "digest": image.fetched.digest.as_str(),
            "size": image.fetched.bytes.len(),
        }],
    });
    let layers: Vec<String> = image.manifest.layers.iter().map(|layer| path(&layer.digest)).collect();
    let list = json!([{ "Config": path(&image.manifest.config.digest), "RepoTags": null, "Layers": layers }]);
    let files = [
        ("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
        ("index.json".to_owned(), index.to_string().into_bytes()),
        ("manifest.json".to_owned(), list.to_string().into_bytes()),
        (path(&image.fetched.digest), image.fetched.bytes.clone()),
    ];
    for (name, bytes) in files {
        let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        archive.append_data(&mut header(length), name, bytes.as_slice())?;
    }
    for part in image.parts() {
        let file = File::open(layout.blob_path(&part.digest))?;
        archive.append_data(&mut header(part.bytes), path(&part.digest), io::Read::take(file, part.bytes))?;
    }
    archive.into_inner()?.flush()
}

fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(size);
    header.set_mtime(MOMENT);
    header
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn the_archive_is_what_both_kinds_of_daemons_read() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::create(folder.path()).unwrap();
        let blobs: BTreeMap<ImageDigest, &[u8]> =
            [&b"config"[..], b"lower", b"upper"].into_iter().map(|bytes| (ImageDigest::of(bytes), bytes)).collect();
        for (digest, bytes) in &blobs {
            std::fs::write(layout.blob_path(digest), bytes).unwrap();
        }
        let part =
            |bytes: &[u8]| json!({ "mediaType": "x", "digest": ImageDigest::of(bytes).as_str(), "size": bytes.len() });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": part(b"config"),
            // Two layers that are one and the same.
            "layers": [part(b"lower"), part(b"upper"), part(b"lower")],
        });
        let bytes = manifest.to_string().into_bytes();
        let digest = ImageDigest::of(&bytes);
        std::fs::write(layout.blob_path(&digest), &bytes).unwrap();
        let index = json!({ "schemaVersion": 2, "manifests": [{ "digest": digest.as_str(), "size": bytes.len() }] });
        std::fs::write(folder.path().join("index.json"), index.to_string()).unwrap();
        let image = layout.stored(&Target::Digest(digest.clone())).unwrap();
        assert_eq!(image.bytes(), 16);

        let mut archive = Vec::new();
        write_archive(&layout, &image, &mut archive).unwrap();
        let mut found = BTreeMap::new();
        for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
            let mut entry = entry.unwrap();
            let mut bytes = Vec::new();
            io::copy(&mut entry, &mut bytes).unwrap();
            assert!(found.insert(entry.path().unwrap().to_string_lossy().into_owned(), bytes).is_none());
        }
        assert_eq!(found.len(), 7, "{:?}", found.keys());
        let list: serde_json::Value = serde_json::from_slice(&found["manifest.json"]).unwrap();
        let layers: Vec<&[u8]> =
            list[0]["Layers"].as_array().unwrap().iter().map(|path| &found[path.as_str().unwrap()][..]).collect();
        assert_eq!(layers, [&b"lower"[..], b"upper", b"lower"]);
        assert_eq!(found[list[0]["Config"].as_str().unwrap()], b"config");
        let index: serde_json::Value = serde_json::from_slice(&found["index.json"]).unwrap();
        assert_eq!(index["manifests"][0]["digest"], digest.as_str());

        std::fs::write(layout.blob_path(&ImageDigest::of(b"upper")), "UPPER").unwrap();
        let error = layout.stored(&Target::Digest(digest)).unwrap_err();
        assert!(error.to_string().contains("isn't what its name says"), "{error}");
    }
}
