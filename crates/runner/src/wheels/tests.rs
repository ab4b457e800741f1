//! Tests of looking through wheels, and of fetching them from a server that is wrong in every way.

use std::path::PathBuf;

use isobench_schema::ids::Digest;
use isobench_testkit::{FakeWheel, FileAnswer, FilesServer, Packing, ZipEntry, zip};

use super::archive::{CheckWheelError, Expected, WheelContents, check};
use super::fetch::{FetchError, Fetcher};
use super::name::Target;

const TAG: &str = "cp38-abi3-manylinux1_x86_64";

fn engine() -> FakeWheel {
    FakeWheel::new("engine", "1.2", TAG)
        .with("engine/__init__.py", "VALUE = 1\n")
        .with("engine/entry/points.py", "")
        .with("engine/_C.abi3.so", "native")
        .with("engine-1.2.dist-info/top_level.txt", "engine\n")
}

fn look(name: &str, bytes: &[u8], expected: &Expected) -> Result<WheelContents, CheckWheelError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    check(&path, expected)
}

fn modules(names: &[&str]) -> Expected {
    Expected { sha256: None, modules: names.iter().map(|name| (*name).to_owned()).collect() }
}

#[test]
fn a_sound_wheel_is_described() {
    let wheel = engine();
    let bytes = wheel.bytes();
    let pinned = Expected { sha256: Some(Digest::of(&bytes)), ..modules(&["engine.entry.points", "engine._C"]) };
    let found = look(&wheel.file_name(), &bytes, &pinned).unwrap();
    assert_eq!((found.version.as_str(), found.bytes), ("1.2", bytes.len() as u64));
    assert_eq!(found.sha256, Digest::of(&bytes));
    assert_eq!(found.files["engine/_C.abi3.so"], (Digest::of(b"native"), 6));
    let modules: Vec<&str> = found.modules.iter().map(String::as_str).collect();
    assert_eq!(modules, ["engine", "engine._C", "engine.entry", "engine.entry.points"]);
    assert_eq!(found.notes, Vec::<String>::new());
    // Archives of single commits keep wheels under a placeholder for the version.
    let renamed = look(&format!("engine-1.0.0.dev-{TAG}.whl"), &bytes, &Expected::default()).unwrap();
    assert_eq!(renamed.notes, ["its name says version 1.0.0.dev0, its metadata `1.2`"]);
}

/// Checks that a wheel of these entries is refused with this reason.
fn refused(name: &str, wheel: &FakeWheel, expected: &str, change: impl FnOnce(&mut Vec<ZipEntry>)) {
    let mut entries = wheel.entries();
    change(&mut entries);
    let error = look(&wheel.file_name(), &zip(&entries), &Expected::default()).expect_err(name);
    assert!(error.to_string().contains(expected), "{name}: {error}");
}

#[test]
fn an_empty_or_untrue_wheel_is_refused() {
    let empty = FakeWheel::new("pyairports", "0.0.1", "py3-none-any");
    refused("only metadata", &empty, "it is empty: there is nothing in it that could be imported", |_| {});
    let hollow = FakeWheel::new("pyairports", "0.0.1", "py3-none-any").with("README.md", "Now mine.");
    refused("nothing to import", &hollow, "it is empty", |_| {});
    let declared =
        FakeWheel::new("x", "1", "py3-none-any").with("other.py", "").with("x-1.dist-info/top_level.txt", "x\n");
    refused("declares what it lacks", &declared, "it says that `x` can be imported, and has no file of it", |_| {});
    // What stands in the index under that name is a sample project, whose module is called otherwise.
    let sample = FakeWheel::new("pyairports", "0.0.1", "py3-none-any").with("sample/__init__.py", "");
    let found = look(&sample.file_name(), &sample.bytes(), &Expected::default()).unwrap();
    assert_eq!(found.notes, ["nothing in it is imported as `pyairports`"]);
    let error = look(&sample.file_name(), &sample.bytes(), &modules(&["pyairports.airports"])).unwrap_err();
    assert!(error.to_string().ends_with("the module `pyairports.airports` isn't in it"), "{error}");
    let bare = FakeWheel::new("pyairports", "2.1.1", "py3-none-any").with("pyairports/__init__.py", "");
    let error = look(&bare.file_name(), &bare.bytes(), &modules(&["pyairports.airports"])).unwrap_err();
    assert!(error.to_string().ends_with("the module `pyairports.airports` isn't in it"), "{error}");
    let other = Expected { sha256: Some(Digest::of(b"the publisher's")), ..Expected::default() };
    let error = look(&bare.file_name(), &bare.bytes(), &other).unwrap_err();
    assert!(error.to_string().contains("its SHA-256 is "), "{error}");

    let wheel = engine();
    refused("a file that isn't listed", &wheel, "it has `extra.py`, which its list doesn't name", |entries| {
        entries.push(ZipEntry::new("extra.py", "import os"));
    });
    refused("a listed file is missing", &wheel, "it lists `engine/__init__.py`, which it doesn't have", |entries| {
        entries.remove(0);
    });
    refused("a file is another one", &wheel, "`engine/__init__.py` isn't the file that its list says", |entries| {
        entries[0].bytes = b"VALUE = 2\n".to_vec();
    });
    refused("no list", &wheel, "it has no list of its files", |entries| drop(entries.pop()));
    refused("two folders of metadata", &wheel, "exactly one folder of metadata", |entries| {
        entries.push(ZipEntry::new("other-1.dist-info/METADATA", ""));
    });
    let stranger = FakeWheel::new("stranger", "1.2", TAG).with("engine/__init__.py", "");
    let error = look(&engine().file_name(), &stranger.bytes(), &Expected::default()).unwrap_err();
    assert!(error.to_string().contains("another distribution's"), "{error}");
}

#[test]
fn a_hostile_archive_is_refused() {
    let wheel = engine();
    let add = |name: &str| ZipEntry::new(name, "x");
    for (name, expected) in [
        ("../../etc/cron.d/x", "has a component `.` or `..`"),
        ("/etc/passwd", "is absolute"),
        ("a//b.py", "has an empty component"),
        ("a\\..\\b.py", "has a backslash"),
    ] {
        refused(name, &wheel, expected, |entries| entries.push(add(name)));
    }
    refused("a link", &wheel, "is neither a file nor a folder", |entries| {
        entries.push(ZipEntry { mode: 0o120_777, ..add("engine/link") });
    });
    refused("two names", &wheel, "has two names", |entries| {
        entries[0].local_name = Some(b"engine/__evil__.py".to_vec());
    });
    refused("twice", &wheel, "is in it twice", |entries| entries.push(entries[0].clone()));
    refused("a wrong sum", &wheel, "`engine/__init__.py`", |entries| entries[0].crc = Some(1));
    refused("longer than it says", &wheel, "`engine/__init__.py`", |entries| entries[0].size = Some(3));
    refused("shorter than it says", &wheel, "`engine/__init__.py`", |entries| entries[0].size = Some(3000));
    refused("a bomb", &wheel, "unpacks from ", |entries| {
        entries.push(ZipEntry::new("engine/bomb.bin", vec![0; 80 << 20]));
    });
    refused("a bomb that lies", &wheel, "`engine/bomb.bin`", |entries| {
        entries.push(ZipEntry { size: Some(10), ..ZipEntry::new("engine/bomb.bin", vec![0; 1 << 20]) });
    });
    let whole = wheel.bytes();
    for length in [0, 10, whole.len() / 2, whole.len() - 1] {
        let error = look(&wheel.file_name(), &whole[..length], &Expected::default()).unwrap_err();
        assert!(matches!(error, CheckWheelError::Archive { .. }), "{length}: {error}");
    }
    let stored: Vec<ZipEntry> =
        wheel.entries().into_iter().map(|entry| ZipEntry { packing: Packing::Stored, ..entry }).collect();
    assert!(look(&wheel.file_name(), &zip(&stored), &Expected::default()).is_ok());
    let error = look("engine-1.2.whl", &whole, &Expected::default()).unwrap_err();
    assert!(matches!(error, CheckWheelError::Name(_)), "{error}");
}

struct Net {
    server: FilesServer,
    folder: tempfile::TempDir,
    wheel: Vec<u8>,
}

impl Net {
    fn new() -> Self {
        let net = Self {
            server: FilesServer::start().unwrap(),
            folder: tempfile::tempdir().unwrap(),
            wheel: engine().bytes(),
        };
        net.server.put("/engine.whl", FileAnswer::of(net.wheel.clone()));
        net
    }

    fn place(&self) -> PathBuf {
        self.folder.path().join("into/engine.whl")
    }

    /// Fetches a path, and checks that nothing is left if it fails.
    fn fetch(&self, path: &str, wanted: Option<&Digest>) -> Result<(Digest, u64), FetchError> {
        let result = Fetcher::new().file(&self.server.address(path), wanted, &self.place());
        let left = std::fs::read_dir(self.folder.path().join("into")).into_iter().flatten().count();
        assert_eq!(left, usize::from(result.is_ok()), "{result:?}");
        result
    }
}

#[test]
fn a_wheel_is_fetched_whole_and_against_its_hash() {
    let net = Net::new();
    let digest = Digest::of(&net.wheel);
    let found = net.fetch("/engine.whl", Some(&digest)).unwrap();
    assert_eq!(found, (digest, net.wheel.len() as u64));
    assert_eq!(std::fs::read(net.place()).unwrap(), net.wheel);
}

#[test]
fn what_is_not_the_wheel_is_not_kept() {
    let other = Digest::of(b"other");
    let net = Net::new();
    assert!(matches!(net.fetch("/engine.whl", Some(&other)), Err(FetchError::HashMismatch { .. })));
    assert!(matches!(net.fetch("/none.whl", None), Err(FetchError::NotFound { status: 404, .. })));
    net.server.put("/busy.whl", FileAnswer::status(503));
    assert!(matches!(net.fetch("/busy.whl", None), Err(FetchError::Status { status: 503, .. })));
    for cut in [0, 100, net.wheel.len() - 1] {
        net.server.put("/cut.whl", FileAnswer { cut_after: Some(cut), ..FileAnswer::of(net.wheel.clone()) });
        let error = net.fetch("/cut.whl", None).unwrap_err();
        assert!(matches!(error, FetchError::CutOff { .. } | FetchError::Network { .. }), "{error}");
    }
    let gone = { FilesServer::start().unwrap().address("/x.whl") };
    let error = Fetcher::new().file(&gone, None, &net.place()).unwrap_err();
    assert!(matches!(error, FetchError::Network { .. }), "{error}");
}

#[test]
fn an_answer_that_leads_to_another_host_is_followed_only_with_a_hash() {
    let net = Net::new();
    let digest = Digest::of(&net.wheel);
    let elsewhere = FilesServer::start().unwrap();
    elsewhere.put("/engine.whl", FileAnswer::of(net.wheel.clone()));
    net.server.put("/near.whl", FileAnswer::leading_to("engine.whl"));
    net.server.put("/far.whl", FileAnswer::leading_to(&elsewhere.address("/engine.whl")));
    net.server.put("/file.whl", FileAnswer::leading_to("file:///etc/passwd"));
    net.server.put("/round.whl", FileAnswer::leading_to("/round.whl"));
    assert!(net.fetch("/near.whl", None).is_ok());
    std::fs::remove_file(net.place()).unwrap();
    let error = net.fetch("/far.whl", None).unwrap_err();
    assert!(error.to_string().contains("it is another host"), "{error}");
    assert_eq!(elsewhere.asked(), Vec::<String>::new());
    assert!(net.fetch("/far.whl", Some(&digest)).is_ok());
    std::fs::remove_file(net.place()).unwrap();
    for path in ["/file.whl", "/round.whl"] {
        assert!(matches!(net.fetch(path, Some(&digest)), Err(FetchError::Redirect { .. })), "{path}");
    }
}

#[test]
fn an_index_is_read_in_both_forms_and_the_wheel_that_fits_is_fetched() {
    let net = Net::new();
    let wheel = engine();
    let digest = Digest::of(&net.wheel);
    let file = wheel.file_name();
    net.server.put(&format!("/abc/{file}"), FileAnswer::of(net.wheel.clone()));
    let html = format!(
        "<a href=\"../{file}#sha256={digest}\">{file}</a><a href=\"../engine-9-cp312-cp312-win32.whl\">engine-9-cp312-cp312-win32.whl</a>"
    );
    net.server.put("/abc/engine/", FileAnswer::page("text/html", html));
    let json = format!(
        r#"{{"meta":{{"api-version":"1.0"}},"files":[{{"filename":"{file}","url":"/abc/{file}","hashes":{{"sha256":"{digest}"}}}}]}}"#
    );
    net.server.put("/simple/engine/", FileAnswer::page("application/vnd.pypi.simple.v1+json", json));
    let target = Target { python_minor: 11, machine: "x86_64".to_owned(), glibc_minor: 31 };
    let fetcher = Fetcher::new();
    for page in ["/abc/engine/", "/simple/engine/"] {
        let listing = fetcher.page(&net.server.address(page)).unwrap();
        let found = listing.newest("engine", &target).unwrap();
        assert_eq!(found.sha256, Some(digest.clone()));
        let to = net.folder.path().join(&found.file);
        fetcher.file(&found.place, found.sha256.as_ref(), &to).unwrap();
        assert!(check(&to, &Expected { sha256: found.sha256.clone(), ..Expected::default() }).is_ok());
    }
    // No wheel on the page is for this interpreter.
    let older = Target { python_minor: 7, ..target };
    assert_eq!(fetcher.page(&net.server.address("/abc/engine/")).unwrap().newest("engine", &older), None);
    assert!(fetcher.is_there(&net.server.address("/abc/engine/")).unwrap());
    assert!(!fetcher.is_there(&net.server.address("/def/engine/")).unwrap());
}
