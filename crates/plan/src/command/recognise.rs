//! Which program a command runs: behind wrappers, under any path, as a script, a module or a subcommand.

use isobench_schema::tool::Tool;

use super::words::{SimpleCommand, Word};
use crate::nearest::nearest;

/// A command whose program is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recognised<'w> {
    /// The program.
    pub tool: Tool,
    /// How the command names it.
    pub named: Named,
    /// Variables set before it, also by `env`.
    pub variables: Vec<(String, String)>,
    /// What stands around it, such as `timeout 600`, each with its own words.
    pub wrappers: Vec<String>,
    /// Its arguments.
    pub arguments: &'w [Word],
}

/// How a command names a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// By a script's path, as written.
    Script(String),
    /// By a module's name.
    Module(String),
    /// By a subcommand.
    Subcommand,
}

/// A program that isn't known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unknown {
    /// Its name as written.
    pub name: String,
    /// The known name that is nearest.
    pub nearest: Option<&'static str>,
    /// Whether it is a script.
    pub is_script: bool,
}

/// Scripts by their file names.
const SCRIPTS: [(&str, Tool); 12] = [
    ("benchmark_serving.py", Tool::BenchmarkServing),
    ("benchmark_throughput.py", Tool::BenchmarkThroughput),
    ("benchmark_latency.py", Tool::BenchmarkLatency),
    ("benchmark_prefix_caching.py", Tool::BenchmarkPrefixCaching),
    ("api_server.py", Tool::VllmServe),
    ("bench_serving.py", Tool::SglangBenchServing),
    ("bench_one_batch.py", Tool::SglangBenchOneBatch),
    ("bench_latency.py", Tool::SglangBenchOneBatch),
    ("bench_one_batch_server.py", Tool::SglangBenchOneBatchServer),
    ("bench_offline_throughput.py", Tool::SglangBenchOfflineThroughput),
    ("launch_server.py", Tool::SglangLaunchServer),
    ("one_batch.py", Tool::SglangBenchOneBatch),
];

/// Modules that `python -m` starts.
const MODULES: [(&str, Tool); 17] = [
    ("vllm.entrypoints.openai.api_server", Tool::VllmServe),
    ("vllm.entrypoints.api_server", Tool::VllmServe),
    ("benchmarks.benchmark_serving", Tool::BenchmarkServing),
    ("benchmarks.benchmark_throughput", Tool::BenchmarkThroughput),
    ("benchmarks.benchmark_latency", Tool::BenchmarkLatency),
    ("benchmarks.benchmark_prefix_caching", Tool::BenchmarkPrefixCaching),
    ("sglang.bench_serving", Tool::SglangBenchServing),
    ("sglang.benchmark.serving", Tool::SglangBenchServing),
    ("sglang.bench_one_batch", Tool::SglangBenchOneBatch),
    ("sglang.bench_latency", Tool::SglangBenchOneBatch),
    ("sglang.benchmark.one_batch", Tool::SglangBenchOneBatch),
    ("sglang.bench_one_batch_server", Tool::SglangBenchOneBatchServer),
    ("sglang.bench_offline_throughput", Tool::SglangBenchOfflineThroughput),
    ("sglang.benchmark.offline_throughput", Tool::SglangBenchOfflineThroughput),
    ("sglang.launch_server", Tool::SglangLaunchServer),
    ("sglang.srt.entrypoints.http_server", Tool::SglangLaunchServer),
    ("sglang.srt.server", Tool::SglangLaunchServer),
];

/// Subcommands, with the program that has them.
const SUBCOMMANDS: [(&[&str], Tool); 5] = [
    (&["vllm", "bench", "serve"], Tool::VllmBenchServe),
    (&["vllm", "bench", "throughput"], Tool::VllmBenchThroughput),
    (&["vllm", "bench", "latency"], Tool::VllmBenchLatency),
    (&["vllm", "serve"], Tool::VllmServe),
    (&["sglang", "serve"], Tool::SglangLaunchServer),
];

/// What runs another program and leaves what it measures alone: its name, its options that take a value of their own, and how
/// many words follow the options before the program.
const WRAPPERS: [(&str, &[&str], usize); 15] = [
    ("time", &[], 0),
    ("nohup", &[], 0),
    ("exec", &[], 0),
    ("command", &[], 0),
    ("sudo", &["-u", "-g"], 0),
    ("stdbuf", &["-i", "-o", "-e"], 0),
    ("unbuffer", &[], 0),
    ("timeout", &["-s", "-k", "--signal", "--kill-after"], 1),
    ("nice", &["-n", "--adjustment"], 0),
    ("ionice", &["-c", "-n", "--class", "--classdata"], 0),
    ("taskset", &[], 1),
    ("chrt", &[], 1),
    ("setsid", &[], 0),
    (
        "numactl",
        &[
            "-N",
            "-C",
            "-m",
            "-i",
            "-p",
            "-l",
            "--cpunodebind",
            "--physcpubind",
            "--membind",
            "--interleave",
            "--preferred",
        ],
        0,
    ),
    ("uv", &["--with", "--python", "-p", "--project", "--directory"], 1),
];

/// Options of Python that take a value of their own.
const PYTHON_VALUES: [&str; 2] = ["-X", "-W"];

/// Options of `torchrun` that take no value.
const TORCHRUN_SWITCHES: [&str; 4] = ["--standalone", "--no-python", "--run-path", "-h"];

/// Returns the program that a command runs.
///
/// # Errors
/// Returns the name of a program that isn't known.
pub fn recognise(command: &SimpleCommand) -> Result<Recognised<'_>, Unknown> {
    let mut view = View { words: &command.words, variables: command.variables.clone(), wrappers: Vec::new() };
    view.unwrap();
    let Some((first, rest)) = view.words.split_first() else {
        return Err(Unknown { name: String::new(), nearest: None, is_script: false });
    };
    let name = base_name(&first.text);
    if is_python(name) {
        view.words = rest;
        return view.python();
    }
    if name == "torchrun" {
        view.words = rest;
        return view.torchrun();
    }
    if let Some((words, tool)) = SUBCOMMANDS.into_iter().find(|(words, _)| starts_with(name, rest, words)) {
        let arguments = rest.get(words.len() - 1..).unwrap_or_default();
        return Ok(view.found(tool, Named::Subcommand, arguments));
    }
    if has_extension(name, "py") {
        view.words = rest;
        return view.script(&first.text);
    }
    let shown = match (name, rest.first()) {
        ("vllm" | "sglang", Some(next)) => {
            let second = rest.get(1).filter(|_| next.text == "bench").map_or("", |word| &word.text);
            format!("{name} {} {second}", next.text).trim_end().to_owned()
        }
        _ => first.text.clone(),
    };
    Err(Unknown { nearest: nearest_tool(&shown), name: shown, is_script: false })
}

/// The words that are left, and what was passed.
struct View<'w> {
    words: &'w [Word],
    variables: Vec<(String, String)>,
    wrappers: Vec<String>,
}

impl<'w> View<'w> {
    /// Passes everything that only runs another program.
    fn unwrap(&mut self) {
        while let Some((first, rest)) = self.words.split_first() {
            let name = base_name(&first.text);
            if name == "env" {
                self.words = rest;
                self.env();
            } else if let Some((_, valued, operands)) = WRAPPERS.into_iter().find(|(wrapper, ..)| *wrapper == name) {
                let options = option_words(rest, |option| valued.contains(&option));
                let end = (options + operands).min(rest.len());
                self.wrap(name, rest.get(..end).unwrap_or_default());
                self.words = rest.get(end..).unwrap_or_default();
            } else {
                return;
            }
        }
    }

    fn wrap(&mut self, name: &str, words: &[Word]) {
        let words: Vec<&str> = std::iter::once(name).chain(words.iter().map(|word| word.text.as_str())).collect();
        self.wrappers.push(words.join(" "));
    }

    /// Passes the options and variables of `env`.
    fn env(&mut self) {
        let options = option_words(self.words, |option| matches!(option, "-u" | "-C" | "--unset" | "--chdir"));
        if options > 0 {
            let words = self.words.get(..options).unwrap_or_default();
            self.wrap("env", words);
            self.take_away(words);
        }
        self.words = self.words.get(options..).unwrap_or_default();
        while let Some((first, rest)) = self.words.split_first() {
            let Some((name, value)) = first.text.split_once('=') else { return };
            self.variables.push((name.to_owned(), value.to_owned()));
            self.words = rest;
        }
    }

    /// Takes away the variables that the options of `env` take away.
    fn take_away(&mut self, options: &[Word]) {
        let mut words = options.iter().map(|word| word.text.as_str());
        while let Some(word) = words.next() {
            let name = match word {
                "-" | "-i" | "--ignore-environment" => {
                    self.variables.clear();
                    continue;
                }
                "-u" | "--unset" => words.next(),
                _ => word.strip_prefix("--unset=").or_else(|| word.strip_prefix("-u")),
            };
            self.variables.retain(|(known, _)| Some(known.as_str()) != name);
        }
    }

    /// Reads what follows `python`.
    fn python(mut self) -> Result<Recognised<'w>, Unknown> {
        while let Some((first, rest)) = self.words.split_first() {
            let text = first.text.as_str();
            self.words = rest;
            if text == "-m" {
                let Some((module, rest)) = rest.split_first() else { break };
                self.words = rest;
                return self.module(&module.text);
            }
            if let Some(module) = text.strip_prefix("-m").filter(|module| !module.is_empty()) {
                return self.module(module);
            }
            if PYTHON_VALUES.contains(&text) {
                self.words = rest.get(1..).unwrap_or_default();
            } else if text == "-c" || !text.starts_with('-') {
                return self.script(text);
            }
        }
        Err(Unknown { name: "python".to_owned(), nearest: None, is_script: false })
    }

    /// Reads what follows `torchrun`: its own options, then a script or `-m` and a module.
    fn torchrun(mut self) -> Result<Recognised<'w>, Unknown> {
        let end = self.words.iter().position(|word| matches!(word.text.as_str(), "-m" | "--module"));
        let options = option_words(self.words, |option| {
            !TORCHRUN_SWITCHES.contains(&option) && !matches!(option, "-m" | "--module")
        });
        let end = end.filter(|end| *end < options).unwrap_or(options);
        let own = self.words.get(..end).unwrap_or_default();
        self.wrap("torchrun", own);
        self.words = self.words.get(end..).unwrap_or_default();
        if self.words.first().is_some_and(|word| word.text == "--module") {
            self.words = self.words.get(1..).unwrap_or_default();
            let Some((module, rest)) = self.words.split_first() else { return self.python() };
            self.words = rest;
            return self.module(&module.text);
        }
        self.python()
    }

    fn module(self, module: &str) -> Result<Recognised<'w>, Unknown> {
        if matches!(module, "torch.distributed.run" | "torch.distributed.launch") {
            return self.torchrun();
        }
        if let Some((_, tool)) = MODULES.into_iter().find(|(name, _)| *name == module) {
            let arguments = self.words;
            return Ok(self.found(tool, Named::Module(module.to_owned()), arguments));
        }
        let main = match module {
            "vllm.entrypoints.cli.main" | "vllm.scripts" | "vllm" => Some("vllm"),
            _ => None,
        };
        if let Some((words, tool)) =
            main.and_then(|name| SUBCOMMANDS.into_iter().find(|(words, _)| starts_with(name, self.words, words)))
        {
            let arguments = self.words.get(words.len() - 1..).unwrap_or_default();
            return Ok(self.found(tool, Named::Subcommand, arguments));
        }
        Err(Unknown { name: module.to_owned(), nearest: nearest_tool(module), is_script: false })
    }

    fn script(self, path: &str) -> Result<Recognised<'w>, Unknown> {
        let name = base_name(path);
        if let Some((_, tool)) = SCRIPTS.into_iter().find(|(script, _)| *script == name) {
            let arguments = self.words;
            return Ok(self.found(tool, Named::Script(path.to_owned()), arguments));
        }
        // Without the extension, which every name has, and which would make all of them alike.
        let stem = |name: &'static str| name.strip_suffix(".py").unwrap_or(name);
        let near =
            nearest(name.strip_suffix(".py").unwrap_or(name), SCRIPTS.into_iter().map(|(script, _)| stem(script)));
        let nearest =
            near.and_then(|near| SCRIPTS.into_iter().map(|(script, _)| script).find(|name| stem(name) == near));
        Err(Unknown { name: path.to_owned(), nearest, is_script: has_extension(name, "py") })
    }

    fn found(self, tool: Tool, named: Named, arguments: &'w [Word]) -> Recognised<'w> {
        Recognised { tool, named, variables: self.variables, wrappers: self.wrappers, arguments }
    }
}

/// Returns how many words at the front are options, with the values of those that have one.
fn option_words(words: &[Word], has_value: impl Fn(&str) -> bool) -> usize {
    let mut count = 0;
    while let Some(word) = words.get(count).filter(|word| word.text.starts_with('-')) {
        count += 1;
        if word.text == "--" {
            break;
        }
        if has_value(&word.text) {
            count += 1;
        }
    }
    count.min(words.len())
}

fn starts_with(name: &str, rest: &[Word], words: &[&str]) -> bool {
    words.split_first().is_some_and(|(first, others)| {
        name == *first
            && rest.len() >= others.len()
            && others.iter().zip(rest).all(|(wanted, word)| word.text == *wanted)
    })
}

fn nearest_tool(name: &str) -> Option<&'static str> {
    let modules = MODULES.into_iter().map(|(module, _)| module);
    let near = nearest(name, Tool::ALL.iter().map(|tool| tool.as_str()));
    near.or_else(|| nearest(name, modules))
}

fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

fn has_extension(name: &str, extension: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, found)| found.eq_ignore_ascii_case(extension))
}

fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python").or_else(|| name.strip_prefix("pypy"));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

#[cfg(test)]
mod tests {
    use super::super::words::read;
    use super::*;

    /// Checks the tool, how it is named, its variables and wrappers, and its first argument.
    #[track_caller]
    fn check(text: &str, tool: Tool, before: &str) {
        let script = read(text).unwrap();
        let found = recognise(&script.commands[0]).unwrap_or_else(|unknown| panic!("{text:?}: {unknown:?}"));
        assert_eq!(found.tool, tool, "{text:?}");
        let variables = found.variables.iter().map(|(name, value)| format!("{name}={value}"));
        let shown: Vec<String> = variables.chain(found.wrappers.iter().cloned()).collect();
        assert_eq!(shown.join(", "), before, "{text:?}");
        assert_eq!(found.arguments.first().map(|word| word.text.as_str()), Some("--x"), "{text:?}");
    }

    #[test]
    fn a_program_is_known_under_every_name() {
        for (text, tool) in [
            ("python benchmarks/benchmark_serving.py --x", Tool::BenchmarkServing),
            ("python3.10 -u ./benchmark_serving.py --x", Tool::BenchmarkServing),
            (
                "/usr/bin/python3 -X dev -W ignore /home/ray/default/vllm_public/benchmarks/benchmark_latency.py --x",
                Tool::BenchmarkLatency,
            ),
            ("python benchmark/benchmark_latency.py --x", Tool::BenchmarkLatency),
            ("benchmarks/benchmark_throughput.py --x", Tool::BenchmarkThroughput),
            ("python3 benchmarks/benchmark_prefix_caching.py --x", Tool::BenchmarkPrefixCaching),
            ("python -m vllm.entrypoints.openai.api_server --x", Tool::VllmServe),
            ("python -mvllm.entrypoints.openai.api_server --x", Tool::VllmServe),
            ("vllm serve --x", Tool::VllmServe),
            ("vllm bench serve --x", Tool::VllmBenchServe),
            ("/opt/venv/bin/vllm bench throughput --x", Tool::VllmBenchThroughput),
            ("python -m vllm.entrypoints.cli.main bench latency --x", Tool::VllmBenchLatency),
            ("python3 -m sglang.bench_serving --x", Tool::SglangBenchServing),
            ("python3 -m sglang.benchmark.serving --x", Tool::SglangBenchServing),
            ("python3 -m sglang.bench_latency --x", Tool::SglangBenchOneBatch),
            ("python python/sglang/bench_one_batch_server.py --x", Tool::SglangBenchOneBatchServer),
            ("python3 -m sglang.bench_offline_throughput --x", Tool::SglangBenchOfflineThroughput),
            ("python3 -m sglang.launch_server --x", Tool::SglangLaunchServer),
        ] {
            check(text, tool, "");
        }
    }

    #[test]
    fn wrappers_are_passed() {
        for (text, before) in [
            ("A=1 env -u Z B=2 vllm serve --x", "A=1, B=2, env -u Z"),
            ("time timeout -k 5 600 vllm serve --x", "time, timeout -k 5 600"),
            ("nohup numactl -N 0 --membind=0 vllm serve --x", "nohup, numactl -N 0 --membind=0"),
            ("taskset -c 0-7 nice -n 5 vllm serve --x", "taskset -c 0-7, nice -n 5"),
            ("uv run vllm serve --x", "uv run"),
            (
                "torchrun --nproc-per-node=2 --standalone -m vllm.entrypoints.openai.api_server --x",
                "torchrun --nproc-per-node=2 --standalone",
            ),
            ("torchrun --nproc-per-node 2 api_server.py --x", "torchrun --nproc-per-node 2"),
            ("python -m torch.distributed.run --nproc_per_node 2 api_server.py --x", "torchrun --nproc_per_node 2"),
        ] {
            check(text, Tool::VllmServe, before);
        }
    }

    #[test]
    fn an_unknown_program_is_named_with_the_nearest() {
        for (text, name, near, is_script) in [
            ("python moe_mem.py", "moe_mem.py", None, true),
            ("lm_eval --model vllm", "lm_eval", None, false),
            (
                "python benchmarks/benchmark_servin.py",
                "benchmarks/benchmark_servin.py",
                Some("benchmark_serving.py"),
                true,
            ),
            ("python -m sglang.bench_servng", "sglang.bench_servng", Some("sglang.bench_serving"), false),
            ("vllm bench serv --x", "vllm bench serv", Some("vllm bench serve"), false),
            ("python", "python", None, false),
            ("A=1 time", "", None, false),
        ] {
            let script = read(text).unwrap();
            let unknown = recognise(&script.commands[0]).unwrap_err();
            assert_eq!(
                (unknown.name.as_str(), unknown.nearest, unknown.is_script),
                (name, near, is_script),
                "{text:?}"
            );
        }
    }
}
