//! Reading back what recipes changed: a recipe that took no effect would be a claim about the environment and nothing more.

use std::collections::BTreeMap;
use std::fs;

use isobench_schema::check::Check;
use isobench_schema::failure::{EvidenceLine, Failure, FailureClass, FailureStage};
use isobench_schema::ids::Digest;
use isobench_schema::recipe::{AppliedRecipe, RecipeChange};

use super::Prepared;

/// Reads back what recipes changed in a prepared environment, by the recipe's id. What only the running engine shows is left
/// to the live proof.
///
/// # Errors
/// Returns `environment-unproven` for the first recipe that took no effect.
pub(crate) fn prove(recipes: &[AppliedRecipe], prepared: &Prepared) -> Result<BTreeMap<String, String>, Failure> {
    let mut found = BTreeMap::new();
    for recipe in recipes {
        match look(&recipe.change, prepared) {
            Look::Seen(text) => {
                found.insert(recipe.id.clone(), text);
            }
            Look::Later => {}
            Look::Missing(text) => return Err(without_effect(&recipe.id, &text, Check::StaticProof)),
        }
    }
    Ok(found)
}

/// Returns the failure of a recipe that took no effect.
pub(crate) fn without_effect(id: &str, found: &str, check: Check) -> Failure {
    let message = format!("the recipe `{id}` took no effect: {found}");
    Failure::new(FailureStage::Verify, FailureClass::EnvironmentUnproven, message)
        .breaking(check)
        .with_evidence([EvidenceLine::new("recipes", None, found)])
}

/// What was seen of a recipe.
enum Look {
    Seen(String),
    Missing(String),
    /// Only the running engine shows it.
    Later,
}

fn look(change: &RecipeChange, prepared: &Prepared) -> Look {
    let packages = prepared.packages();
    match change {
        RecipeChange::Package { requirement } => {
            let (name, bounds) = split(requirement);
            match version(packages, &name) {
                Some(version) if allows(bounds, version) => Look::Seen(format!("{name} {version} is installed")),
                Some(version) => Look::Missing(format!("{name} {version} is installed, which `{requirement}` refuses")),
                None => Look::Missing(format!("{name} is not installed")),
            }
        }
        RecipeChange::NoPackage { package } => match version(packages, &normal(package)) {
            None => Look::Seen(format!("{package} is not installed")),
            Some(version) => Look::Missing(format!("{package} {version} is installed")),
        },
        RecipeChange::Module { path, digest } => {
            let folders = prepared.manifest.venv.iter().flat_map(|venv| &venv.site_packages);
            let is_it = |bytes: &Vec<u8>| Digest::of(bytes) == *digest;
            let places = folders.map(|folder| folder.join(path));
            match places.filter_map(|place| fs::read(place).ok()).find(is_it) {
                Some(bytes) => Look::Seen(format!("`{path}` stands among the packages, {} bytes", bytes.len())),
                None => Look::Missing(format!("`{path}` doesn't stand among the packages as the recipe has it")),
            }
        }
        RecipeChange::Variable { .. } | RecipeChange::Option { .. } => Look::Later,
    }
}

/// Returns the version of an installed package.
fn version<'p>(packages: &'p [String], name: &str) -> Option<&'p str> {
    let found = packages.iter().filter_map(|package| package.split_once("=="));
    found.filter(|(package, _)| normal(package) == name).map(|(_, version)| version).next()
}

/// Returns a requirement's normalised name and its bounds.
fn split(requirement: &str) -> (String, &str) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let end = requirement.find(|c| !is_name(c)).unwrap_or(requirement.len());
    let (name, rest) = requirement.split_at_checked(end).unwrap_or((requirement, ""));
    let rest = rest.trim();
    let bounds = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(rest, |(_, bounds)| bounds);
    (normal(name), bounds.trim())
}

fn normal(name: &str) -> String {
    name.trim().to_lowercase().replace(['_', '.'], "-")
}

/// Returns whether a version is one that bounds allow, as far as they are told by numbers: an installer has chosen it by the
/// whole rule, and this reads it back.
fn allows(bounds: &str, version: &str) -> bool {
    let version = release(version);
    bounds.split(',').map(str::trim).filter(|bound| !bound.is_empty()).all(|bound| {
        let Some((operator, wanted)) =
            bound.find(|c: char| c.is_ascii_digit()).and_then(|at| bound.split_at_checked(at))
        else {
            return true;
        };
        let is_prefix = wanted.ends_with(".*");
        let wanted = release(wanted.trim_end_matches(".*"));
        match operator.trim() {
            "==" if is_prefix => version.starts_with(&wanted),
            "==" => version == wanted,
            "!=" => version != wanted,
            "<" => version < wanted,
            "<=" => version <= wanted,
            ">" => version > wanted,
            ">=" => version >= wanted,
            _ => true,
        }
    })
}

/// Returns the numbers of a version's release, trailing zeros left out.
fn release(version: &str) -> Vec<u64> {
    let end = version.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(version.len());
    let numbers = version.get(..end).unwrap_or_default().split('.').map_while(|part| part.parse().ok());
    let mut numbers: Vec<u64> = numbers.collect();
    while numbers.last() == Some(&0) {
        numbers.pop();
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_held_against_bounds_by_its_numbers() {
        for (bounds, version, expected) in [
            ("<2", "1.26.4", true),
            ("<2", "2.0.0", false),
            ("<5", "4.57.1+cpu", true),
            ("==0.0.34", "0.0.34", true),
            ("==0.0.34", "0.0.35", false),
            ("==1.*", "1.9", true),
            (">=4.45,<4.49", "4.48.3", true),
            (">=4.45,<4.49", "4.49", false),
            ("<77", "77.0.1", false),
            ("<4", "3.31.0", true),
            ("", "1", true),
        ] {
            assert_eq!(allows(bounds, version), expected, "{version} by {bounds}");
        }
        assert_eq!(split("Lm_Format.Enforcer[x] <0.10.10"), ("lm-format-enforcer".to_owned(), "<0.10.10"));
    }
}
