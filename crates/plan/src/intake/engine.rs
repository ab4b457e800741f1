//! Which engine a row is about, by what names it: a project, a repository, a pull request, a path, a command.

use isobench_schema::environment::EngineKind;

/// An engine that datasets of commits are about.
struct Known {
    engine: EngineKind,
    /// The name of its repository, also of forks.
    name: &'static str,
    /// Its repository.
    repository: &'static str,
    /// What only its own programs are called by.
    programs: &'static [&'static str],
}

const KNOWN: [Known; 2] = [
    Known {
        engine: EngineKind::Vllm,
        name: "vllm",
        repository: "https://github.com/vllm-project/vllm.git",
        programs: &["benchmarks/benchmark_", "vllm bench", "vllm serve", "vllm.entrypoints"],
    },
    Known {
        engine: EngineKind::Sglang,
        name: "sglang",
        repository: "https://github.com/sgl-project/sglang.git",
        programs: &["-m sglang.", "sglang/bench_", "sglang.launch_server"],
    },
];

/// Returns the engine's own repository.
pub(crate) fn repository(engine: EngineKind) -> Option<&'static str> {
    KNOWN.iter().find(|known| known.engine == engine).map(|known| known.repository)
}

/// Returns the names of the engines, for people.
pub(crate) fn names() -> String {
    KNOWN.iter().map(|known| format!("`{}`", known.name)).collect::<Vec<_>>().join(" or ")
}

/// Returns the engine that a name, a repository, a URL or a path names, or `None` if it names none or two.
pub(crate) fn named(text: &str) -> Option<EngineKind> {
    let text = text.to_ascii_lowercase();
    let words: Vec<&str> = text.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    one(|known| words.contains(&known.name))
}

/// Returns the engine whose program a command runs.
pub(crate) fn commanded(command: &str) -> Option<EngineKind> {
    one(|known| known.programs.iter().any(|program| command.contains(program)))
}

fn one(fits: impl Fn(&Known) -> bool) -> Option<EngineKind> {
    let mut fitting = KNOWN.iter().filter(|known| fits(known));
    let first = fitting.next()?;
    fitting.next().is_none().then_some(first.engine)
}

/// Checks that a text is the address of a repository that may be read: an absolute path, or a URL of https or ssh.
///
/// # Errors
/// Returns what is wrong with it, as the end of a sentence.
pub(crate) fn check_address(text: &str) -> Result<(), &'static str> {
    if text.starts_with('-') {
        return Err("starts with `-` and could be read as an option");
    }
    if text.chars().any(char::is_control) {
        return Err("has control characters");
    }
    if text.starts_with('/') {
        return Ok(());
    }
    if text.contains("::") {
        return Err("names a remote helper; use an absolute path, `https://` or `ssh://`");
    }
    let (host, path) = match text.split_once("://") {
        Some(("https" | "ssh", rest)) => rest.split_once('/').unwrap_or((rest, "")),
        Some(_) => return Err("has a transport that isn't allowed; use an absolute path, `https://` or `ssh://`"),
        None => match text.split_once(':') {
            // The short form of ssh.
            Some((host, path)) if host.starts_with("git@") => (host, path),
            Some(_) | None => return Err("is neither an absolute path nor a URL of `https://` or `ssh://`"),
        },
    };
    let host = host.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with('-') || path.starts_with('-') {
        return Err("has no valid host or path");
    }
    Ok(())
}

/// Returns the address of a repository that a row names as `OWNER/NAME` or as a URL.
pub(crate) fn address(text: &str) -> Option<String> {
    if !text.starts_with('/') && check_address(text).is_ok() {
        return Some(text.to_owned());
    }
    let (owner, name) = text.split_once('/')?;
    let plain = |part: &str| {
        !part.is_empty()
            && !part.starts_with(['.', '-'])
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    (plain(owner) && plain(name)).then(|| format!("https://github.com/{owner}/{name}.git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_is_named_in_many_ways() {
        for (text, expected) in [
            ("vllm", Some(EngineKind::Vllm)),
            ("vLLM", Some(EngineKind::Vllm)),
            ("neuralmagic/vllm", Some(EngineKind::Vllm)),
            ("https://github.com/sgl-project/sglang/pull/6994", Some(EngineKind::Sglang)),
            ("sglang_core", Some(EngineKind::Sglang)),
            ("vllm-project__vllm-PR-4894", Some(EngineKind::Vllm)),
            ("vllm-against-sglang", None),
            ("pytorch/pytorch", None),
        ] {
            assert_eq!(named(text), expected, "{text}");
        }
    }

    #[test]
    fn a_command_names_the_engine_by_its_program() {
        for (command, expected) in [
            ("python benchmarks/benchmark_serving.py --model x", Some(EngineKind::Vllm)),
            ("VLLM_USE_V1=1 vllm bench serve", Some(EngineKind::Vllm)),
            ("python3 -m sglang.bench_serving --backend vllm", Some(EngineKind::Sglang)),
            ("python run.py", None),
        ] {
            assert_eq!(commanded(command), expected, "{command}");
        }
    }

    #[test]
    fn an_address_can_be_no_option_and_no_program() {
        for text in ["/repos/vllm", "https://example.org/x.git", "ssh://git@example.org/x", "git@example.org:x.git"] {
            assert_eq!(check_address(text), Ok(()), "{text}");
        }
        for (text, expected) in [
            ("--upload-pack=x", "starts with `-`"),
            ("ext::sh -c x", "names a remote helper"),
            ("https://example.org/a\nb", "has control characters"),
            ("http://example.org/x", "has a transport"),
            ("../vllm", "is neither"),
            ("", "is neither"),
            ("ssh://-oProxyCommand=x/y", "has no valid host"),
            ("https:///x", "has no valid host"),
        ] {
            let reason = check_address(text).expect_err(text);
            assert!(reason.starts_with(expected), "{text}: {reason}");
        }
    }

    #[test]
    fn a_short_name_of_a_repository_becomes_its_address() {
        for (text, expected) in [
            ("vllm-project/vllm", Some("https://github.com/vllm-project/vllm.git")),
            ("https://example.org/x.git", Some("https://example.org/x.git")),
            ("/path/to/repos/vllm", None),
            ("../vllm", None),
            ("vllm", None),
        ] {
            assert_eq!(address(text).as_deref(), expected, "{text}");
        }
    }
}
