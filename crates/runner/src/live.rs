//! The live proof: what the operating system says of the running engine, held against what was planned.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use isobench_schema::check::Check;
use isobench_schema::container::ContainerFacts;
use isobench_schema::environment::{LiveProof, StaticProof};
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::Digest;
use isobench_schema::recipe::{AppliedRecipe, RecipeChange};

use crate::environment::recipes::without_effect;
use crate::host::process_table;
use crate::host::seen_root::SeenRoot;

/// What the running engine must be.
#[derive(Debug, Clone)]
pub(crate) struct Expected<'a> {
    /// The process that owns the port.
    pub(crate) process: u32,
    /// The engine's command.
    pub(crate) command: &'a [String],
    /// The environment that it was given.
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// The working folder that it was given.
    pub(crate) folder: &'a Path,
    /// The arm's files.
    pub(crate) tree: &'a Path,
    /// What was proven before the launch.
    pub(crate) proven: &'a StaticProof,
    /// Recipes, some of which only show here.
    pub(crate) recipes: &'a [AppliedRecipe],
    /// What is seen of its container, if it runs in one.
    pub(crate) container: Option<ContainerFacts>,
}

/// Variables whose change would change which code runs.
const DECISIVE: &[&str] = &["PYTHONPATH", "PYTHONHOME", "PYTHONPYCACHEPREFIX", "LD_PRELOAD", "LD_LIBRARY_PATH", "PATH"];

/// Reads the running engine's facts and holds them against what was planned.
///
/// # Errors
/// Returns `environment-unproven` with what was found and what was expected.
pub(crate) fn prove(expected: &Expected<'_>) -> Result<LiveProof, Failure> {
    let process = expected.process;
    let root = match &expected.container {
        None => SeenRoot::Own,
        Some(_) => SeenRoot::of_container(process).map_err(|_gone| vanished(process))?,
    };
    let executable = process_table::executable(process).ok_or_else(|| vanished(process))?;
    let folder = process_table::working_folder(process).ok_or_else(|| vanished(process))?;
    let environment = process_table::environment(process).ok_or_else(|| vanished(process))?;
    if let Some(planned) = planned_executable(expected, &root)
        && planned != executable
    {
        return Err(differs(process, "exe", &planned.to_string_lossy(), &executable.to_string_lossy()));
    }
    let planned_folder = canonical(expected.folder);
    if canonical(&folder) != planned_folder {
        return Err(differs(process, "cwd", &planned_folder.to_string_lossy(), &folder.to_string_lossy()));
    }
    if !is_same_folder(process, expected.folder) {
        let planned = planned_folder.display().to_string();
        return Err(differs(process, "cwd", &planned, &format!("another folder at {}", folder.display())));
    }
    let decisive = DECISIVE.iter().copied().chain([process_table::RUN_MARKER]);
    for name in decisive {
        let (planned, found) = (expected.environment.get(name), environment.get(name));
        if planned != found {
            let show = |value: Option<&String>| value.map_or("nothing".to_owned(), |value| format!("{name}={value}"));
            return Err(differs(process, "environ", &show(planned), &show(found)));
        }
    }
    let recipes = recipes(expected, &environment)?;
    let (mapped, mapped_elsewhere) = libraries(expected, &root)?;
    let container =
        expected.container.clone().map(|facts| ContainerFacts { executable: root.digest(&executable), ..facts });
    Ok(LiveProof {
        process,
        executable: executable.to_string_lossy().into_owned(),
        working_folder: folder.to_string_lossy().into_owned(),
        mapped,
        mapped_elsewhere,
        environment: environment.into_keys().collect(),
        claimed_version: None,
        recipes,
        container,
    })
}

/// Reads back the variables and options that recipes give the engine, from the process itself.
fn recipes(
    expected: &Expected<'_>,
    environment: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Failure> {
    let mut found = BTreeMap::new();
    for AppliedRecipe { id, change, .. } in expected.recipes {
        let (is_there, text) = match change {
            RecipeChange::Variable { name, value } => {
                let has = environment.get(name);
                let shown = has.map_or_else(|| format!("no {name}"), |has| format!("{name}={has}"));
                (has == Some(value), format!("the process has {shown}"))
            }
            RecipeChange::Option { name, value } => {
                let words = command_line(expected.process).ok_or_else(|| vanished(expected.process))?;
                let option = format!("--{name}");
                let is_there = words.windows(2).any(|pair| pair == [option.as_str(), value.as_str()]);
                let shown = if is_there { format!("{option} {value}") } else { format!("no {option} {value}") };
                (is_there, format!("the process was started with {shown}"))
            }
            RecipeChange::Package { .. } | RecipeChange::NoPackage { .. } | RecipeChange::Module { .. } => continue,
        };
        if !is_there {
            return Err(without_effect(id, &text, Check::LiveProof));
        }
        found.insert(id.clone(), text);
    }
    Ok(found)
}

/// Returns the words that a process was started with.
fn command_line(process: u32) -> Option<Vec<String>> {
    let bytes = fs::read(format!("/proc/{process}/cmdline")).ok()?;
    let words = bytes.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    Some(words.collect())
}

/// Checks that two proofs of one launch are of one process that runs one program.
///
/// # Errors
/// Returns `environment-unproven` with what was found first and last.
pub(crate) fn compare(before: &LiveProof, after: &LiveProof) -> Result<(), Failure> {
    let facts = |proof: &LiveProof| format!("process {} with {}", proof.process, proof.executable);
    let [first, last] = [facts(before), facts(after)];
    if first == last {
        return Ok(());
    }
    let line = |source: &str, text: &str| EvidenceLine::new(source, None, text);
    let message = format!("the port was owned by {first} before the measurement and by {last} after it");
    let failure = unproven(message).breaking(Check::SameProcess);
    Err(failure.with_evidence([line("before", &first), line("after", &last)]))
}

/// Returns the mapped libraries of the tree with their digests, and the others by path.
fn libraries(expected: &Expected<'_>, root: &SeenRoot) -> Result<(BTreeMap<String, Digest>, Vec<String>), Failure> {
    let tree = canonical(expected.tree);
    let mut inside = BTreeMap::new();
    let mut elsewhere = Vec::new();
    for path in process_table::mapped_libraries(expected.process) {
        let Ok(relative) = path.strip_prefix(&tree) else {
            elsewhere.push(path.to_string_lossy().into_owned());
            continue;
        };
        let name = relative.to_string_lossy().into_owned();
        let found = root.digest(&path);
        let planned = expected.proven.native.get(&name);
        let is_native = planned.is_some() || path.extension().is_some_and(|extension| extension == "so");
        match (planned, found) {
            (Some(planned), Some(found)) if *planned == found => {
                inside.insert(name, found);
            }
            (None, Some(found)) if !is_native => {
                inside.insert(name, found);
            }
            (planned, found) => {
                let show = |digest: Option<&Digest>| digest.map_or("no such file".to_owned(), ToString::to_string);
                return Err(differs(expected.process, &format!("maps: {name}"), &show(planned), &show(found.as_ref())));
            }
        }
    }
    Ok((inside, elsewhere))
}

/// Returns the executable that the command leads to: its program, or the interpreter that a script names.
fn planned_executable(expected: &Expected<'_>, root: &SeenRoot) -> Option<PathBuf> {
    let program = expected.command.first()?;
    let search = expected.environment.get("PATH").map_or("", String::as_str);
    let find = |program: &str| find_program(program, expected.folder, search, root);
    let file = find(program)?;
    let Some(line) = script_line(&file, root) else { return Some(file) };
    let mut words = line.split_whitespace();
    let interpreter = words.next()?;
    let by_env = Path::new(interpreter).file_name().is_some_and(|name| name == "env");
    let named = if by_env { words.find(|word| !word.starts_with('-') && !word.contains('='))? } else { interpreter };
    // The interpreter itself may be a script that starts yet another program; then nothing is known here.
    let interpreter = find(named)?;
    script_line(&interpreter, root).is_none().then_some(interpreter)
}

fn find_program(program: &str, folder: &Path, search: &str, root: &SeenRoot) -> Option<PathBuf> {
    if program.contains('/') {
        return root.resolve(&folder.join(program));
    }
    std::env::split_paths(search).find_map(|place| root.resolve(&place.join(program)))
}

/// Returns what follows `#!` in a script's first line.
fn script_line(path: &Path, root: &SeenRoot) -> Option<String> {
    let bytes = root.beginning(path, 300)?;
    let text = bytes.strip_prefix(b"#!")?;
    let line = text.split(|&byte| byte == b'\n').next()?;
    Some(String::from_utf8_lossy(line).trim().to_owned())
}

/// Returns whether a process works in that very folder of this machine, whatever it is called where the process sees it.
fn is_same_folder(process: u32, folder: &Path) -> bool {
    let place = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let planned = place(folder);
    planned.is_some() && planned == place(Path::new(&format!("/proc/{process}/cwd")))
}

fn canonical(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

pub(crate) fn unproven(message: String) -> Failure {
    Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message).breaking(Check::LiveProof)
}

fn vanished(process: u32) -> Failure {
    unproven(format!("process {process}, which owned the port, can't be looked at"))
}

fn differs(process: u32, what: &str, planned: &str, found: &str) -> Failure {
    let evidence =
        [EvidenceLine::new(format!("/proc/{process}/{what}"), None, found), EvidenceLine::new("plan", None, planned)];
    unproven(format!("the running engine's {what} is `{found}`, planned was `{planned}`")).with_evidence(evidence)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Running(Child);

    impl Drop for Running {
        fn drop(&mut self) {
            self.0.kill().ok();
            self.0.wait().ok();
        }
    }

    /// Starts `sleep` with `environment`, and proves it against `expected_environment` and `command`.
    fn check(command: &str, expected_environment: &[(&str, &str)], expected: Result<(), &str>) {
        let folder = tempfile::tempdir().unwrap();
        let given = [("PATH", "/usr/bin:/bin"), (process_table::RUN_MARKER, "run")];
        let child = Command::new("sleep").arg("60").env_clear().envs(given).current_dir(folder.path()).spawn().unwrap();
        let running = Running(child);
        let sleep = fs::canonicalize("/bin/sleep").unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while process_table::executable(running.0.id()).as_ref() != Some(&sleep) && std::time::Instant::now() < deadline
        {
            std::thread::yield_now();
        }
        let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let found = prove(&Expected {
            process: running.0.id(),
            command: &[command.to_owned()],
            environment: &given.iter().chain(expected_environment).map(pair).collect(),
            folder: folder.path(),
            tree: folder.path(),
            proven: &StaticProof::default(),
            recipes: &[],
            container: None,
        });
        match (found, expected) {
            (Ok(proof), Ok(())) => assert_eq!(proof.executable, sleep.to_string_lossy()),
            (Err(failure), Err(part)) => {
                assert_eq!(failure.class, FailureClass::EnvironmentUnproven);
                assert!(failure.message.contains(part), "{failure}");
            }
            (found, expected) => panic!("{found:?} is not {expected:?}"),
        }
    }

    #[test]
    fn the_running_program_is_the_planned_one() {
        check("sleep", &[], Ok(()));
        check("/bin/sleep", &[], Ok(()));
    }

    #[test]
    fn two_proofs_are_of_one_process_and_one_program() {
        let proof = |process, executable: &str| LiveProof {
            process,
            executable: executable.to_owned(),
            ..LiveProof::default()
        };
        let first = proof(7, "/bin/engine");
        assert_eq!(compare(&first, &first.clone()), Ok(()));
        for other in [proof(8, "/bin/engine"), proof(7, "/bin/other")] {
            let failure = compare(&first, &other).unwrap_err();
            assert_eq!(
                (failure.class, failure.check),
                (FailureClass::EnvironmentUnproven, Some(Check::SameProcess.into()))
            );
            assert_eq!(failure.evidence.len(), 2, "{failure:?}");
        }
    }

    #[test]
    fn another_program_or_environment_is_refused() {
        check("/bin/cat", &[], Err("exe is `"));
        check("sleep", &[("PYTHONPATH", "/x")], Err("environ is `nothing`, planned was `PYTHONPATH=/x`"));
        check("sleep", &[(process_table::RUN_MARKER, "other")], Err("environ"));
    }
}
