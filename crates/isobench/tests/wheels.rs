//! `isobench wheels` through the real command, against an index of our own.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "all of it is test code")]

mod support;

use std::fs;

use isobench_schema::ids::Digest;
use isobench_testkit::{FakeWheel, FileAnswer, FilesServer};
use serde_json::Value;
use support::{Finished, Place};

fn engine(version: &str, tag: &str) -> FakeWheel {
    FakeWheel::new("engine", version, tag).with("engine/__init__.py", "").with("engine/_C.abi3.so", "native")
}

fn json(finished: &Finished) -> Value {
    serde_json::from_str(&finished.stdout).unwrap_or_else(|_| panic!("{finished:?}"))
}

#[test]
fn the_wheels_of_an_index_and_of_a_folder_are_listed() {
    let (place, server) = (Place::new(), FilesServer::start().unwrap());
    let wheels = [engine("1.10", "cp38-abi3-manylinux1_x86_64"), engine("1.9", "cp38-abi3-manylinux2014_aarch64")];
    let links: Vec<String> = wheels.iter().map(|wheel| format!("<a href=\"{0}\">{0}</a>", wheel.file_name())).collect();
    server.put("/abc/engine/", FileAnswer::page("text/html", links.join("\n") + "<a href=\"engine-1.tar.gz\">x</a>"));
    let page = server.address("/abc/engine/");
    let all = place.expect(0, &["wheels", "list", &page, "--json"]);
    let versions: Vec<Value> = json(&all).as_array().unwrap().iter().map(|wheel| wheel["version"].clone()).collect();
    assert_eq!(versions, ["1.9", "1.10"]);
    all.says(&["left out: `engine-1.tar.gz` is no wheel's name"]);
    let none = place.expect(4, &["wheels", "list", &page, "--python", "3.7", "--package", "other"]);
    none.says(&["none of the 2 wheels at"]);
    let missing = place.expect(2, &["wheels", "list", &server.address("/none/")]);
    missing.says(&["isn't there (HTTP 404)"]);
    fs::create_dir(place.path("folder")).unwrap();
    fs::write(place.path("folder").join(wheels[0].file_name()), wheels[0].bytes()).unwrap();
    let listed = place.expect(0, &["wheels", "list", "folder"]);
    assert_eq!(listed.stdout, "engine-1.10-cp38-abi3-manylinux1_x86_64.whl  no hash\n");
    place.expect(2, &["wheels", "list", "folder", "--python", "three"]).says(&["is no version such as `3.12`"]);
}

#[test]
fn a_wheel_is_checked_where_it_lies_and_where_it_is_published() {
    let (place, server) = (Place::new(), FilesServer::start().unwrap());
    let wheel = engine("1.2", "cp38-abi3-manylinux1_x86_64");
    let (name, bytes) = (wheel.file_name(), wheel.bytes());
    fs::write(place.path(&name), &bytes).unwrap();
    let found = json(&place.expect(0, &["wheels", "check", &name, "--module", "engine._C", "--json"]));
    assert_eq!((&found["sound"], &found["files"], &found["native_files"]), (&true.into(), &5.into(), &1.into()));
    let digest = Digest::of(&bytes);
    server.put(&format!("/{name}"), FileAnswer::of(bytes));
    let address = server.address(&format!("/{name}"));
    let sound = place.expect(0, &["wheels", "check", &address, "--sha256", digest.as_str()]);
    assert!(sound.stdout.starts_with(&format!("{name} is sound: version 1.2, 5 files (1 native)")), "{sound:?}");
    let other = place.expect(100, &["wheels", "check", &address, "--sha256", &"0".repeat(64)]);
    other.says(&["another file was published"]);
    let lost = FakeWheel::new("pyairports", "0.0.1", "py3-none-any");
    fs::write(place.path(&lost.file_name()), lost.bytes()).unwrap();
    let refused = place.expect(100, &["wheels", "check", &lost.file_name()]);
    assert!(refused.stdout.contains("it is empty: there is nothing in it that could be imported"), "{refused:?}");
    place.expect(2, &["wheels", "check", "none-1-py3-none-any.whl"]);
    let left = fs::read_dir(place.path("tmp")).unwrap().count();
    assert_eq!(left, 0, "what was fetched is gone");
}
