//! Quadrants, rates, their intervals, and approaches.

use isobench_schema::legacy::Quadrant;
use isobench_schema::old_tables::{OldTable, TableCell, TableRow};

use super::agents::{Agent, Agents};
use super::published::Published;
use super::{cell, count, percent, table};
use crate::legacy::rules;
use crate::stats::wilson_interval;

/// The labels of every table by agent.
pub(super) const BY_AGENT: [&str; 2] = ["project", "agent"];

/// The level of the published intervals.
const LEVEL: f64 = 0.95;

/// The approaches in the order of the published table.
const APPROACHES: [&str; 5] = ["similar_approach", "valid_alternative", "partial_solution", "ineffective", "other"];

fn rows(agents: &Agents<'_>, cells: impl Fn(&Agent<'_>) -> Vec<TableCell>) -> Vec<TableRow> {
    agents.all().map(|agent| TableRow { labels: agent.labels(), cells: cells(agent) }).collect()
}

/// Counts quadrants, each told anew from class and label.
pub(super) fn quadrants(agents: &Agents<'_>, published: &Published) -> OldTable {
    let about = "Q1 true success: at least similar to the human side (class `beats` or `similar`) by work on the same or a \
        related target. Q2 good intent: such work, but not similar. Q3 lucky win: similar by other work. Q4: neither.";
    let columns = ["Q1", "Q2", "Q3", "Q4"];
    let mut found = table("quadrants", "Quadrants", about, &BY_AGENT, &columns);
    found.rows = rows(agents, |agent| {
        let printed = published.quadrants(agent.project, agent.name);
        let of = |(place, &quadrant): (usize, &Quadrant)| {
            let here = agent.count(|row| rules::quadrant(row.class, &row.target) == quadrant);
            count(here, printed.and_then(|printed| printed.get(place).copied()))
        };
        Quadrant::ALL.iter().enumerate().map(of).collect()
    });
    found
}

/// Computes the rates of success.
pub(super) fn success(agents: &Agents<'_>, published: &Published) -> OldTable {
    let about = "Shares in percent. True: success by Q1. Hard: by Q1 and Q3. Gap: hard less true success, in percentage \
        points. Target: the right one, Q1 and Q2. Same target: true success by work on the same target, not on a related one.";
    let columns = ["results", "true", "hard", "gap", "target", "same target"];
    let mut found = table("success-rates", "Rates of success", about, &BY_AGENT, &columns);
    found.rows = rows(agents, |agent| {
        let (project, name, all) = (agent.project, agent.name, agent.rows.len());
        let (truly, hard) = (agent.true_success(), agent.hard_success());
        let same = agent.count(|row| row.quadrant == Quadrant::TrueSuccess && row.target == "same_target");
        vec![
            count(all, None),
            cell(percent(truly, all), published.true_success(project, name), 1),
            cell(percent(hard, all), published.hard_success(project, name), 1),
            cell(percent(hard, all) - percent(truly, all), published.gap(project, name), 1),
            cell(percent(agent.right_target(), all), published.correct_target(project, name), 1),
            cell(percent(same, all), published.same_only(project, name), 1),
        ]
    });
    found
}

/// Computes the Wilson intervals of true success.
pub(super) fn intervals(agents: &Agents<'_>, published: &Published) -> OldTable {
    let about = "The Wilson 95 % interval of the rate of true success, in percent.";
    let columns = ["successes", "results", "low", "high"];
    let mut found = table("wilson", "Intervals of true success", about, &BY_AGENT, &columns);
    found.rows = rows(agents, |agent| {
        let (truly, all) = (agent.true_success(), agent.rows.len());
        let as_u64 = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let interval = wilson_interval(as_u64(truly), as_u64(all), LEVEL);
        let printed = published.wilson(agent.project, agent.name);
        let end = |here: Option<f64>, published: Option<f64>| TableCell {
            here: here.map(|end| 100.0 * end),
            published,
            decimals: 1,
        };
        vec![
            count(truly, None),
            count(all, None),
            end(interval.map(|(low, _)| low), printed.map(|[low, _]| low)),
            end(interval.map(|(_, high)| high), printed.map(|[_, high]| high)),
        ]
    });
    found
}

/// Counts approaches.
pub(super) fn approaches(agents: &Agents<'_>, published: &Published) -> OldTable {
    let about = "How the agent's change relates to the human one, by the published label of each result.";
    let mut found = table("approaches", "Approaches", about, &BY_AGENT, &APPROACHES);
    found.rows = rows(agents, |agent| {
        let printed = published.approaches(agent.project, agent.name);
        let of = |approach: &&str| {
            let printed = printed.as_ref().and_then(|printed| printed.get(*approach).copied());
            count(agent.count(|row| row.approach == **approach), printed)
        };
        APPROACHES.iter().map(of).collect()
    });
    found
}
