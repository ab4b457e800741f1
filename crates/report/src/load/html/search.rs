//! A search for the load at which a server saturates: the throughput of each level, and what it shows.

use isobench_schema::load_checks::{LittlesLaw, SweepReport, SweepStep};
use maud::{Markup, html};

use super::chart::{axes, points};
use crate::html::scale::{Scale, across, thin};
use crate::load::checks::{level_name, raised, search_lines, step};
use crate::number::significant;

const TOP: f64 = 14.0;
const BOTTOM: f64 = 188.0;
const WIDTH: f64 = 1000.0;

/// Returns the section.
pub(super) fn section(found: &SweepReport) -> Markup {
    html! {
        section {
            h2 { "The search for the limit" }
            ul { @for line in search_lines(found) { li { (line) } } }
            (plot(found))
            div.scroll { table.values {
                thead { tr {
                    th.number scope="col" { (raised(found.by)) }
                    th scope="col" { "shows" }
                    @for title in ["req/s", "output tok/s", "mean TTFT ms", "mean TPOT ms", "Little's law"] { th.number scope="col" { (title) } }
                } }
                tbody { @for one in sorted(found) {
                    @let (word, tone) = step(one.state);
                    tr {
                        th.number scope="row" { (level_name(one.level)) }
                        td class=(tone.class()) { (word) }
                        td.number { (significant(one.completed_per_s)) }
                        @for value in [one.output_tok_per_s, one.mean_ttft_ms, one.mean_tpot_ms] {
                            td.number { (value.map_or_else(|| "–".to_owned(), significant)) }
                        }
                        td.number { (law(one.littles_law)) }
                    }
                } }
            } }
        }
    }
}

/// Returns the steps from the lowest level to the highest.
fn sorted(found: &SweepReport) -> Vec<&SweepStep> {
    let mut steps: Vec<&SweepStep> = found.steps.iter().collect();
    steps.sort_by(|a, b| a.level.total_cmp(&b.level));
    steps
}

fn law(found: LittlesLaw) -> Markup {
    html! {
        @match found {
            LittlesLaw::TooFew => "–",
            LittlesLaw::Checked { ratio, holds } => span class=(if holds { "" } else { "bad" }) { (format!("{ratio:.3}")) },
        }
    }
}

fn plot(found: &SweepReport) -> Markup {
    let has_tokens = found.steps.iter().all(|step| step.output_tok_per_s.is_some());
    let unit = if has_tokens { "output tokens per second" } else { "requests per second" };
    let throughput = |step: &SweepStep| step.output_tok_per_s.filter(|_| has_tokens).unwrap_or(step.completed_per_s);
    let x = Scale::around(found.steps.iter().map(|step| step.level.log10()));
    let y = Scale::from_zero(found.steps.iter().map(throughput).fold(0.0, f64::max));
    let (Some(x), Some(y)) = (x, y) else { return html! {} };
    let spot = |step: &SweepStep| (x.place(step.level.log10()), BOTTOM - y.place(throughput(step)) * (BOTTOM - TOP));
    let line: Vec<(f64, f64)> = sorted(found).into_iter().map(spot).map(|(x, y)| (x * WIDTH, y)).collect();
    let caption = format!("{unit} by level");
    html! {
        figure {
            figcaption { (caption) "; the axis of the levels is logarithmic" }
            svg.plot xmlns="http://www.w3.org/2000/svg" width="100%" height="210" role="img" aria-label=(caption) {
                (axes(&thin(y.ticks(), 0.08), &thin(x.narrow_log10_ticks(), 0.07), (TOP, BOTTOM)))
                svg x="0" y="0" width="100%" height="210" viewBox=(format!("0 0 {WIDTH} 210")) preserveAspectRatio="none" {
                    g.c1 { polyline.curve points=(points(&line)) {} }
                }
                @for one in sorted(found) {
                    @let ((across_at, down), (word, tone)) = (spot(one), step(one.state));
                    g class=(tone.class()) {
                        circle.point cx=(across(across_at)) cy=(format!("{down:.1}")) r="4.5" {
                            title { (level_name(one.level)) " " (raised(found.by)) ": " (word) }
                        }
                    }
                }
            }
            p.axis-name { "level: " (raised(found.by)) }
        }
    }
}
