//! Small images: real manifests, configurations and layers of a few bytes.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Held;

/// The kind of a manifest of one image.
const IMAGE: &str = "application/vnd.oci.image.manifest.v1+json";
/// The kind of a list of them.
const LIST: &str = "application/vnd.oci.image.index.v1+json";
/// The kind of a configuration.
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
/// The kind of a layer.
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";

/// The bytes of a layer.
pub type Layer = Vec<u8>;

/// An image of which all bytes are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FakeImage {
    platform: String,
    config: Vec<u8>,
    layers: Vec<Layer>,
    manifest: Vec<u8>,
}

/// Returns a digest as registries write it.
pub(super) fn digest(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(bytes) {
        write!(text, "{byte:02x}").expect("a String takes every write");
    }
    text
}

impl FakeImage {
    /// Returns an image of these layers for `linux/amd64`.
    pub fn new(layers: &[&[u8]]) -> Self {
        Self::of("linux/amd64", None, layers)
    }

    /// Returns an image for a platform, with the revision that its label claims.
    pub fn of(platform: &str, revision: Option<&str>, layers: &[&[u8]]) -> Self {
        let (os, architecture) = platform.split_once('/').unwrap_or((platform, ""));
        let layers: Vec<Layer> = layers.iter().map(|layer| layer.to_vec()).collect();
        let ids: Vec<String> = layers.iter().map(|layer| digest(layer)).collect();
        let labels = revision.map(|revision| json!({ "org.opencontainers.image.revision": revision }));
        let config = json!({
            "architecture": architecture,
            "os": os,
            "created": "2026-01-02T03:04:05Z",
            "config": { "Labels": labels },
            "rootfs": { "type": "layers", "diff_ids": ids },
        });
        let config = config.to_string().into_bytes();
        let part =
            |kind: &str, bytes: &[u8]| json!({ "mediaType": kind, "digest": digest(bytes), "size": bytes.len() });
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": IMAGE,
            "config": part(CONFIG, &config),
            "layers": layers.iter().map(|layer| part(LAYER, layer)).collect::<Vec<_>>(),
        });
        let manifest = manifest.to_string().into_bytes();
        Self { platform: platform.to_owned(), config, layers, manifest }
    }

    /// Returns the digest of its manifest.
    pub fn digest(&self) -> String {
        digest(&self.manifest)
    }

    /// Returns its manifest.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// Returns its configuration and its layers.
    pub fn blobs(&self) -> impl Iterator<Item = &[u8]> {
        std::iter::once(self.config.as_slice()).chain(self.layers.iter().map(Vec::as_slice))
    }

    /// Returns what must be fetched of it, in bytes.
    pub fn bytes(&self) -> usize {
        self.blobs().map(<[u8]>::len).sum()
    }

    /// Returns the digest of a layer, counted from the lowest.
    pub fn layer_digest(&self, place: usize) -> Option<String> {
        self.layers.get(place).map(|layer| digest(layer))
    }

    pub(super) fn put_into(&self, held: &mut Held) {
        held.manifests.insert(self.digest(), (IMAGE.to_owned(), self.manifest.clone()));
        for blob in self.blobs() {
            held.blobs.insert(digest(blob), blob.to_vec());
        }
    }
}

/// Returns digest, kind and bytes of a list of images, with an attestation beside them as build tools leave it.
pub(super) fn list_of(images: &[FakeImage]) -> (String, String, Vec<u8>) {
    let entry = |image: &FakeImage| {
        let (os, architecture) = image.platform.split_once('/').unwrap_or((&image.platform, ""));
        json!({
            "mediaType": IMAGE,
            "digest": image.digest(),
            "size": image.manifest.len(),
            "platform": { "os": os, "architecture": architecture },
        })
    };
    let mut entries: Vec<_> = images.iter().map(entry).collect();
    entries.push(json!({
        "mediaType": IMAGE,
        "digest": digest(b"an attestation"),
        "size": 14,
        "platform": { "os": "unknown", "architecture": "unknown" },
    }));
    let bytes = json!({ "schemaVersion": 2, "mediaType": LIST, "manifests": entries }).to_string().into_bytes();
    (digest(&bytes), LIST.to_owned(), bytes)
}
