//! The rows of the published data, read into types.

use std::collections::BTreeMap;

use isobench_schema::legacy::{HardClass, Quadrant};
use serde::Deserialize;

use super::csv::{Csv, CsvRow};
use super::{DELTAS, RESULTS, TASKS, TTFT};

/// Why the published data can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadTableError {
    /// There is nothing in a file.
    #[error("`{file}` is empty")]
    Empty {
        /// The file.
        file: &'static str,
    },
    /// A file isn't UTF-8.
    #[error("`{file}` is not UTF-8")]
    NotUtf8 {
        /// The file.
        file: &'static str,
        /// Where.
        #[source]
        source: std::str::Utf8Error,
    },
    /// A column is missing.
    #[error("`{file}` has no column `{column}`")]
    NoColumn {
        /// The file.
        file: &'static str,
        /// The column.
        column: &'static str,
    },
    /// A row has too few or too many cells.
    #[error("line {line} of `{file}` has {found} cells, where {expected} were expected")]
    RowLength {
        /// The file.
        file: &'static str,
        /// The line, from 1.
        line: u64,
        /// How many it has.
        found: usize,
        /// How many the head has.
        expected: usize,
    },
    /// A cell holds something else.
    #[error("line {line} of `{file}` has `{found}` in the column `{column}`, where {expected} was expected")]
    Cell {
        /// The file.
        file: &'static str,
        /// The line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// What it holds.
        found: String,
        /// What it should hold.
        expected: &'static str,
    },
    /// A file of JSON isn't of the expected shape.
    #[error("`{file}` can't be read")]
    Json {
        /// The file.
        file: &'static str,
        /// Where, and why.
        #[source]
        source: serde_json::Error,
    },
}

/// What a result is judged by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Primary {
    /// The mean time to the first token.
    Ttft,
    /// A throughput.
    Throughput,
    /// Nothing: the agent's side failed.
    AgentFailed,
    /// Nothing: there are no numbers.
    None,
}

/// How the published differences of a row are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PublishedUnit {
    /// As a difference in percent.
    Difference,
    /// As a hundred times the ratio.
    Ratio,
}

/// The result of one agent at one commit.
#[derive(Debug, Clone)]
pub(super) struct ResultRow {
    pub(super) project: String,
    pub(super) commit: String,
    pub(super) agent: String,
    pub(super) in_published_table: InTable,
    pub(super) class: HardClass,
    pub(super) primary: Primary,
    pub(super) unit: PublishedUnit,
    /// Positive where the agent is better.
    pub(super) agent_vs_human_pct: Option<f64>,
    pub(super) target: String,
    pub(super) approach: String,
    pub(super) quadrant: Quadrant,
}

/// Whether a result counts in the published tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InTable {
    Yes,
    No,
}

/// The differences of one metric of one commit to its baseline, in percent, positive where it is better.
#[derive(Debug, Clone)]
pub(super) struct DeltaRow {
    pub(super) project: String,
    pub(super) commit: String,
    pub(super) metric: String,
    pub(super) human_pct: Option<f64>,
    pub(super) agents_pct: Vec<(String, Option<f64>)>,
}

/// Mean times to the first token of one commit.
#[derive(Debug, Clone)]
pub(super) struct TtftRow {
    pub(super) commit: String,
    pub(super) baseline_ms: Option<f64>,
    pub(super) human_ms: Option<f64>,
    pub(super) agent_ms: Option<f64>,
    pub(super) human_vs_baseline_pct: Option<f64>,
    pub(super) agent_vs_baseline_pct: Option<f64>,
    pub(super) agent_vs_human_pct: Option<f64>,
}

/// The kind of each task's benchmark, by project and the first digits of the commit.
pub(super) type Kinds = BTreeMap<(String, String), String>;

pub(super) fn results(bytes: &[u8]) -> Result<Vec<ResultRow>, ReadTableError> {
    let columns = [
        "project",
        "commit",
        "agent",
        "in_published_table",
        "hard_classification",
        "primary_metric",
        "published_unit",
        "agent_vs_human_pct",
        "bottleneck_target",
        "approach",
        "quadrant",
    ];
    Csv::read(bytes, RESULTS, &columns)?.rows().map(|row| result(&row)).collect()
}

fn result(row: &CsvRow<'_>) -> Result<ResultRow, ReadTableError> {
    let text = |column: &str| row.text(column).to_owned();
    let primary = match row.text("primary_metric") {
        "ttft" => Primary::Ttft,
        "throughput" => Primary::Throughput,
        "agent_failed" => Primary::AgentFailed,
        "none" => Primary::None,
        _ => return Err(row.wrong("primary_metric", "`ttft`, `throughput`, `agent_failed` or `none`")),
    };
    let in_published_table = match row.text("in_published_table") {
        "True" => InTable::Yes,
        "False" => InTable::No,
        _ => return Err(row.wrong("in_published_table", "`True` or `False`")),
    };
    let unit = match row.text("published_unit") {
        "pct_diff" => PublishedUnit::Difference,
        "ratio_x100" => PublishedUnit::Ratio,
        _ => return Err(row.wrong("published_unit", "`pct_diff` or `ratio_x100`")),
    };
    let class = HardClass::parse(row.text("hard_classification"))
        .ok_or_else(|| row.wrong("hard_classification", "`beats`, `similar`, `worse` or `NO_DATA`"))?;
    let quadrant =
        Quadrant::parse(row.text("quadrant")).ok_or_else(|| row.wrong("quadrant", "`Q1`, `Q2`, `Q3` or `Q4`"))?;
    Ok(ResultRow {
        project: text("project"),
        commit: text("commit"),
        agent: text("agent"),
        in_published_table,
        class,
        primary,
        unit,
        agent_vs_human_pct: row.number("agent_vs_human_pct")?,
        target: text("bottleneck_target"),
        approach: text("approach"),
        quadrant,
    })
}

pub(super) fn deltas(bytes: &[u8]) -> Result<Vec<DeltaRow>, ReadTableError> {
    const END: &str = "_vs_baseline_pct";
    let csv = Csv::read(bytes, DELTAS, &["project", "commit", "metric", "human_vs_baseline_pct"])?;
    let agents: Vec<String> = csv.columns_ending(END).into_iter().filter(|name| name != "human").collect();
    let read = |row: CsvRow<'_>| {
        let of = |agent: &String| Ok((agent.clone(), row.number(&format!("{agent}{END}"))?));
        Ok(DeltaRow {
            project: row.text("project").to_owned(),
            commit: row.text("commit").to_owned(),
            metric: row.text("metric").to_owned(),
            human_pct: row.number("human_vs_baseline_pct")?,
            agents_pct: agents.iter().map(of).collect::<Result<_, ReadTableError>>()?,
        })
    };
    csv.rows().map(read).collect()
}

pub(super) fn ttft(bytes: &[u8]) -> Result<Vec<TtftRow>, ReadTableError> {
    let columns = [
        "commit",
        "baseline_ttft_ms",
        "human_ttft_ms",
        "agent_ttft_ms",
        "human_vs_baseline_pct",
        "agent_vs_baseline_pct",
        "agent_vs_human_pct",
    ];
    let csv = Csv::read(bytes, TTFT, &columns)?;
    let read = |row: CsvRow<'_>| {
        Ok(TtftRow {
            commit: row.text("commit").to_owned(),
            baseline_ms: row.number("baseline_ttft_ms")?,
            human_ms: row.number("human_ttft_ms")?,
            agent_ms: row.number("agent_ttft_ms")?,
            human_vs_baseline_pct: row.number("human_vs_baseline_pct")?,
            agent_vs_baseline_pct: row.number("agent_vs_baseline_pct")?,
            agent_vs_human_pct: row.number("agent_vs_human_pct")?,
        })
    };
    csv.rows().map(read).collect()
}

/// What is read of a task.
#[derive(Deserialize)]
struct TaskLine {
    project: String,
    commit_short: String,
    benchmark_kind: Option<String>,
}

pub(super) fn kinds(bytes: &[u8]) -> Result<Kinds, ReadTableError> {
    let mut kinds = Kinds::new();
    for line in bytes.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let task: TaskLine =
            serde_json::from_slice(line).map_err(|source| ReadTableError::Json { file: TASKS, source })?;
        kinds.extend(task.benchmark_kind.map(|kind| ((task.project, task.commit_short), kind)));
    }
    Ok(kinds)
}
