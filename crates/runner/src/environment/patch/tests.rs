//! Tests of patches: what applies, and each class of what doesn't.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::environment::fixture::{Place, TestRepository, listing};

/// Returns the lines `line N`.
fn numbered_lines(numbers: std::ops::RangeInclusive<u32>) -> String {
    numbers.map(|number| format!("line {number}")).collect::<Vec<_>>().join("\n") + "\n"
}

/// A tree to patch.
fn tree(place: &Place) -> PathBuf {
    let tree = place.path("tree");
    std::fs::create_dir_all(tree.join("sub")).unwrap();
    std::fs::write(tree.join("numbers"), numbered_lines(1..=20)).unwrap();
    std::fs::write(tree.join("sub/other"), "a\nb\nc\n").unwrap();
    std::fs::write(tree.join("twice"), "x\ny\nz\nx\ny\nz\n").unwrap();
    symlink("sub", tree.join("link")).unwrap();
    tree
}

fn check_with(binary: BinaryContent, patch: &str, expected: Result<&[&str], FailureClass>) {
    let place = Place::new();
    let tree = tree(&place);
    let before = listing(&tree);
    let patch = Patch::new("agent.patch", patch.as_bytes().to_vec());
    match (apply(&patch, binary, &tree, &place.context()).unwrap(), expected) {
        (Ok(changed), Ok(expected)) => {
            let changed: Vec<String> = changed.iter().map(|path| to_text(path)).collect();
            assert_eq!(changed, expected);
        }
        (Err(failure), Err(class)) => {
            assert_eq!(failure.class, class, "{failure} {:?}", failure.evidence);
            assert_eq!(failure.stage, FailureStage::Acquire);
            assert!(failure.evidence.iter().all(|line| line.file == "agent.patch" || line.file == "prepare.log"));
            let is_whole = class == FailureClass::PatchEmpty;
            assert!(is_whole || !failure.evidence.is_empty(), "{failure} has no evidence");
            assert_eq!(listing(&tree), before, "{failure}");
        }
        (found, _) => panic!("{found:?} isn't {expected:?} for\n{}", String::from_utf8_lossy(&patch.bytes.0)),
    }
    let outside = std::fs::read_dir(place.path("")).unwrap().count();
    assert!(outside <= 4 && !place.path("outside").exists());
}

fn check(patch: &str, expected: Result<&[&str], FailureClass>) {
    check_with(BinaryContent::Refused, patch, expected);
}

/// A patch of `numbers` with one hunk that replaces a line.
fn replacing(line: usize, says: usize) -> String {
    let (before, after) = (line - 1, line + 1);
    format!(
        "diff --git a/numbers b/numbers\n--- a/numbers\n+++ b/numbers\n@@ -{start},3 +{start},3 @@\n \
         line {before}\n-line {line}\n+LINE\n line {after}\n",
        start = says - 1,
    )
}

const OTHER: &str = "--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n";
const REJECTED: &str = "--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n-x\n+B\n c\n";

#[test]
fn a_patch_that_fits_exactly_is_applied() {
    check(&replacing(5, 5), Ok(&["numbers"]));
    check(OTHER, Ok(&["sub/other"]));
    check(&(replacing(5, 5) + OTHER), Ok(&["numbers", "sub/other"]));
    check(&format!("From abc\nSubject: mail\n\n---\n sub/other | 2 +-\n\n{OTHER}-- \n2.47\n"), Ok(&["sub/other"]));
    check(&OTHER.replace("a/sub", "sub").replace("b/sub", "sub"), Ok(&["sub/other"]));
    check("--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+x\n", Ok(&["new/file"]));
    check("--- a/sub/other\n+++ /dev/null\n@@ -1,3 +0,0 @@\n-a\n-b\n-c\n", Ok(&["sub/other"]));
}

#[test]
fn a_patch_that_changes_nothing_is_empty() {
    check("", Err(FailureClass::PatchEmpty));
    check(" \n\n", Err(FailureClass::PatchEmpty));
    check("--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n b\n c\n", Err(FailureClass::PatchEmpty));
    check("--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n-b\n+b\n c\n", Err(FailureClass::PatchEmpty));
    check("diff --git a/sub/other b/sub/other\nold mode 100755\nnew mode 100644\n", Err(FailureClass::PatchEmpty));
}

#[test]
fn what_is_no_diff_is_malformed() {
    for patch in [
        "I made the engine faster.\n",
        "*** Begin Patch\n*** Update File: numbers\n",
        "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n",
        "--- a/sub/other\n+++ b/sub/other\n",
        "diff --git a/sub/other b/sub/other\n--- a/sub/other\n+++ b/sub/other\n",
        "diff --git a/sub/other b/sub/other\n--- a/sub/other\nnothing\n",
        "--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n",
        "--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n+C\n c\n",
        "--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n*b\n+B\n c\n",
        "--- a/sub/other\n+++ b/sub/other\n@@ -one +1 @@\n a\n",
        "--- a/sub/other\n+++ b/sub/other\n@@ -99999999999999999999,3 +1 @@\n a\n",
        "diff --git a/x b/y\nnew file mode 100600\n",
        "diff --git a/x b/y\n",
    ] {
        check(patch, Err(FailureClass::PatchMalformed));
    }
}

#[test]
fn a_patch_that_fits_nowhere_is_rejected() {
    check(REJECTED, Err(FailureClass::PatchRejected));
    check(&OTHER.replace("sub/other", "missing"), Err(FailureClass::PatchRejected));
    check("--- /dev/null\n+++ b/sub/other\n@@ -0,0 +1 @@\n+x\n", Err(FailureClass::PatchRejected));
    check("--- /dev/null\n+++ b/numbers/x\n@@ -0,0 +1 @@\n+x\n", Err(FailureClass::PatchRejected));
    check("--- a/sub/other\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", Err(FailureClass::PatchRejected));
    check(&OTHER.replace('\n', "\r\n"), Err(FailureClass::PatchRejected));
    check(&OTHER.replace("sub/other", "sub"), Err(FailureClass::PatchRejected));
    // Another white space is another line.
    check(&OTHER.replace(" a\n", "  a\n"), Err(FailureClass::PatchRejected));
}

#[test]
fn a_patch_of_which_some_fits_is_partial() {
    check(&(replacing(5, 5) + REJECTED), Err(FailureClass::PatchPartial));
    check(&(REJECTED.to_owned() + &replacing(5, 5)), Err(FailureClass::PatchPartial));
    let two = replacing(5, 5) + "@@ -14,3 +14,3 @@\n line 14\n-line x\n+LINE\n line 16\n";
    check(&two, Err(FailureClass::PatchPartial));
}

#[test]
fn a_patch_that_fits_only_elsewhere_is_fuzzy() {
    check(&replacing(5, 7), Err(FailureClass::PatchFuzzy));
    check(&replacing(7, 5), Err(FailureClass::PatchFuzzy));
    check("--- a/twice\n+++ b/twice\n@@ -2,3 +2,3 @@\n x\n-y\n+Y\n z\n", Err(FailureClass::PatchFuzzy));
}

#[test]
fn a_patch_that_leaves_the_tree_is_refused() {
    for name in
        ["/etc/passwd", "a/../outside", "a/../../outside", "a/sub/../../../outside", "a/.git/config", "a/.GIT/x"]
    {
        let new = format!("--- /dev/null\n+++ {name}\n@@ -0,0 +1 @@\n+x\n");
        check(&new, Err(FailureClass::PatchEscapes));
        let old = format!("--- {name}\n+++ {name}\n@@ -1 +1 @@\n-x\n+y\n");
        check(&old, Err(FailureClass::PatchEscapes));
    }
    check("--- /dev/null\n+++ b//outside\n@@ -0,0 +1 @@\n+x\n", Err(FailureClass::PatchEscapes));
    check("--- /dev/null\n+++ \"b/\\056./outside\"\n@@ -0,0 +1 @@\n+x\n", Err(FailureClass::PatchEscapes));
    check("--- a/link/other\n+++ b/link/other\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", Err(FailureClass::PatchEscapes));
    check("--- /dev/null\n+++ b/link/new\n@@ -0,0 +1 @@\n+x\n", Err(FailureClass::PatchEscapes));
    let rename = "diff --git a/numbers b/n\nsimilarity index 100%\nrename from numbers\nrename to ../outside\n";
    check(rename, Err(FailureClass::PatchEscapes));
}

const LINK: &str = "diff --git a/new b/new\nnew file mode 120000\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+TARGET\n\
                    \\ No newline at end of file\n";

#[test]
fn binary_content_links_and_submodules_need_leave() {
    let literal = "diff --git a/new b/new\nnew file mode 100644\n\
                   index 0000000000000000000000000000000000000000..f76dd238ade08917e6712764a16a22005a50573d\n\
                   GIT binary patch\nliteral 1\nIcmZPo000310RR91\n\nliteral 0\nHcmV?d00001\n\n";
    let module =
        "diff --git a/m b/m\nnew file mode 160000\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+Subproject commit abc\n";
    let inside = LINK.replace("TARGET", "sub/other");
    for patch in [
        literal,
        "diff --git a/new b/new\nBinary files a/new and b/new differ\n",
        "--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n-b\n+\0\n c\n",
        "diff --git a/numbers b/numbers\nold mode 100644\nnew mode 120000\n",
        module,
        &inside,
    ] {
        check(patch, Err(FailureClass::PatchBinary));
    }
    check_with(BinaryContent::Allowed, literal, Ok(&["new"]));
    check_with(BinaryContent::Allowed, &inside, Ok(&["new"]));
    check_with(BinaryContent::Allowed, &(inside.clone() + REJECTED), Err(FailureClass::PatchRejected));
    check_with(BinaryContent::Allowed, &(inside.clone() + &replacing(5, 7)), Err(FailureClass::PatchFuzzy));
    for target in ["/etc/passwd", "../outside", "link/../../outside"] {
        let patch = LINK.replace("TARGET", target);
        check_with(BinaryContent::Allowed, &patch, Err(FailureClass::PatchEscapes));
        // A link that is made first and written through afterwards.
        let through = patch + "--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+x\n";
        check_with(BinaryContent::Allowed, &through, Err(FailureClass::PatchRejected));
    }
}

#[test]
fn evidence_names_the_lines_of_the_patch() {
    let place = Place::new();
    let tree = tree(&place);
    let patch = Patch::new("agent.patch", (replacing(5, 5) + REJECTED).into_bytes());
    let failure = apply(&patch, BinaryContent::Refused, &tree, &place.context()).unwrap().unwrap_err();
    assert_eq!(failure.message, "the patch `agent.patch` applies only in part: 1 of 2 changes don't fit");
    let line = EvidenceLine::new("agent.patch", Some(11), "line 2 of `sub/other` has `b`");
    assert_eq!(failure.evidence, [line]);
}

/// Makes two commits that differ in every way a text patch can express.
fn two_commits(place: &Place) -> TestRepository {
    let long = numbered_lines(0..=199);
    let repository = place.repository(&[
        ("edited", &long),
        ("no-line-end", "a\nb"),
        ("gains-line-end", "a\nb"),
        ("windows", "a\r\nb\r\nc\r\n"),
        ("deleted/empty", ""),
        ("deleted/file", "x\ny\n"),
        ("renamed", &long.replace("line", "row")),
        ("moved only", "stays\n"),
        ("mode.sh", "#!/bin/sh\n"),
        ("ünusual \"name\"\t", "x\n"),
    ]);
    repository.git(["mv", "renamed", "new/../renamed-and-edited"]);
    repository.git(["mv", "moved only", "moved"]);
    repository.git(["rm", "--quiet", "-r", "deleted"]);
    let edited = long.replace("line 3\n", "").replace("line 50\n", "LINE\nLINE\n").replace("line 199\n", "end");
    let mode = repository.folder.join("mode.sh");
    std::fs::set_permissions(mode, std::fs::Permissions::from_mode(0o755)).unwrap();
    repository.commit(&[
        ("edited", &format!("first\n{edited}")),
        ("no-line-end", "a\nc"),
        ("gains-line-end", "a\nb\n"),
        ("windows", "a\r\nB\r\nc\r\n"),
        ("renamed-and-edited", &long.replace("line", "row").replace("row 70\n", "")),
        ("created/empty", ""),
        ("created/file", "x\n\n\ny"),
        ("ünusual \"name\"\t", "y\n"),
    ]);
    repository
}

#[test]
fn patches_as_git_writes_them_give_the_tree_that_they_came_from() {
    let formats: &[&[&str]] = &[
        &[],
        &["-U1"],
        &["-U10"],
        &["-M"],
        &["-C", "-C"],
        &["--no-renames"],
        &["--no-prefix"],
        &["--src-prefix=i/", "--dst-prefix=w/"],
        &["--full-index", "--binary"],
        &["--stat", "--patch"],
        &["--patience", "--function-context"],
    ];
    let place = Place::new();
    let repository = two_commits(&place);
    let first = super::super::fixture::id(&repository.git(["rev-parse", "HEAD~1"]));
    let expected = listing(&place.export(&repository, &repository.head(), "expected"));
    for (number, format) in formats.iter().enumerate() {
        let arguments = [&["diff"], *format, &["HEAD~1", "HEAD"]].concat();
        let bytes = repository.git(&arguments);
        let tree = place.export(&repository, &first, &format!("tree-{number}"));
        let patch = Patch::new("git.patch", bytes);
        let changed = apply(&patch, BinaryContent::Refused, &tree, &place.context()).unwrap();
        assert!(changed.is_ok(), "{format:?}: {changed:?}");
        assert_eq!(listing(&tree), expected, "{format:?}");
    }
    let mail = repository.git(["format-patch", "--stdout", "-1"]);
    let tree = place.export(&repository, &first, "mail");
    apply(&Patch::new("mail", mail), BinaryContent::Refused, &tree, &place.context()).unwrap().unwrap();
    assert_eq!(listing(&tree), expected);
}

#[test]
fn two_patches_of_one_file_in_a_row_build_on_each_other() {
    let second = "--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n-B\n+BB\n c\n";
    check(&(OTHER.to_owned() + second), Ok(&["sub/other"]));
    let back = "--- a/sub/other\n+++ b/sub/other\n@@ -1,3 +1,3 @@\n a\n-B\n+b\n c\n";
    check(&(OTHER.to_owned() + back), Err(FailureClass::PatchEmpty));
}
