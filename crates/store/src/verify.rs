//! Whether a run's folder still holds what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};

use isobench_schema::event::EventKind;
use isobench_schema::ids::{ArmId, BlockId, Digest, LaunchId};
use isobench_schema::outcome::Artifact;
use isobench_schema::plan::Plan;

use crate::artifacts::ReadArtifactError;
use crate::atomic::StoreError;
use crate::reader::{ReadRunError, RunReader};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is lost: a process was killed, or the run goes on.
    Note,
    /// Something that was recorded is gone or isn't what it was.
    Damage,
}

/// Something about a run's folder that isn't as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The facts aren't those that the plan was made from.
    FactsAltered {
        /// The digest in the plan.
        planned: Digest,
        /// The digest of the file.
        found: Digest,
    },
    /// The events can't be read to their end.
    EventsDamaged {
        /// What is wrong, naming the line.
        message: String,
    },
    /// The last event was only half written; opening the run cuts it off.
    TornTail {
        /// Its length.
        bytes: u64,
    },
    /// An attempt has begun and not ended.
    AttemptOpen {
        /// The attempt.
        id: BlockId,
    },
    /// An attempt isn't one that the plan has, or its launches aren't in the plan's order.
    NotPlanned {
        /// The attempt.
        id: BlockId,
        /// The arms in the order of their launches.
        order: Vec<ArmId>,
    },
    /// A piece of evidence is missing.
    ArtifactMissing {
        /// Its digest.
        digest: Digest,
        /// A launch whose evidence it is.
        launch: LaunchId,
        /// The evidence's name.
        name: String,
    },
    /// A piece of evidence was cut or altered.
    ArtifactDamaged {
        /// Its digest.
        digest: Digest,
        /// A launch whose evidence it is.
        launch: LaunchId,
        /// The evidence's name.
        name: String,
    },
    /// A piece of evidence has another length than its record says.
    LengthDiffers {
        /// What the record says.
        recorded: Artifact,
        /// A launch whose evidence it is.
        launch: LaunchId,
        /// The evidence's name.
        name: String,
        /// Its length in bytes.
        found: u64,
    },
    /// A file among the artifacts belongs to no launch that has ended: its launch was cut short, or somebody put it there.
    Unreferenced {
        /// The file.
        path: PathBuf,
    },
}

impl Finding {
    /// Returns how bad it is.
    pub fn severity(&self) -> Severity {
        match self {
            Self::TornTail { .. } | Self::AttemptOpen { .. } | Self::Unreferenced { .. } => Severity::Note,
            Self::FactsAltered { .. }
            | Self::EventsDamaged { .. }
            | Self::NotPlanned { .. }
            | Self::ArtifactMissing { .. }
            | Self::ArtifactDamaged { .. }
            | Self::LengthDiffers { .. } => Severity::Damage,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FactsAltered { planned, found } => {
                write!(formatter, "the facts have the digest {found}, and the plan was made from {planned}")
            }
            Self::EventsDamaged { message } => formatter.write_str(message),
            Self::TornTail { bytes } => write!(formatter, "the last event is cut short: {bytes} bytes of it are there"),
            Self::AttemptOpen { id } => write!(formatter, "`{id}` has begun and not ended"),
            Self::NotPlanned { id, order } => {
                let arms: Vec<_> = order.iter().map(ToString::to_string).collect();
                write!(formatter, "the plan has no `{id}` with the launches [{}]", arms.join(", "))
            }
            Self::ArtifactMissing { digest, launch, name } => {
                write!(formatter, "`{name}` of `{launch}` is missing (artifact {digest})")
            }
            Self::ArtifactDamaged { digest, launch, name } => {
                write!(formatter, "`{name}` of `{launch}` was cut or altered (artifact {digest})")
            }
            Self::LengthDiffers { recorded, launch, name, found } => write!(
                formatter,
                "`{name}` of `{launch}` has {found} bytes, and its record says {} (artifact {})",
                recorded.bytes, recorded.digest
            ),
            Self::Unreferenced { path } => write!(formatter, "no launch that has ended refers to `{}`", path.display()),
        }
    }
}

/// Reads everything in a run's folder and checks it: the plan against the events, the events against each other and
/// against the plan, and every piece of evidence against its digest. Takes constant memory for each piece.
///
/// # Errors
/// Returns an error if the folder holds no run, or if it can't be read for another reason than damage.
pub fn verify(dir: &Path) -> Result<Vec<Finding>, ReadRunError> {
    let reader = RunReader::open(dir)?;
    let mut findings = Vec::new();
    if reader.plan().facts != *reader.facts_digest() {
        findings
            .push(Finding::FactsAltered { planned: reader.plan().facts.clone(), found: reader.facts_digest().clone() });
    }
    let evidence = check_events(&reader, &mut findings)?;
    check_artifacts(&reader, &evidence, &mut findings)?;
    Ok(findings)
}

/// The evidence of all launches: for each artifact one launch and name.
type Evidence = BTreeMap<Artifact, (LaunchId, String)>;

fn check_events(reader: &RunReader, findings: &mut Vec<Finding>) -> Result<Evidence, ReadRunError> {
    let mut evidence = Evidence::new();
    let mut open = BTreeSet::new();
    let mut events = reader.events()?;
    for event in events.by_ref() {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                let message = std::error::Error::source(&error)
                    .map_or_else(|| error.to_string(), |source| format!("{error}: {source}"));
                findings.push(Finding::EventsDamaged { message });
                break;
            }
        };
        match event.kind {
            EventKind::BlockStarted { id, order } => {
                if !is_planned(reader.plan(), &id, &order) {
                    findings.push(Finding::NotPlanned { id: id.clone(), order });
                }
                open.insert(id);
            }
            EventKind::BlockEnded { id, launches, .. } => {
                open.remove(&id);
                for record in launches {
                    for (name, artifact) in record.evidence {
                        evidence.entry(artifact).or_insert_with(|| (record.launch.clone(), name));
                    }
                }
            }
            EventKind::RunStarted { .. }
            | EventKind::OrphansEnded { .. }
            | EventKind::LaunchStage { .. }
            | EventKind::LookTaken { .. }
            | EventKind::Confirmed { .. }
            | EventKind::ConfirmationWithdrawn { .. }
            | EventKind::RunEnded { .. } => {}
        }
    }
    if events.torn_bytes() > 0 {
        findings.push(Finding::TornTail { bytes: events.torn_bytes() });
    }
    findings.extend(open.into_iter().map(|id| Finding::AttemptOpen { id }));
    Ok(evidence)
}

fn is_planned(plan: &Plan, id: &BlockId, order: &[ArmId]) -> bool {
    let blocks = plan.task(&id.task).and_then(|task| Plan::blocks(task).ok()).unwrap_or_default();
    blocks.iter().any(|planned| planned.block == id.block && planned.order == order)
}

fn check_artifacts(reader: &RunReader, evidence: &Evidence, findings: &mut Vec<Finding>) -> Result<(), StoreError> {
    for (recorded, (launch, name)) in evidence {
        let (digest, launch, name) = (recorded.digest.clone(), launch.clone(), name.clone());
        match reader.artifacts().verify(&digest) {
            Ok(found) if found == recorded.bytes => {}
            Ok(found) => findings.push(Finding::LengthDiffers { recorded: recorded.clone(), launch, name, found }),
            Err(ReadArtifactError::Missing { .. }) => findings.push(Finding::ArtifactMissing { digest, launch, name }),
            Err(ReadArtifactError::Damaged { .. }) => findings.push(Finding::ArtifactDamaged { digest, launch, name }),
            Err(ReadArtifactError::Storage(error)) => return Err(error),
        }
    }
    let referenced: BTreeSet<&Digest> = evidence.keys().map(|artifact| &artifact.digest).collect();
    for (path, digest) in reader.artifacts().files()? {
        if !digest.is_some_and(|digest| referenced.contains(&digest)) {
            findings.push(Finding::Unreferenced { path });
        }
    }
    Ok(())
}
