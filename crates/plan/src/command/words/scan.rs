//! The one pass over a command's text.

use std::collections::BTreeSet;

use super::{Construct, LONGEST, Note, NoteKind, ReadCommandError, Script, SimpleCommand, Word};

/// Words that a shell reads as its own where a command's name stands.
pub(super) const KEYWORDS: [&str; 17] = [
    "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "function", "{",
    "}", "!",
];

/// Commands that change nothing of a benchmark beside them.
const SIDE_COMMANDS: [&str; 10] = ["cd", "set", "sleep", "wait", "echo", "mkdir", "pwd", "true", ":", "ulimit"];

/// Reads a command's text.
///
/// # Errors
/// Returns the first construct that isn't a simple command, and where it stands.
pub fn read(text: &str) -> Result<Script, ReadCommandError> {
    let mut reader = Reader {
        text,
        at: 0,
        script: Script::default(),
        exported: BTreeSet::new(),
        used: BTreeSet::new(),
        set_at: Vec::new(),
        open: Open::default(),
        expanded: 0,
        descriptor: None,
    };
    if text.len() > LONGEST {
        return Err(reader.error(Construct::TooLong, 0));
    }
    reader.run()?;
    if reader.script.commands.is_empty() {
        return Err(reader.error(Construct::Nothing, 0));
    }
    reader.note_unexported();
    Ok(reader.script)
}

/// What was read of the command that is being read.
#[derive(Default)]
struct Open {
    words: Vec<Word>,
    /// The output of the command before goes here.
    after_pipe: bool,
    /// Where the command begins.
    begin: usize,
}

/// The word that is being read.
#[derive(Default)]
struct Draft {
    text: String,
    begin: usize,
    /// Whether it is a word even if it is empty.
    begun: bool,
    quoted: bool,
    pattern: bool,
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    script: Script,
    /// Variables that programs get from here on.
    exported: BTreeSet<String>,
    /// Variables that a program has got, or whose value was put into a word.
    used: BTreeSet<String>,
    /// Where each variable is set by a command of its own.
    set_at: Vec<(String, usize)>,
    open: Open,
    /// Bytes that variables have put in.
    expanded: usize,
    /// Where the file descriptor before a `>` begins.
    descriptor: Option<usize>,
}

impl<'t> Reader<'t> {
    fn error(&self, construct: Construct, at: usize) -> ReadCommandError {
        ReadCommandError { construct, at: at.min(self.text.len()) }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    /// Takes `text` if it comes next.
    fn take(&mut self, text: &str) -> bool {
        let found = self.rest().starts_with(text);
        if found {
            self.at += text.len();
        }
        found
    }

    fn note(&mut self, kind: NoteKind, from: usize) {
        let text = self.text.get(from..self.at).unwrap_or_default();
        let text = text.trim_matches([' ', '\t', '\r', '\n', ';']).trim_end_matches("&&").trim_end().to_owned();
        self.script.notes.push(Note { kind, text, at: from });
    }

    fn run(&mut self) -> Result<(), ReadCommandError> {
        while let Some(next) = self.peek() {
            let from = self.at;
            match next {
                ' ' | '\t' | '\r' => self.at += 1,
                '#' => self.skip_comment(),
                '\n' | ';' => {
                    self.at += 1;
                    self.end_command()?;
                }
                '&' => self.ampersand()?,
                '|' => self.pipe()?,
                '(' | ')' => return Err(self.error(Construct::Parenthesis, from)),
                '<' if self.placeholder().is_none() => return Err(self.error(Construct::Input, from)),
                '>' => {
                    let from = self.descriptor.take().unwrap_or(from);
                    self.redirection(from)?;
                }
                _ => self.word()?,
            }
        }
        self.end_command()
    }

    fn skip_comment(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    fn ampersand(&mut self) -> Result<(), ReadCommandError> {
        let from = self.at;
        if self.take("&&") {
            return self.end_command();
        }
        if self.rest().starts_with("&>") {
            self.at += 1;
            return self.redirection(from);
        }
        self.at += 1;
        self.note(NoteKind::Background, from);
        self.end_command()
    }

    fn pipe(&mut self) -> Result<(), ReadCommandError> {
        let from = self.at;
        if self.take("||") {
            return Err(self.error(Construct::Alternative, from));
        }
        self.at += 1;
        self.take("&");
        if self.open.words.is_empty() {
            return Err(self.error(Construct::Pipe, from));
        }
        self.end_command()?;
        self.open.after_pipe = true;
        self.open.begin = from;
        Ok(())
    }

    /// Reads `>file`, `>>file` and `>&1`, whose file descriptor was read before.
    fn redirection(&mut self, from: usize) -> Result<(), ReadCommandError> {
        self.take(">");
        if !self.take(">") {
            self.take("|");
        }
        self.take("&");
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
        let words = self.open.words.len();
        if !matches!(self.peek(), None | Some('\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')')) {
            self.word()?;
        }
        self.open.words.truncate(words);
        self.note(NoteKind::Redirection, from);
        Ok(())
    }

    /// Returns the end of `<name>`, which people write for what is to be filled in.
    fn placeholder(&self) -> Option<usize> {
        let inside = self.rest().strip_prefix('<')?;
        let end = inside.find(|c: char| !(c.is_alphanumeric() || "_- .".contains(c)))?;
        (end > 0 && inside.get(end..)?.starts_with('>') && inside.starts_with(char::is_alphabetic)).then_some(end + 2)
    }

    /// Reads one word; unquoted variables may make several of it, or none.
    fn word(&mut self) -> Result<(), ReadCommandError> {
        let mut draft = Draft { begin: self.at, ..Draft::default() };
        while let Some(next) = self.peek() {
            let from = self.at;
            match next {
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' => break,
                '>' => {
                    // Digits right before `>` name a file descriptor and are no word.
                    if !draft.quoted && draft.begun && draft.text.bytes().all(|byte| byte.is_ascii_digit()) {
                        self.descriptor = Some(draft.begin);
                        return Ok(());
                    }
                    break;
                }
                '<' => {
                    let Some(length) = self.placeholder() else { break };
                    draft.text.push_str(self.rest().get(..length).unwrap_or_default());
                    draft.begun = true;
                    self.at += length;
                }
                '\'' => self.single_quote(&mut draft)?,
                '"' => self.double_quote(&mut draft)?,
                '\\' => self.backslash(&mut draft),
                '$' => {
                    self.at += 1;
                    if let Some(value) = self.variable(from)? {
                        self.split_into(&mut draft, &value);
                    } else {
                        draft.text.push('$');
                        draft.begun = true;
                    }
                }
                '`' => return Err(self.error(Construct::Substitution, from)),
                _ => {
                    draft.pattern |= matches!(next, '*' | '?');
                    draft.text.push(next);
                    draft.begun = true;
                    self.at += next.len_utf8();
                }
            }
        }
        self.end_word(draft);
        Ok(())
    }

    fn end_word(&mut self, draft: Draft) {
        if !draft.begun {
            return;
        }
        if draft.pattern {
            self.note(NoteKind::Pattern, draft.begin);
        }
        self.open.words.push(Word { text: draft.text, at: draft.begin..self.at, quoted: draft.quoted });
    }

    /// Puts in what a variable holds, split at blanks as a shell does outside quotes.
    fn split_into(&mut self, draft: &mut Draft, value: &str) {
        for (index, part) in value.split([' ', '\t', '\n']).enumerate() {
            if index > 0 {
                let begin = draft.begin;
                let done = std::mem::replace(draft, Draft { begin, ..Draft::default() });
                self.end_word(done);
            }
            draft.text.push_str(part);
            draft.begun |= !part.is_empty();
        }
    }

    fn single_quote(&mut self, draft: &mut Draft) -> Result<(), ReadCommandError> {
        let from = self.at;
        let inside = self.rest().get(1..).unwrap_or_default();
        let Some(end) = inside.find('\'') else { return Err(self.error(Construct::OpenQuote('\''), from)) };
        draft.text.push_str(inside.get(..end).unwrap_or_default());
        draft.begun = true;
        draft.quoted = true;
        self.at += end + 2;
        Ok(())
    }

    fn double_quote(&mut self, draft: &mut Draft) -> Result<(), ReadCommandError> {
        let begin = self.at;
        self.at += 1;
        draft.begun = true;
        draft.quoted = true;
        loop {
            let from = self.at;
            match self.next() {
                None => return Err(self.error(Construct::OpenQuote('"'), begin)),
                Some('"') => return Ok(()),
                Some('`') => return Err(self.error(Construct::Substitution, from)),
                Some('$') if self.peek() == Some('"') => draft.text.push('$'),
                Some('$') => match self.variable(from)? {
                    Some(value) => draft.text.push_str(&value),
                    None => draft.text.push('$'),
                },
                Some('\\') => match self.peek() {
                    Some(escaped @ ('$' | '`' | '"' | '\\')) => {
                        draft.text.push(escaped);
                        self.at += 1;
                    }
                    Some('\n') => self.at += 1,
                    Some('\r') if self.rest().starts_with("\r\n") => self.at += 2,
                    _ => draft.text.push('\\'),
                },
                Some(other) => draft.text.push(other),
            }
        }
    }

    fn backslash(&mut self, draft: &mut Draft) {
        let from = self.at;
        self.at += 1;
        let blanks = self.rest().len() - self.rest().trim_start_matches([' ', '\t', '\r']).len();
        let line_end = self.rest().get(blanks..).unwrap_or_default();
        if line_end.starts_with('\n') {
            let only_return = self.rest().get(..blanks).is_some_and(|text| text.is_empty() || text == "\r");
            self.at += blanks + 1;
            if !only_return {
                self.note(NoteKind::BlankAfterBackslash, from);
            }
            return;
        }
        if line_end.is_empty() {
            // The text ends in a backslash: a shell would wait for the next line.
            self.at = self.text.len();
            return;
        }
        if let Some(escaped) = self.next() {
            draft.text.push(escaped);
            draft.begun = true;
            draft.quoted = true;
        }
    }

    /// Reads what follows `$`: `None` if the `$` stands for itself.
    fn variable(&mut self, from: usize) -> Result<Option<String>, ReadCommandError> {
        let braced = match self.peek() {
            Some('(') => {
                let arithmetic = self.rest().starts_with("((");
                let construct = if arithmetic { Construct::Arithmetic } else { Construct::Substitution };
                return Err(self.error(construct, from));
            }
            Some('\'' | '"') => return Err(self.error(Construct::DollarQuote, from)),
            Some('{') => true,
            Some(first) if first == '_' || first.is_ascii_alphanumeric() || "@*#?$!-".contains(first) => false,
            _ => return Ok(None),
        };
        if braced {
            self.at += 1;
        }
        let rest = self.rest();
        let mut end = rest.find(|c: char| !(c == '_' || c.is_ascii_alphanumeric())).unwrap_or(rest.len());
        if end == 0 {
            end = rest.chars().next().map_or(0, char::len_utf8);
        }
        let name = rest.get(..end).unwrap_or_default().to_owned();
        self.at += end;
        if braced && !self.take("}") {
            return Err(self.error(Construct::VariableRule, from));
        }
        let Some(value) = self.script.variables.get(&name) else {
            return Err(self.error(Construct::Variable(name), from));
        };
        self.used.insert(name);
        self.expanded += value.len();
        if self.expanded > LONGEST {
            return Err(self.error(Construct::TooLong, from));
        }
        Ok(Some(value.clone()))
    }

    /// Ends the command that is being read, if there is one.
    fn end_command(&mut self) -> Result<(), ReadCommandError> {
        let mut open = std::mem::take(&mut self.open);
        if open.words.len() > 1 && open.words.first().is_some_and(|word| word.text == "$" && !word.quoted) {
            let prompt = open.words.remove(0);
            self.script.notes.push(Note { kind: NoteKind::Prompt, text: prompt.text, at: prompt.at.start });
        }
        let Some(first) = open.words.first() else {
            return if open.after_pipe { Err(self.error(Construct::Pipe, open.begin)) } else { Ok(()) };
        };
        let begin = first.at.start;
        if open.after_pipe {
            if first.text != "tee" {
                return Err(self.error(Construct::Pipe, open.begin));
            }
            self.note(NoteKind::Tee, open.begin);
            return Ok(());
        }
        if !first.quoted && KEYWORDS.contains(&first.text.as_str()) {
            return Err(self.error(Construct::Keyword(first.text.clone()), begin));
        }
        let count = open.words.iter().take_while(|word| assignment(word, self.text).is_some()).count();
        let pairs = |words: &[Word]| words.iter().filter_map(|word| assignment(word, self.text)).collect::<Vec<_>>();
        let variables = pairs(open.words.get(..count).unwrap_or_default());
        let words = open.words.get(count..).unwrap_or_default().to_vec();
        match words.split_first().map(|(first, rest)| (first.text.as_str(), rest)) {
            None => variables.into_iter().for_each(|(name, value)| self.set(name, value, begin)),
            Some(("export", rest)) => self.export(rest, begin),
            Some(("unset", rest)) => {
                for word in rest {
                    self.script.variables.remove(&word.text);
                    self.exported.remove(&word.text);
                }
            }
            Some((name, _)) if SIDE_COMMANDS.contains(&name) => self.note(NoteKind::SideCommand, begin),
            Some(_) => {
                let mut all: Vec<(String, String)> = Vec::new();
                for name in &self.exported {
                    if let Some(value) = self.script.variables.get(name) {
                        all.push((name.clone(), value.clone()));
                    }
                }
                self.used.extend(self.exported.iter().cloned());
                all.extend(variables);
                self.script.commands.push(SimpleCommand { variables: all, words });
            }
        }
        Ok(())
    }

    fn set(&mut self, name: String, value: String, at: usize) {
        self.set_at.push((name.clone(), at));
        self.script.variables.insert(name, value);
    }

    /// Gives variables to the programs that follow; a name that no shell takes is kept, so that it is found later.
    fn export(&mut self, words: &[Word], at: usize) {
        let mut takes_back = false;
        for word in words {
            match word.text.split_once('=') {
                None if word.text == "-n" => takes_back = true,
                None if word.text.starts_with('-') => {}
                None if takes_back => {
                    self.exported.remove(&word.text);
                }
                None => {
                    self.exported.insert(word.text.clone());
                }
                Some((name, value)) => {
                    self.exported.insert(name.to_owned());
                    self.set(name.to_owned(), value.to_owned(), at);
                }
            }
        }
    }

    /// Notes variables that are set and reach nothing.
    fn note_unexported(&mut self) {
        for (name, at) in std::mem::take(&mut self.set_at) {
            if self.used.insert(name.clone()) {
                self.script.notes.push(Note { kind: NoteKind::Unexported, text: name, at });
            }
        }
    }
}

/// Returns the name and value of a word that sets a variable.
fn assignment(word: &Word, text: &str) -> Option<(String, String)> {
    let (name, value) = word.text.split_once('=')?;
    let named = name.starts_with(|c: char| c == '_' || c.is_ascii_alphabetic())
        && name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric());
    // The name and the `=` must stand there unquoted.
    let plain =
        text.get(word.at.start..).is_some_and(|raw| raw.strip_prefix(name).is_some_and(|raw| raw.starts_with('=')));
    (named && plain).then(|| (name.to_owned(), value.to_owned()))
}
