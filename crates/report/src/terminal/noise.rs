//! What `isobench noise` found out, and what its library holds, as terminal pages.

use std::collections::BTreeMap;

use isobench_schema::measurement::MetricName;
use isobench_schema::noise::{
    KnownSpread, ListedEntry, LookEffect, NeededBlocks, NoiseKey, NoiseReport, NoiseTask, SpreadOrigin,
};

use super::Style;
use super::judgement::section;
use super::table::{Cell, Column, Layout, table};
use crate::noise;
use crate::number::{self, counted};
use crate::text::clean;

/// How many digits of a host's fingerprint are shown.
const HOST_DIGITS: usize = 8;

/// How much of a time is its day.
const DATE_DIGITS: usize = 10;

/// Returns what runs say of noise: a table of tasks, and for each what its key's spread means for designs.
pub fn noise(report: &NoiseReport, style: Style) -> String {
    let mut out = String::new();
    style.heading(&mut out, "Noise: how far block differences spread");
    out.push('\n');
    let columns = [
        Column { title: "task", layout: Layout::Name },
        Column { title: "metric", layout: Layout::Word },
        Column { title: "spread", layout: Layout::Number },
        Column { title: "95 % interval", layout: Layout::Number },
        Column { title: "blocks", layout: Layout::Number },
        Column { title: "false alarm", layout: Layout::Word },
        Column { title: "entry", layout: Layout::Word },
    ];
    table(&mut out, &columns, &report.tasks.iter().map(row).collect::<Vec<_>>(), style);
    for task in &report.tasks {
        learnt(&mut out, task, style);
    }
    out
}

fn row(task: &NoiseTask) -> Vec<Cell> {
    let spread = task.found.as_ref();
    let interval = spread.map(|s| format!("{} to {}", number::percent(s.low), number::percent(s.high)));
    vec![
        Cell::plain(clean(task.task.as_str())),
        Cell::plain(task.metric.as_str()),
        Cell::optional(spread.map(|spread| number::percent(spread.deviation)).as_ref()),
        Cell::optional(interval.as_ref()),
        Cell::optional(spread.map(|spread| spread.degrees.saturating_add(1).to_string()).as_ref()),
        Cell::plain(match (spread, task.against_itself) {
            (None, _) => "–",
            (Some(_), Some(verdict)) => noise::alarm(verdict),
            (Some(_), None) => "not asked",
        }),
        Cell::optional(task.entry.as_ref()),
    ]
}

/// Appends what was learnt of a task.
fn learnt(out: &mut String, task: &NoiseTask, style: Style) {
    section(out, task.task.as_str(), style);
    let key = &task.key;
    let kind = format!("{}; {}; {}", clean(&key.model), key.class, clean(&key.device));
    style.paragraph(out, "  kind      ", &kind);
    if task.found.is_none() {
        style.paragraph(out, "  found     ", "nothing: under five blocks can be compared");
    }
    let Some(known) = &task.known else {
        style.paragraph(out, "  spread    ", "unknown");
        return;
    };
    style.paragraph(out, "  spread    ", &noise::known(known));
    let look = |look: &LookEffect| format!("{} after {}", noise::difference(look.mde), counted(look.blocks, "block"));
    let looks: Vec<String> = task.looks.iter().map(look).collect();
    if !looks.is_empty() {
        style.paragraph(out, "  finds     ", &format!("with a power of 80 %: {}", looks.join(", ")));
    }
    let needed = |needed: &NeededBlocks| {
        let blocks = needed.blocks.map_or_else(|| "over 10,000 blocks".to_owned(), |blocks| counted(blocks, "block"));
        format!("{blocks} for {}", number::percent(needed.difference))
    };
    let list: Vec<String> = task.needed.iter().map(needed).collect();
    if !list.is_empty() {
        style.paragraph(out, "  needs     ", &format!("at most {}", list.join(", ")));
    }
}

/// Returns the library: for each machine, model and class of workload its entries and what is known from all of them.
pub fn library(entries: &[ListedEntry], style: Style) -> String {
    let mut by_key: BTreeMap<&NoiseKey, Vec<&ListedEntry>> = BTreeMap::new();
    for listed in entries {
        by_key.entry(&listed.entry.key).or_default().push(listed);
    }
    let mut out = String::new();
    for (place, (key, entries)) in by_key.into_iter().enumerate() {
        if place > 0 {
            out.push('\n');
        }
        let host = key.host.get(..HOST_DIGITS).unwrap_or(&key.host);
        let kind = format!("{}; {}; {}; host {}", clean(&key.model), key.class, clean(&key.device), clean(host));
        style.heading(&mut out, &kind);
        listed(&mut out, &entries, style);
        let known: BTreeMap<MetricName, &KnownSpread> =
            entries.iter().filter_map(|listed| Some((listed.entry.metric, listed.known.as_ref()?))).collect();
        for (metric, known) in known {
            style.paragraph(&mut out, &format!("  {metric}: "), &noise::known(known));
        }
    }
    out
}

/// Appends the entries of one key.
fn listed(out: &mut String, entries: &[&ListedEntry], style: Style) {
    let columns = [
        Column { title: "entry", layout: Layout::Word },
        Column { title: "date", layout: Layout::Word },
        Column { title: "run", layout: Layout::Name },
        Column { title: "of", layout: Layout::Word },
        Column { title: "metric", layout: Layout::Name },
        Column { title: "spread", layout: Layout::Number },
        Column { title: "degrees of freedom", layout: Layout::Number },
    ];
    let row = |listed: &&ListedEntry| {
        let entry = &listed.entry;
        let of = match entry.origin {
            SpreadOrigin::AgainstItself => "itself",
            SpreadOrigin::Contrast => "a change",
            SpreadOrigin::Sentinel => "a sentinel",
        };
        vec![
            Cell::plain(&listed.id),
            Cell::plain(clean(entry.date.get(..DATE_DIGITS).unwrap_or(&entry.date))),
            Cell::plain(clean(entry.run.as_str())),
            Cell::plain(of),
            Cell::plain(entry.metric.as_str()),
            Cell::plain(number::percent(entry.deviation)),
            Cell::plain(entry.degrees.to_string()),
        ]
    };
    table(out, &columns, &entries.iter().map(row).collect::<Vec<_>>(), style);
}
