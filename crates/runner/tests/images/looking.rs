//! What stands under a tag, and what is wrong with it.

use isobench_runner::images::{Platform, Target};
use isobench_schema::ids::ImageDigest;
use isobench_schema::images::ImageState;
use isobench_testkit::{FakeImage, RegistryFault};

use crate::support::{amd64, client, faulty, tag};

#[test]
fn sizes_layers_and_claims_come_from_the_manifest() {
    let registry = faulty(&[]);
    let image = FakeImage::of("linux/amd64", Some("abc123"), &[b"base layer", b"top"]);
    registry.add("a", &image);
    let found = client(&registry).look(&tag("a"), &amd64()).unwrap();
    assert_eq!((found.state, found.reason.as_str()), (ImageState::Present, "it is there"));
    assert_eq!(found.digest.as_ref().map(ImageDigest::as_str), Some(image.digest().as_str()));
    assert_eq!(found.bytes, u64::try_from(image.bytes()).ok());
    let layers: Vec<&str> = found.layers.iter().map(|layer| layer.digest.as_str()).collect();
    assert_eq!(layers, [image.layer_digest(0).unwrap(), image.layer_digest(1).unwrap()]);
    assert_eq!(
        (found.created.as_deref(), found.claimed_revision.as_deref()),
        (Some("2026-01-02T03:04:05Z"), Some("abc123"))
    );
    let by_digest = Target::Digest(ImageDigest::new(image.digest()).unwrap());
    assert_eq!(client(&registry).look(&by_digest, &amd64()).unwrap(), found);
}

#[test]
fn of_a_list_the_image_of_the_platform_is_taken() {
    let registry = faulty(&[]);
    let (amd, arm) = (FakeImage::new(&[b"amd"]), FakeImage::of("linux/arm64", None, &[b"arm arm"]));
    registry.add_list("both", &[arm.clone(), amd.clone()]);
    registry.add("arm", &arm);
    let client = client(&registry);
    let found = client.look(&tag("both"), &amd64()).unwrap();
    assert_eq!(found.manifest.as_ref().map(ImageDigest::as_str), Some(amd.digest().as_str()));
    assert_ne!(found.digest, found.manifest);
    let found = client.look(&tag("both"), &Platform::parse("linux/arm64").unwrap()).unwrap();
    assert_eq!(found.bytes, u64::try_from(arm.bytes()).ok());
    for (name, there) in [("both", "linux/arm64, linux/amd64"), ("arm", "linux/arm64")] {
        let found = client.look(&tag(name), &Platform::parse("linux/s390x").unwrap()).unwrap();
        assert_eq!(found.state, ImageState::OtherPlatform);
        assert_eq!(found.reason, format!("it is there for {there}, and not for linux/s390x"));
    }
}

#[test]
fn a_tag_that_is_not_there_is_missing() {
    let found = client(&faulty(&[])).look(&tag("none"), &amd64()).unwrap();
    assert_eq!(found.state, ImageState::Missing);
}

#[track_caller]
fn unreadable(faults: &[RegistryFault], expected: &str) {
    let registry = faulty(faults);
    registry.add("a", &FakeImage::new(&[b"layer"]));
    let found = client(&registry).look(&tag("a"), &amd64()).unwrap();
    assert_eq!(found.state, ImageState::Unreadable);
    assert!(found.reason.contains(expected), "{}", found.reason);
}

#[test]
fn what_is_broken_under_a_tag_says_how() {
    let at = |at: &str| at.to_owned();
    unreadable(&[RegistryFault::OtherBytes { at: at("/manifests/") }], "gave other bytes than it names");
    unreadable(&[RegistryFault::OtherBytes { at: at("/blobs/") }], "gave other bytes than it names");
    unreadable(&[RegistryFault::EndlessBody { at: at("/manifests/") }], "is longer than 4194304 bytes");
    unreadable(&[RegistryFault::EndlessBody { at: at("/blobs/") }], "which has");
    let instead = |at: &str, content_type: &str, body: &str, status| RegistryFault::Instead {
        at: at.to_owned(),
        status,
        content_type: content_type.to_owned(),
        body: body.to_owned(),
    };
    unreadable(&[instead("/manifests/", "text/html", "<html>", 200)], "it is said to be `text/html`");
    unreadable(&[instead("/manifests/", "application/json", r#"{"schemaVersion":1}"#, 200)], "old schema 1");
    unreadable(&[instead("/blobs/", "application/json", "{}", 404)], "a part of it isn't there");
    unreadable(&[instead("/blobs/", "application/json", "{}", 200)], "gave 2 bytes of");
}

#[test]
fn a_list_whose_image_is_not_there_says_so() {
    let registry = faulty(&[]);
    let list = format!(
        r#"{{"schemaVersion":2,"manifests":[{{"digest":"sha256:{}","size":3,"platform":{{"os":"linux","architecture":"amd64"}}}}]}}"#,
        "a".repeat(64)
    );
    registry.add_bytes("a", "application/vnd.oci.image.index.v1+json", list.as_bytes());
    let found = client(&registry).look(&tag("a"), &amd64()).unwrap();
    assert!(found.state == ImageState::Unreadable && found.reason.contains("which isn't there"), "{}", found.reason);
}
