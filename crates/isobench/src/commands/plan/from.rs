//! `isobench plan --from RUN`: a new plan with the recipes that the causes of a run's failures name, on every arm alike.

use std::path::Path;

use isobench_plan::recipe::repair::{KnownCause, Repaired, repair};
use isobench_schema::cause::FixKind;
use isobench_schema::facts::Facts;
use isobench_schema::ids::ArmId;
use isobench_schema::plan::Plan;
use isobench_schema::verdict::Judgement;

use super::Context;
use crate::commands::run::read_plan;
use crate::evidence;
use crate::exit::{CommandError, Exit, WithExit as _};

/// Returns the new plan of a run, with its facts.
///
/// # Errors
/// Returns an error if the folder is no run, or if none of its failures has a recipe that can be applied.
pub(super) fn repaired(run: &Path, context: Context) -> Result<(Plan, Facts), CommandError> {
    let judgement = evidence::judgement(run)?;
    let (plan, facts) = read_plan(run)?;
    let causes = causes(&judgement, context);
    if causes.is_empty() {
        let message = format!("no failure of the run `{}` has a cause whose recipe is known", run.display());
        return Err(CommandError::new(Exit::NothingToRun, message)
            .hint(format!("`isobench classify {}` says what is known of each", run.display())));
    }
    let Repaired { mut plan, applied, left } = repair(&plan, &causes).exit(Exit::Error)?;
    for (task, left) in &left {
        context.terminal.status(&format!("{task}: the recipe `{}` isn't applied: {}", left.id, left.reason));
    }
    for (task, recipes) in &applied {
        context.terminal.status(&format!("{task}: {} on every arm", recipes.join(", ")));
    }
    if plan.tasks.is_empty() {
        let named: Vec<String> =
            causes.iter().map(|cause| format!("{} of `{}`", cause.signature, cause.task)).collect();
        let message = format!("no recipe can be applied for {}", named.join(", "));
        return Err(CommandError::new(Exit::NothingToRun, message)
            .hint(format!("`isobench classify {}` says what else would mend it", run.display())));
    }
    env!("CARGO_PKG_VERSION").clone_into(&mut plan.planner);
    Ok((plan, facts))
}

/// Returns the causes that name recipes. What only an agent's logs say isn't believed: who writes a log can write that into it,
/// and would change every arm.
fn causes(judgement: &Judgement, context: Context) -> Vec<KnownCause> {
    let mut known: Vec<KnownCause> = Vec::new();
    for task in &judgement.tasks {
        for arm in &task.arms {
            for cause in arm.failures.iter().filter_map(|counted| counted.cause.as_ref()) {
                let (Some(signature), FixKind::Recipe) = (&cause.signature, cause.fix.kind) else { continue };
                let is_agents = matches!(arm.arm, ArmId::Agent(_));
                if is_agents && !cause.arms.iter().any(|arm| !matches!(arm, ArmId::Agent(_))) {
                    let line = format!(
                        "{}: {signature} stands only in the logs of {}, which isn't believed",
                        task.id, arm.arm
                    );
                    context.terminal.status(&line);
                    continue;
                }
                let one = KnownCause {
                    task: task.id.clone(),
                    signature: signature.clone(),
                    recipes: cause.fix.recipes.clone(),
                };
                if !known.contains(&one) {
                    known.push(one);
                }
            }
        }
    }
    known
}
