//! A new plan out of an old one: the recipe is on every arm, recorded, and nothing else of the plan changes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "all of it is test code")]

mod example;

use example::{SAMPLE, plan, read_task};
use isobench_plan::recipe::repair::{KnownCause, repair};
use isobench_schema::deviation::DeviationKind;
use isobench_schema::environment::Python;
use isobench_schema::ids::TaskId;
use isobench_schema::plan::{ExclusionReason, Plan};
use isobench_schema::recipe::RecipeChange;

/// Plans the sample as a task of vLLM with packages of its own, or the machine's Python.
fn planned(environment: &str) -> Plan {
    let text =
        SAMPLE.replace("[server]\n", &format!("[engine]\nkind = \"vllm\"\n[environment]\n{environment}\n[server]\n"));
    plan(&read_task(&text, &[]))
}

fn cause(signature: &str, recipes: &[&str]) -> KnownCause {
    KnownCause {
        task: TaskId::new("sample").unwrap(),
        signature: signature.to_owned(),
        recipes: recipes.iter().map(|&recipe| recipe.to_owned()).collect(),
    }
}

#[test]
fn a_package_is_bound_on_every_arm_and_arms_seeds_and_designs_stay() {
    let old = planned("python = \"venv\"\nrequirements = [\"vllm==0.6.0\"]");
    let new = repair(&old, &[cause("B14", &["transformers-4"])]).unwrap();
    let (before, after) = (&old.tasks[0], &new.plan.tasks[0]);
    assert!(new.left.is_empty() && after.environments.len() == before.environments.len());
    for spec in after.environments.values() {
        let Python::Venv(venv) = &spec.python else { unreachable!("it has packages of its own") };
        assert_eq!(venv.requirements, ["vllm==0.6.0", "transformers<5"]);
    }
    for arm in &after.arms {
        assert!(after.environments.contains_key(&arm.environment), "{arm:?}");
    }
    assert_eq!((&before.design, &before.workload), (&after.design, &after.workload));
    assert_eq!(after.recipes.len(), 1);
    assert_eq!(after.recipes[0].change, RecipeChange::Package { requirement: "transformers<5".to_owned() });
    let deviation = after.deviations.iter().find(|deviation| deviation.kind == DeviationKind::RecipeApplied).unwrap();
    assert!(deviation.reason.ends_with("an earlier run failed by B14"), "{}", deviation.reason);
    assert_ne!(old.digest().unwrap(), new.plan.digest().unwrap());

    // It didn't help: there is nothing more to try.
    let again = repair(&new.plan, &[cause("B14", &["transformers-4"])]).unwrap();
    assert!(again.plan.tasks.is_empty() && again.left[0].1.reason.contains("applied already"), "{:?}", again.left);
    assert_eq!(again.plan.exclusions.last().unwrap().reason, ExclusionReason::NotChosen);
}

#[test]
fn all_that_a_cause_names_is_applied_once_and_only_for_the_engine() {
    let old = planned("python = \"venv\"");
    let recipes = ["no-pyairports-from-the-index", "pyairports-stub", "sglang-no-pyairports-from-the-index"];
    let new = repair(&old, &[cause("B5", &recipes), cause("B5", &recipes)]).unwrap();
    let ids: Vec<&str> = new.plan.tasks[0].recipes.iter().map(|recipe| recipe.id.as_str()).collect();
    assert_eq!(ids, ["no-pyairports-from-the-index", "pyairports-stub"]);
    // Of two that bind the same package only the first is taken.
    let new = repair(&old, &[cause("B6", &["outlines-0.0.34", "outlines-below-0.1"])]).unwrap();
    assert_eq!(new.plan.tasks[0].recipes.len(), 1);
}

#[test]
fn a_recipe_that_cannot_be_applied_is_said_and_the_task_is_left_out() {
    let old = planned("python = \"system\"");
    let new = repair(&old, &[cause("B14", &["transformers-4"])]).unwrap();
    assert!(new.plan.tasks.is_empty() && new.left[0].1.reason.contains("no packages of its own"), "{:?}", new.left);
    // Variables need no packages.
    let new = repair(&old, &[cause("B18", &["spawn-workers"])]).unwrap();
    let server = &new.plan.tasks[0].server;
    assert_eq!(server.environment.get("VLLM_WORKER_MULTIPROC_METHOD").map(String::as_str), Some("spawn"));
}
