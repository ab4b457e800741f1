//! What Python's argparse (3.11) says of an argument list, given options: accepted, or the words that it refuses with.
//!
//! It follows argparse step by step: names by prefix, `--name=value`, values that look like negative numbers, `--`. It knows
//! nothing of the tables under test. Its cases come from the real argparse (`fixtures/argparse-cases.json`).

use serde::Deserialize;

/// One option, as the fixtures write it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// Its spellings with dashes.
    pub names: Vec<String>,
    /// How many values it takes.
    pub takes: String,
    /// What a value must be.
    #[serde(default)]
    pub kind: Kind,
    /// The values that it allows; empty: any.
    #[serde(default)]
    pub choices: Vec<String>,
    /// The value that it has when it isn't given.
    #[serde(default)]
    pub default: Option<String>,
    /// Whether it must be given.
    #[serde(default)]
    pub required: bool,
}

/// What a value must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Any text.
    #[default]
    Text,
    /// A whole number.
    Whole,
    /// A number.
    Number,
    /// Anything; only the empty text is false.
    Bool,
    /// JSON.
    Json,
}

/// A parser.
pub struct Parser<'s> {
    /// Its options.
    pub options: Vec<&'s Spec>,
    /// Whether it takes `_` for `-` in names.
    pub underscores: bool,
    /// How many words it takes that belong to no option.
    pub positionals: usize,
}

/// What an argument list comes to.
#[derive(Debug, Default)]
pub struct Report {
    /// The options that are given, by their main names.
    pub given: Vec<String>,
    /// Options that are required and not given.
    pub missing: Vec<String>,
    /// Words that nothing takes.
    pub extras: Vec<String>,
}

/// What a word of the argument list is.
enum Word<'s> {
    /// A value.
    Value,
    /// `--`.
    Divider,
    /// An option, the name that was meant, and the value after `=`.
    Option(&'s Spec, String, Option<String>),
    /// It begins with a dash, but no option has such a name.
    Unknown,
    /// `--help`.
    Help,
}

impl<'s> Parser<'s> {
    /// Returns nothing if the argument list is accepted, else what argparse says.
    pub fn check(&self, args: &[String]) -> Result<(), String> {
        let report = self.report(args)?;
        if !report.missing.is_empty() {
            return Err(format!("the following arguments are required: {}", report.missing.join(", ")));
        }
        if !report.extras.is_empty() {
            return Err(format!("unrecognized arguments: {}", report.extras.join(" ")));
        }
        Ok(())
    }

    /// Returns what is left over and what is missing, of which argparse says only the first; or what it refuses before.
    pub fn report(&self, args: &[String]) -> Result<Report, String> {
        let args: Vec<String> = args.iter().map(|arg| self.dashes(arg)).collect();
        let words = self.classify(&args)?;
        let mut given: Vec<&str> = Vec::new();
        let mut extras: Vec<String> = Vec::new();
        let mut values = 0;
        let mut at = 0;
        while at < args.len() {
            match &words[at] {
                Word::Help => return Ok(Report::default()),
                Word::Option(spec, name, explicit) => {
                    let taken = take(spec, name, explicit.as_deref(), &args[at + 1..], &words[at + 1..])?;
                    given.push(&spec.names[0]);
                    at += 1 + taken;
                }
                Word::Unknown => {
                    extras.push(args[at].clone());
                    at += 1;
                }
                Word::Value | Word::Divider => {
                    let counts = matches!(words[at], Word::Value);
                    if counts && values < self.positionals {
                        values += 1;
                    } else {
                        extras.push(args[at].clone());
                    }
                    at += 1;
                }
            }
        }
        let missing = self.options.iter().filter(|spec| spec.required && !given.contains(&spec.names[0].as_str()));
        let missing = missing.map(|spec| shown(spec)).collect();
        Ok(Report { given: given.into_iter().map(ToOwned::to_owned).collect(), missing, extras })
    }

    fn dashes(&self, arg: &str) -> String {
        if !self.underscores || !arg.starts_with("--") {
            return arg.to_owned();
        }
        match arg.split_once('=') {
            Some((name, value)) => format!("{}={value}", name.replace('_', "-")),
            None => arg.replace('_', "-"),
        }
    }

    fn classify(&self, args: &[String]) -> Result<Vec<Word<'s>>, String> {
        let mut words = Vec::new();
        let mut after = false;
        for arg in args {
            words.push(if after {
                Word::Value
            } else if arg == "--" {
                after = true;
                Word::Divider
            } else {
                self.word(arg)?
            });
        }
        Ok(words)
    }

    fn word(&self, arg: &str) -> Result<Word<'s>, String> {
        if !arg.starts_with('-') || arg.len() == 1 {
            return Ok(Word::Value);
        }
        if let Some(spec) = self.named(arg) {
            return Ok(Word::Option(spec, arg.to_owned(), None));
        }
        if let Some((name, value)) = arg.split_once('=')
            && let Some(spec) = self.named(name)
        {
            return Ok(Word::Option(spec, name.to_owned(), Some(value.to_owned())));
        }
        let found = self.begins(arg);
        if found.len() > 1 {
            let names: Vec<&str> = found.iter().map(|(_, name, _)| name.as_str()).collect();
            return Err(format!("ambiguous option: {arg} could match {}", names.join(", ")));
        }
        if let Some((spec, name, value)) = found.into_iter().next() {
            return Ok(spec.map_or(Word::Help, |spec| Word::Option(spec, name, value)));
        }
        Ok(if is_negative_number(arg) || arg.contains(' ') { Word::Value } else { Word::Unknown })
    }

    fn named(&self, name: &str) -> Option<&'s Spec> {
        self.options.iter().copied().find(|spec| spellings(spec).iter().any(|own| own == name))
    }

    /// Returns the options whose names begin with what was given; `--help` stands for no option.
    fn begins(&self, arg: &str) -> Vec<(Option<&'s Spec>, String, Option<String>)> {
        let help = [(None, "-h".to_owned()), (None, "--help".to_owned())];
        let own = self.options.iter().flat_map(|spec| spellings(spec).into_iter().map(move |name| (Some(*spec), name)));
        let all = help.into_iter().chain(own);
        if arg.starts_with("--") {
            let (prefix, value) =
                arg.split_once('=').map_or((arg, None), |(name, value)| (name, Some(value.to_owned())));
            return all
                .filter(|(_, name)| name.starts_with(prefix))
                .map(|(spec, name)| (spec, name, value.clone()))
                .collect();
        }
        let short: String = arg.chars().take(2).collect();
        let rest: String = arg.chars().skip(2).collect();
        all.filter_map(|(spec, name)| {
            if name == short {
                Some((spec, name, Some(rest.clone())))
            } else {
                name.starts_with(arg).then_some((spec, name, None))
            }
        })
        .collect()
    }
}

/// Returns an option's spellings, the `--no-` ones too.
fn spellings(spec: &Spec) -> Vec<String> {
    let no = spec.takes == "nothing-or-no";
    let both = |name: &String| {
        let negated = name.strip_prefix("--").filter(|_| no).map(|name| format!("--no-{name}"));
        std::iter::once(name.clone()).chain(negated)
    };
    spec.names.iter().flat_map(both).collect()
}

fn shown(spec: &Spec) -> String {
    spellings(spec).join("/")
}

/// Takes an option's values and returns how many of the words after it those were.
fn take(spec: &Spec, name: &str, explicit: Option<&str>, args: &[String], words: &[Word<'_>]) -> Result<usize, String> {
    let refuse = |what: String| Err(format!("argument {}: {what}", shown(spec)));
    if let Some(value) = explicit {
        if matches!(spec.takes.as_str(), "nothing" | "nothing-or-no") {
            // `-xyz` may be `-x -y -z`: no case of it is in use.
            return if value.is_empty() && !name.starts_with("--") {
                Ok(0)
            } else {
                refuse(format!("ignored explicit argument '{value}'"))
            };
        }
        check_value(spec, value)?;
        return Ok(0);
    }
    let values = args.iter().zip(words).take_while(|(_, word)| matches!(word, Word::Value)).count();
    let taken = match spec.takes.as_str() {
        "nothing" | "nothing-or-no" => 0,
        "one" if values == 0 => return refuse("expected one argument".to_owned()),
        "one-or-more" if values == 0 => return refuse("expected at least one argument".to_owned()),
        "one" => 1,
        "at-most-one" => values.min(1),
        "one-or-more" | "any" => values,
        other => panic!("`{other}` is no number of values"),
    };
    for value in &args[..taken] {
        check_value(spec, value)?;
    }
    Ok(taken)
}

fn check_value(spec: &Spec, value: &str) -> Result<(), String> {
    let right = match spec.kind {
        Kind::Text | Kind::Bool => true,
        Kind::Whole => whole(value).is_some(),
        Kind::Number => is_number(value),
        Kind::Json => is_json(value),
    };
    if !right {
        let kind = match spec.kind {
            Kind::Text => "str",
            Kind::Bool => "bool",
            Kind::Whole => "int",
            Kind::Number => "float",
            Kind::Json => "loads",
        };
        return Err(format!("argument {}: invalid {kind} value: '{value}'", shown(spec)));
    }
    let read = if spec.kind == Kind::Whole { whole(value).unwrap_or_default() } else { value.to_owned() };
    if spec.choices.is_empty() || spec.choices.contains(&read) {
        return Ok(());
    }
    let quote = |text: &String| if spec.kind == Kind::Whole { text.clone() } else { format!("'{text}'") };
    let choices: Vec<String> = spec.choices.iter().map(quote).collect();
    Err(format!("argument {}: invalid choice: {} (choose from {})", shown(spec), quote(&read), choices.join(", ")))
}

/// Returns a whole number as Python prints it.
fn whole(text: &str) -> Option<String> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    };
    let groups = digits.split('_').all(|group| !group.is_empty() && group.bytes().all(|byte| byte.is_ascii_digit()));
    let plain = digits.replace('_', "");
    let plain = plain.trim_start_matches('0');
    groups.then(|| if plain.is_empty() { "0".to_owned() } else { format!("{sign}{plain}") })
}

fn is_number(text: &str) -> bool {
    let text = text.trim();
    let ends = text.split('_').all(|group| !group.is_empty());
    let plain = text.replace('_', "");
    let body = plain.trim_start_matches(['+', '-']).to_ascii_lowercase();
    matches!(body.as_str(), "inf" | "infinity" | "nan") && !text.contains('_')
        || ends && plain.parse::<f64>().is_ok() && !body.starts_with(['i', 'n'])
}

fn is_json(text: &str) -> bool {
    matches!(text.trim(), "NaN" | "Infinity" | "-Infinity") || serde_json::from_str::<serde_json::Value>(text).is_ok()
}

fn is_negative_number(text: &str) -> bool {
    let Some(body) = text.strip_prefix('-') else { return false };
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    match body.split_once('.') {
        Some((before, after)) => digits(before) && digits(after) && !after.is_empty(),
        None => !body.is_empty() && digits(body),
    }
}
