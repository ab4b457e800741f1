//! Paths as a dataset writes them: relative, with `/`, resolved without touching a file system.

/// Returns whether `text` is a repository's URL or a host's short form (`user@host:path`), not a path.
pub(crate) fn is_url(text: &str) -> bool {
    let colon_before_slash = text.find(':').is_some_and(|colon| text.find('/').is_none_or(|slash| colon < slash));
    text.contains("://") || colon_before_slash
}

/// Returns `path`, which stands in a file of `folder`, relative to the base folder: without `.` and `..`.
///
/// Returns `None` if it is absolute or leads out of the base folder.
pub(crate) fn inside(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.contains('\\') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// Returns the absolute path of `path`, which stands in a file of `base`/`folder`.
pub(crate) fn absolute(base: &str, folder: &str, path: &str) -> String {
    let whole = if path.starts_with('/') { path.to_owned() } else { format!("{base}/{folder}/{path}") };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    format!("/{}", parts.join("/"))
}

/// Returns the folder of a file, `""` for a file of the base folder.
pub(crate) fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns whether `path` is relative and stays inside the tree that it is used in.
pub(crate) fn stays_inside(path: &str) -> bool {
    !path.is_empty() && inside("", path).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_resolved_without_a_file_system() {
        for (folder, path, expected) in [
            ("tasks/a", "x.patch", Some("tasks/a/x.patch")),
            ("tasks/a", "../shared/./x.patch", Some("tasks/shared/x.patch")),
            ("", "x", Some("x")),
            ("tasks", "../../etc/passwd", None),
            ("tasks", "/etc/passwd", None),
            ("tasks", "..\\x", None),
        ] {
            assert_eq!(inside(folder, path).as_deref(), expected, "{folder} {path}");
        }
        assert_eq!(absolute("/data/set/", "a", "../../repo"), "/data/repo");
        assert_eq!(absolute("/data", "a", "/repo/."), "/repo");
    }

    #[test]
    fn a_url_is_not_a_path() {
        for url in ["https://example.org/x.git", "git@example.org:x/y.git", "file:///x"] {
            assert!(is_url(url), "{url}");
        }
        for path in ["repo", "../repo", "/repo", "a/b:c"] {
            assert!(!is_url(path), "{path}");
        }
    }
}
