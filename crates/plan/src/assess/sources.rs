//! Where each arm's environment comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use isobench_schema::assessment::{RevisionFacts, RungAnswer, RungVerdict};
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
        Some(Python::Absent | Python::System | Python::Image(_)) | None => Pins::default(),
    }
}

impl Sources {
    pub(super) fn new(subject: &Subject<'_>) -> Self {
        let touched: Vec<(ArmId, Vec<String>)> = subject
            .task
            .agents
            .iter()
            .filter_map(|agent| {
                let mut files = touched(agent.patch.as_ref()?);
                if files.is_empty() {
                    // A patch that names no file that is understood is taken for one of native files.
                    files.extend(native_path(subject));
                }
                Some((ArmId::Agent(agent.name.clone()), files))
            })
            .collect();
        let arm = |arm: ArmId, revision| ArmSource { arm, revision, touched: None };
        let mut arms = vec![arm(ArmId::Baseline, subject.baseline), arm(ArmId::Human, subject.human)];
        arms.extend(touched.iter().map(|(agent, files)| ArmSource {
            arm: agent.clone(),
            revision: subject.baseline,
            touched: Some(files),
        }));
        let means = Means { images: subject.options.images, ..Means::on(platform(subject)) };
        let request = Request {
            engine: subject.task.engine,
            arms: &arms,
            means: &means,
            knowledge: subject.knowledge,
            registry: subject.facts.images.as_ref(),
        };
        let mut ladder = source::ladders(&request);
        refuse_foreign(subject, &mut ladder);
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

    /// Returns whether the arms run from images.
    pub(super) fn is_of_images(&self) -> bool {
        matches!(self.environment.as_ref().map(|environment| &environment.python), Some(Python::Image(_)))
    }

    /// Returns the rung that each arm takes.
    pub(super) fn rungs(&self) -> BTreeMap<ArmId, Rung> {
        self.ladder.iter().filter_map(|(arm, answers)| Some((arm.clone(), source::taken(answers)?.rung))).collect()
    }
}

/// Returns a path of the engine's native tree.
fn native_path(subject: &Subject<'_>) -> Option<String> {
    let engine = subject.knowledge.engines.of(subject.task.engine)?;
    engine.native.first().map(|native| native.path.clone())
}

/// Refuses every rung for devices whose packages isobench doesn't know.
fn refuse_foreign(subject: &Subject<'_>, ladder: &mut BTreeMap<ArmId, Vec<RungAnswer>>) {
    let Some(device) = subject.device else { return };
    match device.vendor {
        Vendor::Nvidia | Vendor::Cpu => return,
        Vendor::Amd => {}
    }
    for answer in ladder.values_mut().flatten() {
        answer.answer = RungVerdict::Refused;
        answer.reason = format!(
            "isobench knows wheels, images and builds for NVIDIA devices and processors, and not for {}",
            device.name
        );
    }
}

fn platform(subject: &Subject<'_>) -> Platform {
    match subject.device.map(|device| device.vendor) {
        Some(Vendor::Cpu) => Platform::Cpu,
        _ => Platform::Cuda,
    }
}

/// Returns every path that a patch may change, as it names them with and without their first part.
///
/// Whether a change is native is asked of these, so that rather too many are named than one too few: quoted names, other
/// prefixes than `a/` and `b/` or none, binary patches, changed modes and empty files are all seen by their `diff --git` line.
fn touched(patch: &Patch) -> Vec<String> {
    let text = String::from_utf8_lossy(&patch.bytes.0);
    let mut files: Vec<String> = Vec::new();
    for name in text.lines().flat_map(names_of) {
        let short = name.split_once('/').map(|(_, rest)| rest.to_owned());
        files.extend(short.into_iter().chain([name]).filter(|name| !name.is_empty() && name != "dev/null"));
    }
    files.sort();
    files.dedup();
    files
}

/// Returns the names in one line of a patch's heads.
fn names_of(line: &str) -> Vec<String> {
    if let Some(both) = line.strip_prefix("diff --git ") {
        // Names with blanks stand in the lines that follow; here every piece counts.
        let quoted = both.split('"').skip(1).step_by(2).map(unquoted);
        let plain = both.split('"').step_by(2).flat_map(str::split_whitespace).map(str::to_owned);
        return quoted.chain(plain).collect();
    }
    let marks = ["--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to "];
    let Some(name) = marks.into_iter().find_map(|mark| line.strip_prefix(mark)) else { return Vec::new() };
    let name = name.split('\t').next().unwrap_or(name).trim();
    let inside = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    vec![inside.map_or_else(|| name.trim_start_matches('/').to_owned(), unquoted)]
}

/// Undoes git's quoting of a name, as far as it tells where a file lies: bytes that aren't ASCII become `?`.
fn unquoted(name: &str) -> String {
    let mut plain = String::new();
    let mut chars = name.chars();
    while let Some(c) = chars.next() {
        match (c, if c == '\\' { chars.next() } else { None }) {
            ('\\', Some(digit)) if digit.is_ascii_digit() => {
                chars.next();
                chars.next();
                plain.push('?');
            }
            ('\\', Some(escaped)) => plain.push(escaped),
            (other, _) => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = touched(&Patch::new("p", text.as_bytes().to_vec()));
        for path in expected {
            assert!(found.iter().any(|name| name == path), "{path} is not among {found:?}");
        }
        assert_eq!(found.is_empty(), expected.is_empty(), "{found:?}");
    }

    #[test]
    fn every_file_that_a_patch_names_is_touched() {
        check("diff --git a/x.py b/x.py\n--- a/x.py\t2024\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n", &["x.py"]);
        check("rename from csrc/old.cu\nrename to csrc/new.cu\n", &["csrc/old.cu", "csrc/new.cu"]);
        check("--- /dev/null\n+++ b/new.py\n", &["new.py"]);
        check("diff --git a/csrc/x.cu b/csrc/x.cu\nGIT binary patch\nliteral 1\n", &["csrc/x.cu"]);
        check("diff --git a/setup.py b/setup.py\nold mode 100644\nnew mode 100755\n", &["setup.py"]);
        check("diff --git \"a/csrc/\\303\\251.cu\" \"b/csrc/\\303\\251.cu\"\nnew file mode 100644\n", &["csrc/??.cu"]);
        check("diff --git csrc/x.cu csrc/x.cu\n--- csrc/x.cu\n+++ csrc/x.cu\n", &["csrc/x.cu"]);
        check("diff --git i/csrc/x.cu w/csrc/x.cu\nnew file mode 100644\n", &["csrc/x.cu"]);
        check("no patch at all\n", &[]);
    }
}
