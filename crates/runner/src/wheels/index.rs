//! Package indexes: the files that a page of one names, in HTML (PEP 503) or in JSON (PEP 691), or that lie in a folder.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use isobench_schema::ids::Digest;
use serde::Deserialize;

use super::address;
use super::name::{Target, WheelName};

/// A wheel that an index names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexFile {
    /// The file's name.
    pub file: String,
    /// What the name says.
    pub name: WheelName,
    /// Where it is: an address, or a path in a folder.
    pub place: String,
    /// Its digest, if the index says it.
    pub sha256: Option<Digest>,
    /// Whether it was withdrawn.
    pub yanked: bool,
}

/// What an index says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Listing {
    /// Its wheels, in its order.
    pub wheels: Vec<IndexFile>,
    /// Names that aren't wheels' and links that lead nowhere, with the reason.
    pub skipped: Vec<String>,
}

/// Why a page can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadIndexError {
    /// It isn't JSON of the form that it says it has.
    #[error("the index `{place}` can't be read as JSON")]
    Json {
        /// The page.
        place: String,
        /// Why.
        #[source]
        source: serde_json::Error,
    },
    /// It says that it is of a form that isn't known.
    #[error("the index `{place}` has the version {version}, and only 1 is known")]
    Version {
        /// The page.
        place: String,
        /// Its version.
        version: String,
    },
    /// A folder can't be read.
    #[error("failed to read `{place}`")]
    Folder {
        /// The folder.
        place: String,
        /// Why.
        #[source]
        source: io::Error,
    },
}

#[derive(Deserialize)]
struct Page {
    meta: Meta,
    #[serde(default)]
    files: Vec<PageFile>,
}

#[derive(Deserialize)]
struct Meta {
    #[serde(rename = "api-version")]
    api_version: String,
}

#[derive(Deserialize)]
struct PageFile {
    filename: String,
    url: String,
    #[serde(default)]
    hashes: BTreeMap<String, String>,
    #[serde(default)]
    yanked: serde_json::Value,
}

/// Reads a page that came from `place`; `is_json` is what its server said of it.
///
/// # Errors
/// Returns an error if the page isn't what it says it is. A link that isn't a wheel's is no error.
pub fn read_page(place: &str, text: &str, form: PageForm) -> Result<Listing, ReadIndexError> {
    match form {
        PageForm::Html => Ok(read_html(place, text)),
        PageForm::Json => {
            let json_error = |source| ReadIndexError::Json { place: address::shown(place), source };
            let page: Page = serde_json::from_str(text).map_err(json_error)?;
            if page.meta.api_version.split('.').next() != Some("1") {
                return Err(ReadIndexError::Version { place: address::shown(place), version: page.meta.api_version });
            }
            let mut listing = Listing::default();
            for file in page.files {
                let yanked = !matches!(file.yanked, serde_json::Value::Null | serde_json::Value::Bool(false));
                let sha256 = file.hashes.get("sha256").map(String::as_str);
                listing.add(place, &Link { file: file.filename, target: file.url, sha256, yanked });
            }
            Ok(listing)
        }
    }
}

/// In which form a page is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageForm {
    /// PEP 503.
    Html,
    /// PEP 691.
    Json,
}

/// A file as a page names it.
struct Link<'a> {
    file: String,
    target: String,
    sha256: Option<&'a str>,
    yanked: bool,
}

impl Listing {
    fn add(&mut self, page: &str, link: &Link<'_>) {
        let name = match WheelName::parse(&link.file) {
            Ok(name) => name,
            Err(error) => {
                self.skipped.push(error.to_string());
                return;
            }
        };
        let Some(place) = address::join(page, &link.target) else {
            self.skipped.push(format!("`{}` is at an address that isn't HTTP", link.file));
            return;
        };
        let Ok(sha256) = link.sha256.map(|text| Digest::new(text.to_ascii_lowercase())).transpose() else {
            self.skipped.push(format!("`{}` has a hash that is none", link.file));
            return;
        };
        self.wheels.push(IndexFile { file: link.file.clone(), name, place, sha256, yanked: link.yanked });
    }

    /// Returns the newest wheel of a distribution that fits and wasn't withdrawn.
    pub fn newest(&self, distribution: &str, target: &Target) -> Option<&IndexFile> {
        let wanted = super::name::normalised(distribution);
        let fits = |file: &&IndexFile| !file.yanked && file.name.distribution == wanted && file.name.fits(target);
        self.wheels.iter().filter(fits).max_by(|one, other| one.name.version.cmp(&other.name.version))
    }
}

/// Lists the wheels in a folder, by name.
///
/// # Errors
/// Returns an error if the folder can't be read.
pub fn read_folder(folder: &Path) -> Result<Listing, ReadIndexError> {
    let failed = |source| ReadIndexError::Folder { place: folder.display().to_string(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_type().map_err(failed)?.is_file() {
            names.push(entry.file_name());
        }
    }
    names.sort_unstable();
    let mut listing = Listing::default();
    for file in names {
        let place = folder.join(&file).display().to_string();
        let file = file.to_string_lossy().into_owned();
        match WheelName::parse(&file) {
            Ok(name) => listing.wheels.push(IndexFile { file, name, place, sha256: None, yanked: false }),
            Err(error) => listing.skipped.push(error.to_string()),
        }
    }
    Ok(listing)
}

/// Finds the links of a page. Everything else on it is none of our business, so that no whole parser is needed.
fn read_html(place: &str, text: &str) -> Listing {
    let mut listing = Listing::default();
    let lower = text.to_ascii_lowercase();
    let mut at = 0;
    while let Some(found) = lower.get(at..).and_then(|rest| rest.find("<a")) {
        at += found + 2;
        let is_anchor = lower.get(at..).is_some_and(|rest| rest.starts_with(|next: char| next.is_ascii_whitespace()));
        if !is_anchor {
            continue;
        }
        let Some((attributes, end)) = text.get(at..).and_then(read_attributes) else { break };
        at += end;
        let Some(href) = attributes.get("href") else { continue };
        let inner = text.get(at..).unwrap_or_default();
        let inner = inner.get(..inner.find('<').unwrap_or(inner.len())).unwrap_or_default();
        let shown = unescaped(inner.trim());
        // The text is the name; some static pages leave it out or shorten it.
        let file = if is_wheel(&shown) { Some(shown) } else { address::file_name(href) };
        let Some(file) = file.filter(|file| !file.is_empty()) else { continue };
        let sha256 = href.split_once("#sha256=").map(|(_, hash)| hash.split('&').next().unwrap_or(hash));
        let yanked = attributes.contains_key("data-yanked");
        listing.add(place, &Link { file, target: href.clone(), sha256, yanked });
    }
    listing
}

fn is_wheel(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|end| end == "whl")
}

/// Reads the attributes of a tag up to its end; returns them with the length that was read.
fn read_attributes(text: &str) -> Option<(BTreeMap<String, String>, usize)> {
    let mut attributes = BTreeMap::new();
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        let start = rest.find(|letter: char| !letter.is_ascii_whitespace() && letter != '/')?;
        at += start;
        let rest = text.get(at..)?;
        if rest.starts_with('>') {
            return Some((attributes, at + 1));
        }
        let length = rest.find(|letter: char| letter.is_ascii_whitespace() || "=>/".contains(letter))?.max(1);
        let name = rest.get(..length)?.to_ascii_lowercase();
        at += length;
        let rest = text.get(at..)?;
        let Some(value) = rest.trim_start().strip_prefix('=') else {
            attributes.insert(name, String::new());
            continue;
        };
        let value = value.trim_start();
        at = text.len() - value.len();
        let (value, length) = if let quote @ ('"' | '\'') = value.chars().next()? {
            let inner = value.get(1..)?;
            let end = inner.find(quote)?;
            (inner.get(..end)?, end + 2)
        } else {
            let end = value.find(|letter: char| letter.is_ascii_whitespace() || letter == '>')?;
            (value.get(..end)?, end)
        };
        attributes.insert(name, unescaped(value));
        at += length;
    }
}

fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(rest.get(..at).unwrap_or_default());
        rest = rest.get(at..).unwrap_or_default();
        let known = [
            ("&amp;", "&"),
            ("&lt;", "<"),
            ("&gt;", ">"),
            ("&quot;", "\""),
            ("&#43;", "+"),
            ("&#x27;", "'"),
            ("&#39;", "'"),
        ];
        let known = known.iter().find(|(escape, _)| rest.starts_with(escape));
        let (letter, length) = known.map_or(("&", 1), |(escape, letter)| (letter, escape.len()));
        plain.push_str(letter);
        rest = rest.get(length..).unwrap_or_default();
    }
    plain.push_str(rest);
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASH: &str = "0000000000000000000000000000000000000000000000000000000000000001";

    fn files(listing: &Listing) -> Vec<(&str, &str, bool, bool)> {
        listing
            .wheels
            .iter()
            .map(|file| (file.file.as_str(), file.place.as_str(), file.sha256.is_some(), file.yanked))
            .collect()
    }

    #[test]
    fn the_links_of_a_page_in_html_are_found() {
        let page = format!(
            "<!DOCTYPE html><html><body><abbr>x</abbr>\n\
             <a href=\"../vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl#sha256={HASH}\">vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl</a><br/>\n\
             <A data-yanked='' HREF='vllm-0.6.6%2Bcu118-cp38-abi3-manylinux1_x86_64.whl'>vllm…</A>\n\
             <a href=vllm-0.5-cp38-abi3-any.whl>vllm-0.5-cp38-abi3-any.whl</a>\n\
             <a href=\"vllm-0.4.tar.gz\">vllm-0.4.tar.gz</a> <a name=\"top\">x</a>\n\
             <a href=\"ftp://h/vllm-1-py3-none-any.whl\">vllm-1-py3-none-any.whl</a>\n\
             <a href=\"x-1-py3-none-any.whl#sha256=short\">x-1-py3-none-any.whl</a>"
        );
        let listing = read_page("https://h.example/abc/vllm/", &page, PageForm::Html).unwrap();
        let expected = [
            (
                "vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl",
                "https://h.example/abc/vllm-1.0.0.dev-cp38-abi3-manylinux1_x86_64.whl",
                true,
                false,
            ),
            (
                "vllm-0.6.6+cu118-cp38-abi3-manylinux1_x86_64.whl",
                "https://h.example/abc/vllm/vllm-0.6.6%2Bcu118-cp38-abi3-manylinux1_x86_64.whl",
                false,
                true,
            ),
            ("vllm-0.5-cp38-abi3-any.whl", "https://h.example/abc/vllm/vllm-0.5-cp38-abi3-any.whl", false, false),
        ];
        assert_eq!(files(&listing), expected);
        assert_eq!(listing.skipped.len(), 3, "{:?}", listing.skipped);
        assert_eq!(read_page("https://h/", "<a href=\"unfinished", PageForm::Html).unwrap(), Listing::default());
    }

    #[test]
    fn the_files_of_a_page_in_json_are_found_and_the_newest_that_fits_is_taken() {
        let page = serde_json::json!({
            "meta": { "api-version": "1.1" },
            "name": "vllm",
            "files": [
                { "filename": "vllm-0.10.0-cp38-abi3-manylinux1_x86_64.whl", "url": "a.whl", "hashes": { "sha256": HASH } },
                { "filename": "vllm-0.9.2-cp38-abi3-manylinux1_x86_64.whl", "url": "https://f.example/b.whl", "hashes": {} },
                { "filename": "vllm-0.11.0-cp38-abi3-manylinux1_x86_64.whl", "url": "c.whl", "hashes": {}, "yanked": "broken" },
                { "filename": "vllm-0.12.0-cp38-abi3-manylinux_2_31_aarch64.whl", "url": "d.whl", "hashes": {} },
                { "filename": "vllm-0.12.0.tar.gz", "url": "e.tar.gz", "hashes": {} },
            ],
        });
        let listing = read_page("https://h.example/simple/vllm/", &page.to_string(), PageForm::Json).unwrap();
        assert_eq!(listing.wheels.len(), 4);
        let target = Target { python_minor: 12, machine: "x86_64".to_owned(), glibc_minor: 35 };
        // Versions are compared as versions: 0.10 is newer than 0.9.
        let newest = listing.newest("VLLM", &target).unwrap();
        assert_eq!((newest.name.version.to_string().as_str(), newest.sha256.is_some()), ("0.10.0", true));
        assert_eq!(listing.newest("other", &target), None);
        let other = page.to_string().replace("1.1", "2.0");
        let error = read_page("https://u:p@h.example/", &other, PageForm::Json).unwrap_err().to_string();
        assert_eq!(error, "the index `https://h.example/` has the version 2.0, and only 1 is known");
        assert!(read_page("https://h.example/", "<html>", PageForm::Json).is_err());
    }

    #[test]
    fn a_folder_is_an_index_too() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b-1-py3-none-any.whl", "a-2-py3-none-any.whl", "notes.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let listing = read_folder(folder.path()).unwrap();
        let names: Vec<&str> = listing.wheels.iter().map(|file| file.name.distribution.as_str()).collect();
        assert_eq!((names, listing.skipped.len()), (vec!["a", "b"], 1));
        assert!(read_folder(&folder.path().join("none")).is_err());
    }
}
