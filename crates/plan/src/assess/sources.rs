//! Where each arm's environment comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isobench_schema::assessment::{RevisionFacts, RungAnswer};
use isobench_schema::deviation::Deviation;
use isobench_schema::environment::{Patch, Python, Rung};
use isobench_schema::ids::ArmId;
use isobench_schema::task::TaskEnvironment;

use super::Subject;
use crate::knowledge::devices::Vendor;
use crate::knowledge::engines::Platform;
use crate::recipe::Pins;
use crate::source::{self, ArmSource, Means, Request};

/// Where each arm's environment comes from.
pub(super) struct Sources {
    /// The revisions that it is reckoned for.
    pub(super) baseline: Option<Arc<RevisionFacts>>,
    pub(super) human: Option<Arc<RevisionFacts>>,
    pub(super) ladder: Arc<BTreeMap<ArmId, Vec<RungAnswer>>>,
    /// How every arm is made, if every arm can be had.
    pub(super) environment: Option<TaskEnvironment>,
    pub(super) deviations: Vec<Deviation>,
    /// The requirements that environments are made with.
    pub(super) pins: Pins,
}

fn pins(environment: Option<&TaskEnvironment>) -> Pins {
    match environment.map(|environment| &environment.python) {
        Some(Python::Venv(venv)) => Pins::read(venv.requirements.iter().chain(&venv.overrides)),
        Some(Python::Absent | Python::System) | None => Pins::default(),
    }
}

impl Sources {
    pub(super) fn new(subject: &Subject<'_>) -> Self {
        let touched: Vec<(ArmId, Vec<String>)> = subject
            .task
            .agents
            .iter()
            .filter_map(|agent| Some((ArmId::Agent(agent.name.clone()), touched(agent.patch.as_ref()?))))
            .collect();
        let arm = |arm: ArmId, revision| ArmSource { arm, revision, touched: None };
        let mut arms = vec![arm(ArmId::Baseline, subject.baseline), arm(ArmId::Human, subject.human)];
        arms.extend(touched.iter().map(|(agent, files)| ArmSource {
            arm: agent.clone(),
            revision: subject.baseline,
            touched: Some(files),
        }));
        let means = Means::on(platform(subject));
        let request = Request { engine: subject.task.engine, arms: &arms, means: &means, knowledge: subject.knowledge };
        let ladder = source::ladders(&request);
        let (environment, deviations) = source::task_environment(&request, &ladder).unzip();
        let (baseline, human) = (subject.baseline.cloned().map(Arc::new), subject.human.cloned().map(Arc::new));
        Self {
            baseline,
            human,
            ladder: Arc::new(ladder),
            pins: pins(environment.as_ref()),
            environment,
            deviations: deviations.unwrap_or_default(),
        }
    }

    /// Returns the native keys that must be built for it.
    pub(super) fn builds(&self, subject: &Subject<'_>) -> BTreeSet<String> {
        let rungs = self.rungs();
        let key = |arm: &ArmId| {
            let revision = match arm {
                ArmId::Human => subject.human,
                ArmId::Baseline | ArmId::Agent(_) => subject.baseline,
            };
            let revision = revision?;
            Some(revision.native_key.clone().unwrap_or_else(|| revision.commit.to_string()))
        };
        rungs.iter().filter(|(_, rung)| **rung == Rung::Source).filter_map(|(arm, _)| key(arm)).collect()
    }

    /// Returns whether an arm is built from source.
    pub(super) fn is_built(&self) -> bool {
        self.rungs().values().any(|rung| *rung == Rung::Source)
    }

    /// Returns the rung that each arm takes.
    pub(super) fn rungs(&self) -> BTreeMap<ArmId, Rung> {
        self.ladder.iter().filter_map(|(arm, answers)| Some((arm.clone(), source::taken(answers)?.rung))).collect()
    }
}

fn platform(subject: &Subject<'_>) -> Platform {
    match subject.device.map(|device| device.vendor) {
        Some(Vendor::Cpu) => Platform::Cpu,
        _ => Platform::Cuda,
    }
}

/// Returns the files that a unified diff names, before and after.
fn touched(patch: &Patch) -> Vec<String> {
    let text = String::from_utf8_lossy(&patch.bytes.0);
    let mut files: Vec<String> = text.lines().filter_map(file_of).map(ToOwned::to_owned).collect();
    files.sort();
    files.dedup();
    files
}

fn file_of(line: &str) -> Option<&str> {
    let marked = ["--- a/", "+++ b/", "rename from ", "rename to ", "copy to "];
    let path = marked.into_iter().find_map(|mark| line.strip_prefix(mark))?;
    Some(path.split('\t').next().unwrap_or(path).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_that_a_patch_names_is_touched() {
        let text = "diff --git a/x.py b/x.py\n--- a/x.py\t2024\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n\
                    rename from csrc/old.cu\nrename to csrc/new.cu\n--- /dev/null\n+++ b/new.py\n";
        let found = touched(&Patch::new("p", text.as_bytes().to_vec()));
        assert_eq!(found, ["csrc/new.cu", "csrc/old.cu", "new.py", "x.py"]);
    }
}
