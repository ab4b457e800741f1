//! The words of pages about images: the same for the terminal and for Markdown.

use std::collections::BTreeMap;

use isobench_schema::images::{AuditedImage, ImageAudit, ImageList, ImageState, ListedBy, RateLimit};

use crate::number::{bytes, counted};
use crate::words::Tone;

/// The most tags of one image that are named.
const NAMED: usize = 6;

/// Returns the sentence that stands above an audit.
pub(crate) fn headline(audit: &ImageAudit) -> String {
    let counts = &audit.counts;
    let tasks = counted(counts.tasks, "task");
    format!("{} of {tasks} of {} have both images in {}", counts.both, audit.dataset, audit.repository)
}

/// Returns what was counted, a sentence each.
pub(crate) fn counts(audit: &ImageAudit) -> Vec<String> {
    let counts = &audit.counts;
    let mut lines = vec![
        format!("{} of {} human images are there", counts.human(), counts.tasks),
        format!("{} of {} images of baselines are there", counts.baseline(), counts.tasks),
        format!(
            "tasks with both: {}, with the human image alone: {}, with the baseline's alone: {}, with neither: {}",
            counts.both, counts.human_only, counts.baseline_only, counts.neither
        ),
    ];
    match audit.tags_listed {
        Some(tags) => {
            let others = u64::try_from(audit.other_tags.len()).unwrap_or(u64::MAX);
            lines
                .push(format!("the repository has {}, {others} of them for none of these tasks", counted(tags, "tag")));
        }
        None => lines.push("the repository lets nobody list its tags; each image was asked for by its name".to_owned()),
    }
    lines.extend(audit.pulls.as_ref().map(pulls));
    lines
}

/// Returns how the images were named and what was asked for.
pub(crate) fn asked(audit: &ImageAudit) -> String {
    format!(
        "{} · human images `{}` · baselines `{}` · asked {}",
        audit.platform, audit.human_tag, audit.baseline_tag, audit.asked
    )
}

/// Returns how much may be pulled.
pub(crate) fn pulls(limit: &RateLimit) -> String {
    let left = limit.remaining.map_or_else(|| "an unknown number".to_owned(), |left| left.to_string());
    let window = limit.window_s.map_or_else(String::new, |window| format!(" in {} h", hours(window)));
    format!("{left} of {} pulls{window} are left, as the registry says", limit.limit)
}

fn hours(seconds: u64) -> String {
    let tenths = (seconds * 10 + 1800) / 3600;
    if tenths.is_multiple_of(10) { (tenths / 10).to_string() } else { format!("{}.{}", tenths / 10, tenths % 10) }
}

/// Returns what the images take.
pub(crate) fn storage(audit: &ImageAudit) -> Option<String> {
    let storage = &audit.storage;
    (storage.images > 0).then(|| {
        format!(
            "{} of known layers: {} if each is fetched alone, {} together (shared: {} of {}); the largest takes {}",
            counted(storage.images, "image"),
            bytes(storage.bytes_alone),
            bytes(storage.bytes_together),
            storage.shared_layers,
            counted(storage.layers, "layer"),
            bytes(storage.largest)
        )
    })
}

/// Returns the word of a state, and how it is coloured.
pub(crate) fn state(state: ImageState) -> (&'static str, Tone) {
    match state {
        ImageState::Present => ("✓ there", Tone::Good),
        ImageState::Missing => ("✗ missing", Tone::Bad),
        ImageState::OtherPlatform => ("≠ platform", Tone::Fault),
        ImageState::Unreadable => ("! unreadable", Tone::Fault),
        ImageState::NotAsked => ("? not asked", Tone::Unsure),
        ImageState::Unnamed => ("? unnamed", Tone::Unsure),
    }
}

/// Returns an image's size.
pub(crate) fn size(image: &AuditedImage) -> String {
    image.found.bytes.map_or_else(|| "–".to_owned(), bytes)
}

/// Images that can't be had for one reason.
pub(crate) struct Lacking {
    /// Which side of tasks.
    pub(crate) side: &'static str,
    /// What became of the question.
    pub(crate) state: ImageState,
    /// Why.
    pub(crate) reason: String,
    /// The tags; where there are none, the tasks.
    pub(crate) names: Vec<String>,
}

impl Lacking {
    /// Returns what is lacking, without names.
    pub(crate) fn title(&self) -> String {
        let count = u64::try_from(self.names.len()).unwrap_or(u64::MAX);
        format!("{} {}: {}", counted(count, &format!("{} image", self.side)), self.state, self.reason)
    }
}

/// Returns the images that can't be had, by side, state and reason.
pub(crate) fn lacking(audit: &ImageAudit) -> Vec<Lacking> {
    let mut found: BTreeMap<(&'static str, ImageState, &str), Vec<String>> = BTreeMap::new();
    for task in &audit.tasks {
        for (side, image) in [("human", &task.human), ("baseline", &task.baseline)] {
            if image.found.state != ImageState::Present {
                let name = image.tag.as_ref().map_or_else(|| task.task.to_string(), ToString::to_string);
                let names = found.entry((side, image.found.state, &image.found.reason)).or_default();
                // A baseline may be that of several tasks.
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    let mut lacking: Vec<Lacking> = found
        .into_iter()
        .map(|((side, state, reason), names)| Lacking { side, state, reason: reason.to_owned(), names })
        .collect();
    lacking.sort_by_key(|group| std::cmp::Reverse(group.names.len()));
    lacking
}

/// Returns what is remarkable about images that are there: labels that claim another revision.
pub(crate) fn remarks(audit: &ImageAudit) -> Vec<String> {
    let images = audit.tasks.iter().flat_map(|task| [&task.human, &task.baseline]);
    let there = images.filter(|image| image.found.state == ImageState::Present);
    let mut remarks: Vec<String> = there
        .filter(|image| image.found.reason.contains("its label"))
        .filter_map(|image| Some(format!("`{}`: {}", image.tag.as_ref()?, image.found.reason)))
        .collect();
    remarks.extend(audit.same_image.iter().map(|tags| {
        let mut names: Vec<String> = tags.iter().take(NAMED).map(|tag| format!("`{tag}`")).collect();
        let more = tags.len().saturating_sub(NAMED);
        names.extend((more > 0).then(|| format!("{more} more")));
        format!("{} are one and the same image, though they stand for different commits", names.join(" and "))
    }));
    remarks
}

/// Returns the sentence below a list of tags.
pub(crate) fn list_summary(list: &ImageList) -> String {
    let count = u64::try_from(list.tags.len()).unwrap_or(u64::MAX);
    let by = match list.listed_by {
        ListedBy::Registry => "the registry",
        ListedBy::Hub => "Docker Hub",
    };
    let pages = counted(list.pages, "page");
    let announced = list.announced.filter(|announced| *announced != count);
    let more = announced.map_or_else(String::new, |announced| format!("; it says that there are {announced}"));
    format!("{} in {}, in {pages} from {by}{more}", counted(count, "tag"), list.repository)
}
