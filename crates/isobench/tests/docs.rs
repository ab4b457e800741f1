//! The reference of the command and the tables in `docs/` are what the program itself says.
//!
//! `ISOBENCH_WRITE_DOCS=1 cargo test -p isobench --test docs` writes them anew; without the variable, the tests compare.

#[path = "support/documents.rs"]
mod documents;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use isobench_plan::intake::columns::COLUMNS;
use isobench_plan::keys::{KeyDefault, task_keys};
use isobench_runner::environment::Manifest;
use isobench_runner::inputs::InputRecord;
use isobench_schema::block::{BlockComplete, BlockSpec};
use isobench_schema::check::{Check, CheckUnit};
use isobench_schema::commit_task::{CommitTask, DatasetHeader, RowFormat};
use isobench_schema::comparability::KeyField;
use isobench_schema::deviation::DeviationKind;
use isobench_schema::event::{EventLogHeader, LaunchStage, RunEnd};
use isobench_schema::facts::Facts;
use isobench_schema::failure::{Charge, FailureClass, FailureStage};
use isobench_schema::format;
use isobench_schema::images::{ImageAudit, ImageList, ImageState, ListedBy};
use isobench_schema::legacy::{LegacyFlag, LegacyHeader, LegacyReport, LegacySource, LegacyStatus};
use isobench_schema::load_checks::{AuditBound, FlowState, SearchEnd, StepState};
use isobench_schema::load_result::{LoadResult, Validity};
use isobench_schema::measurement::{Direction, MetricName};
use isobench_schema::noise::{ArrivalClass, NoiseRecord, NoiseReport, SpreadOrigin};
use isobench_schema::old_tables::OldTables;
use isobench_schema::plan::{ExclusionReason, Plan};
use isobench_schema::record::{Phase, RecordHeader};
use isobench_schema::script::ScriptSeen;
use isobench_schema::suite::{NullBasis, ScoringRule, SuccessRule};
use isobench_schema::verdict::{CheckEffect, Judgement, Standing, Verdict};

/// What stands above the reference of the command.
const CLI_HEAD: &str = "\
# The command

<!-- Written by crates/isobench/tests/docs.rs from the command's own help; don't edit. -->

Data goes to standard output, status and errors to standard error. `--json` makes the data JSON, `--quiet` leaves the
status out. An error names the object it is about, then its causes, then the next step (`hint:`).

| exit code | meaning |
| --- | --- |
| 0 | everything was decided or measured; `parse`: every file is a measurement; `classify`: the cause is known |
| 1 | a bug in isobench, or an error that has no code of its own |
| 2 | wrong usage or configuration |
| 3 | this machine lacks something, such as a program or room on the disk |
| 4 | there is nothing to run |
| 5 | interrupted; the same command goes on |
| 100 | complete, and some trials failed, or `lint` found an error that no repair takes care of; `images audit`, `images build`: an image can't be had; `import`: something can't be read; `parse`: a file is no measurement; `classify`: a cause isn't known |

| variable | meaning |
| --- | --- |
| `ISOBENCH_CACHE` | the folder of environments, where `--cache` isn't given; else `isobench` in the user's cache folder |
| `ISOBENCH_DISK_FLOOR` | the room in GiB that runs leave on the disk of the cache, where `--disk-floor` isn't given; else 1 |
| `HF_ENDPOINT`, `HF_HUB_OFFLINE`, `HF_HUB_CACHE`, `HF_HOME` | the hub, whether it isn't to be asked, and its library's cache on this machine |
| `HF_TOKEN`, `HF_TOKEN_PATH` | the hub's token, or a file that holds it; it is sent to the hub alone and recorded nowhere |
| `ISOBENCH_LEASES` | the folder of device leases; `/tmp/isobench-leases` if unset, the same for all users of the machine |
| `DOCKER_CONFIG` | the folder of Docker's `config.json`, whose credentials registries are asked with; else `.docker` in the home folder |
| `NO_COLOR` | if set and not empty, data isn't coloured unless `--color always` is given |
";

fn read(name: &str) -> String {
    fs::read_to_string(documents::root().join(name)).unwrap_or_else(|error| format!("({name} can't be read: {error})"))
}

/// Compares a document with what it must be, or writes it.
fn hold(name: &str, expected: &str) {
    documents::hold(name, expected, "docs");
}

/// Returns the help of a command as it is printed on any machine.
fn help(command: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_isobench"))
        .args(command)
        .arg("--help")
        .env_clear()
        .env("COLUMNS", "100")
        .output()
        .expect("the command runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("help is UTF-8");
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

/// Returns the names of the commands in a help text.
fn commands(help: &str) -> Vec<&str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let name = |line: &'_ str| line.strip_prefix("  ").is_some_and(|rest| !rest.starts_with(' '));
    listed.filter(|line| name(line)).filter_map(|line| line.split_whitespace().next()).collect()
}

#[test]
fn the_reference_of_the_command_is_its_help() {
    let top = help(&[]);
    let mut text = format!("{CLI_HEAD}\n## isobench\n\n```text\n{top}\n```\n");
    let names = commands(&top);
    assert!(names.contains(&"demo"), "{top}");
    for name in names.into_iter().filter(|name| *name != "help") {
        let own = help(&[name]);
        let _ = write!(text, "\n## isobench {name}\n\n```text\n{own}\n```\n");
        for below in commands(&own).into_iter().filter(|below| *below != "help") {
            let _ = write!(text, "\n### isobench {name} {below}\n\n```text\n{}\n```\n", help(&[name, below]));
        }
    }
    hold("docs/cli.md", &text);
}

/// Returns a table of Markdown.
fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let head: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rule: Vec<String> = head.iter().map(|_| "---".to_owned()).collect();
    let rows: String = rows.into_iter().map(|row| line(&row)).collect();
    line(&head) + &line(&rule) + &rows
}

fn code(text: impl std::fmt::Display) -> String {
    format!("`{text}`")
}

/// Returns a text that may stand in a cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// Returns what the doc comments of a source file say about each machine spelling in it.
fn meanings(file: &str) -> BTreeMap<String, String> {
    let source = read(file);
    let (mut found, mut doc) = (BTreeMap::new(), Vec::new());
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            doc.push(text);
            continue;
        }
        let spelling = line.strip_suffix("\",").and_then(|line| line.split_once(" = \""));
        if let Some((_, spelling)) = spelling {
            found.insert(spelling.to_owned(), cell(&doc.join(" ")));
        }
        doc.clear();
    }
    found
}

/// Returns the table of an enum's spellings and meanings.
fn spellings<'a>(head: &str, file: &str, all: impl IntoIterator<Item = &'a str>) -> String {
    let meanings = meanings(file);
    let meaning = |name: &str| meanings.get(name).cloned().unwrap_or_default();
    table(&[head, "meaning"], all.into_iter().map(|name| vec![code(name), meaning(name)]))
}

fn formats() -> String {
    let row = |tag: String, place: &str, holds: &str| vec![code(tag), place.to_owned(), holds.to_owned()];
    table(
        &["format", "where", "what"],
        [
            row(format::tag::<Plan>(), "`plan.json` of a run or a plan", "every choice of a run"),
            row(
                format::tag::<Facts>(),
                "`facts.json` beside the plan",
                "what was known of the world; the plan names its digest",
            ),
            row(
                format::tag::<EventLogHeader>(),
                "first line of `events.jsonl`",
                "the run's name; one event follows on each line",
            ),
            row(
                format::tag::<RecordHeader>(),
                "first line of the artifact `requests.jsonl`",
                "client, clock and seed; one request follows on each line",
            ),
            row(format::tag::<LoadResult>(), "output of `isobench load --json`", "the result of a load"),
            row(
                format::tag::<BlockSpec>(),
                "`spec.json` of a block; input of `isobench block`",
                "everything that one block needs",
            ),
            row(format::tag::<BlockComplete>(), "`complete.json` of a block", "how a block that ran elsewhere ended"),
            row(
                format::tag::<ScriptSeen>(),
                "the artifact `script.seen.json`",
                "what was seen of a benchmark script from outside",
            ),
            row(
                format::tag::<Judgement>(),
                "`derived/judgement.json`; output of `report --format json`",
                "what the evidence says",
            ),
            row(
                format::tag::<DatasetHeader>(),
                "first line of what `isobench import` writes",
                "what the dataset's rows looked like",
            ),
            row(
                format::tag::<CommitTask>(),
                "the lines after it",
                "a task as a dataset of commits gives it, with its whole row",
            ),
            row(
                format::tag::<LegacyHeader>(),
                "first line of what `isobench import` writes of results",
                "what was imported and what couldn't be read; one record follows on each line",
            ),
            row(
                format::tag::<LegacyReport>(),
                "`isobench report --json` of legacy evidence",
                "counts, flags, categories, coverage, what a retry could change",
            ),
            row(
                format::tag::<OldTables>(),
                "`isobench report --json` of published results",
                "published tables beside their recomputation",
            ),
            row(format::tag::<NoiseRecord>(), "lines of `noise.jsonl` in the cache", "the spread that a run showed"),
            row(
                format::tag::<ImageAudit>(),
                "output of `isobench images audit --json`",
                "which images of a dataset's commits a registry has",
            ),
            row(format::tag::<ImageList>(), "output of `isobench images list --json`", "the tags of a repository"),
            row(format::tag::<NoiseReport>(), "output of `isobench noise --json`", "what runs say of noise"),
            row(
                format::tag::<Manifest>(),
                "`manifest.json` of an entry of the cache",
                "every file of an environment, with its digest",
            ),
            row(
                format::tag::<InputRecord>(),
                "`manifest.json` of an input in the cache",
                "every file of a model, tokenizer or dataset, with its hash and its place",
            ),
        ],
    )
}

fn keys() -> String {
    let default = |default: &KeyDefault| match default {
        KeyDefault::Required => "**required**".to_owned(),
        KeyDefault::RequiredHere => "required with its table or kind".to_owned(),
        KeyDefault::Absent => "absent".to_owned(),
        KeyDefault::Value(value) if value.contains([' ', '`']) => cell(value),
        KeyDefault::Value(value) => code(value),
    };
    let row = |key: &isobench_plan::keys::KeyDoc| {
        vec![code(key.path), cell(&key.kind.to_string()), default(&key.default), cell(key.doc)]
    };
    table(&["key", "takes", "default", "meaning"], task_keys().iter().map(row))
}

fn failure_classes() -> String {
    let meanings = meanings("crates/schema/src/failure.rs");
    let yes = |is: bool| if is { "yes" } else { "" }.to_owned();
    let row = |class: &FailureClass| {
        let charge = match class.charge() {
            Charge::Arm => "the arm",
            Charge::Infrastructure => "infrastructure",
        };
        let meaning = meanings.get(class.as_str()).cloned().unwrap_or_default();
        let (breaks, settled) = (yes(class.breaks_validity()), yes(class.is_settled_before_launch()));
        vec![code(class), meaning, charge.to_owned(), breaks, settled]
    };
    let head = ["class", "meaning", "answers for it", "breaks validity", "not tried again"];
    table(&head, FailureClass::ALL.iter().map(row))
}

fn metrics() -> String {
    let row = |metric: &MetricName| {
        let better = match metric.direction() {
            Direction::Higher => "higher",
            Direction::Lower => "lower",
        };
        vec![code(metric), metric.unit().to_owned(), better.to_owned()]
    };
    table(&["metric", "unit", "better is"], MetricName::ALL.iter().map(row))
}

fn checks() -> String {
    let meanings = meanings("crates/schema/src/check.rs");
    let row = |check: &Check| {
        let charge = match check.charge() {
            None => "by class",
            Some(Charge::Arm) => "the arm",
            Some(Charge::Infrastructure) => "infrastructure",
        };
        let again = match check.is_repeated() {
            None => "by class",
            Some(true) => "yes",
            Some(false) => "",
        };
        let class = check.class().map_or_else(|| "the most frequent class of the failed".to_owned(), code);
        let meaning = meanings.get(check.as_str()).cloned().unwrap_or_default();
        vec![code(check), meaning, cell(check.bound()), class, charge.to_owned(), again.to_owned()]
    };
    table(&["check", "what must hold", "bound", "class", "charged to", "block runs again"], Check::ALL.iter().map(row))
}

fn dataset_columns() -> String {
    let names = |names: &[&str]| names.iter().map(code).collect::<Vec<_>>().join(", ");
    table(&["names", "meaning"], COLUMNS.iter().map(|column| vec![names(column.names), cell(column.doc)]))
}

/// Every table that is written by a test: its document, its name, and its text.
fn tables() -> Vec<(&'static str, &'static str, String)> {
    let stages = FailureStage::ALL.iter().map(|value| value.as_str());
    let deviations = DeviationKind::ALL.iter().map(|value| value.as_str());
    let exclusions = ExclusionReason::ALL.iter().map(|value| value.as_str());
    let fields = KeyField::ALL.iter().map(|value| value.as_str());
    let launch_stages = LaunchStage::ALL.iter().map(|value| value.as_str());
    let phases = Phase::ALL.iter().map(|value| value.as_str());
    let forms = RowFormat::ALL.iter().map(|value| value.as_str());
    let shapes = LegacySource::ALL.iter().map(|value| value.as_str());
    let statuses = LegacyStatus::ALL.iter().map(|value| value.as_str());
    let flags = LegacyFlag::ALL.iter().map(|value| value.as_str());
    let ends = RunEnd::ALL.iter().map(|value| value.as_str());
    let validities = Validity::ALL.iter().map(|value| value.as_str());
    let bounds = AuditBound::ALL.iter().map(|value| value.as_str());
    let flows = FlowState::ALL.iter().map(|value| value.as_str());
    let steps = StepState::ALL.iter().map(|value| value.as_str());
    let images = ImageState::ALL.iter().map(|value| value.as_str());
    let listers = ListedBy::ALL.iter().map(|value| value.as_str());
    let effects = CheckEffect::ALL.iter().map(|value| value.as_str());
    let units = CheckUnit::ALL.iter().map(|value| value.as_str());
    let successes = SuccessRule::ALL.iter().map(|value| value.as_str());
    let scores = ScoringRule::ALL.iter().map(|value| value.as_str());
    let bases = NullBasis::ALL.iter().map(|value| value.as_str());
    let origins = SpreadOrigin::ALL.iter().map(|value| value.as_str());
    let arrivals = ArrivalClass::ALL.iter().map(|value| value.as_str());
    let searches = SearchEnd::ALL.iter().map(|value| value.as_str());
    vec![
        ("docs/formats.md", "formats", formats()),
        ("docs/formats.md", "task keys", keys()),
        ("docs/formats.md", "row forms", spellings("form", "crates/schema/src/commit_task.rs", forms)),
        ("docs/formats.md", "dataset columns", dataset_columns()),
        ("docs/formats.md", "legacy shapes", spellings("shape", "crates/schema/src/legacy.rs", shapes)),
        ("docs/formats.md", "legacy statuses", spellings("status", "crates/schema/src/legacy.rs", statuses)),
        ("docs/formats.md", "legacy flags", spellings("flag", "crates/schema/src/legacy.rs", flags)),
        ("docs/formats.md", "failure stages", spellings("stage", "crates/schema/src/failure.rs", stages)),
        ("docs/formats.md", "failure classes", failure_classes()),
        ("docs/formats.md", "deviations", spellings("kind", "crates/schema/src/deviation.rs", deviations)),
        ("docs/formats.md", "exclusions", spellings("reason", "crates/schema/src/plan.rs", exclusions)),
        ("docs/formats.md", "key fields", spellings("field", "crates/schema/src/comparability.rs", fields)),
        ("docs/formats.md", "launch stages", spellings("stage", "crates/schema/src/event.rs", launch_stages)),
        ("docs/formats.md", "run ends", spellings("end", "crates/schema/src/event.rs", ends)),
        ("docs/formats.md", "phases", spellings("phase", "crates/schema/src/record.rs", phases)),
        ("docs/formats.md", "load validity", spellings("validity", "crates/schema/src/load_result.rs", validities)),
        ("docs/formats.md", "audit bounds", spellings("bound", "crates/schema/src/load_checks/audit.rs", bounds)),
        ("docs/formats.md", "flow states", spellings("state", "crates/schema/src/load_checks/steady.rs", flows)),
        ("docs/formats.md", "step states", spellings("state", "crates/schema/src/load_checks/sweep.rs", steps)),
        ("docs/formats.md", "spread origins", spellings("origin", "crates/schema/src/noise.rs", origins)),
        ("docs/formats.md", "arrival classes", spellings("arrival", "crates/schema/src/noise.rs", arrivals)),
        ("docs/formats.md", "image states", spellings("state", "crates/schema/src/images.rs", images)),
        ("docs/formats.md", "listed by", spellings("by", "crates/schema/src/images.rs", listers)),
        ("docs/formats.md", "search ends", spellings("end", "crates/schema/src/load_checks/sweep.rs", searches)),
        ("docs/formats.md", "success rules", spellings("rule", "crates/schema/src/suite.rs", successes)),
        ("docs/formats.md", "scoring rules", spellings("rule", "crates/schema/src/suite.rs", scores)),
        ("docs/formats.md", "null bases", spellings("basis", "crates/schema/src/suite.rs", bases)),
        ("docs/methodology.md", "metrics", metrics()),
        ("docs/methodology.md", "checks", checks()),
        ("docs/formats.md", "check effects", spellings("effect", "crates/schema/src/verdict.rs", effects)),
        ("docs/formats.md", "check units", spellings("unit", "crates/schema/src/check.rs", units)),
    ]
}

#[test]
fn tables_in_the_documents_are_those_of_the_program() {
    let mut documents: BTreeMap<&str, String> = BTreeMap::new();
    for (document, name, text) in tables() {
        let found = documents.entry(document).or_insert_with(|| read(document));
        let begin = format!("<!-- table: {name} -->\n");
        let end = format!("<!-- end of table: {name} -->");
        let (before, rest) = found.split_once(&begin).expect("a document has the mark that a table begins with");
        let (_, after) = rest.split_once(&end).expect("a document has the mark that a table ends with");
        *found = format!("{before}{begin}\n{text}\n{end}{after}");
    }
    for (document, text) in documents {
        hold(document, &text);
    }
}

#[test]
fn every_verdict_and_standing_is_explained() {
    let methodology = read("docs/methodology.md");
    let verdicts = Verdict::ALL.iter().map(|verdict| verdict.as_str());
    let standings = Standing::ALL.iter().map(|standing| standing.as_str());
    let missing: Vec<&str> = verdicts.chain(standings).filter(|name| !methodology.contains(&code(name))).collect();
    assert!(missing.is_empty(), "docs/methodology.md doesn't explain {missing:?}");
}

#[test]
fn the_task_of_the_readme_is_one() {
    let readme = read("README.md");
    let task =
        readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a task in the README");
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::write(folder.path().join("task.toml"), task).expect("the task can be written");
    fs::write(folder.path().join("mine.patch"), "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-1\n+2\n").expect("so can its patch");
    let output = Command::new(env!("CARGO_BIN_EXE_isobench"))
        .args(["plan", "task.toml", "--dry-run", "--json", "--cache", "cache"])
        .current_dir(folder.path())
        .output()
        .expect("the command runs");
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a plan is JSON");
    assert_eq!(plan.get("problems"), Some(&serde_json::json!([])), "{plan:#}");
    // Its repository isn't there, so that nothing can be run.
    assert_eq!(output.status.code(), Some(4), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn links_between_documents_lead_somewhere() {
    let root = documents::root();
    let mut documents = vec![root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("CHANGELOG.md")];
    let mut folders = vec![root.join("docs"), root.join("examples")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder of documents can be listed") {
            let path = entry.expect("an entry can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                documents.push(path);
            }
        }
    }
    let mut dead = BTreeSet::new();
    for document in documents {
        let text = fs::read_to_string(&document).expect("a document is UTF-8");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.contains("://") && !link.starts_with('#')) {
            let file = link.split('#').next().unwrap_or_default();
            let folder = document.parent().expect("a document lies in a folder");
            if !folder.join(file).exists() {
                dead.insert(format!("{}: {link}", document.strip_prefix(&root).unwrap_or(&document).display()));
            }
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere: {dead:#?}");
}
