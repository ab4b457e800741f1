//! The report of a real run of vLLM on a CPU reads the same for ever.

use std::fs;
use std::path::PathBuf;

use isobench_report::terminal::{self, Style};
use isobench_report::{markdown, view};
use isobench_schema::format;
use isobench_schema::verdict::Judgement;

fn judgement() -> Judgement {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../testkit/fixtures/vllm-cpu/judgement.json");
    let bytes = fs::read(&path).expect("the fixture is in the repository");
    format::from_slice(&bytes).expect("the fixture is a judgement")
}

#[test]
fn a_real_run_reads_well_in_a_terminal() {
    insta::assert_snapshot!(terminal::judgement(&view::view(&judgement(), None), Style::default()));
}

#[test]
fn a_real_run_reads_well_as_markdown() {
    insta::assert_snapshot!(markdown::judgement(&view::view(&judgement(), None)));
}
