//! Writes the HTML page of a sample judgement to the standard output, to be looked at in a browser.
//!
//! An argument names another sample: `hostile`, or an odd shape such as `huge values`.

#[path = "../tests/report/sample.rs"]
#[expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "it is test code, where a failure should panic")]
mod sample;

use std::io::{self, Write as _};

use isobench_report::{html, view};

fn main() -> io::Result<()> {
    let wanted = std::env::args().nth(1);
    let odd = sample::odd().into_iter().find(|(name, _)| wanted.as_deref() == Some(name));
    let judgement = match (odd, wanted.as_deref()) {
        (Some((_, judgement)), _) => judgement,
        (None, Some("hostile")) => sample::hostile(),
        (None, Some(name)) => return Err(io::Error::other(format!("no sample is called `{name}`"))),
        (None, None) => sample::every_verdict(),
    };
    let options = html::Options { title: String::new(), note: Some("a sample".to_owned()) };
    let page = html::page(&view::view(&judgement, Some(&sample::plan())), &options);
    io::stdout().write_all(page.as_bytes())
}
