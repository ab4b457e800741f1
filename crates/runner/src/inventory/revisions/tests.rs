//! Facts of small repositories, and of a real clone where there is one.

use std::path::Path;
use std::time::Instant;

use super::*;
use crate::environment::fixture::{Place, TestRepository};

const STUB: &str = "this script has moved";

fn look_for() -> LookFor {
    let native =
        |path: &str, unless: Option<&str>| NativePath { path: path.to_owned(), unless: unless.map(str::to_owned) };
    LookFor {
        main: "main".to_owned(),
        native: vec![native("csrc", None), native("CMakeLists.txt", None), native("setup.py", Some("CMakeLists.txt"))],
        scripts: vec!["benchmarks/serving.py".to_owned(), "engine/server.py".to_owned()],
        stub: Some(STUB.to_owned()),
    }
}

fn ask(place: &Place, repository: &TestRepository, wanted: &[&str]) -> Vec<Option<RevisionFacts>> {
    let opened = Repository::open(repository.address(), &place.context()).unwrap().unwrap();
    let wanted: Vec<Revision> = wanted.iter().map(|revision| Revision::new(*revision).unwrap()).collect();
    revisions(&opened, &wanted, &look_for(), &place.context()).unwrap().unwrap()
}

fn one(place: &Place, repository: &TestRepository, wanted: &str) -> RevisionFacts {
    ask(place, repository, &[wanted]).remove(0).unwrap()
}

#[test]
fn an_unknown_revision_has_no_facts_and_the_others_have_theirs() {
    let place = Place::new();
    let repository = place.repository(&[("csrc/a.cu", "1"), ("engine/server.py", "serve()")]);
    let second = repository.commit(&[("engine/model.py", "x"), ("benchmarks/serving.py", STUB)]);
    let found = ask(&place, &repository, &["0123456789012345678901234567890123456789", second.as_str(), "main"]);
    assert_eq!((found[0].as_ref(), found[1].as_ref()), (None, found[2].as_ref()));
    let facts = found[1].as_ref().unwrap();
    assert_eq!(facts.commit, second);
    assert_eq!(facts.files_changed.as_deref().unwrap(), ["benchmarks/serving.py", "engine/model.py"]);
    // The other script only says where it has gone.
    assert_eq!(facts.scripts.as_deref().unwrap(), ["engine/server.py"]);
    assert_eq!((facts.subject.as_str(), facts.source), ("commit", FactSource::Git));
    let first = one(&place, &repository, facts.parent.as_ref().unwrap().as_str());
    assert_eq!(first.parent, None);
    assert_eq!(first.files_changed.as_deref().unwrap(), ["csrc/a.cu", "engine/server.py"]);
    assert_eq!(first.native_key, facts.native_key);
}

#[test]
fn the_native_key_follows_what_is_compiled_and_nothing_else() {
    let place = Place::new();
    let repository = place.repository(&[("csrc/a.cu", "1"), ("setup.py", "1")]);
    let mut commits = vec![repository.commit(&[])];
    commits.push(repository.commit(&[("engine/x.py", "1"), ("csrc2/a.cu", "1")]));
    commits.push(repository.commit(&[("setup.py", "2")]));
    commits.push(repository.commit(&[("CMakeLists.txt", "1")]));
    commits.push(repository.commit(&[("setup.py", "3")]));
    commits.push(repository.commit(&[("csrc/deep/er/b.cu", "1")]));
    let wanted: Vec<&str> = commits.iter().map(CommitId::as_str).collect();
    let found = ask(&place, &repository, &wanted);
    let keys: Vec<_> = found.iter().map(|facts| facts.as_ref().unwrap().native_key.clone().unwrap()).collect();
    let equal: Vec<bool> = keys.windows(2).map(|pair| pair[0] == pair[1]).collect();
    assert_eq!(equal, [true, false, false, true, false]);
    assert!(keys.iter().all(|key| key.len() == 12));
}

#[test]
fn the_native_key_is_the_digest_of_paths_and_objects() {
    let place = Place::new();
    let repository = place.repository(&[("csrc/a.cu", "1"), ("setup.py", "1")]);
    let object = |path: &str| {
        let output = repository.git(["rev-parse", &format!("HEAD:{path}")]);
        String::from_utf8(output).unwrap().trim().to_owned()
    };
    let text = format!("csrc {}\nsetup.py {}\n", object("csrc"), object("setup.py"));
    let key = one(&place, &repository, "main").native_key.unwrap();
    assert_eq!(key, Digest::of(text.as_bytes()).short());
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge/tools");
    let script = "import sys; sys.path.insert(0, sys.argv[1]); sys.dont_write_bytecode = True; import revisions; \
        paths = [{'path': 'csrc'}, {'path': 'CMakeLists.txt'}, {'path': 'setup.py', 'unless': 'CMakeLists.txt'}]; \
        print(*revisions.native_keys(revisions.Clone(sys.argv[2]), {'native': paths}, ['HEAD']))";
    let mut python = std::process::Command::new("python3");
    let output = python.args(["-c", script]).arg(tools).arg(repository.folder.join(".git")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), key, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn releases_are_placed_by_where_they_branched_off() {
    let place = Place::new();
    let repository = place.repository(&[("a", "0")]);
    let first = repository.commit(&[("a", "1")]);
    repository.git(["checkout", "--quiet", "-b", "release"]);
    repository.commit(&[("fix", "1")]);
    repository.git(["tag", "v0.2.0"]);
    repository.git(["tag", "-a", "-m", "annotated", "v0.2.0.post1"]);
    repository.git(["tag", "v0.3.0rc1"]);
    repository.git(["checkout", "--quiet", "main"]);
    let second = repository.commit(&[("a", "2")]);
    let third = repository.commit(&[("a", "3")]);
    repository.git(["tag", "v0.10.0"]);
    let last = repository.commit(&[("a", "4")]);
    let around = |commit: &CommitId| {
        let facts = one(&place, &repository, commit.as_str());
        (facts.after_release, facts.first_release)
    };
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(around(&first), (None, name("v0.2.0")));
    assert_eq!(around(&second), (name("v0.2.0.post1"), name("v0.10.0")));
    assert_eq!(around(&third), (name("v0.2.0.post1"), name("v0.10.0")));
    assert_eq!(around(&last), (name("v0.10.0"), None));
}

#[test]
fn a_merge_is_compared_with_its_first_parent() {
    let place = Place::new();
    let repository = place.repository(&[("a", "0")]);
    repository.git(["checkout", "--quiet", "-b", "side"]);
    repository.commit(&[("side", "1")]);
    repository.git(["checkout", "--quiet", "main"]);
    let parent = repository.commit(&[("b", "1")]);
    repository.git(["merge", "--quiet", "--no-ff", "-m", "merge", "side"]);
    let facts = one(&place, &repository, "main");
    assert_eq!((facts.parent, facts.files_changed.unwrap()), (Some(parent), vec!["side".to_owned()]));
}

#[test]
fn a_cut_off_history_says_nothing_of_changed_files() {
    let place = Place::new();
    let repository = place.repository(&[("a", "0")]);
    repository.commit(&[("a", "1")]);
    let address = format!("file://{}", repository.address());
    repository.git(["clone", "--quiet", "--bare", "--depth", "1", &address, place.path("shallow").to_str().unwrap()]);
    let shallow = TestRepository { folder: place.path("shallow") };
    let facts = one(&place, &shallow, "main");
    assert_eq!((facts.parent, facts.files_changed), (None, None));
    assert!(facts.native_key.is_some());
}

#[test]
fn moments_are_in_utc() {
    for (seconds, expected) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_732_811_488, "2024-11-28T16:31:28Z"),
        (-1, "1969-12-31T23:59:59Z"),
    ] {
        assert_eq!(moment(seconds).unwrap().as_str(), expected);
    }
    assert_eq!(moment(i64::from(i32::MAX) * 1_000), None);
}

/// Compares with the table of known commits, which another program wrote, where a clone of vLLM is at hand.
#[test]
fn the_known_commits_of_a_clone_have_the_facts_of_the_table() {
    let Ok(clone) = std::env::var("ISOBENCH_VLLM_CLONE") else {
        eprintln!("skipped: ISOBENCH_VLLM_CLONE names no clone of vLLM");
        return;
    };
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../knowledge");
    let read = |name: &str| std::fs::read_to_string(table.join(name)).unwrap().parse::<toml::Table>().unwrap();
    let engine = |table: &toml::Table| table["engine"].as_array().unwrap()[0].as_table().unwrap().clone();
    let (commits, vllm) = (engine(&read("commits.toml")), engine(&read("engines.toml")));
    let text = |value: &toml::Value| value.as_str().unwrap().to_owned();
    let list = |value: &toml::Value| value.as_array().unwrap().iter().map(text).collect::<Vec<_>>();
    let native = |row: &toml::Value| NativePath { path: text(&row["path"]), unless: row.get("unless").map(text) };
    let look_for = LookFor {
        main: text(&vllm["main"]),
        native: vllm["native"].as_array().unwrap().iter().map(native).collect(),
        scripts: list(&vllm["scripts"]),
        stub: vllm.get("stub").map(text),
    };
    let rows = commits["commit"].as_array().unwrap();
    let wanted: Vec<Revision> = rows.iter().map(|row| Revision::new(text(&row["id"])).unwrap()).collect();
    let place = Place::new();
    let repository = Repository::open(&clone, &place.context()).unwrap().unwrap();
    let started = Instant::now();
    let found = revisions(&repository, &wanted, &look_for, &place.context()).unwrap().unwrap();
    eprintln!("{} revisions in {:.2} s", rows.len(), started.elapsed().as_secs_f64());
    let newest_tag = "v0.10.0";
    let tag = Revision::new(newest_tag).unwrap();
    let has_releases = matches!(repository.resolve(&tag, &place.context()).unwrap(), ResolvedRevision::Found { .. });
    if !has_releases {
        eprintln!("skipped: the clone has no release tags, so that nothing is compared of releases");
    }
    for (row, facts) in rows.iter().zip(found) {
        let facts = facts.unwrap();
        let sets = commits["script-sets"].as_array().unwrap();
        let set = usize::try_from(row["scripts"].as_integer().unwrap()).unwrap();
        assert_eq!(facts.commit.as_str(), text(&row["id"]));
        assert_eq!(facts.parent.map(String::from), row.get("parent").map(text));
        assert_eq!(facts.committed.as_str(), text(&row["committed"]));
        assert_eq!(facts.subject, text(&row["subject"]));
        if has_releases {
            assert_eq!(facts.after_release, row.get("after").map(text));
        }
        // The first release after the clone's newest tag is only in the table.
        if has_releases && facts.after_release.as_deref() != Some(newest_tag) {
            assert_eq!(facts.first_release, row.get("first").map(text));
        }
        assert_eq!(facts.native_key, row.get("native").map(text));
        assert_eq!(facts.scripts, Some(list(&sets[set])));
        if let Some(files) = row.get("files") {
            assert_eq!(facts.files_changed, Some(list(files)));
        }
    }
}
