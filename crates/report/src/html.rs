//! A judgement or a plan as one self-contained HTML file: inline style and SVG, nothing loaded from elsewhere.

mod blocks_plot;
mod coverage;
mod intervals_plot;
pub(crate) mod looks_plot;
mod plan;
pub(crate) mod scale;
mod suite;
mod task;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::view::{Pair, TaskView, View};
use crate::words::{Piece, VerdictWord, how_to_read};

pub use plan::plan_page;

/// The colours, in light, in dark and in print. They are Okabe and Ito's, which people with colour-blindness can tell apart.
pub(crate) const PALETTE: &str = include_str!("html/palette.css");

/// The page's style, by the palette's names.
pub(crate) const STYLE: &str = include_str!("html/style.css");

/// With more tasks than this a browser draws each only when it comes into view.
const DRAWN_AT_ONCE: usize = 20;

/// What the page says besides the judgement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// The page's title; a plain one if empty.
    pub title: String,
    /// How and when it was generated, for the foot of the page.
    pub note: Option<String>,
}

/// Returns the whole page.
pub fn page(view: &View, options: &Options) -> String {
    let plain = format!("isobench run {}", view.run);
    let title = crate::text::clean(if options.title.is_empty() { &plain } else { &options.title });
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            (head(&title, &[PALETTE, STYLE]))
            body {
                (blocks_plot::shapes())
                header {
                    h1 { bdi { (title) } }
                    p.facts {
                        span { "run " b { (view.run) } }
                        span { "plan " code { (view.plan) } }
                        span { "rules " (view.rules) }
                        @for fact in &view.facts { span { bdi { (fact) } } }
                    }
                }
                main.many[view.tasks.len() > DRAWN_AT_ONCE] { (body(view)) }
                footer {
                    @if let Some(note) = &options.note { p { bdi { (crate::text::clean(note)) } } }
                }
            }
        }
    };
    markup.into_string()
}

/// Returns the head of a page that loads nothing and runs nothing.
pub(crate) fn head(title: &str, styles: &[&str]) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta http-equiv="Content-Security-Policy"
                content="default-src 'none'; style-src 'unsafe-inline'; img-src data:";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            meta name="referrer" content="no-referrer";
            title { (title) }
            style { @for style in styles { (PreEscaped(style)) } }
        }
    }
}

fn body(view: &View) -> Markup {
    html! {
        @if view.tasks.is_empty() { p.empty { "No task was run." } }
        @if view.tasks.len() > 1 { (overview(view)) }
        @if let Some(item) = &view.suite { (suite::section(item)) }
        section.how aria-labelledby="how" {
            h2 #how { "How to read this page" }
            p { @for piece in how_to_read() {
                @match piece { Piece::Plain(text) => { (text) }, Piece::Strong(word) => { b { (word) } } }
            } }
        }
        @if !view.noise.is_empty() { (noise(view)) }
        @for (index, item) in view.tasks.iter().enumerate() { (task::section(index, item)) }
        @if !view.exclusions.is_empty() {
            section aria-labelledby="not-run" {
                h2 #not-run { "Not run" }
                div.scroll { table {
                    thead { tr { th scope="col" { "what" } th scope="col" { "reason" } th scope="col" { "message" } } }
                    tbody { @for item in &view.exclusions {
                        tr { th scope="row" { (item.what) } td { (item.reason) } td.text { bdi { (item.message) } } }
                    } }
                } }
            }
        }
        @if !view.problems.is_empty() {
            section aria-labelledby="unread" {
                h2 #unread { "Could not be read" }
                div.scroll { table {
                    thead { tr { th scope="col" { "place" } th scope="col" { "message" } } }
                    tbody { @for item in &view.problems {
                        tr { th scope="row" { bdi { (item.place) } } td.text { bdi { (item.message) } } }
                    } }
                } }
            }
        }
        @if let Some(lost) = &view.coverage { (coverage::section(lost)) }
    }
}

/// What runs of the baseline against itself show.
fn noise(view: &View) -> Markup {
    html! {
        section aria-labelledby="noise" {
            h2 #noise { "Noise: the baseline against itself" }
            div.scroll { table.narrow {
                thead { tr { @for title in crate::noise::COLUMNS { th scope="col" { (title) } } } }
                tbody { @for row in &view.noise { tr { @for cell in row.cells() { td { (cell) } } } } }
            } }
        }
    }
}

/// Returns a verdict as a coloured word with its symbol.
fn badge(verdict: VerdictWord) -> Markup {
    html! { span class=(format!("badge {}", verdict.tone.class())) { span aria-hidden="true" { (verdict.symbol) } " " (verdict.word) } }
}

fn overview(view: &View) -> Markup {
    html! {
        section aria-labelledby="overview" {
            h2 #overview { "Overview of " (view.tasks.len()) " tasks" }
            div.scroll { table.narrow {
                thead { tr {
                    th scope="col" { "verdict" }
                    th.number scope="col" { "human vs baseline" }
                    th.number scope="col" { "agents vs baseline" }
                    th.number scope="col" { "agents vs human" }
                } }
                tbody { @for count in &view.counts { tr {
                    th scope="row" { (badge(count.verdict)) }
                    td.number { (count.human_against_baseline) }
                    td.number { (count.agent_against_baseline) }
                    td.number { (count.agent_against_human) }
                } } }
            } }
            div.scroll { table {
                thead { tr {
                    th scope="col" { "task" }
                    th scope="col" { "standing" }
                    th scope="col" { "human vs baseline" }
                    th scope="col" { "agents vs baseline" }
                    th.number scope="col" { "deviations" }
                } }
                tbody { @for (index, task) in view.tasks.iter().enumerate() { (overview_row(index, task)) } }
            } }
        }
    }
}

/// The most agents whose verdicts are listed in a row of the overview.
const LISTED_AGENTS: usize = 4;

fn overview_row(index: usize, task: &TaskView) -> Markup {
    let of = |pair: Pair| task.contrasts.iter().filter(move |contrast| contrast.pair == pair);
    let agents = of(Pair::AgentAgainstBaseline).count();
    html! {
        tr {
            th scope="row" { a href=(format!("#task-{index}")) { (task.id) } }
            td { span class=(task.standing.tone.class()) { (task.standing.word) } }
            td { @for contrast in of(Pair::HumanAgainstBaseline) {
                (badge(contrast.verdict)) " " span.nowrap { (contrast.speedup.as_deref().unwrap_or_default()) }
            } }
            td.agents {
                @for contrast in of(Pair::AgentAgainstBaseline).take(LISTED_AGENTS) {
                    div { span.arm { (contrast.of) } " " (badge(contrast.verdict)) " "
                        span.nowrap { (contrast.speedup.as_deref().unwrap_or_default()) } }
                }
                @if agents > LISTED_AGENTS { div.note { "and " (agents - LISTED_AGENTS) " more" } }
            }
            td.number { (task.deviations.len()) (task.mark) }
        }
    }
}
