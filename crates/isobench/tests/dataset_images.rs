//! A dataset of commits whose arms run from images of a registry that asks for a password, on a real daemon whose disk is too
//! small for all of them at once.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "all of it is test code"
)]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use isobench_schema::environment::{LiveProof, Python, Rung, StaticProof};
use isobench_schema::format;
use isobench_schema::images::{ImageAudit, room_for};
use isobench_schema::outcome::{LaunchRecord, Outcome, evidence};
use isobench_schema::plan::Plan;
use isobench_testkit::{
    DockerRegistry, FakeImage, FakeRegistry, RegistryFault, RegistrySettings, RegistryUser, ScriptRepository,
};
use rustix::process::Signal;
use support::daemons::{IMAGE, SYSTEM_PATH, TestDaemon};
use support::small_disk::SmallDisk;
use support::{Finished, Place, Running, complete_launches, wait_until};

const USER: &str = "bench";
const PASSWORD: &str = "s3cret";
/// Another base than [`IMAGE`], with which it shares no layer.
const OTHER: &str = "isobench-test:other";
/// What the daemon needs of its disk besides images.
const BESIDE: u64 = 16 << 20;
/// A model's configuration, which is enough to plan with.
const CONFIG: &str = r#"{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64, "num_hidden_layers": 2,
"num_attention_heads": 2, "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000,
"max_position_embeddings": 2048, "torch_dtype": "float16"}"#;

/// A dataset of three commits in a row, and how the command is told of everything.
struct Commits {
    place: Place,
    /// The baseline of the first, and the three.
    ids: Vec<String>,
    repository: String,
}

impl Commits {
    fn new(registry: &str) -> Self {
        let place = Place::new();
        let engine = ScriptRepository::create(&place.path("engine")).unwrap();
        let mut ids = vec![engine.baseline, engine.human];
        let file = engine.dir.join("vllm/behaviour.py");
        for (work, before) in [(90_000, 120_000), (60_000, 90_000)] {
            let text = fs::read_to_string(&file).unwrap();
            fs::write(&file, text.replace(&format!("WORK = {before}"), &format!("WORK = {work}"))).unwrap();
            git(&engine.dir, &["commit", "--quiet", "--all", "--message", "faster"]);
            ids.push(String::from_utf8(git(&engine.dir, &["rev-parse", "HEAD"])).unwrap().trim().to_owned());
        }
        let command = "python benchmarks/benchmark_latency.py --model org/tiny --batch-size 4 --input-len 8 \
                       --output-len 128 --num-iters 100";
        let row = |pair: &[String]| {
            let row = serde_json::json!({ "project": "vllm", "commit": pair[1], "parent": pair[0], "subject": "faster",
                "perf_command": command });
            row.to_string() + "\n"
        };
        let rows: String = ids.windows(2).map(row).collect();
        fs::write(place.path("rows.jsonl"), rows).unwrap();
        place.expect(0, &["import", "rows.jsonl", "--out", "imported.jsonl"]);
        let imported = fs::read_to_string(place.path("imported.jsonl")).unwrap();
        let own = imported.replace("https://github.com/vllm-project/vllm.git", engine.dir.to_str().unwrap());
        assert_ne!(imported, own);
        fs::write(place.path("commits.jsonl"), own).unwrap();
        fs::create_dir_all(place.path("models/org/tiny")).unwrap();
        fs::write(place.path("models/org/tiny/config.json"), CONFIG).unwrap();
        Self { place, ids, repository: format!("{registry}/team/engine") }
    }

    fn log_in(&self, registry: &str, password: &str) {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{USER}:{password}"));
        let text = format!(r#"{{"auths": {{"{registry}": {{"auth": "{encoded}"}}}}}}"#);
        fs::create_dir_all(self.place.path("docker")).unwrap();
        fs::write(self.place.path("docker/config.json"), text).unwrap();
    }

    /// Makes the image of a commit upon a base, and sends it to the registry.
    fn make_image(&self, daemon: &TestDaemon, base: &str, commit: &str) {
        let ask = "import sys; print([path for path in sys.path if path.endswith('-packages')][0])";
        let output = Command::new("python3").args(["-I", "-c", ask]).env("PATH", SYSTEM_PATH).output().unwrap();
        let site = String::from_utf8(output.stdout).unwrap();
        let files = self.place.path(&format!("image-{commit}"));
        let site = files.join(site.trim().trim_start_matches('/'));
        fs::create_dir_all(&site).unwrap();
        let archive = self.place.path("engine.tar");
        fs::write(&archive, git(&self.place.path("engine"), &["archive", commit, "vllm"])).unwrap();
        assert!(Command::new("tar").arg("-xf").arg(&archive).arg("-C").arg(&site).status().unwrap().success());
        let about = site.join("vllm-0.4.3.dist-info");
        fs::create_dir(&about).unwrap();
        fs::write(about.join("METADATA"), "Metadata-Version: 2.1\nName: vllm\nVersion: 0.4.3\n").unwrap();
        fs::write(about.join("RECORD"), "vllm/__init__.py,,\n").unwrap();
        let (name, container) = (format!("{}:{commit}", self.repository), format!("c{commit}"));
        daemon.docker_says(&["create", "--name", &container, base, "/nothing"]);
        daemon.docker_says(&["cp", &format!("{}/.", files.display()), &format!("{container}:/")]);
        daemon.docker_says(&["commit", &container, &name]);
        daemon.docker_says(&["rm", &container]);
        let config = self.place.path("docker");
        daemon.docker_says(&["--config", config.to_str().unwrap(), "push", "--quiet", &name]);
    }

    fn command(&self, daemon: Option<&TestDaemon>, arguments: &[&str]) -> Command {
        let mut command = self.place.isobench(arguments);
        command.env("DOCKER_CONFIG", self.place.path("docker")).env("PATH", SYSTEM_PATH);
        if let Some(daemon) = daemon {
            command.env("DOCKER_HOST", daemon.address());
        }
        command
    }

    /// Plans or runs the dataset from images.
    fn asked<'a>(&'a self, what: &[&'a str]) -> Vec<&'a str> {
        let with = ["--images", &self.repository, "--isolation", "container", "--clone", "vllm=engine"];
        let more = ["--device", "h100-sxm", "--models", "models", "--fixed", "1", "--disk-floor", "0"];
        [what, &with, &more].concat()
    }
}

fn git(folder: &Path, arguments: &[&str]) -> Vec<u8> {
    let who = ["-c", "user.name=Test", "-c", "user.email=test@example.invalid"];
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(who).args(arguments);
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_DATE"), "2024-01-02T00:00:00Z");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// Makes a base that begins with another layer than [`IMAGE`].
fn make_other_base(daemon: &TestDaemon, place: &Place) {
    fs::write(place.path("other"), "another base").unwrap();
    daemon.docker_says(&["create", "--name", "other", IMAGE, "/nothing"]);
    daemon.docker_says(&["cp", place.path("other").to_str().unwrap(), "other:/"]);
    let archive = place.path("other.tar");
    daemon.docker_says(&["export", "--output", archive.to_str().unwrap(), "other"]);
    daemon.docker_says(&["import", archive.to_str().unwrap(), OTHER]);
    daemon.docker_says(&["rm", "other"]);
}

fn read<T: serde::de::DeserializeOwned>(run: &Path, record: &LaunchRecord, name: &str) -> T {
    serde_json::from_slice(&support::evidence(run, record, name)).unwrap()
}

/// Returns what can't be had for a test on a real daemon and a real registry, if something can't.
fn not_here() -> Option<String> {
    if support::is_slow_wanted() { None } else { Some(format!("set {}=1 to run it", support::SLOW)) }
}

#[test]
fn commits_run_from_images_of_which_the_disk_holds_only_some() {
    if let Some(why) = not_here() {
        println!("skipped: {why}");
        return;
    }
    let user = RegistryUser { user: USER.to_owned(), password: PASSWORD.to_owned() };
    let here = DockerRegistry::start(Some(&user)).and_then(|registry| Ok((registry, TestDaemon::docker()?)));
    let (registry, builder) = match here {
        Ok(here) => here,
        Err(why) => {
            println!("skipped: images of commits on a real daemon: {why}");
            return;
        }
    };
    let commits = Commits::new(registry.address());
    commits.log_in(registry.address(), PASSWORD);
    builder.make_image();
    make_other_base(&builder, &commits.place);
    // The first and the last share their base.
    for (commit, base) in commits.ids[1..].iter().zip([IMAGE, OTHER, IMAGE]) {
        commits.make_image(&builder, base, commit);
    }
    drop(builder);
    let audit =
        ["images", "audit", "commits.jsonl", "--images", &commits.repository, "--clone", "vllm=engine", "--json"];
    let audit = Finished::of(&mut commits.command(None, &audit));
    let audit: ImageAudit =
        format::from_slice(audit.stdout.as_bytes()).unwrap_or_else(|error| panic!("{error}: {audit:?}"));
    assert_eq!((audit.counts.human_only, audit.storage.shared_layers), (3, 1), "{:#?}", audit.counts);
    let largest = audit.tasks.iter().filter_map(|task| task.human.found.bytes).max().unwrap();
    // Room for one image to come and for what shares its base, and not for another one beside it.
    let beside = tempfile::tempdir().unwrap();
    let size = (room_for(largest) + BESIDE).to_string();
    let Some(disk) = SmallDisk::mount(&beside.path().join("disk"), &size) else { return };
    let daemon = TestDaemon::docker_with(disk.path()).unwrap();

    let planned =
        Finished::of(&mut commits.command(Some(&daemon), &commits.asked(&["plan", "commits.jsonl", "--json"])));
    let plan: Plan =
        format::from_slice(planned.stdout.as_bytes()).unwrap_or_else(|error| panic!("{error}: {planned:?}"));
    let tasks: Vec<&str> = plan.tasks.iter().map(|task| task.id.as_str()).collect();
    let expected = [1, 3, 2].map(|place: usize| format!("vllm-{}", &commits.ids[place][..8]));
    assert_eq!(tasks, expected, "{:#?}", plan.exclusions);
    for environment in plan.tasks.iter().flat_map(|task| task.environments.values()) {
        let Python::Image(image) = &environment.python else { panic!("{environment:#?}") };
        let is_own = image.holds.as_ref() == Some(&environment.source.commit);
        assert_eq!(environment.rung, if is_own { Rung::Image } else { Rung::NativeTree });
        assert!(image.pinned.as_ref().unwrap().repo_digests[0].starts_with(&format!("{}@sha256:", commits.repository)));
    }
    commits.log_in(registry.address(), "wr0ng");
    let refused = Finished::of(&mut commits.command(Some(&daemon), &commits.asked(&["plan", "commits.jsonl"])));
    assert_eq!(refused.code, Some(2), "{refused:?}");
    commits.log_in(registry.address(), PASSWORD);
    let run =
        Finished::of(&mut commits.command(Some(&daemon), &commits.asked(&["run", "commits.jsonl", "--out", "run"])));
    assert!(matches!(run.code, Some(0 | 100)), "{run:?}");
    let launches = complete_launches(&commits.place.path("run"));
    assert_eq!(launches.len(), 6, "{run:?}");
    let folder = commits.place.path("run");
    for record in &launches {
        assert_eq!(record.outcome, Outcome::Measured, "{record:?}");
        let proven: StaticProof = read(&folder, record, evidence::STATIC_PROOF);
        let live: LiveProof = read(&folder, record, evidence::LIVE_PROOF);
        assert_eq!(live.container.unwrap().image_id, proven.image.as_ref().unwrap().id);
        assert!(proven.modules["vllm"].starts_with(commits.place.path("cache").to_str().unwrap()), "{proven:?}");
    }
    commits.place.check_sound("run");
    assert_eq!(run.stderr.matches(" is there, ").count(), 3, "{}", run.stderr);
    // What shared its base went when the last one came.
    let left = daemon.docker_says(&["images", "--quiet", "--no-trunc"]);
    let last = &plan.tasks[2].images[0].id;
    assert_eq!(left.lines().collect::<BTreeSet<_>>(), BTreeSet::from([last.as_str()]));
    let listed = Finished::of(&mut commits.command(Some(&daemon), &["environments", "list"]));
    assert_eq!(listed.stdout.lines().filter(|line| line.starts_with("image ")).count(), 1, "{listed:?}");
    let all = ["environments", "prune", "--max-size", "0"];
    let pruned = Finished::of(&mut commits.command(Some(&daemon), &all));
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    assert_eq!(daemon.docker_says(&["images", "--quiet"]), "");
    assert_eq!(daemon.docker_says(&["ps", "--all", "--quiet"]), "");
    drop(daemon);
}

#[test]
fn a_pull_ends_when_the_run_is_interrupted() {
    if let Some(why) = not_here() {
        println!("skipped: {why}");
        return;
    }
    let daemon = match TestDaemon::docker() {
        Ok(daemon) => daemon,
        Err(why) => {
            println!("skipped: images of commits on a real daemon: {why}");
            return;
        }
    };
    let image = FakeImage::new(&[&vec![7; 60_000]]);
    let at = format!("/blobs/{}", image.layer_digest(0).unwrap());
    let faults = vec![RegistryFault::Slow { at, gap: Duration::from_millis(20) }];
    let slow = FakeRegistry::start(RegistrySettings { faults, ..RegistrySettings::default() });
    let mut commits = Commits::new(slow.address());
    commits.repository = slow.repository();
    fs::create_dir(commits.place.path("docker")).unwrap();
    slow.add(&commits.ids[1], &image);
    let asked = commits.asked(&["run", "commits.jsonl", "--out", "run", "--limit", "1"]);
    let mut run = Running::start(&mut commits.command(Some(&daemon), &asked));
    let state = Path::new("/proc").join(run.process().to_string()).join("stat");
    let has_ended = || fs::read_to_string(&state).is_ok_and(|stat| stat.contains(") Z "));
    wait_until("the layer is on its way", || slow.count(&image.layer_digest(0).unwrap()) > 0 || has_ended());
    run.signal(Signal::INT);
    let ended = run.finish();
    assert_eq!(ended.code, Some(5), "{ended:?}");
    ended.says(&["pulling ", "interrupted; go on with: isobench run"]);
    commits.place.check_sound("run");
    assert_eq!(daemon.docker_says(&["images", "--quiet"]), "");
    let listed = Finished::of(&mut commits.command(Some(&daemon), &["environments", "list"]));
    assert!(!listed.stdout.contains("image "), "{listed:?}");
}
