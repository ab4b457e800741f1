//! Understands the flags of other load clients on the command line of `isobench load`, and whole commands of theirs.
//!
//! Words come in as they were typed and go out as words of our own, which the one parser of arguments then reads. What each
//! word was taken for is kept, for `--explain-flags`.

mod arrivals;
mod datasets;
mod meaning;
mod own;
mod parts;
mod split;

use std::ffi::OsString;

use isobench_plan::knowledge::Knowledge;

use own::OwnFlags;

/// What a word of the command line was taken for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is ours.
    Own,
    /// It says the same as these words of ours; none: it is what happens anyway.
    Becomes(Vec<String>),
    /// It changes nothing that is measured.
    Ignored,
    /// It can't be done, or isn't known.
    Refused,
}

/// A flag or word of the command line with its values, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlagRow {
    /// As it was typed.
    pub(crate) written: String,
    /// What it was taken for.
    pub(crate) fate: Fate,
    /// Why, or what differs all the same.
    pub(crate) note: Option<String>,
}

impl FlagRow {
    /// Returns it with its texts changed.
    pub(crate) fn map(self, change: impl Fn(&str) -> String) -> Self {
        let fate = match self.fate {
            Fate::Becomes(words) => Fate::Becomes(words.iter().map(|word| change(word)).collect()),
            fate @ (Fate::Own | Fate::Ignored | Fate::Refused) => fate,
        };
        Self { written: change(&self.written), fate, note: self.note.as_deref().map(change) }
    }
}

/// The command line in words of our own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Understood {
    /// All words, the program first.
    pub(crate) words: Vec<OsString>,
    /// What each word of `isobench load` was taken for; empty for other commands.
    pub(crate) rows: Vec<FlagRow>,
}

/// Words that can't be understood or done.
#[derive(Debug, thiserror::Error)]
#[error("{}", .problems.join("; "))]
pub(crate) struct UnderstandError {
    /// One for each.
    pub(crate) problems: Vec<String>,
}

/// Flags of the whole program that stand before a command and take a value.
const VALUED: [&str; 1] = ["--color"];

/// Understands a command line.
///
/// # Errors
/// Returns what can't be understood or done, unless `--explain-flags` asks for it to be shown.
pub(crate) fn understand(words: Vec<OsString>) -> Result<Understood, UnderstandError> {
    let texts: Option<Vec<String>> = words.iter().map(|word| word.to_str().map(ToOwned::to_owned)).collect();
    let place = texts.as_ref().and_then(|texts| load_at(texts).map(|at| (texts, at)));
    let Some((texts, at)) = place else { return Ok(Understood { words, rows: Vec::new() }) };
    let own = OwnFlags::of_load();
    let (before, after) = texts.split_at(at + 1);
    if let Some(plain) = own.plain(after) {
        let words = before.iter().chain(&plain).map(OsString::from).collect();
        return Ok(Understood { words, rows: Vec::new() });
    }
    let split = split::split(after, &own, Knowledge::embedded());
    let explains = split.own.iter().any(|word| word == "--explain-flags");
    let meaning::Meant { words: meant, rows, problems } = meaning::mean(split, Knowledge::embedded());
    if !problems.is_empty() && !explains {
        return Err(UnderstandError { problems });
    }
    let words = before.iter().chain(&meant).map(OsString::from).collect();
    Ok(Understood { words, rows })
}

/// Returns where the word `load` stands, if it is the command.
fn load_at(words: &[String]) -> Option<usize> {
    let mut at = 1;
    loop {
        let word = words.get(at)?;
        if !word.starts_with('-') {
            return (word == "load").then_some(at);
        }
        at += if VALUED.contains(&word.as_str()) { 2 } else { 1 };
    }
}

#[cfg(test)]
mod tests;
