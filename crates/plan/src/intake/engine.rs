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

/// Returns the address of a repository that a row names as `OWNER/NAME` or as a URL.
pub(crate) fn address(text: &str) -> Option<String> {
    if text.starts_with("https://") || text.starts_with("ssh://") || text.starts_with("git@") {
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
