//! Repairs of options that a parser refuses.

use isobench_schema::deviation::DeviationKind;
use serde_json::{Map, Value};

use super::listing::{is_unfilled, placeholder};
use super::settle::key;
use super::{Fitter, finding};
use crate::command::options::{Refusal, Refused, Table, is_truth};
use crate::command::{GivenOption, ProgramOf};
use crate::knowledge::translations::{Side, Superseded, Translation};
use crate::lint::ids;

impl<'k> Fitter<'k, '_> {
    /// Repairs every refused option, or lists it as refused.
    pub(super) fn repair_refused(&mut self) {
        for (side, refused) in std::mem::take(&mut self.refused) {
            let mut found = self.refusal(side, &refused);
            found.repaired = found.rule != ids::PLACEHOLDER && self.repair_one(side, &refused);
            if found.repaired {
                // The last repair is this one's.
                found.fix = self.fitted.repairs.last().map_or(found.fix, |repair| format!("write {}", repair.run));
            } else {
                found.fix += &self.meant(side, &refused);
                self.fitted.refused.push(refused.option);
            }
            self.fitted.findings.push(found);
        }
        self.find_unfilled();
    }

    /// Finds values that the parser takes and that were never filled in, and models of somebody's own machine.
    fn find_unfilled(&mut self) {
        let mut found = Vec::new();
        for option in self.fitted.client.iter().chain(&self.fitted.server) {
            for value in &option.values {
                if is_unfilled(value) {
                    found.push(placeholder(&option.name, value));
                } else if is_own_path(value) && is_input(&option.name) {
                    found.push(finding(
                        ids::PRIVATE_PATH,
                        value,
                        format!("`{}` names `{value}`, a path of somebody's own machine", option.name),
                        "name what is published, such as a model of the hub".to_owned(),
                    ));
                }
            }
        }
        self.fitted.findings.extend(found);
    }

    /// Returns whether an option was repaired.
    fn repair_one(&mut self, side: Side, refused: &Refused<'k>) -> bool {
        self.drop_truth(side, refused)
            || self.move_to_server(side, refused)
            || self.translate(side, refused)
            || self.supersede(side, refused)
            || self.leave_to_default(side, refused)
    }

    /// A switch that is given `True` is given, and one that is given `False` is not.
    fn drop_truth(&mut self, side: Side, refused: &Refused<'k>) -> bool {
        let Refused { option, why: Refusal::ValueUnexpected } = refused else { return false };
        let [value] = option.values.as_slice() else { return false };
        let Some(table) = self.table(side).filter(|_| is_truth(value)) else { return false };
        if value.eq_ignore_ascii_case("true") {
            let Ok(made) = table.make(&option.name, vec![]) else { return false };
            self.put(side, option, made, "a switch has no value: it is on where it stands");
            return true;
        }
        let negative = option.name.replacen("--", "--no-", 1);
        if let Ok(made) = table.make(&negative, vec![]) {
            self.put(side, option, made, "a switch has no value: this is how it is switched off");
            return true;
        }
        let reason = "a switch has no value, and is off where it doesn't stand";
        self.supersede_as(side, option, reason);
        true
    }

    /// Gives the option another name by the table of translations.
    fn translate(&mut self, side: Side, refused: &Refused<'k>) -> bool {
        let translations = self.translations;
        for row in &translations.translation {
            if !self.counts(row, side, &refused.option) {
                continue;
            }
            let Some(table) = self.table(row.side) else { continue };
            if !row.spread.is_empty() {
                if let Some(options) = self.spread(row, table, &refused.option) {
                    self.put_several(row.side, &refused.option, options, &row.reason);
                    return true;
                }
                continue;
            }
            if let Some(made) = self.say(row, table, &refused.option) {
                let with = self.companions(row, table);
                let Some(with) = with else { continue };
                let mut option = refused.option.clone();
                if row.json_key.is_some()
                    && let Some(at) = self.options(row.side).iter().position(|known| known.name == row.to)
                {
                    // Several options become one.
                    let known = self.options(row.side).remove(at);
                    let both = [known.written, option.written];
                    option.written = both.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
                }
                self.put(row.side, &option, made, &row.reason);
                for option in with {
                    let shown = format!("`{}`", shown(&option.name, &option.values));
                    let subject = subject(row.side, &option.name);
                    // Before the repair itself, which is the last one.
                    let at = self.fitted.repairs.len().saturating_sub(1);
                    let added = super::deviation(
                        DeviationKind::OptionAdded,
                        &subject,
                        ("nothing", &shown),
                        &format!("`{}` needs it", row.to),
                    );
                    self.fitted.repairs.insert(at, added);
                    self.options(row.side).push(option);
                }
                return true;
            }
        }
        false
    }

    /// Returns whether a row is about this option, here.
    fn counts(&self, row: &Translation, side: Side, option: &GivenOption<'_>) -> bool {
        // A server's option never becomes a client's.
        (side == Side::Client || row.side == Side::Server)
            && row.engine == self.fitted.tool.engine()
            && row.from == option.name
            && (row.kinds.is_empty() || row.kinds.contains(&self.fitted.tool.kind()))
            && row.value.as_deref().is_none_or(|value| option.values == [value])
            && row.when.iter().all(|(name, value)| self.mentions(name, Some(value)))
            && !row.unless.iter().any(|name| self.mentions(name, None))
    }

    /// Returns whether the commands give an option, with a value, whatever became of it.
    fn mentions(&self, name: &str, value: Option<&str>) -> bool {
        self.mentioned.iter().any(|(known, found)| known == name && (value.is_none() || value == found.as_deref()))
    }

    /// Says an option as a row says it, if the program takes that.
    fn say(&self, row: &'k Translation, table: &Table<'k>, option: &GivenOption<'k>) -> Option<GivenOption<'k>> {
        let values = match (&row.to_value, &row.json_key) {
            (_, Some(key)) => vec![self.json_with(row, key, option)?],
            (Some(value), None) if value.is_empty() => vec![],
            (Some(value), None) => vec![value.clone()],
            (None, None) => {
                let called = |value: &String| row.values.get(value).unwrap_or(value).clone();
                option.values.iter().map(called).collect()
            }
        };
        // An option that is already there keeps its value: two would contradict each other.
        if row.json_key.is_none() && self.given(row.side, &row.to) {
            return None;
        }
        table.make(&row.to, values).ok()
    }

    /// Returns the options that the keys of a JSON object are, if each is one and the program takes it.
    fn spread(&self, row: &Translation, table: &Table<'k>, option: &GivenOption<'_>) -> Option<Vec<GivenOption<'k>>> {
        let object: Map<String, Value> = serde_json::from_str(option.values.first()?).ok()?;
        let mut options: Vec<GivenOption<'k>> = Vec::new();
        for (key, value) in object {
            let name = row.spread.get(&key)?;
            let text = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
            let text = row.values.get(&text).cloned().unwrap_or(text);
            if self.given(row.side, name) || options.iter().any(|known| known.name == *name) {
                return None;
            }
            options.push(table.make(name, vec![text]).ok()?);
        }
        (!options.is_empty()).then_some(options)
    }

    fn given(&self, side: Side, name: &str) -> bool {
        let options = if side == Side::Client { &self.fitted.client } else { &self.fitted.server };
        options.iter().any(|option| option.name == name)
    }

    /// Returns the JSON of a row's option with this option's value put in.
    fn json_with(&self, row: &Translation, key: &str, option: &GivenOption<'_>) -> Option<String> {
        let known = if row.side == Side::Client { &self.fitted.client } else { &self.fitted.server };
        let mut object: Map<String, Value> = match known.iter().find(|known| known.name == row.to) {
            Some(known) => serde_json::from_str(known.values.first()?).ok()?,
            None => Map::new(),
        };
        let value = row.to_value.as_ref().or(option.values.first())?;
        // Numbers and objects stay what they are; everything else is a text.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone()));
        object.insert(key.to_owned(), value);
        serde_json::to_string(&object).ok()
    }

    /// Returns the options that a row needs beside its own and that aren't given; `None` if one of them is given otherwise.
    fn companions(&self, row: &Translation, table: &Table<'k>) -> Option<Vec<GivenOption<'k>>> {
        let mut added = Vec::new();
        for (name, value) in &row.with {
            let options = if row.side == Side::Client { &self.fitted.client } else { &self.fitted.server };
            match super::last(options, name) {
                Some(given) if given == value => {}
                Some(_) => return None,
                None if self.given(row.side, name) => {}
                None => {
                    let values = if value.is_empty() { vec![] } else { vec![value.clone()] };
                    added.push(table.make(name, values).ok()?);
                }
            }
        }
        Some(added)
    }

    /// Moves an engine's option from the client to the server.
    fn move_to_server(&mut self, side: Side, refused: &Refused<'k>) -> bool {
        let Refused { option, why: Refusal::Unknown | Refusal::Ambiguous(_) } = refused else { return false };
        if side == Side::Server || CLIENT_OWN.contains(&option.name.as_str()) {
            return false;
        }
        let Some(made) = self.server.as_ref().map(|table| table.make(&option.name, option.values.clone())) else {
            return false;
        };
        match made {
            Ok(made)
                if self.fitted.server.iter().any(|known| known.name == made.name && known.values == made.values) =>
            {
                self.supersede_as(side, option, "the server's command gives the same");
                true
            }
            Ok(made) if self.fitted.server.iter().any(|known| key(&known.name) == key(&made.name)) => false,
            Ok(made) => {
                self.put(Side::Server, option, made, "it is an option of the engine, which the server holds");
                true
            }
            // The server knows the option and refuses its value: what can be done then is decided there.
            Err(Refused { why: Refusal::Unknown, .. }) => false,
            Err(mut refused) => {
                refused.option.written.clone_from(&option.written);
                let mut found = self.refusal(Side::Server, &refused);
                found.repaired = self.repair_one(Side::Server, &refused);
                let repaired = found.repaired;
                self.fitted.findings.push(found);
                repaired
            }
        }
    }

    /// Lists an option as needless where the table says why.
    fn supersede(&mut self, side: Side, refused: &Refused<'k>) -> bool {
        let Some(row) = self.translations.superseded.iter().find(|row| self.needless(row, &refused.option)) else {
            return false;
        };
        self.supersede_as(side, &refused.option, &row.reason);
        true
    }

    fn needless(&self, row: &Superseded, option: &GivenOption<'_>) -> bool {
        let moment = &self.asked.baseline.committed;
        row.engine == self.fitted.tool.engine()
            && row.option == option.name
            && (row.kinds.is_empty() || row.kinds.contains(&self.fitted.tool.kind()))
            && (row.values.is_empty() || option.values.first().is_some_and(|value| row.values.contains(value)))
            && row.since.as_ref().is_none_or(|since| since <= moment)
            && row.until.as_ref().is_none_or(|until| moment < until)
            && (row.needs.is_empty() || row.needs.iter().any(|name| self.mentions(name, None)))
    }

    /// Leaves a choice to each revision's own default, where the commit itself adds the value and makes it the default: the
    /// comparison is then the one that the commit makes, with the same command on every arm.
    fn leave_to_default(&mut self, side: Side, refused: &Refused<'k>) -> bool {
        let Refused { option, why: Refusal::NotAmong(_) } = refused else { return false };
        let [value] = option.values.as_slice() else { return false };
        let here = option.spec.and_then(|spec| spec.default.as_deref());
        let there =
            self.human_table(side).and_then(|table| table.get(&option.name)).and_then(|spec| spec.default.as_deref());
        let (Some(here), true) = (here, there == Some(value.as_str())) else { return false };
        let reason = format!(
            "the commit itself adds `{value}` and makes it the default; the baseline's default is `{here}`: without the \
             option every arm takes its own default, which is the comparison that the commit makes"
        );
        self.supersede_as(side, option, &reason);
        true
    }

    /// Returns the options of a side's program at the human commit.
    pub(super) fn human_table(&self, side: Side) -> Option<Table<'k>> {
        let human = self.asked.human?;
        if side == Side::Client && self.fitted.program_of == ProgramOf::Human {
            return None;
        }
        self.table_at(self.tool(side), human)
    }

    /// Puts a repaired option in its place, and notes the repair.
    fn put(&mut self, side: Side, asked: &GivenOption<'k>, mut made: GivenOption<'k>, reason: &str) {
        let run = format!("`{} {}`", self.tool(side), shown(&made.name, &made.values));
        let subject = subject(side, &made.name);
        let asked_text = format!("`{}`", asked.written);
        made.written.clone_from(&asked.written);
        self.options(side).push(made);
        self.repair(DeviationKind::OptionTranslated, &subject, (&asked_text, &run), reason);
    }

    /// Puts the options that one became in their places: the first of them stands for it.
    fn put_several(&mut self, side: Side, asked: &GivenOption<'k>, mut options: Vec<GivenOption<'k>>, reason: &str) {
        let shown: Vec<String> = options.iter().map(|option| shown(&option.name, &option.values)).collect();
        let run = format!("`{} {}`", self.tool(side), shown.join(" "));
        if let Some(first) = options.first_mut() {
            first.written.clone_from(&asked.written);
        }
        self.options(side).extend(options);
        let asked_text = format!("`{}`", asked.written);
        self.repair(DeviationKind::OptionTranslated, &subject(side, &asked.name), (&asked_text, &run), reason);
    }

    fn supersede_as(&mut self, side: Side, option: &GivenOption<'k>, reason: &str) {
        let subject = subject(side, &option.name);
        self.fitted.superseded.push(option.clone());
        let asked = format!("`{}`", option.written);
        self.repair(DeviationKind::OptionSuperseded, &subject, (&asked, "no option"), reason);
    }
}

/// Options that a server knows by the same name, and that mean another thing on a client's command.
const CLIENT_OWN: [&str; 6] = ["--host", "--port", "--seed", "--profile", "--input-len", "--output-len"];

/// Returns an option for people.
pub(super) fn shown(name: &str, values: &[String]) -> String {
    std::iter::once(name).chain(values.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// Returns the name of an option in a deviation: `server.dtype`.
pub(super) fn subject(side: Side, name: &str) -> String {
    let side = if side == Side::Client { "client" } else { "server" };
    format!("{side}.{}", name.trim_start_matches('-'))
}

fn is_own_path(value: &str) -> bool {
    ["/data/", "/home/", "/Users/", "/root/", "/scratch/", "/mnt/", "~/", "C:\\"]
        .iter()
        .any(|start| value.starts_with(start))
}

fn is_input(name: &str) -> bool {
    matches!(name, "--model" | "--model-path" | "--tokenizer" | "--dataset" | "--dataset-path" | "--speculative-model")
}
