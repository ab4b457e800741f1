//! What `isobench noise` found out, and what its library holds, as terminal pages.

use isobench_schema::noise::{ListedEntry, LookEffect, NeededBlocks, NoiseReport, NoiseTask, SpreadOrigin};

use super::Style;
use super::judgement::section;
use super::table::{Cell, Column, Layout, table};
use crate::noise;
use crate::number::{self, counted};
use crate::text::clean;

/// How many digits of a host's fingerprint are shown.
const HOST_DIGITS: usize = 8;

/// Returns what runs say of noise: a table of tasks, and for each what its key's spread means for designs.
pub fn noise(report: &NoiseReport, style: Style) -> String {
    let mut out = String::new();
    style.heading(&mut out, "Noise: how far block differences of one program spread");
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
        Cell::plain(task.against_itself.map_or("not asked", noise::alarm)),
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

/// Returns the library as a table.
pub fn library(entries: &[ListedEntry], style: Style) -> String {
    let mut out = String::new();
    let columns = [
        Column { title: "entry", layout: Layout::Word },
        Column { title: "date", layout: Layout::Word },
        Column { title: "host", layout: Layout::Word },
        Column { title: "device", layout: Layout::Name },
        Column { title: "model", layout: Layout::Name },
        Column { title: "workload", layout: Layout::Name },
        Column { title: "metric", layout: Layout::Name },
        Column { title: "of", layout: Layout::Word },
        Column { title: "spread", layout: Layout::Number },
        Column { title: "degrees", layout: Layout::Number },
        Column { title: "known", layout: Layout::Number },
    ];
    let row = |listed: &ListedEntry| {
        let entry = &listed.entry;
        let of = match entry.origin {
            SpreadOrigin::AgainstItself => "itself",
            SpreadOrigin::Contrast => "a change",
            SpreadOrigin::Sentinel => "sentinel",
        };
        vec![
            Cell::plain(&listed.id),
            Cell::plain(clean(entry.date.get(..10).unwrap_or(&entry.date))),
            Cell::plain(clean(entry.key.host.get(..HOST_DIGITS).unwrap_or(&entry.key.host))),
            Cell::plain(clean(&entry.key.device)),
            Cell::plain(clean(&entry.key.model)),
            Cell::plain(entry.key.class.to_string()),
            Cell::plain(entry.metric.as_str()),
            Cell::plain(of),
            Cell::plain(number::percent(entry.deviation)),
            Cell::plain(entry.degrees.to_string()),
            Cell::optional(listed.known.as_ref().map(|known| number::percent(known.deviation)).as_ref()),
        ]
    };
    table(&mut out, &columns, &entries.iter().map(row).collect::<Vec<_>>(), style);
    out
}
