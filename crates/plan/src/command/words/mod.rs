//! A command's text, split into words as a POSIX shell would split it.
//!
//! What has a meaning beyond simple commands (pipes, substitutions, loops) is an error that names the construct and where
//! it stands; what a shell would do beside running a benchmark (redirected output) is a note.

mod scan;

use std::collections::BTreeMap;
use std::ops::Range;

pub use scan::read;

/// The longest text that is read, and the longest that expanding variables may make of it, in bytes.
pub const LONGEST: usize = 64 * 1024;

/// One word after quotes and backslashes were taken away.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The word as a program would get it.
    pub text: String,
    /// Where it stands in the command, in bytes.
    pub at: Range<usize>,
    /// Whether a part of it was quoted.
    pub quoted: bool,
}

/// One simple command: a program, its arguments, and the variables that are set for it alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimpleCommand {
    /// Variables that its program gets: those exported before it, then those set before its name.
    pub variables: Vec<(String, String)>,
    /// The program and its arguments.
    pub words: Vec<Word>,
}

/// A command's text as it was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// The commands in order; those that only set variables or change the folder are left out.
    pub commands: Vec<SimpleCommand>,
    /// Variables that commands of their own set, such as `X=1` and `export X=1`, at the end of the text.
    pub variables: BTreeMap<String, String>,
    /// What was read over.
    pub notes: Vec<Note>,
}

/// Something of the text that isn't part of a command's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// What it is.
    pub kind: NoteKind,
    /// Its text.
    pub text: String,
    /// Where it stands, in bytes.
    pub at: usize,
}

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteKind {
    /// Output that goes to a file.
    Redirection,
    /// Output that goes through `tee`.
    Tee,
    /// A command beside the benchmark that changes nothing of it, such as `cd` or `sleep`.
    SideCommand,
    /// `&`: the command runs in the background.
    Background,
    /// The `$` of a terminal's prompt, copied with the command.
    Prompt,
    /// A variable that is set and reaches no program: it isn't exported, or is exported after the last command.
    Unexported,
    /// A pattern that a shell would fill in from the names of files; it is taken as it stands.
    Pattern,
    /// Blanks after the backslash of a continued line, with which a shell would end the command; they are read over.
    BlankAfterBackslash,
}

/// Something that isn't a simple command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{construct} at byte {at} of the command")]
pub struct ReadCommandError {
    /// What it is.
    pub construct: Construct,
    /// Where it stands, in bytes.
    pub at: usize,
}

/// What a shell knows beyond simple commands.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Construct {
    /// No command at all.
    #[error("no command")]
    Nothing,
    /// A quote without its end.
    #[error("a quote `{0}` that never ends")]
    OpenQuote(char),
    /// `|` to another program than `tee`.
    #[error("a pipe")]
    Pipe,
    /// `||`.
    #[error("an alternative (`||`)")]
    Alternative,
    /// `(` or `)`.
    #[error("a parenthesis")]
    Parenthesis,
    /// `$(..)` or backticks.
    #[error("a command's output used as text")]
    Substitution,
    /// `$((..))`.
    #[error("arithmetic")]
    Arithmetic,
    /// A variable that the command doesn't set.
    #[error("the variable `${0}`, which the command doesn't set,")]
    Variable(String),
    /// `${..}` with more than a name.
    #[error("a variable with a rule (`${{..}}`)")]
    VariableRule,
    /// `$'..'` or `$".."`.
    #[error("a quote after `$`")]
    DollarQuote,
    /// `<` or `<<`.
    #[error("input from a file")]
    Input,
    /// `if`, `for`, `{` and the like.
    #[error("the shell's word `{0}`")]
    Keyword(String),
    /// Too long a text.
    #[error("more text than {LONGEST} bytes")]
    TooLong,
}

/// Returns a word as a shell must be given it, in single quotes if anything in it means something to a shell.
pub fn quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:,+@%=".contains(c);
    // An assignment-like first word and a keyword would be read as such.
    if !word.is_empty() && word.chars().all(plain) && !word.contains('=') && !scan::KEYWORDS.contains(&word) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns an argument list as one line that a shell reads back to the same list.
pub fn join<'w>(words: impl IntoIterator<Item = &'w str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(quote).collect();
    quoted.join(" ")
}

#[cfg(test)]
mod tests;
