//! Docker Hub's own interface: the tags of a public repository with their sizes and dates, which costs no pull.

use std::collections::{BTreeMap, BTreeSet};

use isobench_schema::ids::{ImageDigest, ImageTag};
use isobench_schema::images::ListedTag;
use serde::Deserialize;

use super::address::{Address, encode};
use super::authorities::Authorities;
use super::error::RegistryError;
use super::http::{Ask, Http, Notice, Patience, Reply, Tls};
use super::reference::Repository;
use super::tags::MOST_PAGES;

/// Where Docker Hub answers.
pub const HUB: &str = "https://hub.docker.com/v2";
/// The most tags that Docker Hub gives at once.
const PAGE: u32 = 100;
/// The longest page, in bytes: each tag has a record for each platform.
const LONGEST_PAGE: u64 = 16 << 20;

/// What Docker Hub says of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HubTags {
    /// The tags, sorted.
    pub tags: Vec<ListedTag>,
    /// How many it says that there are.
    pub announced: Option<u64>,
    /// The pages that they came in.
    pub pages: u64,
}

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    count: Option<u64>,
    #[serde(default)]
    next: Option<String>,
    results: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    #[serde(default)]
    full_size: Option<u64>,
    #[serde(default)]
    digest: Option<String>,
    #[serde(default)]
    tag_last_pushed: Option<String>,
    #[serde(default)]
    last_updated: Option<String>,
    #[serde(default)]
    images: Vec<Image>,
}

#[derive(Deserialize)]
struct Image {
    #[serde(default)]
    os: Option<String>,
    #[serde(default)]
    architecture: Option<String>,
    #[serde(default)]
    variant: Option<String>,
    #[serde(default)]
    digest: Option<String>,
}

/// Returns every tag of a repository that Docker Hub shows to anybody; `progress` is told how many there are so far. `hub` is
/// its address, [`HUB`] unless another place answers like it.
///
/// # Errors
/// Returns an error if it can't be asked, doesn't show the repository, leads elsewhere or never comes to an end.
pub fn hub_tags(
    hub: &Address,
    repository: &Repository,
    (patience, notice): (Patience, Notice),
    progress: &dyn Fn(usize),
) -> Result<HubTags, RegistryError> {
    let http = Http::new(patience, notice, Tls::of(hub), &Authorities::default())?;
    let (namespace, name) = repository.name().split_once('/').unwrap_or(("library", repository.name()));
    let path = format!(
        "{}/namespaces/{}/repositories/{}/tags?page_size={PAGE}",
        hub.path().trim_end_matches('/'),
        encode(namespace),
        encode(name)
    );
    let first = hub.join(&path).map_err(|source| RegistryError::Address { address: hub.to_string(), source })?;
    let mut address = first.clone();
    let mut seen = BTreeSet::from([first.to_string()]);
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    let (mut announced, mut pages) = (None, 0);
    loop {
        let reply = http.ask(&Ask::get(&address, "application/json"), None)?;
        let page = page(reply, repository)?;
        pages += 1;
        announced = page.count.or(announced);
        let before = rows.len();
        rows.extend(page.results.into_iter().map(|row| (row.name.clone(), row)));
        progress(rows.len());
        let Some(next) = page.next.filter(|next| !next.is_empty()) else { break };
        let next = next_page(&address, &next, &first)?;
        let endless = |why: String| RegistryError::Endless { address: first.to_string(), why };
        if !seen.insert(next.to_string()) {
            return Err(endless(format!("its pages go round, and lead to `{next}` again")));
        }
        if rows.len() == before {
            return Err(endless("its pages lead on without a tag that wasn't known".to_owned()));
        }
        if pages >= MOST_PAGES {
            return Err(endless(format!("it has more than {MOST_PAGES} pages")));
        }
        if rows.len() > patience.most_tags {
            return Err(endless(format!("it has more than {} tags", patience.most_tags)));
        }
        address = next;
    }
    let tags = rows.into_values().filter_map(listed).collect();
    Ok(HubTags { tags, announced, pages })
}

fn next_page(address: &Address, next: &str, first: &Address) -> Result<Address, RegistryError> {
    let found = address.join(next).map_err(|source| RegistryError::Address { address: address.to_string(), source })?;
    // The older path of the same list may stand there too.
    let is_list = found.path().ends_with("/tags") || found.path().ends_with("/tags/");
    if !found.is_same_place(first) || !is_list {
        let (address, target) = (address.to_string(), found.to_string());
        return Err(RegistryError::LeadsElsewhere { address, target, why: "which isn't the same list" });
    }
    Ok(found)
}

fn page(reply: Reply, repository: &Repository) -> Result<Page, RegistryError> {
    let address = reply.address.to_string();
    match reply.status {
        200 => {}
        401 | 403 | 404 => {
            return Err(RegistryError::NoRepository {
                registry: reply.address.authority().to_owned(),
                repository: repository.name().to_owned(),
                said: reply.said(),
            });
        }
        status => return Err(RegistryError::Status { address, status, said: reply.said() }),
    }
    let content_type = reply.content_type().unwrap_or_default();
    let bytes = reply.bytes(LONGEST_PAGE)?;
    serde_json::from_slice(&bytes).map_err(|error| RegistryError::NotARegistry {
        address,
        why: format!("it is of the type `{content_type}` and no page of Docker Hub: {error}"),
    })
}

/// What has no tag's name is left out.
fn listed(row: Row) -> Option<ListedTag> {
    let tag = ImageTag::new(row.name).ok()?;
    let digest = |text: Option<&String>| text.and_then(|text| ImageDigest::new(text.as_str()).ok());
    // Of an image for one platform, older records have the digest there only.
    let only = match row.images.as_slice() {
        [only] => digest(only.digest.as_ref()),
        _ => None,
    };
    let platform = |image: &Image| {
        let known = |part: &Option<String>| part.clone().filter(|part| !part.is_empty() && part != "unknown");
        let (os, architecture) = (known(&image.os)?, known(&image.architecture)?);
        Some(
            known(&image.variant)
                .map_or_else(|| format!("{os}/{architecture}"), |variant| format!("{os}/{architecture}/{variant}")),
        )
    };
    Some(ListedTag {
        tag,
        digest: digest(row.digest.as_ref()).or(only),
        bytes: row.full_size,
        platforms: row.images.iter().filter_map(platform).collect(),
        pushed: row.tag_last_pushed.or(row.last_updated),
        problem: None,
    })
}
