//! What tests of builds start from: a daemon, a base with an interpreter, a repository of two commits.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::daemons::{IMAGE, SYSTEM_PATH, TestDaemon};
use crate::support::{self, Finished, Place, is_slow_wanted};

/// The base of the builds: the interpreter and a shell.
pub(crate) const BASE: &str = "isobench-test:builder";
/// A build of plain Python: what it generates isn't the commit's, and what is the commit's stays.
pub(crate) const GENERATE: &str = "python3 -c \"open('engine/_version.py', 'w').write('VERSION = 1')\"";

pub(crate) struct Bench<'a> {
    pub(crate) place: Place,
    pub(crate) daemon: &'a TestDaemon,
    pub(crate) images: String,
}

impl Bench<'_> {
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.place.isobench(arguments);
        command.env("DOCKER_HOST", self.daemon.address()).env("DOCKER_CONFIG", self.place.path("docker"));
        command
    }

    pub(crate) fn build<'s>(&'s self, commits: &[&'s str], more: &[&'s str]) -> Vec<&'s str> {
        let mut arguments = vec!["images", "build"];
        arguments.extend(commits);
        arguments.extend(["--repository", "source", "--base", BASE, "--images", &self.images, "--module", "engine"]);
        arguments.extend(["--memory-per-job", "64", "--json"]);
        arguments.extend(more);
        arguments
    }

    pub(crate) fn run(&self, code: i32, arguments: &[&str]) -> Finished {
        let finished = Finished::of(&mut self.command(arguments));
        assert_eq!(finished.code, Some(code), "{arguments:?}: {finished:?}");
        finished
    }

    pub(crate) fn built(&self, code: i32, commits: &[&str], more: &[&str]) -> Vec<Value> {
        let finished = self.run(code, &self.build(commits, more));
        serde_json::from_str(&finished.stdout).unwrap_or_else(|error| panic!("{error}: {finished:?}"))
    }

    pub(crate) fn names(&self) -> String {
        self.daemon.docker_says(&[
            "images",
            "--filter",
            "label=io.isobench.image",
            "--format",
            "{{.Repository}}:{{.Tag}}",
        ])
    }
}

fn git(place: &Place, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.arg("-C").arg(place.path("source")).args(["-c", "user.name=a", "-c", "user.email=a@example.com"]);
    let output = command.args(arguments).env("PATH", SYSTEM_PATH).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// Makes a repository with two commits, and returns them.
pub(crate) fn commits(place: &Place) -> [String; 2] {
    fs::create_dir_all(place.path("source/engine")).unwrap();
    fs::create_dir_all(place.path("docker")).unwrap();
    git(place, &["init", "--quiet"]);
    ["1", "2"].map(|speed| {
        let text = format!("from engine._version import VERSION\nSPEED = {speed}\n");
        fs::write(place.path("source/engine/__init__.py"), text).unwrap();
        git(place, &["add", "."]);
        git(place, &["commit", "--quiet", "-m", speed]);
        git(place, &["rev-parse", "HEAD"])
    })
}

/// Makes [`BASE`]: the interpreter, findable by its name, and a shell.
pub(crate) fn make_base(daemon: &TestDaemon, place: &Place) {
    let python = daemon.make_image();
    let root = place.path("base");
    for folder in ["bin", "usr/local/bin"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    // Merged `/usr`: the shell goes where `/bin` leads.
    fs::create_dir_all(root.join("usr/bin")).unwrap();
    fs::copy("/bin/sh", root.join("usr/bin/sh")).unwrap();
    fs::remove_dir(root.join("bin")).unwrap();
    std::os::unix::fs::symlink(python, root.join("usr/local/bin/python3")).unwrap();
    let container = daemon.docker_says(&["create", IMAGE, "none"]);
    daemon.docker_says(&["cp", &format!("{}/usr", root.display()), &format!("{container}:/")]);
    let has_bin =
        daemon.docker_says(&["export", "--output", &place.path("t").to_string_lossy(), &container]).is_empty();
    assert!(has_bin);
    let list = Command::new("tar").arg("-tf").arg(place.path("t")).output().unwrap();
    if !String::from_utf8_lossy(&list.stdout).lines().any(|line| line == "bin") {
        std::os::unix::fs::symlink("usr/bin", root.join("bin")).unwrap();
        daemon.docker_says(&["cp", &format!("{}/bin", root.display()), &format!("{container}:/bin")]);
    }
    let variables = "ENV PATH=/usr/local/bin:/usr/bin:/bin PYTHONPATH=/opt/isobench/source";
    daemon.docker_says(&["commit", "--change", variables, &container, BASE]);
    daemon.docker_says(&["rm", &container]);
}

pub(crate) fn start(daemon: fn() -> Result<TestDaemon, String>) -> Option<TestDaemon> {
    if !is_slow_wanted() {
        println!("skipped: set {}=1 to run it", support::SLOW);
        return None;
    }
    daemon().map_err(|why| println!("skipped: builds on a real daemon: {why}")).ok()
}
