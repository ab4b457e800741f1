//! Whole files of each form, good and bad, and what comes back from an export.

use isobench_schema::commit_task::RowFormat;
use isobench_schema::environment::EngineKind;
use isobench_schema::ids::Revision;
use isobench_schema::plan::Problem;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::export::{self, published};
use super::{Table, to_lines};
use crate::dataset::{self, Dataset, Entry, EntryKind, Files, ReadFileError};

const FULL: &str = "015069b01741e9ecb9e604c7fe87fbdfc306ebe5";
const PARENT: &str = "fbefc8a78d22b20eac042c586805c7dcbfc66b1c";

/// Files in memory; a file of rows can be a table.
struct Memory {
    files: Vec<(String, Vec<u8>)>,
    table: Option<Table>,
}

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, ReadFileError> {
        self.files.iter().find(|(name, _)| name == path).map(|(_, bytes)| bytes.clone()).ok_or(ReadFileError::Missing)
    }

    fn list(&self, path: &str) -> Result<Vec<Entry>, ReadFileError> {
        assert_eq!(path, "");
        let entry = |(name, _): &(String, Vec<u8>)| Entry { name: name.clone(), kind: EntryKind::File };
        Ok(self.files.iter().map(entry).collect())
    }

    fn kind(&self, path: &str) -> Option<EntryKind> {
        let found = self.files.iter().any(|(name, _)| name == path);
        if path.is_empty() { Some(EntryKind::Folder) } else { found.then_some(EntryKind::File) }
    }

    fn table(&self, _: &str) -> Result<Table, ReadFileError> {
        self.table.clone().ok_or(ReadFileError::Missing)
    }
}

fn read_files(files: &[(&str, &[u8])], path: &str) -> Dataset {
    let files = files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.to_vec())).collect();
    dataset::read(&Memory { files, table: None }, "/data", path, &[]).unwrap()
}

fn read(name: &str, text: &str) -> Dataset {
    read_files(&[(name, text.as_bytes())], name)
}

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| row.to_string() + "\n").collect()
}

fn problems(dataset: &Dataset) -> Vec<String> {
    let place = |problem: &Problem| {
        let line = problem.line.map(|line| format!("{line}: ")).unwrap_or_default();
        let column = problem.column.as_ref().map(|column| format!("[{column}] ")).unwrap_or_default();
        format!("{line}{column}{}", problem.message)
    };
    dataset.problems.iter().map(place).collect()
}

/// Checks what becomes of one row that is JSON Lines of its own.
fn refused(row: &Value, expected: &str) {
    let dataset = read("rows.jsonl", &lines(&[row.clone(), json!({"commit": FULL, "project": "vllm"})]));
    assert_eq!(problems(&dataset), [format!("1: {expected}")], "{row}");
    assert_eq!(dataset.commit_tasks.len(), 1, "the rest goes on");
    assert_eq!(dataset.rows, 2);
}

#[test]
fn a_stored_task_that_no_import_wrote_is_a_problem() {
    let row = json!({ "commit": FULL, "parent_commit": PARENT, "project": "vllm", "agent_name": "x" });
    let dataset = read("rows.jsonl", &lines(&[row]));
    let text = to_lines(&dataset.header, &dataset.commit_tasks).unwrap();
    assert_eq!(problems(&read("tasks.jsonl", &text)), Vec::<String>::new());
    let (header, stored) = text.split_once('\n').unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut task: Value = serde_json::from_str(stored).unwrap();
        change(&mut task);
        problems(&read("tasks.jsonl", &format!("{header}\n{task}\n")))
    };
    let patch = |bytes: &str| {
        let patch = isobench_schema::environment::Patch::new("x.patch", bytes.as_bytes().to_vec());
        serde_json::to_value(patch).unwrap()
    };
    assert_eq!(changed(&|task| task["agents"][0]["patch"] = patch("one")), Vec::<String>::new());
    let forged = |task: &mut Value| {
        task["agents"][0]["patch"] = patch("one");
        task["agents"][0]["patch"]["bytes"] = patch("two")["bytes"].clone();
    };
    for (change, expected) in [
        (&forged as &dyn Fn(&mut Value), "2: [agents] the patch of agent `x` has the digest"),
        (
            &|task| task["repository"] = json!("ext::sh -c x"),
            "2: [repository] the repository `ext::sh -c x` names a remote helper",
        ),
        (
            &|task| task["repository"] = json!("--upload-pack=x"),
            "2: [repository] the repository `--upload-pack=x` starts",
        ),
        (&|task| task["commit"] = json!(PARENT), "2: [commit] the commit fbefc8a7"),
    ] {
        let found = changed(change);
        assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
    }
}

#[test]
fn a_list_of_tasks_is_read_whole() {
    let row = json!({
        "project": "vllm", "commit_short": "015069b0", "commit": FULL, "parent": PARENT,
        "subject": "Faster (#1)", "bottleneck_family": "x", "model": "a/b", "benchmark_kind": "serving",
        "server_command": null, "perf_command": "python benchmarks/benchmark_serving.py --model a/b",
    });
    let dataset = read("tasks.jsonl", &lines(std::slice::from_ref(&row)));
    assert_eq!(problems(&dataset), [""; 0]);
    let task = &dataset.commit_tasks[0];
    assert_eq!(task.id.as_str(), "vllm-015069b0");
    assert_eq!(task.engine, EngineKind::Vllm);
    assert_eq!(task.repository, "https://github.com/vllm-project/vllm.git");
    assert_eq!(task.commit.as_str(), FULL);
    assert_eq!(task.parent.as_ref().unwrap().as_str(), PARENT);
    assert_eq!(task.subject.as_deref(), Some("Faster (#1)"));
    assert_eq!(task.model.as_deref(), Some("a/b"));
    assert_eq!(task.benchmark_kind.as_deref(), Some("serving"));
    assert_eq!(task.command.as_deref(), row["perf_command"].as_str());
    assert_eq!(task.server_command, None);
    assert_eq!(task.origin.format, RowFormat::TaskList);
    assert_eq!(Value::Object(task.columns.clone()), row);
}

#[test]
fn an_extraction_record_is_a_file_of_its_own_or_one_of_a_folder() {
    let record = |commit: &str| {
        json!({
            "commit_hash": commit, "pr_url": "https://github.com/sgl-project/sglang/pull/6994", "has_performance": true,
            "models": ["N/A", "m/l"], "perf_command": "python3 -m sglang.bench_serving", "files_changed": ["a.py", "b.py"],
            "commit_subject": "[Perf] x", "stats": {"num_files": 2}, "repo_path": "/path/to/repos/sglang",
        })
        .to_string()
    };
    let other = "f".repeat(40);
    let (first, second) = (record(FULL), record(&other));
    let dataset = read_files(&[("b.json", second.as_bytes()), ("a.json", first.as_bytes()), ("x.md", b"x")], "");
    assert_eq!(problems(&dataset), [""; 0]);
    let ids: Vec<&str> = dataset.commit_tasks.iter().map(|task| task.id.as_str()).collect();
    assert_eq!(ids, ["sglang-015069b0", "sglang-ffffffff"]);
    let task = &dataset.commit_tasks[0];
    assert_eq!((task.model.as_deref(), task.origin.format), (Some("m/l"), RowFormat::Extraction));
    assert_eq!(task.files_changed, ["a.py", "b.py"]);
    assert_eq!(task.parent, None);
    assert_eq!(task.repository, "https://github.com/sgl-project/sglang.git");
}

#[test]
fn a_mapping_gives_objects_parents_or_nothing_under_its_keys() {
    let text = json!({
        FULL: {"parent_commit": PARENT, "model": "m", "perf_command": "vllm bench serve"},
        "aaaaaaa1": PARENT,
        "aaaaaaa2": [PARENT, "b".repeat(40)],
        "aaaaaaa3": null,
        "not-a-commit": PARENT,
        "aaaaaaa4": 5,
        "aaaaaaa5": {"commit": "bbbbbbbb"},
    })
    .to_string();
    let dataset = read("vllm_mapping.json", &text);
    let found: Vec<(&str, Option<&str>)> = dataset
        .commit_tasks
        .iter()
        .map(|task| (task.id.as_str(), task.parent.as_ref().map(Revision::as_str)))
        .collect();
    let expected = [
        ("vllm-015069b0", Some(PARENT)),
        ("vllm-aaaaaaa1", Some(PARENT)),
        ("vllm-aaaaaaa2", Some(PARENT)),
        ("vllm-aaaaaaa3", None),
    ];
    assert_eq!(found, expected);
    assert_eq!(
        problems(&dataset),
        [
            "5: [aaaaaaa4] the value of `aaaaaaa4` is a number, and an object or the parent's id is meant",
            "6: [commit] the column `commit` is `bbbbbbbb`, but `key` is `aaaaaaa5`",
            "7: [not-a-commit] the key `not-a-commit` of the mapping is no commit: 7 to 40 hexadecimal digits",
        ]
    );
    assert_eq!(dataset.rows, 7);
}

#[test]
fn a_plan_file_names_the_repository_for_all_its_items() {
    let text = json!({
        "repo": "https://github.com/sgl-project/sglang.git", "task_id": "sglang_core",
        "items": [
            {"item_id": "sglang_core-0000", "human": FULL, "pre": "", "pre_parent_index": 1},
            {"item_id": "sglang_core-0001", "human": "a".repeat(40), "pre": PARENT, "pre_parent_index": 1},
            {"item_id": "sglang_core-0002", "human": "b".repeat(40), "pre": null, "pre_parent_index": 2},
            7,
        ],
    });
    let dataset = read("plan.json", &text.to_string());
    let found: Vec<(&str, bool)> =
        dataset.commit_tasks.iter().map(|task| (task.id.as_str(), task.parent.is_some())).collect();
    assert_eq!(found, [("sglang-015069b0", false), ("sglang-aaaaaaaa", true)]);
    assert_eq!(
        problems(&dataset),
        [
            "3: [pre_parent_index] the column `pre_parent_index` is 2 and `pre` is empty: only a commit's first parent is \
             taken unasked; give the revision in `pre`",
            "4: the row is a number, and rows are objects",
        ]
    );
}

#[test]
fn results_of_several_agents_are_one_task_with_all_rows() {
    let row = |agent: &str, model: &str, ttft: f64| {
        json!({"commit_short": "015069b0", "repo": "vllm-project/vllm", "agent_name": agent, "agent_model": model,
               "agent_ttft_mean": ttft})
    };
    let rows =
        [row("claude code", "m1", 1.0), row("trae", "gpt", 2.0), row("trae", "sonnet", 3.0), row("trae", "gpt", 4.0)];
    let dataset = read("rows.jsonl", &lines(&rows));
    assert_eq!(problems(&dataset), [""; 0]);
    let [task] = &dataset.commit_tasks[..] else { panic!("one task") };
    let agents: Vec<&str> = task.agents.iter().map(|agent| agent.name.as_str()).collect();
    assert_eq!(agents, ["claude-code", "trae", "trae-sonnet"]);
    assert_eq!(task.further_rows.len(), 3);
    assert_eq!(published(&dataset.header, &dataset.commit_tasks).rows.len(), 4);
    assert_eq!(task.command, None);
}

#[test]
fn a_shortened_commit_is_looked_up_with_its_engine() {
    let dataset =
        read("rows.jsonl", "{\"commit_short\": \"015069b0\", \"agent_name\": \"a\", \"agent_ttft_mean\": 13.5}\n");
    assert_eq!(problems(&dataset), [""; 0]);
    let task = &dataset.commit_tasks[0];
    assert_eq!((task.engine, task.commit.as_str(), task.id.as_str()), (EngineKind::Vllm, FULL, "vllm-015069b0"));
}

#[test]
fn a_further_row_that_contradicts_the_first_is_kept_and_said() {
    let row = |agent: &str, command: &str| json!({"commit": FULL, "agent_name": agent, "perf_command": command});
    let dataset = read("rows.jsonl", &lines(&[row("a", "vllm bench serve"), row("b", "vllm bench serve --x")]));
    let expected = "2: [perf_command] this row's `perf_command` differs from that of `rows.jsonl`, row 1, which is the one that is planned";
    assert_eq!(problems(&dataset), [expected]);
    assert_eq!(dataset.commit_tasks[0].command.as_deref(), Some("vllm bench serve"));
    assert_eq!(published(&dataset.header, &dataset.commit_tasks).rows.len(), 2);
}

#[test]
fn records_of_runs_are_one_task() {
    let record = |commit: &str| {
        json!({"human_commit": "015069b0", "human_commit_full": commit, "parent_commit": PARENT, "model": "m",
               "perf_command": "python benchmarks/benchmark_throughput.py", "status": "success", "metrics": {"x": 1.5},
               "runner": "native"})
        .to_string()
    };
    let record = record(FULL);
    let dataset = read_files(&[("a_human.json", record.as_bytes()), ("a_baseline.json", record.as_bytes())], "");
    assert_eq!(problems(&dataset), [""; 0]);
    assert_eq!(dataset.commit_tasks.len(), 1);
    assert_eq!(dataset.commit_tasks[0].origin.format, RowFormat::Result);
    assert_eq!(dataset.commit_tasks[0].further_rows.len(), 1);
}

#[test]
fn a_bad_row_is_a_problem_with_its_column_and_the_rest_goes_on() {
    let digits = "and a commit has 7 to 40 hexadecimal digits";
    for (row, expected) in [
        (json!({"commit_hash": "xyz", "project": "vllm"}), format!("[commit_hash] the column `commit_hash` is `xyz`, {digits}")),
        (
            json!({"commit": 12_345_678, "project": "vllm"}),
            "[commit] the column `commit` is a number, and a commit is a text of 7 to 40 hexadecimal digits".to_owned(),
        ),
        (
            json!({"commit": "N/A", "project": "vllm"}),
            "[commit] the column `commit` is empty, and no other names the commit".to_owned(),
        ),
        (
            json!({"commit": "a".repeat(40), "commit_short": "bbbbbbbb", "project": "vllm"}),
            format!("[commit_short] the column `commit_short` is `bbbbbbbb`, but `commit` is `{}`", "a".repeat(40)),
        ),
        (
            json!({"commit": "aaaaaaaa", "parent": "HEAD~1", "project": "vllm"}),
            format!("[parent] the column `parent` is `head~1`, {digits}"),
        ),
        (
            json!({"commit": "aaaaaaaa"}),
            "nothing names the engine that the commit belongs to; give `project` or `repo`: expected `vllm` or `sglang`".to_owned(),
        ),
        (
            json!({"commit": "aaaaaaaa", "repo": "pytorch/pytorch"}),
            "[repo] the column `repo` is `pytorch/pytorch`, which names no engine that is known; expected `vllm` or `sglang`".to_owned(),
        ),
        (
            json!({"commit": "aaaaaaaa", "project": "vllm", "pr_url": "https://github.com/sgl-project/sglang/pull/1"}),
            "[pr_url] the column `pr_url` names sglang, but `project` names vllm".to_owned(),
        ),
        (
            json!({"commit": "aaaaaaaa", "project": "vllm", "perf_command": "a", "command": "b"}),
            "[command] the columns `perf_command` and `command` differ; leave one of them".to_owned(),
        ),
        (
            json!({"commit": "aaaaaaaa", "project": "vllm", "perf_command": ["a"]}),
            "[perf_command] the column `perf_command` is a list where a text is meant".to_owned(),
        ),
        (
            json!({"commit": "aaaaaaaa", "project": "vllm", "files_changed": "a.py"}),
            "[files_changed] the column `files_changed` is a text, and a list of paths is meant".to_owned(),
        ),
        (
            json!({"sha1sum": "aaaaaaaa", "project": "vllm"}),
            "no column names a commit: found `project`, `sha1sum`; a commit stands in `commit_hash` or `commit`".to_owned(),
        ),
        (
            json!({"commit": "aaaaaaaa", "project": "vllm", "raw": "x".repeat(16 * 1024 * 1024 + 1)}),
            "[raw] the column `raw` holds 16777217 bytes of text, more than 16777216".to_owned(),
        ),
    ] {
        refused(&row, &expected);
    }
}

#[test]
fn a_commit_that_stands_twice_and_two_that_begin_alike_are_problems() {
    let row = |commit: String| json!({"commit": commit, "project": "vllm"});
    let (first, other) = (row("a".repeat(40)), row("aaaaaaaa".to_owned() + &"b".repeat(32)));
    let dataset = read("rows.jsonl", &lines(&[first.clone(), first, other]));
    let (one, two) = ("a".repeat(40), "aaaaaaaa".to_owned() + &"b".repeat(32));
    assert_eq!(
        problems(&dataset),
        [
            format!("2: the commit {one} is named already by `rows.jsonl`, row 1; leave one of the two rows"),
            format!(
                "3: the task `vllm-aaaaaaaa` is taken already by the commit {one} of `rows.jsonl`, row 1: the first 8 digits of {two} are the same"
            ),
        ]
    );
}

#[test]
fn marks_line_ends_and_other_encodings_are_dealt_with() {
    let row = json!({"commit": FULL, "project": "vllm"}).to_string();
    let dataset =
        read("rows.jsonl", &format!("\u{feff}{row}\r\n\r\n{{\"commit\":\"aaaaaaaa\",\"project\":\"vllm\"}}\r\n"));
    assert_eq!(problems(&dataset), [""; 0]);
    assert_eq!(dataset.commit_tasks.len(), 2);
    let wide: Vec<u8> = row.encode_utf16().flat_map(u16::to_le_bytes).collect();
    for (name, bytes, expected) in [
        ("a.jsonl", wide.as_slice(), "the file is UTF-16 or UTF-32; save it as UTF-8"),
        ("a.json", wide.as_slice(), "the file is UTF-16 or UTF-32; save it as UTF-8"),
        ("a.json", b"[1, 2", "this is not JSON: EOF while parsing a list at line 1, column 5"),
        ("a.json", b"3", "the file holds a number, and rows are objects"),
        ("a.json", b"{\"commit\":\"\xff\"}", "this is not JSON: invalid unicode code point at line 1, column 12"),
        ("a.jsonl", b"{\"commit\":1,\"commit\":2}", "1: this is not JSON: the key `commit` stands twice at column 23"),
    ] {
        assert_eq!(problems(&read_files(&[(name, bytes)], name)), [expected], "{name}");
    }
}

#[test]
fn tasks_of_our_own_stand_beside_rows() {
    let own = json!({"id": "mine", "repository": "../x", "baseline": "main", "model": 5});
    let dataset = read("rows.jsonl", &lines(&[own, json!({"commit": FULL, "project": "vllm"})]));
    assert_eq!(dataset.commit_tasks.len(), 1);
    assert!(problems(&dataset).iter().all(|problem| problem.starts_with("1: ")), "{:?}", problems(&dataset));
    assert_eq!(dataset.rows, 2);
}

#[test]
fn a_table_keeps_its_columns_and_what_its_file_says() {
    let row: Map<String, Value> =
        [("commit_hash", json!(FULL)), ("repo", json!("vllm-project/vllm")), ("x", Value::Null)]
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
    let columns = ["x", "repo", "commit_hash"].map(str::to_owned).to_vec();
    let parquet = Some(isobench_schema::commit_task::ParquetShape {
        schema: "message schema {}".to_owned(),
        ..Default::default()
    });
    let table = Table { columns: columns.clone(), rows: vec![row], parquet };
    let files = Memory { files: vec![("t.parquet".to_owned(), Vec::new())], table: Some(table.clone()) };
    let dataset = dataset::read(&files, "/data", "t.parquet", &[]).unwrap();
    let imported = to_lines(&dataset.header, &dataset.commit_tasks).unwrap();
    let again = read("imported.jsonl", &imported);
    assert_eq!((&again.header, &again.commit_tasks), (&dataset.header, &dataset.commit_tasks));
    let rows = published(&again.header, &again.commit_tasks);
    assert_eq!((rows.columns, rows.rows), (columns, table.rows));
    assert_eq!(again.header.parquet, table.parquet);
}

#[test]
fn a_row_of_another_form_is_filled_with_published_columns_and_keeps_its_own() {
    let row = json!({"project": "vllm", "commit": FULL, "parent": PARENT, "subject": "s", "model": "m",
                     "benchmark_kind": "serving", "server_command": null, "perf_command": "vllm bench serve", "mine": [1, {"a": null}]});
    let dataset = read("tasks.jsonl", &lines(std::slice::from_ref(&row)));
    let rows = published(&dataset.header, &dataset.commit_tasks);
    let mut expected = row;
    let added = json!({"commit_hash": FULL, "commit_short": "015069b0", "commit_subject": "s", "repo": "vllm-project/vllm",
                       "models": ["m"], "parent_commit": PARENT, "benchmark_mode": "serving"});
    expected.as_object_mut().unwrap().extend(added.as_object().unwrap().clone());
    assert_eq!(Value::Object(rows.rows[0].clone()), expected);
    let order: Vec<&str> = rows.columns.iter().map(String::as_str).collect();
    assert_eq!(order[..3], ["benchmark_kind", "commit", "mine"]);
    assert_eq!(
        order[9..],
        ["commit_hash", "commit_short", "commit_subject", "repo", "models", "parent_commit", "benchmark_mode"]
    );
    let again = read("again.jsonl", &export::to_lines(&rows).unwrap());
    assert_eq!(problems(&again), [""; 0]);
    assert_eq!(published(&again.header, &again.commit_tasks).rows, rows.rows, "a second export adds nothing");
}

/// Returns a JSON value as a column may hold it.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn published_rows_come_back_as_they_were(
        rows in prop::collection::btree_map("[0-9a-f]{8}", prop::collection::btree_map("x_[a-zé]{1,8}", value(), 0..6), 1..6),
    ) {
        let rows: Vec<Value> = rows
            .into_iter()
            .map(|(commit, unknown)| {
                let mut row: Map<String, Value> = unknown.into_iter().collect();
                row.insert("commit_hash".to_owned(), json!(commit + &"0".repeat(32)));
                row.insert("repo".to_owned(), json!("vllm-project/vllm"));
                Value::Object(row)
            })
            .collect();
        let dataset = read("rows.jsonl", &lines(&rows));
        prop_assert_eq!(problems(&dataset), Vec::<String>::new());
        let imported = read("imported.jsonl", &to_lines(&dataset.header, &dataset.commit_tasks).unwrap());
        prop_assert_eq!(problems(&imported), Vec::<String>::new());
        let text = export::to_lines(&published(&imported.header, &imported.commit_tasks)).unwrap();
        let exported: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(&exported, &rows);
        let again = read("rows.jsonl", &text);
        prop_assert_eq!(again.commit_tasks, dataset.commit_tasks);
    }

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), name in "a\\.(jsonl|json)") {
        let dataset = read_files(&[(&name, &bytes)], &name);
        prop_assert!(dataset.commit_tasks.is_empty());
    }

    #[test]
    fn no_row_makes_the_reader_panic(row in prop::collection::btree_map(
        prop::sample::select(super::columns::COLUMNS.iter().flat_map(|column| column.names.iter().copied()).collect::<Vec<_>>()),
        value(),
        0..8,
    )) {
        let row: Map<String, Value> = row.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let dataset = read("a.jsonl", &lines(&[Value::Object(row)]));
        prop_assert_eq!(dataset.commit_tasks.len() + usize::from(!dataset.problems.is_empty()), 1);
    }
}
