//! Registries that are slow, silent or break off: nobody waits for ever, and nothing is taken in part.

use std::time::{Duration, Instant};

use isobench_runner::images::{Patience, RegistryError};
use isobench_testkit::{FakeImage, RegistryFault};

use crate::support::{SHORT, client, client_of, faulty, tag, with_tags};

#[test]
fn a_registry_that_says_nothing_is_left() {
    let registry = faulty(&[RegistryFault::Silent { at: "/tags/list".to_owned() }]);
    let begun = Instant::now();
    let error = client(&registry).tags(&|_| ()).unwrap_err();
    assert!(matches!(error, RegistryError::Deadline { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn an_answer_that_comes_byte_by_byte_has_a_deadline_too() {
    let gap = Duration::from_millis(100);
    let registry = faulty(&[RegistryFault::Slow { at: "/tags/list".to_owned(), gap }]);
    with_tags(&registry, 90);
    let patience = Patience { answer: Duration::from_secs(2), ..SHORT };
    let (slow, _) = client_of(&registry.repository(), None, patience);
    let begun = Instant::now();
    let error = slow.tags(&|_| ()).unwrap_err();
    assert!(matches!(error, RegistryError::Deadline { .. }), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
}

#[test]
fn a_slow_answer_that_keeps_coming_is_waited_for() {
    let gap = Duration::from_millis(20);
    let registry = faulty(&[RegistryFault::Slow { at: "/tags/list".to_owned(), gap }]);
    with_tags(&registry, 5);
    assert_eq!(client(&registry).tags(&|_| ()).unwrap().tags.len(), 5);
}

#[test]
fn an_answer_that_breaks_off_is_no_answer() {
    let registry = faulty(&[RegistryFault::DieInBody { at: "/tags/list".to_owned(), after: 30 }]);
    with_tags(&registry, 90);
    let error = client(&registry).tags(&|_| ()).unwrap_err();
    assert!(matches!(error, RegistryError::BrokenOff { got: 30, .. }), "{error:?}");
}

#[test]
fn nobody_listening_is_told_at_once() {
    let registry = faulty(&[]);
    let name = registry.repository();
    drop(registry);
    let error = client_of(&name, None, SHORT).0.tags(&|_| ()).unwrap_err();
    assert!(matches!(error, RegistryError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("can't be reached"), "{error}");
}

#[test]
fn being_led_in_a_circle_ends() {
    let to = "/v2/team/engine/manifests/a".to_owned();
    let registry = faulty(&[RegistryFault::Redirect { at: "/manifests/a".to_owned(), to }]);
    registry.add("a", &FakeImage::new(&[b"layer"]));
    let error = client(&registry).manifest(&tag("a")).unwrap_err();
    assert!(error.to_string().contains("leads elsewhere more than 5 times"), "{error}");
}

#[test]
fn what_a_registry_says_is_shown_short_and_plain() {
    let registry = faulty(&[RegistryFault::Instead {
        at: "/manifests/".to_owned(),
        status: 500,
        content_type: "text/plain".to_owned(),
        body: format!("\u{1b}[2Jout of\norder {}", "x".repeat(100_000)),
    }]);
    let error = client(&registry).manifest(&tag("a")).unwrap_err().to_string();
    assert!(error.contains("status 500: [2Jout of order xxx") && error.len() < 600, "{error}");
}
