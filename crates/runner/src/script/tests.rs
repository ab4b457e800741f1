//! What is exported of a script, how it is started, and what becomes of patches and changes of it.

use super::*;
use crate::environment::fixture::Place;
use isobench_schema::script::ScriptOf;
use isobench_schema::task::ServerSpec;
use isobench_schema::tool::Tool;

fn script(tool: Tool, commit: &CommitId) -> Script {
    Script {
        tool,
        path: Script::usual_path(tool).unwrap().to_owned(),
        of: ScriptOf::Baseline,
        commit: Some(commit.clone()),
        arguments: vec!["--model".to_owned(), "{model}".to_owned()],
        output_json: true,
    }
}

fn server() -> ServerSpec {
    ServerSpec {
        command: Vec::new(),
        options: BTreeMap::new(),
        environment: BTreeMap::new(),
        pass_environment: Vec::new(),
        health: "/health".to_owned(),
        model: "/models/tiny".to_owned(),
        served_model_name: "tiny".to_owned(),
        allow_network: false,
    }
}

fn serve<'a>(spec: &'a ServerSpec, tree: &'a Path, folders: &'a BTreeMap<String, PathBuf>) -> Serve<'a> {
    Serve { spec, tree, python: None, host: "127.0.0.1", port: 0, caches: Path::new("/caches"), folders }
}

const FILES: &[(&str, &str)] = &[
    ("benchmarks/benchmark_latency.py", "import beside\n"),
    ("benchmarks/beside.py", ""),
    ("vllm/__init__.py", ""),
    ("vllm/benchmarks/latency.py", ""),
];

fn export(place: &Place, script: &Script, folder: &str) -> Result<ScriptFiles, Failure> {
    let repository = place.path("repository");
    let folder = place.path(folder);
    std::fs::create_dir(&folder).unwrap();
    let modules = ["vllm".to_owned()];
    ScriptFiles::export(script, repository.to_str().unwrap(), &modules, &folder, &place.context()).unwrap()
}

#[test]
fn only_the_scripts_own_folder_is_exported_and_its_command_leads_there() {
    let place = Place::new();
    let commit = place.repository(FILES).head();
    let python = Path::new("/venv/bin/python");
    let command = |files: &ScriptFiles, script: &Script, folder: &str| {
        let (spec, folders) = (server(), BTreeMap::new());
        let command = files.command(script, python, Path::new("/launch"), &serve(&spec, Path::new("/tree"), &folders));
        command.join(" ").replace(place.path(folder).to_str().unwrap(), "FOLDER")
    };
    let latency = script(Tool::BenchmarkLatency, &commit);
    let files = export(&place, &latency, "one").unwrap();
    let names: Vec<&str> = files.files.keys().map(String::as_str).collect();
    assert_eq!(names, ["benchmarks", "benchmarks/benchmark_latency.py", "benchmarks/beside.py"]);
    assert_eq!(files.count(), 2);
    let expected = "/venv/bin/python FOLDER/script/benchmarks/benchmark_latency.py --model /models/tiny --output-json \
                    /launch/script.result.json";
    assert_eq!(command(&files, &latency, "one"), expected);
    let subcommand = script(Tool::VllmBenchLatency, &commit);
    let files = export(&place, &subcommand, "two").unwrap();
    let expected = "/venv/bin/python FOLDER/launcher/launcher.py FOLDER/script vllm.benchmarks vllm.entrypoints.cli.main \
                    bench latency --model /models/tiny --output-json /launch/script.result.json";
    assert_eq!(command(&files, &subcommand, "two"), expected);
}

#[test]
fn a_script_that_is_not_there_or_hides_the_engine_is_refused() {
    let place = Place::new();
    let repository = place.repository(FILES);
    let commit = repository.head();
    let throughput = script(Tool::BenchmarkThroughput, &commit);
    let failure = export(&place, &throughput, "one").unwrap_err();
    assert_eq!(failure.class, FailureClass::RevisionNotFound, "{failure}");
    let hiding = repository.commit(&[("benchmarks/vllm/__init__.py", "")]);
    let failure = export(&place, &script(Tool::BenchmarkLatency, &hiding), "two").unwrap_err();
    let shown = (failure.class, failure.check.map(|broken| broken.name));
    assert_eq!(shown, (FailureClass::EnvironmentUnproven, Some(Check::StaticProof)), "{failure}");
}

#[test]
fn a_change_of_the_exported_files_is_found() {
    let place = Place::new();
    let commit = place.repository(FILES).head();
    let files = export(&place, &script(Tool::BenchmarkLatency, &commit), "one").unwrap();
    assert_eq!(files.verify_unmodified().unwrap(), Ok(()));
    std::fs::write(files.root.join("benchmarks/beside.py"), "import time\n").unwrap();
    let failure = files.verify_unmodified().unwrap().unwrap_err();
    assert_eq!(failure.class, FailureClass::EnvironmentModified);
    assert!(failure.evidence[0].text.contains("benchmarks/beside.py"), "{failure:?}");
}

#[test]
fn a_patch_of_a_script_is_seen_and_one_of_the_engine_is_not() {
    let place = Place::new();
    let commit = place.repository(FILES).head();
    let files = export(&place, &script(Tool::BenchmarkLatency, &commit), "one").unwrap();
    let patch = |file: &str| format!("diff --git a/{file} b/{file}\n--- a/{file}\n+++ b/{file}\n@@ -1 +1 @@\n-a\n+b\n");
    let found = files.patched(patch("benchmarks/benchmark_latency.py").as_bytes()).unwrap();
    assert_eq!(found.class, FailureClass::ScriptPatched);
    assert_eq!(files.patched(patch("vllm/engine.py").as_bytes()), None);
}

/// Runs the launcher on a package whose tree differs from the exported files.
#[test]
fn the_launcher_takes_benchmark_modules_from_the_exported_files_and_all_others_from_the_tree() {
    let place = Place::new();
    let repository = place.repository(&[
        ("vllm/benchmarks/__init__.py", "WHERE = 'exported'\n"),
        ("vllm/benchmarks/latency.py", "from vllm import NAME\nfrom vllm.benchmarks import WHERE\n"),
    ]);
    let files = export(&place, &script(Tool::VllmBenchLatency, &repository.head()), "one").unwrap();
    let tree = place.path("tree");
    for (path, text) in [
        ("vllm/__init__.py", "NAME = 'tree'\n"),
        ("vllm/benchmarks/__init__.py", "WHERE = 'tree'\n"),
        ("vllm/benchmarks/latency.py", "raise SystemExit('patched')\n"),
        ("vllm/benchmarks/added.py", ""),
        ("vllm/entrypoints/__init__.py", ""),
        ("vllm/entrypoints/cli/__init__.py", ""),
        (
            "vllm/entrypoints/cli/main.py",
            "import sys\nfrom vllm.benchmarks import latency\ntry:\n    import vllm.benchmarks.added\nexcept \
             ModuleNotFoundError:\n    print(latency.NAME, latency.WHERE, sys.argv[1:])\n",
        ),
    ] {
        std::fs::create_dir_all(tree.join(path).parent().unwrap()).unwrap();
        std::fs::write(tree.join(path), text).unwrap();
    }
    let subcommand = script(Tool::VllmBenchLatency, &files.commit);
    let (spec, folders) = (server(), BTreeMap::new());
    let command =
        files.command(&subcommand, Path::new("python3"), Path::new("/launch"), &serve(&spec, &tree, &folders));
    let (program, arguments) = command.split_first().unwrap();
    let output = std::process::Command::new(program)
        .args(arguments)
        .env("PYTHONPATH", &tree)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .current_dir(&files.root)
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let expected = "tree exported ['bench', 'latency', '--model', '/models/tiny', '--output-json', \
                    '/launch/script.result.json']\n";
    assert_eq!(printed, expected);
}
