//! From words to our own flags, the flags of other clients, and what neither knows.

use isobench_plan::command::GivenOption;
use isobench_plan::command::options::{Refusal, Refused, Table};
use isobench_plan::command::recognise::{Recognised, recognise};
use isobench_plan::command::words::{self, SimpleCommand, Word};
use isobench_plan::knowledge::Knowledge;
use isobench_plan::knowledge::load_flags::CLIENTS;
use isobench_plan::knowledge::options::{Program, Takes};
use isobench_plan::nearest::nearest_flag;
use isobench_schema::tool::{Tool, ToolKind};

use super::own::OwnFlags;
use super::{Fate, FlagRow};

/// A client whose flags aren't known.
const MULTI_TURN: &str = "benchmark_serving_multi_turn.py";

/// A command line, split.
#[derive(Debug)]
pub(super) struct Split<'k> {
    /// Our own words.
    pub(super) own: Vec<String>,
    /// Flags of other clients, in their order.
    pub(super) foreign: Vec<GivenOption<'k>>,
    /// The client whose whole command this is.
    pub(super) tool: Option<Tool>,
    /// The options that the clients in question have.
    pub(super) table: Table<'k>,
    /// What was taken for what, so far.
    pub(super) rows: Vec<FlagRow>,
    /// What can't be understood.
    pub(super) problems: Vec<String>,
}

impl Split<'_> {
    fn own(&mut self, written: String, words: impl IntoIterator<Item = String>) {
        self.own.extend(words);
        self.rows.push(FlagRow { written, fate: Fate::Own, note: None });
    }

    fn ignored(&mut self, written: String, note: &str) {
        self.rows.push(FlagRow { written, fate: Fate::Ignored, note: Some(note.to_owned()) });
    }

    fn problem(&mut self, written: String, why: impl Into<String>) {
        let why = why.into();
        self.problems.push(format!("`{written}`: {why}"));
        self.rows.push(FlagRow { written, fate: Fate::Refused, note: Some(why) });
    }
}

/// Returns whether a word looks like where a server is.
pub(super) fn is_url(word: &str) -> bool {
    let is_port = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let is_one = !word.contains(char::is_whitespace);
    is_one
        && (word.contains("://") || !word.contains('/') && word.rsplit_once(':').is_some_and(|(_, port)| is_port(port)))
}

/// Splits the words after `load`.
pub(super) fn split<'k>(words: &[String], own: &OwnFlags, knowledge: &'k Knowledge) -> Split<'k> {
    let programs: Vec<&Program> = CLIENTS.iter().filter_map(|tool| knowledge.options.program(*tool)).collect();
    let table = Table::ever(&programs);
    let mut split =
        Split { own: Vec::new(), foreign: Vec::new(), tool: None, table, rows: Vec::new(), problems: Vec::new() };
    let mut rest = words;
    while let Some((first, after)) = rest.split_first() {
        rest = if first == "--" {
            command(&mut split, after, own, knowledge);
            &[]
        } else if !first.starts_with('-') || first == "-" {
            operand(&mut split, first, after, own, knowledge)
        } else if let Some(used) = own_flag(&mut split, own, first, after) {
            after.get(used..).unwrap_or_default()
        } else {
            foreign_flag(&mut split, own, first, after)
        };
    }
    split
}

/// Reads a word that is no flag: the server's URL, or the beginning of another client's command.
fn operand<'w, 'k>(
    split: &mut Split<'k>,
    first: &str,
    after: &'w [String],
    own: &OwnFlags,
    knowledge: &'k Knowledge,
) -> &'w [String] {
    let words: Vec<String> = std::iter::once(first.to_owned()).chain(after.iter().cloned()).collect();
    if is_url(first) {
        let url = if first.contains("://") { first.to_owned() } else { format!("http://{first}") };
        split.own(first.to_owned(), [url]);
        return after;
    }
    if is_multi_turn(&words) || recognise(&simple(&words)).is_ok() {
        command_of(split, &words, own, knowledge);
        return &[];
    }
    if let Some(quoted) = quoted(first).filter(|command| recognise(command).is_ok()) {
        command_of(split, &texts(&quoted), own, knowledge);
        return after;
    }
    split.own(first.to_owned(), [first.to_owned()]);
    after
}

/// Reads one of our own flags; returns how many words after it are its values.
fn own_flag(split: &mut Split<'_>, own: &OwnFlags, word: &str, after: &[String]) -> Option<usize> {
    let found = own.find(word)?;
    let next = after.first();
    let value = found.attached.as_ref().or(next.filter(|_| found.values > 0));
    if value.is_some_and(|value| has_foreign_form(&found.name, value)) {
        return None;
    }
    if found.name == "--json" {
        let file = found.attached.clone().or_else(|| next.filter(|word| is_file(word)).cloned());
        let used = usize::from(found.attached.is_none() && file.is_some());
        match file.filter(|file| file != "-") {
            Some(file) => {
                let mut row = FlagRow { written: written(word, after, used), fate: Fate::Own, note: None };
                row.fate = Fate::Becomes(vec!["--json-file".to_owned(), file.clone()]);
                split.rows.push(row);
                split.own.extend(["--json-file".to_owned(), file]);
            }
            None => split.own(written(word, after, used), ["--json".to_owned()]),
        }
        return Some(used);
    }
    let used = found.values.min(after.len());
    let values = after.get(..used).unwrap_or_default();
    let name = match &found.attached {
        Some(value) => format!("{}={value}", found.name),
        None => found.name,
    };
    split.own(written(word, after, used), std::iter::once(name).chain(values.iter().cloned()));
    Some(used)
}

/// Returns whether a word after `--json` is the file that the result goes to: anything but a flag or a server.
fn is_file(word: &str) -> bool {
    word == "-" || (!word.starts_with('-') && !is_url(word))
}

/// Returns whether the value of a flag that other clients have too is in their form.
fn has_foreign_form(name: &str, value: &str) -> bool {
    match name {
        "--extra-body" => value.trim_start().starts_with('{'),
        "--goodput" => value.split_once(':').is_some_and(|(_, limit)| limit.parse::<f64>().is_ok()),
        _ => false,
    }
}

/// Reads a flag of other clients; returns the words after it.
fn foreign_flag<'w>(split: &mut Split<'_>, own: &OwnFlags, word: &str, after: &'w [String]) -> &'w [String] {
    let name = flag_name(word);
    let takes = split.table.get(&name).map(|spec| spec.takes);
    let used = values_after(takes, word, after);
    let rest = after.get(used..).unwrap_or_default();
    if takes.is_none() {
        // Among flags of several programs the beginning of a name isn't enough.
        let names = own.names();
        let known = names.iter().map(String::as_str).chain(split.table.names());
        let why = unknown(&name, known);
        // Its value isn't shown: what it means isn't known, and it may be a secret.
        split.problem(name, why);
        return rest;
    }
    let values = after.get(..used).unwrap_or_default();
    let words: Vec<String> = std::iter::once(word.to_owned()).chain(values.iter().cloned()).collect();
    take(split, own, &simple(&words).words);
    rest
}

/// Returns a flag's name without a value, with hyphens.
fn flag_name(word: &str) -> String {
    let name = word.split_once('=').map_or(word, |(name, _)| name);
    name.strip_prefix("--").map_or(name.to_owned(), |bare| format!("--{}", bare.replace('_', "-")))
}

/// Returns how many of the words after a flag are its values.
fn values_after(takes: Option<Takes>, word: &str, after: &[String]) -> usize {
    let free = after.iter().take_while(|word| !is_flag(word) && !word.contains("://")).count();
    match takes {
        _ if word.contains('=') => 0,
        Some(Takes::Nothing | Takes::NothingOrNo) => 0,
        None | Some(Takes::AtMostOne) => free.min(1),
        Some(Takes::One) => after.len().min(1),
        Some(Takes::OneOrMore | Takes::Any) => free,
    }
}

/// Takes our own flags out of another client's arguments, where that client has no flag of the name.
fn own_among(split: &mut Split<'_>, own: &OwnFlags, arguments: &[Word]) -> Vec<Word> {
    let texts: Vec<String> = arguments.iter().map(|word| word.text.clone()).collect();
    let mut theirs = Vec::new();
    let mut at = 0;
    while let (Some(word), Some(text)) = (arguments.get(at), texts.get(at)) {
        let after = texts.get(at + 1..).unwrap_or_default();
        let spec = split.table.get(&flag_name(text));
        let is_theirs = !is_flag(text) || spec.is_some();
        if !is_theirs && let Some(used) = own_flag(split, own, text, after) {
            at += 1 + used;
            continue;
        }
        // Values of a flag that isn't known are words of its own.
        let used = spec.map_or(0, |spec| values_after(Some(spec.takes), text, after));
        theirs.push(word.clone());
        theirs.extend(arguments.iter().skip(at + 1).take(used).cloned());
        at += 1 + used;
    }
    theirs
}

/// Says that a flag isn't known, with the nearest one that is.
fn unknown<'n>(name: &str, known: impl IntoIterator<Item = &'n str>) -> String {
    let hint = nearest_flag(name, known).map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
    format!("no such flag is known{hint}")
}

fn is_flag(word: &str) -> bool {
    word.starts_with('-') && word.parse::<f64>().is_err()
}

/// Reads another client's command that stands after `--`.
fn command<'k>(split: &mut Split<'k>, words: &[String], own: &OwnFlags, knowledge: &'k Knowledge) {
    match words {
        [text] if text.contains(char::is_whitespace) => match quoted(text) {
            Some(command) => command_of(split, &texts(&command), own, knowledge),
            None => split.problem(text.clone(), "it can't be read as a command"),
        },
        words => command_of(split, words, own, knowledge),
    }
}

/// Returns the command that one word is, as when it was pasted in quotes.
fn quoted(text: &str) -> Option<SimpleCommand> {
    let script = text.contains(char::is_whitespace).then(|| words::read(text).ok())??;
    script.commands.into_iter().next_back()
}

fn texts(command: &SimpleCommand) -> Vec<String> {
    command.words.iter().map(|word| word.text.clone()).collect()
}

fn command_of<'k>(split: &mut Split<'k>, words: &[String], own: &OwnFlags, knowledge: &'k Knowledge) {
    // Variables before the program, as a shell would take them.
    let variables = words.iter().take_while(|word| is_variable(word)).count();
    let (variables, words) = words.split_at(variables);
    for variable in variables {
        split.ignored(variable.clone(), "a variable of that client");
    }
    if is_multi_turn(words) {
        let why = "conversations are loaded with flags of ours: `--dataset sessions`, with a URL and `--concurrency`";
        split.problem(MULTI_TURN.to_owned(), why);
        return;
    }
    let command = simple(words);
    match recognise(&command) {
        Ok(Recognised { tool, arguments, wrappers, .. })
            if tool.kind() == ToolKind::Serving && CLIENTS.contains(&tool) =>
        {
            for wrapper in wrappers {
                split.ignored(wrapper, "what runs that client; `--pin` pins this one");
            }
            split.tool = Some(tool);
            split.table = Table::ever(&knowledge.options.program(tool).into_iter().collect::<Vec<_>>());
            split.rows.push(FlagRow {
                written: tool.to_string(),
                fate: Fate::Own,
                note: Some("the client whose flags follow; what it does unasked counts too".to_owned()),
            });
            let theirs = own_among(split, own, arguments);
            take(split, own, &theirs);
        }
        Ok(Recognised { tool, .. }) => {
            let why = format!("`{tool}` is no client that loads a running server");
            split.problem(words.join(" "), why);
        }
        Err(unknown) => {
            let hint = unknown.nearest.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
            split.problem(unknown.name, format!("no client of that name is known{hint}"));
        }
    }
}

/// Takes in words as a client's parser reads them.
fn take(split: &mut Split<'_>, own: &OwnFlags, words: &[Word]) {
    let parsed = split.table.parse(words);
    for operand in parsed.operands {
        if is_url(&operand) {
            split.own(operand.clone(), [operand]);
        } else {
            split.problem(operand, "it belongs to no flag");
        }
    }
    split.foreign.extend(parsed.given);
    for Refused { option, why } in parsed.refused {
        match why {
            // Which values a client allows is different at every version; what we allow is asked later.
            Refusal::NotAmong(_) => split.foreign.push(option),
            Refusal::Unknown => {
                let names = own.names();
                let why = unknown(&option.name, names.iter().map(String::as_str).chain(split.table.names()));
                split.problem(option.name, why);
            }
            Refusal::Ambiguous(names) => {
                split.problem(option.written, format!("it is short for several: {}", names.join(", ")));
            }
            Refusal::ValueMissing => split.problem(option.written, "it needs a value"),
            Refusal::ValueUnexpected => split.problem(option.written, "it takes no such value"),
            Refusal::ValueKind(_) => {
                split.problem(option.written, "its value is of another kind than it takes");
            }
        }
    }
}

/// Returns whether a command runs vLLM's client for conversations, which has flags of its own.
fn is_multi_turn(words: &[String]) -> bool {
    words.iter().take_while(|word| !is_flag(word)).any(|word| word.rsplit('/').next() == Some(MULTI_TURN))
}

fn simple(words: &[String]) -> SimpleCommand {
    let word = |text: &String| Word { text: text.clone(), at: 0..0, quoted: false };
    SimpleCommand { variables: Vec::new(), words: words.iter().map(word).collect() }
}

fn is_variable(word: &str) -> bool {
    let is_name =
        |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

fn written(word: &str, after: &[String], used: usize) -> String {
    let values = after.get(..used).unwrap_or_default().iter().map(String::as_str);
    std::iter::once(word).chain(values).collect::<Vec<_>>().join(" ")
}
