//! What the registry answers, and how it breaks what it answers.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::request::AskedRequest;
use super::{RegistryFault, Shared, image, tokens};

/// How long a client that says nothing is waited for, and one that reads nothing.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// How long an answer that never comes is kept back, if nobody ends the registry before.
const SILENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether the registry ends.
const TICK: Duration = Duration::from_millis(20);

/// What is spoken over.
pub(super) trait Stream: Read + Write {}

impl<T: Read + Write> Stream for T {}

/// An answer.
struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Answer {
    fn new(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into() }.with("content-type", content_type)
    }

    fn json(status: u16, body: &Value) -> Self {
        Self::new(status, "application/json", body.to_string())
    }

    fn error(status: u16, code: &str, message: &str) -> Self {
        Self::json(status, &json!({ "errors": [{ "code": code, "message": message }] }))
    }

    fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

/// Serves one connection in the open.
pub(super) fn serve_open(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    serve(&mut stream, shared)
}

/// Serves one connection: one request.
pub(super) fn serve(stream: &mut dyn Stream, shared: &Shared) -> io::Result<()> {
    let Some(asked) = AskedRequest::read(stream)? else { return Ok(()) };
    shared.held().asked.push(asked.clone());
    let answer = answer(&asked, shared);
    send(stream, &asked, answer, shared)
}

fn concerns(at: &str, asked: &AskedRequest) -> bool {
    asked.target.contains(at)
}

fn answer(asked: &AskedRequest, shared: &Shared) -> Answer {
    if let Some(answer) = shared.settings.faults.iter().find_map(|fault| instead(fault, asked, shared)) {
        return answer;
    }
    if asked.path() == "/token" {
        let (status, body) = tokens::token(asked, shared);
        return Answer::new(status, "application/json", body);
    }
    let repository = &shared.settings.repository;
    let (namespace, name) = repository.split_once('/').unwrap_or(("library", repository));
    if asked.path() == format!("/hub/v2/namespaces/{namespace}/repositories/{name}/tags") {
        return hub(asked, shared);
    }
    if asked.path().starts_with("/hub/") {
        return Answer::json(404, &json!({ "message": "object not found", "errinfo": {} }));
    }
    if let Some(challenge) = tokens::challenge(asked, shared) {
        return Answer::error(401, "UNAUTHORIZED", "authentication required").with("www-authenticate", challenge);
    }
    let Some(rest) = asked.path().strip_prefix(&format!("/v2/{repository}/")) else {
        return Answer::error(404, "NAME_UNKNOWN", "repository name not known to registry");
    };
    match rest.split_once('/') {
        Some(("tags", "list")) => tags(asked, shared),
        Some(("manifests", reference)) if asked.method == "PUT" => put_manifest(asked, reference, shared),
        Some(("manifests", reference)) => manifest(asked, reference, shared),
        Some(("blobs", "uploads/")) => {
            Answer::new(202, "text/plain", "").with("location", format!("/v2/{repository}/blobs/uploads/1?_state=x"))
        }
        Some(("blobs", upload)) if upload.starts_with("uploads/") => put_blob(asked, shared),
        Some(("blobs", digest)) => match shared.held().blobs.get(digest) {
            Some(bytes) => blob(asked, bytes, &shared.settings.faults),
            None => Answer::error(404, "BLOB_UNKNOWN", "blob unknown to registry"),
        },
        _ => Answer::error(404, "UNSUPPORTED", "there is nothing here"),
    }
}

/// Returns a blob, or the part of it that is asked for.
fn blob(asked: &AskedRequest, bytes: &[u8], faults: &[RegistryFault]) -> Answer {
    let kind = "application/octet-stream";
    let from = asked.from().filter(|_| !faults.contains(&RegistryFault::NoRanges));
    let Some(from) = from else { return Answer::new(200, kind, bytes) };
    if faults.contains(&RegistryFault::RefusedRanges) || from >= bytes.len() {
        return Answer::error(416, "SIZE_INVALID", "range not satisfiable");
    }
    let said = if faults.contains(&RegistryFault::OtherRanges) { 0 } else { from };
    let is_lie = faults.contains(&RegistryFault::LyingRanges);
    // The lie is as long as the truth.
    let sent = if is_lie { bytes.get(..bytes.len() - from) } else { bytes.get(said..) };
    let range = format!("bytes {said}-{}/{}", bytes.len() - 1, bytes.len());
    Answer::new(206, kind, sent.unwrap_or_default()).with("content-range", range)
}

/// Returns what a fault answers in the place of what was asked.
fn instead(fault: &RegistryFault, asked: &AskedRequest, shared: &Shared) -> Option<Answer> {
    if let RegistryFault::Throttle { times, header } = fault {
        let mut held = shared.held();
        if held.throttled >= *times {
            return None;
        }
        held.throttled += 1;
        let answer = Answer::error(429, "TOOMANYREQUESTS", "toomanyrequests: too many requests");
        return Some(header.iter().fold(answer, |answer, (name, value)| answer.with(name, value.as_str())));
    }
    if let RegistryFault::Instead { at, status, content_type, body } = fault
        && concerns(at, asked)
    {
        return Some(Answer::new(*status, content_type, body.as_str()));
    }
    if let RegistryFault::Redirect { at, to } = fault
        && concerns(at, asked)
    {
        return Some(Answer::new(307, "text/plain", "").with("location", to.as_str()));
    }
    None
}

/// Returns where a fault leads from every page; `round` is where the first page is.
fn next_of(fault: &RegistryFault, round: &str) -> Option<String> {
    if let RegistryFault::NextIs(next) = fault {
        return Some(next.clone());
    }
    (*fault == RegistryFault::LoopingPages).then(|| round.to_owned())
}

fn tags(asked: &AskedRequest, shared: &Shared) -> Answer {
    let settings = &shared.settings;
    let wants = |fault: &RegistryFault| settings.faults.contains(fault);
    if wants(&RegistryFault::NoListing) {
        return Answer::error(403, "DENIED", "requested access to the resource is denied");
    }
    let name = &settings.repository;
    let page = |tags: Vec<String>| Answer::json(200, &json!({ "name": name, "tags": tags }));
    let link = |last: &str| format!("</v2/{name}/tags/list?n={}&last={last}>; rel=\"next\"", settings.page);
    let last = asked.query("last");
    if wants(&RegistryFault::EndlessPages) {
        let number: u64 = last.as_deref().and_then(|last| last.strip_prefix('t')?.parse().ok()).unwrap_or(0);
        let tags = (number + 1..=number + 100).map(|number| format!("t{number}")).collect();
        return page(tags).with("link", link(&format!("t{}", number + 100)));
    }
    let held = shared.held();
    let asked_for = asked.query("n").and_then(|text| text.parse().ok()).unwrap_or(settings.page);
    let later = held.tags.keys().filter(|tag| last.as_ref().is_none_or(|last| *tag > last));
    let found: Vec<String> = later.take(settings.page.min(asked_for)).cloned().collect();
    let is_more = held.tags.keys().next_back() != found.last() && !found.is_empty();
    let end = found.last().cloned().unwrap_or_default();
    let round = format!("/v2/{name}/tags/list?n=1000");
    let elsewhere = settings.faults.iter().find_map(|fault| next_of(fault, &round));
    let elsewhere = elsewhere.map(|next| format!("<{next}>; rel=\"next\""));
    let answer = page(found);
    match elsewhere {
        Some(elsewhere) => answer.with("link", elsewhere),
        None if is_more && !wants(&RegistryFault::NoLinks) => answer.with("link", link(&end)),
        None => answer,
    }
}

fn hub(asked: &AskedRequest, shared: &Shared) -> Answer {
    let size = asked.query("page_size").and_then(|text| text.parse().ok()).unwrap_or(10).min(100);
    let number: usize = asked.query("page").and_then(|text| text.parse().ok()).unwrap_or(1);
    let held = shared.held();
    let row = |(tag, digest): (&String, &String)| {
        json!({
            "name": tag,
            "full_size": held.manifests.get(digest).map(|(_, bytes)| bytes.len()),
            "digest": digest,
            "images": [{ "architecture": "amd64", "os": "linux", "variant": null, "digest": digest, "status": "active" }],
            "tag_status": "active",
            "last_updated": "2026-01-02T03:04:05.678901Z",
        })
    };
    let skipped = (number - 1) * size;
    let results: Vec<Value> = held.tags.iter().skip(skipped).take(size).map(row).collect();
    let is_more = held.tags.len() > skipped + size;
    let next = is_more.then(|| format!("{}{}?page={}&page_size={size}", shared.origin(), asked.path(), number + 1));
    let round = format!("{}{}", shared.origin(), asked.target);
    let elsewhere = shared.settings.faults.iter().find_map(|fault| next_of(fault, &round));
    let page = json!({ "count": held.tags.len(), "next": elsewhere.or(next), "previous": null, "results": results });
    Answer::json(200, &page).with("x-ratelimit-limit", "180").with("x-ratelimit-remaining", "179")
}

fn manifest(asked: &AskedRequest, reference: &str, shared: &Shared) -> Answer {
    let mut held = shared.held();
    let limit = shared
        .settings
        .faults
        .iter()
        .find_map(|fault| if let RegistryFault::Pulls { limit } = fault { Some(*limit) } else { None });
    let limited = |answer: Answer, pulled: u64| match limit {
        Some(limit) => answer
            .with("ratelimit-limit", format!("{limit};w=21600"))
            .with("ratelimit-remaining", format!("{};w=21600", limit.saturating_sub(pulled))),
        None => answer,
    };
    if asked.method == "GET" && limit.is_some() {
        if limit <= Some(held.pulled) {
            return Answer::error(429, "TOOMANYREQUESTS", "You have reached your pull rate limit")
                .with("retry-after", "21600");
        }
        held.pulled += 1;
    }
    let digest = held.tags.get(reference).cloned().unwrap_or_else(|| reference.to_owned());
    let answer = match held.manifests.get(&digest) {
        Some((kind, bytes)) => Answer::new(200, kind, bytes.clone()).with("docker-content-digest", digest.as_str()),
        None => Answer::error(404, "MANIFEST_UNKNOWN", "manifest unknown"),
    };
    limited(answer, held.pulled)
}

fn put_manifest(asked: &AskedRequest, reference: &str, shared: &Shared) -> Answer {
    let digest = image::digest(&asked.body);
    if !shared.settings.faults.contains(&RegistryFault::Forgetful) {
        let kind = "application/vnd.oci.image.manifest.v1+json".to_owned();
        let mut held = shared.held();
        held.manifests.insert(digest.clone(), (kind, asked.body.clone()));
        if !reference.contains(':') {
            held.tags.insert(reference.to_owned(), digest.clone());
        }
    }
    Answer::new(201, "text/plain", "").with("docker-content-digest", digest)
}

fn put_blob(asked: &AskedRequest, shared: &Shared) -> Answer {
    let digest = image::digest(&asked.body);
    if asked.query("digest").as_ref() != Some(&digest) {
        return Answer::error(400, "DIGEST_INVALID", "provided digest did not match uploaded content");
    }
    shared.held().blobs.insert(digest, asked.body.clone());
    Answer::new(201, "text/plain", "")
}

/// Sends an answer, as whole as the faults leave it.
fn send(stream: &mut dyn Stream, asked: &AskedRequest, mut answer: Answer, shared: &Shared) -> io::Result<()> {
    let faults = || shared.settings.faults.iter();
    if faults().any(|fault| matches!(fault, RegistryFault::Silent { at } if concerns(at, asked))) {
        wait(SILENCE, shared);
        return Ok(());
    }
    if faults().any(|fault| matches!(fault, RegistryFault::OtherBytes { at } if concerns(at, asked))) {
        for byte in &mut answer.body {
            *byte = byte.to_ascii_uppercase();
        }
    }
    let is_endless = faults().any(|fault| matches!(fault, RegistryFault::EndlessBody { at } if concerns(at, asked)));
    let length = (!is_endless).then(|| ("content-length".to_owned(), answer.body.len().to_string()));
    let lines: Vec<String> =
        answer.headers.iter().chain(&length).map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {} said\r\nconnection: close\r\n{}", answer.status, lines.concat());
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    if asked.method == "HEAD" {
        return Ok(());
    }
    if is_endless {
        return endless(stream, &answer.body, shared);
    }
    for fault in faults() {
        if let RegistryFault::DieInBody { at, after } = fault
            && concerns(at, asked)
            && *after < answer.body.len()
        {
            return stream.write_all(answer.body.get(..*after).unwrap_or_default());
        }
        if let RegistryFault::Slow { at, gap } = fault
            && concerns(at, asked)
        {
            return drip(stream, &answer.body, *gap, shared);
        }
    }
    stream.write_all(&answer.body)
}

/// Sends a body byte by byte.
fn drip(stream: &mut dyn Stream, body: &[u8], gap: Duration, shared: &Shared) -> io::Result<()> {
    for byte in body {
        if shared.ends() {
            return Ok(());
        }
        stream.write_all(&[*byte])?;
        thread::sleep(gap);
    }
    Ok(())
}

/// Sends a body, and white space after it until nobody reads any more.
fn endless(stream: &mut dyn Stream, body: &[u8], shared: &Shared) -> io::Result<()> {
    stream.write_all(body)?;
    let blank = vec![b' '; 64 * 1024];
    while !shared.ends() {
        stream.write_all(&blank)?;
    }
    Ok(())
}

fn wait(duration: Duration, shared: &Shared) {
    let mut left = duration;
    while !shared.ends() && !left.is_zero() {
        thread::sleep(TICK.min(left));
        left = left.saturating_sub(TICK);
    }
}
