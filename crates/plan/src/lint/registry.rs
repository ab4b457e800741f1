//! What each lint rule means: the table `knowledge/rules.toml`.

use std::sync::OnceLock;

use isobench_schema::assessment::Severity;
use serde::Deserialize;

use crate::knowledge::table;

/// Whether isobench mends what a rule finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Repairs {
    /// Whenever the rule finds it.
    Always,
    /// Where the repair doesn't change what is measured; each finding says whether it did.
    Sometimes,
    /// Only an edit of the dataset or another plan mends it.
    Never,
}

/// One rule, in words.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Rule {
    /// Its id, one of [`super::ids`].
    pub id: String,
    /// How much its findings matter; one with weaker evidence may be milder.
    pub severity: Severity,
    /// What it says, in one line.
    pub title: String,
    /// What it means.
    pub meaning: String,
    /// Why it matters for what is measured.
    pub matters: String,
    /// An example, as it stood in the public runs.
    pub example: String,
    /// What to do about it.
    pub fix: String,
    /// Whether isobench mends it by itself.
    pub repairs: Repairs,
    /// Where this is known from.
    pub source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Rules {
    rule: Vec<Rule>,
}

/// Returns every rule, in the order in which findings are shown.
pub fn rules() -> &'static [Rule] {
    static RULES: OnceLock<Rules> = OnceLock::new();
    &RULES.get_or_init(|| table("rules.toml", include_str!("../../../../knowledge/rules.toml"))).rule
}

/// Returns the rule of an id.
pub fn rule(id: &str) -> Option<&'static Rule> {
    rules().iter().find(|rule| rule.id == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::ids;

    #[test]
    fn every_id_has_its_rule_and_every_rule_its_id() {
        let ids: Vec<&str> = ids::ALL.to_vec();
        let table: Vec<&str> = rules().iter().map(|rule| rule.id.as_str()).collect();
        assert_eq!(ids, table, "knowledge/rules.toml and lint::ids list the same rules in the same order");
    }

    #[test]
    fn every_rule_says_all_of_it_in_sentences() {
        for rule in rules() {
            for text in [&rule.meaning, &rule.matters, &rule.example, &rule.fix] {
                assert!(text.ends_with('.') && text.len() > 20, "{}: `{text}`", rule.id);
            }
            assert!(!rule.title.ends_with('.') && rule.title.len() <= 70, "{}: `{}`", rule.id, rule.title);
            assert!(!rule.source.is_empty(), "{}", rule.id);
        }
    }

    #[test]
    fn an_unknown_id_has_no_rule() {
        assert!(rule("no-command").is_some());
        assert!(rule("no-such-rule").is_none());
    }
}
