//! Tests of virtual environments whose packages are chosen once, by date and with hashes: real uv, on an index of our own.

use isobench_schema::ids::Moment;
use isobench_testkit::{FakeWheel, FileAnswer, FilesServer};

use super::super::remove::remove_tree;
use super::*;
use crate::command::find_program;

/// An index with two versions of a package, of which the second was released a year later.
struct Index {
    server: FilesServer,
}

impl Index {
    fn start() -> Self {
        let index = Self { server: FilesServer::start().unwrap() };
        for version in ["1.0", "2.0"] {
            let wheel = wheel(version, "VALUE = 1\n");
            index.server.put(&format!("/files/{}", wheel.file_name()), FileAnswer::of(wheel.bytes()));
        }
        index.name(&["1.0", "2.0"]);
        index
    }

    /// Makes its page name these versions.
    fn name(&self, versions: &[&str]) {
        let file = |version: &&str| {
            let wheel = wheel(version, "VALUE = 1\n");
            let year = if *version == "1.0" { 2024 } else { 2025 };
            serde_json::json!({
                "filename": wheel.file_name(),
                "url": format!("/files/{}", wheel.file_name()),
                "hashes": { "sha256": Digest::of(&wheel.bytes()) },
                "upload-time": format!("{year}-01-01T00:00:00Z"),
            })
        };
        let files: Vec<_> = versions.iter().map(file).collect();
        let page = serde_json::json!({ "meta": { "api-version": "1.1" }, "name": "fake-engine", "files": files });
        let kind = "application/vnd.pypi.simple.v1+json";
        self.server.put("/simple/fake-engine/", FileAnswer::page(kind, page.to_string()));
    }

    fn venv(&self, exclude_newer: Option<&str>) -> Venv {
        Venv {
            requirements: vec!["fake-engine".to_owned()],
            extra_indexes: vec![self.server.address("/simple")],
            exclude_newer: exclude_newer.map(|moment| Moment::new(moment).unwrap()),
            ..Venv::default()
        }
    }
}

fn wheel(version: &str, content: &str) -> FakeWheel {
    FakeWheel::new("fake_engine", version, "py3-none-any").with("fake_engine/__init__.py", content)
}

fn has_uv() -> bool {
    let found = find_program("uv").is_some();
    if !found {
        println!("skipped: uv isn't on the search path");
    }
    found
}

#[test]
fn packages_are_chosen_by_their_date_and_made_again_by_the_same_list() {
    if !has_uv() {
        return;
    }
    let (place, index) = (Place::new(), Index::start());
    let repository = place.repository(ENGINE);
    let spec = |exclude_newer| {
        let mut spec = repository.spec();
        spec.python = Python::Venv(index.venv(exclude_newer));
        spec
    };
    let newest = prepared(&place, &spec(None));
    assert_eq!(newest.packages(), ["fake_engine==2.0"]);
    let dated = spec(Some("2024-06-01T00:00:00Z"));
    let older = prepared(&place, &dated);
    assert_eq!(older.packages(), ["fake_engine==1.0"]);

    let lock = older.manifest.venv.as_ref().unwrap().lock.clone().unwrap();
    let lists = std::fs::read_dir(place.path("cache/locks")).unwrap().flatten().map(|entry| entry.path());
    let texts: Vec<String> = lists.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    let list = texts.iter().find(|text| Digest::of(text.as_bytes()) == lock).unwrap();
    let hash = Digest::of(&wheel("1.0", "VALUE = 1\n").bytes());
    assert!(list.contains("fake-engine==1.0") && list.contains(&format!("--hash=sha256:{hash}")), "{list}");

    // A newer version appears, with a date before the bound: what is made again is what was chosen.
    let unbounded = newest.manifest.venv.as_ref().unwrap().clone();
    index.name(&["1.0"]);
    remove_tree(&unbounded.folder).unwrap();
    index.name(&["1.0", "2.0"]);
    let again = prepared(&place, &spec(None));
    assert_eq!(again.packages(), newest.packages());
    assert_eq!(again.manifest.venv.as_ref().unwrap().lock, unbounded.lock);
}

#[test]
fn a_package_that_was_replaced_after_it_was_chosen_is_refused() {
    if !has_uv() {
        return;
    }
    let (place, index) = (Place::new(), Index::start());
    let repository = place.repository(ENGINE);
    let mut spec = repository.spec();
    spec.python = Python::Venv(index.venv(None));
    let first = prepared(&place, &spec);
    remove_tree(&first.manifest.venv.as_ref().unwrap().folder).unwrap();
    remove_tree(&place.path("cache/packages")).unwrap();
    let other = wheel("2.0", "import os  # somebody else's\n");
    let answer = FileAnswer::of(other.bytes());
    index.server.put(&format!("/files/{}", other.file_name()), answer);
    let failure = failure_of(&place, &spec);
    assert_eq!(failure.class, FailureClass::PackageInstallFailed, "{failure}\n{}", place.log());
}

#[test]
fn a_package_that_was_emptied_is_named() {
    let place = Place::new();
    let repository = place.repository(ENGINE);
    let emptied = FakeWheel::new("pyairports", "0.0.1", "py3-none-any");
    let files = [(emptied.file_name(), emptied.bytes()), (wheel("1.0", "").file_name(), wheel("1.0", "").bytes())];
    let mut requirements = Vec::new();
    for (name, bytes) in files {
        std::fs::write(place.path(&name), bytes).unwrap();
        requirements.push(place.path(name).display().to_string());
    }
    let mut spec = repository.spec();
    spec.python = Python::Venv(Venv { requirements, ..Venv::default() });
    let made = prepared(&place, &spec);
    assert_eq!(made.manifest.venv.unwrap().empty_packages, ["pyairports-0.0.1"]);
    assert!(place.log().contains("packages in which nothing can be imported: pyairports-0.0.1\n"));
}
