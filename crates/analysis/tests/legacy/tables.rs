//! The published tables come out of the published data, but for the differences that are listed.

use isobench_analysis::legacy::tables::{DELTAS, PUBLISHED, RESULTS, TTFT, TableFiles, recompute};
use isobench_schema::old_tables::{OldTable, OldTables};

use crate::bytes;

fn tables() -> OldTables {
    let (results, deltas, ttft, published) = (bytes(RESULTS), bytes(DELTAS), bytes(TTFT), bytes(PUBLISHED));
    let tasks = bytes("../tasks.jsonl");
    let files = TableFiles {
        results: &results,
        deltas: Some(&deltas),
        ttft: Some(&ttft),
        published: Some(&published),
        tasks: Some(&tasks),
    };
    recompute(files).unwrap()
}

fn table<'t>(tables: &'t OldTables, id: &str) -> &'t OldTable {
    tables.tables.iter().find(|table| table.id == id).unwrap()
}

/// Checks how many figures of a table were published, and that all but the listed ones come out.
fn check(id: &str, published: usize, differ: &[(&str, &str, &str, &str)]) {
    let tables = tables();
    let (all, equal) = table(&tables, id).agreement();
    assert_eq!((all, all - equal), (published, differ.len()), "{id}");
    let listed = tables.differences.iter().filter(|difference| difference.table == id);
    let found: Vec<(String, &str, &str, &str)> = listed
        .map(|found| {
            let (here, published) = (found.here.as_deref().unwrap(), found.published.as_deref().unwrap());
            (found.row.join(" "), found.column.as_str(), here, published)
        })
        .collect();
    let found: Vec<(&str, &str, &str, &str)> =
        found.iter().map(|(row, column, here, published)| (row.as_str(), *column, *here, *published)).collect();
    assert_eq!(found, differ, "{id}");
}

#[test]
fn quadrants_are_the_published_ones_but_for_one_agents() {
    let agent = "vllm openhands_sonnet45";
    check("quadrants", 48, &[(agent, "Q1", "22", "17"), (agent, "Q2", "10", "15")]);
}

#[test]
fn rates_are_the_published_ones_but_for_that_agents_and_one_gap_of_rounded_rates() {
    // 12 true, 8 hard, 4 gaps, 8 targets, 12 same-only
    check(
        "success-rates",
        44,
        &[("vllm claude_code", "gap", "10.3", "10.2"), ("vllm openhands_sonnet45", "true", "56.4", "43.6")],
    );
}

#[test]
fn intervals_are_the_published_ones() {
    check("wilson", 24, &[]);
}

#[test]
fn approaches_are_the_published_ones() {
    check("approaches", 40, &[]);
}

#[test]
fn pairs_are_the_published_ones() {
    check("mcnemar", 90, &[]);
}

#[test]
fn the_human_gain_is_the_published_one() {
    check("human-vs-baseline", 12, &[]);
}

#[test]
fn the_three_way_differences_are_those_of_their_times() {
    check("ttft-three-way", 62, &[]);
}

#[test]
fn classes_by_five_percent_are_the_published_ones_but_for_one_at_the_edge() {
    let agent = "vllm claude_code";
    let differ = [(agent, "beats", "7", "8"), (agent, "similar", "22", "21")];
    check("threshold:5%", 48, &differ);
    let tables = tables();
    let reason = &tables.differences.iter().find(|difference| difference.table == "threshold:5%").unwrap().reason;
    assert!(reason.contains("`6ce01f30`") && reason.contains("the threshold itself"), "{reason}");
}

#[test]
fn classes_by_two_percent_are_counted_from_the_numbers() {
    check("threshold:2%", 0, &[]);
    let tables = tables();
    let rows = &table(&tables, "threshold:2%").rows;
    let sum = |column: usize| rows.iter().filter_map(|row| row.cells[column].here).sum::<f64>().to_string();
    assert_eq!([sum(0), sum(1), sum(2), sum(3)], ["126", "33", "217", "188"]);
}

#[test]
fn every_difference_has_a_reason_from_the_data() {
    let tables = tables();
    assert_eq!(tables.differences.len(), 6);
    for difference in &tables.differences {
        assert_ne!(difference.reason, "the data don't say", "{difference:?}");
    }
    let quadrant = &tables.differences[0].reason;
    assert!(quadrant.contains("41.0 to 70.7 %, is that of 22 of 39"), "{quadrant}");
}

#[test]
fn what_is_not_public_is_named() {
    let tables = tables();
    let names: Vec<&str> = tables.not_recomputed.iter().map(|table| table.table.as_str()).collect();
    let expected = [
        "audit_coarse_medians_vllm",
        "audit_multimetric_median_pct_vs_human",
        "audit_trajectory_medians_vllm",
        "judge_agreement",
        "soft_metric_scores_452_runs",
    ];
    assert_eq!(names, expected);
    assert!(tables.not_recomputed.iter().all(|table| !table.missing.contains("aren't known")));
}

#[test]
fn the_remarks_say_what_the_tables_hide() {
    let text = tables().remarks.join("\n");
    for part in [
        "17 of 28 in vllm (61 %), 4 of them as `beats`, and at 12 of 14 in sglang (86 %), 8 of them as `beats`",
        "17 of 28 in vllm and 12 of 14 in sglang",
        "36 rows, of codex, trae_gpt5, trae_sonnet",
        "multiples of 51.2 tokens/s",
        "34 of 34 differences",
    ] {
        assert!(text.contains(part), "{part} isn't in\n{text}");
    }
}

#[test]
fn results_alone_give_the_tables_without_published_figures() {
    let results = bytes(RESULTS);
    let found = recompute(TableFiles { results: &results, ..TableFiles::default() }).unwrap();
    assert_eq!((found.results, found.tables.len()), (564, 7));
    assert!(found.differences.iter().all(|difference| difference.table == "threshold:5%"));
    assert!(found.not_recomputed.is_empty());
}

#[test]
fn damage_is_named_by_file_line_and_column() {
    let results = String::from_utf8(bytes(RESULTS)).unwrap();
    let cut: Vec<&str> = results.lines().take(3).collect();
    let three = cut.join("\n");
    for (text, expected) in [
        (String::new(), "`per_commit_results.csv` is empty"),
        ("project,commit\nvllm,x\n".to_owned(), "`per_commit_results.csv` has no column `agent`"),
        (format!("{three}\nvllm,x\n"), "line 4 of `per_commit_results.csv` has 2 cells, where 14 were expected"),
        (
            three.replacen(",worse,", ",bad,", 1),
            "line 2 of `per_commit_results.csv` has `bad` in the column `hard_classification`, where `beats`, `similar`, \
             `worse` or `NO_DATA` was expected",
        ),
        (
            results.replacen("-73.13,same_target", "NaN,same_target", 1),
            "line 4 of `per_commit_results.csv` has `NaN` in the column `agent_vs_human_pct`, where a finite number was expected",
        ),
    ] {
        let error = recompute(TableFiles { results: text.as_bytes(), ..TableFiles::default() }).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}
