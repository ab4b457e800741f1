//! Images as the first rung: one for all arms of an equal native tree, else each arm's own, else none.

use isobench_schema::ids::{ImageDigest, ImageTag};
use isobench_schema::images::{ImageFact, ImageState};

use super::*;

pub(super) const REPOSITORY: &str = "docker.io/team/engine";

fn there(commit: &CommitId) -> ImageFact {
    ImageFact {
        tag: ImageTag::new(commit.as_str()).unwrap(),
        state: ImageState::Present,
        digest: Some(ImageDigest::of(commit.as_str().as_bytes())),
        config: Some(ImageDigest::of(b"its configuration")),
        bytes: Some(8_000_000_000),
        layers: Vec::new(),
        reason: None,
    }
}

/// What a registry says of the images of the commits that are made of these digits.
pub(super) fn registry<const N: usize>(images: [(&str, bool); N]) -> ImageFacts {
    let fact = |(digit, is_there): (&str, bool)| {
        let commit = CommitId::new(digit.repeat(40)).unwrap();
        let found = there(&commit);
        let missing = ImageFact {
            state: ImageState::Missing,
            digest: None,
            config: None,
            bytes: None,
            reason: Some("404".to_owned()),
            ..found.clone()
        };
        (commit, if is_there { found } else { missing })
    };
    ImageFacts { repository: REPOSITORY.to_owned(), commits: images.into_iter().map(fact).collect() }
}

/// Returns the names of the images that the baseline and the human commit run from.
fn names(case: &Case) -> (String, String) {
    let (environment, deviations) = case.environment().unwrap();
    assert_eq!(deviations, []);
    assert_eq!((environment.overlay.as_deref(), environment.modules), (Some("vllm"), vec!["vllm".to_owned()]));
    let Python::Image(image) = environment.python else { panic!("no image") };
    (image.baseline_image.unwrap(), image.image)
}

fn name(digit: &str) -> String {
    format!("{REPOSITORY}:{}", digit.repeat(40))
}

#[test]
fn one_image_serves_all_arms_of_an_equal_native_tree() {
    let mut case = Case::with_wheels("1111").patched(&["vllm/x.py"]);
    case.means.images = Images::Usable;
    case.registry = Some(registry([("a", true), ("b", true)]));
    check(&case, Some(Rung::NativeTree), Some(Rung::Image), Some(Rung::NativeTree));
    assert_eq!(names(&case), (name("b"), name("b")));
    let ladders = case.ladders();
    let answer = |rung| answer(&ladders, &ArmId::Baseline, rung);
    assert!(answer(Rung::Image).reason.ends_with("so that their native files are the same bytes"));
    assert_eq!(answer(Rung::Wheel).reason, "the image of `human` serves every arm");
    assert!(answer(Rung::NativeTree).reason.contains("of the image of `human`, whose native tree is equal"));
    let by_digest = format!("{REPOSITORY}@{}", ImageDigest::of("b".repeat(40).as_bytes()));
    assert_eq!(answer(Rung::NativeTree).artifact, Some(by_digest));
    // Without the human commit's, the baseline's.
    case.registry = Some(registry([("a", true), ("b", false)]));
    check(&case, Some(Rung::Image), Some(Rung::NativeTree), Some(Rung::Image));
    assert_eq!(names(&case), (name("a"), name("a")));
}

#[test]
fn arms_of_other_native_trees_each_run_from_their_own_image_or_all_from_something_else() {
    let mut case = Case::with_wheels("9999").patched(&["vllm/x.py"]);
    case.means.images = Images::Usable;
    case.registry = Some(registry([("a", true), ("b", true)]));
    check(&case, Some(Rung::Image), Some(Rung::Image), Some(Rung::Image));
    assert_eq!(names(&case), (name("a"), name("b")));
    case.registry = Some(registry([("a", false), ("b", true)]));
    check(&case, Some(Rung::Wheel), Some(Rung::Wheel), Some(Rung::NativeTree));
    let ladders = case.ladders();
    let reason = |arm| answer(&ladders, arm, Rung::Image).reason.clone();
    assert_eq!(reason(&ArmId::Baseline), format!("`{}`: 404", name("a")));
    let why =
        format!("not every arm has an image, and all are made the same way; that of `baseline`: `{}`: 404", name("a"));
    assert_eq!(reason(&ArmId::Human), why);
    // A native tree that isn't known is no equal one.
    case.human.as_mut().unwrap().native_key = None;
    assert!(rung_of(&case.ladders(), &ArmId::Human) != Some(Rung::Image));
}

#[test]
fn a_patch_that_must_be_compiled_is_in_no_image() {
    let mut case = Case::with_wheels("1111").patched(&["csrc/x.cu"]);
    case.means.images = Images::Usable;
    case.registry = Some(registry([("a", true), ("b", true)]));
    check(&case, Some(Rung::Source), Some(Rung::Source), Some(Rung::Source));
    let reason = answer(&case.ladders(), &ArmId::Human, Rung::Image).reason.clone();
    assert!(reason.ends_with("the patch of `agent:a` changes `csrc/x.cu`, which must be compiled"), "{reason}");
}

#[test]
fn what_is_there_and_cannot_be_used_says_why() {
    let mut case = Case::with_wheels("1111");
    case.registry = Some(registry([("a", true), ("b", true)]));
    check(&case, Some(Rung::Wheel), Some(Rung::NativeTree), None);
    let reason = answer(&case.ladders(), &ArmId::Human, Rung::Image).reason.clone();
    assert!(reason.ends_with("`--isolation container` runs them from images"), "{reason}");
    // What couldn't be asked for more than its existence can't be pinned.
    case.means.images = Images::Usable;
    case.registry.as_mut().unwrap().commits.values_mut().for_each(|fact| fact.config = None);
    check(&case, Some(Rung::Wheel), Some(Rung::NativeTree), None);
    let reason = answer(&case.ladders(), &ArmId::Human, Rung::Image).reason.clone();
    assert!(reason.ends_with("without which a plan can't pin it"), "{reason}");
    // What nobody asked a registry for can't, either.
    case.registry = None;
    let release = Knowledge::embedded().releases.named(EngineKind::Vllm, "v0.6.4.post1").unwrap();
    let id = format!("{}{}", release.commit.as_deref().unwrap(), "0".repeat(28));
    case.baseline.as_mut().unwrap().commit = CommitId::new(id).unwrap();
    let ladders = case.ladders();
    let found = answer(&ladders, &ArmId::Baseline, Rung::Image);
    assert_eq!(found.artifact.as_deref(), Some("vllm/vllm-openai:v0.6.4.post1"));
    assert!(found.reason.starts_with("its registry wasn't asked"), "{}", found.reason);
}
