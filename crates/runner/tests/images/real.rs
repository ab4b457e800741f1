//! Debian's docker-registry: what is sent there, listed, asked for and fetched again, with and without a password.

use std::fs;

use isobench_runner::images::{Layout, RegistryError, Target};
use isobench_schema::ids::ImageDigest;
use isobench_schema::images::ImageState;
use isobench_testkit::{DockerRegistry, FakeImage, RegistryUser};

use crate::support::{SHORT, amd64, client_of, faulty, password, tag};

/// Returns a registry, or says why there is none.
fn start(user: Option<&RegistryUser>) -> Option<DockerRegistry> {
    if std::env::var("ISOBENCH_SLOW").is_ok_and(|value| value == "1") {
        match DockerRegistry::start(user) {
            Ok(registry) => return Some(registry),
            Err(reason) => println!("skipped: {reason}"),
        }
    } else {
        println!("skipped: a real registry is started with ISOBENCH_SLOW=1");
    }
    None
}

/// Fetches an image of a fake registry into a folder, to be sent from there.
fn folder_with(image: &FakeImage) -> (tempfile::TempDir, Layout) {
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let fake = faulty(&[]);
    fake.add("a", image);
    let (client, _) = client_of(&fake.repository(), None, SHORT);
    layout.pull(&client, &tag("a"), &amd64(), &|_, _| ()).unwrap().unwrap();
    (folder, layout)
}

fn image() -> FakeImage {
    FakeImage::of("linux/amd64", Some("abc"), &[&vec![1; 200_000], &vec![2; 3_000_000]])
}

#[test]
fn an_image_is_sent_listed_asked_for_and_fetched_again() {
    let Some(mut registry) = start(None) else { return };
    let (_folder, layout) = folder_with(&image());
    let name = format!("{}/team/engine", registry.address());
    let (client, _) = client_of(&name, None, SHORT);
    assert!(matches!(client.tags(&|_| ()), Err(RegistryError::NoRepository { .. })));
    let sent = layout.push(&client, &tag("a"), &tag("baseline-0123456789ab"), &|_, _| ()).unwrap();
    assert_eq!((sent.blobs, sent.digest.as_str()), (3, image().digest().as_str()));
    for number in 0..120 {
        let again = layout.push(&client, &tag("a"), &tag(&format!("t{number:03}")), &|_, _| ()).unwrap();
        assert_eq!(again.blobs, 0);
    }
    let tags = client.tags(&|_| ()).unwrap();
    assert_eq!(tags.tags.len(), 121);
    let head = client.head(&tag("t007")).unwrap().unwrap();
    assert_eq!(head.digest.as_ref(), Some(&sent.digest));
    assert!(client.head(&tag("missing")).unwrap().is_none());
    let found = client.look(&tag("t007"), &amd64()).unwrap();
    assert_eq!((found.state, found.bytes, found.layers.len()), (ImageState::Present, Some(sent.bytes), 2));
    assert_eq!(client.look(&tag("missing"), &amd64()).unwrap().state, ImageState::Missing);

    let other = tempfile::tempdir().unwrap();
    let fetched = Layout::create(other.path()).unwrap();
    let by_digest = Target::Digest(sent.digest.clone());
    let moved = fetched.pull(&client, &by_digest, &amd64(), &|_, _| ()).unwrap().unwrap();
    assert_eq!((moved.blobs, moved.bytes, moved.digest), (3, sent.bytes, sent.digest));
    let layer = ImageDigest::new(image().layer_digest(1).unwrap()).unwrap();
    assert_eq!(fs::read(fetched.blob_path(&layer)).unwrap(), vec![2; 3_000_000]);
    assert!(registry.end(), "it ran until it was ended");
    assert!(matches!(client.head(&tag("t007")), Err(RegistryError::Unreachable { .. })));
}

#[test]
fn only_who_has_the_password_is_let_in() {
    let user = RegistryUser { user: "bench".to_owned(), password: "s3cret".to_owned() };
    let Some(registry) = start(Some(&user)) else { return };
    let (_folder, layout) = folder_with(&image());
    let name = format!("{}/team/engine", registry.address());
    let (good, _) = client_of(&name, Some(password("bench", "s3cret")), SHORT);
    layout.push(&good, &tag("a"), &tag("a"), &|_, _| ()).unwrap();
    assert_eq!(good.tags(&|_| ()).unwrap().tags.len(), 1);
    for credentials in [Some(password("bench", "wrong")), Some(password("other", "s3cret")), None] {
        let (bad, _) = client_of(&name, credentials, SHORT);
        for error in [
            bad.tags(&|_| ()).unwrap_err(),
            bad.head(&tag("a")).unwrap_err(),
            layout.push(&bad, &tag("a"), &tag("b"), &|_, _| ()).unwrap_err(),
        ] {
            assert!(matches!(error, RegistryError::Refused { .. }), "{error}");
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{error:?}");
        }
    }
    assert_eq!(good.tags(&|_| ()).unwrap().tags.len(), 1);
}
