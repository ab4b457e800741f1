//! Fetching a file into the content-addressed cache: resumed where it broke off, verified by its hash.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::CommitId;
use isobench_schema::input::{HubReference, InputFile};
use ureq::http::Method;

use super::hash;
use super::http::{Answer, Http, Question, Redirects};
use super::hub::{file_path, refused};
use crate::disk::Room;
use crate::environment::lock::FolderLock;
use crate::environment::{EnvironmentError, PrepareContext, Stop};

/// How much is read at once.
const CHUNK: usize = 1 << 18;
/// After how many bytes it is looked again whether there is room.
const LOOK: u64 = 64 << 20;
/// How many bytes must come within the patience for a read, or the hub is taken for stalled.
const LEAST: u64 = 16 << 10;
/// How often progress is told.
const TELL: Duration = Duration::from_secs(2);

/// A file to fetch.
pub(super) struct Fetch<'a> {
    pub(super) http: &'a Http,
    pub(super) reference: &'a HubReference,
    pub(super) commit: &'a CommitId,
    pub(super) file: &'a InputFile,
    pub(super) room: Room<'a>,
}

/// How a body ended.
enum Read {
    /// At its end, or broken off: what came is in the file.
    Ended(Option<String>),
    /// Too little came in too long a time.
    TooSlow(String),
    Stopped(Stop),
}

/// Puts a file into the folder of blobs, if it isn't there yet, and returns its place. `told` is told how many of its bytes
/// are there.
pub(super) fn blob(
    fetch: &Fetch<'_>,
    blobs: &Path,
    context: &PrepareContext<'_>,
    told: &mut dyn FnMut(u64),
) -> Result<PathBuf, Stop> {
    let place = blobs.join(fetch.file.hash.as_str());
    let _lock = FolderLock::take(&place.with_extension("lock"), context)?;
    if place.is_file() {
        match super::here::is_it(&place, fetch.file, context.cancel) {
            Some(true) => return Ok(place),
            Some(false) => fs::remove_file(&place).map_err(EnvironmentError::write(&place))?,
            None => context.check_cancelled()?,
        }
    }
    let part = place.with_extension("part");
    for is_last in [false, true] {
        download(fetch, &part, context, told)?;
        match hash::has_hash(&part, &fetch.file.hash, context.cancel).map_err(EnvironmentError::read(&part))? {
            None => context.check_cancelled()?,
            Some(true) => {
                keep(&part, &place).map_err(EnvironmentError::write(&place))?;
                return Ok(place);
            }
            Some(false) => {
                // What was there before may have been at fault, so that it is fetched anew once.
                fs::remove_file(&part).map_err(EnvironmentError::write(&part))?;
                if is_last {
                    return Err(damaged(fetch).into());
                }
            }
        }
    }
    Err(damaged(fetch).into())
}

fn damaged(fetch: &Fetch<'_>) -> Failure {
    let Fetch { file, reference, .. } = fetch;
    let message = format!("`{}` of the {reference} isn't what its hash says, also when it is fetched again", file.path);
    let line =
        EvidenceLine::new("hub", None, &format!("expected {} bytes with the hash {}", file.bytes, file.hash.as_str()));
    Failure::new(FailureStage::Acquire, FailureClass::InputDamaged, message).with_evidence([line])
}

/// Makes a part that was verified a blob, at once and durably.
fn keep(part: &Path, place: &Path) -> io::Result<()> {
    File::open(part)?.sync_all()?;
    fs::set_permissions(part, Permissions::from_mode(0o444))?;
    fs::rename(part, place)?;
    match place.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// Fetches what of a file isn't in its part yet.
fn download(
    fetch: &Fetch<'_>,
    part: &Path,
    context: &PrepareContext<'_>,
    told: &mut dyn FnMut(u64),
) -> Result<(), Stop> {
    let Fetch { http, file, reference, commit, room } = fetch;
    let failed = EnvironmentError::write(part);
    let mut out = OpenOptions::new().create(true).append(true).open(part).map_err(&failed)?;
    let (mut tries, mut pause, mut furthest) = (0, http.patience().pause, 0);
    loop {
        let mut have = out.metadata().map_err(&failed)?.len();
        if have > file.bytes {
            out.set_len(0).map_err(&failed)?;
            have = 0;
        }
        told(have);
        if have == file.bytes {
            return out.sync_all().map_err(failed).map_err(Stop::from);
        }
        room.make(file.bytes - have, context)?;
        let path = file_path(reference, commit, &file.path);
        let question = Question { method: Method::GET, path, from: have, redirects: Redirects::Followed };
        let mut answer = http.ask(&question, context)?;
        let mut is_slow = false;
        let why = match answer.status {
            200 | 206 => {
                if answer.status == 200 || begins(&answer) != Some(have) {
                    out.set_len(0).map_err(&failed)?;
                }
                // A part that doesn't begin where it was asked for is useless.
                if answer.status == 206 && begins(&answer) != Some(have) {
                    "it sends another part than was asked for".to_owned()
                } else {
                    match body(fetch, &mut answer, &mut out, (part, context), told) {
                        Read::Ended(why) => why.unwrap_or_else(|| "the body ends early".to_owned()),
                        Read::TooSlow(why) => {
                            is_slow = true;
                            why
                        }
                        Read::Stopped(stop) => return Err(stop),
                    }
                }
            }
            416 => {
                out.set_len(0).map_err(&failed)?;
                "it has no such part of the file".to_owned()
            }
            _ => return Err(refused(&mut answer, reference, Some(&file.path), http).into()),
        };
        let now = out.metadata().map_err(&failed)?.len();
        if now == file.bytes {
            continue;
        }
        // Whoever gets further each time is given all the time that it takes.
        if now > furthest && !is_slow {
            furthest = now;
            (tries, pause) = (0, http.patience().pause);
        }
        tries += 1;
        if tries >= http.patience().tries {
            let why =
                format!("`{}` of the {reference} breaks off after {now} of {} bytes: {why}", file.path, file.bytes);
            return Err(http.offline(&why, None).into());
        }
        Http::wait(pause, context)?;
        pause = pause.saturating_mul(2);
    }
}

/// Returns from which byte on an answer's part is, if it says so.
fn begins(answer: &Answer) -> Option<u64> {
    answer.head("content-range")?.strip_prefix("bytes ")?.split('-').next()?.parse().ok()
}

/// Writes a body to the end of a part.
fn body(
    fetch: &Fetch<'_>,
    answer: &mut Answer,
    out: &mut File,
    (part, context): (&Path, &PrepareContext<'_>),
    told: &mut dyn FnMut(u64),
) -> Read {
    let stop = |error: io::Error| {
        let error = EnvironmentError::write(part)(error);
        if error.is_disk_full() {
            // The record of the run needs the room more than a part that can be fetched again.
            let _ = fs::remove_file(part);
        }
        Read::Stopped(error.into())
    };
    let mut have = match out.metadata() {
        Ok(data) => data.len(),
        Err(error) => return stop(error),
    };
    let patience = fetch.http.patience().read;
    let (mut chunk, mut told_at, mut looked_at) = (vec![0_u8; CHUNK], Instant::now(), have);
    let (mut since, mut since_bytes) = (Instant::now(), have);
    loop {
        if let Err(stop) = context.check_cancelled() {
            return Read::Stopped(stop);
        }
        let read = match answer.body.read(&mut chunk) {
            Ok(0) => return Read::Ended(None),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Read::Ended(Some(error.to_string())),
        };
        have = have.saturating_add(read as u64);
        if have > fetch.file.bytes {
            return Read::Ended(Some("more bytes come than the file has".to_owned()));
        }
        if let Err(error) = out.write_all(chunk.get(..read).unwrap_or_default()) {
            return stop(error);
        }
        if told_at.elapsed() >= TELL {
            told(have);
            told_at = Instant::now();
        }
        if since.elapsed() >= patience {
            if have - since_bytes < LEAST && have < fetch.file.bytes {
                let bytes = have - since_bytes;
                return Read::TooSlow(format!("only {bytes} bytes came in {} s", patience.as_secs()));
            }
            (since, since_bytes) = (Instant::now(), have);
        }
        if have - looked_at >= LOOK {
            looked_at = have;
            if let Err(stop) = fetch.room.make(fetch.file.bytes - have, context) {
                return Read::Stopped(stop);
            }
        }
    }
}
