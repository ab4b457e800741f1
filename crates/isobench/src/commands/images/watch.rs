//! `isobench images push --watch`: sends each image of a repository as it is built and proven, until somebody gives up or nothing
//! new comes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use isobench_runner::container::{ContainerError, Daemon, HeldImage, IMAGE_LABEL, ProvenImage, ask};
use isobench_runner::images::{Repository, Target, parse_reference};
use isobench_schema::ids::ImageTag;
use serde::Serialize;

use super::ask as registry;
use super::build::daemon_error;
use super::progress::Progress;
use super::send::{Sender, Sent};
use crate::commands::{Context, cache_folder};
use crate::exit::{CommandError, Exit, WithExit as _};
use crate::images_args::PushArgs;
use crate::interrupt;

/// From one look at the daemon to the next.
const POLL: Duration = Duration::from_secs(1);
/// How often it is looked whether somebody gave up.
const STEP: Duration = Duration::from_millis(50);
/// How often an image is tried to be sent.
const TRIES: u32 = 4;
/// The wait after the first try that failed; each further one is three times as long.
const FIRST_WAIT: Duration = Duration::from_secs(2);

/// An image under a name: the name may come to stand for another image, which is to be sent too.
type Key = (ImageTag, String);

/// What became of an image, as `--json` prints it.
#[derive(Debug, Clone, Serialize)]
struct Told {
    /// Its name in the registry.
    name: String,
    /// Its id.
    id: String,
    /// The digest by which the registry has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Whether the registry had it before.
    was_there: bool,
    /// Why it wasn't sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// How far an image is.
enum State {
    /// It is to be tried again then.
    Again { tries: u32, at: Instant },
    /// Nothing more is done with it.
    Settled(Told),
    /// Nobody has proven it with this cache.
    Unproven,
}

/// Watches a daemon for images of one repository.
struct Watch<'a> {
    sender: Sender<'a>,
    cache: &'a Path,
    known: BTreeMap<Key, State>,
    changed: Instant,
}

/// Runs the command. It succeeds if everything that was proven is in the registry.
pub(super) fn run(args: &PushArgs, repository: &str, context: Context) -> Result<Exit, CommandError> {
    let cache = cache_folder(args.cache.as_ref())?;
    let images = registry::repository(repository)?;
    let credentials = registry::credentials(&images)?;
    let cancel = interrupt::flag().exit(Exit::Machine)?;
    let sender = Sender {
        images: &images,
        credentials: credentials.as_ref(),
        registry: &args.registry,
        context,
        cancel: &cancel,
    };
    // A daemon that isn't there at all is an error; one that goes away later is waited for.
    held().map_err(daemon_error)?;
    context.terminal.status(&format!("sending the images of {images} that are built and proven; Ctrl-C ends it"));
    let mut watch = Watch { sender, cache: &cache, known: BTreeMap::new(), changed: Instant::now() };
    let is_whole = watch.run(args.until_idle.map(Duration::from_secs), &cancel)?;
    watch.end(is_whole)
}

impl Watch<'_> {
    /// Sends until somebody gives up, or nothing new came for so long; says whether nothing was left undone.
    fn run(&mut self, until_idle: Option<Duration>, cancel: &AtomicBool) -> Result<bool, CommandError> {
        let context = self.sender.context;
        let mut is_lost = false;
        loop {
            let mut is_waited_for = false;
            match held() {
                Ok(images) => {
                    is_lost = false;
                    for key in named(&images, self.sender.images) {
                        is_waited_for |= !self.look_at(&key)?;
                        if cancel.load(Ordering::Relaxed) {
                            return Ok(self.is_whole(&images));
                        }
                    }
                }
                Err(error) if !is_lost => {
                    is_lost = true;
                    context.terminal.status(&format!("{error}; waiting for the daemon"));
                }
                Err(_) => {}
            }
            if until_idle.is_some_and(|idle| !is_waited_for && self.changed.elapsed() >= idle) {
                return Ok(true);
            }
            let progress = Progress::new(context.terminal);
            let since = Instant::now();
            while since.elapsed() < POLL {
                if cancel.load(Ordering::Relaxed) {
                    return Ok(held().is_ok_and(|images| self.is_whole(&images)));
                }
                let idle = self.changed.elapsed().as_secs();
                progress.say(|| format!("{} images sent or there; nothing new for {idle} s", self.sent()));
                thread::sleep(STEP);
            }
        }
    }

    /// Does what is to be done with an image, and says whether it is settled.
    fn look_at(&mut self, key: &Key) -> Result<bool, CommandError> {
        let tries = match self.known.get(key) {
            Some(State::Settled(_)) => return Ok(true),
            Some(State::Again { at, .. }) if Instant::now() < *at => return Ok(false),
            Some(State::Again { tries, .. }) => *tries,
            Some(State::Unproven) | None => 0,
        };
        let (tag, id) = key;
        let terminal = self.sender.context.terminal;
        let name = format!("{}:{tag}", self.sender.images);
        if ProvenImage::of(self.cache, id).is_none() {
            if self.known.insert(key.clone(), State::Unproven).is_none() {
                terminal.status(&format!(
                    "{name} isn't sent: nobody has proven it with the cache `{}`; `isobench images build` does",
                    self.cache.display()
                ));
            }
            return Ok(true);
        }
        let (digest, was_there, problem) = match self.sender.send(id, tag)? {
            Sent::There(digest) => (Some(digest), true, None),
            Sent::Whole(digest) => (Some(digest), false, None),
            Sent::Cancelled => return Ok(false),
            Sent::Failed(why) if tries + 1 < TRIES => {
                let wait = FIRST_WAIT * 3_u32.pow(tries);
                terminal.status(&format!("{name}: {why}; trying again in {} s", wait.as_secs()));
                self.known.insert(key.clone(), State::Again { tries: tries + 1, at: Instant::now() + wait });
                return Ok(false);
            }
            Sent::Failed(why) => (None, false, Some(why)),
        };
        match (&digest, &problem) {
            (Some(_), _) if self.sender.context.json => {}
            (Some(digest), _) => terminal.data(&format!("{digest}  {name}\n")),
            (None, problem) => terminal.status(&format!("{name}: {}", problem.as_deref().unwrap_or_default())),
        }
        self.changed = Instant::now();
        let told = Told { name, id: id.clone(), digest, was_there, problem };
        self.known.insert(key.clone(), State::Settled(told));
        Ok(true)
    }

    fn told(&self) -> Vec<&Told> {
        let mut all = Vec::new();
        for state in self.known.values() {
            match state {
                State::Settled(told) => all.push(told),
                State::Again { .. } | State::Unproven => {}
            }
        }
        all
    }

    fn sent(&self) -> usize {
        self.told().iter().filter(|told| told.digest.is_some()).count()
    }

    /// Returns whether nothing that is proven is left to be sent.
    fn is_whole(&self, images: &[HeldImage]) -> bool {
        let is_settled = |key: &Key| match self.known.get(key) {
            Some(State::Settled(_)) => true,
            Some(State::Again { .. }) => false,
            Some(State::Unproven) | None => ProvenImage::of(self.cache, &key.1).is_none(),
        };
        named(images, self.sender.images).iter().all(is_settled)
    }

    fn end(&self, is_whole: bool) -> Result<Exit, CommandError> {
        let context = self.sender.context;
        let told = self.told();
        if context.json {
            context.print_json(&told)?;
        }
        let failed = told.iter().filter(|told| told.problem.is_some()).count();
        let there = told.iter().filter(|told| told.was_there).count();
        let status = format!("{} images sent, {there} were there already, {failed} failed", self.sent() - there);
        context.terminal.status(&status);
        if !is_whole {
            context.terminal.status("interrupted before everything was sent: the same command goes on");
        }
        Ok(match (is_whole, failed) {
            (false, _) => Exit::Interrupted,
            (true, 0) => Exit::Success,
            (true, _) => Exit::SomeFailed,
        })
    }
}

fn held() -> Result<Vec<HeldImage>, ContainerError> {
    ask(async { Daemon::connect().await?.held_images(IMAGE_LABEL).await })
}

/// Returns the images that have a tag in a repository, the oldest first, each with its tags.
fn named(images: &[HeldImage], repository: &Repository) -> Vec<Key> {
    let tag_in = |name: &String| match parse_reference(name) {
        Ok((found, Target::Tag(tag)))
            if found.registry() == repository.registry() && found.name() == repository.name() =>
        {
            Some(tag)
        }
        Ok(_) | Err(_) => None,
    };
    let keys = |image: &HeldImage| {
        let id = image.id.clone();
        image.names.iter().filter_map(tag_in).map(move |tag| (tag, id.clone())).collect::<Vec<_>>()
    };
    images.iter().flat_map(keys).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_as_docker_writes_them() {
        let image = |id: &str, names: &[&str]| HeldImage {
            id: id.to_owned(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            ..HeldImage::default()
        };
        let images = [
            image("a", &["team/engine:one", "docker.io/team/engine:two", "team/other:one"]),
            image("b", &["127.0.0.1:5000/team/engine:one", "not a name"]),
        ];
        let of = |text: &str| {
            let keys = named(&images, &Repository::parse(text).unwrap());
            keys.iter().map(|(tag, id)| format!("{id}:{tag}")).collect::<Vec<_>>()
        };
        assert_eq!(of("team/engine"), ["a:one", "a:two"]);
        assert_eq!(of("127.0.0.1:5000/team/engine"), ["b:one"]);
        assert!(of("registry.example/team/engine").is_empty());
    }
}
