//! Finding a repository at a revision: where it is, which commit that is, and which files it has.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::format::{Stored, from_slice, to_pretty};
use isobench_schema::ids::{CommitId, Digest};
use isobench_schema::input::{FileHash, FoundInput, HubKind, HubReference, InputFile, InputOrigin, is_inside};
use serde::{Deserialize, Serialize};
use ureq::http::Method;

use super::address::encoded;
use super::held::Held;
use super::here;
use super::http::{Answer, Http, Patience, Question, Redirects, whole};
use super::token::TokenReference;
use crate::environment::{EnvironmentError, PrepareContext, Stop, split};

/// The hub that is asked where no other is named.
const ENDPOINT: &str = "https://huggingface.co";
/// The largest list of files that is read.
const LARGEST_LIST: u64 = 64 << 20;
/// The most files of one repository.
const MOST_FILES: usize = 100_000;
/// How much of a refusal's body is read.
const REFUSAL: u64 = 1 << 16;

/// Whether a hub may be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AskHub {
    /// It may.
    Allowed,
    /// It may not, for this reason.
    Never(String),
}

/// Where inputs are looked for.
#[derive(Debug, Clone)]
pub struct HubSettings {
    /// The hub's address.
    pub endpoint: String,
    /// Its token, by where it is.
    pub token: Option<TokenReference>,
    /// The hub's own cache on this machine.
    pub hub_cache: Option<PathBuf>,
    /// Folders that hold models as `OWNER/NAME`.
    pub folders: Vec<PathBuf>,
    /// Whether the hub may be asked.
    pub ask: AskHub,
    /// How long it is waited for.
    pub patience: Patience,
    /// The room that is always left on the disk.
    pub floor_bytes: u64,
}

impl HubSettings {
    /// Returns the settings that the variables of the hub's own library give: `HF_ENDPOINT`, `HF_HUB_OFFLINE`, and those of
    /// its token and cache.
    pub fn from_variables(variable: &impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        let is_on = |name: &str| {
            set(name).is_some_and(|value| matches!(value.to_lowercase().as_str(), "1" | "on" | "yes" | "true"))
        };
        let ask = match ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"].into_iter().find(|name| is_on(name)) {
            Some(name) => AskHub::Never(format!("`{name}` is set")),
            None => AskHub::Allowed,
        };
        Self {
            endpoint: set("HF_ENDPOINT").unwrap_or_else(|| ENDPOINT.to_owned()),
            token: TokenReference::usual(variable),
            hub_cache: crate::inventory::hub_cache(variable),
            folders: Vec::new(),
            ask,
            patience: Patience::default(),
            floor_bytes: crate::disk::DEFAULT_FLOOR_BYTES,
        }
    }
}

/// What is looked for.
pub struct Wanted<'a> {
    /// The repository at a revision.
    pub reference: &'a HubReference,
    /// Whether the files that are here are enough to be used without asking the hub.
    pub is_enough: &'a dyn Fn(&[InputFile]) -> bool,
}

/// Finds inputs, and gets them.
#[derive(Debug)]
pub struct Hub {
    pub(super) settings: HubSettings,
    /// What couldn't be had, by the digest of its files: it isn't tried again and again in one run.
    pub(super) failed: Mutex<BTreeMap<Digest, Failure>>,
    /// What is held, so that no prune takes it.
    pub(super) held: Mutex<BTreeMap<Digest, Held>>,
}

/// What the hub said of a repository, kept so that it can be planned without asking again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listing {
    reference: HubReference,
    commit: CommitId,
    files: Vec<InputFile>,
}

impl Stored for Listing {
    const NAME: &'static str = "hub-listing";
    const VERSION: u32 = 1;
}

/// A repository as the hub's interface describes it.
#[derive(Deserialize)]
struct Described {
    sha: String,
    #[serde(default)]
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sibling {
    rfilename: String,
    size: Option<u64>,
    blob_id: Option<String>,
    lfs: Option<Lfs>,
}

#[derive(Deserialize)]
struct Lfs {
    #[serde(alias = "oid")]
    sha256: String,
    size: u64,
}

impl Hub {
    /// Returns a hub with these settings. Nothing is asked yet.
    pub fn new(settings: HubSettings) -> Self {
        Self { settings, failed: Mutex::default(), held: Mutex::default() }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &HubSettings {
        &self.settings
    }

    /// Finds a repository at a revision: in a folder that was named; by a commit's full id in what is known of it here; on the
    /// hub; and where that can't be asked, in the hub's cache on this machine or in what the hub said before.
    ///
    /// # Errors
    /// Returns an error if this machine can't look or it was cancelled; an input that isn't there is a fact.
    pub fn find(&self, wanted: &Wanted<'_>, context: &PrepareContext<'_>) -> Result<FoundInput, EnvironmentError> {
        let found = split(self.look(wanted, context))?;
        Ok(found.unwrap_or_else(|failure| FoundInput::Missing { failure }))
    }

    fn look(&self, wanted: &Wanted<'_>, context: &PrepareContext<'_>) -> Result<FoundInput, Stop> {
        let Wanted { reference, is_enough } = *wanted;
        if reference.kind == HubKind::Model
            && let Some(found) = here::in_folders(&self.settings.folders, reference, is_enough, context)?
        {
            return Ok(found);
        }
        let is_commit = CommitId::new(reference.revision.as_str()).is_ok();
        if is_commit && let Some(listing) = Self::listing(reference, context) {
            return Ok(listing);
        }
        let in_cache = || match &self.settings.hub_cache {
            Some(cache) => here::in_hub_cache(cache, reference, is_enough, context.cancel).map_err(Stop::Error),
            None => Ok(None),
        };
        if is_commit && let Some(found) = in_cache()? {
            return Ok(found);
        }
        let offline = match self.ask_for_files(reference, context) {
            Ok(listing) => {
                Self::keep_listing(&listing, context)?;
                return Ok(found_on_hub(listing));
            }
            Err(Stop::Failed(failure)) if failure.class == FailureClass::HubOffline => failure,
            Err(stop) => return Err(stop),
        };
        if let Some(found) = in_cache()? {
            return Ok(found);
        }
        if let Some(listing) = Self::listing(reference, context) {
            return Ok(listing);
        }
        let message = format!("{}, and this machine has no {reference}", offline.message);
        let failure = Failure { message, ..*offline };
        Err(failure.into())
    }

    /// Returns the hub, ready to be asked.
    pub(super) fn http(&self) -> Result<Http, Failure> {
        match &self.settings.ask {
            AskHub::Allowed => Http::new(&self.settings.endpoint, self.settings.token.clone(), self.settings.patience),
            AskHub::Never(why) => {
                let message = format!("the hub isn't asked: {why}");
                Err(Failure::new(FailureStage::Acquire, FailureClass::HubOffline, message))
            }
        }
    }

    fn ask_for_files(&self, reference: &HubReference, context: &PrepareContext<'_>) -> Result<Listing, Stop> {
        let http = self.http()?;
        let kinds = folder_of(reference.kind);
        let (repository, revision) =
            (encoded(reference.repository.as_str(), b"/"), encoded(reference.revision.as_str(), b""));
        let question = Question {
            method: Method::GET,
            path: format!("/api/{kinds}/{repository}/revision/{revision}?blobs=true"),
            from: 0,
            redirects: Redirects::Followed,
        };
        let mut answer = http.ask(&question, context)?;
        if answer.status != 200 {
            return Err(refused(&mut answer, reference, None, &http).into());
        }
        let malformed = |why: String| {
            let message = format!("what the hub says of the {reference} can't be read: {why}");
            Failure::new(FailureStage::Acquire, FailureClass::HubOffline, message).transient()
        };
        let bytes = whole(&mut answer, LARGEST_LIST).map_err(|error| malformed(error.to_string()))?;
        let described: Described = serde_json::from_slice(&bytes).map_err(|error| malformed(error.to_string()))?;
        let commit = CommitId::new(described.sha).map_err(|error| malformed(error.to_string()))?;
        if described.siblings.len() > MOST_FILES {
            return Err(malformed(format!("it lists {} files", described.siblings.len())).into());
        }
        let mut files = Vec::new();
        for sibling in described.siblings {
            if !is_inside(&sibling.rfilename) {
                return Err(
                    malformed(format!("the path `{}` leads out of it", sibling.rfilename.escape_debug())).into()
                );
            }
            files.push(match sibling.known() {
                Some(file) => file,
                None => ask_for_file(&http, reference, (&commit, &sibling.rfilename), context)?,
            });
        }
        files.sort();
        if let Some(path) = in_the_way(&files) {
            return Err(
                malformed(format!("it lists `{}` twice, or as a file and as a folder", path.escape_debug())).into()
            );
        }
        Ok(Listing { reference: reference.clone(), commit, files })
    }

    fn listing_path(reference: &HubReference, context: &PrepareContext<'_>) -> PathBuf {
        let name = Digest::of(reference.to_string().as_bytes());
        context.cache.join("inputs/listings").join(format!("{name}.json"))
    }

    /// Returns what the hub said before, if that is kept.
    fn listing(reference: &HubReference, context: &PrepareContext<'_>) -> Option<FoundInput> {
        let bytes = std::fs::read(Self::listing_path(reference, context)).ok()?;
        let listing: Listing = from_slice(&bytes).ok()?;
        let is_it = listing.reference == *reference && listing.files.iter().all(|file| is_inside(&file.path));
        is_it.then(|| found_on_hub(listing))
    }

    fn keep_listing(listing: &Listing, context: &PrepareContext<'_>) -> Result<(), EnvironmentError> {
        let path = Self::listing_path(&listing.reference, context);
        let folder = path.parent().unwrap_or(context.cache);
        std::fs::create_dir_all(folder).map_err(EnvironmentError::write(folder))?;
        let write = |text: &str| {
            let file = tempfile::NamedTempFile::new_in(folder)?;
            std::fs::write(file.path(), text)?;
            file.persist(&path).map_err(|error| error.error)
        };
        write(&to_pretty(listing)?).map_err(EnvironmentError::write(&path))?;
        Ok(())
    }
}

impl Sibling {
    /// Returns the file, if all of it is said.
    fn known(&self) -> Option<InputFile> {
        let path = self.rfilename.clone();
        if let Some(lfs) = &self.lfs {
            return Some(InputFile { path, bytes: lfs.size, hash: FileHash::Sha256(Digest::new(&*lfs.sha256).ok()?) });
        }
        let id = CommitId::new(self.blob_id.clone()?).ok()?;
        Some(InputFile { path, bytes: self.size?, hash: FileHash::GitBlob(id) })
    }
}

/// Returns a path that is listed twice, or that is a file and a folder at once.
fn in_the_way(files: &[InputFile]) -> Option<&str> {
    let mut paths = std::collections::BTreeSet::new();
    if let Some(twice) = files.iter().find(|file| !paths.insert(file.path.as_str())) {
        return Some(&twice.path);
    }
    let is_file = |path: &&std::path::Path| path.to_str().is_some_and(|path| paths.contains(path));
    let above = |file: &InputFile| std::path::Path::new(&file.path).ancestors().skip(1).any(|path| is_file(&path));
    files.iter().find(|file| above(file)).map(|file| file.path.as_str())
}

fn found_on_hub(listing: Listing) -> FoundInput {
    FoundInput::Found { commit: Some(listing.commit), origin: InputOrigin::Hub, folder: None, files: listing.files }
}

/// Asks for the size and hash of one file, by what an answer without its body says of it.
fn ask_for_file(
    http: &Http,
    reference: &HubReference,
    (commit, path): (&CommitId, &str),
    context: &PrepareContext<'_>,
) -> Result<InputFile, Stop> {
    let question = Question {
        method: Method::HEAD,
        path: file_path(reference, commit, path),
        from: 0,
        redirects: Redirects::UntilLinked,
    };
    let mut answer = http.ask(&question, context)?;
    if !matches!(answer.status, 200 | 301 | 302 | 303 | 307 | 308) {
        return Err(refused(&mut answer, reference, Some(path), http).into());
    }
    let either = |names: [&str; 2]| names.into_iter().find_map(|name| answer.head(name));
    let tag = either(["x-linked-etag", "etag"]);
    let hash = tag.map(|tag| tag.trim_start_matches("W/").trim_matches('"')).and_then(FileHash::parse);
    let bytes = either(["x-linked-size", "content-length"]).and_then(|text| text.parse().ok());
    if let (Some(hash), Some(bytes)) = (hash, bytes) {
        return Ok(InputFile { path: path.to_owned(), bytes, hash });
    }
    let message =
        format!("the hub says neither size nor hash of `{path}` in the {reference}, so that it can't be verified");
    Err(Failure::new(FailureStage::Acquire, FailureClass::HubOffline, message).into())
}

/// Returns the folder of a kind in the hub's interface.
pub(super) fn folder_of(kind: HubKind) -> &'static str {
    match kind {
        HubKind::Model => "models",
        HubKind::Dataset => "datasets",
    }
}

/// Returns the path of a file at a commit, below the endpoint.
pub(super) fn file_path(reference: &HubReference, commit: &CommitId, path: &str) -> String {
    let before = match reference.kind {
        HubKind::Model => "",
        HubKind::Dataset => "/datasets",
    };
    let repository = encoded(reference.repository.as_str(), b"/");
    format!("{before}/{repository}/resolve/{commit}/{}", encoded(path, b"/"))
}

/// Returns the failure that a refusal means, by what the hub says in its heads.
pub(super) fn refused(answer: &mut Answer, reference: &HubReference, path: Option<&str>, http: &Http) -> Failure {
    let code = http.hide(answer.head("x-error-code").unwrap_or_default());
    let said = answer.head("x-error-message").map(str::to_owned);
    let body = whole(answer, REFUSAL).unwrap_or_default();
    let said = said.or_else(|| {
        let value: serde_json::Value = serde_json::from_slice(&body).ok()?;
        Some(value.get("error")?.as_str()?.to_owned())
    });
    let said = said.map(|said| http.hide(&said));
    let token = match http.token_place() {
        Some(place) => format!("the token in {place} doesn't give access"),
        None => "no token was given: set `HF_TOKEN`, or log in with the hub's own program".to_owned(),
    };
    let missing = match reference.kind {
        HubKind::Model => FailureClass::ModelNotFound,
        HubKind::Dataset => FailureClass::DatasetMissing,
    };
    let what = path.map_or_else(|| format!("the {reference}"), |path| format!("`{path}` of the {reference}"));
    let (class, message) = match (answer.status, code.as_str()) {
        (_, "GatedRepo") | (403, _) => {
            (FailureClass::ModelGated, format!("access to {what} must be granted by its owner, and {token}"))
        }
        (_, "RevisionNotFound") => (missing, format!("there is no such revision: {what}")),
        (_, "EntryNotFound") => (missing, format!("there is no such file: {what}")),
        (401, _) => (missing, format!("the hub has no public {what}; if it is private, {token}")),
        (404, _) | (_, "RepoNotFound") => (missing, format!("the hub has no {what}")),
        (status, _) => (FailureClass::HubOffline, format!("the hub refuses {what} with status {status}")),
    };
    let line = |text: &str| EvidenceLine::new("hub", None, text);
    let mut lines = vec![line(&format!("status {} {code}", answer.status))];
    lines.extend(said.as_deref().map(line));
    Failure::new(FailureStage::Acquire, class, message).with_evidence(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_stands_in_the_way_of_another() {
        let file = |path: &str| InputFile {
            path: path.to_owned(),
            bytes: 1,
            hash: FileHash::Sha256(Digest::of(path.as_bytes())),
        };
        for (paths, found) in [
            (vec!["config.json", "onnx/config.json", "onnx/model.json"], None),
            (vec!["config.json", "config.json"], Some("config.json")),
            (vec!["config.json", "config.json/x.json"], Some("config.json/x.json")),
        ] {
            let files: Vec<InputFile> = paths.iter().map(|path| file(path)).collect();
            assert_eq!(in_the_way(&files), found, "{paths:?}");
        }
    }
}
