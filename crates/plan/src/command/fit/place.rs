//! Where the benchmark program is: at the path that the command names, elsewhere, under another name, or nowhere.

use isobench_schema::assessment::RevisionFacts;
use isobench_schema::deviation::DeviationKind;
use isobench_schema::tool::Tool;

use super::{Fitter, finding, label};
use crate::command::ProgramOf;
use crate::command::recognise::Named;
use crate::lint::ids;

impl Fitter<'_, '_> {
    /// Finds the program, and mends how the command names it.
    pub(super) fn locate(&mut self, named: &Named) {
        let asked = self.fitted.tool;
        let baseline = self.asked.baseline;
        if let Some(place) = self.place_at(asked, baseline) {
            self.fitted.place = place;
            self.mend_path(named);
            return;
        }
        if let Some(other) = successor(asked)
            && let Some(place) = self.place_at(other, baseline)
        {
            self.fitted.place = place;
            self.fitted.tool = other;
            let message =
                format!("there is no `{asked}` at {}, or only a stub that tells its new name", label(baseline));
            let run = format!("`{other}`");
            let reason = "the engine moved the same benchmark there";
            self.mended(ids::SCRIPT_MISSING, &shown(asked, named), message, &run, reason);
            return;
        }
        if let Some(human) = self.asked.human
            && let Some(place) = self.place_at(asked, human)
        {
            let message = format!("there is no `{asked}` at {}; the commit itself adds it", label(baseline));
            let run = format!("`{place}` of {}", human.commit.short());
            self.fitted.place = place;
            self.fitted.program_of = ProgramOf::Human;
            let reason = "the benchmark comes with the commit, and every arm is measured by the same one";
            self.mended(ids::SCRIPT_MISSING, &shown(asked, named), message, &run, reason);
            return;
        }
        let message = format!("there is no `{}` at {}, nor at the commit itself", shown(asked, named), label(baseline));
        let fix = "name a benchmark that the revision has, or leave the row's command out and plan the task with `--workload NAME`".to_owned();
        self.fitted.findings.push(finding(ids::SCRIPT_MISSING, &shown(asked, named), message, fix));
    }

    /// Returns where a program is at a revision.
    fn place_at(&self, tool: Tool, revision: &RevisionFacts) -> Option<String> {
        let mut places = self.program(tool)?.places_at(&revision.committed);
        match &revision.scripts {
            // What a clone says of scripts goes before what is known in general.
            Some(scripts) if is_script(tool) => {
                places.find(|place| scripts.contains(&place.path)).map(|place| place.path.clone())
            }
            _ => places.next().map(|place| place.path.clone()),
        }
    }

    /// Mends a script's path that isn't the one in the repository.
    fn mend_path(&mut self, named: &Named) {
        let Named::Script(path) = named else { return };
        let place = self.fitted.place.clone();
        let bare = path.strip_prefix("./").unwrap_or(path);
        if bare == place || !is_script(self.fitted.tool) {
            return;
        }
        let private = path.starts_with(['/', '~']) || path.contains(":\\") || path.starts_with("..");
        let revision = label(self.asked.baseline);
        let (rule, message) = if private {
            (ids::PRIVATE_PATH, format!("`{path}` is a path of somebody's own machine"))
        } else {
            (ids::SCRIPT_MISSING, format!("there is no `{path}` at {revision}; the script is `{place}`"))
        };
        self.mended(rule, path, message, &format!("`{place}`"), "it is the script of that name in the repository");
    }

    fn mended(&mut self, rule: &str, subject: &str, message: String, run: &str, reason: &str) {
        let mut found = finding(rule, subject, message, format!("name {run}"));
        found.repaired = true;
        self.fitted.findings.push(found);
        self.repair(DeviationKind::CommandMended, "client.program", (&format!("`{subject}`"), run), reason);
    }
}

/// Returns the program with which an engine replaced another one, in either direction.
fn successor(tool: Tool) -> Option<Tool> {
    match tool {
        Tool::BenchmarkServing => Some(Tool::VllmBenchServe),
        Tool::BenchmarkThroughput => Some(Tool::VllmBenchThroughput),
        Tool::BenchmarkLatency => Some(Tool::VllmBenchLatency),
        Tool::VllmBenchServe => Some(Tool::BenchmarkServing),
        Tool::VllmBenchThroughput => Some(Tool::BenchmarkThroughput),
        Tool::VllmBenchLatency => Some(Tool::BenchmarkLatency),
        Tool::BenchmarkPrefixCaching
        | Tool::VllmServe
        | Tool::SglangBenchServing
        | Tool::SglangBenchOneBatch
        | Tool::SglangBenchOneBatchServer
        | Tool::SglangBenchOfflineThroughput
        | Tool::SglangLaunchServer => None,
    }
}

/// Returns whether a program is started by its path.
pub(super) fn is_script(tool: Tool) -> bool {
    matches!(
        tool,
        Tool::BenchmarkServing | Tool::BenchmarkThroughput | Tool::BenchmarkLatency | Tool::BenchmarkPrefixCaching
    )
}

fn shown(tool: Tool, named: &Named) -> String {
    match named {
        Named::Script(path) => path.clone(),
        Named::Module(module) => module.clone(),
        Named::Subcommand => tool.as_str().to_owned(),
    }
}
