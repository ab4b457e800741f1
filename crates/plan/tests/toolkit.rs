//! The container that files are built in: what a task says of it, which image is meant, and what builds are told of devices.

mod example;

use example::{EvenLevels, changed, facts, options, read_task};
use isobench_plan::dataset::Dataset;
use isobench_plan::planner::{self, PlanOptions};
use isobench_plan::toolkit::images_needed;
use isobench_schema::container::{ContainerSpec, ImageFacts};
use isobench_schema::environment::EnvironmentSpec;
use isobench_schema::facts::{Device, Facts, FoundImage};
use isobench_schema::plan::Plan;

const CUDA: &str = "nvidia/cuda:12.8.1-devel-ubuntu22.04";

/// A task that is built, with more of its environment.
fn built(more: &str) -> Dataset {
    let text = format!("[environment]\nbuild = [[\"make\"]]\n{more}\n[server]");
    read_task(&changed("[server]", &text), &[])
}

fn image(name: &str) -> ImageFacts {
    ImageFacts { name: name.to_owned(), id: format!("sha256:{name}"), repo_digests: Vec::new() }
}

fn in_containers() -> PlanOptions {
    let container = ContainerSpec { image: Some(image("own")), ..ContainerSpec::default() };
    PlanOptions { container: Some(container), ..options() }
}

fn plan(dataset: &Dataset, facts: &Facts, options: &PlanOptions) -> Plan {
    planner::plan(dataset, facts, options, &EvenLevels).expect("a plan")
}

fn first(plan: &Plan) -> &EnvironmentSpec {
    let task = plan.tasks.first().unwrap_or_else(|| unreachable!("no task: {:?}", plan.exclusions));
    task.environments.values().next().expect("an environment")
}

#[test]
fn the_image_is_the_tasks_or_that_of_its_cuda_or_the_engines() {
    for (more, isolated, expected) in [
        ("", true, Some("own")),
        ("", false, None),
        ("toolkit = {cuda = \"12.8\"}", true, Some(CUDA)),
        // Without containers the machine itself may have the compiler.
        ("toolkit = {cuda = \"12.8\"}", false, None),
        ("toolkit = {image = \"given\", network = true}", true, Some("given")),
        ("toolkit = {image = \"given\"}", false, Some("given")),
        ("toolkit = {image = \"given\", cuda = \"12.8\"}", true, Some("given")),
    ] {
        let dataset = built(more);
        let options = if isolated { in_containers() } else { options() };
        let mut facts = facts(&dataset);
        let needed: Vec<String> = images_needed(&dataset, &facts, &options).into_iter().collect();
        let own = expected.filter(|name| *name != "own");
        assert_eq!(needed, own.map(str::to_owned).into_iter().collect::<Vec<_>>(), "{more}");
        if let Some(name) = own {
            let why = plan(&dataset, &facts, &options).exclusions.first().unwrap().message.clone();
            assert!(why.contains(&format!("the image `{name}`, in which task")), "{why}");
        }
        let found = needed.iter().map(|name| (name.clone(), FoundImage::Found { image: image(name) }));
        facts.environment_images = found.collect();
        let plan = plan(&dataset, &facts, &options);
        let toolkit = first(&plan).toolkit.clone();
        assert_eq!(toolkit.as_ref().map(|toolkit| toolkit.image.name.as_str()), expected, "{more}");
        assert_eq!(toolkit.is_some_and(|toolkit| toolkit.network), more.contains("network"));
    }
}

#[test]
fn a_task_that_builds_nothing_needs_no_container_for_it() {
    let dataset = read_task(example::SAMPLE, &[]);
    let plan = plan(&dataset, &facts(&dataset), &in_containers());
    assert_eq!(first(&plan).toolkit, None);
}

#[test]
fn an_image_that_cannot_be_had_excludes_the_task() {
    let dataset = built("toolkit = {image = \"given\"}");
    let mut facts = facts(&dataset);
    facts.environment_images =
        [("given".to_owned(), FoundImage::Missing { reason: "manifest unknown".to_owned() })].into();
    let plan = plan(&dataset, &facts, &options());
    assert!(plan.tasks.is_empty());
    let why = &plan.exclusions.first().unwrap().message;
    assert!(why.contains("can't be had: manifest unknown; pull it"), "{why}");
}

#[test]
fn builds_compile_for_the_planned_devices_unless_the_task_says_it() {
    let variable = |more: &str, devices: &[&str]| {
        let dataset = built(more);
        let mut facts = facts(&dataset);
        let device = |name: &&str| Device { name: (*name).to_owned(), memory_mib: 81_559, driver: "1".to_owned() };
        facts.host.devices = devices.iter().map(device).collect();
        let plan = plan(&dataset, &facts, &in_containers());
        first(&plan).build_environment.get("TORCH_CUDA_ARCH_LIST").cloned()
    };
    let h100 = "NVIDIA H100 80GB HBM3";
    assert_eq!(variable("", &[h100, h100]).as_deref(), Some("9.0"));
    assert_eq!(variable("", &["NVIDIA A100-SXM4-80GB", h100]).as_deref(), Some("8.0;9.0"));
    assert_eq!(variable("", &[h100, "unknown"]), None);
    assert_eq!(variable("", &[]), None);
    let said = "build-environment = {TORCH_CUDA_ARCH_LIST = \"9.0a\"}";
    assert_eq!(variable(said, &[h100]).as_deref(), Some("9.0a"));
}

#[test]
fn what_a_toolkit_cannot_be_is_said() {
    let said = |text: &str| {
        let dataset = read_task(&changed("[server]", text), &[]);
        dataset.problems.iter().map(|problem| problem.message.clone()).collect::<Vec<_>>()
    };
    let unknown = said("[environment]\nbuild = [[\"make\"]]\ntoolkit = {cuda = \"9.9\"}\n[server]");
    assert!(unknown[0].starts_with("no image is known for `environment.toolkit.cuda = \"9.9\"`"), "{unknown:?}");
    let idle = said("[environment]\ntoolkit = {image = \"x\"}\n[server]");
    assert_eq!(idle, ["`environment.toolkit` has no use without `environment.native` or `environment.build`"]);
}
