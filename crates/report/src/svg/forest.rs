//! The forest of a suite: every task's estimate with its interval, sorted, against the margin, and the headline below them.
//!
//! Up to [`PAGE`] tasks have a row each. More are drawn as a whole in thin lines, with a lane for each verdict beside them,
//! and page by page with rows.

mod compressed;
mod rows;

use maud::{Markup, html};

use super::Drawing;
use crate::html::scale::{Scale, thin};
use crate::number::count;
use crate::words::VerdictWord;

/// The most tasks with a row each on one page.
pub(crate) const PAGE: usize = 100;

/// The width of every forest, and of its parts: names, plot, numbers.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 740.0;
/// The height above the first row.
const HEAD: f64 = 74.0;
/// The height below the last row: the headline and the axis.
const FOOT: f64 = 86.0;

/// A forest with every number formatted.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    /// The arm that is asked about.
    pub of: String,
    /// The arm that it is compared with.
    pub against: String,
    /// The tasks with numbers, fastest first.
    pub rows: Vec<ForestRow>,
    /// Contrasts by verdict, in the verdicts' order: also of the tasks without numbers.
    pub verdicts: Vec<(VerdictWord, usize)>,
    /// The mean over tasks.
    pub headline: Option<ForestMean>,
    /// The same with failures counted as no gain.
    pub with_failures: Option<ForestMean>,
}

/// One task of a forest. Numbers are finite log ratios.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestRow {
    /// The task.
    pub task: String,
    /// Its verdict.
    pub verdict: VerdictWord,
    /// The estimate.
    pub estimate: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// The margin.
    pub margin: f64,
    /// The estimate and its interval as text.
    pub text: String,
}

/// A mean over tasks. Numbers are finite log ratios.
#[derive(Debug, Clone, PartialEq)]
pub struct ForestMean {
    /// Over how many tasks, in words.
    pub tasks: String,
    /// The mean.
    pub estimate: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// Both as text.
    pub text: String,
}

/// What is drawn of a forest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Whole,
    /// The rows of one page, from 0.
    Page(usize),
}

impl Forest {
    /// Returns how many pages the rows fill.
    pub(crate) fn pages(&self) -> usize {
        self.rows.len().div_ceil(PAGE).max(1)
    }

    /// Returns the drawing of a part.
    pub(crate) fn drawing(&self, part: Part) -> Drawing {
        let frame = Frame::new(self);
        let (shown, first) = match part {
            Part::Whole => (self.rows.as_slice(), 0),
            Part::Page(page) => {
                let first = page * PAGE;
                (self.rows.get(first..(first + PAGE).min(self.rows.len())).unwrap_or_default(), first)
            }
        };
        let is_compressed = shown.len() > PAGE;
        let (body, bottom) = if is_compressed { compressed::body(&frame, self) } else { rows::body(&frame, shown) };
        let of_pages = match part {
            Part::Page(_) if self.pages() > 1 => {
                format!(", tasks {} to {} of {}", first + 1, first + shown.len(), self.rows.len())
            }
            Part::Whole | Part::Page(_) => String::new(),
        };
        let title = format!("{} vs {} in {} tasks{of_pages}", self.of, self.against, self.rows.len());
        let content = html! {
            text.title x="12" y="20" { (title) }
            (self.legend())
            (frame.behind(bottom, self))
            (body)
            (frame.foot(bottom, self))
        };
        let about = self.headline.as_ref().map(|mean| format!("The mean over {} is {}.", mean.tasks, mean.text));
        Drawing { title, about: about.unwrap_or_default(), width: WIDTH, height: bottom + FOOT, content }
    }

    /// Returns the shapes of the verdicts that occur, with their numbers.
    fn legend(&self) -> Markup {
        let mut x = 14.0;
        let mut items = Vec::new();
        for (verdict, number) in &self.verdicts {
            let text = format!("{} {number}", verdict.word);
            let width = 22.0 + 6.6 * count(text.len());
            items.push((x, *verdict, text));
            x += width;
        }
        html! {
            @for (x, verdict, text) in items {
                (marker(verdict, x + 4.0, 38.0))
                text.label x=(format!("{:.1}", x + 13.0)) y="42" { (text) }
            }
        }
    }
}

/// Returns a verdict's shape at a place. Shape tells verdicts apart as well as colour.
pub(crate) fn marker(verdict: VerdictWord, x: f64, y: f64) -> Markup {
    let (path, is_open) = match verdict.word {
        "better" => ("M0,-5 L4.8,3.6 H-4.8 Z", false),
        "worse" => ("M0,5 L4.8,-3.6 H-4.8 Z", false),
        "equivalent" => ("M-3.8,-3.8 H3.8 V3.8 H-3.8 Z", false),
        "trivial" => ("M0,-4.8 L4.8,0 L0,4.8 L-4.8,0 Z", false),
        "inconclusive" => ("M3.8,0 A3.8,3.8 0 1 1 -3.8,0 A3.8,3.8 0 1 1 3.8,0 Z", true),
        "nothing-to-beat" => ("M-3.6,-3.6 H3.6 V3.6 H-3.6 Z", true),
        _ => ("M-4,-4 L4,4 M-4,4 L4,-4", true),
    };
    let class = format!("shape{} {}", if is_open { " open" } else { "" }, verdict.tone.class());
    html! {
        path class=(class) d=(path)
            transform=(format!("translate({x:.1} {y:.1})")) {}
    }
}

/// The scale of a forest, the same on all its pages.
struct Frame {
    scale: Scale,
}

impl Frame {
    /// Takes a range that shows all estimates, the headline and the margin; intervals may be cut.
    fn new(forest: &Forest) -> Self {
        let estimates = || forest.rows.iter().map(|row| row.estimate);
        let means = || forest.headline.iter().chain(&forest.with_failures);
        let margins = forest.rows.iter().map(|row| row.margin).fold(0.0, f64::max).min(10.0);
        let (low, high) = estimates()
            .chain(means().map(|mean| mean.estimate))
            .chain([-margins, margins])
            .fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        let room = 0.35 * (high - low);
        let ends = forest
            .rows
            .iter()
            .filter_map(|row| row.interval)
            .chain(means().filter_map(|mean| mean.interval))
            .flat_map(|(low, high)| [low, high])
            .map(|end| end.clamp(low - room, high + room));
        let all = ends.chain([low, high]);
        let scale = Scale::around(all).or_else(|| Scale::around([-0.1, 0.1].into_iter()));
        Self { scale: scale.expect("two finite numbers have a range") }
    }

    fn x(&self, value: f64) -> f64 {
        LEFT + self.scale.place(value) * (RIGHT - LEFT)
    }

    /// Returns what lies behind the rows: band, lines of the axis and the headline's.
    fn behind(&self, bottom: f64, forest: &Forest) -> Markup {
        let first = forest.rows.first().map_or(0.0, |row| row.margin);
        let is_one = forest.rows.iter().all(|row| (row.margin - first).abs() < 1e-12);
        let (left, right) = (self.x(-first), self.x(first));
        html! {
            @if is_one && first > 0.0 {
                rect.band x=(one(left)) y=(HEAD - 8.0) width=(one(right - left)) height=(one(bottom - HEAD + 8.0)) {}
            }
            @for tick in thin(self.scale.ratio_ticks(), 0.09) {
                @let x = one(LEFT + tick.at * (RIGHT - LEFT));
                line.grid x1=(x) x2=(x) y1=(HEAD - 8.0) y2=(one(bottom)) {}
                text.tick x=(x) y=(HEAD - 13.0) text-anchor="middle" { (tick.label) }
                text.tick x=(x) y=(one(bottom + FOOT - 28.0)) text-anchor="middle" { (tick.label) }
            }
            line.zero x1=(one(self.x(0.0))) x2=(one(self.x(0.0))) y1=(HEAD - 8.0) y2=(one(bottom)) {}
            @if let Some(mean) = &forest.headline {
                line.mean x1=(one(self.x(mean.estimate))) x2=(one(self.x(mean.estimate))) y1=(HEAD - 8.0)
                    y2=(one(bottom + 18.0)) {}
            }
        }
    }

    /// Returns the headlines and the axis.
    fn foot(&self, bottom: f64, forest: &Forest) -> Markup {
        let failures = forest.with_failures.as_ref();
        html! {
            line.axis x1=(LEFT) x2=(RIGHT) y1=(one(bottom)) y2=(one(bottom)) {}
            @if let Some(mean) = &forest.headline { (self.mean(mean, "mean of measured", bottom + 18.0, "diamond")) }
            @if let Some(mean) = failures { (self.mean(mean, "with failures as no gain", bottom + 38.0, "diamond open")) }
            text.label x=(one(f64::midpoint(LEFT, RIGHT))) y=(one(bottom + FOOT - 10.0)) text-anchor="middle" {
                "speed-up of " (forest.of) " over " (forest.against) "; the band is the margin"
            }
        }
    }

    fn mean(&self, mean: &ForestMean, name: &str, y: f64, class: &str) -> Markup {
        let (low, high) = mean.interval.unwrap_or((mean.estimate, mean.estimate));
        let (low, middle, high) = (self.x(low), self.x(mean.estimate), self.x(high));
        // Too narrow an interval would hide the mark.
        let (low, high) = (low.min(middle - 5.0), high.max(middle + 5.0));
        let path =
            format!("M{low:.1},{y:.1} L{middle:.1},{:.1} L{high:.1},{y:.1} L{middle:.1},{:.1} Z", y - 7.0, y + 7.0);
        html! {
            text.strong x=(LEFT - 12.0) y=(one(y + 4.0)) text-anchor="end" { (name) ", " (mean.tasks) }
            path class=(class) d=(path) {}
            text.value.strong x=(RIGHT + 14.0) y=(one(y + 4.0)) { (mean.text) }
        }
    }
}

/// Returns a length with one decimal.
fn one(value: f64) -> String {
    format!("{value:.1}")
}
