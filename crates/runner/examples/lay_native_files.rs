//! Makes the environments of three arms of a tree as large as vLLM's, whose native files come from one build, and prints how
//! long each took: the first one builds, the others only export, patch, and lay the native files.
//!
//! Run it with `cargo run --release -p isobench-runner --example lay_native_files [DIR]`; DIR is where the cache lies.
#![allow(clippy::print_stdout, reason = "an example's output is what it is for")]

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use isobench_runner::environment::{PrepareContext, prepare, proof};
use isobench_schema::environment::{EngineKind, EnvironmentSpec, NativeBuild, Patch, Python, Rung, Source};
use isobench_schema::ids::CommitId;

/// Python files of the package, as vLLM 0.11 has them, and their size in bytes.
const PYTHON: (usize, usize) = (1_450, 16_000);
/// Other files of the repository: tests, benchmarks, documents, examples, sources.
const OTHERS: (usize, usize) = (2_600, 9_000);
/// Native libraries, and the size of all of them in MiB.
const LIBRARIES: (usize, usize) = (6, 1_000);
/// A line of every file but its first.
const LINE: &str = "value = compute(value, other)  # a line of some engine's code\n";
/// How long the old system took to build a revision, in seconds: 30 minutes at the least.
const OLD_BUILD_S: f64 = 1_800.0;

fn main() -> Result<(), Box<dyn Error>> {
    let place = match std::env::args_os().nth(1) {
        Some(folder) => tempfile::tempdir_in(folder)?,
        None => tempfile::tempdir()?,
    };
    let root = place.path();
    let repository = root.join("repository");
    let baseline = write_repository(&repository)?;
    let (scratch, cache, log, cancel) =
        (root.join("scratch"), root.join("cache"), root.join("log"), AtomicBool::new(false));
    fs::create_dir(&scratch)?;
    let context = PrepareContext {
        cache: &cache,
        scratch: &scratch,
        log: &log,
        timeout: Duration::from_secs(600),
        cancel: &cancel,
        reaper: None,
        steps: None,
    };
    let patch = |value: u32| {
        let kept = format!(" {LINE}").repeat(3);
        let text = format!("--- a/engine/m0.py\n+++ b/engine/m0.py\n@@ -1,4 +1,4 @@\n-X0 = 0\n+X0 = {value}\n{kept}");
        Patch::new("agent.patch", text.into_bytes())
    };
    println!("{} files, native libraries of {} MiB together", PYTHON.0 + OTHERS.0, LIBRARIES.1);
    for (arm, patch) in
        [("baseline, with the build", None), ("agent one", Some(patch(1))), ("agent two", Some(patch(2)))]
    {
        let spec = spec(&repository, &baseline, patch);
        let begun = Instant::now();
        let prepared = prepare(&spec, &context)?.map_err(|failure| failure.to_string())?;
        let prepared_s = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let proven = proof::prove_static(&prepared, &spec, &context)?.map_err(|failure| failure.to_string())?;
        let proven_s = begun.elapsed().as_secs_f64();
        let ratio = OLD_BUILD_S / prepared_s;
        let (files, native) = (proven.files, proven.native.len());
        println!(
            "{arm}: made in {prepared_s:.2} s, proven in {proven_s:.2} s ({files} files, {native} native); a build of 30 min takes {ratio:.0} times as long"
        );
    }
    let again = spec(&repository, &baseline, None);
    let begun = Instant::now();
    prepare(&again, &context)?.map_err(|failure| failure.to_string())?;
    println!("baseline, from the cache: looked through in {:.2} s", begun.elapsed().as_secs_f64());
    Ok(())
}

fn spec(repository: &Path, commit: &CommitId, patch: Option<Patch>) -> EnvironmentSpec {
    let (libraries, mib) = LIBRARIES;
    let each = mib * 1024 * 1024 / libraries;
    let script = format!(
        "mkdir engine; for n in $(seq {libraries}); do (cat /bin/sh csrc/c0.cu; head -c {each} /dev/urandom) > engine/_C$n.abi3.so; done"
    );
    EnvironmentSpec {
        engine: EngineKind::Generic,
        rung: Rung::Source,
        source: Source {
            repository: repository.display().to_string(),
            commit: commit.clone(),
            patch,
            allow_binary_patch: false,
        },
        python: Python::System,
        overlay: None,
        native: Some(NativeBuild {
            paths: vec!["csrc".to_owned()],
            commands: vec![["/bin/sh", "-c", &script].map(str::to_owned).to_vec()],
            environment: BTreeMap::new(),
            outputs: vec!["engine/_C*.abi3.so".to_owned()],
            memory_per_job_mib: 1024,
            timeout_s: None,
        }),
        toolkit: None,
        build: Vec::new(),
        build_environment: BTreeMap::new(),
        python_path: vec![".".to_owned()],
        modules: vec!["engine".to_owned()],
    }
}

/// Writes a repository of the size of vLLM's, and returns its commit.
fn write_repository(folder: &Path) -> Result<CommitId, Box<dyn Error>> {
    let write = |path: String, size: usize| -> Result<(), Box<dyn Error>> {
        let place = folder.join(path);
        let number: String = place.file_stem().unwrap_or_default().to_string_lossy().chars().skip(1).collect();
        fs::create_dir_all(place.parent().unwrap_or(folder))?;
        fs::write(place, format!("X{number} = {number}\n{}", LINE.repeat(size / LINE.len())))?;
        Ok(())
    };
    write("engine/__init__.py".to_owned(), 0)?;
    write("engine/m0.py".to_owned(), PYTHON.1)?;
    for number in 1..PYTHON.0 {
        write(format!("engine/part{}/m{number}.py", number % 60), PYTHON.1)?;
    }
    for number in 0..OTHERS.0 {
        let folder = ["csrc", "tests/unit", "docs", "benchmarks"].get(number % 4).unwrap_or(&"csrc");
        write(format!("{folder}/c{number}.cu"), OTHERS.1)?;
    }
    let git = |arguments: &[&str]| -> Result<String, Box<dyn Error>> {
        let output = Command::new("git")
            .args(["-c", "user.name=Example", "-c", "user.email=example@example.invalid", "-c", "gc.auto=0"])
            .args(arguments)
            .current_dir(folder)
            .output()?;
        if !output.status.success() {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
        }
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    git(&["init", "--quiet"])?;
    git(&["add", "--all"])?;
    git(&["commit", "--quiet", "--message", "Everything"])?;
    Ok(CommitId::new(git(&["rev-parse", "HEAD"])?)?)
}
