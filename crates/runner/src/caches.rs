//! Whether an engine's caches of compiled code are its launch's own and empty when it starts: cold in every arm.
//!
//! An arm that finds what another one compiled starts, warms up and serves unlike one that has to compile it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use isobench_schema::check::{BrokenCheck, Check, CheckUnit};
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};

/// The variables that say where compiled code is kept. Where models are kept is none of them: those are the same in every
/// arm, and digests say so.
const CACHES: &[&str] = &[
    "XDG_CACHE_HOME",
    "PYTHONPYCACHEPREFIX",
    "TORCHINDUCTOR_CACHE_DIR",
    "TORCH_EXTENSIONS_DIR",
    "TRITON_CACHE_DIR",
    "CUDA_CACHE_PATH",
    "VLLM_CACHE_ROOT",
];

/// Lines of evidence that are shown.
const SHOWN: usize = 5;

/// Checks that each variable which names a cache leads into the launch's own folder, and that `folders`, in which those lie,
/// hold nothing yet.
///
/// # Errors
/// Returns `caches-shared` with what leads elsewhere, or what is there. The plan is at fault for the former.
pub(crate) fn check(own: &Path, folders: &[&Path], variables: &BTreeMap<String, String>) -> Result<(), Failure> {
    let named = CACHES.iter().filter_map(|name| variables.get_key_value(*name));
    let is_own = |value: &str| {
        let path = Path::new(value);
        path.starts_with(own) && path.components().all(|part| part != std::path::Component::ParentDir)
    };
    let elsewhere: Vec<String> =
        named.filter(|(_, value)| !is_own(value)).map(|(name, value)| format!("{name}={value}")).collect();
    if let Some(first) = elsewhere.first() {
        let message = format!("a cache of compiled code isn't the launch's own: {first}");
        return Err(shared(Check::PrivateCaches.into(), message, "variables", &elsewhere));
    }
    let entries = |folder: &&Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let found: Vec<String> = folders.iter().flat_map(entries).map(|path| path.display().to_string()).collect();
    let Some(first) = found.first() else { return Ok(()) };
    let message = format!("the caches aren't empty before the engine starts: there is `{first}` in them");
    let count = f64::from(u32::try_from(found.len()).unwrap_or(u32::MAX));
    Err(shared(Check::PrivateCaches.above(count, 0.0, CheckUnit::Count), message, "caches", &found))
}

fn shared(check: BrokenCheck, message: String, file: &str, lines: &[String]) -> Failure {
    let lines = lines.iter().take(SHOWN).map(|line| EvidenceLine::new(file, None, line));
    Failure::new(FailureStage::Validity, FailureClass::CachesShared, message).breaking(check).with_evidence(lines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_cache_outside_the_launch_breaks_private_caches() {
        let own = Path::new("/run/launch");
        let inside = given(&[("TRITON_CACHE_DIR", "/run/launch/caches/triton"), ("HF_HOME", "/models")]);
        assert_eq!(check(own, &[], &inside), Ok(()));
        for place in ["/shared/vllm", "relative", "/run/launch/../other"] {
            let failure = check(own, &[], &given(&[("VLLM_CACHE_ROOT", place)])).unwrap_err();
            assert_eq!((failure.class, failure.check), (FailureClass::CachesShared, Some(Check::PrivateCaches.into())));
            assert_eq!(failure.evidence[0].text, format!("VLLM_CACHE_ROOT={place}"));
        }
    }

    #[test]
    fn a_cache_that_holds_something_is_not_cold() {
        let own = tempfile::tempdir().unwrap();
        let caches = own.path().join("caches");
        fs::create_dir(&caches).unwrap();
        assert_eq!(check(own.path(), &[&caches], &BTreeMap::new()), Ok(()));
        fs::write(caches.join("kernel.cubin"), "").unwrap();
        let failure = check(own.path(), &[&caches], &BTreeMap::new()).unwrap_err();
        assert_eq!(failure.check, Some(Check::PrivateCaches.above(1.0, 0.0, CheckUnit::Count)));
        assert!(failure.evidence[0].text.ends_with("caches/kernel.cubin"), "{failure:?}");
    }
}
