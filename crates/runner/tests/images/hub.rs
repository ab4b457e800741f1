//! Docker Hub's own interface.

use isobench_runner::images::{Address, HubTags, RegistryError, Repository, hub_tags};
use isobench_testkit::{FakeRegistry, RegistryFault};

use crate::support::{SHORT, faulty, with_tags};

fn ask(registry: &FakeRegistry, name: &str) -> Result<HubTags, RegistryError> {
    let hub = Address::parse(&registry.hub()).unwrap();
    hub_tags(&hub, &Repository::parse(name).unwrap(), (SHORT, Box::new(|_| ())), &|_| ())
}

#[test]
fn every_tag_comes_with_size_digest_and_day() {
    let registry = faulty(&[]);
    with_tags(&registry, 250);
    let found = ask(&registry, "team/engine").unwrap();
    assert_eq!((found.tags.len(), found.pages, found.announced), (250, 3, Some(250)));
    let tag = &found.tags[249];
    assert!(tag.digest.is_some() && tag.bytes.is_some_and(|bytes| bytes > 0), "{tag:?}");
    assert_eq!(
        (tag.platforms.join(","), tag.pushed.as_deref()),
        ("linux/amd64".to_owned(), Some("2026-01-02T03:04:05.678901Z"))
    );
}

#[test]
fn what_it_does_not_show_is_told_with_its_words() {
    let registry = faulty(&[]);
    let error = ask(&registry, "team/private").unwrap_err();
    assert!(matches!(error, RegistryError::NoRepository { .. }), "{error}");
    assert!(error.to_string().ends_with("object not found"), "{error}");
    let forbidden = faulty(&[RegistryFault::Instead {
        at: "/hub/".to_owned(),
        status: 403,
        content_type: "application/json".to_owned(),
        body: r#"{"message":"access to the resource is forbidden","errinfo":{"namespace":"team"}}"#.to_owned(),
    }]);
    let error = ask(&forbidden, "team/engine").unwrap_err().to_string();
    assert!(error.ends_with("access to the resource is forbidden"), "{error}");
}

#[test]
fn its_pages_are_held_to_the_same_rules() {
    for (fault, expected) in [
        (RegistryFault::LoopingPages, "its pages go round"),
        (
            RegistryFault::NextIs("https://hub.example/v2/namespaces/team/repositories/engine/tags".to_owned()),
            "isn't the same list",
        ),
        (RegistryFault::EndlessBody { at: "/hub/".to_owned() }, "is longer than"),
        (RegistryFault::DieInBody { at: "/hub/".to_owned(), after: 100 }, "broke off after 100 bytes"),
        (
            RegistryFault::Instead {
                at: "/hub/".to_owned(),
                status: 200,
                content_type: "text/html".to_owned(),
                body: "<html>".to_owned(),
            },
            "no page of Docker Hub",
        ),
    ] {
        let registry = faulty(&[fault]);
        with_tags(&registry, 150);
        let error = ask(&registry, "team/engine").unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    let throttled = RegistryFault::Throttle { times: 1, header: Some(("retry-after".to_owned(), "1".to_owned())) };
    let registry = faulty(&[throttled]);
    with_tags(&registry, 150);
    assert_eq!(ask(&registry, "team/engine").unwrap().tags.len(), 150);
}
