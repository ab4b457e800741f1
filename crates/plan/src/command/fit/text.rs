//! From the texts of a row to one benchmark command and at most one server command.

use std::collections::BTreeMap;

use isobench_schema::assessment::{Finding, Severity};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::tool::ToolKind;

use super::{Asked, Invocation, deviation, finding};
use crate::command::recognise::{Unknown, recognise};
use crate::command::words::{self, Construct, Note, NoteKind, ReadCommandError, Script, Word};
use crate::lint::ids;

/// What the texts of a row say.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) client: Invocation,
    pub(super) server: Option<Invocation>,
    /// Variables that the programs get: the server's go before the benchmark's.
    pub(super) variables: BTreeMap<String, String>,
    pub(super) findings: Vec<Finding>,
    pub(super) repairs: Vec<Deviation>,
}

/// What was read so far.
#[derive(Default)]
struct Draft {
    clients: Vec<Invocation>,
    servers: Vec<Invocation>,
    unknown: Vec<Unknown>,
    client_variables: BTreeMap<String, String>,
    server_variables: BTreeMap<String, String>,
    findings: Vec<Finding>,
    repairs: Vec<Deviation>,
}

/// Reads the texts of a row.
pub(super) fn read(asked: &Asked<'_>) -> Result<Text, Vec<Finding>> {
    let mut draft = Draft::default();
    draft.take("command", asked.command);
    if let Some(server) = asked.server_command.filter(|text| !text.trim().is_empty()) {
        draft.take("server command", server);
    }
    draft.finish()
}

impl Draft {
    fn take(&mut self, column: &str, text: &str) {
        match words::read(text) {
            Ok(script) => self.take_script(column, script),
            Err(error) => self.findings.push(unreadable(column, text, &error)),
        }
    }

    fn take_script(&mut self, column: &str, script: Script) {
        for note in &script.notes {
            self.note(column, note);
        }
        for mut command in script.commands {
            self.remove_brackets(&mut command.words);
            match recognise(&command) {
                Err(unknown) => self.unknown.push(unknown),
                Ok(found) => {
                    for wrapper in &found.wrappers {
                        self.wrapper(wrapper);
                    }
                    let invocation =
                        Invocation { tool: found.tool, named: found.named.clone(), words: found.arguments.to_vec() };
                    let server = found.tool.kind() == ToolKind::Server;
                    let (commands, variables) = if server {
                        (&mut self.servers, &mut self.server_variables)
                    } else {
                        (&mut self.clients, &mut self.client_variables)
                    };
                    commands.push(invocation);
                    variables.extend(found.variables);
                }
            }
        }
    }

    fn finish(mut self) -> Result<Text, Vec<Finding>> {
        let known = !self.clients.is_empty();
        for unknown in std::mem::take(&mut self.unknown) {
            self.findings.push(unknown_tool(&unknown, known));
        }
        if self.clients.len() > 1 || self.servers.len() > 1 {
            let both = self.clients.iter().chain(&self.servers).map(|command| command.tool.as_str());
            let message = format!("the command runs several programs: {}", both.collect::<Vec<_>>().join(", "));
            let fix = "make a task of each".to_owned();
            self.findings.push(finding(ids::COMMAND_UNREADABLE, "command", message, fix));
        } else if let Some(client) = self.clients.pop()
            && self.findings.iter().all(|found| {
                found.rule != ids::COMMAND_UNREADABLE || found.repaired || found.severity != Severity::Error
            })
        {
            let mut variables = self.client_variables;
            variables.extend(self.server_variables);
            return Ok(Text {
                client,
                server: self.servers.pop(),
                variables,
                findings: self.findings,
                repairs: self.repairs,
            });
        } else if self.findings.iter().all(|found| found.severity != Severity::Error) {
            let message = "the command starts a server and no benchmark".to_owned();
            let fix = "add the benchmark's command; the server's has its own column".to_owned();
            self.findings.push(finding(ids::TOOL_UNKNOWN, "command", message, fix));
        }
        Err(self.findings)
    }

    /// Takes the brackets off options that were copied with them: `[--use-v2-block-manager]`, `[--tp 4]`.
    fn remove_brackets(&mut self, words: &mut [Word]) {
        let mut index = 0;
        while let Some(word) = words.get(index) {
            if word.quoted || !word.text.starts_with("[-") {
                index += 1;
                continue;
            }
            let closes = |word: &Word| !word.quoted && word.text.ends_with(']');
            let Some(end) = words.iter().skip(index).position(closes).map(|length| index + length) else { return };
            let asked = shown(words.get(index..=end).unwrap_or_default());
            if let Some(first) = words.get_mut(index) {
                first.text.remove(0);
            }
            if let Some(last) = words.get_mut(end) {
                last.text.pop();
            }
            let run = shown(words.get(index..=end).unwrap_or_default());
            let mut found = finding(
                ids::BRACKETED_OPTION,
                &run,
                format!("`{asked}` was copied with the brackets that mark it as optional"),
                format!("write `{run}`"),
            );
            found.repaired = true;
            self.findings.push(found);
            let reason = "brackets mark what may be given; the option is taken as given";
            let (asked, run) = (format!("`{asked}`"), format!("`{run}`"));
            self.repairs.push(deviation(DeviationKind::CommandMended, "command", (&asked, &run), reason));
            index = end + 1;
        }
    }

    /// Says what of the text isn't run.
    fn note(&mut self, column: &str, note: &Note) {
        let (severity, what, fix) = match note.kind {
            NoteKind::Redirection | NoteKind::Tee => {
                (Severity::Note, "isn't done: isobench keeps the whole output itself", "nothing needs to be done")
            }
            NoteKind::Background => {
                (Severity::Note, "has no meaning here: isobench waits for every program", "nothing needs to be done")
            }
            NoteKind::SideCommand => {
                (Severity::Note, "isn't run: it changes nothing of the benchmark", "nothing needs to be done")
            }
            NoteKind::Prompt => (Severity::Note, "is a terminal's prompt and no part of the command", "take it out"),
            NoteKind::Unexported => (
                Severity::Warning,
                "is set and reaches no program: it isn't exported before the command",
                "write `export` before it, or set it on the command's own line",
            ),
            NoteKind::Pattern => (
                Severity::Warning,
                "would be filled in from names of files by a shell; it is taken as it stands",
                "quote it, or write what it stands for",
            ),
            NoteKind::BlankAfterBackslash => (
                Severity::Error,
                "is followed by blanks, with which a shell would end the command; the line is read on",
                "take the blanks at the end of the line away",
            ),
        };
        let message = format!("`{}` at byte {} of the {column} {what}", note.text, note.at);
        let mut found = finding(ids::COMMAND_UNREADABLE, &note.text, message, fix.to_owned());
        found.severity = severity;
        found.repaired = severity != Severity::Warning;
        self.findings.push(found);
        if matches!(note.kind, NoteKind::BlankAfterBackslash | NoteKind::Prompt) {
            let reason = "a slip of copying that leaves no doubt about what is meant";
            self.repairs.push(deviation(DeviationKind::CommandMended, column, (&note.text, "read over"), reason));
        }
    }

    /// Says that a wrapper isn't run.
    fn wrapper(&mut self, wrapper: &str) {
        let message =
            format!("`{wrapper}` isn't run: isobench has its own deadlines, and places programs on the machine itself");
        let mut found = finding(ids::COMMAND_UNREADABLE, wrapper, message, "set limits in the task".to_owned());
        let places = ["numactl", "taskset", "torchrun", "chrt", "nice", "ionice"];
        let matters = places.into_iter().any(|name| wrapper.split(' ').next() == Some(name));
        found.severity = if matters { Severity::Warning } else { Severity::Note };
        found.repaired = !matters;
        self.findings.push(found);
    }
}

fn shown(words: &[Word]) -> String {
    words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

fn unreadable(column: &str, text: &str, error: &ReadCommandError) -> Finding {
    let rest = text.get(error.at..).unwrap_or_default();
    let shown: String = rest.chars().take(40).collect();
    let rule = if error.construct == Construct::Nothing {
        ids::NO_COMMAND
    } else if matches!(error.construct, Construct::Variable(_)) {
        ids::PLACEHOLDER
    } else {
        ids::COMMAND_UNREADABLE
    };
    let mut found = finding(
        rule,
        column,
        format!("the {column} has {} at byte {}", error.construct, error.at),
        "write one simple command: a program, its options, and variables before it".to_owned(),
    );
    found.evidence.extend((!shown.is_empty()).then_some(shown));
    found
}

fn unknown_tool(unknown: &Unknown, beside: bool) -> Finding {
    let Unknown { name, nearest, is_script } = unknown;
    let hint = nearest.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    if beside {
        let message = format!("`{name}` isn't run: it is no benchmark and no server that is known{hint}");
        let mut found =
            finding(ids::TOOL_UNKNOWN, name, message, "put what it prepares into the task's environment".to_owned());
        found.severity = Severity::Warning;
        return found;
    }
    let what = if *is_script { "script" } else { "program" };
    let message = if name.is_empty() {
        "the command runs no program".to_owned()
    } else {
        format!("the {what} `{name}` is no benchmark that is known{hint}")
    };
    let fix = "name one of the engine's own benchmarks, or leave the row's command out and plan the task with `--workload NAME`".to_owned();
    finding(ids::TOOL_UNKNOWN, if name.is_empty() { "command" } else { name }, message, fix)
}
