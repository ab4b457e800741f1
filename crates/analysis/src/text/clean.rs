//! What terminals and loggers add to a line, and the line without it.

use std::borrow::Cow;

/// Returns a line as text: invalid UTF-8 replaced, escape sequences and other control characters but tabs left out.
pub fn clean(bytes: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(bytes);
    if text.bytes().any(|byte| (byte < b' ' && byte != b'\t') || byte == 0x7f) || text.contains('\u{9b}') {
        Cow::Owned(without_controls(&text))
    } else {
        text
    }
}

fn without_controls(text: &str) -> String {
    let mut left = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => match characters.peek() {
                Some('[') => {
                    characters.next();
                    skip_control_sequence(&mut characters);
                }
                Some(']') => {
                    characters.next();
                    skip_system_command(&mut characters);
                }
                // Two-character sequences, such as the choice of a character set, which takes one more.
                Some('(' | ')') => {
                    characters.next();
                    characters.next();
                }
                Some(_) => {
                    characters.next();
                }
                None => {}
            },
            '\u{9b}' => skip_control_sequence(&mut characters),
            other if other.is_control() && other != '\t' => {}
            other => left.push(other),
        }
    }
    left
}

/// Skips the rest of a control sequence (ECMA-48, section 5.4): parameters and intermediates, then one final byte.
fn skip_control_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(&character) = characters.peek() {
        match character {
            ' '..='?' => {
                characters.next();
            }
            '@'..='~' => {
                characters.next();
                return;
            }
            // No such sequence: what follows is text again.
            _ => return,
        }
    }
}

/// Skips the rest of an operating system command, which ends with BEL or ESC `\`.
fn skip_system_command(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    while let Some(character) = characters.next() {
        if character == '\u{7}' {
            return;
        }
        if character == '\u{1b}' {
            characters.next();
            return;
        }
    }
}

/// Returns a line without the prefixes of processes and loggers, such as `(EngineCore_0 pid=7) ERROR 08-03 11:42:20
/// [core.py:632] `, and without the spaces around it.
pub fn without_prefixes(line: &str) -> &str {
    let mut rest = line.trim();
    while let Some(shorter) = without_tag(rest).or_else(|| without_logger(rest)) {
        if shorter.len() == rest.len() {
            break;
        }
        rest = shorter.trim_start();
    }
    rest
}

/// Returns a line without a process's tag: `(Worker_TP0 pid=7)`, `[rank0]:`, `[2025-07-01 10:00:00 TP0]`.
fn without_tag(line: &str) -> Option<&str> {
    if let Some(tail) = line.strip_prefix('(') {
        let (tag, tail) = tail.split_once(')')?;
        return tag.contains("pid=").then_some(tail);
    }
    let tail = line.strip_prefix('[')?;
    let (tag, tail) = tail.split_once(']')?;
    if tag.starts_with("rank") && tag.get(4..).is_some_and(|rank| rank.bytes().all(|byte| byte.is_ascii_digit())) {
        return Some(tail.strip_prefix(':').unwrap_or(tail));
    }
    starts_with_date(tag).then_some(tail)
}

/// Returns a line without what a logger wrote before its message: `ERROR 06-13 11:42:20 file.py:11] ` and the newer
/// `ERROR 03-19 21:04:41 [file.py:256] `; a level followed by a colon, as Uvicorn writes it, too.
fn without_logger(line: &str) -> Option<&str> {
    let (level, tail) = line.split_once([' ', ':'])?;
    if !matches!(level, "DEBUG" | "INFO" | "WARNING" | "ERROR" | "CRITICAL") {
        return None;
    }
    let tail = tail.trim_start();
    let mut words = tail.splitn(3, ' ');
    let (day, time, place) = (words.next()?, words.next(), words.next());
    if !is_numbers(day, '-') {
        return Some(tail);
    }
    let place = match time {
        Some(time) if is_numbers(time, ':') => place.unwrap_or_default(),
        _ => return Some(tail),
    };
    let (source, message) = match place.strip_prefix('[') {
        Some(inner) => inner.split_once(']').unwrap_or(("", place)),
        None => place.split_once(']').unwrap_or(("", place)),
    };
    Some(if source.contains(".py:") { message } else { place })
}

/// Returns whether a word is numbers with one sign between them, such as `06-13` or `11:42:20`.
fn is_numbers(word: &str, between: char) -> bool {
    word.contains(between)
        && word.split(between).all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

fn starts_with_date(tag: &str) -> bool {
    tag.split(' ').next().is_some_and(|day| day.len() == 10 && is_numbers(day, '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_left_out() {
        for (line, left) in [
            (&b"\x1b[31mWARNING\x1b[0m: x"[..], "WARNING: x"),
            (b"\x1b[1;36m(APIServer pid=7)\x1b[0;0m INFO", "(APIServer pid=7) INFO"),
            (b"\x1b]0;title\x07text", "text"),
            (b"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
            (b"\x1b(Bplain\x1b[K", "plain"),
            (b"a\x00b\tc", "ab\tc"),
            (b"cut \x1b[3", "cut "),
            (b"bad \xff utf", "bad \u{fffd} utf"),
            (b"\x1b[\nx", "x"),
        ] {
            assert_eq!(clean(line), left);
        }
    }

    #[test]
    fn prefixes_of_processes_and_loggers_are_left_out() {
        for (line, left) in [
            ("ERROR 06-13 11:42:20 llm_engine.py:11] boom", "boom"),
            ("ERROR 03-19 21:04:41 [core.py:632] ValueError: x", "ValueError: x"),
            (
                "(EngineCore_0 pid=7) ERROR 08-03 11:42:20 [core.py:632] Traceback (most recent call last):",
                "Traceback (most recent call last):",
            ),
            ("(EngineCore_DP0 pid=7) (Worker_TP0 pid=9) x", "x"),
            ("[rank0]: RuntimeError: x", "RuntimeError: x"),
            ("[2025-07-01 10:00:00 TP0] Scheduler hit an exception: x", "Scheduler hit an exception: x"),
            ("INFO:     Application startup complete.", "Application startup complete."),
            ("ERROR:    [Errno 98] error while attempting to bind", "[Errno 98] error while attempting to bind"),
            ("[Errno 98] x", "[Errno 98] x"),
            ("(note) x", "(note) x"),
            ("ValueError: x", "ValueError: x"),
            ("INFO", "INFO"),
            ("", ""),
        ] {
            assert_eq!(without_prefixes(line), left);
        }
    }
}
