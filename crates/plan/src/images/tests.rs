//! What is wanted of a registry, and what its answers mean for a dataset.

use std::collections::BTreeSet;

use isobench_schema::commit_task::{Origin, RowFormat};
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::{ImageDigest, Moment, Revision, TaskId};
use isobench_schema::images::{ImageFound, ImagePart, ImageState};
use serde_json::Map;

use super::*;

fn naming() -> Naming {
    let parse = |text| TagTemplate::parse(text).unwrap();
    Naming { human: parse(HUMAN_TEMPLATE), baseline: parse(BASELINE_TEMPLATE) }
}

fn task(commit: &str, parent: Option<&str>) -> CommitTask {
    CommitTask {
        id: TaskId::new(format!("t-{}", commit.get(..8).unwrap_or(commit))).unwrap(),
        engine: EngineKind::Generic,
        repository: "https://example.org/engine".to_owned(),
        commit: Revision::new(commit).unwrap(),
        parent: parent.map(|parent| Revision::new(parent).unwrap()),
        subject: None,
        model: None,
        benchmark_kind: None,
        command: None,
        server_command: None,
        files_changed: Vec::new(),
        agents: Vec::new(),
        origin: Origin { file: "rows".to_owned(), row: 1, format: RowFormat::TaskList },
        columns: Map::new(),
        further_rows: Vec::new(),
    }
}

fn id(digit: char) -> String {
    digit.to_string().repeat(40)
}

fn digest(text: &str) -> ImageDigest {
    ImageDigest::of(text.as_bytes())
}

fn image(name: &str, layers: &[(&str, u64)]) -> ImageFound {
    ImageFound {
        digest: Some(digest(name)),
        manifest: Some(digest(name)),
        bytes: Some(layers.iter().map(|(_, bytes)| bytes).sum::<u64>() + 1),
        layers: layers.iter().map(|(name, bytes)| ImagePart { digest: digest(name), bytes: *bytes }).collect(),
        ..ImageFound::only(ImageState::Present, "it is there")
    }
}

fn answers(found: &[(&str, ImageFound)], tags: &[&str]) -> Answers {
    Answers {
        tags: Some(tags.iter().map(|&tag| tag.to_owned()).collect::<BTreeSet<_>>()),
        found: found.iter().map(|(tag, found)| (ImageTag::new(*tag).unwrap(), found.clone())).collect(),
        pulls: None,
    }
}

fn audited(tasks: &[CommitTask], answers: &Answers) -> isobench_schema::images::ImageAudit {
    let naming = naming();
    let wanted = wanted(tasks, &Facts::default(), Knowledge::embedded(), &naming);
    let asked = AuditAsked {
        dataset: "d",
        repository: "r/n",
        platform: "linux/amd64",
        asked: Moment::new("2026-01-02T03:04:05Z").unwrap(),
        naming: &naming,
    };
    audit(&asked, &wanted, answers)
}

#[test]
fn images_are_named_by_the_whole_commit_and_by_twelve_digits_of_the_baseline() {
    let commit = CommitId::new("015069b01741e9ecb9e604c7fe87fbdfc306ebe5").unwrap();
    let naming = naming();
    assert_eq!(naming.human.tag(&commit).unwrap().as_str(), commit.as_str());
    assert_eq!(naming.baseline.tag(&commit).unwrap().as_str(), "baseline-015069b01741");
    let other = TagTemplate::parse("v1_{commit8}-cu12").unwrap();
    assert_eq!(other.tag(&commit).unwrap().as_str(), "v1_015069b0-cu12");
}

#[test]
fn a_template_that_makes_no_tags_is_refused_at_once() {
    for (text, expected) in [
        ("latest", "the template `latest` has no `{commit}`, so that every commit would have the same tag"),
        ("{commit4}", "the template `{commit4}` has `{commit4}`, which isn't `{commit}`"),
        ("{parent}", "has `{parent}`, which isn't"),
        ("{commit", "the template `{commit` has `{commit}`, which isn't"),
        ("a b {commit}", "the template `a b {commit}` makes no tag"),
        ("-{commit}", "makes no tag"),
    ] {
        let error = TagTemplate::parse(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_commits_of_the_public_tasks_and_their_parents_are_known_by_eight_digits() {
    let mut row = task("015069b0", None);
    row.engine = EngineKind::Vllm;
    let found = wanted(std::slice::from_ref(&row), &Facts::default(), Knowledge::embedded(), &naming());
    let tags: Vec<&str> = found.iter().flat_map(Wanted::images).map(|image| image.tag.as_str()).collect();
    assert_eq!(tags, ["015069b01741e9ecb9e604c7fe87fbdfc306ebe5", "baseline-fbefc8a78d22"]);
}

#[test]
fn what_cannot_be_named_says_what_to_do() {
    let found = audited(&[task("abcdef01", None)], &Answers::default());
    let row = &found.tasks[0];
    assert_eq!((row.human.found.state, row.baseline.found.state), (ImageState::Unnamed, ImageState::Unnamed));
    assert!(row.baseline.found.reason.contains("the parent of `abcdef01`"), "{}", row.baseline.found.reason);
    assert!(row.human.found.reason.contains("--clone generic=DIR"), "{}", row.human.found.reason);
}

#[test]
fn tasks_are_counted_by_which_images_are_there_and_each_layer_is_stored_once() {
    let (a, b, c) = (id('a'), id('b'), id('c'));
    let tasks = [task(&a, Some(&c)), task(&b, Some(&c)), task(&id('d'), Some(&id('e')))];
    let missing = || ImageFound::only(ImageState::Missing, "the registry answers 404");
    let baseline = format!("baseline-{}", &c[..12]);
    let (other, odd) = (id('d'), format!("baseline-{}", &id('e')[..12]));
    let answers = answers(
        &[
            (&a, image("a", &[("base", 1000), ("a", 10)])),
            (&b, image("b", &[("base", 1000), ("b", 20)])),
            (&baseline, image("c", &[("base", 1000), ("c", 30), ("c", 30)])),
            (&other, missing()),
            (&odd, missing()),
        ],
        &[&a, &b, &baseline, "latest", "dddddddd"],
    );
    let found = audited(&tasks, &answers);
    let counts = (found.counts.both, found.counts.neither, found.counts.human(), found.counts.baseline());
    assert_eq!(counts, (2, 1, 2, 2));
    let storage = &found.storage;
    assert_eq!((storage.images, storage.layers, storage.shared_layers), (3, 4, 1));
    // The same layer twice in one image is fetched once, and the last image says 61 + 1000 for itself.
    assert_eq!((storage.bytes_alone, storage.bytes_together), (1011 + 1021 + 1061, 1000 + 60 + 33));
    assert_eq!((found.shared[0].images, found.shared[0].saves), (3, 2000));
    assert_eq!(found.other_tags, ["dddddddd", "latest"]);
    assert!(found.tasks[2].human.found.reason.ends_with("; `dddddddd` may be of the same commit"));
    assert!(found.same_image.is_empty());
}

#[test]
fn one_image_under_the_tags_of_two_commits_is_told() {
    let (a, b) = (id('a'), id('b'));
    let baseline = format!("baseline-{}", &b[..12]);
    let one = image("same", &[("base", 5)]);
    let mut other = one.clone();
    other.claimed_revision = Some(a.clone());
    let found = audited(&[task(&a, Some(&b))], &answers(&[(&a, one), (&baseline, other)], &[]));
    assert_eq!(found.same_image.len(), 1);
    assert_eq!((found.storage.images, found.storage.bytes_alone), (1, 6));
    let reason = &found.tasks[0].baseline.found.reason;
    assert!(reason.contains(&format!("its label says that it holds `{a}`")), "{reason}");
}

#[test]
fn a_plan_knows_an_image_by_its_commit_whichever_tag_it_has() {
    let (a, b) = (id('a'), id('b'));
    let baseline = format!("baseline-{}", &b[..12]);
    let tasks = [task(&a, Some(&b)), task(&b, Some(&a))];
    let missing = ImageFound::only(ImageState::Missing, "the registry answers 404");
    let answers = answers(&[(&a, image("a", &[("base", 5)])), (&baseline, missing)], &[]);
    let wanted = wanted(&tasks, &Facts::default(), Knowledge::embedded(), &naming());
    let facts = facts("r/n", &wanted, &answers);
    let state = |commit: &str| facts.commits[&CommitId::new(commit).unwrap()].state;
    assert_eq!((state(&a), state(&b)), (ImageState::Present, ImageState::Missing));
}
