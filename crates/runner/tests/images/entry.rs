//! Who is let in, and where credentials go.

use std::time::Duration;

use isobench_runner::images::{Credentials, Patience, RegistryError, Secret};
use isobench_testkit::{Entry, FakeImage, FakeRegistry, RegistryFault, RegistrySettings};

use crate::support::{SHORT, amd64, client_of, password, tag, with_tags};

fn registry(entry: Entry, faults: &[RegistryFault]) -> FakeRegistry {
    let registry =
        FakeRegistry::start(RegistrySettings { entry, faults: faults.to_vec(), ..RegistrySettings::default() });
    with_tags(&registry, 250);
    registry
}

fn ann() -> (String, String) {
    ("ann".to_owned(), "s3cret".to_owned())
}

#[test]
fn a_token_is_had_once_for_many_questions() {
    let (user, secret) = ann();
    let registry = registry(Entry::PasswordToken { user, password: secret }, &[]);
    let (client, _) = client_of(&registry.repository(), Some(password("ann", "s3cret")), SHORT);
    assert_eq!(client.tags(&|_| ()).unwrap().tags.len(), 250);
    assert!(client.head(&tag("t0007")).unwrap().is_some());
    assert!(client.head(&tag("t0300")).unwrap().is_none());
    assert_eq!(registry.count("/token"), 1);
    // The password goes to the place of tokens alone.
    let asked = registry.asked();
    let with_password = asked.iter().filter(|request| {
        request.authorization.as_ref().is_some_and(|authorization| authorization.starts_with("Basic "))
    });
    assert!(
        with_password.clone().count() == 1 && with_password.clone().all(|request| request.target.starts_with("/token"))
    );
}

#[test]
fn a_public_repository_gives_tokens_to_anybody() {
    let registry = registry(Entry::AnonymousToken, &[]);
    let (client, _) = client_of(&registry.repository(), None, SHORT);
    assert_eq!(client.tags(&|_| ()).unwrap().tags.len(), 250);
}

#[test]
fn an_identity_token_is_exchanged() {
    let registry = registry(Entry::IdentityToken("refresh/me+1".to_owned()), &[]);
    let token = Some(Credentials::IdentityToken(Secret::new("refresh/me+1")));
    let (client, _) = client_of(&registry.repository(), token, SHORT);
    assert_eq!(client.tags(&|_| ()).unwrap().tags.len(), 250);
}

#[test]
fn a_password_in_each_request_is_for_who_asks_for_it() {
    let (user, secret) = ann();
    let registry = registry(Entry::Basic { user, password: secret }, &[]);
    let (client, _) = client_of(&registry.repository(), Some(password("ann", "s3cret")), SHORT);
    assert_eq!(client.tags(&|_| ()).unwrap().tags.len(), 250);
}

#[test]
fn wrong_credentials_are_refused_and_another_client_is_not_let_in_by_the_first() {
    let (user, secret) = ann();
    for entry in
        [Entry::PasswordToken { user: user.clone(), password: secret.clone() }, Entry::Basic { user, password: secret }]
    {
        let registry = registry(entry, &[]);
        let (good, _) = client_of(&registry.repository(), Some(password("ann", "s3cret")), SHORT);
        good.tags(&|_| ()).unwrap();
        for credentials in [Some(password("ann", "wr0ng")), None] {
            let (bad, _) = client_of(&registry.repository(), credentials, SHORT);
            let error = bad.tags(&|_| ()).unwrap_err();
            assert!(matches!(error, RegistryError::Refused { .. }), "{error}");
            let text = format!("{error} {error:?}");
            assert!(!text.contains("wr0ng"), "{text}");
        }
    }
}

#[test]
fn credentials_do_not_follow_where_a_request_is_led() {
    let other = FakeRegistry::start(RegistrySettings::default());
    let image = FakeImage::new(&[b"layer"]);
    other.add("t0001", &image);
    let (user, secret) = ann();
    let to = format!("http://{}/v2/team/engine/manifests/t0001", other.address());
    let led = RegistryFault::Redirect { at: "/manifests/t0001".to_owned(), to };
    let registry = registry(Entry::Basic { user, password: secret }, &[led]);
    let (client, _) = client_of(&registry.repository(), Some(password("ann", "s3cret")), SHORT);
    client.tags(&|_| ()).unwrap();
    let found = client.manifest(&tag("t0001")).unwrap().unwrap();
    assert_eq!(found.digest.as_str(), image.digest());
    assert!(registry.asked().iter().any(|request| request.authorization.is_some()));
    assert!(!other.asked().is_empty() && other.asked().iter().all(|request| request.authorization.is_none()));
}

#[test]
fn whoever_a_request_was_led_to_is_not_told_who_asks() {
    let (user, secret) = ann();
    for entry in [
        Entry::Basic { user: "x".to_owned(), password: "y".to_owned() },
        Entry::PasswordToken { user: "x".to_owned(), password: "y".to_owned() },
    ] {
        let other = FakeRegistry::start(RegistrySettings { entry, ..RegistrySettings::default() });
        let to = format!("http://{}/v2/team/engine/manifests/t0001", other.address());
        let led = RegistryFault::Redirect { at: "/manifests/t0001".to_owned(), to };
        let registry = registry(Entry::Basic { user: user.clone(), password: secret.clone() }, &[led]);
        let (client, _) = client_of(&registry.repository(), Some(password("ann", "s3cret")), SHORT);
        client.tags(&|_| ()).unwrap();
        let error = client.manifest(&tag("t0001")).unwrap_err();
        assert!(matches!(error, RegistryError::LeadsElsewhere { .. }), "{error}");
        assert!(other.asked().iter().all(|request| request.authorization.is_none()));
        assert_eq!(other.count("/token"), 0);
    }
}

#[test]
fn what_is_sent_in_confidence_is_not_told_again_however_an_answer_repeats_it() {
    let told = "YW5uOnMzY3JldA==";
    for (status, content_type, body) in [
        (403, "text/plain", format!("no entry for Basic {told}")),
        (404, "application/json", format!(r#"{{"errors":[{{"message":"nothing for {told}"}}]}}"#)),
        (429, "text/plain", format!("{}{told}", "x".repeat(290))),
        (500, "text/plain", "s3cret is wrong".to_owned()),
        (200, "application/json", format!(r#"{{"tags":"{told}"}}"#)),
        (200, "application/vnd.oci.image.manifest.v1+json", format!(r#"{{"schemaVersion":2,"config":"{told}"}}"#)),
    ] {
        for at in ["/manifests/t0001", "/tags/list"] {
            let (at, content_type) = (at.to_owned(), content_type.to_owned());
            let instead = RegistryFault::Instead { at, status, content_type, body: body.clone() };
            let (user, secret) = ann();
            let registry = registry(Entry::Basic { user, password: secret }, &[instead]);
            let patience = Patience { throttled: Duration::ZERO, ..SHORT };
            let (client, _) = client_of(&registry.repository(), Some(password("ann", "s3cret")), patience);
            let mut shown = format!("{:?} {:?}", client.tags(&|_| ()), client.look(&tag("t0001"), &amd64()));
            for error in [client.tags(&|_| ()).err(), client.image(&tag("t0001"), &amd64()).err()].into_iter().flatten()
            {
                shown += &error.to_string();
            }
            assert!(!shown.contains("s3cret") && !shown.contains("YW5uOnMzY3"), "{status}: {shown}");
        }
    }
}

#[test]
fn a_realm_that_gives_no_token_is_told() {
    let instead = |body: &str| RegistryFault::Instead {
        at: "/token".to_owned(),
        status: 200,
        content_type: "application/json".to_owned(),
        body: body.to_owned(),
    };
    // What would break the header of the next request is no token.
    let bodies = [r"{}", "<html>", r#"{"token":""}"#, r#"{"token":"a\r\nx-evil: 1"}"#];
    for body in bodies {
        let faults = vec![instead(body)];
        let settings = RegistrySettings { entry: Entry::AnonymousToken, faults, ..RegistrySettings::default() };
        let registry = FakeRegistry::start(settings);
        let (client, _) = client_of(&registry.repository(), None, SHORT);
        let error = client.tags(&|_| ()).unwrap_err().to_string();
        assert!(error.contains("it holds no token"), "{body}: {error}");
    }
}
