//! The `config.json` of models that are in the hub's cache on this machine. The network is never asked.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The largest config that is read: published ones have a few kilobytes.
const LARGEST_BYTES: u64 = 4 << 20;

/// The longest name of a model or of a revision in the cache.
const LONGEST_NAME: usize = 200;

/// Why a model's config that is there can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadConfigError {
    /// It can't be read.
    #[error("failed to read `{path}`")]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is larger than any config is.
    #[error("`{path}` has more than {LARGEST_BYTES} bytes, too many for a model's config")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It isn't JSON.
    #[error("`{path}` is not JSON; download the model's config.json again")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// It is JSON, but no object.
    #[error("`{path}` is no JSON object; download the model's config.json again")]
    NoObject {
        /// The file.
        path: PathBuf,
    },
}

/// Returns the folder in which the hub's library keeps models: `$HF_HUB_CACHE`, `$HF_HOME/hub`, or
/// `~/.cache/huggingface/hub`, the first that is set.
///
/// `variable` gives the value of an environment variable.
pub fn hub_cache(variable: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("HF_HUB_CACHE")
        .or_else(|| set("HF_HOME").map(|home| home.join("hub")))
        .or_else(|| set("XDG_CACHE_HOME").map(|cache| cache.join("huggingface/hub")))
        .or_else(|| set("HOME").map(|home| home.join(".cache/huggingface/hub")))
}

/// Returns the config of a model, or `None` if this machine has none.
///
/// A model is a name on the hub, which is looked up in `cache`. A path is none: whoever names one could have any file of
/// this machine read.
///
/// `folders` are looked at first: each holds models as the hub names them, `ORG/NAME/config.json`.
///
/// # Errors
/// Returns what is wrong with a config that is there.
pub fn model_config(model: &str, folders: &[PathBuf], cache: Option<&Path>) -> Result<Option<Value>, ReadConfigError> {
    if !is_well_named(model) {
        return Ok(None);
    }
    let local = folders.iter().map(|folder| folder.join(model).join("config.json")).find(|path| path.exists());
    let path = local.or_else(|| cache.and_then(|cache| cached(model, cache)));
    path.map_or(Ok(None), |path| read(&path))
}

/// Returns whether a text can be a model's name on the hub: two parts at most, none of which leads anywhere else.
///
/// The oldest models have no slash; `--` would be taken for one in the cache.
fn is_well_named(model: &str) -> bool {
    model.len() <= LONGEST_NAME
        && !model.contains("--")
        && model.split('/').count() <= 2
        && model.split('/').all(is_part)
}

fn is_part(part: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    !part.is_empty() && !part.starts_with('.') && part.bytes().all(plain)
}

/// Returns the config's file in the snapshot that the cache's branch `main` points at.
fn cached(model: &str, cache: &Path) -> Option<PathBuf> {
    let folder = cache.join(format!("models--{}", model.replace('/', "--")));
    let mut revision = String::new();
    let file = File::open(folder.join("refs/main")).ok()?;
    file.take(LONGEST_NAME as u64).read_to_string(&mut revision).ok()?;
    let revision = revision.trim();
    is_part(revision).then(|| folder.join("snapshots").join(revision).join("config.json"))
}

fn read(path: &Path) -> Result<Option<Value>, ReadConfigError> {
    let path_buf = || path.to_owned();
    let failed = |source| ReadConfigError::Read { path: path_buf(), source };
    // Only a regular file is opened, so that no pipe is waited for.
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(failed(error)),
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(LARGEST_BYTES + 1).read_to_end(&mut bytes)).map_err(failed)?;
    if bytes.len() as u64 > LARGEST_BYTES {
        return Err(ReadConfigError::TooLarge { path: path_buf() });
    }
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|source| ReadConfigError::Malformed { path: path_buf(), source })?;
    if value.is_object() { Ok(Some(value)) } else { Err(ReadConfigError::NoObject { path: path_buf() }) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    /// Writes a hub's cache that holds one model.
    fn cache_with(config: &[u8]) -> tempfile::TempDir {
        let cache = tempfile::tempdir().unwrap();
        let folder = cache.path().join("models--org--model");
        fs::create_dir_all(folder.join("refs")).unwrap();
        fs::create_dir_all(folder.join("snapshots/abc123")).unwrap();
        fs::write(folder.join("refs/main"), "abc123\n").unwrap();
        fs::write(folder.join("snapshots/abc123/config.json"), config).unwrap();
        cache
    }

    #[test]
    fn a_folder_of_models_comes_before_the_cache() {
        let cache = cache_with(br#"{"model_type": "llama"}"#);
        let folder = tempfile::tempdir().unwrap();
        let model = folder.path().join("org/model");
        fs::create_dir_all(&model).unwrap();
        fs::write(model.join("config.json"), br#"{"model_type": "own"}"#).unwrap();
        let found = model_config("org/model", &[folder.path().to_owned()], Some(cache.path())).unwrap().unwrap();
        assert_eq!(found["model_type"], "own");
        assert_eq!(model_config("../model", &[model], None).unwrap(), None);
    }

    #[test]
    fn a_config_is_found_in_the_cache_and_never_by_a_path() {
        let cache = cache_with(br#"{"model_type": "llama"}"#);
        let found = model_config("org/model", &[], Some(cache.path())).unwrap().unwrap();
        assert_eq!(found["model_type"], "llama");
        let folder = cache.path().join("models--org--model/snapshots/abc123");
        assert!(folder.join("config.json").is_file());
        assert_eq!(model_config(folder.to_str().unwrap(), &[], Some(cache.path())).unwrap(), None);
    }

    #[test]
    fn what_is_not_there_is_absent() {
        let cache = cache_with(b"{}");
        for model in ["org/other", "org", "../org/model", "org/../model", "", "MODEL", "org--model", "/no/such/folder"]
        {
            assert_eq!(model_config(model, &[], Some(cache.path())).unwrap(), None, "{model}");
        }
        assert_eq!(model_config("org/model", &[], None).unwrap(), None);
        // A folder in the place of the file is none.
        let config = cache.path().join("models--org--model/snapshots/abc123/config.json");
        fs::remove_file(&config).unwrap();
        fs::create_dir(&config).unwrap();
        assert_eq!(model_config("org/model", &[], Some(cache.path())).unwrap(), None);
    }

    #[test]
    fn a_branch_that_leads_out_of_the_cache_is_not_followed() {
        let cache = cache_with(b"{}");
        fs::write(cache.path().join("models--org--model/refs/main"), "../../..").unwrap();
        assert_eq!(model_config("org/model", &[], Some(cache.path())).unwrap(), None);
    }

    #[test]
    fn a_broken_config_is_a_problem_that_names_the_file() {
        for (config, expected) in
            [(&b"{\"a\":"[..], "is not JSON"), (b"[]", "is no JSON object"), (b"\xff", "is not JSON")]
        {
            let cache = cache_with(config);
            let error = model_config("org/model", &[], Some(cache.path())).unwrap_err().to_string();
            assert!(
                error.contains("models--org--model/snapshots/abc123/config.json") && error.contains(expected),
                "{error}"
            );
        }
        let cache = cache_with(&vec![b' '; usize::try_from(LARGEST_BYTES).unwrap() + 1]);
        let error = model_config("org/model", &[], Some(cache.path())).unwrap_err();
        assert!(matches!(error, ReadConfigError::TooLarge { .. }), "{error}");
    }

    #[test]
    fn the_cache_is_where_the_hubs_library_would_look() {
        let with = |set: &[(&str, &str)]| {
            let set: Vec<(String, String)> = set.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
            hub_cache(move |name| set.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()))
        };
        assert_eq!(with(&[("HOME", "/h")]), Some(PathBuf::from("/h/.cache/huggingface/hub")));
        assert_eq!(with(&[("HOME", "/h"), ("HF_HOME", "/m")]), Some(PathBuf::from("/m/hub")));
        assert_eq!(with(&[("HF_HOME", "/m"), ("HF_HUB_CACHE", "/c")]), Some(PathBuf::from("/c")));
        assert_eq!(with(&[("HF_HOME", "")]), None);
    }
}
