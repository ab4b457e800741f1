//! What terminals and loggers add to a line, and the line without it.

use std::borrow::Cow;

/// Returns a line as text: invalid UTF-8 replaced, escape sequences and other control characters but tabs left out.
///
/// Colours say nothing of the text. Anything else may have moved the cursor or may be what is left of other characters:
/// between two characters of a number, `\u{fffd}` stands for it, so that no number is made of two pieces.
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
    let mut is_joined = true;
    while let Some(character) = characters.next() {
        if is_printed(character) {
            if !is_joined && left.chars().next_back().is_some_and(|before| is_number(before, character)) {
                left.push(char::REPLACEMENT_CHARACTER);
            }
            is_joined = true;
            left.push(character);
        } else {
            is_joined &= skip_control(character, &mut characters);
        }
    }
    left
}

fn is_printed(character: char) -> bool {
    character == '\t' || !character.is_control()
}

/// Returns whether two characters would be read as parts of one number.
fn is_number(one: char, other: char) -> bool {
    let may_be = |character: char| character.is_ascii_digit() || matches!(character, '.' | '-' | '+' | 'e' | 'E');
    may_be(one) && may_be(other) && (one.is_ascii_digit() || other.is_ascii_digit())
}

/// Skips what belongs to a control character, and returns whether the text stays as it was written.
fn skip_control(control: char, characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    match control {
        '\u{1b}' => match characters.next() {
            Some('[') => skip_control_sequence(characters),
            Some(']') => {
                skip_system_command(characters);
                false
            }
            // The choice of a character set, as `tput sgr0` writes it beside colours, takes one more.
            Some('(' | ')') => {
                characters.next();
                true
            }
            _ => false,
        },
        '\u{9b}' => skip_control_sequence(characters),
        // What the choice of a character set ends with.
        '\u{f}' => true,
        _ => false,
    }
}

/// Skips the rest of a control sequence (ECMA-48, section 5.4): parameters and intermediates, then one final byte.
/// Returns whether the text stays as it was written: it sets colours or a mode, or erases what is behind the cursor, as
/// compilers do after each colour.
fn skip_control_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let mut erases_before = false;
    while let Some(&character) = characters.peek() {
        match character {
            ' '..='?' => {
                erases_before |= matches!(character, '1' | '2');
                characters.next();
            }
            '@'..='~' => {
                characters.next();
                return matches!(character, 'm' | 'h' | 'l') || (character == 'K' && !erases_before);
            }
            // No such sequence: what follows is text again.
            _ => break,
        }
    }
    false
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
            (b"8\x1b[1m12\x1b[0m.4\x1b(B\x1b[m4\x1b[K", "812.44"),
            (b"\x1b[01;31m\x1b[Kerror\x1b[m\x1b[Kend", "errorend"),
            (b"\x1b[2K\x1b[1G\x1b[A812.44\x1b[?25h\x08\x08", "812.44"),
            (b"9\x08812.44", "9\u{fffd}812.44"),
            (b"99\x1b[2K\x1b[1G812.44", "99\u{fffd}812.44"),
            (b"812\x1b[3D.44", "812\u{fffd}.44"),
            (b"81\x002.44", "81\u{fffd}2.44"),
            (b"1\x1b[De5", "1\u{fffd}e5"),
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
