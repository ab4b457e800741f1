//! The tags of a repository, page by page, until the registry says that there are no more.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::address::Address;
use super::error::RegistryError;
use super::http::{Ask, Reply};
use super::registry::Registry;

/// How many tags are asked for at once. Registries give fewer if they like.
const PAGE: usize = 1000;
/// The most pages without a tag, where each leads to a next one.
const MOST_EMPTY_PAGES: u32 = 8;
/// The longest page, in bytes: a thousand tags of the longest kind, several times over.
const LONGEST_PAGE: u64 = 16 << 20;
/// The most pages of a list: as many as a million tags come in, a hundred in each.
pub(super) const MOST_PAGES: u64 = 10_000;
/// The longest tag, in bytes.
const LONGEST_TAG: usize = 128;

/// The tags of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tags {
    /// The tags.
    pub tags: BTreeSet<String>,
    /// The pages that they came in.
    pub pages: u64,
}

#[derive(Deserialize)]
struct Page {
    /// Docker's registry says `null` where there are none.
    #[serde(default)]
    tags: Option<Vec<String>>,
}

impl Registry {
    /// Returns every tag of the repository; `progress` is told how many there are so far.
    ///
    /// # Errors
    /// Returns an error if the registry can't be asked, refuses, leads elsewhere or never comes to an end.
    pub fn tags(&self, progress: &dyn Fn(usize)) -> Result<Tags, RegistryError> {
        self.all_tags(progress).map_err(|error| self.http.without_secrets(error))
    }

    fn all_tags(&self, progress: &dyn Fn(usize)) -> Result<Tags, RegistryError> {
        let first = self.address("tags/list")?.with_query("n", &PAGE.to_string());
        let mut address = first.clone();
        let mut seen = BTreeSet::from([first.to_string()]);
        let mut tags = BTreeSet::new();
        let (mut pages, mut empty) = (0, 0);
        loop {
            let reply = self.send(&Ask::get(&address, "application/json"))?;
            let reply = self.listed(reply)?;
            let links = reply.headers("link");
            let page = page(reply)?;
            pages += 1;
            let before = tags.len();
            let (last, length) = (page.last().cloned(), page.len());
            tags.extend(page.into_iter().filter(|tag| tag.len() <= LONGEST_TAG));
            progress(tags.len());
            let is_new = tags.len() > before;
            let next = match (next_link(&links), last) {
                (Some(link), _) => self.next(&address, &link)?,
                // A full page without a word of a next one: some registries forget it.
                (None, Some(last)) if length == PAGE && is_new => first.with_query("last", &last),
                (None, _) => return Ok(Tags { tags, pages }),
            };
            let endless = |why: String| RegistryError::Endless { address: first.to_string(), why };
            if !seen.insert(next.to_string()) {
                return Err(endless(format!("its pages go round, and lead to `{next}` again")));
            }
            empty += u32::from(length == 0);
            if !is_new && length > 0 || empty > MOST_EMPTY_PAGES {
                return Err(endless("its pages lead on without a tag that wasn't known".to_owned()));
            }
            if pages >= MOST_PAGES {
                return Err(endless(format!("it has more than {MOST_PAGES} pages")));
            }
            if tags.len() > self.http.patience().most_tags {
                return Err(endless(format!("it has more than {} tags", self.http.patience().most_tags)));
            }
            address = next;
        }
    }

    fn listed(&self, reply: Reply) -> Result<Reply, RegistryError> {
        match reply.status {
            200 => Ok(reply),
            404 => Err(RegistryError::NoRepository {
                registry: self.repository().registry().to_owned(),
                repository: self.repository().name().to_owned(),
                said: reply.said(),
            }),
            _ => Err(self.unexpected(reply)),
        }
    }

    /// Returns where a page leads, if that is the same list.
    fn next(&self, address: &Address, link: &str) -> Result<Address, RegistryError> {
        let next =
            address.join(link).map_err(|source| RegistryError::Address { address: address.to_string(), source })?;
        if !next.is_same_place(&self.base) || next.path() != address.path() {
            return Err(RegistryError::LeadsElsewhere {
                address: address.to_string(),
                target: next.to_string(),
                why: "which isn't the same list",
            });
        }
        Ok(next)
    }
}

fn page(reply: Reply) -> Result<Vec<String>, RegistryError> {
    let address = reply.address.to_string();
    let content_type = reply.content_type().unwrap_or_default();
    let bytes = reply.bytes(LONGEST_PAGE)?;
    let page: Page = serde_json::from_slice(&bytes).map_err(|error| RegistryError::NotARegistry {
        address,
        why: format!("it is of the type `{content_type}` and no list of tags: {error}"),
    })?;
    Ok(page.tags.unwrap_or_default())
}

/// Finds `<..>; rel="next"` in the lines of a header.
fn next_link(lines: &[String]) -> Option<String> {
    lines.iter().flat_map(|line| links(line)).find_map(|(target, parameters)| {
        let is_next = parameters.split(';').any(|parameter| {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let names = value.trim().trim_matches('"').split(' ');
            name.trim().eq_ignore_ascii_case("rel") && names.into_iter().any(|name| name.eq_ignore_ascii_case("next"))
        });
        is_next.then_some(target)
    })
}

/// Splits a header into targets and their parameters.
fn links(line: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once('<') {
        let Some((target, after)) = after.split_once('>') else { break };
        let end = after.find('<').unwrap_or(after.len());
        let (parameters, next) = after.split_at(end);
        found.push((target.to_owned(), parameters.trim_end_matches([',', ' ']).to_owned()));
        rest = next;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_among_links() {
        for (line, expected) in [
            (r#"</v2/a/tags/list?last=x&n=5>; rel="next""#, Some("/v2/a/tags/list?last=x&n=5")),
            ("</x>; rel=next", Some("/x")),
            (r#"</a>; rel="prev", </b>; title="t"; rel="last next""#, Some("/b")),
            (r#"</a>; rel="previous""#, None),
            ("</a", None),
            ("", None),
        ] {
            assert_eq!(next_link(&[line.to_owned()]).as_deref(), expected, "{line}");
        }
    }
}
