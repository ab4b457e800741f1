//! Plots as SVG files of their own: the same drawings as in the HTML page, with their colours inside, light, dark and in
//! print.

pub(crate) mod forest;
pub(crate) mod funnel;

use maud::{Markup, PreEscaped, html};

use crate::html::{PALETTE, looks_plot};
use crate::view::{ContrastView, TaskView, View};
use forest::{Forest, Part};

/// The style of what the plots are made of, by the palette's names.
const STYLE: &str = include_str!("svg/style.css");

/// A plot with the name of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SvgFile {
    /// The name, such as `forest-human-baseline.svg`: safe on every system.
    pub name: String,
    /// The file.
    pub text: String,
}

/// A drawing in a box of its own.
pub(crate) struct Drawing {
    pub(crate) title: String,
    pub(crate) about: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) content: Markup,
}

impl Drawing {
    /// Returns the drawing as an element of a page that has the style.
    pub(crate) fn inline(&self) -> Markup {
        let Self { width, height, .. } = self;
        html! {
            svg.drawing xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {height:.0}")) role="img"
                aria-label=(format!("{}. {}", self.title, self.about)) { (self.content) }
        }
    }

    /// Returns the drawing as a file.
    pub(crate) fn file(&self) -> String {
        let Self { title, about, width, height, .. } = self;
        let markup = html! {
            svg.drawing xmlns="http://www.w3.org/2000/svg" viewBox=(format!("0 0 {width:.0} {height:.0}"))
                width=(format!("{width:.0}")) height=(format!("{height:.0}")) role="img" {
                title { (title) }
                desc { (about) }
                style { (PreEscaped(PALETTE)) (PreEscaped(STYLE)) }
                rect.page width="100%" height="100%" {}
                (self.content)
            }
        };
        markup.into_string() + "\n"
    }
}

/// The style of drawings, for a page that has them inline.
pub(crate) fn style() -> &'static str {
    STYLE
}

/// Returns every plot of a judgement: the funnel of its coverage, the forests of its suite, and for each task's contrasts the
/// differences of blocks with the looks.
pub fn files(view: &View) -> Vec<SvgFile> {
    let mut files = Vec::new();
    if let Some(coverage) = &view.coverage {
        files.push(SvgFile { name: "funnel.svg".to_owned(), text: funnel::drawing(coverage).file() });
    }
    for forest in view.suite.iter().flat_map(|suite| &suite.forests) {
        let name = format!("forest-{}-{}", file_name(&forest.of), file_name(&forest.against));
        files.extend(forest_files(&name, forest));
    }
    for task in &view.tasks {
        let name = |contrast: &ContrastView| {
            format!("{}.{}-{}.svg", task.id, file_name(&contrast.of), file_name(&contrast.against))
        };
        let file =
            |contrast: &ContrastView| Some(SvgFile { name: name(contrast), text: blocks(task, contrast)?.file() });
        files.extend(task.contrasts.iter().filter_map(file));
    }
    files
}

/// Returns a forest on one page, or the whole of it compressed and then page by page.
fn forest_files(name: &str, forest: &Forest) -> Vec<SvgFile> {
    let whole = SvgFile { name: format!("{name}.svg"), text: forest.drawing(Part::Whole).file() };
    let pages = forest.pages();
    let page = |number: usize| SvgFile {
        name: format!("{name}-{}.svg", number + 1),
        text: forest.drawing(Part::Page(number)).file(),
    };
    std::iter::once(whole).chain((0..if pages > 1 { pages } else { 0 }).map(page)).collect()
}

/// Returns an arm's name as a part of a file's name.
fn file_name(arm: &str) -> String {
    arm.replace(':', "-")
}

/// The box of the plot of blocks, and where the drawing lies in it.
const BLOCKS: (f64, f64) = (680.0, 232.0);
const LEFT: f64 = 70.0;
const TOP: f64 = 48.0;
const RIGHT: f64 = 20.0;

/// Returns the plot of a contrast's blocks and looks, if it has any.
fn blocks(task: &TaskView, contrast: &ContrastView) -> Option<Drawing> {
    if task.planned_blocks == 0 || contrast.block_differences.is_empty() {
        return None;
    }
    let inner = looks_plot::drawing(task, contrast)?;
    let (width, height) = BLOCKS;
    let verdict = contrast.verdict;
    let result = contrast.speedup.as_deref().map(|speedup| {
        let interval = contrast.interval.as_deref().map(|interval| format!(", {interval}")).unwrap_or_default();
        format!("{speedup}{interval}")
    });
    let content = html! {
        text.title x="12" y="20" { (task.id) ": " (contrast.name()) }
        text.label x="12" y="37" {
            tspan class=(verdict.tone.class()) { (verdict.symbol) " " (verdict.word) }
            @if let Some(result) = result { "  " (result) }
            "  margin ±" (task.margin)
        }
        svg x=(LEFT) y=(TOP) width=(width - LEFT - RIGHT) height=(looks_plot::HEIGHT) overflow="visible" { (inner) }
        text.label x=(f64::midpoint(LEFT, width - RIGHT)) y=(height - 12.0) text-anchor="middle" {
            "blocks; each dot is one block, each bar the interval at a look, the filled mark the look that decided"
        }
    };
    let title = format!("{}: {}", task.id, looks_plot::spoken(contrast));
    Some(Drawing { title, about: contrast.reason.clone(), width, height, content })
}
