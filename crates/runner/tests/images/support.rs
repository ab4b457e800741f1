//! A registry that is asked by the client under test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use isobench_runner::images::{Credentials, Patience, Platform, Registry, Repository, Secret, Target};
use isobench_schema::ids::ImageTag;
use isobench_testkit::{FakeImage, FakeRegistry, RegistryFault, RegistrySettings};

/// Long enough for a loaded machine, and short enough for what must be noticed.
pub(crate) const SHORT: Patience = Patience {
    connect: Duration::from_secs(20),
    silence: Duration::from_millis(700),
    answer: Duration::from_secs(20),
    slowest_bytes_per_s: 1 << 20,
    throttled: Duration::from_secs(5),
    most_tags: 2000,
};

/// What notices said.
pub(crate) type Notices = Arc<Mutex<Vec<String>>>;

pub(crate) fn client_of(repository: &str, credentials: Option<Credentials>, patience: Patience) -> (Registry, Notices) {
    let notices = Notices::default();
    let kept = Arc::clone(&notices);
    let notice = Box::new(move |line: &str| kept.lock().unwrap().push(line.to_owned()));
    let repository = Repository::parse(repository).unwrap();
    (Registry::new(repository, credentials, patience, notice).unwrap(), notices)
}

pub(crate) fn client(registry: &FakeRegistry) -> Registry {
    client_of(&registry.repository(), None, SHORT).0
}

pub(crate) fn faulty(faults: &[RegistryFault]) -> FakeRegistry {
    FakeRegistry::start(RegistrySettings { faults: faults.to_vec(), ..RegistrySettings::default() })
}

pub(crate) fn password(user: &str, password: &str) -> Credentials {
    Credentials::Password { user: user.to_owned(), password: Secret::new(password) }
}

pub(crate) fn tag(text: &str) -> Target {
    Target::Tag(ImageTag::new(text).unwrap())
}

pub(crate) fn amd64() -> Platform {
    Platform::parse("linux/amd64").unwrap()
}

pub(crate) fn with_tags(registry: &FakeRegistry, count: usize) {
    let image = FakeImage::new(&[b"layer"]);
    for number in 0..count {
        registry.add(&format!("t{number:04}"), &image);
    }
}
