//! What the command says, as rules ask for it.

use std::collections::BTreeMap;

use isobench_schema::tool::{Tool, ToolKind};

use crate::command::{Fitted, GivenOption};

/// The command's options and variables, whatever program they go to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Given {
    /// The benchmark program.
    pub tool: Option<Tool>,
    /// The model that the command names.
    pub model: Option<String>,
    /// Options with their values, those that nothing takes left out.
    pub options: Vec<(String, Vec<String>)>,
    /// Options that nothing takes at the baseline.
    pub refused: Vec<(String, Vec<String>)>,
    /// Variables set before the command.
    pub variables: BTreeMap<String, String>,
}

/// Names of one option, the one that rules use first.
const SPELLINGS: &[&[&str]] = &[
    &["--tensor-parallel-size", "-tp", "--tp", "--tp-size"],
    &["--pipeline-parallel-size", "-pp", "--pp", "--pp-size"],
    &["--data-parallel-size", "-dp", "--dp", "--dp-size"],
    &["--num-prompts", "--num-prompt"],
    &["--model", "--model-path"],
    &["--quantization", "-q"],
    &["--enable-expert-parallel", "--enable-ep-moe"],
];

impl Given {
    /// Returns what a command says after it was made fit.
    pub fn of(fitted: &Fitted<'_>) -> Self {
        let read = |option: &GivenOption<'_>| (spelling(&option.name), option.values.clone());
        let given = fitted.server.iter().chain(&fitted.client).chain(&fitted.superseded);
        Self {
            tool: Some(fitted.tool),
            model: fitted.model().map(ToOwned::to_owned),
            options: given.map(read).collect(),
            refused: fitted.refused.iter().map(read).collect(),
            variables: fitted.variables.clone(),
        }
    }

    /// Adds an option, under the spelling that rules use.
    pub fn push(&mut self, name: &str, values: Vec<String>) {
        self.options.push((spelling(name), values));
    }

    /// Returns the values of an option that something takes; none if it isn't given.
    pub fn values(&self, name: &str) -> Option<&[String]> {
        find(&self.options, name)
    }

    /// Returns the values of an option, whether something takes it or not.
    pub fn asked(&self, name: &str) -> Option<&[String]> {
        find(&self.options, name).or_else(|| find(&self.refused, name))
    }

    /// Returns an option's only value as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.values(name)?.first()?.parse().ok()
    }

    /// Puts a tensor parallel size in the place of whatever parallel sizes the command asks for.
    pub(crate) fn set_parallel(&mut self, tensor_parallel: u32) {
        let parallel = ["--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"];
        let is_other = |(name, _): &(String, Vec<String>)| !parallel.contains(&name.as_str());
        self.options.retain(is_other);
        self.refused.retain(is_other);
        self.options.push(("--tensor-parallel-size".to_owned(), vec![tensor_parallel.to_string()]));
    }

    /// Returns how many devices the command asks for: the product of its parallel sizes.
    pub fn devices(&self) -> u32 {
        let size = |name| self.asked(name).and_then(|values| values.first()?.parse::<u32>().ok()).unwrap_or(1).max(1);
        size("--tensor-parallel-size").saturating_mul(size("--pipeline-parallel-size"))
    }

    /// Returns what the program measures.
    pub fn kind(&self) -> Option<ToolKind> {
        self.tool.map(Tool::kind)
    }
}

fn find<'o>(options: &'o [(String, Vec<String>)], name: &str) -> Option<&'o [String]> {
    options.iter().find(|(given, _)| given == name).map(|(_, values)| values.as_slice())
}

fn spelling(name: &str) -> String {
    let dashed = name.replace('_', "-");
    let main = SPELLINGS.iter().find(|names| names.contains(&dashed.as_str())).and_then(|names| names.first());
    main.map_or(dashed, |main| (*main).to_owned())
}
