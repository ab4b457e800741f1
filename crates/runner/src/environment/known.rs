//! The trees that a run's environments have had: one specification must give one tree in every block.
//!
//! The record in the cache lies beside the tree, where an engine may rewrite both so that they agree. What the run itself
//! remembers lies elsewhere.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use isobench_schema::check::Check;
use isobench_schema::environment::EnvironmentSpec;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::{Digest, EnvironmentId};

use super::{EnvironmentError, PrepareContext, Prepared, evict, prepare};

/// The digest of the tree with which each environment of a run was first proven.
#[derive(Debug, Default)]
pub struct KnownTrees(Mutex<BTreeMap<EnvironmentId, Digest>>);

impl KnownTrees {
    /// Returns the tree with which an environment was first proven, if it was.
    pub fn of(&self, id: &EnvironmentId) -> Option<Digest> {
        self.trees().get(id).cloned()
    }

    /// Remembers the tree with which an environment was proven. Only the first one counts.
    pub fn note(&self, id: &EnvironmentId, tree: &Digest) {
        self.trees().entry(id.clone()).or_insert_with(|| tree.clone());
    }

    fn trees(&self) -> MutexGuard<'_, BTreeMap<EnvironmentId, Digest>> {
        // A thread that panicked can't have left half an entry.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Prepares an environment as [`prepare`] does, with the tree that it had before in this run.
///
/// If the cache has another one, that is evicted and the environment is made again from its source.
///
/// # Errors
/// As [`prepare`]; an environment that has another tree also when it is made again fails with the class
/// `environment-unproven`.
pub fn prepare_known(
    spec: &EnvironmentSpec,
    context: &PrepareContext<'_>,
    known: &KnownTrees,
) -> Result<Result<Prepared, Failure>, EnvironmentError> {
    let first = prepare(spec, context)?;
    let Ok(prepared) = &first else { return Ok(first) };
    let Some(earlier) = known.of(&prepared.id).filter(|earlier| *earlier != prepared.manifest.tree) else {
        return Ok(first);
    };
    evict(prepared)?;
    let found = prepared.manifest.tree.clone();
    let again = prepare(spec, context)?;
    Ok(again.and_then(|prepared| {
        if prepared.manifest.tree == earlier { Ok(prepared) } else { Err(other_tree(&earlier, &found, &prepared)) }
    }))
}

fn other_tree(earlier: &Digest, found: &Digest, prepared: &Prepared) -> Failure {
    let message = "the environment has another tree than in an earlier block, also when it is made again";
    let lines = [("earlier", earlier), ("in the cache", found), ("made again", &prepared.manifest.tree)];
    Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message)
        .breaking(Check::SameTree)
        .with_evidence(
            lines.map(|(when, digest)| EvidenceLine::new("tree", None, &format!("{when}: {}", digest.as_str()))),
        )
}
