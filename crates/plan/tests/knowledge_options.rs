//! The tables of options hold together, say what is known of single options, and agree with the revisions' own sources.

#![allow(clippy::indexing_slicing, clippy::panic, reason = "a broken fixture must fail the test")]

mod support;

use std::collections::{BTreeMap, BTreeSet};

use isobench_plan::knowledge::Knowledge;
use isobench_plan::knowledge::options::{OptionSpec, Program, Takes, ValueKind};
use isobench_schema::ids::Moment;
use isobench_schema::tool::Tool;
use support::argparse::Kind;
use support::baselines::Baselines;

fn programs() -> &'static [Program] {
    Knowledge::embedded().options.programs()
}

fn program(tool: Tool) -> &'static Program {
    Knowledge::embedded().options.program(tool).expect("every tool has a table")
}

/// Checks every row of every table, and shows all that are wrong.
fn check_rows(wrong: impl Fn(&Program, &OptionSpec) -> Option<String>) {
    let mut found = Vec::new();
    for program in programs() {
        for row in &program.option {
            if let Some(what) = wrong(program, row) {
                found.push(format!("{}: {} since {}: {what}", program.tool, row.names[0], row.since));
            }
        }
    }
    assert!(found.is_empty(), "{} rows:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_tool_has_a_table_with_its_source_and_a_place() {
    for tool in Tool::ALL {
        let program = program(*tool);
        assert!(program.source.starts_with("git:"), "{tool}");
        assert!(!program.place.is_empty() && !program.option.is_empty(), "{tool}");
    }
}

#[test]
fn a_row_ends_after_it_begins() {
    check_rows(|_, row| row.until.as_ref().filter(|until| **until <= row.since).map(|until| format!("until {until}")));
}

#[test]
fn a_row_that_ends_names_the_commit_that_ended_it() {
    check_rows(|_, row| {
        (row.until.is_some() != row.until_commit.is_some()).then(|| "only one of until, until-commit".into())
    });
    check_rows(|_, row| {
        let commits = [Some(&row.since_commit), row.until_commit.as_ref()];
        let bad = commits
            .into_iter()
            .flatten()
            .find(|commit| commit.len() != 12 || !commit.bytes().all(|byte| byte.is_ascii_hexdigit()));
        bad.map(|commit| format!("commit {commit}"))
    });
}

#[test]
fn no_two_options_of_one_program_share_a_name_at_one_time() {
    for program in programs() {
        let mut by_name: BTreeMap<&str, Vec<&OptionSpec>> = BTreeMap::new();
        for row in &program.option {
            for name in &row.names {
                assert!(name.starts_with('-') && !name.contains(' '), "{}: {name}", program.tool);
                by_name.entry(name).or_default().push(row);
            }
        }
        for (name, mut rows) in by_name {
            rows.sort_by(|a, b| a.since.cmp(&b.since));
            for pair in rows.windows(2) {
                let ended = pair[0].until.as_ref().is_some_and(|until| *until <= pair[1].since);
                assert!(ended, "{}: {name} twice from {} on", program.tool, pair[1].since);
            }
        }
    }
}

#[test]
fn a_default_is_among_the_choices() {
    check_rows(|_, row| {
        let default = row.default.as_ref()?;
        let list = default.starts_with('[') || default.starts_with('(');
        // A text that isn't known, such as a name of a constant, is no value.
        (!row.choices.is_empty()
            && !list
            && !row.choices.contains(default)
            && !UNCHECKED_DEFAULTS.contains(&(&row.names[0], default)))
        .then(|| format!("default {default}, choices {:?}", row.choices))
    });
}

/// Defaults outside the choices: `argparse` doesn't check a default. The first two are known only to the running program, and
/// their source text stands for them; the others the engine's source has so.
const UNCHECKED_DEFAULTS: [(&str, &str); 4] = [
    ("--guided-decoding-backend", "'auto' if envs.VLLM_USE_V1 else 'xgrammar'"),
    ("--mm-hasher-algorithm", "env_value.lower()"),
    ("--flashinfer-mxfp4-moe-precision", "default"),
    ("--hicache-io-backend", ""),
];

#[test]
fn a_switch_has_no_kind_and_no_choices() {
    check_rows(|_, row| {
        let switch = matches!(row.takes, Takes::Nothing | Takes::NothingOrNo);
        (switch && (row.kind != ValueKind::Text || !row.choices.is_empty() || row.required)).then(|| format!("{row:?}"))
    });
}

#[test]
fn releases_are_known_ones() {
    let known = |program: &Program| -> BTreeSet<&str> {
        Knowledge::embedded().releases.of(program.tool.engine()).iter().map(|release| release.name.as_str()).collect()
    };
    for program in programs() {
        let known = known(program);
        let rows = program.option.iter().flat_map(|row| [&row.since_release, &row.until_release]);
        let places = program.place.iter().flat_map(|place| [&place.since_release, &place.until_release]);
        let unknown: BTreeSet<&String> =
            rows.chain(places).flatten().filter(|name| !known.contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "{}: {unknown:?}", program.tool);
    }
}

#[test]
fn at_every_baseline_the_tables_say_what_its_own_source_says() {
    let stored = Baselines::stored();
    assert!(stored.revisions.len() >= 110, "{}", stored.revisions.len());
    let (mut compared, mut wrong) = (0, Vec::new());
    for baseline in &stored.revisions {
        for tool in Tool::ALL.iter().filter(|tool| tool.engine() == baseline.engine) {
            let table = program(*tool);
            let mut own: Vec<String> = stored.options(baseline, *tool).into_iter().map(own_row).collect();
            let mut ours: Vec<String> = table.options_at(&baseline.moment).map(our_row).collect();
            own.sort();
            ours.sort();
            compared += own.len();
            let missing: Vec<&String> = own.iter().filter(|row| !ours.contains(row)).collect();
            let extra: Vec<&String> = ours.iter().filter(|row| !own.contains(row)).collect();
            if !missing.is_empty() || !extra.is_empty() {
                wrong.push(format!("{} {tool}: missing {missing:?}, too many {extra:?}", baseline.commit));
            }
            let stored_program = baseline.tools.get(tool.as_str());
            let mut places: Vec<&str> = table.places_at(&baseline.moment).map(|place| place.path.as_str()).collect();
            let mut own_places: Vec<&str> =
                stored_program.map_or_else(Vec::new, |program| program.places.iter().map(String::as_str).collect());
            places.sort_unstable();
            own_places.sort_unstable();
            let underscores = stored_program.is_some_and(|program| program.underscores);
            if places != own_places || table.underscores_at(&baseline.moment) != underscores {
                wrong.push(format!(
                    "{} {tool}: places {places:?}, own {own_places:?}, underscores {underscores}",
                    baseline.commit
                ));
            }
        }
    }
    assert!(compared > 40_000, "only {compared} options were compared");
    assert!(wrong.is_empty(), "{} differences:\n{}", wrong.len(), wrong.join("\n"));
}

fn own_row(row: &support::argparse::Spec) -> String {
    let kind = match row.kind {
        Kind::Text => ValueKind::Text,
        Kind::Whole => ValueKind::Whole,
        Kind::Number => ValueKind::Number,
        Kind::Bool => ValueKind::Bool,
        Kind::Json => ValueKind::Json,
    };
    let takes = match row.takes.as_str() {
        "nothing" => Takes::Nothing,
        "nothing-or-no" => Takes::NothingOrNo,
        "one" => Takes::One,
        "at-most-one" => Takes::AtMostOne,
        "one-or-more" => Takes::OneOrMore,
        "any" => Takes::Any,
        other => panic!("`{other}` is no number of values"),
    };
    format!("{:?} {takes:?} {kind:?} {:?} {:?} {}", row.names, row.choices, row.default, row.required)
}

fn our_row(row: &OptionSpec) -> String {
    format!("{:?} {:?} {:?} {:?} {:?} {}", row.names, row.takes, row.kind, row.choices, row.default, row.required)
}

/// What is known of single options from release notes, documentation and reports: program, option, the first release with it, the
/// first release without it, and its default in the first. `-` stands for none or not said.
const FACTS: &str = include_str!("fixtures/known-options.txt");

#[test]
fn single_options_came_and_went_with_the_releases_that_are_known() {
    let mut wrong = Vec::new();
    let mut rows = 0;
    for line in FACTS.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [tool, name, first, gone, default] = fields[..] else { panic!("{line}: five fields are wanted") };
        let table = program(Tool::parse(tool).expect(line));
        rows += 1;
        if let Err(what) = fact_holds(table, name, first, gone, default) {
            wrong.push(format!("{line}: {what}"));
        }
    }
    assert!(rows > 100, "{rows}");
    assert!(wrong.is_empty(), "{} of {rows} facts differ:\n{}", wrong.len(), wrong.join("\n"));
}

fn fact_holds(table: &Program, name: &str, first: &str, gone: &str, default: &str) -> Result<(), String> {
    let rows: Vec<&OptionSpec> = table.option.iter().filter(|row| row.names.iter().any(|own| own == name)).collect();
    let at = |release: &str| -> Result<Option<&OptionSpec>, String> {
        let moment = branched(table, release)?;
        Ok(rows
            .iter()
            .copied()
            .find(|row| row.since <= moment && row.until.as_ref().is_none_or(|until| moment < *until)))
    };
    let before = |release: &str| previous(table, release);
    if first != "-" {
        let row = at(first)?.ok_or_else(|| format!("{first} hasn't got it; rows since {:?}", spans(&rows)))?;
        if let Some(earlier) = before(first) {
            if default == "-" && at(&earlier)?.is_some() {
                return Err(format!("{earlier} has it too; rows since {:?}", spans(&rows)));
            }
            if default != "-" && at(&earlier)?.is_some_and(|row| row.default.as_deref() == Some(default)) {
                return Err(format!("{earlier} has that default too"));
            }
        }
        if default != "-" && row.default.as_deref() != Some(default) {
            return Err(format!("its default at {first} is {:?}", row.default));
        }
    }
    if gone != "-" {
        if at(gone)?.is_some() {
            return Err(format!("{gone} has it; rows {:?}", spans(&rows)));
        }
        if let Some(earlier) = before(gone) {
            at(&earlier)?.ok_or_else(|| format!("{earlier} hasn't got it either; rows {:?}", spans(&rows)))?;
        }
    }
    Ok(())
}

fn spans<'r>(rows: &[&'r OptionSpec]) -> Vec<(&'r Option<String>, &'r Option<String>)> {
    rows.iter().map(|row| (&row.since_release, &row.until_release)).collect()
}

/// Returns when a release branched off.
fn branched(table: &Program, release: &str) -> Result<Moment, String> {
    let known = Knowledge::embedded().releases.of(table.tool.engine());
    let row = known.iter().find(|row| row.name == release).ok_or_else(|| format!("{release} isn't known"))?;
    row.branched.clone().ok_or_else(|| format!("where {release} branched off isn't known"))
}

/// Returns the release that branched off last before another, at an earlier moment.
fn previous(table: &Program, release: &str) -> Option<String> {
    let moment = branched(table, release).ok()?;
    let known = Knowledge::embedded().releases.of(table.tool.engine());
    let earlier = known.iter().filter(|row| row.branched.as_ref().is_some_and(|branched| *branched < moment));
    earlier.max_by(|a, b| a.branched.cmp(&b.branched)).map(|row| row.name.clone())
}
