//! Tests that what recipes change is read back from a real virtual environment.

use isobench_schema::recipe::{AppliedRecipe, RecipeChange};

use super::super::recipes;
use super::*;

fn recipe(id: &str, change: RecipeChange) -> AppliedRecipe {
    AppliedRecipe { id: id.to_owned(), change, effect: "none".to_owned() }
}

#[test]
fn what_recipes_change_is_read_back_and_one_without_effect_fails_the_arm() {
    let place = Place::new();
    let content = "AIRPORT_LIST = []\n";
    let stub = StubModule { path: "pyairports/airports.py".to_owned(), content: content.to_owned() };
    let mut spec = place.repository(ENGINE).spec();
    let venv = Venv { requirements: vec![wheel(&place)], stub_modules: vec![stub], ..Venv::default() };
    spec.python = Python::Venv(venv);
    let made = prepared(&place, &spec);
    let version = made.packages().iter().find_map(|package| package.strip_prefix("fake-engine==")).unwrap().to_owned();

    let package = |bounds: &str| RecipeChange::Package { requirement: format!("Fake_Engine{bounds}") };
    let module = |text: &str| RecipeChange::Module {
        path: "pyairports/airports.py".to_owned(),
        digest: Digest::of(text.as_bytes()),
    };
    let without = |package: &str| RecipeChange::NoPackage { package: package.to_owned() };
    let variable = RecipeChange::Variable { name: "A".to_owned(), value: "1".to_owned() };
    let good = [
        recipe("pin", package(&format!("=={version}"))),
        recipe("stub", module(content)),
        recipe("no-pyairports", without("pyairports")),
        recipe("later", variable),
    ];
    let found = recipes::prove(&good, &made).unwrap();
    assert_eq!(found.len(), 3, "a variable only shows in the running engine: {found:?}");
    assert_eq!(found.get("pin"), Some(&format!("fake-engine {version} is installed")));
    for (change, says) in [
        (package("<0.0.1"), "which `Fake_Engine<0.0.1` refuses"),
        (RecipeChange::Package { requirement: "numpy<2".to_owned() }, "numpy is not installed"),
        (module("AIRPORT_LIST = [1]\n"), "doesn't stand among the packages"),
        (without("fake.engine"), "is installed"),
    ] {
        let failure = recipes::prove(&[recipe("x", change)], &made).unwrap_err();
        assert_eq!(failure.class, FailureClass::EnvironmentUnproven);
        assert!(failure.message.contains(says), "{}", failure.message);
    }
}
