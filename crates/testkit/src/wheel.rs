//! Wheels for tests, sound ones and others.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use crate::archive::{ZipEntry, zip};

/// A wheel under construction.
#[derive(Debug, Clone)]
pub struct FakeWheel {
    /// Its distribution, as file names spell it.
    pub distribution: String,
    /// Its version.
    pub version: String,
    /// Its tag, such as `py3-none-any`.
    pub tag: String,
    files: Vec<(String, Vec<u8>)>,
}

impl FakeWheel {
    /// Returns a wheel without any file but its metadata.
    pub fn new(distribution: &str, version: &str, tag: &str) -> Self {
        let [distribution, version, tag] = [distribution, version, tag].map(str::to_owned);
        Self { distribution, version, tag, files: Vec::new() }
    }

    /// Adds a file.
    #[must_use]
    pub fn with(mut self, path: &str, bytes: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.to_owned(), bytes.into()));
        self
    }

    /// Returns the name of its file.
    pub fn file_name(&self) -> String {
        format!("{}-{}-{}.whl", self.distribution, self.version, self.tag)
    }

    /// Returns the name of its folder of metadata.
    pub fn dist_info(&self) -> String {
        format!("{}-{}.dist-info", self.distribution, self.version)
    }

    /// Returns its entries, with its metadata and the list of its files.
    pub fn entries(&self) -> Vec<ZipEntry> {
        let folder = self.dist_info();
        let metadata = format!("Metadata-Version: 2.1\nName: {}\nVersion: {}\n", self.distribution, self.version);
        let wheel = format!("Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: {}\n", self.tag);
        let mut files = self.files.clone();
        files.push((format!("{folder}/METADATA"), metadata.into_bytes()));
        files.push((format!("{folder}/WHEEL"), wheel.into_bytes()));
        let line = |(path, bytes): &(String, Vec<u8>)| {
            let hash = URL_SAFE_NO_PAD.encode(Sha256::digest(bytes));
            format!("{path},sha256={hash},{}\n", bytes.len())
        };
        let record = files.iter().map(line).collect::<String>() + &format!("{folder}/RECORD,,\n");
        files.push((format!("{folder}/RECORD"), record.into_bytes()));
        files.into_iter().map(|(path, bytes)| ZipEntry::new(path, bytes)).collect()
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> Vec<u8> {
        zip(&self.entries())
    }
}
