//! Makes a command fit for the programs of one moment: says what they would refuse, and repairs what can be repaired without
//! changing what is measured.
//!
//! Nothing is ever left out: an option stays, moves to the server, gets another name, is shown to be needless, or is refused
//! with a finding that no repair takes care of.

mod demands;
mod guard;
mod listing;
mod place;
mod repair;
mod settle;
mod text;

use isobench_schema::assessment::{Finding, RevisionFacts, Severity};
use isobench_schema::deviation::{Deviation, DeviationKind};
use isobench_schema::tool::{Tool, ToolKind};

use super::options::{Parsed, Refused, Table};
use super::recognise::Named;
use super::words::Word;
use super::{Asked, Fitted, GivenOption, ProgramOf, is_model};
use crate::knowledge::options::{OptionSpec, Program};
use crate::knowledge::translations::Side;
use crate::knowledge::{Knowledge, Translations};
use crate::lint::ids;

/// The public file of conversations that the engines' benchmarks take prompts from.
pub const SHAREGPT: &str = "ShareGPT_V3_unfiltered_cleaned_split.json";

/// Makes a command fit for the programs of the baseline.
///
/// # Errors
/// Returns findings if the command can't be read or names no known benchmark.
pub fn fit<'k>(asked: &Asked<'_>, knowledge: &'k Knowledge) -> Result<Fitted<'k>, Vec<Finding>> {
    fit_by(asked, knowledge.options.programs(), &knowledge.translations)
}

/// Makes a command fit by these tables.
pub(super) fn fit_by<'k>(
    asked: &Asked<'_>,
    programs: &'k [Program],
    translations: &'k Translations,
) -> Result<Fitted<'k>, Vec<Finding>> {
    let text = text::read(asked)?;
    let mut fitter = Fitter::new(*asked, programs, translations, &text);
    fitter.check_variables();
    fitter.locate(&text.client.named);
    fitter.parse(&text);
    let lack = fitter.lack();
    fitter.repair_refused();
    fitter.add_model();
    fitter.meet_demands();
    fitter.list_filled(lack);
    fitter.mirror_engine_options();
    fitter.check_speculation();
    fitter.settle_server();
    fitter.check_models();
    fitter.check_server_options();
    Ok(fitter.fitted)
}

/// A command's program and arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Invocation {
    tool: Tool,
    named: Named,
    words: Vec<Word>,
}

struct Fitter<'k, 'a> {
    asked: Asked<'a>,
    programs: &'k [Program],
    translations: &'k Translations,
    /// The options of the benchmark program; absent if nothing is known of it at its moment.
    client: Option<Table<'k>>,
    /// The options of the server at the baseline.
    server: Option<Table<'k>>,
    /// Options that a parser refused, with whose parser.
    refused: Vec<(Side, Refused<'k>)>,
    /// Every option that the commands give, taken or refused, with its first value.
    mentioned: Vec<(String, Option<String>)>,
    /// The benchmark program that the command names.
    named: Tool,
    /// The model that the benchmark's command names.
    client_model: Option<String>,
    fitted: Fitted<'k>,
}

impl<'k, 'a> Fitter<'k, 'a> {
    fn new(asked: Asked<'a>, programs: &'k [Program], translations: &'k Translations, text: &text::Text) -> Self {
        let fitted = Fitted {
            tool: text.client.tool,
            place: String::new(),
            program_of: ProgramOf::Baseline,
            variables: text.variables.clone(),
            client: Vec::new(),
            server: Vec::new(),
            superseded: Vec::new(),
            refused: Vec::new(),
            has_server: false,
            moment: asked.baseline.committed.clone(),
            options: Table::empty(),
            repairs: text.repairs.clone(),
            findings: text.findings.clone(),
        };
        Self {
            asked,
            programs,
            translations,
            client: None,
            server: None,
            refused: Vec::new(),
            mentioned: Vec::new(),
            named: text.client.tool,
            client_model: None,
            fitted,
        }
    }

    fn program(&self, tool: Tool) -> Option<&'k Program> {
        self.programs.iter().find(|program| program.tool == tool)
    }

    fn table(&self, side: Side) -> Option<&Table<'k>> {
        match side {
            Side::Client => self.client.as_ref(),
            Side::Server => self.server.as_ref(),
        }
    }

    /// Returns the program of a side.
    fn tool(&self, side: Side) -> Tool {
        match side {
            Side::Client => self.fitted.tool,
            Side::Server => self.fitted.tool.server(),
        }
    }

    /// Returns the revision whose benchmark program is run.
    fn revision(&self) -> &'a RevisionFacts {
        match (self.fitted.program_of, self.asked.human) {
            (ProgramOf::Human, Some(human)) => human,
            _ => self.asked.baseline,
        }
    }

    /// Returns the table of a program at a revision; absent if nothing is known of it then.
    fn table_at(&self, tool: Tool, revision: &RevisionFacts) -> Option<Table<'k>> {
        let program = self.program(tool)?;
        program.places_at(&revision.committed).next()?;
        let table = Table::at(program, &revision.committed);
        (!table.specs().is_empty()).then_some(table)
    }

    /// Reads the arguments of both commands.
    fn parse(&mut self, text: &text::Text) {
        self.client = self.table_at(self.fitted.tool, self.revision()).filter(|_| !self.fitted.place.is_empty());
        self.fitted.moment = self.revision().committed.clone();
        self.fitted.options = self.client.clone().unwrap_or_else(Table::empty);
        self.server = self.table_at(self.fitted.tool.server(), self.asked.baseline);
        self.fitted.has_server = self.server.is_some();
        self.parse_side(Side::Client, &text.client);
        if let Some(server) = &text.server {
            self.parse_side(Side::Server, server);
        } else if self.server.is_none() {
            self.find_no_server();
        }
    }

    /// There is nothing that isobench's own client could load.
    fn find_no_server(&mut self) {
        let tool = self.fitted.tool.server();
        let message = format!(
            "there is no `{tool}` at {}, and isobench loads an engine through its server",
            label(self.asked.baseline)
        );
        let fix = "name a revision that has a server".to_owned();
        self.fitted.findings.push(finding(ids::SCRIPT_MISSING, tool.as_str(), message, fix));
    }

    fn parse_side(&mut self, side: Side, invocation: &Invocation) {
        let Some(table) = self.table(side) else {
            self.refuse_all(side, invocation);
            return;
        };
        let mut parsed = table.parse(&invocation.words);
        self.settle_parsed(side, &mut parsed);
        let Parsed { given, operands, refused } = parsed;
        let all = given.iter().chain(refused.iter().map(|refused| &refused.option));
        if side == Side::Client {
            let model = all.clone().rfind(|option| is_model(&option.name));
            self.client_model = model.and_then(|option| option.values.first().cloned());
        }
        self.mentioned.extend(all.map(|option| (option.name.clone(), option.values.first().cloned())));
        self.options(side).extend(given);
        self.refused.extend(refused.into_iter().map(|refused| (side, refused)));
        self.take_operands(side, operands);
    }

    /// Lists every option as refused, because there is no program that could take them.
    fn refuse_all(&mut self, side: Side, invocation: &Invocation) {
        let tool = self.tool(side);
        if side == Side::Server {
            self.find_no_server();
        } else if !self.fitted.place.is_empty() {
            let message = format!("no options of `{tool}` are known at {}", label(self.revision()));
            let fix = "name a revision that has the program".to_owned();
            self.fitted.findings.push(finding(ids::SCRIPT_MISSING, tool.as_str(), message, fix));
        }
        let Parsed { refused, operands, .. } = Table::empty().parse(&invocation.words);
        self.fitted.refused.extend(refused.into_iter().map(|refused| refused.option));
        let option = |word: String| GivenOption { written: word.clone(), name: word, values: vec![], spec: None };
        self.fitted.refused.extend(operands.into_iter().map(option));
    }

    /// `vllm serve` takes the model without an option; nothing else takes a word without one.
    fn take_operands(&mut self, side: Side, operands: Vec<String>) {
        let mut operands = operands.into_iter();
        if side == Side::Server
            && self.fitted.server.iter().all(|option| !is_model(&option.name))
            && let Some(model) = operands.next()
        {
            let mut option = self.model_option(&model);
            option.written = model;
            self.fitted.server.insert(0, option);
        }
        for operand in operands {
            let option = GivenOption { written: operand.clone(), name: operand.clone(), values: vec![], spec: None };
            let tool = self.tool(side);
            let message = format!("`{tool}` has no use for the word `{operand}`, which belongs to no option");
            let fix = "quote it with the option that it belongs to, or take it out".to_owned();
            self.fitted.findings.push(finding(ids::OPTION_REFUSED, &operand, message, fix));
            self.fitted.refused.push(option);
        }
    }

    /// Returns the option that tells the server its model.
    fn model_option(&self, model: &str) -> GivenOption<'k> {
        let spec = self
            .server
            .as_ref()
            .and_then(|table| ["--model", "--model-path"].into_iter().find_map(|name| table.get(name)));
        let name = spec.and_then(|spec| spec.names.first()).map_or("--model", String::as_str);
        GivenOption { written: String::new(), name: name.to_owned(), values: vec![model.to_owned()], spec }
    }

    /// Tells the server the model that the benchmark names.
    fn add_model(&mut self) {
        if self.fitted.server.iter().any(|option| is_model(&option.name)) {
            return;
        }
        let named = last(&self.fitted.client, "--model")
            .or_else(|| last(&self.fitted.client, "--model-path"))
            .or_else(|| last(&self.fitted.client, "--tokenizer").filter(|_| self.has_no_model_option()))
            .map(ToOwned::to_owned);
        let model = match (named, self.asked.model) {
            (Some(named), _) => named,
            (None, Some(model)) => {
                self.repair(
                    DeviationKind::OptionAdded,
                    "server.model",
                    ("no model", model),
                    "the commands name none, and the row does",
                );
                model.to_owned()
            }
            (None, None) => match self.default_model() {
                Some(model) => model,
                None => return,
            },
        };
        let option = self.model_option(&model);
        self.fitted.server.insert(0, option);
    }

    /// Returns whether the benchmark program takes no model, because the server alone has one.
    fn has_no_model_option(&self) -> bool {
        self.client.as_ref().is_none_or(|table| table.get("--model").is_none())
    }

    /// Returns the model that an offline benchmark takes when it is given none.
    fn default_model(&self) -> Option<String> {
        let default = self.client.as_ref()?.get("--model")?.default.clone()?;
        (self.fitted.tool.kind() != ToolKind::Serving).then_some(default)
    }

    /// Gives the server that stands in for an offline benchmark the options that the benchmark gives its engine.
    fn mirror_engine_options(&mut self) {
        if self.fitted.tool.kind() == ToolKind::Serving {
            return;
        }
        let Some(server) = &self.server else { return };
        let mut mirrored = Vec::new();
        for option in &self.fitted.client {
            let taken = self.fitted.server.iter().any(|known| settle::key(&known.name) == settle::key(&option.name));
            if taken || is_model(&option.name) || OFFLINE_OWN.contains(&option.name.as_str()) {
                continue;
            }
            if let Ok(option) = server.make(&option.name, option.values.clone()) {
                mirrored.push(option);
            }
        }
        self.fitted.server.extend(mirrored);
        self.add_own_options();
    }

    /// Tells the server what an offline benchmark tells its engine by itself.
    fn add_own_options(&mut self) {
        let moment = &self.asked.baseline.committed;
        for row in &self.translations.own {
            let holds = row.since.as_ref().is_none_or(|since| since <= moment)
                && row.until.as_ref().is_none_or(|until| moment < until);
            let given = |name: &String| self.fitted.server.iter().any(|option| option.name == *name);
            if !holds || !row.tools.contains(&self.fitted.tool) || row.unless.iter().chain([&row.option]).any(given) {
                continue;
            }
            if let Some(Ok(made)) = self.server.as_ref().map(|table| table.make(&row.option, vec![])) {
                let run = format!("`{} {}`", self.tool(Side::Server), row.option);
                let subject = repair::subject(Side::Server, &row.option);
                self.repair(DeviationKind::OptionAdded, &subject, ("nothing", &run), &row.reason);
                self.fitted.server.push(made);
            }
        }
    }

    fn options(&mut self, side: Side) -> &mut Vec<GivenOption<'k>> {
        match side {
            Side::Client => &mut self.fitted.client,
            Side::Server => &mut self.fitted.server,
        }
    }

    /// Notes what was done.
    fn repair(&mut self, kind: DeviationKind, subject: &str, (asked, run): (&str, &str), reason: &str) {
        self.fitted.repairs.push(deviation(kind, subject, (asked, run), reason));
    }
}

/// Options of offline benchmarks that a server has too, but with which it does something else.
const OFFLINE_OWN: [&str; 4] = ["--host", "--port", "--seed", "--profile"];

/// Returns the first value of the last option of that name: the one that counts.
pub(super) fn last<'o>(options: &'o [GivenOption<'_>], name: &str) -> Option<&'o str> {
    options.iter().rev().find(|option| option.name == name)?.values.first().map(String::as_str)
}

/// Returns the values that an option allows, for people.
fn choices(spec: &OptionSpec) -> String {
    spec.choices.iter().map(|choice| format!("`{choice}`")).collect::<Vec<_>>().join(", ")
}

/// Returns a revision for people: `0032903a5bb7 (after v0.8.4)`.
fn label(revision: &RevisionFacts) -> String {
    match &revision.after_release {
        Some(release) => format!("{} (after {release})", revision.commit.short()),
        None => revision.commit.short().to_owned(),
    }
}

/// Returns an error that nothing has repaired yet.
pub(super) fn finding(rule: &str, subject: &str, message: String, fix: String) -> Finding {
    Finding {
        rule: rule.to_owned(),
        severity: Severity::Error,
        message,
        subject: subject.to_owned(),
        evidence: Vec::new(),
        fix,
        repaired: false,
    }
}

pub(super) fn deviation(kind: DeviationKind, subject: &str, (asked, run): (&str, &str), reason: &str) -> Deviation {
    Deviation {
        kind,
        subject: subject.to_owned(),
        asked: asked.to_owned(),
        run: run.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests;
