//! Addresses of pages and files: joined, taken apart, and decoded.

/// Returns the address that `link` stands for on the page `base`, without its fragment. `None` if it isn't HTTP.
pub(super) fn join(base: &str, link: &str) -> Option<String> {
    let link = link.split('#').next().unwrap_or(link).trim();
    let (scheme, rest) = base.split_once("://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let joined = if is_http(link) {
        link.to_owned()
    } else if let Some(rest) = link.strip_prefix("//") {
        format!("{scheme}://{rest}")
    } else if link.starts_with('/') {
        format!("{scheme}://{host}{}", resolved(link))
    } else if link.split('/').next().is_some_and(|first| first.contains(':')) {
        // Some other scheme, such as `javascript:`.
        return None;
    } else {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{host}{}", resolved(&format!("{folder}/{link}")))
    };
    (is_http(&joined) && host_of(&joined).is_some()).then_some(joined)
}

fn is_http(address: &str) -> bool {
    address.starts_with("https://") || address.starts_with("http://")
}

/// Returns a path without `.` and `..`.
fn resolved(path: &str) -> String {
    let (path, query) = path.find('?').map_or((path, ""), |at| path.split_at(at));
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("/{}{query}", parts.join("/"))
}

/// Returns the host of an address, with its port, without a user's name.
pub(super) fn host_of(address: &str) -> Option<&str> {
    let (_, rest) = address.split_once("://")?;
    let host = rest.split(['/', '?', '#']).next()?;
    let host = host.rsplit('@').next()?;
    (!host.is_empty()).then_some(host)
}

/// Returns the last part of an address's path, decoded: the file's name.
pub fn file_name(address: &str) -> Option<String> {
    let path = address.split(['?', '#']).next()?;
    let name = decoded(path.rsplit('/').next()?)?;
    (!name.is_empty() && !name.contains('/') && !name.contains('\0')).then_some(name)
}

/// Returns a text whose `%XX` stand for bytes, decoded.
pub(super) fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        if *first == b'%' {
            let digits = std::str::from_utf8(after.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = after.get(2..)?;
        } else {
            bytes.push(*first);
            rest = after;
        }
    }
    String::from_utf8(bytes).ok()
}

/// Returns an address that may be shown and stored: without a user's name and password.
pub(super) fn shown(address: &str) -> String {
    match (address.split_once("://"), host_of(address)) {
        (Some((scheme, rest)), Some(host)) => {
            let path = rest.find(['/', '?', '#']).and_then(|at| rest.get(at..)).unwrap_or_default();
            format!("{scheme}://{host}{path}")
        }
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_joined_to_their_page() {
        let base = "https://wheels.example/abc/vllm/";
        for (link, expected) in [
            ("../vllm-1%2Bx.whl#sha256=0", Some("https://wheels.example/abc/vllm-1%2Bx.whl")),
            ("vllm-1.whl", Some("https://wheels.example/abc/vllm/vllm-1.whl")),
            ("/x/./y.whl", Some("https://wheels.example/x/y.whl")),
            ("//other.example/y.whl", Some("https://other.example/y.whl")),
            ("http://other.example/y.whl?a=b", Some("http://other.example/y.whl?a=b")),
            ("../../../../../x.whl", Some("https://wheels.example/x.whl")),
            ("javascript:alert(1)", None),
            ("file:///etc/passwd", None),
            ("https:///nohost", None),
        ] {
            assert_eq!(join(base, link).as_deref(), expected, "{link}");
        }
    }

    #[test]
    fn parts_of_addresses_are_found() {
        assert_eq!(host_of("https://user:secret@h.example:8080/x"), Some("h.example:8080"));
        assert_eq!(shown("https://user:secret@h.example/x?y"), "https://h.example/x?y");
        assert_eq!(file_name("https://h/a/vllm-1%2Bcu118.whl?x#y").as_deref(), Some("vllm-1+cu118.whl"));
        assert_eq!(file_name("https://h/a/%2e%2e%2fx"), None);
        assert_eq!(decoded("%zz"), None);
        assert_eq!(decoded("%2"), None);
    }
}
