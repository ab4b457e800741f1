//! The ladder of environments, every rung taken in containers of a real daemon, with images from a real registry: an image of
//! exactly the commit, an image whose native files stand in, a release with the commit's files over it, and a build from source
//! in a container of a toolkit image. Then what goes wrong: images that are missing or another commit's, and a killed build.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use isobench_schema::comparability::KeyField;
use isobench_schema::deviation::DeviationKind;
use isobench_schema::environment::{LiveProof, Rung, StaticProof};
use isobench_schema::event::{EventKind, LaunchStage};
use isobench_schema::failure::FailureClass;
use isobench_schema::ids::{ArmId, Digest};
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use isobench_schema::plan::{Plan, PlannedTask};
use isobench_schema::verdict::{Contrast, Judgement};
use isobench_testkit::{DockerRegistry, FakeWheel};
use rustix::process::Signal;
use support::compiler_image::COMPILER;
use support::daemons::{IMAGE, SYSTEM_PATH, TestDaemon};
use support::{Finished, Place, Running, complete_launches, events, wait_until};

/// The native file that only images and the release have: what a build of the engine would leave.
const NATIVE: &str = "tinyserve/_made.so";
/// The native file that is built.
const BUILT: &str = "tinyserve/_continuations.so";

/// Every arm but the one that doesn't compile.
const ARMS: [&str; 8] = ["--arm", "baseline", "--arm", "human", "--arm", "agent:optimised", "--arm", "agent:native"];
/// Held by the test that runs: what one measures is no other's to disturb.
static ALONE: Mutex<()> = Mutex::new(());

/// A dataset with one task for each rung, a daemon with the image that they run and are built in, and a registry.
struct Ladder<'a> {
    place: Place,
    daemon: &'a TestDaemon,
    repository: String,
}

fn start(daemon: fn() -> Result<TestDaemon, String>) -> Option<(TestDaemon, MutexGuard<'static, ()>)> {
    if !support::is_slow_wanted() {
        println!("skipped: set {}=1 to run it", support::SLOW);
        return None;
    }
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let daemon = daemon().map_err(|why| println!("skipped: the ladder on a real daemon: {why}")).ok()?;
    daemon.make_compiler_image().then_some((daemon, alone))
}

#[test]
fn every_rung_of_the_ladder_is_taken_in_containers() {
    let Some((daemon, _alone)) = start(TestDaemon::docker) else { return };
    let registry = match DockerRegistry::start(None) {
        Ok(registry) => registry,
        Err(why) => {
            println!("skipped: {why}");
            return;
        }
    };
    let ladder = Ladder::new(&daemon, &format!("{}/team/demo", registry.address()));
    let [baseline, human] = ["baseline", "human"].map(|revision| ladder.commit(revision));
    let names = [format!(":baseline-{}", &baseline[..12]), format!(":{human}"), ":release".to_owned()];
    let names = names.map(|tag| format!("{}{tag}", ladder.repository));
    let missing = ladder.run("missing", &["--task", "exact"]);
    assert_eq!(missing.code, Some(4), "{missing:?}");
    assert!(missing.stdout.contains(&names[0]) && missing.stdout.contains("manifest unknown"), "{missing:?}");

    let of_baseline = ladder.make_image("baseline", &names[0]);
    daemon.docker_says(&["tag", &names[0], &names[2]]);
    let ids = BTreeMap::from([("baseline", of_baseline), ("human", ladder.make_image("human", &names[1]))]);
    assert_ne!(ids["baseline"], ids["human"]);
    for name in &names {
        daemon.docker_says(&["push", name]);
        daemon.docker_says(&["image", "rm", name]);
    }
    let finished = ladder.run("run", &ARMS);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    ladder.place.check_sound("run");
    plan_names_each_rung(&ladder);
    launches_are_what_their_rungs_say(&ladder, &ids);
    verdicts_are_there(&ladder);
    builds_are_counted(&ladder);
    let copies = ladder.copies();
    assert_eq!(copies.len(), 2, "one for each image, whatever it is called: {copies:?}");
    another_commit_under_the_name_is_refused(&ladder, &names);
    assert_eq!(ladder.copies(), copies, "another run finds them as they were left");
    a_killed_build_ends_and_is_made_again(&ladder);
    assert_eq!(daemon.docker_says(&["ps", "--all", "--quiet"]), "");
}

#[test]
fn files_are_built_in_containers_of_a_real_podman() {
    let Some((daemon, _alone)) = start(TestDaemon::podman) else { return };
    let ladder = Ladder::new(&daemon, "127.0.0.1:9/team/demo");
    let finished = ladder.run("run", &["--task", "built", "--set", "design.blocks=1"]);
    assert_eq!(finished.code, Some(100), "one arm doesn't compile: {finished:?}");
    ladder.place.check_sound("run");
    assert_eq!(ladder.builds("run").values().sum::<u32>(), 3);
    for record in complete_launches(&ladder.place.path("run")) {
        if record.launch.arm.to_string() == "agent:broken" {
            let Outcome::Failed { failure } = &record.outcome else { panic!("{record:?}") };
            assert_eq!(failure.class, FailureClass::BuildFailed);
            assert!(failure.evidence.iter().any(|line| line.text.contains("error: ")), "{failure:?}");
            continue;
        }
        assert_eq!(record.outcome, Outcome::Measured, "{record:?}");
        let live: LiveProof = read(&ladder, &record, evidence::LIVE_PROOF);
        assert_eq!(live.container.unwrap().daemon.engine, "podman");
        assert!(live.mapped.keys().any(|path| path.ends_with(BUILT)), "{:?}", live.mapped);
    }
    an_image_without_a_compiler_is_told(&ladder);
    a_killed_build_ends_and_is_made_again(&ladder);
    an_image_is_built_with_a_compiler_in_it(&ladder);
    assert_eq!(daemon.docker_says(&["ps", "--all", "--quiet"]), "");
}

impl<'a> Ladder<'a> {
    /// Lays the tasks down: the demo from images by commit, from an image of no commit, over a release, and with a part in C.
    fn new(daemon: &'a TestDaemon, repository: &str) -> Self {
        let ladder = Self { place: Place::new(), daemon, repository: repository.to_owned() };
        let place = &ladder.place;
        ladder.lay_down("exact", &["demo", "--lay-down", "--out", "ladder/exact", "--cache", "timing"]);
        ladder.lay_down("built", &["demo", "--native", "--lay-down", "--out", "ladder/built", "--cache", "timing"]);
        let wheel = FakeWheel::new("tinyserve", "1", "py3-none-any").with("tinyserve/__init__.py", "");
        let wheel = wheel.with(NATIVE, native_file());
        let file = place.path(&wheel.file_name());
        fs::write(&file, wheel.bytes()).unwrap();
        let of_commits = format!(
            "image = \"{repository}:{{commit}}\"\nbaseline-image = \"{repository}:baseline-{{commit12}}\"\n\
             overlay = \"tinyserve\""
        );
        let stands_in = format!("image = \"{repository}:release\"\noverlay = \"tinyserve\"");
        let release =
            format!("python = \"venv\"\nrequirements = [{:?}]\noverlay = \"tinyserve\"", file.display().to_string());
        let text = fs::read_to_string(place.path("ladder/exact/dataset/task.toml")).unwrap();
        for (name, environment) in [("stands-in", &stands_in), ("release", &release), ("exact", &of_commits)] {
            let folder = place.path(&format!("ladder/{name}/dataset"));
            fs::create_dir_all(&folder).unwrap();
            let changed = text.replace("python = \"system\"", environment);
            let mut changed = changed.replace("id = \"exact\"", &format!("id = {name:?}"));
            assert_ne!(text, changed);
            if name != "exact" {
                let of_none = changed.split("\n[[agent]]").next().unwrap();
                changed = of_none.replace("\"repository\"", "\"../../exact/dataset/repository\"");
            }
            fs::write(folder.join("task.toml"), changed).unwrap();
        }
        ladder
    }

    /// Lays a demo down and makes its launches short.
    fn lay_down(&self, name: &str, arguments: &[&str]) {
        let laid = Finished::of(&mut self.command(arguments));
        assert_eq!(laid.code, Some(0), "{laid:?}");
        let task = self.place.path(&format!("ladder/{name}/dataset/task.toml"));
        let text = fs::read_to_string(&task).unwrap();
        let requests = text.lines().find(|line| line.starts_with("requests = ")).unwrap().to_owned();
        let text = text.replace(&requests, "requests = 64").replace("min-window-s = 1.0", "min-window-s = 0.001");
        let blocks = if name == "built" { "blocks = 6" } else { "blocks = 1" };
        let text = text.replace("blocks = 6", blocks).replace("id = \"demo\"", &format!("id = {name:?}"));
        // Of the agents, those that are judged by name elsewhere have no say here.
        let (rest, agents) = text.split_once("\n[[agent]]").unwrap();
        let wanted = ["optimised", "native", "broken"].map(|agent| format!("name = {agent:?}"));
        let kept = agents.split("\n[[agent]]").filter(|agent| wanted.iter().any(|wanted| agent.contains(wanted)));
        let kept: Vec<&str> = std::iter::once(rest).chain(kept).collect();
        fs::write(task, kept.join("\n[[agent]]")).unwrap();
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.isobench(arguments);
        command.env("DOCKER_HOST", self.daemon.address()).env("PATH", SYSTEM_PATH);
        command
    }

    fn run_command(&self, out: &str, more: &[&str]) -> Command {
        let arguments = ["run", "ladder", "--out", out, "--isolation", "container", "--image", COMPILER];
        self.command(&[&arguments[..], more].concat())
    }

    fn run(&self, out: &str, more: &[&str]) -> Finished {
        Finished::of(&mut self.run_command(out, more))
    }

    fn git(&self, arguments: &[&str]) -> Vec<u8> {
        let mut git = Command::new("git");
        git.arg("-C").arg(self.place.path("ladder/exact/dataset/repository")).args(arguments);
        let output = git.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    fn commit(&self, revision: &str) -> String {
        let commit = self.git(&["rev-parse", &format!("{revision}^{{commit}}")]);
        String::from_utf8(commit).unwrap().trim().to_owned()
    }

    /// Makes an image in which the engine of a revision is installed, and returns its id.
    fn make_image(&self, revision: &str, name: &str) -> String {
        let ask = "import sys; print([path for path in sys.path if path.endswith('-packages')][0])";
        let output = Command::new("python3").args(["-I", "-c", ask]).env("PATH", SYSTEM_PATH).output().unwrap();
        let site = String::from_utf8(output.stdout).unwrap();
        let files = self.place.path(&format!("image-{revision}"));
        let site = files.join(site.trim().trim_start_matches('/'));
        fs::create_dir_all(&site).unwrap();
        let archive = self.place.path("engine.tar");
        fs::write(&archive, self.git(&["archive", revision, "tinyserve"])).unwrap();
        assert!(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&site).status().unwrap().success());
        fs::write(site.join(NATIVE), native_file()).unwrap();
        let about = site.join("tinyserve-1.0.dist-info");
        fs::create_dir(&about).unwrap();
        fs::write(about.join("METADATA"), "Metadata-Version: 2.1\nName: tinyserve\nVersion: 1.0\n").unwrap();
        fs::write(about.join("RECORD"), "tinyserve/__init__.py,,\n").unwrap();
        self.daemon.docker_says(&["create", "--name", revision, COMPILER, "/nothing"]);
        self.daemon.docker_says(&["cp", &format!("{}/.", files.display()), &format!("{revision}:/")]);
        let id = self.daemon.docker_says(&["commit", revision, name]);
        self.daemon.docker_says(&["rm", revision]);
        id
    }

    /// Returns the copies of packages in the cache, with what changes when one is made again.
    fn copies(&self) -> Vec<(PathBuf, u64)> {
        let entries = fs::read_dir(self.place.path("cache/image-packages")).unwrap().flatten();
        let records = entries.map(|entry| entry.path().join("manifest.json"));
        let mut records: Vec<_> =
            records.filter_map(|record| Some((record.clone(), record.metadata().ok()?.ino()))).collect();
        records.sort();
        records
    }

    /// Returns how many native builds each arm of a run began, from its events.
    fn builds(&self, run: &str) -> BTreeMap<String, u32> {
        let mut begun = BTreeMap::new();
        for event in events(&self.place.path(run)) {
            if let EventKind::LaunchStage { launch, stage: LaunchStage::NativeBuild } = event.kind {
                *begun.entry(format!("{}/{}", launch.block.task, launch.arm)).or_default() += 1;
            }
        }
        begun
    }
}

fn native_file() -> Vec<u8> {
    [b"\x7fELF".as_slice(), b" native"].concat()
}

fn read<T: serde::de::DeserializeOwned>(ladder: &Ladder<'_>, record: &LaunchRecord, name: &str) -> T {
    serde_json::from_slice(&support::evidence(&ladder.place.path("run"), record, name)).unwrap()
}

/// Each task's environments are of its rung, and those whose native files aren't of each revision say so.
fn plan_names_each_rung(ladder: &Ladder<'_>) {
    let text = fs::read(ladder.place.path("run/plan.json")).unwrap();
    let plan: Plan = isobench_schema::format::from_slice(&text).unwrap();
    let of = |task: &PlannedTask| task.environments.values().map(|spec| spec.rung).collect::<BTreeSet<_>>();
    let rungs: BTreeMap<String, _> = plan.tasks.iter().map(|task| (task.id.to_string(), of(task))).collect();
    let expected =
        [("built", Rung::Source), ("exact", Rung::Image), ("release", Rung::Overlay), ("stands-in", Rung::Overlay)];
    assert_eq!(rungs, expected.map(|(task, rung)| (task.to_owned(), BTreeSet::from([rung]))).into());
    for task in &plan.tasks {
        let told = task.deviations.iter().any(|deviation| deviation.kind == DeviationKind::ReleaseOverlay);
        assert_eq!(told, matches!(task.id.as_str(), "release" | "stands-in"), "{}: {:?}", task.id, task.deviations);
        let toolkits = task.environments.values().filter(|spec| spec.toolkit.is_some()).count();
        assert_eq!(toolkits, if task.id.as_str() == "built" { task.environments.len() } else { 0 });
    }
}

fn launches_are_what_their_rungs_say(ladder: &Ladder<'_>, ids: &BTreeMap<&str, String>) {
    let own = ladder.daemon.docker_says(&["image", "inspect", "--format", "{{.Id}}", COMPILER]);
    let native = Digest::of(native_file().as_slice());
    for record in complete_launches(&ladder.place.path("run")) {
        let (task, arm) = (record.launch.block.task.to_string(), record.launch.arm.to_string());
        assert_eq!(record.outcome, Outcome::Measured, "{record:?}");
        let proven: StaticProof = read(ladder, &record, evidence::STATIC_PROOF);
        let live: LiveProof = read(ladder, &record, evidence::LIVE_PROOF);
        let (image, isolation) = match task.as_str() {
            "exact" => (&ids[if arm == "human" { "human" } else { "baseline" }], "of the arm's own"),
            "stands-in" => (&ids["baseline"], "of the arm's own"),
            _ => (&own, own.as_str()),
        };
        assert_eq!(&live.container.unwrap().image_id, image, "{task}/{arm}");
        assert_eq!(Some(live.executable), proven.executable);
        let said = &record.key.0[&KeyField::Isolation];
        assert!(said.starts_with(&format!("container, image {isolation}, limits ")), "{said}");
        if task == "built" {
            assert!(live.mapped.keys().any(|path| path.ends_with(BUILT)), "{:?}", live.mapped);
            assert_eq!(proven.toolkit.unwrap().id, own);
            assert_eq!(record.key.0.get(&KeyField::Toolkit), Some(&own));
            assert!(proven.native.contains_key(BUILT) && proven.native_build.is_some());
            continue;
        }
        assert_eq!(proven.native.get(NATIVE), Some(&native), "{task}/{arm}");
        assert!(proven.packages.iter().any(|package| package.starts_with("tinyserve==")), "{proven:?}");
        assert!(proven.modules["tinyserve"].starts_with(ladder.place.path("cache").to_str().unwrap()), "{proven:?}");
        assert_eq!(proven.changed.is_empty(), arm != "agent:optimised");
        assert!(record.key.0.contains_key(&KeyField::Recipes) && !record.key.0.contains_key(&KeyField::Toolkit));
    }
}

fn verdicts_are_there(ladder: &Ladder<'_>) {
    let finished = ladder.place.expect(0, &["report", "run", "--json"]);
    let judged: Judgement = isobench_schema::format::from_slice(finished.stdout.as_bytes()).unwrap();
    assert_eq!(judged.tasks.len(), 4);
    for task in &judged.tasks {
        let wanted = |contrast: &&Contrast| contrast.of == ArmId::Human && contrast.against == ArmId::Baseline;
        let human = task.contrasts.iter().find(wanted).unwrap().verdict.to_string();
        match task.id.as_str() {
            "built" => assert_eq!(human, "better", "{task:#?}"),
            _ => assert_eq!(human, "inconclusive", "one block decides nothing"),
        }
    }
}

/// Arms that change Python alone share one build, and a patch of the C file is one more.
fn builds_are_counted(ladder: &Ladder<'_>) {
    let begun = ladder.builds("run");
    let shared: u32 = ["built/baseline", "built/human"].iter().filter_map(|arm| begun.get(*arm)).sum();
    let counts = (shared, begun["built/agent:native"], begun.values().sum::<u32>());
    assert_eq!(counts, (1, 1, 2), "{begun:?}");
    let whole = fs::read_dir(ladder.place.path("cache/native")).unwrap().flatten();
    let whole: Vec<PathBuf> =
        whole.map(|entry| entry.path()).filter(|path| path.join("manifest.json").is_file()).collect();
    assert_eq!(whole.len(), 2);
    for folder in whole {
        let log = fs::read_to_string(folder.join("build.log")).unwrap();
        assert!(log.contains("$ cc -O2") && log.contains(&format!("# in a container of {COMPILER}, sha256:")), "{log}");
    }
}

fn another_commit_under_the_name_is_refused(ladder: &Ladder<'_>, names: &[String]) {
    ladder.daemon.docker_says(&["tag", &names[0], &names[1]]);
    let once = ["--task", "exact", "--arm", "baseline", "--arm", "human", "--set", "design.blocks=1"];
    let finished = ladder.run("wrong", &once);
    assert_eq!(finished.code, Some(100), "{finished:?}");
    let launches = complete_launches(&ladder.place.path("wrong"));
    let human = launches.iter().find(|record| record.launch.arm.to_string() == "human").unwrap();
    let Outcome::Failed { failure } = &human.outcome else { panic!("{human:?}") };
    assert_eq!(failure.class, FailureClass::EnvironmentUnproven, "{failure:?}");
    assert!(failure.message.contains("`tinyserve` isn't of the revision"), "{failure:?}");
    assert!(failure.evidence[0].text.starts_with("another file in the image: "), "{failure:?}");
}

fn failures(ladder: &Ladder<'_>, run: &str) -> Vec<FailureClass> {
    let failed = |record: LaunchRecord| match record.outcome {
        Outcome::Failed { failure } => Some(failure.class),
        Outcome::Measured | Outcome::Interrupted => None,
    };
    complete_launches(&ladder.place.path(run)).into_iter().filter_map(failed).collect()
}

/// An image without a compiler can run the engine, and can't build it.
fn an_image_without_a_compiler_is_told(ladder: &Ladder<'_>) {
    ladder.daemon.make_image();
    let arguments = ["run", "ladder", "--out", "without", "--isolation", "container", "--image", IMAGE];
    let arms = ["--task", "built", "--arm", "baseline", "--arm", "human", "--set", "design.blocks=1"];
    let finished = Finished::of(&mut ladder.command(&[&arguments[..], &arms[..]].concat()));
    assert_eq!(finished.code, Some(100), "{finished:?}");
    let said = fs::read_to_string(ladder.place.path("without/events.jsonl")).unwrap();
    assert!(said.contains("tool-missing") && said.contains("the build program `mkdir` can't be started"), "{said}");
}

/// A command that is killed takes its build along, and what that had made isn't believed.
fn a_killed_build_ends_and_is_made_again(ladder: &Ladder<'_>) {
    let task = ladder.place.path("ladder/built/dataset/task.toml");
    let text = fs::read_to_string(&task).unwrap();
    let slow = format!("cp /bin/sh {BUILT}; touch begun; sleep 600");
    let first = r#"["mkdir", "tinyserve"],"#;
    let slowed = text.replace(first, &format!("{first} [\"sh\", \"-c\", \"{slow}\"],"));
    assert_ne!(text, slowed);
    fs::write(&task, slowed).unwrap();
    let native = ladder.place.path("cache/native");
    let folders = || fs::read_dir(&native).into_iter().flatten().flatten().map(|entry| entry.path());
    let arms = ["--task", "built", "--arm", "baseline", "--arm", "human", "--set", "design.blocks=1"];
    let mut running = Running::start(&mut ladder.run_command("killed", &arms));
    wait_until("the build has begun", || folders().any(|folder| folder.join("tree/begun").exists()));
    running.signal(Signal::KILL);
    assert_eq!(running.finish().code, None);
    // Nobody ends it but its own first process, whose input has closed.
    wait_until("the build has followed", || ladder.daemon.docker_says(&["ps", "--quiet"]).is_empty());
    assert_eq!(ladder.daemon.docker_says(&["ps", "--all", "--quiet"]).lines().count(), 1);
    assert!(folders().any(|folder| folder.join(format!("tree/{BUILT}")).exists()), "it has left its file");

    // The same build with a deadline is killed at it, and its arm has failed.
    let late = [&arms[..], &["--set", "environment.native.timeout-s=2"]].concat();
    let finished = ladder.run("late", &late);
    assert_eq!(finished.code, Some(100), "{finished:?}");
    assert_eq!(failures(ladder, "late"), [FailureClass::BuildTimeout; 2]);
    assert_eq!(ladder.daemon.docker_says(&["ps", "--all", "--quiet"]), "");

    // The build is another one without its sleep, and what the killed one left of a container is swept before it.
    fs::write(&task, text.replace(first, &format!("{first} [\"touch\", \"begun\"],"))).unwrap();
    let finished = ladder.run("again", &arms);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(ladder.builds("again").values().sum::<u32>(), 1);
    assert_eq!(ladder.daemon.docker_says(&["ps", "--all", "--quiet"]), "");
    let shell = fs::read("/bin/sh").unwrap();
    let made = folders().filter(|folder| folder.join("manifest.json").is_file());
    let made: Vec<Vec<u8>> = made.filter_map(|folder| fs::read(folder.join("files").join(BUILT)).ok()).collect();
    assert!(made.len() >= 2 && made.iter().all(|library| *library != shell));
    fs::write(&task, text).unwrap();
}

/// The image of a commit whose part in C is compiled inside, and which can't be imported without it.
fn an_image_is_built_with_a_compiler_in_it(ladder: &Ladder<'_>) {
    let source = ladder.place.path("source");
    fs::create_dir_all(source.join("engine")).unwrap();
    fs::write(source.join("answer.c"), "int answer(void) { return 42; }\n").unwrap();
    let text = "import ctypes, os\n\
        library = ctypes.CDLL(os.path.join(os.path.dirname(__file__), '_answer.so'))\n\
        assert library.answer() == 42\n";
    fs::write(source.join("engine/__init__.py"), text).unwrap();
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        git.arg("-C").arg(&source).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]).args(arguments);
        let output = git.output().unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "--quiet"]);
    git(&["add", "."]);
    git(&["commit", "--quiet", "-m", "first"]);
    let commit = git(&["rev-parse", "HEAD"]);
    let compile = "cc -shared -fPIC -o engine/_answer.so answer.c";
    let python = ladder.daemon.python();
    let base = "isobench-test:base";
    let variables = ["PATH=/usr/bin:/bin", "PYTHONPATH=/opt/isobench/source", "LD_LIBRARY_PATH=/nowhere"];
    ladder.daemon.make_with_variables((COMPILER, base), &variables);
    let build = ["images", "build", &commit, "--repository", "source", "--base", base, "--module", "engine"];
    let more = ["--images", &ladder.repository, "--python", &python, "--memory-per-job", "64", "--run"];
    let build = [&build[..], &more[..]].concat();
    let finished = Finished::of(&mut ladder.command(&[&build[..], &["true"]].concat()));
    assert_eq!(finished.code, Some(100), "nothing was compiled: {finished:?}");
    let finished = Finished::of(&mut ladder.command(&[&build[..], &[compile]].concat()));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let name = format!("{}:{commit}", ladder.repository);
    let listed =
        ladder.daemon.docker_says(&["run", "--rm", "--network", "none", "--entrypoint", "/bin/ls", &name, "/"]);
    assert!(listed.lines().any(|line| line == "opt") && !listed.contains("isobench"), "{listed}");
}
