//! What the planner makes of the taken rungs: the one recipe of all arms.

use std::collections::BTreeMap;

use isobench_schema::assessment::{RevisionFacts, RungAnswer};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::environment::{ImagePython, PackageAlias, Python, Rung, ToolkitChoice, Venv};
use isobench_schema::ids::ArmId;
use isobench_schema::task::TaskEnvironment;

use super::answers::nearest_release;
use super::images::{self, Supply};
use super::native::{self, Wheel};
use super::{Platform, Request, day, taken};
use crate::defaults;
use crate::knowledge::engines::Engine;
use crate::knowledge::packages::Group;

/// How many days after a commit a version of a package may have been released to be installed with it.
const DAYS_AFTER: i64 = 30;

/// Packages that engines ask for through others, and that broke environments which were made later.
const THROUGH_OTHERS: &[&str] = &["huggingface-hub", "starlette"];

/// Returns how every arm of a task is made, by the rungs that are taken, and what of it deviates from what was asked.
///
/// None if the baseline or the human commit can't be had, or if the engine has no tables. What differs between the arms of one
/// recipe is written `{commit}` and replaced by each arm's commit.
pub fn task_environment(
    request: &Request<'_>,
    ladders: &BTreeMap<ArmId, Vec<RungAnswer>>,
) -> Option<(TaskEnvironment, Vec<Deviation>)> {
    let engine = request.knowledge.engines.of(request.engine)?;
    let revision = |wanted: &ArmId| request.arms.iter().find(|arm| arm.arm == *wanted)?.revision;
    let baseline = revision(&ArmId::Baseline)?;
    let rung = |arm: &ArmId| ladders.get(arm).and_then(|answers| taken(answers)).map(|answer| answer.rung);
    let of_baseline = rung(&ArmId::Baseline)?;
    if ladders.contains_key(&ArmId::Human) {
        rung(&ArmId::Human)?;
    }
    let recipe = Recipe { request, engine, baseline };
    if let Ok(supply) = images::supply(request) {
        return Some((recipe.with_images(&supply)?, Vec::new()));
    }
    match of_baseline {
        Rung::Image => None,
        Rung::Wheel | Rung::NativeTree if engine.kernels.is_some() => Some(recipe.with_kernels()),
        Rung::Wheel | Rung::NativeTree => Some(recipe.with_wheel(&recipe.wheel(revision(&ArmId::Human))?)),
        Rung::Overlay => {
            let release = nearest_release(request, baseline)?;
            let wheel = native::release_wheel(engine, release, String::new());
            let (environment, mut deviations) = recipe.with_wheel(&wheel);
            deviations.push(Deviation {
                kind: DeviationKind::ReleaseOverlay,
                subject: "environment.overlay".to_owned(),
                asked: "native files built from each revision".to_owned(),
                run: format!("the native files of {}", release.name),
                reason: "no published native files are known to be those of the revisions".to_owned(),
            });
            Some((environment, deviations))
        }
        Rung::Source => recipe.built(),
    }
}

struct Recipe<'a> {
    request: &'a Request<'a>,
    engine: &'a Engine,
    baseline: &'a RevisionFacts,
}

impl Recipe<'_> {
    /// Returns the wheel that gives all arms their native files; where trees differ, a text that finds each arm's own.
    fn wheel(&self, human: Option<&RevisionFacts>) -> Option<Wheel> {
        let differing = human.filter(|human| human.native_key != self.baseline.native_key);
        let Some(human) = differing else {
            return native::own_wheel(self.request, self.baseline)
                .or_else(|_| native::serving(self.request, self.baseline))
                .ok();
        };
        let (requirement, index, python) = native::common_template(self.request, self.baseline, human)?;
        let artifact = requirement.clone();
        Some(Wheel { requirement, index, python, artifact, because: String::new() })
    }

    fn with_images(&self, supply: &Supply<'_>) -> Option<TaskEnvironment> {
        let of_baseline = supply.of(&ArmId::Baseline)?;
        let of_human = supply.of(&ArmId::Human).unwrap_or(of_baseline);
        let image = ImagePython {
            image: of_human.name(),
            baseline_image: Some(of_baseline.name()),
            program: defaults::IMAGE_PYTHON.to_owned(),
            holds: None,
            pinned: None,
        };
        let module = self.engine.module_at(&self.baseline.committed);
        let package = module.map_or(&self.engine.package, |module| &module.name);
        Some(self.environment(Python::Image(image), Some(package.clone())))
    }

    fn with_wheel(&self, wheel: &Wheel) -> (TaskEnvironment, Vec<Deviation>) {
        let (bounds, deviations) = self.bounds();
        let mut venv = self.venv();
        if let Some(python) = &wheel.python {
            venv.python = Some(python.clone());
        }
        venv.requirements = [vec![wheel.requirement.clone()], bounds].concat();
        venv.extra_indexes.extend(wheel.index.clone());
        let environment = self.environment(Python::Venv(venv), Some(self.engine.package.clone()));
        (environment, deviations)
    }

    fn with_kernels(&self) -> (TaskEnvironment, Vec<Deviation>) {
        let (bounds, deviations) = self.bounds();
        let mut venv = self.venv();
        venv.requirements = [self.asks(&[Group::Common, Group::Cuda]), bounds].concat();
        (self.environment(Python::Venv(venv), None), deviations)
    }

    fn built(&self) -> Option<(TaskEnvironment, Vec<Deviation>)> {
        let platform = self.request.means.platform;
        let rule = self.engine.build_at(platform, &self.baseline.committed)?;
        let (bounds, deviations) = self.bounds();
        let of_platform = match platform {
            Platform::Cuda => Group::Cuda,
            Platform::Cpu => Group::Cpu,
        };
        let mut venv = self.venv();
        let asks = self.asks(&[Group::Common, of_platform, Group::Build]);
        venv.requirements = [asks.clone(), bounds].concat();
        let release = nearest_release(self.request, self.baseline).map_or("0.0.1", |release| release.version());
        // The engine asks for its own version, and some builds ask git for it.
        let version = match platform {
            Platform::Cuda => release.to_owned(),
            Platform::Cpu => format!("{release}+cpu"),
        };
        venv.aliases.push(PackageAlias { name: self.engine.package.clone(), version: version.clone() });
        let mut environment = self.environment(Python::Venv(venv), None);
        // What a build for CUDA fetches of other repositories stands in its own files.
        let toolkits = &self.request.knowledge.toolkits;
        environment.toolkit = (platform == Platform::Cuda).then(|| ToolkitChoice {
            image: None,
            cuda: toolkits.of_requirements(asks.iter().map(String::as_str)).map(|row| row.cuda.clone()),
            network: true,
        });
        environment.build.clone_from(&rule.commands);
        environment.build_environment.clone_from(&rule.environment);
        environment.build_environment.insert("SETUPTOOLS_SCM_PRETEND_VERSION".to_owned(), version);
        Some((environment, deviations))
    }

    fn venv(&self) -> Venv {
        let python = self.engine.python_at(&self.baseline.committed).map(|python| python.version.clone());
        Venv { python, ..Venv::default() }
    }

    fn environment(&self, python: Python, overlay: Option<String>) -> TaskEnvironment {
        let module = self.engine.module_at(&self.baseline.committed);
        TaskEnvironment {
            python,
            overlay,
            native: None,
            toolkit: None,
            build: Vec::new(),
            build_environment: BTreeMap::new(),
            python_path: module.map(|module| module.path.clone()).into_iter().collect(),
            modules: module.map(|module| module.name.clone()).into_iter().collect(),
            allow_binary_patch: false,
        }
    }

    /// Returns what the main branch asked for at the baseline's moment, each requirement once.
    fn asks(&self, groups: &[Group]) -> Vec<String> {
        let mut asks: Vec<String> = Vec::new();
        if let Some(packages) = self.request.knowledge.engines.packages(self.request.engine) {
            for ask in packages.asks_at(groups, &self.baseline.committed) {
                if !asks.iter().any(|known| known == ask) {
                    asks.push(ask.to_owned());
                }
            }
        }
        asks
    }

    /// Returns upper bounds for packages that the revision leaves open: the newest version of about its time.
    fn bounds(&self) -> (Vec<String>, Vec<Deviation>) {
        let engines = &self.request.knowledge.engines;
        let Some(by) = day::after(&self.baseline.committed, DAYS_AFTER) else { return (Vec::new(), Vec::new()) };
        let asks = self.asks(&[Group::Common, Group::Cuda, Group::Cpu]);
        let open = asks.iter().filter(|ask| !is_exact(ask)).map(|ask| package(ask));
        let mut names: Vec<String> = open.chain(THROUGH_OTHERS.iter().map(|name| (*name).to_owned())).collect();
        names.sort_unstable();
        names.dedup();
        let exact = |name: &String| asks.iter().any(|ask| is_exact(ask) && package(ask) == *name);
        names.retain(|name| !exact(name));
        let bound = |name: &String| Some(format!("{name}<={}", engines.released_by(name, &by)?));
        let bounds: Vec<String> = names.iter().filter_map(bound).collect();
        if bounds.is_empty() {
            return (bounds, Vec::new());
        }
        let deviation = Deviation {
            kind: DeviationKind::PackageOverride,
            subject: "environment.requirements".to_owned(),
            asked: "the newest versions that the revision's open requirements allow".to_owned(),
            run: bounds.join(", "),
            reason: format!("versions released by {by}, {DAYS_AFTER} days after the baseline; later ones may not fit"),
        };
        (bounds, vec![deviation])
    }
}

/// Returns whether a requirement leaves no choice.
fn is_exact(requirement: &str) -> bool {
    let versions = requirement.split(';').next().unwrap_or(requirement);
    versions.contains("==") && !versions.contains('*') || versions.contains('@')
}

/// Returns the normalised name of a requirement's package.
fn package(requirement: &str) -> String {
    let end =
        requirement.find(|c: char| !(c.is_ascii_alphanumeric() || "._-".contains(c))).unwrap_or(requirement.len());
    requirement.get(..end).unwrap_or(requirement).to_ascii_lowercase().replace(['_', '.'], "-")
}
