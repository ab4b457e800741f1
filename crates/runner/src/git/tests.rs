//! Tests of opening, resolving and exporting, also of hostile repositories.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use isobench_schema::failure::FailureClass;
use isobench_schema::ids::Revision;

use super::*;
use crate::environment::fixture::{Place, TestRepository, id, listing};

fn open(place: &Place, address: &str) -> Result<Repository, Failure> {
    Repository::open(address, &place.context()).unwrap()
}

fn resolve(place: &Place, repository: &Repository, revision: &str) -> Result<CommitId, Failure> {
    match repository.resolve(&Revision::new(revision).unwrap(), &place.context()).unwrap() {
        ResolvedRevision::Found { commit } => Ok(commit),
        ResolvedRevision::Missing { failure } => Err(failure),
    }
}

#[test]
fn an_export_holds_what_git_archive_holds() {
    let place = Place::new();
    let repository = place.repository(&[("a.py", "print()\n"), ("sub/dir/b", ""), ("-dash", "x"), ("with blank", "y")]);
    for name in [b"new\nline".as_slice(), b"quote\"'\\", "ü/é".as_bytes(), b"latin\xe9", b"tab\t"] {
        repository.write(OsStr::from_bytes(name), name);
    }
    repository.write("binary", &[0, 1, 2, b'\r', b'\n', 255]);
    repository.write("run.sh", b"#!/bin/sh\n");
    std::fs::set_permissions(repository.folder.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("sub/../a.py", repository.folder.join("link")).unwrap();
    symlink("../dir", repository.folder.join("sub/dir/self")).unwrap();
    symlink("missing", repository.folder.join("dangling")).unwrap();
    let commit = repository.commit(&[]);
    let exported = place.export(&repository, &commit, "exported");
    let archive = place.path("archive");
    std::fs::create_dir(&archive).unwrap();
    repository.git(["archive", "--output=../archive.tar", commit.as_str()]);
    let mut tar = std::process::Command::new("tar");
    assert!(tar.arg("-xf").arg(place.path("archive.tar")).current_dir(&archive).status().unwrap().success());
    assert_eq!(listing(&exported), listing(&archive));
    assert_eq!(listing(&exported).len(), 14);
    let modified = exported.join("sub/dir/b").metadata().unwrap().modified().unwrap();
    let since = modified.duration_since(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(since.as_secs(), 315_532_800);
}

#[test]
fn attributes_and_configuration_of_the_repository_have_no_effect() {
    let place = Place::new();
    let repository = place.repository(&[("kept.txt", "one\n"), ("left-out.txt", "two\n"), ("id.txt", "$Id$\n")]);
    let marker = place.path("marker");
    let evil = format!("touch {}", marker.display());
    for (name, value) in [
        ("core.fsmonitor", evil.as_str()),
        ("core.sshCommand", &evil),
        ("core.pager", &evil),
        ("core.autocrlf", "true"),
        ("filter.evil.smudge", &evil),
        ("filter.evil.process", &evil),
        ("remote.origin.url", &format!("ext::{evil}")),
        ("remote.origin.promisor", "true"),
        ("protocol.ext.allow", "always"),
        ("alias.rev-parse", &format!("!{evil}")),
    ] {
        repository.git(["config", name, value]);
    }
    let hook = repository.folder.join(".git/hooks/post-checkout");
    repository.write(&hook, format!("#!/bin/sh\n{evil}\n").as_bytes());
    std::fs::set_permissions(&hook, std::fs::Permissions::from_mode(0o755)).unwrap();
    let attributes = "* filter=evil text eol=crlf\nleft-out.txt export-ignore\nid.txt ident\n";
    let blob = id(&repository.git_with(["hash-object", "-w", "--stdin", "--no-filters"], attributes.as_bytes()));
    let _ = std::fs::remove_file(&marker);
    let listed = repository.git(["ls-tree", "HEAD"]);
    let _ = std::fs::remove_file(&marker);
    let tree = [listed, format!("100644 blob {blob}\t.gitattributes\n").into_bytes()].concat();
    let tree = id(&repository.git_with(["mktree"], &tree));
    let commit = id(&repository.git(["commit-tree", "-m", "attributes", tree.as_str()]));
    let exported = place.export(&repository, &commit, "exported");
    let expected = [
        format!(".gitattributes false {}", attributes.escape_default()),
        "id.txt false $Id$\\n".to_owned(),
        "kept.txt false one\\n".to_owned(),
        "left-out.txt false two\\n".to_owned(),
    ];
    assert_eq!(listing(&exported), expected);
    // A commit that isn't there must not be asked for through the hostile remote.
    let opened = open(&place, repository.address()).unwrap();
    let missing = resolve(&place, &opened, "0123456789012345678901234567890123456789").unwrap_err();
    assert_eq!(missing.class, FailureClass::RevisionNotFound);
    assert!(!marker.exists());
}

#[test]
fn a_replaced_object_does_not_change_what_a_commit_is() {
    let place = Place::new();
    let repository = place.repository(&[("a", "true\n")]);
    let good = repository.head();
    let other = repository.commit(&[("a", "false\n")]);
    repository.git(["replace", good.as_str(), other.as_str()]);
    assert_eq!(listing(&place.export(&repository, &good, "exported")), ["a false true\\n"]);
}

/// An entry of a hand-made tree: mode, name, object.
fn raw_tree(repository: &TestRepository, entries: &[(&str, &str, &CommitId)]) -> CommitId {
    let mut bytes = Vec::new();
    for (mode, name, object) in entries {
        bytes.extend(format!("{mode} {name}\0").into_bytes());
        let hex = object.as_str();
        bytes.extend((0..20).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()));
    }
    id(&repository.git_with(["hash-object", "-t", "tree", "-w", "--literally", "--stdin"], &bytes))
}

#[test]
fn hostile_trees_are_refused_and_nothing_is_written_outside() {
    type Entries<'a> = &'a [(&'a str, &'a str, &'a str)];
    let cases: &[(&str, Entries<'_>)] = &[
        ("a link to an absolute path", &[("120000", "x", "/etc/passwd")]),
        ("a link above the root", &[("120000", "x", "../outside")]),
        ("a link out through another link", &[("120000", "a", "sub"), ("120000", "x", "a/../../outside")]),
        ("a link to a link that leaves", &[("120000", "a", ".."), ("120000", "x", "a/outside")]),
        ("an endless link", &[("120000", "x", "x")]),
        ("a component `..`", &[("40000", "..", "sub")]),
        ("a component `.`", &[("40000", ".", "sub")]),
        ("a repository inside", &[("40000", ".git", "sub")]),
        ("a repository in other letters", &[("40000", ".GIT", "sub")]),
        ("a file named `.git`", &[("100644", ".git", "file")]),
        ("a name with a slash", &[("100644", "../x", "file")]),
        ("an absolute name", &[("100644", "/tmp/x", "file")]),
        ("one name for two files", &[("100644", "x", "file"), ("100644", "x", "file")]),
        ("one name for a link and a folder", &[("120000", "x", "sub"), ("40000", "x", "sub")]),
        ("one name for a folder and a file", &[("40000", "x", "sub"), ("100644", "x", "file")]),
    ];
    for (name, entries) in cases {
        let place = Place::new();
        let repository = place.repository(&[("sub/file", "text\n")]);
        let sub = id(&repository.git(["rev-parse", "HEAD:sub"]));
        let entries: Vec<(&str, &str, CommitId)> = entries
            .iter()
            .map(|(mode, name, target)| match *mode {
                "40000" => (*mode, *name, sub.clone()),
                _ => (*mode, *name, id(&repository.git_with(["hash-object", "-w", "--stdin"], target.as_bytes()))),
            })
            .chain([("40000", "sub", sub.clone())])
            .collect();
        let entries: Vec<(&str, &str, &CommitId)> = entries.iter().map(|(mode, name, id)| (*mode, *name, id)).collect();
        let tree = raw_tree(&repository, &entries);
        let commit = id(&repository.git(["commit-tree", "-m", "hostile", tree.as_str()]));
        let opened = open(&place, repository.address()).unwrap();
        let failure = opened.export(&commit, &place.path("deep/exported"), &place.context()).unwrap().unwrap_err();
        assert_eq!(failure.class, FailureClass::TreeUnsafe, "{name}: {failure}");
        assert!(!failure.evidence.is_empty(), "{name}");
        assert!(!place.path("deep/x").exists() && !place.path("outside").exists(), "{name}");
    }
}

#[test]
fn a_submodule_is_left_as_an_empty_folder_and_noted() {
    let place = Place::new();
    let repository = place.repository(&[("a", "")]);
    let head = repository.head();
    repository.git(["update-index", "--add", "--cacheinfo", &format!("160000,{head},deps/module")]);
    repository.git(["commit", "--quiet", "-m", "submodule"]);
    let opened = open(&place, repository.address()).unwrap();
    let exported = opened.export(&repository.head(), &place.path("tree"), &place.context()).unwrap().unwrap();
    assert_eq!(exported, Exported { files: 1, submodules: vec!["deps/module".to_owned()] });
    assert_eq!(std::fs::read_dir(place.path("tree/deps/module")).unwrap().count(), 0);
}

#[test]
fn revisions_are_resolved_to_commits_or_told_to_be_missing() {
    let place = Place::new();
    let repository = place.repository(&[("a", "")]);
    let head = repository.head();
    repository.git(["tag", "-a", "v1", "-m", "tag"]);
    repository.git(["branch", "feature/x"]);
    let opened = open(&place, repository.address()).unwrap();
    for name in ["main", "v1", "feature/x", "HEAD", head.as_str(), head.short()] {
        assert_eq!(resolve(&place, &opened, name).as_ref(), Ok(&head), "{name}");
    }
    let blob = id(&repository.git(["rev-parse", "HEAD:a"]));
    for name in ["other", "0000000000000000000000000000000000000000", blob.as_str()] {
        let failure = resolve(&place, &opened, name).unwrap_err();
        assert_eq!(failure.class, FailureClass::RevisionNotFound, "{name}");
        assert!(failure.message.contains("check the spelling"), "{failure}");
    }
}

#[test]
fn many_revisions_are_looked_up_by_one_command() {
    let place = Place::new();
    let repository = place.repository(&[("a", "1")]);
    let head = repository.head();
    repository.git(["tag", "-a", "v1", "-m", "tag"]);
    let blob = id(&repository.git(["rev-parse", "HEAD:a"]));
    let names: Vec<String> = (0..500)
        .flat_map(|n| ["main".to_owned(), format!("missing-{n}"), "v1".to_owned(), blob.to_string(), head.to_string()])
        .collect();
    let revisions: Vec<Revision> = names.iter().map(|name| Revision::new(name.as_str()).unwrap()).collect();
    let check = |opened: &Repository, hint: &str| {
        let resolved = opened.resolve_all(&revisions, &place.context()).unwrap();
        assert_eq!(resolved.len(), names.len());
        for (name, resolved) in names.iter().zip(resolved) {
            match resolved {
                ResolvedRevision::Found { commit } => assert_eq!((&commit, name.contains("missing")), (&head, false)),
                ResolvedRevision::Missing { failure } => {
                    assert!(name.contains("missing") || *name == blob.as_str(), "{name}: {failure}");
                    let message = &failure.message;
                    assert!(message.contains(&format!("no revision `{name}`; {hint}")), "{message}");
                }
            }
        }
    };
    check(&open(&place, repository.address()).unwrap(), "fetch it into the repository, or check the spelling");
    assert_eq!(place.log().matches(" cat-file ").count(), 1);
    let url = format!("file://{}", repository.address());
    drop(open(&place, &url).unwrap());
    check(&open(&place, &url).unwrap(), "check the spelling, or name a repository that has it");
    // The mirror's commits; then, after the fetch, everything.
    assert_eq!(place.log().matches(" cat-file ").count(), 3);
    assert_eq!(place.log().matches(" fetch ").count(), 1);
}

#[test]
fn what_a_mirror_has_is_found_also_when_it_cannot_be_fetched() {
    let place = Place::new();
    let repository = place.repository(&[("a", "1")]);
    let (url, head) = (format!("file://{}", repository.address()), repository.head());
    drop(open(&place, &url).unwrap());
    std::fs::rename(&repository.folder, place.path("moved")).unwrap();
    let revisions = [head.as_str(), "main"].map(|name| Revision::new(name).unwrap());
    let resolved = open(&place, &url).unwrap().resolve_all(&revisions, &place.context()).unwrap();
    assert_eq!(resolved[0], ResolvedRevision::Found { commit: head });
    let ResolvedRevision::Missing { failure } = &resolved[1] else { panic!("{resolved:?}") };
    assert_eq!(failure.class, FailureClass::RepositoryUnavailable);
}

#[test]
fn a_bare_repository_and_a_work_tree_are_opened_but_nothing_above_or_below_them() {
    let place = Place::new();
    let repository = place.repository(&[("sub/a", "")]);
    repository.git(["clone", "--quiet", "--bare", ".", "../bare.git"]);
    repository.git(["worktree", "add", "--quiet", "../second"]);
    for good in [repository.folder.clone(), place.path("bare.git"), place.path("second")] {
        let opened = open(&place, good.to_str().unwrap()).unwrap();
        assert_eq!(resolve(&place, &opened, "HEAD"), Ok(repository.head()));
    }
    for bad in [repository.folder.join("sub"), place.path("scratch"), place.path("missing"), Path::new("/").into()] {
        let failure = open(&place, bad.to_str().unwrap()).unwrap_err();
        assert_eq!(failure.class, FailureClass::RepositoryUnavailable, "{}", bad.display());
    }
}

#[test]
fn a_url_is_mirrored_once_and_fetched_when_the_revision_may_be_new() {
    let place = Place::new();
    let repository = place.repository(&[("a", "1")]);
    let url = format!("file://{}", repository.address());
    let first = repository.head();
    let opened = open(&place, &url).unwrap();
    assert_eq!(resolve(&place, &opened, "main"), Ok(first.clone()));
    let second = repository.commit(&[("a", "2")]);
    // A mirror that was made before is asked for a commit that it has, for one that it lacks, and for a branch.
    let opened = open(&place, &url).unwrap();
    assert_eq!(resolve(&place, &opened, first.as_str()), Ok(first.clone()));
    assert_eq!(place.log().matches(" fetch ").count(), 0);
    assert_eq!(resolve(&place, &opened, second.as_str()), Ok(second.clone()));
    assert_eq!(resolve(&place, &opened, "main"), Ok(second.clone()));
    assert_eq!(place.log().matches(" fetch ").count(), 1);
    opened.export(&second, &place.path("tree"), &place.context()).unwrap().unwrap();
    assert_eq!(listing(&place.path("tree")), ["a false 2"]);
    assert_eq!(std::fs::read_dir(place.path("cache/repositories")).unwrap().count(), 2);
}

#[test]
fn a_repository_that_cannot_be_had_is_a_failure_with_evidence() {
    let place = Place::new();
    let url = format!("file://{}/missing", place.path("").display());
    let failure = open(&place, &url).unwrap_err();
    assert_eq!(failure.class, FailureClass::RepositoryUnavailable);
    assert!(failure.transient && failure.evidence.iter().any(|line| line.line.is_some()), "{failure:?}");
    for bad in ["ext::sh -c id", "-x", "relative/path"] {
        assert_eq!(open(&place, bad).unwrap_err().class, FailureClass::RepositoryUnavailable, "{bad}");
    }
}
