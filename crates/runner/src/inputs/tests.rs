//! Inputs from a fake hub: every way in which it goes wrong has its class, and nothing of a token leaves it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use isobench_schema::failure::{Failure, FailureClass};
use isobench_schema::ids::Revision;
use isobench_schema::input::{
    FoundInput, HubReference, HubRepository, InputFile, InputOrigin, InputRole, PlannedInput, digest_of,
};
use isobench_testkit::{FakeHub, HubFault, HubFile};

use super::{AskHub, Hub, HubSettings, Patience, TokenReference, Wanted};
use crate::environment::{EnvironmentError, PrepareContext};

const TOKEN: &str = "hf_aSecretThatMustNotLeave";
const NAME: &str = "org/model";
/// Larger than what is read at once, so that a break falls into the middle.
const WEIGHTS: usize = 700_000;

/// A hub with a model, and a machine with an empty cache.
struct Place {
    hub: FakeHub,
    dir: tempfile::TempDir,
    cancel: AtomicBool,
    commit: String,
    weights: Vec<u8>,
}

impl Place {
    fn new() -> Self {
        let hub = FakeHub::start().unwrap();
        let weights: Vec<u8> = (0..WEIGHTS).map(|byte| u8::try_from(byte % 251).unwrap()).collect();
        let commit = hub.add_model(
            NAME,
            &[
                ("config.json", b"{\"model_type\": \"tiny\"}", HubFile::Small),
                ("tokenizer.json", b"{\"version\": \"1.0\"}", HubFile::Small),
                ("sub/model.safetensors", &weights, HubFile::Large),
            ],
        );
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("cache")).unwrap();
        Self { hub, dir, cancel: AtomicBool::new(false), commit, weights }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn settings(&self) -> HubSettings {
        HubSettings {
            endpoint: self.hub.endpoint(),
            token: None,
            hub_cache: None,
            folders: Vec::new(),
            ask: AskHub::Allowed,
            patience: Patience {
                connect: Duration::from_secs(5),
                read: Duration::from_millis(700),
                tries: 3,
                pause: Duration::from_millis(10),
                longest_pause: Duration::from_secs(2),
            },
            floor_bytes: 0,
        }
    }

    fn with_token(&self) -> HubSettings {
        let file = self.path("token");
        fs::write(&file, format!("{TOKEN}\n")).unwrap();
        HubSettings { token: Some(TokenReference::File(file)), ..self.settings() }
    }

    fn find_at(&self, settings: HubSettings, name: &str, revision: &str) -> FoundInput {
        let reference = reference(name, revision);
        let is_enough = |files: &[InputFile]| files.iter().any(|file| file.path.ends_with(".safetensors"));
        let wanted = Wanted { reference: &reference, is_enough: &is_enough };
        let cache = self.path("cache");
        Hub::new(settings).find(&wanted, &self.context(&cache)).unwrap()
    }

    fn context<'a>(&'a self, cache: &'a Path) -> PrepareContext<'a> {
        let (timeout, cancel) = (Duration::from_secs(60), &self.cancel);
        PrepareContext { cache, scratch: self.dir.path(), log: cache, timeout, cancel, reaper: None, steps: None }
    }

    fn planned(&self, settings: HubSettings) -> PlannedInput {
        planned(self.find_at(settings, NAME, "main"))
    }

    /// Puts an input into the cache, and returns its folder or the failure.
    fn ensure(&self, settings: HubSettings, input: &PlannedInput) -> Result<PathBuf, Failure> {
        self.try_ensure(settings, input).unwrap()
    }

    fn try_ensure(
        &self,
        settings: HubSettings,
        input: &PlannedInput,
    ) -> Result<Result<PathBuf, Failure>, EnvironmentError> {
        let cache = self.path("cache");
        let hub = Hub::new(settings);
        let held = hub.ensure(input, &self.context(&cache), &mut |_line| {})?;
        Ok(held.map(|held| held.folder))
    }

    /// Checks that the model is there, whole.
    fn check(&self, folder: &Path) {
        assert_eq!(fs::read(folder.join("sub/model.safetensors")).unwrap(), self.weights);
        assert_eq!(fs::read(folder.join("config.json")).unwrap(), b"{\"model_type\": \"tiny\"}");
    }

    /// Returns how many requests came for the weights' bytes, and from which byte on.
    fn parts(&self) -> Vec<Option<u64>> {
        let asked = self.hub.requests();
        asked
            .into_iter()
            .filter(|request| request.to_second_host && request.method == "GET")
            .map(|one| one.from)
            .collect()
    }
}

fn reference(name: &str, revision: &str) -> HubReference {
    HubReference {
        kind: InputRole::Model.kind(),
        repository: HubRepository::new(name).unwrap(),
        revision: Revision::new(revision).unwrap(),
    }
}

fn planned(found: FoundInput) -> PlannedInput {
    let FoundInput::Found { commit, origin, folder, files } = found else { panic!("{found:?}") };
    PlannedInput {
        role: InputRole::Model,
        source: reference(NAME, "main"),
        commit,
        origin,
        folder,
        bytes: files.iter().map(|file| file.bytes).sum(),
        digest: digest_of(&files),
        files,
    }
}

fn missing(found: FoundInput) -> Failure {
    let FoundInput::Missing { failure } = found else { panic!("{found:?}") };
    failure
}

#[test]
fn sizes_and_hashes_are_known_before_anything_is_fetched() {
    let place = Place::new();
    let input = place.planned(place.settings());
    assert_eq!(input.commit.as_ref().unwrap().as_str(), place.commit);
    assert_eq!(input.bytes, 22 + 18 + WEIGHTS as u64);
    assert!(place.parts().is_empty());
    let cache = place.path("cache");
    let hub = Hub::new(place.settings());
    assert_eq!(hub.missing_bytes(&input, &cache), input.bytes);
    let folder = place.ensure(place.settings(), &input).unwrap();
    place.check(&folder);
    assert_eq!(hub.missing_bytes(&input, &cache), 0);
    // The second time nothing is asked; and a plan of the commit asks nobody either.
    let asked = place.hub.requests().len();
    place.check(&place.ensure(place.settings(), &input).unwrap());
    assert_eq!(place.hub.requests().len(), asked);
    let offline = HubSettings { ask: AskHub::Never("a test says so".to_owned()), ..place.settings() };
    assert_eq!(planned(place.find_at(offline, NAME, "main")).digest, input.digest);
}

#[test]
fn a_hub_that_lists_neither_sizes_nor_hashes_is_asked_for_each_file() {
    let place = Place::new();
    let expected = place.planned(place.settings());
    place.hub.break_model(NAME, None, HubFault::BareList);
    assert_eq!(place.planned(place.settings()), expected);
}

#[test]
fn what_is_not_there_or_not_given_has_its_class() {
    let place = Place::new();
    let check = |found, class, says: &[&str]| {
        let failure = missing(found);
        assert_eq!(failure.class, class, "{failure:?}");
        for part in says {
            assert!(failure.message.contains(part), "`{part}` isn't in `{}`", failure.message);
        }
    };
    let find = |name, revision| place.find_at(place.settings(), name, revision);
    check(find("org/absent", "main"), FailureClass::ModelNotFound, &["org/absent", "HF_TOKEN"]);
    check(find(NAME, "v9"), FailureClass::ModelNotFound, &["no such revision", "v9"]);
    place.hub.break_model(NAME, None, HubFault::Gated { token: TOKEN.to_owned() });
    check(find(NAME, "main"), FailureClass::ModelGated, &["granted", "no token was given"]);
    let other =
        HubSettings { token: Some(TokenReference::Variable("ISOBENCH_TEST_NO_TOKEN".to_owned())), ..place.settings() };
    check(place.find_at(other, NAME, "main"), FailureClass::ModelGated, &["ISOBENCH_TEST_NO_TOKEN"]);
    let unlucky = place.path("unlucky");
    fs::write(&unlucky, "hf_ofSomebodyElse").unwrap();
    let other = HubSettings { token: Some(TokenReference::File(unlucky)), ..place.settings() };
    let refused = format!("{:?}", missing(place.find_at(other, NAME, "main")));
    assert!(refused.contains("no access with (secret)") && !refused.contains("hf_ofSomebodyElse"), "{refused}");
    let endpoint = "https://ann:hunter2@hub.example/x".to_owned();
    let named = format!("{:?}", missing(place.find_at(HubSettings { endpoint, ..place.settings() }, NAME, "main")));
    assert!(named.contains("https://(secret)@hub.example/x") && !named.contains("hunter2"), "{named}");
    place.hub.mend();
    let nobody = HubSettings { endpoint: "http://127.0.0.1:9".to_owned(), ..place.settings() };
    check(place.find_at(nobody, NAME, "main"), FailureClass::HubOffline, &["127.0.0.1:9", NAME]);
    let never = HubSettings { ask: AskHub::Never("`HF_HUB_OFFLINE` is set".to_owned()), ..place.settings() };
    check(place.find_at(never, NAME, "main"), FailureClass::HubOffline, &["HF_HUB_OFFLINE"]);
    // The file was there when the plan was made, and is gone now.
    let mut input = place.planned(place.settings());
    input.files.retain(|file| file.path == "config.json");
    for file in &mut input.files {
        file.path = "gone.json".to_owned();
    }
    assert_eq!(place.ensure(place.settings(), &input).unwrap_err().class, FailureClass::ModelNotFound);
}

#[test]
fn a_token_gives_access_and_goes_nowhere_but_to_the_hub() {
    let place = Place::new();
    place.hub.break_model(NAME, None, HubFault::Gated { token: TOKEN.to_owned() });
    let settings = place.with_token();
    assert!(!format!("{settings:?}").contains(TOKEN));
    let input = place.planned(settings.clone());
    place.check(&place.ensure(settings, &input).unwrap());
    let requests = place.hub.requests();
    assert!(requests.iter().any(|request| request.to_second_host), "the weights come from elsewhere");
    for request in requests {
        assert_eq!(request.has_token, !request.to_second_host, "{request:?}");
    }
    for entry in walk(&place.path("cache")) {
        assert!(!fs::read_to_string(&entry).unwrap_or_default().contains(TOKEN), "{}", entry.display());
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(walk(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn a_body_that_breaks_off_is_gone_on_with_where_it_broke() {
    let place = Place::new();
    let input = place.planned(place.settings());
    place.hub.break_model(NAME, Some("sub/model.safetensors"), HubFault::Dies { after: 300_000, times: 2 });
    place.check(&place.ensure(place.settings(), &input).unwrap());
    assert_eq!(place.parts(), [None, Some(300_000), Some(600_000)]);
}

#[test]
fn what_a_killed_process_has_fetched_is_gone_on_with() {
    let place = Place::new();
    let input = place.planned(place.settings());
    let blobs = place.path("cache/inputs/blobs");
    fs::create_dir_all(&blobs).unwrap();
    let weights = input.files.iter().find(|file| file.path.starts_with("sub/")).unwrap();
    fs::write(blobs.join(format!("{}.part", weights.hash.as_str())), &place.weights[..123_456]).unwrap();
    place.check(&place.ensure(place.settings(), &input).unwrap());
    assert_eq!(place.parts(), [Some(123_456)]);
}

#[test]
fn a_hub_that_sends_no_parts_is_asked_for_all_of_it() {
    let place = Place::new();
    let input = place.planned(place.settings());
    let file = Some("sub/model.safetensors");
    place.hub.break_model(NAME, file, HubFault::NoRanges);
    place.hub.break_model(NAME, file, HubFault::Dies { after: 300_000, times: 1 });
    place.check(&place.ensure(place.settings(), &input).unwrap());
}

#[test]
fn a_file_that_ends_early_or_is_another_is_never_taken_for_whole() {
    for (fault, class, says) in [
        (HubFault::Truncated { at: 1000 }, FailureClass::HubOffline, "breaks off after"),
        (HubFault::WrongBytes { times: 9 }, FailureClass::InputDamaged, "isn't what its hash says"),
    ] {
        let place = Place::new();
        let input = place.planned(place.settings());
        place.hub.break_model(NAME, Some("sub/model.safetensors"), fault.clone());
        let failure = place.ensure(place.settings(), &input).unwrap_err();
        assert_eq!(failure.class, class, "{fault:?}: {failure:?}");
        assert!(failure.message.contains(says), "{}", failure.message);
        let blobs: Vec<_> = walk(&place.path("cache/inputs/blobs"));
        let whole = blobs.iter().find(|path| path.extension().is_none() && path.metadata().unwrap().len() > 1000);
        assert_eq!(whole, None);
        // Once it is mended, the same input is had.
        place.hub.mend();
        place.check(&place.ensure(place.settings(), &input).unwrap());
    }
    let place = Place::new();
    let input = place.planned(place.settings());
    place.hub.break_model(NAME, Some("sub/model.safetensors"), HubFault::WrongBytes { times: 1 });
    place.check(&place.ensure(place.settings(), &input).unwrap());
}

#[test]
fn a_hub_that_dawdles_is_not_waited_for_without_end() {
    let place = Place::new();
    let input = place.planned(place.settings());
    let slow = HubFault::Slow { bytes: 100, pause_ms: 100 };
    place.hub.break_model(NAME, Some("sub/model.safetensors"), slow);
    let failure = place.ensure(place.settings(), &input).unwrap_err();
    assert_eq!(failure.class, FailureClass::HubOffline, "{failure:?}");
    assert!(failure.transient);
    // One that is slow, but goes on well enough, is waited for.
    place.hub.mend();
    let slow = HubFault::Slow { bytes: 100_000, pause_ms: 150 };
    place.hub.break_model(NAME, Some("sub/model.safetensors"), slow);
    place.check(&place.ensure(place.settings(), &input).unwrap());
}

#[test]
fn a_hub_that_is_asked_too_often_is_asked_again_when_it_says() {
    let place = Place::new();
    place.hub.break_model(NAME, None, HubFault::TooMany { times: 2, retry_after_s: 1 });
    let begun = std::time::Instant::now();
    let input = place.planned(place.settings());
    assert!(begun.elapsed() >= Duration::from_secs(2));
    place.hub.break_model(NAME, None, HubFault::Status { status: 503, times: 2 });
    place.check(&place.ensure(place.settings(), &input).unwrap());
    place.hub.break_model(NAME, None, HubFault::TooMany { times: 1, retry_after_s: 3600 });
    let failure = missing(place.find_at(place.settings(), NAME, "v9"));
    assert_eq!(failure.class, FailureClass::HubOffline);
    assert!(failure.message.contains("3600 s"), "{}", failure.message);
}

/// Lays a cache of the hub's library: blobs, a snapshot of links, and the branch.
fn lay_hub_cache(place: &Place, cache: &Path, input: &PlannedInput) {
    let folder = cache.join("models--org--model");
    let snapshot = folder.join("snapshots").join(&place.commit);
    for file in &input.files {
        let bytes: &[u8] = match file.path.as_str() {
            "config.json" => b"{\"model_type\": \"tiny\"}",
            "tokenizer.json" => b"{\"version\": \"1.0\"}",
            _ => &place.weights,
        };
        let blob = folder.join("blobs").join(file.hash.as_str());
        fs::create_dir_all(blob.parent().unwrap()).unwrap();
        fs::write(&blob, bytes).unwrap();
        let link = snapshot.join(&file.path);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(&blob, link).unwrap();
    }
    fs::create_dir_all(folder.join("refs")).unwrap();
    fs::write(folder.join("refs/main"), &place.commit).unwrap();
}

#[test]
fn the_cache_of_the_hubs_library_is_used_where_it_is_and_has_the_same_digest() {
    let place = Place::new();
    let input = place.planned(place.settings());
    let cache = place.path("hub");
    lay_hub_cache(&place, &cache, &input);
    fs::remove_dir_all(place.path("cache/inputs")).unwrap();
    let asked = place.hub.requests().len();
    let ask = AskHub::Never("a test says so".to_owned());
    let settings = HubSettings { hub_cache: Some(cache.clone()), ask, ..place.settings() };
    let found = place.planned(settings.clone());
    assert_eq!((&found.digest, found.origin), (&input.digest, InputOrigin::HubCache));
    let folder = place.ensure(settings.clone(), &found).unwrap();
    place.check(&folder);
    assert!(fs::read_link(folder.join("config.json")).unwrap().starts_with(cache.canonicalize().unwrap()));
    assert_eq!(place.hub.requests().len(), asked);
    // A blob that was changed there isn't taken for what its name says.
    let blob = fs::read_link(folder.join("sub/model.safetensors")).unwrap();
    let mut other = place.weights.clone();
    other[7] ^= 1;
    fs::write(&blob, other).unwrap();
    assert_eq!(place.ensure(settings.clone(), &found).unwrap_err().class, FailureClass::HubOffline);
    let again = HubSettings { ask: AskHub::Allowed, ..settings.clone() };
    place.check(&place.ensure(again, &found).unwrap());
    // A snapshot that lacks a blob is none.
    fs::remove_file(&blob).unwrap();
    fs::remove_dir_all(place.path("cache/inputs")).unwrap();
    assert_eq!(missing(place.find_at(settings, NAME, "main")).class, FailureClass::HubOffline);
}

#[test]
fn a_folder_of_models_comes_first_and_must_stay_as_it_was() {
    let place = Place::new();
    let folder = place.path("models").join(NAME);
    fs::create_dir_all(folder.join("sub")).unwrap();
    fs::write(folder.join("config.json"), b"{\"model_type\": \"tiny\"}").unwrap();
    let settings = HubSettings { folders: vec![place.path("models")], ..place.settings() };
    // A config alone is no model.
    assert_eq!(place.planned(settings.clone()).origin, InputOrigin::Hub);
    fs::write(folder.join("sub/model.safetensors"), &place.weights).unwrap();
    let input = place.planned(settings.clone());
    assert_eq!((input.origin, &input.commit), (InputOrigin::Folder, &None));
    place.check(&place.ensure(settings.clone(), &input).unwrap());
    fs::write(folder.join("sub/model.safetensors"), "other").unwrap();
    let failure = place.ensure(settings, &input).unwrap_err();
    assert_eq!(failure.class, FailureClass::InputDamaged);
    assert!(failure.message.contains("make the plan again"), "{}", failure.message);
}

#[test]
fn two_that_want_the_same_file_fetch_it_once() {
    let place = Place::new();
    let input = place.planned(place.settings());
    place.hub.break_model(NAME, Some("sub/model.safetensors"), HubFault::Slow { bytes: 100_000, pause_ms: 30 });
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| place.check(&place.ensure(place.settings(), &input).unwrap()));
        }
    });
    assert_eq!(place.parts().len(), 1);
}

#[test]
fn a_disk_without_room_above_the_floor_is_said_before_anything_is_fetched() {
    let place = Place::new();
    let input = place.planned(place.settings());
    let settings = HubSettings { floor_bytes: u64::MAX, ..place.settings() };
    let error = place.try_ensure(settings, &input).unwrap_err();
    assert!(error.is_disk_full() && error.to_string().contains("above the floor"), "{error}");
    assert!(place.parts().is_empty());
}
