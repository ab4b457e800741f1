//! The emulation of argparse that other tests judge by says what Python's argparse says.

mod support;

use std::collections::BTreeMap;

use serde::Deserialize;
use support::argparse::{Parser, Spec};

#[derive(Deserialize)]
struct Cases {
    parsers: BTreeMap<String, Given>,
    cases: Vec<(String, Vec<String>, Option<String>)>,
}

#[derive(Deserialize)]
struct Given {
    underscores: bool,
    options: Vec<Spec>,
}

#[test]
fn the_emulation_says_what_argparse_says() {
    let cases: Cases = serde_json::from_str(include_str!("fixtures/argparse-cases.json")).unwrap();
    assert!(cases.cases.len() >= 1000);
    let mut wrong = Vec::new();
    for (name, args, says) in &cases.cases {
        let given = &cases.parsers[name];
        let parser = Parser { options: given.options.iter().collect(), underscores: given.underscores, positionals: 0 };
        let found = parser.check(args).err();
        if found != *says {
            wrong.push(format!("{name} {args:?}\n  argparse: {says:?}\n  emulation: {found:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases differ:\n{}", wrong.len(), cases.cases.len(), wrong.join("\n"));
}
