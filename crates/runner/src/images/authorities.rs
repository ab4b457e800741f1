//! Authorities that are trusted for one registry, beyond those of this machine: as Docker and Podman keep them, in `*.crt` files of
//! `certs.d/HOST:PORT`, or in a file that is named.

use std::io;
use std::path::{Path, PathBuf};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;

/// Where Docker and Podman look for folders of registries, as whoever runs the machine sets it up.
const FOLDERS: [&str; 2] = ["/etc/docker/certs.d", "/etc/containers/certs.d"];
/// The same below a user's folder of settings.
const USER_FOLDERS: [&str; 2] = ["docker/certs.d", "containers/certs.d"];

/// Why a file of authorities can't be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthoritiesError {
    /// It can't be read.
    #[error("failed to read the authorities in `{path}`")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It holds none.
    #[error("`{path}` holds no certificate of an authority in the form of PEM")]
    None {
        /// The file.
        path: PathBuf,
    },
}

/// Certificates of authorities.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Authorities(Vec<CertificateDer<'static>>);

impl Authorities {
    /// Reads those that Docker and Podman would trust for a registry, which is named `HOST` or `HOST:PORT`.
    ///
    /// # Errors
    /// Returns an error if a file of them can't be used.
    pub fn of(registry: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, AuthoritiesError> {
        let mut found = Self::default();
        if registry.contains('/') || registry.starts_with('.') {
            return Ok(found);
        }
        let given = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let user = given("XDG_CONFIG_HOME").or_else(|| given("HOME").map(|home| home.join(".config")));
        let of_user = user.iter().flat_map(|user| USER_FOLDERS.iter().map(|folder| user.join(folder)));
        for folder in FOLDERS.iter().map(PathBuf::from).chain(of_user) {
            found.add_folder(&folder.join(registry))?;
        }
        Ok(found)
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), AuthoritiesError> {
        let entries = match std::fs::read_dir(folder) {
            Ok(entries) => entries,
            // What this user may not see isn't meant for this user.
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => {
                return Ok(());
            }
            Err(source) => return Err(AuthoritiesError::Read { path: folder.to_owned(), source }),
        };
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| AuthoritiesError::Read { path: folder.to_owned(), source })?;
            files.push(entry.path());
        }
        files.sort();
        for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "crt")) {
            self.add_file(file)?;
        }
        Ok(())
    }

    /// Adds those of a file.
    ///
    /// # Errors
    /// Returns an error if it can't be read or holds none.
    pub fn add_file(&mut self, file: &Path) -> Result<(), AuthoritiesError> {
        let path = || file.to_owned();
        let bytes = std::fs::read(file).map_err(|source| AuthoritiesError::Read { path: path(), source })?;
        let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
        // What the parser says of it isn't more than that.
        let found =
            found.ok().filter(|found| !found.is_empty()).ok_or_else(|| AuthoritiesError::None { path: path() })?;
        self.0.extend(found);
        Ok(())
    }

    pub(super) fn certificates(&self) -> &[CertificateDer<'static>] {
        &self.0
    }
}
