//! Images of a repository, and how far they cover a dataset, as terminal pages.

use isobench_schema::images::{AuditedTask, ImageAudit, ImageList, ListedTag, SharedLayer};

use super::Style;
use super::judgement::section;
use super::table::{Cell, Column, Layout, table};
use crate::funnel::some_of;
use crate::images;
use crate::number::bytes;
use crate::text::clean;
use crate::words::Tone;

/// How many names a reason gives.
const NAMED: usize = 6;

/// How many tags that no task asks for are named.
const OTHERS: usize = 8;

/// Returns how far images cover a dataset.
pub fn image_audit(audit: &ImageAudit, style: Style) -> String {
    let mut out = String::new();
    style.heading(&mut out, &clean(&images::headline(audit)));
    style.paragraph(&mut out, "  ", &clean(&images::asked(audit)));
    out.push('\n');
    let columns = [
        Column { title: "task", layout: Layout::Word },
        Column { title: "human", layout: Layout::Word },
        Column { title: "size", layout: Layout::Number },
        Column { title: "baseline", layout: Layout::Word },
        Column { title: "size", layout: Layout::Number },
        Column { title: "subject", layout: Layout::Name },
    ];
    table(&mut out, &columns, &audit.tasks.iter().map(row).collect::<Vec<_>>(), style);
    section(&mut out, "Counted", style);
    for line in images::counts(audit) {
        style.paragraph(&mut out, "  ", &line);
    }
    if let Some(storage) = images::storage(audit) {
        section(&mut out, "What they take", style);
        style.paragraph(&mut out, "  ", &storage);
    }
    if !audit.shared.is_empty() {
        out.push('\n');
        let columns = [
            Column { title: "shared layer", layout: Layout::Word },
            Column { title: "size", layout: Layout::Number },
            Column { title: "images", layout: Layout::Number },
            Column { title: "saves", layout: Layout::Number },
        ];
        table(&mut out, &columns, &audit.shared.iter().map(layer).collect::<Vec<_>>(), style);
    }
    lacking(&mut out, audit, style);
    let remarks = images::remarks(audit);
    if !remarks.is_empty() {
        section(&mut out, "Worth a look", style);
        for remark in remarks {
            style.paragraph(&mut out, "  - ", &clean(&remark));
        }
    }
    if !audit.other_tags.is_empty() {
        section(&mut out, "For none of these tasks", style);
        style.paragraph(&mut out, "  ", &clean(&some_of(&audit.other_tags, OTHERS)));
    }
    out
}

fn lacking(out: &mut String, audit: &ImageAudit, style: Style) {
    let groups = images::lacking(audit);
    if groups.is_empty() {
        return;
    }
    section(out, "What can't be had", style);
    for group in groups {
        style.paragraph(out, "  - ", &clean(&group.title()));
        style.paragraph(out, "      ", &clean(&some_of(&group.names, NAMED)));
    }
}

fn row(task: &AuditedTask) -> Vec<Cell> {
    let state = |image: &isobench_schema::images::AuditedImage| {
        let (word, tone) = images::state(image.found.state);
        Cell { text: word.to_owned(), tone: Some(tone) }
    };
    let subject = task.subject.as_deref().map(clean);
    vec![
        Cell::plain(task.task.to_string()),
        state(&task.human),
        Cell::plain(images::size(&task.human)),
        state(&task.baseline),
        Cell::plain(images::size(&task.baseline)),
        Cell::optional(subject.as_ref()),
    ]
}

fn layer(shared: &SharedLayer) -> Vec<Cell> {
    vec![
        Cell::plain(shared.layer.digest.short()),
        Cell::plain(bytes(shared.layer.bytes)),
        Cell::plain(shared.images.to_string()),
        Cell::plain(bytes(shared.saves)),
    ]
}

/// Whether a column is shown, the column, and its cell of a tag.
type Part<'t> = (bool, Column<'t>, fn(&ListedTag) -> Cell);

/// Returns the tags of a repository, with what is known of them.
pub fn image_list(list: &ImageList, style: Style) -> String {
    let mut out = String::new();
    let any = |known: fn(&ListedTag) -> bool| list.tags.iter().any(known);
    let parts: [Part<'_>; 6] = [
        (true, Column { title: "tag", layout: Layout::Word }, |tag| Cell::plain(tag.tag.to_string())),
        (any(|tag| tag.digest.is_some()), Column { title: "digest", layout: Layout::Word }, |tag| {
            Cell::plain(tag.digest.as_ref().map_or("–", |digest| digest.short()))
        }),
        (any(|tag| tag.bytes.is_some()), Column { title: "size", layout: Layout::Number }, |tag| {
            Cell::plain(tag.bytes.map_or_else(|| "–".to_owned(), bytes))
        }),
        (any(|tag| !tag.platforms.is_empty()), Column { title: "platforms", layout: Layout::Name }, |tag| {
            Cell::plain(clean(&tag.platforms.join(" ")))
        }),
        (any(|tag| tag.pushed.is_some()), Column { title: "pushed", layout: Layout::Word }, |tag| {
            let day = tag.pushed.as_deref().and_then(|pushed| pushed.get(..10));
            Cell::plain(clean(day.unwrap_or("–")))
        }),
        (any(|tag| tag.problem.is_some()), Column { title: "problem", layout: Layout::Name }, |tag| Cell {
            text: clean(tag.problem.as_deref().unwrap_or("–")),
            tone: tag.problem.as_ref().map(|_problem| Tone::Fault),
        }),
    ];
    let shown: Vec<_> = parts.into_iter().filter(|(is_known, _, _)| *is_known).collect();
    let rows: Vec<Vec<Cell>> =
        list.tags.iter().map(|tag| shown.iter().map(|(_, _, cell)| cell(tag)).collect()).collect();
    let columns: Vec<Column<'_>> = shown.into_iter().map(|(_, column, _)| column).collect();
    if !rows.is_empty() {
        table(&mut out, &columns, &rows, style);
        out.push('\n');
    }
    style.paragraph(&mut out, "", &clean(&images::list_summary(list)));
    if let Some(limit) = &list.pulls {
        style.paragraph(&mut out, "", &images::pulls(limit));
    }
    out
}
