//! Tests of preparing, proving and evicting environments.

mod entries;
mod locked;
mod native;
mod recipes;
mod tampered;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Instant;

use isobench_schema::check::Check;
use isobench_schema::environment::{EnvironmentSpec, PackageAlias, Patch, Python, StaticProof, StubModule, Venv};
use isobench_schema::ids::Digest;

use super::fixture::{Place, TestRepository, dig, listing};
use super::proof::{prove_static, verify_unmodified};
use super::*;

const ENGINE: &[(&str, &str)] = &[("engine/__init__.py", "VALUE = 1\n"), ("run.sh", "#!/bin/sh\n")];

const PATCH: &str = "--- a/engine/__init__.py\n+++ b/engine/__init__.py\n@@ -1 +1 @@\n-VALUE = 1\n+VALUE = 2\n";

fn prepared(place: &Place, spec: &EnvironmentSpec) -> Prepared {
    prepare(spec, &place.context()).unwrap().unwrap_or_else(|failure| panic!("{failure}\n{}", place.log()))
}

fn failure_of(place: &Place, spec: &EnvironmentSpec) -> Failure {
    prepare(spec, &place.context()).unwrap().expect_err("the preparation should fail")
}

fn prove(place: &Place, prepared: &Prepared, spec: &EnvironmentSpec) -> Result<StaticProof, Failure> {
    prove_static(prepared, spec, &place.context()).unwrap()
}

fn patched(repository: &TestRepository, text: &str) -> EnvironmentSpec {
    let mut spec = repository.spec();
    spec.source.patch = Some(Patch::new("agent.patch", text.as_bytes().to_vec()));
    spec
}

fn command(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

#[test]
fn a_patched_tree_is_prepared_and_proven() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let spec = patched(&repository, PATCH);
    let prepared = prepared(&place, &spec);
    assert_eq!(listing(&prepared.tree), ["engine/__init__.py false VALUE = 2\\n", "run.sh false #!/bin/sh\\n"]);
    let proof = prove(&place, &prepared, &spec).unwrap();
    assert_eq!((proof.files, proof.tree), (2, Some(prepared.manifest.tree.clone())));
    let changed = Digest::of(b"VALUE = 2\n");
    assert_eq!(proof.changed, BTreeMap::from([("engine/__init__.py".to_owned(), Some(changed))]));
    let module = prepared.tree.join("engine/__init__.py").display().to_string();
    assert_eq!(proof.modules, BTreeMap::from([("engine".to_owned(), module)]));
    assert!(proof.executable.unwrap().starts_with('/') && proof.python_version.unwrap().starts_with("3."));
    assert_eq!(verify_unmodified(&prepared).unwrap(), Ok(()));
}

#[test]
fn a_second_look_takes_the_environment_from_the_cache() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let mut spec = repository.spec();
    spec.build = vec![command(&["{python}", "-c", "open('built', 'w').write('once')"])];
    let first = prepared(&place, &spec);
    let second = prepared(&place, &spec);
    assert_eq!((first.tree, first.manifest), (second.tree, second.manifest));
    assert_eq!(place.log().matches("'built'").count(), 1);
}

#[test]
fn threads_that_ask_for_one_environment_build_it_once() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let mut spec = repository.spec();
    spec.build = vec![command(&["/bin/sh", "-c", "echo built >> count"])];
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| prepared(&place, &spec))).collect();
        let trees: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap().manifest.tree).collect();
        assert!(trees.windows(2).all(|pair| pair[0] == pair[1]));
    });
    assert_eq!(std::fs::read_to_string(prepared(&place, &spec).tree.join("count")).unwrap(), "built\n");
}

#[test]
fn what_a_crash_left_behind_is_never_taken_for_an_environment() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let spec = repository.spec();
    let good = prepared(&place, &spec);
    let record = good.folder.join("manifest.json");
    let whole = std::fs::read(&record).unwrap();
    let leftovers: [&dyn Fn(); 5] = [
        // A power cut after the record was written, and a run that was killed before it looked at the tree again.
        &|| std::fs::write(good.tree.join("run.sh"), "").unwrap(),
        &|| std::fs::remove_file(good.tree.join("run.sh")).unwrap(),
        &|| std::fs::remove_file(&record).unwrap(),
        &|| std::fs::rename(&record, good.folder.join("manifest.unfinished")).unwrap(),
        &|| std::fs::write(&record, &whole[..whole.len() / 2]).unwrap(),
    ];
    for leave in leftovers {
        leave();
        std::fs::write(good.tree.join("half"), "made").unwrap();
        let again = prepared(&place, &spec);
        assert_eq!(again.manifest, good.manifest);
        assert_eq!(verify_unmodified(&again).unwrap(), Ok(()));
    }
}

#[test]
fn a_failed_preparation_leaves_nothing_that_counts_and_can_be_tried_again() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let spec = patched(&repository, &PATCH.replace("VALUE = 1", "VALUE = 7"));
    for _ in 0..2 {
        assert_eq!(failure_of(&place, &spec).class, FailureClass::PatchRejected);
    }
}

/// What an engine does to its tree, and how it is told.
type Change = (&'static str, fn(&Path));

#[test]
fn each_change_of_the_tree_is_found_and_the_evicted_environment_is_made_again() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let spec = repository.spec();
    let changes: &[Change] = &[
        ("changed: engine/__init__.py", |tree| std::fs::write(tree.join("engine/__init__.py"), "VALUE = 9\n").unwrap()),
        ("removed: run.sh", |tree| std::fs::remove_file(tree.join("run.sh")).unwrap()),
        ("added: new", |tree| std::fs::write(tree.join("new"), "").unwrap()),
        ("added: folder", |tree| std::fs::create_dir(tree.join("folder")).unwrap()),
        ("added: engine/__pycache__", |tree| std::fs::create_dir(tree.join("engine/__pycache__")).unwrap()),
        ("added: link", |tree| std::os::unix::fs::symlink("run.sh", tree.join("link")).unwrap()),
        ("changed: run.sh", |tree| {
            std::fs::set_permissions(tree.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
        }),
        ("changed: run.sh", |tree| {
            std::fs::remove_file(tree.join("run.sh")).unwrap();
            std::os::unix::fs::symlink("engine/__init__.py", tree.join("run.sh")).unwrap();
        }),
    ];
    for (expected, change) in changes {
        let environment = prepared(&place, &spec);
        assert!(prove(&place, &environment, &spec).is_ok(), "{expected}");
        change(&environment.tree);
        let failure = verify_unmodified(&environment).unwrap().unwrap_err();
        assert_eq!(
            (failure.class, failure.check),
            (FailureClass::EnvironmentModified, Some(Check::TreeUnmodified.into()))
        );
        assert_eq!(failure.evidence[0].text, *expected);
        let unproven = prove(&place, &environment, &spec).unwrap_err();
        let expected_check = Some(Check::StaticProof.into());
        assert_eq!((unproven.class, unproven.check), (FailureClass::EnvironmentUnproven, expected_check));
        evict(&environment).unwrap();
        assert!(!environment.folder.exists());
    }
    let kept = std::fs::read_dir(place.path("cache/environments")).unwrap().count();
    assert_eq!(kept, 2, "only its locks stay");
}

/// A name, files beside the engine, the modules that must be in the tree, and the beginning of the evidence.
type Shadow = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str], &'static str);

#[test]
fn a_module_that_would_come_from_elsewhere_is_unproven() {
    let cases: &[Shadow] = &[
        ("the standard library has it", &[], &["json"], "`json` is found at: "),
        ("the interpreter has it built in", &[], &["sys"], "`sys` is found at: built-in"),
        ("nobody has it", &[], &["missing"], "`missing` is found at: nowhere"),
        ("start-up code shadows the tree", &[("sitecustomize.py", "")], &["engine"], "`sitecustomize` is found at: "),
        ("start-up code of a user", &[("usercustomize/__init__.py", "")], &["engine"], "`usercustomize` is found"),
    ];
    for (name, files, modules, expected) in cases {
        let place = Place::new();
        let repository = place.repository(&[ENGINE, files].concat());
        let mut spec = repository.spec();
        spec.modules = command(modules);
        let failure = prove(&place, &prepared(&place, &spec), &spec).unwrap_err();
        assert_eq!(failure.class, FailureClass::EnvironmentUnproven, "{name}");
        assert!(failure.evidence[0].text.starts_with(expected), "{name}: {:?}", failure.evidence);
    }
}

#[test]
fn proving_runs_no_file_of_the_tree() {
    let place = Place::new();
    let marker = place.path("marker");
    let code = format!("open({:?}, 'w')\n", marker.display().to_string());
    let files = ["sitecustomize.py", "json/__init__.py", "platform.py", "engine/__init__.py", "os.py"];
    let files: Vec<(&str, &str)> = files.iter().map(|name| (*name, code.as_str())).collect();
    let repository = place.repository(&files);
    let spec = repository.spec();
    let environment = prepared(&place, &spec);
    assert!(prove(&place, &environment, &spec).is_err());
    assert!(!marker.exists());
    assert_eq!(verify_unmodified(&environment).unwrap(), Ok(()));
}

#[test]
fn an_engine_started_in_the_environment_imports_from_it_and_writes_nothing_into_it() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let spec = patched(&repository, PATCH);
    let environment = prepared(&place, &spec);
    let launch = place.path("launch");
    let mut variables = crate::command::clean_environment(&launch, &launch);
    environment.add_to(&mut variables, &launch);
    let python = environment.python.clone().unwrap();
    let output = std::process::Command::new(python)
        .args(["-c", "import engine; print(engine.VALUE, engine.__cached__)"])
        .current_dir(&environment.tree)
        .env_clear()
        .envs(&variables)
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.starts_with(&format!("2 {}/pycache/", launch.display())), "{printed}");
    assert!(launch.join("pycache").is_dir());
    assert_eq!(verify_unmodified(&environment).unwrap(), Ok(()));
}

#[test]
fn build_commands_run_in_the_tree_and_their_failures_are_told_apart() {
    let cases: &[(&[&str], FailureClass, Option<&str>)] = &[
        (&["/bin/sh", "-c", "echo broken >&2; exit 3"], FailureClass::BuildFailed, Some("broken")),
        (&["no-such-compiler"], FailureClass::ToolMissing, None),
        (&[], FailureClass::BuildFailed, None),
        (&["/bin/sh", "-c", "echo waiting; sleep 600"], FailureClass::BuildTimeout, Some("waiting")),
    ];
    let place = Place::new();
    let repository = place.repository(ENGINE);
    for (build, class, text) in cases {
        let mut spec = repository.spec();
        spec.python = Python::Absent;
        spec.build = vec![command(build)];
        let timeout =
            if *class == FailureClass::BuildTimeout { Duration::from_millis(300) } else { place.context().timeout };
        let context = PrepareContext { timeout, ..place.context() };
        let failure = prepare(&spec, &context).unwrap().unwrap_err();
        assert_eq!(failure.class, *class, "{failure}");
        assert_eq!(failure.stage, FailureStage::Build);
        assert_eq!(
            text.map(str::to_owned),
            failure.evidence.last().filter(|line| line.line.is_some()).map(|line| line.text.clone())
        );
    }
    let mut spec = repository.spec();
    spec.build = vec![command(&["/bin/sh", "-c", "echo $FLAG {tree} > $0; pwd >> $0", "{tree}/out"])];
    spec.build_environment.insert("FLAG".to_owned(), "-O2".to_owned());
    let environment = prepared(&place, &spec);
    let tree = environment.tree.display();
    assert_eq!(std::fs::read_to_string(environment.tree.join("out")).unwrap(), format!("-O2 {tree}\n{tree}\n"));
    assert!(prove(&place, &environment, &spec).is_ok());
}

#[test]
fn a_build_that_undoes_the_patch_is_unproven() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let mut spec = patched(&repository, PATCH);
    spec.build = vec![command(&["/bin/sh", "-c", "echo VALUE = 1 > engine/__init__.py"])];
    let failure = prove(&place, &prepared(&place, &spec), &spec).unwrap_err();
    assert_eq!(failure.class, FailureClass::EnvironmentUnproven);
    assert_eq!(failure.evidence[0].text, "not as the patch left it: engine/__init__.py");
}

#[test]
fn an_interrupted_preparation_is_a_failure_that_may_pass() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    place.cancel.store(true, Ordering::Relaxed);
    let failure = failure_of(&place, &repository.spec());
    assert!(failure.class == FailureClass::Interrupted && failure.transient, "{failure}");
}

#[test]
fn a_search_path_outside_the_tree_is_refused() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    for folder in ["/tmp", "..", "a/../../b"] {
        let mut spec = repository.spec();
        spec.python_path = vec![folder.to_owned()];
        assert_eq!(failure_of(&place, &spec).class, FailureClass::TreeUnsafe, "{folder}");
    }
}

#[test]
fn a_virtual_environment_is_made_without_a_network_and_shared() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let aliases = vec![PackageAlias { name: "fast-engine".to_owned(), version: "1.2+cpu".to_owned() }];
    let mut spec = repository.spec();
    spec.python = Python::Venv(Venv { aliases, ..Venv::default() });
    let first = prepared(&place, &spec);
    let mut other = patched(&repository, PATCH);
    other.python = spec.python.clone();
    let second = prepared(&place, &other);
    assert_eq!(first.python, second.python);
    assert_eq!(first.packages(), ["fast-engine==1.2+cpu"]);
    let proof = prove(&place, &second, &other).unwrap();
    assert_eq!(proof.packages, ["fast-engine==1.2+cpu"]);

    let site = &first.manifest.venv.as_ref().unwrap().site_packages[0];
    std::fs::write(site.join("engine.py"), "").unwrap();
    let failure = verify_unmodified(&first).unwrap().unwrap_err();
    assert_eq!(failure.class, FailureClass::EnvironmentModified);
    evict(&first).unwrap();
    assert!(prove(&place, &prepared(&place, &spec), &spec).is_ok());
}

#[test]
fn a_module_stands_in_for_one_that_cannot_be_had() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let stub = |path: &str| StubModule { path: path.to_owned(), content: "LIST = [1]\n".to_owned() };
    let mut spec = repository.spec();
    spec.python = Python::Venv(Venv { stub_modules: vec![stub("lost/deep/names.py")], ..Venv::default() });
    let made = prepared(&place, &spec);
    let program = made.python.as_ref().unwrap();
    let code = "import lost, lost.deep.names; print(lost.deep.names.LIST)";
    let output = std::process::Command::new(program).args(["-c", code]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[1]\n", "{}", String::from_utf8_lossy(&output.stderr));
    for bad in ["../x.py", "/x.py", "a//b.py", "a-b.py", "1a.py", "x.so", ".py"] {
        spec.python = Python::Venv(Venv { stub_modules: vec![stub(bad)], ..Venv::default() });
        assert_eq!(failure_of(&place, &spec).class, FailureClass::PackageInstallFailed, "{bad}");
    }
}

#[test]
fn packages_that_cannot_be_had_have_their_own_failures() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let strings = |text: &str| vec![text.to_owned()];
    let cases = [
        (Venv { requirements: strings("--index-url=x"), ..Venv::default() }, FailureClass::PackageInstallFailed),
        (Venv { requirements: strings("a\n-r b"), ..Venv::default() }, FailureClass::PackageInstallFailed),
        (Venv { requirements: strings("/missing/x.whl"), ..Venv::default() }, FailureClass::PackageInstallFailed),
        (Venv { python: Some("2.1".to_owned()), ..Venv::default() }, FailureClass::ToolMissing),
        (
            Venv {
                aliases: vec![PackageAlias { name: "../x".to_owned(), version: "1".to_owned() }],
                ..Venv::default()
            },
            FailureClass::PackageInstallFailed,
        ),
    ];
    for (venv, class) in cases {
        let mut spec = repository.spec();
        spec.python = Python::Venv(venv);
        let failure = failure_of(&place, &spec);
        assert_eq!(failure.class, class, "{failure}");
    }
}

/// Writes a wheel of the package `fake-engine`, whose folder is `engine`, with one native library.
fn wheel(place: &Place) -> String {
    const SCRIPT: &str = r#"
import sys, zipfile
files = {
    "engine/__init__.py": "VALUE = 0\n", "engine/removed.py": "", "engine/_version.py": "'1.0'\n",
    "engine/_C.abi3.so": "\x7fELF native", "engine/data/table.json": "{}", "engine/data/installed.json": "{}",
    "fake_engine-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: fake-engine\nVersion: 1.0\n",
    "fake_engine-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
}
record = "fake_engine-1.0.dist-info/RECORD"
files[record] = "".join(f"{name},,\n" for name in [*files, record])
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for name, content in files.items():
        archive.writestr(name, content)
"#;
    let path = place.path("fake_engine-1.0-py3-none-any.whl");
    let status = std::process::Command::new("python3").args(["-c", SCRIPT]).arg(&path).status().unwrap();
    assert!(status.success());
    path.display().to_string()
}

#[test]
fn an_overlay_lays_the_revision_over_the_installed_native_files() {
    let place = Place::new();
    let files = [
        ("engine/__init__.py", "VALUE = 1\n"),
        ("engine/new.py", "x\n"),
        ("engine/data/table.json", "{\"tuned\": 1}"),
        ("tests/test.py", ""),
        ("csrc/kernel.cu", "a\n"),
    ];
    let repository = place.repository(&files);
    let venv = Python::Venv(Venv { requirements: vec![wheel(&place)], ..Venv::default() });
    let mut spec = patched(&repository, PATCH);
    spec.python = venv.clone();
    spec.overlay = Some("engine".to_owned());
    let started = Instant::now();
    let environment = prepared(&place, &spec);
    assert!(started.elapsed() < place.context().timeout);
    let expected = [
        "engine/_C.abi3.so false \\x7fELF native",
        "engine/__init__.py false VALUE = 2\\n",
        "engine/_version.py false \\'1.0\\'\\n",
        "engine/data/installed.json false {}",
        "engine/data/table.json false {\\\"tuned\\\": 1}",
        "engine/new.py false x\\n",
    ];
    assert_eq!(listing(&environment.tree), expected);
    let note = environment.manifest.overlay.as_ref().unwrap();
    assert_eq!((note.version.as_deref(), note.from_revision), (Some("1.0"), 3));
    assert_eq!(note.generated.keys().collect::<Vec<_>>(), ["_version.py"]);
    assert_eq!(note.left_out, ["removed.py"]);
    assert_eq!(environment.python_path, std::slice::from_ref(&environment.tree));
    let proof = prove(&place, &environment, &spec).unwrap();
    assert_eq!(proof.native.keys().collect::<Vec<_>>(), ["engine/_C.abi3.so"]);
    assert!(proof.packages.contains(&"fake-engine==1.0".to_owned()));

    // The library shares its bytes with the installed one: who writes into one writes into both, which is found.
    let library = environment.tree.join("engine/_C.abi3.so");
    assert_eq!(library.metadata().unwrap().nlink(), 2);
    std::fs::write(&library, "other").unwrap();
    assert_eq!(verify_unmodified(&environment).unwrap().unwrap_err().evidence.len(), 2);
    evict(&environment).unwrap();
    let again = prepared(&place, &spec);
    assert_eq!(again.manifest.tree, environment.manifest.tree);

    // A patch of what must be compiled would have no effect.
    let kernel = "--- a/csrc/kernel.cu\n+++ b/csrc/kernel.cu\n@@ -1 +1 @@\n-a\n+b\n";
    let mut compiled = patched(&repository, kernel);
    (compiled.python, compiled.overlay) = (venv, spec.overlay.clone());
    let failure = failure_of(&place, &compiled);
    assert_eq!(failure.class, FailureClass::EnvironmentUnproven);
    assert!(failure.message.contains("`csrc/kernel.cu`, which must be compiled"), "{failure}");

    // Without the overlay the installed package isn't what is tested, and it isn't taken for it.
    let mut hidden = repository.spec();
    (hidden.python, hidden.python_path) = (spec.python.clone(), vec!["tests".to_owned()]);
    let failure = prove(&place, &prepared(&place, &hidden), &hidden).unwrap_err();
    assert_eq!(failure.class, FailureClass::EnvironmentUnproven);
    assert!(failure.evidence[0].text.contains("site-packages/engine"), "{failure:?}");
}
