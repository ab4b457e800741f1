//! The flags of `isobench load` itself, as its parser of arguments has them.

use clap::CommandFactory as _;

use crate::args::Arguments;

/// One of our flags.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnFlag {
    long: Option<String>,
    short: Option<char>,
    values: usize,
}

/// Our flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OwnFlags(Vec<OwnFlag>);

/// A word that is one of our flags.
pub(super) struct Found {
    /// The flag as we spell it, without a value.
    pub(super) name: String,
    /// The value behind `=`.
    pub(super) attached: Option<String>,
    /// How many words after it are its values.
    pub(super) values: usize,
}

impl OwnFlags {
    /// Returns the flags of `isobench load`, those of every command included.
    pub(super) fn of_load() -> Self {
        let mut command = Arguments::command();
        command.build();
        let load = command.find_subcommand("load").into_iter().flat_map(clap::Command::get_arguments);
        let flags = load.filter(|flag| flag.get_long().is_some() || flag.get_short().is_some()).map(|flag| {
            let least = flag.get_num_args().map_or(1, |range| range.min_values().max(1));
            let values = if flag.get_action().takes_values() { least } else { 0 };
            OwnFlag { long: flag.get_long().map(ToOwned::to_owned), short: flag.get_short(), values }
        });
        Self(flags.collect())
    }

    /// Returns the flag that a word names, with hyphens or underscores.
    pub(super) fn find(&self, word: &str) -> Option<Found> {
        if let Some(bare) = word.strip_prefix("--") {
            let (name, attached) = match bare.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (bare, None),
            };
            let name = name.replace('_', "-");
            let flag = self.0.iter().find(|flag| flag.long.as_deref() == Some(&name))?;
            let values = if attached.is_some() { 0 } else { flag.values };
            return Some(Found { name: format!("--{name}"), attached, values });
        }
        let mut letters = word.strip_prefix('-')?.chars();
        let letter = letters.next()?;
        let flag = self.0.iter().find(|flag| flag.short == Some(letter))?;
        let attached = letters.as_str();
        let values = if attached.is_empty() { flag.values } else { 0 };
        let attached = (!attached.is_empty()).then(|| attached.to_owned());
        let name = flag.long.as_ref().map_or_else(|| format!("-{letter}"), |long| format!("--{long}"));
        Some(Found { name, attached, values })
    }

    /// Returns the words as our parser takes them, if every one is ours beyond doubt and nobody asks how they were understood:
    /// a load then begins without the tables of other clients' flags, which take longer to read than all the rest.
    pub(super) fn plain(&self, words: &[String]) -> Option<Vec<String>> {
        let mut plain = Vec::new();
        let mut words = words.iter();
        let mut url = None;
        while let Some(word) = words.next() {
            if word == "--explain-flags" {
                return None;
            }
            if word == "--json" {
                let file = words.next().filter(|file| !file.starts_with('-') && !file.contains(':'))?;
                plain.extend(["--json-file".to_owned(), file.clone()]);
                continue;
            }
            if !word.starts_with('-') {
                let is_url = word.starts_with("http://") || word.starts_with("https://");
                if url.is_some() || !is_url || word.contains(char::is_whitespace) {
                    return None;
                }
                url = Some(word.clone());
                continue;
            }
            let Found { name, attached, values } = self.find(word)?;
            // Another way to write the flag, or its value, is left to the one place that knows them.
            if attached.is_some() || *word != name || name == "--extra-body" {
                return None;
            }
            plain.push(name);
            for _ in 0..values {
                plain.push(words.next().filter(|value| !value.starts_with('-'))?.clone());
            }
        }
        Some(url.into_iter().chain(plain).collect())
    }

    /// Returns every long name, with dashes.
    pub(super) fn names(&self) -> Vec<String> {
        self.0.iter().filter_map(|flag| flag.long.as_ref()).map(|long| format!("--{long}")).collect()
    }
}
