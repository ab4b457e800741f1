//! The published tables of ISO-Bench, recomputed from its published data, each number beside the printed one.
//!
//! The rules are the earlier system's own, by name: a threshold on the difference of single runs, quadrants, rates with
//! Wilson intervals, the exact test of pairs. They reproduce what was published; they decide nothing here.

mod agents;
mod csv;
mod differences;
mod human;
mod pairs;
mod published;
mod rates;
mod remarks;
mod rows;
mod thresholds;
mod ttft;

use isobench_schema::old_tables::{NotRecomputed, OldTable, OldTables, TableCell};

use agents::Agents;
use published::Published;
pub use rows::ReadTableError;
use rows::{DeltaRow, ResultRow, TtftRow};

/// The name of the file of results.
pub const RESULTS: &str = "per_commit_results.csv";
/// The name of the file of differences to the baseline.
pub const DELTAS: &str = "baseline_deltas.csv";
/// The name of the file of one agent's times to the first token.
pub const TTFT: &str = "claude_code_ttft_3way.csv";
/// The name of the file of published figures.
pub const PUBLISHED: &str = "published_tables.json";
/// The name of the file of tasks.
pub const TASKS: &str = "tasks.jsonl";

/// The files that the tables are computed from. All but the results may be absent, and with them their tables.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableFiles<'a> {
    /// [`RESULTS`].
    pub results: &'a [u8],
    /// [`DELTAS`].
    pub deltas: Option<&'a [u8]>,
    /// [`TTFT`].
    pub ttft: Option<&'a [u8]>,
    /// [`PUBLISHED`].
    pub published: Option<&'a [u8]>,
    /// [`TASKS`].
    pub tasks: Option<&'a [u8]>,
}

/// The data as they are read.
struct Data {
    results: Vec<ResultRow>,
    deltas: Vec<DeltaRow>,
    ttft: Vec<TtftRow>,
    published: Published,
    /// The kind of each task's benchmark, by project and commit.
    kinds: rows::Kinds,
}

/// Recomputes every table that the files allow.
///
/// # Errors
/// Returns an error that names file, line and column of what can't be read.
pub fn recompute(files: TableFiles<'_>) -> Result<OldTables, ReadTableError> {
    let data = Data {
        results: rows::results(files.results)?,
        deltas: files.deltas.map(rows::deltas).transpose()?.unwrap_or_default(),
        ttft: files.ttft.map(rows::ttft).transpose()?.unwrap_or_default(),
        published: files.published.map(published::read).transpose()?.unwrap_or_default(),
        kinds: files.tasks.map(rows::kinds).transpose()?.unwrap_or_default(),
    };
    let agents = Agents::of(&data.results);
    let mut tables = vec![
        rates::quadrants(&agents, &data.published),
        rates::success(&agents, &data.published),
        rates::intervals(&agents, &data.published),
        rates::approaches(&agents, &data.published),
        thresholds::table(&data.results, thresholds::FIVE),
        thresholds::table(&data.results, thresholds::TWO),
        pairs::table_of(&agents, &data.published),
    ];
    tables.extend((!data.deltas.is_empty()).then(|| human::table_of(&data)));
    tables.extend((!data.ttft.is_empty()).then(|| ttft::table_of(&data.ttft)));
    Ok(OldTables {
        results: u64::try_from(data.results.len()).unwrap_or(u64::MAX),
        differences: differences::differences(&tables, &data.results),
        not_recomputed: not_recomputed(&data.published),
        remarks: remarks::remarks(&data),
        tables,
    })
}

/// What it would take to compute the published tables that can't be.
const MISSING: [(&str, &str); 5] = [
    ("audit_multimetric_median_pct_vs_human", "every metric of every run; only TTFT and throughput of some are public"),
    ("audit_trajectory_medians_vllm", "the agents' trajectories"),
    ("audit_coarse_medians_vllm", "the agents' patches and times"),
    ("judge_agreement", "the labels of each annotator and of each repeated run of the judge"),
    ("soft_metric_scores_452_runs", "the score of every run"),
];

fn not_recomputed(published: &Published) -> Vec<NotRecomputed> {
    let missing = |table: &String| {
        let known = MISSING.iter().find(|(name, _)| name == table).map(|(_, missing)| *missing);
        let missing = known.unwrap_or("data that aren't known here").to_owned();
        NotRecomputed { table: table.clone(), missing }
    };
    published.others.iter().map(missing).collect()
}

/// Returns a cell of a number, beside the printed one.
fn cell(here: f64, published: Option<f64>, decimals: u8) -> TableCell {
    TableCell { here: Some(here), published, decimals }
}

/// Returns a cell of a count.
fn count(here: usize, published: Option<f64>) -> TableCell {
    cell(crate::stats::length(here), published, 0)
}

/// Returns a share in percent.
fn percent(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { 100.0 * crate::stats::length(part) / crate::stats::length(whole) }
}

/// Returns a table without rows.
fn table(id: &str, title: &str, about: &str, labels: &[&str], columns: &[&str]) -> OldTable {
    let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
    OldTable {
        id: id.to_owned(),
        title: title.to_owned(),
        about: about.to_owned(),
        labels: texts(labels),
        columns: texts(columns),
        rows: Vec::new(),
    }
}
