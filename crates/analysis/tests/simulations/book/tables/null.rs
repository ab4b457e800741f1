//! No difference, and independent normal block differences, at every schedule.

use isobench_analysis::stats::sequential::looks;
use isobench_schema::plan::Spending;

use super::Table;
use crate::book::claims::Bound;
use crate::book::numbers::{rate, table};
use crate::book::{Cell, Claim, Results, numbers, schedule, with_looks};

pub(super) const TABLE: Table = Table { cells, text, claims };

const RUNS: u32 = 40_000;

struct Row {
    arms: usize,
    spending: Spending,
    schedule: Vec<u32>,
}

impl Row {
    fn name(&self) -> String {
        let looks: Vec<String> = self.schedule.iter().map(u32::to_string).collect();
        format!("null/{}/{}/{}", self.arms, self.spending, looks.join("-"))
    }
}

/// The usual looks of two to five arms by each spending, and others that can be asked for.
fn rows() -> Vec<Row> {
    let usual = (2..=5)
        .flat_map(|arms| Spending::ALL.iter().map(move |&spending| Row { arms, spending, schedule: schedule(arms) }));
    let others: [(usize, &[u32]); 8] = [
        (2, &[6]),
        (2, &[24]),
        (2, &[6, 8, 12]),
        (2, &[12, 20, 32, 48]),
        (2, &[8, 20]),
        (2, &[6, 8, 10, 12, 14, 16, 18, 20, 22, 24]),
        (3, &[6]),
        (3, &[6, 12]),
    ];
    let asked = others.map(|(arms, looks)| Row { arms, spending: Spending::Even, schedule: looks.to_vec() });
    usual.chain(asked).collect()
}

fn cells() -> Vec<Cell> {
    let cell = |row: Row| {
        let mut scenario = with_looks(row.arms, &row.schedule);
        scenario.spending = row.spending;
        if row.schedule.len() > 1 {
            scenario.looks = looks(row.spending, &row.schedule).unwrap();
        }
        Cell::new(row.name(), RUNS, scenario)
    };
    rows().into_iter().map(cell).collect()
}

fn text(results: &Results) -> String {
    let line = |row: Row| {
        let tally = results.get(&row.name());
        vec![
            row.arms.to_string(),
            numbers::looks(&row.schedule),
            if row.schedule.len() > 1 { format!("`{}`", row.spending) } else { "–".to_owned() },
            rate(tally, tally.rejected, 2),
            rate(tally, tally.better + tally.worse, 2),
        ]
    };
    let lines: Vec<Vec<String>> = rows().into_iter().map(line).collect();
    let head = ["arms", "looks after blocks", "spending", "rejected", "called `better` or `worse`"];
    format!(
        "## No difference\n\n\
         Two arms are equal, and block differences are independent and normal. *Rejected*: p is below its look's level at some \
         look, which the boundaries promise for 5 %. *Called*: what the judge says if there is no margin. It is less, because a \
         run whose differences seem to follow each other by chance is `inconclusive`.\n\n{}\n",
        table(&head, &lines)
    )
}

fn claims(results: &Results) -> Vec<Claim> {
    let mut claim =
        Claim::new("rejected without a difference, independent normal differences", Bound::Between(4.5, 5.5));
    for row in rows() {
        let tally = results.get(&row.name());
        claim.add_share(tally, tally.rejected, &row.name());
    }
    vec![claim]
}
