//! The recorded commands, as written and after repair, against the options that each baseline's own source defines.
//!
//! Nothing of the tables under test judges here: the parsers come from `fixtures/options-at-baselines.json`, which is read from the
//! revisions' files, and an emulation of argparse that is held to the real one.

#![allow(clippy::indexing_slicing, clippy::panic, reason = "a broken fixture must fail the test")]

mod support;

use std::collections::BTreeSet;

use isobench_plan::command::fit::fit;
use isobench_plan::command::{Asked, Fitted, ProgramOf};
use isobench_plan::knowledge::Knowledge;
use isobench_schema::assessment::RevisionFacts;
use isobench_schema::environment::EngineKind;
use isobench_schema::tool::{Tool, ToolKind};
use support::argparse::Report;
use support::baselines::{Baseline, Baselines};

/// One recorded command.
struct Recorded {
    commit: &'static str,
    parent: &'static str,
    command: &'static str,
    /// What an earlier check by hand found.
    column: &'static str,
}

fn recorded() -> Vec<Recorded> {
    let rows = include_str!("fixtures/recorded-commands.tsv").lines().skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let [commit, parent, command, column] = fields[..] else { panic!("{line}: four columns are wanted") };
        Recorded { commit, parent, command, column }
    });
    rows.collect()
}

fn baseline(row: &Recorded) -> &'static Baseline {
    Baselines::stored().find(row.parent).expect(row.parent)
}

/// Splits a command at blanks; the recorded ones have no blank in quotes.
fn words(command: &str) -> Vec<String> {
    command.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect()
}

/// Returns the program of a command as written, its path if it is a script, and its arguments.
fn program(command: &str) -> Option<(Tool, Option<String>, Vec<String>)> {
    let words = words(command);
    if let Some(at) =
        words.iter().position(|word| word.rsplit('/').next().is_some_and(|name| Tool::parse(name).is_some()))
    {
        let tool = words[at].rsplit('/').next().and_then(Tool::parse)?;
        return Some((tool, Some(words[at].clone()), words[at + 1..].to_vec()));
    }
    let tool = Tool::parse(&words.get(..3)?.join(" "))?;
    Some((tool, None, words[3..].to_vec()))
}

/// What is wrong with a command as written, in the column's terms.
#[derive(Debug, PartialEq, Eq)]
enum Wrong {
    NoCommand,
    Placeholders,
    Bracketed,
    NoScript,
    Arguments { unrecognized: BTreeSet<String>, missing: BTreeSet<String>, needs: Option<Needs> },
}

/// What the program needs beyond what its parser asks for.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Needs {
    ShareGptFile,
    Lengths,
}

/// Returns what the column says.
fn said(column: &str) -> Wrong {
    if column == "no command in the data set" {
        return Wrong::NoCommand;
    }
    if column == "unexpanded placeholders" {
        return Wrong::Placeholders;
    }
    if column.starts_with("bracketed") {
        return Wrong::Bracketed;
    }
    if column.starts_with("script ") {
        return Wrong::NoScript;
    }
    let names = |lead: &str| -> BTreeSet<String> {
        let part = column.split("; ").find_map(|part| part.strip_prefix(lead));
        part.map(|names| names.split(' ').map(ToOwned::to_owned).collect()).unwrap_or_default()
    };
    let needs = if column.contains("needs --dataset-path") {
        Some(Needs::ShareGptFile)
    } else {
        column.contains("no --input-len/--output-len").then_some(Needs::Lengths)
    };
    Wrong::Arguments {
        unrecognized: names("argparse would exit 2, unrecognized: "),
        missing: names("required but absent: "),
        needs,
    }
}

/// Returns what the baseline's own parser says of the command as written.
fn found(row: &Recorded) -> Wrong {
    if row.command.is_empty() {
        return Wrong::NoCommand;
    }
    let (tool, path, args) = program(row.command).expect(row.command);
    if args.iter().any(|word| ["MODEL", "BS", "INPUT_LEN", "OUTPUT_LEN"].contains(&word.as_str())) {
        return Wrong::Placeholders;
    }
    if args.iter().any(|word| word.starts_with("[--")) {
        return Wrong::Bracketed;
    }
    let baseline = baseline(row);
    let Some(parser) = Baselines::stored().parser(baseline, tool) else { return Wrong::NoScript };
    let there = |path: &String| baseline.tools[tool.as_str()].places.iter().any(|place| path.ends_with(place.as_str()));
    if path.is_some_and(|path| !there(&path)) {
        return Wrong::NoScript;
    }
    let report = parser.report(&args).expect("no recorded command has a value of a wrong kind");
    let needs = needs(row, tool, &report, &args);
    let unrecognized = report.extras.iter().filter(|word| word.starts_with('-')).cloned().collect();
    Wrong::Arguments { unrecognized, missing: report.missing.into_iter().collect(), needs }
}

/// Returns what a program needs that its parser doesn't ask for: the file of the conversations that are its default, or lengths.
fn needs(row: &Recorded, tool: Tool, report: &Report, args: &[String]) -> Option<Needs> {
    let given = |name: &str| report.given.iter().any(|own| own == name);
    let options = Baselines::stored().options(baseline(row), tool);
    let default = |name: &str| options.iter().find(|spec| spec.names[0] == name).and_then(|spec| spec.default.clone());
    match tool.kind() {
        ToolKind::Serving => {
            let chosen = args.iter().position(|word| word == "--dataset-name").map(|at| args[at + 1].clone());
            let dataset = chosen.or_else(|| default("--dataset-name"))?;
            (dataset == "sharegpt" && !given("--dataset-path") && !given("--dataset")).then_some(Needs::ShareGptFile)
        }
        ToolKind::OfflineThroughput if tool != Tool::BenchmarkPrefixCaching => {
            let data = given("--dataset") || given("--dataset-path");
            (!data && !given("--input-len")).then_some(Needs::Lengths)
        }
        ToolKind::OfflineThroughput | ToolKind::OfflineLatency | ToolKind::Server => None,
    }
}

/// Rows where both differ, with the reason.
const DISAGREEMENTS: [(&str, &str); 0] = [];

#[test]
fn as_written_the_emulation_finds_what_an_earlier_check_found() {
    let rows = recorded();
    assert_eq!(rows.len(), 70);
    let mut differ = Vec::new();
    for row in &rows {
        let (said, found) = (said(row.column), found(row));
        let explained = DISAGREEMENTS.iter().any(|(commit, _)| row.commit.starts_with(commit));
        if (said == found) == explained {
            differ.push(format!("{} {}\n  column: {said:?}\n  found: {found:?}", row.commit, row.command));
        }
    }
    assert!(differ.is_empty(), "{} of {} rows:\n{}", differ.len(), rows.len(), differ.join("\n"));
}

fn facts(commit: &str) -> &'static RevisionFacts {
    Knowledge::embedded().commits.find(EngineKind::Vllm, commit).expect(commit)
}

fn fitted(row: &Recorded) -> Fitted<'static> {
    let asked = Asked {
        command: row.command,
        server_command: None,
        engine: EngineKind::Vllm,
        model: None,
        baseline: facts(row.parent),
        human: Some(facts(row.commit)),
    };
    fit(&asked, Knowledge::embedded()).unwrap_or_else(|findings| panic!("{}: {findings:?}", row.command))
}

/// Commands that nobody could run as they stand, each with what its repair must report.
const UNFIT: [(&str, &str); 3] = [
    // No benchmark at the parent nor at the commit.
    ("d4bc1a4d", "script-missing"),
    // The commit itself adds the benchmark, but neither side has a server yet.
    ("c45f3c3a", "script-missing"),
    // `BS`, `INPUT_LEN`, `OUTPUT_LEN` and `MODEL` stand for values that nobody wrote down.
    ("526de822", "placeholder"),
];

#[test]
fn after_repair_no_command_is_refused_by_its_baselines_own_parsers() {
    let mut refused = Vec::new();
    let (mut clients, mut servers) = (0, 0);
    for row in recorded().iter().filter(|row| !row.command.is_empty()) {
        let fitted = fitted(row);
        if !fitted.is_fit() {
            let rule = UNFIT.iter().find(|(commit, _)| row.commit.starts_with(commit)).map(|(_, rule)| *rule);
            if !fitted.findings.iter().any(|finding| rule.is_some_and(|rule| finding.rule == rule)) {
                refused.push(format!("{} {}: isn't fit: {:?}", row.commit, row.command, fitted.findings));
            }
            if rule != Some("script-missing") || fitted.client.is_empty() {
                continue;
            }
        }
        // A benchmark that the commit itself adds is the commit's.
        let program_of = match fitted.program_of {
            ProgramOf::Baseline => row.parent,
            ProgramOf::Human => row.commit,
        };
        clients += 1;
        accept(program_of, fitted.tool, &fitted.client_argv(), &mut refused);
        if !fitted.server_argv().is_empty() {
            servers += 1;
            accept(row.parent, fitted.tool.server(), &fitted.server_argv(), &mut refused);
        }
    }
    assert!(refused.is_empty(), "{} refused:\n{}", refused.len(), refused.join("\n"));
    assert!(clients >= 65 && servers >= 65, "{clients} clients and {servers} servers were checked");
}

fn accept(revision: &str, tool: Tool, argv: &[String], refused: &mut Vec<String>) {
    let stored = Baselines::stored();
    let Some(parser) = stored.parser(stored.find(revision).expect(revision), tool) else {
        refused.push(format!("{tool} isn't there at {revision}: {argv:?}"));
        return;
    };
    let start = argv.iter().position(|word| word.starts_with('-') && word != "-m").unwrap_or(argv.len());
    if let Err(why) = parser.check(&argv[start..]) {
        refused.push(format!("{revision}: {why}\n  {}", argv.join(" ")));
    }
}

#[test]
fn no_option_of_a_command_vanishes() {
    let mut lost = Vec::new();
    for row in recorded().iter().filter(|row| !row.command.is_empty()) {
        let fitted = fitted(row);
        let all = [&fitted.client, &fitted.server, &fitted.superseded, &fitted.refused];
        let written: BTreeSet<String> = all.into_iter().flatten().map(|option| option.written.clone()).collect();
        let (_, _, args) = program(row.command).expect(row.command);
        for name in args.iter().map(|word| word.trim_matches(['[', ']'])).filter(|word| word.starts_with("--")) {
            let kept =
                written.iter().any(|option| option.split([' ', '=']).any(|word| word.trim_matches(['[', ']']) == name));
            if !kept {
                lost.push(format!("{} {name} of {}", row.commit, row.command));
            }
        }
        // What has another name or place than it was written with is said.
        for option in fitted.client.iter().chain(&fitted.server).filter(|option| !option.written.is_empty()) {
            let name = option.written.split([' ', '=']).next().unwrap_or_default();
            if name != option.name && fitted.repairs.is_empty() {
                lost.push(format!("{}: `{}` became `{}` unsaid", row.commit, option.written, option.name));
            }
        }
    }
    assert!(lost.is_empty(), "{} lost:\n{}", lost.len(), lost.join("\n"));
}
