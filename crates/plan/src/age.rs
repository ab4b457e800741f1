//! What the age of a revision says of a hand-written task of a known engine: which options its server or script takes, and
//! where its server says that it is ready.
//!
//! The tables of `knowledge/` follow the engine's main branch. A revision may lie on another one, such as a release's, so that
//! an option counts as unknown only where it is far from every time at which it was known.

use isobench_schema::assessment::RevisionFacts;
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::environment::EngineKind;
use isobench_schema::facts::Facts;
use isobench_schema::ids::{Moment, Revision};
use isobench_schema::plan::ExclusionReason;
use isobench_schema::task::{ServerSpec, Task};
use isobench_schema::tool::Tool;

use crate::command::options::Table;
use crate::defaults;
use crate::exclude::Why;
use crate::knowledge::Knowledge;
use crate::knowledge::options::{OptionSpec, Program};
use crate::nearest::nearest_flag;
use crate::source::day;

/// How far a branch may be from the main one, in days.
const SLACK_DAYS: i64 = 90;

/// The path that says whether vLLM's server is ready, before it had one for that.
pub(crate) const MODELS: &str = "/v1/models";

/// When vLLM's servers got `/health` (commit 7e90a2d117, released with v0.2.2).
const HEALTH_SINCE: &str = "2023-11-01T17:29:44Z";

/// Returns whether an engine's server has `/health` at a moment.
pub(crate) fn has_health(engine: EngineKind, moment: &Moment) -> bool {
    engine != EngineKind::Vllm || moment.as_str() >= HEALTH_SINCE
}

/// Returns why a task can't be started at one of its revisions: an option that no program there knows.
pub(crate) fn options(task: &Task, facts: &Facts) -> Option<Why> {
    let (tool, names) = asked(task)?;
    let program = Knowledge::embedded().options.program(tool)?;
    let human = task.human.as_ref();
    let revisions = std::iter::once(&task.baseline).chain(human);
    let known: Vec<(&Revision, &RevisionFacts)> =
        revisions.filter_map(|revision| Some((revision, known(task, facts, revision)?))).collect();
    names.iter().find_map(|name| {
        let (revision, found) = known.iter().find(|(_, found)| !is_known(program, name, &found.committed))?;
        Some((ExclusionReason::Contradiction, refusal(program, name, revision, &found.committed)))
    })
}

/// Returns the program that a task starts, with the names of the options that it is given.
fn asked(task: &Task) -> Option<(Tool, Vec<String>)> {
    let flag = |name: &str| format!("--{}", name.replace('_', "-"));
    if let Some(script) = &task.workload.script {
        let names = script.arguments.iter().filter(|word| word.starts_with("--"));
        let names = names.map(|word| flag(word.split('=').next().unwrap_or(word).trim_start_matches('-')));
        return Some((script.tool, names.collect()));
    }
    if !task.server.command.is_empty() {
        return None;
    }
    Some((server(task.engine)?, task.server.options.keys().map(|name| flag(name)).collect()))
}

/// Returns an engine's server, if it is one whose options are known.
fn server(engine: EngineKind) -> Option<Tool> {
    match engine {
        EngineKind::Generic => None,
        EngineKind::Vllm => Some(Tool::VllmServe),
        EngineKind::Sglang => Some(Tool::SglangLaunchServer),
    }
}

/// Returns what is known of a revision, if its tree is the engine's own: one that has the engine's server.
fn known<'f>(task: &Task, facts: &'f Facts, revision: &Revision) -> Option<&'f RevisionFacts> {
    let server = Knowledge::embedded().options.program(server(task.engine)?)?;
    let found = facts.details.get(&task.repository)?.get(revision.as_str())?;
    let scripts = found.scripts.as_ref()?;
    server.place.iter().any(|place| scripts.contains(&place.path)).then_some(found)
}

fn of_name<'k>(program: &'k Program, name: &str) -> impl Iterator<Item = &'k OptionSpec> {
    let positive = name.strip_prefix("--no-").map(|rest| format!("--{rest}"));
    let names = [Some(name.to_owned()), positive];
    program.option.iter().filter(move |spec| names.iter().flatten().any(|name| spec.names.contains(name)))
}

/// Returns whether a program takes an option around a moment.
fn is_known(program: &Program, name: &str, moment: &Moment) -> bool {
    let (Some(early), Some(late)) = (day::after(moment, -SLACK_DAYS), day::after(moment, SLACK_DAYS)) else {
        return true;
    };
    of_name(program, name).any(|spec| {
        let since = spec.since.as_str() <= late.as_str();
        let until = spec.until.as_ref().is_none_or(|until| until.as_str() >= early.as_str());
        since && until
    })
}

/// Says that an option isn't known, since when or until when it is, and which one may be meant.
fn refusal(program: &Program, name: &str, revision: &Revision, moment: &Moment) -> String {
    let table = Table::at(program, moment);
    let near = nearest_flag(name, table.names().filter(|near| near.starts_with("--")));
    let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    let first = of_name(program, name).min_by(|a, b| a.since.cmp(&b.since));
    let last = of_name(program, name).max_by(|a, b| a.since.cmp(&b.since));
    let when = match (first, last) {
        (Some(first), _) if first.since > *moment => {
            let release = first.since_release.as_ref().map_or_else(String::new, |release| format!(" ({release})"));
            format!(", which has it from {}{release} on", day_of(&first.since))
        }
        (_, Some(last)) => {
            let release = last.until_release.as_ref().map_or_else(String::new, |release| format!(" ({release})"));
            let until =
                last.until.as_ref().map_or_else(String::new, |until| format!(" until {}{release}", day_of(until)));
            format!(", which had it{until}")
        }
        (_, None) => ", nor at any other time".to_owned(),
    };
    format!("`{name}` is no option of `{}` at `{revision}` of {}{when}{near}", program.tool, day_of(moment))
}

fn day_of(moment: &Moment) -> &str {
    moment.as_str().get(..10).unwrap_or(moment.as_str())
}

/// Returns how the server is asked whether it is ready, with what differs from the task: before it had `/health`, it can only
/// be asked for its models.
pub(crate) fn readiness(task: &Task, facts: &Facts) -> (ServerSpec, Option<Deviation>) {
    let mut server = task.server.clone();
    let is_old = known(task, facts, &task.baseline).is_some_and(|found| !has_health(task.engine, &found.committed));
    if !is_old || server.health != defaults::HEALTH || task.workload.script.is_some() {
        return (server, None);
    }
    MODELS.clone_into(&mut server.health);
    let deviation = Deviation {
        kind: DeviationKind::OptionTranslated,
        subject: "server.health".to_owned(),
        asked: format!("`{}`", defaults::HEALTH),
        run: format!("`{MODELS}`"),
        reason: format!(
            "vLLM's server has `{}` only since {}",
            defaults::HEALTH,
            HEALTH_SINCE.get(..10).unwrap_or_default()
        ),
    };
    (server, Some(deviation))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(day: &str) -> Moment {
        Moment::new(format!("{day}T00:00:00Z")).unwrap()
    }

    #[track_caller]
    fn check(tool: Tool, name: &str, day: &str, expected: Option<&str>) {
        let program = Knowledge::embedded().options.program(tool).unwrap();
        let revision = Revision::new("v").unwrap();
        let is_known = is_known(program, name, &moment(day));
        let found = (!is_known).then(|| refusal(program, name, &revision, &moment(day)));
        match expected {
            None => assert_eq!(found, None),
            Some(part) => assert!(found.as_ref().is_some_and(|found| found.contains(part)), "{found:?}"),
        }
    }

    #[test]
    fn options_are_known_by_version_with_the_time_and_the_nearest_name() {
        let server = Tool::VllmServe;
        check(server, "--max-model-len", "2024-01-01", None);
        check(server, "--no-enable-prefix-caching", "2025-06-01", None);
        check(server, "--enable-chunked-prefill", "2023-09-01", Some("which has it from 2024-"));
        check(server, "--max-num-seq", "2024-06-01", Some("nor at any other time; did you mean `--max-num-seqs`?"));
        check(server, "--use-v2-block-manager", "2026-02-01", Some("which had it until 2025-"));
        check(server, "--speculative-model", "2026-02-01", Some("which had it until 2025-"));
        // A branch may lag behind the main one.
        check(server, "--speculative-model", "2025-05-01", None);
        check(Tool::BenchmarkLatency, "--output-json", "2023-12-01", Some("which has it from 2024-"));
        check(Tool::BenchmarkLatency, "--num-iters-warmup", "2024-09-01", None);
    }

    #[test]
    fn servers_before_health_are_asked_for_their_models() {
        assert!(!has_health(EngineKind::Vllm, &moment("2023-10-31")));
        assert!(has_health(EngineKind::Vllm, &moment("2023-11-02")));
        assert!(has_health(EngineKind::Sglang, &moment("2023-10-31")));
    }
}
