//! The server's options as a task has them.

use std::collections::BTreeMap;

use isobench_schema::task::OptionValue;

use super::prompts::bare;
use super::{Draft, fate};
use crate::command::GivenOption;
use crate::command::options::{number, whole};
use crate::knowledge::options::ValueKind;
use crate::lint::ids;

impl Draft<'_, '_> {
    /// Returns the server's options, but for those that isobench sets itself.
    pub(super) fn server_options(&mut self) -> BTreeMap<String, OptionValue> {
        let mut options = BTreeMap::new();
        for option in &self.fitted.server {
            if fate::is_of_server_itself(&option.name) {
                continue;
            }
            if option.values.len() > 1 {
                let message = format!("`{} {}` gives the server several values", option.name, option.values.join(" "));
                self.error(
                    ids::FEATURE_CONFLICT,
                    &option.name,
                    message,
                    "write the server's command into a task of your own",
                );
                continue;
            }
            options.insert(bare(&option.name), value(option));
        }
        options
    }
}

/// Returns an option's value: what was given stays as it was written wherever a number would be written otherwise.
pub(super) fn value(option: &GivenOption<'_>) -> OptionValue {
    let [text] = option.values.as_slice() else {
        return if option.values.is_empty() {
            OptionValue::Switch(true)
        } else {
            OptionValue::Text(option.values.join(" "))
        };
    };
    match option.spec.map(|spec| spec.kind) {
        Some(ValueKind::Whole) => match whole(text) {
            Some(number) if number.to_string() == *text => OptionValue::Whole(number),
            _ => OptionValue::Text(text.clone()),
        },
        Some(ValueKind::Number) => match number(text) {
            Some(number) if number.is_finite() && number.to_string() == *text => OptionValue::Number(number),
            _ => OptionValue::Text(text.clone()),
        },
        Some(ValueKind::Text | ValueKind::Bool | ValueKind::Json) | None => OptionValue::Text(text.clone()),
    }
}
