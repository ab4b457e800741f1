//! Registries that were asked too often.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use isobench_runner::images::RegistryError;
use isobench_schema::images::RateLimit;
use isobench_testkit::{FakeImage, RegistryFault};

use crate::support::{SHORT, client_of, faulty, tag, with_tags};

fn throttle(times: u32, header: Option<(&str, String)>) -> RegistryFault {
    RegistryFault::Throttle { times, header: header.map(|(name, value)| (name.to_owned(), value)) }
}

#[test]
fn a_registry_is_asked_again_after_the_time_that_it_wants() {
    let moment = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() + 2;
    let date = || httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3));
    let cases: [(&dyn Fn() -> RegistryFault, u64); 4] = [
        (&|| throttle(2, Some(("Retry-After", "1".to_owned()))), 2000),
        (&|| throttle(1, Some(("X-Retry-After", moment().to_string()))), 500),
        (&|| throttle(1, Some(("Retry-After", date()))), 1500),
        (&|| throttle(1, None), 1000),
    ];
    for (fault, least) in cases {
        let fault = fault();
        let registry = faulty(&[fault]);
        with_tags(&registry, 3);
        let (client, notices) = client_of(&registry.repository(), None, SHORT);
        let begun = Instant::now();
        assert_eq!(client.tags(&|_| ()).unwrap().tags.len(), 3);
        assert!(begun.elapsed() >= Duration::from_millis(least), "{:?}", begun.elapsed());
        assert!(notices.lock().unwrap()[0].contains("was asked too often; asking again in"));
    }
}

#[test]
fn nobody_waits_longer_than_asked_to() {
    for header in [Some(("Retry-After", "3600".to_owned())), None] {
        let registry = faulty(&[throttle(1000, header)]);
        let begun = Instant::now();
        let (client, _) = client_of(&registry.repository(), None, SHORT);
        let error = client.tags(&|_| ()).unwrap_err();
        assert!(matches!(error, RegistryError::Throttled { .. }), "{error}");
        assert!(error.to_string().contains("toomanyrequests"), "{error}");
        // 1 + 2 seconds without a word of the registry; 4 more would be too many.
        assert!(begun.elapsed() < Duration::from_secs(60));
        assert!(registry.asked().len() <= 3, "{}", registry.asked().len());
    }
}

#[test]
fn what_is_left_of_pulls_is_known_and_asking_by_head_costs_none() {
    let registry = faulty(&[RegistryFault::Pulls { limit: 4 }]);
    registry.add("a", &FakeImage::new(&[b"layer"]));
    let (client, _) = client_of(&registry.repository(), None, SHORT);
    assert_eq!(client.pulls(), None);
    for _ in 0..10 {
        assert!(client.head(&tag("a")).unwrap().is_some());
    }
    let left = |remaining| Some(RateLimit { limit: 4, remaining: Some(remaining), window_s: Some(21600) });
    assert_eq!(client.pulls(), left(4));
    client.manifest(&tag("a")).unwrap();
    assert_eq!(client.pulls(), left(3));
    for _ in 0..3 {
        client.manifest(&tag("a")).unwrap();
    }
    let error = client.manifest(&tag("a")).unwrap_err();
    assert!(matches!(error, RegistryError::Throttled { retry_after: Some(_), .. }), "{error}");
}
