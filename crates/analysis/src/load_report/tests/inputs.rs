//! Whose count of a prompt's tokens a result has, and what makes it no count.

use isobench_schema::load_result::{InputCounter, LoadResult, Validity};
use isobench_schema::task::OptionValue;

use super::*;

/// Returns the result of eight requests whose prompts the client takes for `own` long, and the server for `claimed`.
fn result(change: impl Fn(&mut Workload), (own, claimed): (u32, Option<u64>), has_tokenizer: bool) -> LoadResult {
    let record = |mut record: RequestRecord| {
        record.failure = None;
        record.input_tokens = own;
        record.usage = claimed.map(|prompt_tokens| Usage { prompt_tokens, completion_tokens: record.output_tokens() });
        record
    };
    let records: Vec<RequestRecord> = uneven(8).into_iter().map(record).collect();
    let mut workload = workload(8);
    change(&mut workload);
    let prompts_by_usage = are_by_usage(&workload, has_tokenizer);
    let mut reader = LoadReader::new(ReportOptions { prompts_by_usage, ..options(&workload) });
    reader.feed(text(&records).as_bytes());
    let tokenizer_digest = has_tokenizer.then(|| Digest::of(b"tokenizer"));
    reader.finish(LoadFacts { tokenizer_digest, counted_by: workload.counter, ..facts(workload) }).unwrap().result
}

fn dataset(name: &str, api: Api) -> impl Fn(&mut Workload) {
    let options = [("input-len".to_owned(), OptionValue::Whole(128))].into();
    let prompts = Prompts::Dataset { name: name.to_owned(), options };
    move |workload| (workload.prompts, workload.api) = (prompts.clone(), api)
}

fn check(found: &LoadResult, counter: InputCounter, tokens: f64) {
    assert_eq!(found.input_counted_by, Some(counter), "{:?}", found.findings);
    close(found.metrics["total_input_tokens"], tokens, "tokens of prompts");
}

#[test]
fn words_have_the_tokens_that_usage_says_or_none() {
    let told = result(|_| {}, (128, Some(7)), false);
    check(&told, InputCounter::Usage, 56.0);
    assert!(told.metrics.contains_key("total_token_throughput") && told.validity != Validity::TokenCountMismatch);
    let untold = result(|_| {}, (128, None), false);
    check(&untold, InputCounter::Words, 1024.0);
    assert!(!untold.metrics.contains_key("total_token_throughput"), "words and tokens have no sum");
    check(&result(dataset("random", Api::Completions), (128, None), false), InputCounter::Words, 1024.0);
}

#[test]
fn where_usage_counts_answers_it_counts_prompts_and_the_clients_count_is_compared_all_the_same() {
    let by_usage = |workload: &mut Workload| {
        dataset("random", Api::Completions)(workload);
        workload.counter = TokenCounter::Usage;
    };
    check(&result(by_usage, (128, Some(129)), true), InputCounter::Usage, 1032.0);
    let false_claim = result(by_usage, (128, Some(7)), true);
    check(&false_claim, InputCounter::Usage, 56.0);
    assert_eq!(false_claim.validity, Validity::TokenCountMismatch);
    let message = &false_claim.findings[0].message;
    assert!(message.contains("8 of 8 prompts") && message.contains("usage says 7 tokens, 128 were sent"), "{message}");
}

#[test]
fn a_claim_may_differ_by_what_the_client_cannot_know() {
    let is_wrong = |change: &dyn Fn(&mut Workload), own, claimed| {
        let found = result(change, (own, Some(claimed)), true);
        found.findings.iter().any(|finding| finding.class == FailureClass::TokenCountMismatch)
    };
    let bounds = |change: &dyn Fn(&mut Workload), least: u64, most: u64| {
        assert!(!is_wrong(change, 100, least) && !is_wrong(change, 100, most), "{least} {most}");
        assert!(is_wrong(change, 100, least - 1), "{least}");
        assert!(is_wrong(change, 100, most + 1), "{most}");
    };
    bounds(&dataset("random", Api::Completions), 96, 104);
    bounds(&dataset("sharegpt", Api::Chat), 96, 358);
    let ids = |workload: &mut Workload| {
        workload.prompts = Prompts::TokenIds { input_tokens: 100, vocabulary_size: 1000, first_id: 10 };
    };
    bounds(&ids, 100, 102);
    // What was said before, and images, count too.
    assert!(
        !is_wrong(&dataset("sessions", Api::Chat), 100, 9000) && is_wrong(&dataset("sessions", Api::Chat), 100, 90)
    );
}

#[test]
fn a_bound_that_the_client_was_told_is_named_where_arrivals_are_not_kept_up_with() {
    let behind =
        || vec![Failure::new(isobench_schema::failure::FailureStage::Validity, FailureClass::OverSaturated, "it grew")];
    let named = bounded(behind(), Some(2), 2);
    assert!(named[0].message.contains("`--max-in-flight`") && named[0].message.contains("it grew"), "{named:?}");
    assert_eq!(bounded(behind(), Some(8), 5)[0].message, "it grew");
    assert_eq!(bounded(behind(), None, 5)[0].message, "it grew");
}
