//! What a command may not give a server, or not unremarked: variables, options that open files or load code, a second model.

use isobench_schema::assessment::Severity;
use isobench_schema::deviation::DeviationKind;
use isobench_schema::tool::ToolKind;

use super::repair::subject;
use super::{Fitter, finding, is_model};
use crate::command::GivenOption;
use crate::knowledge::translations::{ServerOption, Side, Verdict};
use crate::lint::ids;

impl<'k> Fitter<'k, '_> {
    /// Keeps the variables that the table names; every other one is an error.
    pub(super) fn check_variables(&mut self) {
        for (name, value) in std::mem::take(&mut self.fitted.variables) {
            if !is_name(&name) {
                let message = format!("`{name}` is set as a variable, and is no name of one");
                let fix = "name it with letters, digits and underscores, or take it out of the command".to_owned();
                let subject = if name.is_empty() { "command" } else { &name };
                self.fitted.findings.push(finding(ids::COMMAND_UNREADABLE, subject, message, fix));
                continue;
            }
            let row = self.translations.variable(&name);
            match row.map_or(Verdict::Refused, |row| row.verdict) {
                Verdict::Kept | Verdict::Warned => {
                    self.fitted.variables.insert(name, value);
                }
                Verdict::Superseded => {
                    let reason = row.map_or("", |row| row.reason.as_str());
                    let (asked, run) = (format!("`{name}={value}`"), "isobench's own");
                    let subject = format!("server.environment.{name}");
                    self.repair(DeviationKind::OptionSuperseded, &subject, (&asked, run), reason);
                }
                Verdict::Refused => {
                    let message = format!(
                        "the command sets `{name}`, which isn't known to leave alone what code the server runs, what \
                         files it opens and whom it talks to"
                    );
                    let fix = "take it out of the command, or set it as `server.environment` in a task.toml".to_owned();
                    self.fitted.findings.push(finding(ids::FEATURE_CONFLICT, &name, message, fix));
                }
            }
        }
    }

    /// Takes out the options that a server isn't given, and remarks on others.
    pub(super) fn check_server_options(&mut self) {
        // An offline benchmark's own engine is the server.
        if self.fitted.tool.kind() != ToolKind::Serving {
            let options = std::mem::take(&mut self.fitted.client);
            let offline = |option: &GivenOption<'k>, row: &ServerOption| {
                row.verdict == Verdict::Refused
                    && self.server.as_ref().is_some_and(|table| table.get(&option.name).is_some())
            };
            let (refused, kept): (Vec<_>, Vec<_>) = options.into_iter().partition(|option| {
                self.translations.server_option(&option.name, &option.values).is_some_and(|row| offline(option, row))
            });
            self.fitted.client = kept;
            for option in refused {
                self.judge(Side::Client, option);
            }
        }
        for option in std::mem::take(&mut self.fitted.server) {
            if let Some(kept) = self.judge(Side::Server, option) {
                self.fitted.server.push(kept);
            }
        }
    }

    /// Returns an option if the server gets it.
    fn judge(&mut self, side: Side, option: GivenOption<'k>) -> Option<GivenOption<'k>> {
        let Some(row) = self.translations.server_option(&option.name, &option.values) else { return Some(option) };
        let name = &option.name;
        match row.verdict {
            Verdict::Kept => return Some(option),
            Verdict::Warned => {
                let message = format!("the server is given `{name}`: {}", row.reason);
                let fix = "take it out of the command if it isn't needed".to_owned();
                let mut found = finding(ids::FEATURE_CONFLICT, name, message, fix);
                found.severity = Severity::Warning;
                self.fitted.findings.push(found);
                return Some(option);
            }
            Verdict::Superseded => {
                let asked = format!("`{}`", option.written);
                self.repair(
                    DeviationKind::OptionSuperseded,
                    &subject(side, name),
                    (&asked, "isobench's own"),
                    &row.reason,
                );
                self.fitted.superseded.push(option);
            }
            Verdict::Refused => {
                let message = format!("the server can't be given `{name}`: {}", row.reason);
                let fix = "take it out of the command".to_owned();
                self.fitted.findings.push(finding(ids::FEATURE_CONFLICT, name, message, fix));
                self.fitted.refused.push(option);
            }
        }
        None
    }

    /// The benchmark asks for the model that the server holds, by its name or the one that it is served by.
    pub(super) fn check_models(&mut self) {
        let held = self.fitted.server.iter().rev().find(|option| is_model(&option.name));
        let Some(held) = held.and_then(|option| option.values.first()) else { return };
        let Some(asked) = &self.client_model else { return };
        let served = self.fitted.server.iter().rev().find(|option| option.name == "--served-model-name");
        if asked == held || served.is_some_and(|option| option.values.contains(asked)) {
            return;
        }
        let message = format!("the benchmark asks for the model `{asked}`, and the server holds `{held}`");
        let fix = "name one model in both commands".to_owned();
        self.fitted.findings.push(finding(ids::MODEL_CONTRADICTION, "--model", message, fix));
    }
}

/// Returns whether a shell takes a name for a variable's.
fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
}
