//! Registries that speak TLS by a certificate of their own authority.

use std::fs;

use isobench_runner::images::{Authorities, Credentials, Layout, Registry, RegistryError, Repository};
use isobench_testkit::{
    DockerRegistry, Entry, FakeImage, FakeRegistry, RegistrySettings, RegistryUser, TestCertificate,
};

use crate::support::{SHORT, amd64, client_of, faulty, password, tag};

/// Returns a client that trusts what a folder of settings names for the registry.
fn trusting(settings: &std::path::Path, repository: &str, credentials: Option<Credentials>) -> Registry {
    let repository = Repository::parse(repository).unwrap();
    let variable = |name: &str| (name == "XDG_CONFIG_HOME").then(|| settings.to_str().unwrap().to_owned());
    let authorities = Authorities::of(repository.registry(), variable).unwrap();
    Registry::trusting(&authorities, repository, credentials, (SHORT, Box::new(|_| ()))).unwrap()
}

/// Puts an authority where Docker looks for that of a registry.
fn put(settings: &std::path::Path, registry: &str, certificate: &TestCertificate) {
    let folder = settings.join("docker/certs.d").join(registry);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("ca.crt"), certificate.authority()).unwrap();
}

fn start(certificate: &TestCertificate, entry: Entry) -> FakeRegistry {
    let settings = RegistrySettings { tls: Some(certificate.clone()), entry, ..RegistrySettings::default() };
    FakeRegistry::start(settings)
}

fn image() -> FakeImage {
    FakeImage::new(&[&vec![7; 30_000], b"upper"])
}

#[test]
fn a_registry_is_trusted_by_what_docker_keeps_for_it_and_no_other_is() {
    let certificate = TestCertificate::make();
    let entry = Entry::PasswordToken { user: "bench".to_owned(), password: "s3cret".to_owned() };
    let registry = start(&certificate, entry);
    registry.add("a", &image());
    let settings = tempfile::tempdir().unwrap();
    put(settings.path(), registry.address(), &certificate);
    let client = trusting(settings.path(), &registry.repository(), Some(password("bench", "s3cret")));
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    assert_eq!(layout.pull(&client, &tag("a"), &amd64(), &|_, _| ()).unwrap().unwrap().blobs, 3);
    assert_eq!(layout.push(&client, &tag("a"), &tag("b"), &|_, _| ()).unwrap().blobs_there, 3);

    // Its authority isn't known; then it is that of another registry; then another authority is known for it.
    let nothing = tempfile::tempdir().unwrap();
    let other = start(&TestCertificate::make(), Entry::Open);
    put(nothing.path(), other.address(), &TestCertificate::make());
    for (settings, repository) in [
        (nothing.path(), registry.repository()),
        (settings.path(), other.repository()),
        (nothing.path(), other.repository()),
    ] {
        let error = trusting(settings, &repository, None).tags(&|_| ()).unwrap_err();
        assert!(error.is_distrust(), "{error:?}");
    }
    // What is said in the open to whoever speaks TLS isn't answered, and the other way round.
    let (open, _) = client_of(&registry.repository().replace("https", "http"), None, SHORT);
    assert!(!matches!(open.tags(&|_| ()), Ok(_) | Err(RegistryError::Refused { .. })));
    let plain = faulty(&[]);
    let error = trusting(settings.path(), &format!("https://{}", plain.repository()), None).tags(&|_| ()).unwrap_err();
    assert!(matches!(error, RegistryError::Unreachable { .. }) && !error.is_distrust(), "{error:?}");
}

#[test]
fn a_file_that_holds_no_authority_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let certificates = folder.path().join("containers/certs.d/registry.example:5000");
    fs::create_dir_all(&certificates).unwrap();
    let of = || {
        let variable = |name: &str| (name == "XDG_CONFIG_HOME").then(|| folder.path().to_str().unwrap().to_owned());
        Authorities::of("registry.example:5000", variable)
    };
    // Certificates of clients and their keys are of no concern.
    fs::write(certificates.join("client.cert"), "none").unwrap();
    assert_eq!(of().unwrap(), Authorities::default());
    fs::write(certificates.join("ca.crt"), TestCertificate::make().authority()).unwrap();
    assert_ne!(of().unwrap(), Authorities::default());
    fs::write(certificates.join("other.crt"), "none").unwrap();
    let error = of().unwrap_err().to_string();
    assert!(error.contains("other.crt` holds no certificate"), "{error}");
    let error = Authorities::default().add_file(&folder.path().join("absent")).unwrap_err().to_string();
    assert!(error.contains("absent"), "{error}");
}

#[test]
fn a_real_registry_is_spoken_to_by_tls() {
    if !std::env::var("ISOBENCH_SLOW").is_ok_and(|value| value == "1") {
        println!("skipped: a real registry is started with ISOBENCH_SLOW=1");
        return;
    }
    let certificate = TestCertificate::make();
    let user = RegistryUser { user: "bench".to_owned(), password: "s3cret".to_owned() };
    let registry = match DockerRegistry::start_with_tls(Some(&user), &certificate) {
        Ok(registry) => registry,
        Err(reason) => {
            println!("skipped: {reason}");
            return;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    let layout = Layout::create(folder.path()).unwrap();
    let fake = faulty(&[]);
    fake.add("a", &image());
    let (from, _) = client_of(&fake.repository(), None, SHORT);
    layout.pull(&from, &tag("a"), &amd64(), &|_, _| ()).unwrap().unwrap();
    let settings = tempfile::tempdir().unwrap();
    put(settings.path(), registry.address(), &certificate);
    let name = format!("https://{}/team/engine", registry.address());
    let client = trusting(settings.path(), &name, Some(password("bench", "s3cret")));
    let sent = layout.push(&client, &tag("a"), &tag("b"), &|_, _| ()).unwrap();
    assert_eq!((sent.blobs, sent.digest.as_str()), (3, image().digest().as_str()));
    // A fetch that was killed goes on, as this registry gives parts of blobs.
    let half = tempfile::tempdir().unwrap();
    let fetched = Layout::create(half.path()).unwrap();
    let digest = image().layer_digest(0).unwrap();
    let hex = digest.strip_prefix("sha256:").unwrap();
    fs::write(half.path().join(format!("blobs/sha256/.part-{hex}")), vec![7; 20_000]).unwrap();
    let first = std::cell::RefCell::new(Vec::new());
    let progress = |part: &isobench_schema::images::ImagePart, got| {
        if part.digest.as_str() == digest {
            first.borrow_mut().push(got);
        }
    };
    fetched.pull(&client, &tag("b"), &amd64(), &progress).unwrap().unwrap();
    assert_eq!(first.borrow().last(), Some(&30_000));
    assert!(first.borrow()[0] > 20_000, "it went on where it was: {first:?}");
    assert!(trusting(half.path(), &name, None).tags(&|_| ()).unwrap_err().is_distrust());
}
