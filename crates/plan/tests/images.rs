//! Datasets of commits whose arms run from images: their order by shared layers, and the disk that they need.

#![allow(clippy::unwrap_used, reason = "a broken fixture must fail the test")]

use isobench_plan::assess::AssessOptions;
use isobench_plan::dataset::{self, Dataset, Entry, EntryKind, Files, ReadFileError};
use isobench_plan::knowledge::Knowledge;
use isobench_plan::planner::{self, PlanOptions};
use isobench_plan::source::Images;
use isobench_plan::statistics::Statistics;
use isobench_schema::assessment::PlannedFor;
use isobench_schema::container::ContainerSpec;
use isobench_schema::environment::{EngineKind, Rung};
use isobench_schema::facts::{Device, Facts, Host};
use isobench_schema::ids::{CommitId, ImageDigest, ImageTag};
use isobench_schema::images::{ImageFact, ImageFacts, ImagePart, ImageState};
use isobench_schema::plan::{ExclusionReason, Forecast, Look, Plan, PlannedTask, Spending};

const PUBLIC: &str = include_str!("../../../examples/iso-bench/vllm-96.jsonl");
/// Commits whose own scripts measure them, so that no tokenizer is needed, in the dataset's order; their baselines have equal
/// native trees.
const COMMITS: [&str; 3] = ["98f47f2a", "6dd94dbe", "fa63e710"];
const GIB: u64 = 1 << 30;

struct One(String);

impl Files for One {
    fn read(&self, _: &str) -> Result<Vec<u8>, ReadFileError> {
        Ok(self.0.clone().into_bytes())
    }

    fn list(&self, _: &str) -> Result<Vec<Entry>, ReadFileError> {
        Err(ReadFileError::Missing)
    }

    fn kind(&self, _: &str) -> Option<EntryKind> {
        Some(EntryKind::File)
    }
}

fn commits() -> Dataset {
    let rows = PUBLIC.lines().filter(|row| COMMITS.iter().any(|commit| row.contains(&format!("\"{commit}"))));
    let rows: Vec<&str> = rows.collect();
    assert_eq!(rows.len(), COMMITS.len());
    dataset::read(&One(rows.join("\n")), "/data", "rows.jsonl", &[]).unwrap()
}

struct EvenLevels;

impl Statistics for EvenLevels {
    fn looks(&self, _spending: Spending, blocks: &[u32]) -> Result<Vec<Look>, String> {
        Ok(blocks.iter().map(|&blocks| Look { blocks, level: 0.01, equivalence_level: 0.01 }).collect())
    }

    fn forecast(&self, _task: &PlannedTask, _host: &Host) -> Option<Forecast> {
        None
    }
}

/// What a registry says of the images of commits, by their layers: each 2 GiB.
fn registry(images: &[(&str, &[&str])]) -> ImageFacts {
    let fact = |(commit, layers): &(&str, &[&str])| {
        let known = Knowledge::embedded().commits.find(EngineKind::Vllm, commit).unwrap();
        let part = |layer: &&str| ImagePart { digest: ImageDigest::of(layer.as_bytes()), bytes: 2 * GIB };
        let layers: Vec<ImagePart> = layers.iter().map(part).collect();
        let fact = ImageFact {
            tag: ImageTag::new(known.commit.as_str()).unwrap(),
            state: ImageState::Present,
            digest: Some(ImageDigest::of(commit.as_bytes())),
            config: Some(ImageDigest::of(format!("configuration of {commit}").as_bytes())),
            bytes: Some(layers.iter().map(|layer| layer.bytes).sum()),
            layers,
            reason: None,
        };
        (known.commit.clone(), fact)
    };
    let commits = images.iter().map(fact).collect::<std::collections::BTreeMap<CommitId, ImageFact>>();
    ImageFacts { repository: "registry.example/team/engine".to_owned(), commits }
}

fn plan(images: &[(&str, &[&str])], image_disk_mib: Option<u64>) -> Plan {
    let device = Device { name: "NVIDIA H100".to_owned(), memory_mib: 81_559, driver: "1".to_owned() };
    let host = Host { devices: vec![device], ..Host::default() };
    let facts = Facts { host, images: Some(registry(images)), image_disk_mib, ..Facts::default() };
    let planned_for = PlannedFor { device: "h100-sxm".to_owned(), count: 1, assumed: false };
    let commits_with = AssessOptions { planned_for, images: Images::Usable, ..AssessOptions::default() };
    let options = PlanOptions {
        commits: commits_with,
        container: Some(ContainerSpec::default()),
        disk_floor_bytes: GIB,
        ..PlanOptions::new(1, "0.0.0")
    };
    planner::plan(&commits(), &facts, &options, &EvenLevels).unwrap()
}

fn tasks(plan: &Plan) -> Vec<&str> {
    plan.tasks.iter().map(|task| task.id.as_str().strip_prefix("vllm-").unwrap()).collect()
}

#[test]
fn tasks_whose_images_begin_with_the_same_layers_come_next_to_each_other() {
    let [first, second, third] = COMMITS;
    let found = plan(&[(first, &["base", "a"]), (second, &["other", "b"]), (third, &["base", "c"])], None);
    assert_eq!(tasks(&found), [first, third, second]);
    for task in &found.tasks {
        let rungs: Vec<Rung> = task.environments.values().map(|environment| environment.rung).collect();
        assert!(rungs.contains(&Rung::Image) && rungs.contains(&Rung::NativeTree), "{rungs:?}");
        assert_eq!(task.images.len(), 1, "one image serves both arms");
        assert!(task.deviations.iter().all(|deviation| deviation.kind.as_str() != "release-overlay"));
    }
    // Layers are shared only where images begin alike.
    let found = plan(&[(first, &["base", "a"]), (second, &["other", "b"]), (third, &["c", "base"])], None);
    assert_eq!(tasks(&found), [first, second, third]);
}

#[test]
fn an_image_that_never_fits_on_its_disk_excludes_its_task() {
    let [first, second, third] = COMMITS;
    let large = ["a", "b", "c", "d"];
    let images: [(&str, &[&str]); 3] = [(first, &large), (second, &["e"]), (third, &["f", "g"])];
    // 8 GiB are fetched, which need 28; with 1 GiB that is left free, 29.
    assert_eq!(tasks(&plan(&images, Some(29 * 1024))), COMMITS);
    let found = plan(&images, Some(28 * 1024));
    assert_eq!(tasks(&found), [second, third]);
    let exclusion = found.exclusions.iter().find(|exclusion| exclusion.task.as_str().ends_with(first)).unwrap();
    assert_eq!(exclusion.reason, ExclusionReason::MachineTooSmall);
    for part in ["8.5 GB to fetch", "about 30.0 GB", "has 30.0 GB in all", "1.0 GB are left free"] {
        assert!(exclusion.message.contains(part), "{}", exclusion.message);
    }
}
