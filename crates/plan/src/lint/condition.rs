//! Conditions of rows in tables, and whether a task meets them.

use isobench_schema::tool::ToolKind;
use serde::Deserialize;

use super::case::Case;
use super::pattern;

/// What a task must be like. Everything that is given must hold.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Condition {
    /// An option that the command gives, by its main name.
    pub option: Option<String>,
    /// A variable that the command sets.
    pub variable: Option<String>,
    /// A pattern that the option's or variable's value matches.
    pub value: Option<String>,
    /// A pattern that the option's or variable's value doesn't match.
    pub not_value: Option<String>,
    /// A variable that the command doesn't set.
    pub variable_unset: Option<String>,
    /// An option that the command doesn't give.
    pub without: Option<String>,
    /// A further option that the command gives.
    pub with: Option<String>,
    /// Whether an option that nothing takes counts as given.
    #[serde(default)]
    pub also_refused: bool,
    /// A trait of the model, such as `moe`.
    #[serde(rename = "trait")]
    pub model_trait: Option<String>,
    /// A trait that the model doesn't have.
    pub no_trait: Option<String>,
    /// A pattern of the model's name, in lower case.
    pub model: Option<String>,
    /// Patterns of the model's name, one of which matches.
    #[serde(default)]
    pub any_model: Vec<String>,
    /// What the benchmark program measures.
    pub kind: Option<ToolKind>,
    /// The fewest devices that the command asks for.
    pub devices: Option<u32>,
    /// A compute capability below which the planned NVIDIA device is.
    pub capability_below: Option<(u32, u32)>,
    /// A compute capability that the planned NVIDIA device has at least.
    pub capability_from: Option<(u32, u32)>,
}

impl Condition {
    /// Returns whether a task meets it; absent: too little is known.
    pub(super) fn holds(&self, case: &Case<'_>) -> Option<bool> {
        let parts = [self.command(case), self.of_model(case), self.of_device(case)];
        if parts.contains(&Some(false)) {
            return Some(false);
        }
        parts.into_iter().collect::<Option<Vec<bool>>>().map(|_| true)
    }

    fn command(&self, case: &Case<'_>) -> Option<bool> {
        let asks = self.option.is_some()
            || self.variable.is_some()
            || self.variable_unset.is_some()
            || self.without.is_some()
            || self.with.is_some()
            || self.kind.is_some()
            || self.devices.is_some();
        if !asks {
            return Some(true);
        }
        let given = case.given?;
        let fits = |found: &str| {
            self.value.as_deref().is_none_or(|wanted| pattern::matches(wanted, found))
                && self.not_value.as_deref().is_none_or(|unwanted| !pattern::matches(unwanted, found))
        };
        let values = |name| if self.also_refused { given.asked(name) } else { given.values(name) };
        let option =
            self.option.as_deref().is_none_or(|name| values(name).is_some_and(|values| fits(&values.join(" "))));
        let variable =
            self.variable.as_ref().is_none_or(|name| given.variables.get(name).is_some_and(|value| fits(value)));
        let unset = self.variable_unset.as_ref().is_none_or(|name| !given.variables.contains_key(name));
        let with = self.with.as_deref().is_none_or(|name| values(name).is_some());
        let without = self.without.as_deref().is_none_or(|name| given.asked(name).is_none());
        let kind = self.kind.is_none_or(|kind| given.kind() == Some(kind));
        let devices = self.devices.is_none_or(|devices| given.devices() >= devices);
        Some(option && variable && unset && with && without && kind && devices)
    }

    fn of_model(&self, case: &Case<'_>) -> Option<bool> {
        let patterns: Vec<&String> = self.model.iter().chain(&self.any_model).collect();
        let named = match case.model().map(str::to_lowercase) {
            _ if patterns.is_empty() => Some(true),
            Some(name) => Some(patterns.iter().any(|wanted| pattern::matches(wanted, &name))),
            None => None,
        };
        if named == Some(false) || (self.model_trait.is_none() && self.no_trait.is_none()) {
            return named;
        }
        let has = |name: &String| case.traits.and_then(|traits| traits.has(name));
        let with = self.model_trait.as_ref().map_or(Some(true), has)?;
        let without = self.no_trait.as_ref().map_or(Some(true), |name| has(name).map(|has| !has))?;
        Some(with && without)
    }

    fn of_device(&self, case: &Case<'_>) -> Option<bool> {
        if self.capability_below.is_none() && self.capability_from.is_none() {
            return Some(true);
        }
        let own = case.device?.capability()?;
        Some(
            self.capability_below.is_none_or(|bound| own < bound)
                && self.capability_from.is_none_or(|bound| own >= bound),
        )
    }
}

/// Returns whether one of the conditions is met; absent: one of them may be.
pub(crate) fn any(conditions: &[Condition], case: &Case<'_>) -> Option<bool> {
    let answers: Vec<Option<bool>> = conditions.iter().map(|condition| condition.holds(case)).collect();
    if answers.contains(&Some(true)) {
        return Some(true);
    }
    answers.into_iter().collect::<Option<Vec<bool>>>().map(|_| false)
}

/// Returns whether all conditions are met; absent: too little is known.
pub(crate) fn all(conditions: &[Condition], case: &Case<'_>) -> Option<bool> {
    let answers: Vec<Option<bool>> = conditions.iter().map(|condition| condition.holds(case)).collect();
    if answers.contains(&Some(false)) {
        return Some(false);
    }
    answers.into_iter().collect::<Option<Vec<bool>>>().map(|_| true)
}
