//! A registry of images for tests: pages, tokens, limits and Docker Hub's own interface, and every way to get them wrong.
//!
//! It runs in the test's own process, on a port of loopback that was free, until it is dropped. It knows every request that it
//! got, so that a test can see what was asked, how often and with which credentials.

mod answer;
mod certificate;
mod docker;
mod image;
mod request;
mod tokens;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

pub use certificate::TestCertificate;
pub use docker::{DockerRegistry, RegistryUser};
pub use image::{FakeImage, Layer};
pub use request::AskedRequest;

/// Whom the registry lets in.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Entry {
    /// Anybody.
    #[default]
    Open,
    /// Whoever has a token, which anybody gets, as for public repositories of Docker Hub.
    AnonymousToken,
    /// Whoever has a token, which this user gets for a password.
    PasswordToken {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// Whoever has a token, which is given for this identity token.
    IdentityToken(String),
    /// This user, with a password in each request.
    Basic {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
}

/// What the registry gets wrong. `at` is a part of the path of requests that it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RegistryFault {
    /// The next so many requests are answered with status 429, and with this header.
    Throttle {
        /// How many.
        times: u32,
        /// A name and a value.
        header: Option<(String, String)>,
    },
    /// The connection ends after so many bytes of a body that is longer.
    DieInBody {
        /// Where.
        at: String,
        /// How many.
        after: usize,
    },
    /// A body comes byte by byte.
    Slow {
        /// Where.
        at: String,
        /// From one byte to the next.
        gap: Duration,
    },
    /// Nothing comes.
    Silent {
        /// Where.
        at: String,
    },
    /// A body never ends.
    EndlessBody {
        /// Where.
        at: String,
    },
    /// Each page of tags leads to another one with tags of its own.
    EndlessPages,
    /// Each page of tags leads to the first one.
    LoopingPages,
    /// Each page leads there.
    NextIs(String),
    /// Pages say nothing of a next one, though there is one.
    NoLinks,
    /// An answer is this, whatever was asked.
    Instead {
        /// Where.
        at: String,
        /// The status.
        status: u16,
        /// The type.
        content_type: String,
        /// The body.
        body: String,
    },
    /// The bytes of a body aren't those that were stored; their digest is said as if they were.
    OtherBytes {
        /// Where.
        at: String,
    },
    /// A request is led elsewhere.
    Redirect {
        /// Where.
        at: String,
        /// Where to.
        to: String,
    },
    /// Manifests may be fetched so many times; each answer says what is left.
    Pulls {
        /// How many.
        limit: u64,
    },
    /// Parts of blobs can't be had: they are sent whole, whatever is asked for.
    NoRanges,
    /// Whoever wants a part of a blob is told that it can't be had.
    RefusedRanges,
    /// Parts of blobs are said to be what was asked for, and are of something else.
    LyingRanges,
    /// Parts of blobs begin elsewhere than was asked for, which is said.
    OtherRanges,
    /// What is sent is taken and forgotten.
    Forgetful,
    /// Tags can't be listed.
    NoListing,
}

/// How the registry is set up.
#[derive(Debug, Clone)]
pub struct RegistrySettings {
    /// The name of its only repository.
    pub repository: String,
    /// The most tags on a page, whatever is asked for.
    pub page: usize,
    /// Whom it lets in.
    pub entry: Entry,
    /// What it gets wrong.
    pub faults: Vec<RegistryFault>,
    /// By which certificate it speaks TLS; none speaks in the open.
    pub tls: Option<TestCertificate>,
}

impl Default for RegistrySettings {
    fn default() -> Self {
        Self { repository: "team/engine".to_owned(), page: 100, entry: Entry::Open, faults: Vec::new(), tls: None }
    }
}

/// What the registry holds and knows.
#[derive(Debug, Default)]
struct Held {
    /// The digest of what each tag names.
    tags: BTreeMap<String, String>,
    /// Kind and bytes of manifests by digest.
    manifests: BTreeMap<String, (String, Vec<u8>)>,
    blobs: BTreeMap<String, Vec<u8>>,
    asked: Vec<AskedRequest>,
    throttled: u32,
    pulled: u64,
    tokens: BTreeSet<String>,
}

#[derive(Debug)]
struct Shared {
    settings: RegistrySettings,
    address: String,
    held: Mutex<Held>,
    ends: AtomicBool,
}

impl Shared {
    /// Returns scheme, host and port.
    fn origin(&self) -> String {
        let scheme = if self.settings.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }
}

/// A running registry.
#[derive(Debug)]
pub struct FakeRegistry {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl FakeRegistry {
    /// Starts one.
    ///
    /// # Panics
    /// Panics if no port of loopback is free.
    pub fn start(settings: RegistrySettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of loopback is free");
        let address = listener.local_addr().expect("a listener has an address").to_string();
        let shared =
            Arc::new(Shared { settings, address, held: Mutex::new(Held::default()), ends: AtomicBool::new(false) });
        let serving = Arc::clone(&shared);
        let thread = thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.ends() {
                    return;
                }
                let shared = Arc::clone(&serving);
                // A client that goes away is its own concern.
                thread::spawn(move || match &shared.settings.tls {
                    Some(certificate) => certificate.serve(stream, |stream| answer::serve(stream, &shared)).ok(),
                    None => answer::serve_open(stream, &shared).ok(),
                });
            }
        });
        Self { shared, thread: Some(thread) }
    }

    /// Returns its host and port.
    pub fn address(&self) -> &str {
        &self.shared.address
    }

    /// Returns how its repository is named, with its host and port, and its scheme if it speaks TLS.
    pub fn repository(&self) -> String {
        let name = format!("{}/{}", self.shared.address, self.shared.settings.repository);
        if self.shared.settings.tls.is_some() { format!("https://{name}") } else { name }
    }

    /// Returns where it answers like Docker Hub's own interface.
    pub fn hub(&self) -> String {
        format!("{}/hub/v2", self.shared.origin())
    }

    /// Puts an image under a tag.
    pub fn add(&self, tag: &str, image: &FakeImage) {
        let mut held = self.shared.held();
        image.put_into(&mut held);
        held.tags.insert(tag.to_owned(), image.digest());
    }

    /// Puts a list of images by platform under a tag.
    pub fn add_list(&self, tag: &str, images: &[FakeImage]) {
        let (digest, kind, bytes) = image::list_of(images);
        let mut held = self.shared.held();
        for image in images {
            image.put_into(&mut held);
        }
        held.manifests.insert(digest.clone(), (kind, bytes));
        held.tags.insert(tag.to_owned(), digest);
    }

    /// Puts any bytes under a tag, as a manifest of that kind.
    pub fn add_bytes(&self, tag: &str, kind: &str, bytes: &[u8]) {
        let digest = image::digest(bytes);
        let mut held = self.shared.held();
        held.manifests.insert(digest.clone(), (kind.to_owned(), bytes.to_vec()));
        held.tags.insert(tag.to_owned(), digest);
    }

    /// Returns the requests so far.
    pub fn asked(&self) -> Vec<AskedRequest> {
        self.shared.held().asked.clone()
    }

    /// Returns how many requests had a path with this part.
    pub fn count(&self, part: &str) -> usize {
        self.shared.held().asked.iter().filter(|request| request.target.contains(part)).count()
    }
}

impl Drop for FakeRegistry {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for a connection.
        TcpStream::connect(&self.shared.address).ok();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
