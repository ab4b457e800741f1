//! Lists of tags, to their end.

use std::cell::Cell;

use isobench_runner::images::RegistryError;
use isobench_testkit::{FakeRegistry, RegistryFault, RegistrySettings};

use crate::support::{client, faulty, with_tags};

#[test]
fn every_tag_is_listed_over_all_pages() {
    let registry = faulty(&[]);
    with_tags(&registry, 250);
    let most = Cell::new(0);
    let found = client(&registry).tags(&|count| most.set(count)).unwrap();
    assert_eq!((found.tags.len(), found.pages, most.get()), (250, 3, 250));
    assert!(found.tags.contains("t0000") && found.tags.contains("t0249"));
    assert_eq!(registry.count("/tags/list"), 3);
}

#[test]
fn a_registry_that_gives_no_links_is_asked_on_from_the_last_tag() {
    let settings = RegistrySettings { page: 1000, faults: vec![RegistryFault::NoLinks], ..RegistrySettings::default() };
    let registry = FakeRegistry::start(settings);
    with_tags(&registry, 1250);
    let found = client(&registry).tags(&|_| ()).unwrap();
    assert_eq!((found.tags.len(), found.pages), (1250, 2));
}

#[test]
fn a_repository_without_tags_and_one_that_is_not_there_differ() {
    let registry = faulty(&[]);
    assert_eq!(client(&registry).tags(&|_| ()).unwrap().tags.len(), 0);
    let elsewhere = registry.repository().replace("engine", "engines");
    let (other, _) = crate::support::client_of(&elsewhere, None, crate::support::SHORT);
    let error = other.tags(&|_| ()).unwrap_err();
    assert!(matches!(error, RegistryError::NoRepository { .. }), "{error}");
    assert!(error.to_string().contains("has no repository `team/engines`"), "{error}");
}

#[test]
fn null_for_no_tags_is_understood() {
    let registry = faulty(&[RegistryFault::Instead {
        at: "/tags/list".to_owned(),
        status: 200,
        content_type: "application/json".to_owned(),
        body: r#"{"name":"team/engine","tags":null}"#.to_owned(),
    }]);
    assert_eq!(client(&registry).tags(&|_| ()).unwrap().tags.len(), 0);
}

fn refused(faults: &[RegistryFault]) -> String {
    let registry = faulty(faults);
    with_tags(&registry, 150);
    client(&registry).tags(&|_| ()).unwrap_err().to_string()
}

#[test]
fn pages_that_go_round_or_never_end_are_refused() {
    let round = refused(&[RegistryFault::LoopingPages]);
    assert!(round.contains("doesn't end: its pages go round"), "{round}");
    let endless = refused(&[RegistryFault::EndlessPages]);
    assert!(endless.contains("it has more than 2000 tags"), "{endless}");
    let body = refused(&[RegistryFault::EndlessBody { at: "/tags/list".to_owned() }]);
    assert!(body.contains("is longer than 16777216 bytes"), "{body}");
}

#[test]
fn a_page_that_is_no_list_says_what_it_is() {
    let html = refused(&[RegistryFault::Instead {
        at: "/tags/list".to_owned(),
        status: 200,
        content_type: "text/html; charset=utf-8".to_owned(),
        body: "<html>Log in to the Wi-Fi</html>".to_owned(),
    }]);
    assert!(html.contains("isn't a registry's: it is of the type `text/html`"), "{html}");
}

#[test]
fn a_page_that_leads_elsewhere_is_not_followed() {
    let other = faulty(&[]);
    for next in [
        format!("http://{}/v2/team/engine/tags/list?last=x", other.address()),
        "https://registry.example/v2/team/engine/tags/list?last=x".to_owned(),
        "/v2/team/other/tags/list".to_owned(),
    ] {
        let error = refused(&[RegistryFault::NextIs(next)]);
        assert!(error.contains("which isn't the same list"), "{error}");
    }
    assert!(refused(&[RegistryFault::NextIs("http://registry.example/x".to_owned())]).contains("isn't asked"));
    assert_eq!(other.asked().len(), 0);
}
