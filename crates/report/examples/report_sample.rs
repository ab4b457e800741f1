//! Writes the HTML page of a sample judgement to the standard output, to be looked at in a browser.
//!
//! An argument names another sample: `hostile`, an odd shape such as `huge values`, or a number of tasks for a suite. With a
//! folder after it, the plots are written there as SVG files instead.

#[path = "../tests/report/sample.rs"]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is test code, where a failure should panic")]
mod sample;

#[path = "../tests/report/suite_sample.rs"]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is test code, where a failure should panic")]
mod suite_sample;

use std::io::{self, Write as _};

use isobench_report::{html, svg, view};

fn main() -> io::Result<()> {
    let wanted = std::env::args().nth(1);
    let odd = sample::odd().into_iter().find(|(name, _)| wanted.as_deref() == Some(name));
    let judgement = match (odd, wanted.as_deref()) {
        (Some((_, judgement)), _) => judgement,
        (None, Some("hostile")) => sample::hostile(),
        (None, Some(number)) if number.parse::<usize>().is_ok() => suite_sample::suite(number.parse().unwrap_or(0)),
        (None, Some(name)) => return Err(io::Error::other(format!("no sample is called `{name}`"))),
        (None, None) => sample::every_verdict(),
    };
    let options = html::Options { title: String::new(), note: Some("a sample".to_owned()) };
    let view = view::view(&judgement, Some(&sample::plan()));
    if let Some(folder) = std::env::args().nth(2) {
        for file in svg::files(&view) {
            std::fs::write(std::path::Path::new(&folder).join(file.name), file.text)?;
        }
        return Ok(());
    }
    let page = html::page(&view, &options);
    io::stdout().write_all(page.as_bytes())
}
