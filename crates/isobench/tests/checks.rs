//! Every check has a test that violates it: one that is added without a test isn't taken.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use isobench_schema::check::Check;

/// A check, the file of the test that violates it, and the test. The test names the check, as `Check::Name` or by its spelling.
type Row = (Check, &'static str, &'static str);

const VIOLATED: &[Row] = &[
    (Check::StaticProof, TREES, "each_change_of_the_tree_is_found_and_the_evicted_environment_is_made_again"),
    (
        Check::SameTree,
        "crates/runner/src/environment/tests/tampered.rs",
        "an_environment_that_has_another_tree_in_a_later_block_is_unproven",
    ),
    (Check::LiveProof, FAULTS, WRONGS),
    (Check::SameProcess, "crates/runner/src/live.rs", "two_proofs_are_of_one_process_and_one_program"),
    (Check::TreeUnmodified, FAULTS, WRONGS),
    (Check::PortOwner, FAULTS, "a_port_that_a_process_outside_the_engine_owns_spoils_the_block_and_at_last_the_task"),
    (Check::LeaseHeld, FAULTS, "an_engine_that_removes_the_lease_costs_its_own_launch_alone"),
    (Check::PrivateCaches, "crates/runner/src/caches.rs", "a_cache_outside_the_launch_breaks_private_caches"),
    (Check::NoNetwork, FAULTS, WRONGS),
    (Check::EvidenceIntact, FAULTS, WRONGS),
    (Check::DeviceNotSlowed, "crates/isobench/tests/runs/devices.rs", "a_slow_down_by_heat_spoils_the_block"),
    (Check::RecordsReadable, RECORDS, TABLE),
    (Check::RequestsSucceed, RECORDS, TABLE),
    (Check::ProbesSucceed, RECORDS, TABLE),
    (Check::WarmUpFinished, RECORDS, TABLE),
    (Check::AllRecorded, RECORDS, TABLE),
    (Check::Drained, RECORDS, TABLE),
    (Check::TimesInOrder, RECORDS, TABLE),
    (Check::NumbersAgree, NUMBERS, "numbers_that_do_not_agree_with_what_was_counted_are_implausible"),
    (Check::LittlesLaw, RECORDS, TABLE),
    (Check::TokenCounts, RECORDS, TABLE),
    (Check::PromptCounts, RECORDS, TABLE),
    (Check::AnswerLengths, RECORDS, TABLE),
    (Check::WindowLength, RECORDS, TABLE),
    (Check::ClientLateness, RECORDS, TABLE),
    (Check::ClientLag, RECORDS, TABLE),
    (Check::ClientBusy, RECORDS, TABLE),
    (Check::ClientWait, RECORDS, TABLE),
    (Check::ClientTtftBias, LOADS, "requests_that_leave_late_or_too_seldom_break_checks_of_a_load_alone"),
    (Check::ClientIdlePlaces, LOADS, "each_broken_bound_is_a_finding_and_the_load_client_bound"),
    (Check::ClientRate, LOADS, "requests_that_leave_late_or_too_seldom_break_checks_of_a_load_alone"),
    (Check::ServerKeepsUp, RECORDS, TABLE),
    (Check::NoDrift, RECORDS, TABLE),
    (Check::ClaimedTime, CLAIMS, "a_claimed_time_that_does_not_fit_what_was_seen_breaks_claimed_time"),
    (Check::ClaimedWork, CLAIMS, "work_that_was_not_asked_for_breaks_claimed_work"),
    (Check::ProbeAnswers, FAULTS, WRONGS),
    (Check::DrawnAnswers, ANSWERS, "an_engine_that_knows_probes_is_found_by_its_measured_answers"),
    (Check::AllAnswers, ANSWERS, "wrong_answers_anywhere_in_the_window_are_found"),
    (Check::BelievableRatio, BELIEF, "a_ratio_beyond_the_tasks_bound_is_implausible"),
    (Check::Roofline, BELIEF, "nobody_is_beyond_what_the_devices_allow_unless_the_baseline_is_too"),
];

const TREES: &str = "crates/runner/src/environment/tests.rs";
const FAULTS: &str = "crates/isobench/tests/faults.rs";
const WRONGS: &str = "an_engine_that_ends_answers_wrongly_or_touches_what_it_must_not_is_told_apart";
const RECORDS: &str = "crates/analysis/tests/violations.rs";
/// The table of [`RECORDS`], whose rows its test goes through.
const TABLE: &str = "VIOLATIONS";
const NUMBERS: &str = "crates/analysis/src/validity/tests.rs";
const LOADS: &str = "crates/analysis/src/load_report/tests/checks.rs";
const CLAIMS: &str = "crates/analysis/src/script/tests.rs";
const ANSWERS: &str = "crates/analysis/tests/judging/output.rs";
const BELIEF: &str = "crates/analysis/tests/judging/belief.rs";

/// Returns the text of a function or table of a file, to the line that ends it.
fn text_of(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file)).ok()?;
    let head = if name == TABLE { format!("const {name}:") } else { format!("#[test]\nfn {name}()") };
    let indented = head.replace('\n', "\n    ");
    let (head, end) =
        [(head, "\n}"), (indented, "\n    }")].into_iter().find(|(head, _)| text.contains(head.as_str()))?;
    let end = if name == TABLE { "\n];" } else { end };
    let (_, rest) = text.split_once(head.as_str())?;
    rest.split_once(end).map(|(body, _)| body.to_owned())
}

#[test]
fn every_check_has_a_case_that_violates_it() {
    let named: BTreeSet<Check> = VIOLATED.iter().map(|(check, _, _)| *check).collect();
    let missing: Vec<&str> =
        Check::ALL.iter().filter(|check| !named.contains(check)).map(|check| check.as_str()).collect();
    assert!(missing.is_empty(), "no test violates {missing:?}: write one, and name it here");
    for (check, file, name) in VIOLATED {
        let text = text_of(file, name).unwrap_or_default();
        assert!(!text.is_empty(), "{file} has no test `{name}`, which violates {check}");
        let names = [format!("Check::{check:?}"), format!("\"{check}\"")];
        assert!(names.iter().any(|name| text.contains(name.as_str())), "`{name}` of {file} doesn't name {check}");
    }
}
