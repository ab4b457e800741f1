//! The plot of false wins: how often each rule calls one of two equal arms faster, by the noise.

use std::fmt::Write as _;

use super::results::Results;
use super::tables::rules::{RULES, Rule, SPREADS};
use isobench_analysis::simulation::Rival;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 400.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 500.0;
const TOP: f64 = 52.0;
const BOTTOM: f64 = 344.0;

/// The highest share on the axis, in percent.
const MOST: f64 = 40.0;
const STEP: u32 = 10;

/// Labels at the lines' ends don't come closer than this.
const LABEL: f64 = 17.0;

/// The colours are Okabe's and Ito's, which the colour-blind can tell apart, darker on light ground and lighter on dark; dashes
/// and labels say the same without colour.
const STYLE: &str = "\
text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif;fill:#3c4149}\
.page{fill:#fff}.title{font-size:15px;font-weight:600;fill:#1b1d21}.grid{stroke:#d5d9df}.axis{stroke:#8b929b}\
polyline{fill:none;stroke-width:2.2;stroke-linejoin:round}\
.l0{stroke:#0072b2}.l1{stroke:#b35a00}.l2{stroke:#00704f}.l3{stroke:#9c3d72}.l4{stroke:#856000}.l5{stroke:#5a6069}.l6{stroke:#1b1d21}\
.f0{fill:#0072b2}.f1{fill:#b35a00}.f2{fill:#00704f}.f3{fill:#9c3d72}.f4{fill:#856000}.f5{fill:#5a6069}.f6{fill:#1b1d21}\
polyline.l6{stroke-width:3.4}text.f6{font-weight:700}\
@media (prefers-color-scheme:dark){text{fill:#a3aab4}.page{fill:#14161a}.title{fill:#e6e8eb}.grid{stroke:#343941}.axis{stroke:#79818c}\
.l0{stroke:#66b8f0}.l1{stroke:#ff9350}.l2{stroke:#3ccb9b}.l3{stroke:#eb9cc6}.l4{stroke:#e8bc4c}.l5{stroke:#a3aab4}.l6{stroke:#fff}\
.f0{fill:#66b8f0}.f1{fill:#ff9350}.f2{fill:#3ccb9b}.f3{fill:#eb9cc6}.f4{fill:#e8bc4c}.f5{fill:#a3aab4}.f6{fill:#fff}}";

/// Dashes of each rule's line, in the order of [`RULES`].
const DASHES: [&str; 7] = ["", "9 4", "2 4", "12 4 2 4", "5 3", "1 3", ""];

fn label(rule: Rule) -> &'static str {
    match rule {
        Rule::Ours => "isobench",
        Rule::Other(Rival::Bare2) => "one run, above 2 %",
        Rule::Other(Rival::Bare5) => "one run, above 5 %",
        Rule::Other(Rival::MannWhitney) => "20 runs, Mann–Whitney",
        Rule::Other(Rival::MannWhitneyAll) => "24 runs, Mann–Whitney",
        Rule::Other(Rival::Once) => "24 blocks, t test",
        Rule::Other(Rival::PeekFourTimes) => "t test, 4 peeks",
        Rule::Other(Rival::PeekAlways) => "t test, peeking always",
    }
}

fn across(spread: f64) -> f64 {
    LEFT + (RIGHT - LEFT) * spread / SPREADS[SPREADS.len() - 1]
}

fn up(percent: f64) -> f64 {
    BOTTOM - (BOTTOM - TOP) * percent / MOST
}

/// Returns the plot.
pub(crate) fn plot(results: &Results) -> String {
    let mut svg = String::new();
    let title = "Two equal arms: how often one is called faster";
    write!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" \
         role=\"img\" aria-label=\"{title}, by rule and noise\">\n<style>{STYLE}</style>\n\
         <rect class=\"page\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>\n\
         <text class=\"title\" x=\"{LEFT}\" y=\"26\">{title}</text>\n"
    )
    .unwrap();
    axes(&mut svg);
    let ends: Vec<f64> =
        RULES.iter().map(|rule| up(100.0 * rule.false_wins(results, SPREADS[SPREADS.len() - 1]))).collect();
    let places = apart(&ends);
    for (number, rule) in RULES.into_iter().enumerate() {
        let points: Vec<String> = SPREADS
            .iter()
            .map(|spread| format!("{:.1},{:.1}", across(*spread), up(100.0 * rule.false_wins(results, *spread))))
            .collect();
        let dashes = DASHES[number];
        let dashes = if dashes.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dashes}\"") };
        writeln!(svg, "<polyline class=\"l{number}\"{dashes} points=\"{}\"/>", points.join(" ")).unwrap();
        let share = 100.0 * rule.false_wins(results, SPREADS[SPREADS.len() - 1]);
        writeln!(
            svg,
            "<line class=\"l{number}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\" stroke-opacity=\".5\"/>\
             <text class=\"f{number}\" x=\"{:.1}\" y=\"{:.1}\">{} ({share:.1} %)</text>",
            RIGHT + 2.0,
            ends[number],
            RIGHT + 18.0,
            places[number],
            RIGHT + 23.0,
            places[number] + 4.5,
            label(rule)
        )
        .unwrap();
    }
    svg.push_str("</svg>\n");
    svg
}

fn axes(svg: &mut String) {
    for percent in (0..=4).map(|step| step * STEP) {
        let height = up(f64::from(percent));
        let class = if percent == 0 { "axis" } else { "grid" };
        writeln!(
            svg,
            "<line class=\"{class}\" x1=\"{LEFT}\" y1=\"{height:.1}\" x2=\"{RIGHT}\" y2=\"{height:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{percent} %</text>",
            LEFT - 8.0,
            height + 4.5
        )
        .unwrap();
    }
    for spread in 0..=5 {
        let place = across(f64::from(spread));
        writeln!(svg, "<text x=\"{place:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{spread} %</text>", BOTTOM + 20.0)
            .unwrap();
    }
    writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">noise: standard deviation of the difference of two launches</text>",
        f64::midpoint(LEFT, RIGHT),
        BOTTOM + 42.0
    )
    .unwrap();
}

/// Moves labels apart that would lie on each other, as little as need be, and keeps their order.
fn apart(heights: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..heights.len()).collect();
    order.sort_by(|one, other| heights[*one].total_cmp(&heights[*other]));
    let mut places: Vec<f64> = order.iter().map(|number| heights[*number]).collect();
    // From the top down, then from the bottom up where that ran out of the picture.
    for place in 1..places.len() {
        places[place] = places[place].max(places[place - 1] + LABEL);
    }
    let last = places.len() - 1;
    places[last] = places[last].min(BOTTOM + 8.0);
    for place in (0..last).rev() {
        places[place] = places[place].min(places[place + 1] - LABEL);
    }
    let mut result = vec![0.0; heights.len()];
    for (place, number) in order.into_iter().enumerate() {
        result[number] = places[place];
    }
    result
}
