//! How far images cover a dataset, as Markdown.

use isobench_schema::images::{AuditedImage, AuditedTask, ImageAudit, ImageState, SharedLayer};

use super::{code, dash, escape, push, sentence, table};
use crate::images;
use crate::number::bytes;
use crate::text::clean;

/// Returns how far images cover a dataset, with every tag and digest.
pub fn image_audit(audit: &ImageAudit) -> String {
    let mut out = format!("# Images of {}\n\n", escape(&clean(&audit.dataset)));
    push(&mut out, &format!("**{}**", escape(&clean(&images::headline(audit)))));
    push(&mut out, &sentence(&clean(&images::asked(audit))));
    let lines: Vec<String> = images::counts(audit).iter().map(|line| format!("- {}", sentence(line))).collect();
    push(&mut out, &lines.join("\n"));
    if let Some(storage) = images::storage(audit) {
        push(&mut out, "## What they take");
        push(&mut out, &escape(&storage));
    }
    if !audit.shared.is_empty() {
        table(&mut out, &["shared layer", "size", "images", "saves"], audit.shared.iter().map(layer));
    }
    let lacking = images::lacking(audit);
    if !lacking.is_empty() {
        push(&mut out, "## What can't be had");
        for group in lacking {
            push(&mut out, &format!("**{}**", sentence(&clean(&group.title()))));
            let names: Vec<String> = group.names.iter().map(|name| format!("- {}", code(&clean(name)))).collect();
            push(&mut out, &names.join("\n"));
        }
    }
    let remarks = images::remarks(audit);
    if !remarks.is_empty() {
        push(&mut out, "## Worth a look");
        let lines: Vec<String> = remarks.iter().map(|line| format!("- {}", sentence(&clean(line)))).collect();
        push(&mut out, &lines.join("\n"));
    }
    push(&mut out, "## Tasks");
    let head = ["task", "human", "size", "digest", "baseline", "size", "digest", "subject"];
    table(&mut out, &head, audit.tasks.iter().map(row));
    if !audit.other_tags.is_empty() {
        push(&mut out, "## For none of these tasks");
        let tags: Vec<String> = audit.other_tags.iter().map(|tag| code(&clean(tag))).collect();
        push(&mut out, &tags.join(", "));
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn row(task: &AuditedTask) -> Vec<String> {
    let mut cells = vec![code(task.task.as_str())];
    cells.extend(image(&task.human));
    cells.extend(image(&task.baseline));
    cells.push(task.subject.as_ref().map_or_else(dash, |subject| escape(&clean(subject))));
    cells
}

fn image(image: &AuditedImage) -> [String; 3] {
    let (word, _) = images::state(image.found.state);
    let tag = image.tag.as_ref().map(|tag| format!(" {}", code(tag.as_str())));
    let digest = image.found.digest.as_ref().filter(|_| image.found.state == ImageState::Present);
    [
        format!("{}{}", escape(word), tag.unwrap_or_default()),
        images::size(image),
        digest.map_or_else(dash, |digest| code(digest.as_str())),
    ]
}

fn layer(shared: &SharedLayer) -> Vec<String> {
    vec![code(shared.layer.digest.as_str()), bytes(shared.layer.bytes), shared.images.to_string(), bytes(shared.saves)]
}
