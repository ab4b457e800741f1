//! One line of a log: who wrote it, at which level, how far it is indented, and what it says.

/// How bad its writer says that it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// A note: it is no failure.
    Note,
    /// A warning: whoever writes it goes on.
    Warning,
    /// It doesn't say.
    Unsaid,
    /// An error.
    Error,
}

/// A line without what terminals, processes and loggers add to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The level.
    pub(super) level: Level,
    /// Who wrote it: a hash of the tags before it, 0 if there are none.
    pub(super) writer: u64,
    /// Spaces before what it says.
    pub(super) indent: usize,
    /// What it says.
    pub(super) body: &'a str,
}

/// Reads a line that has no escape sequences any more.
pub(super) fn read(text: &str) -> Line<'_> {
    let mut line = Line { level: Level::Unsaid, writer: 0, indent: 0, body: text };
    loop {
        let trimmed = line.body.trim_start();
        let Some(tag) = tag(trimmed).or_else(|| logger(trimmed)).or_else(|| carrier(trimmed)) else { break };
        line.level = tag.level.unwrap_or(line.level);
        if !tag.writer.is_empty() {
            line.writer = hash(line.writer, tag.writer);
        }
        line.body = tag.rest.strip_prefix(' ').unwrap_or(tag.rest);
    }
    let trimmed = line.body.trim_start();
    line.indent = line.body.len() - trimmed.len();
    line.body = trimmed.trim_end();
    line.level = level_of(line.body).unwrap_or(line.level);
    line
}

/// Returns what follows the last progress bar on a line, if there is one.
pub(super) fn after_bars(text: &str) -> Option<&str> {
    let ends = ["it/s]", "s/it]", "?it/s]", "B/s]", "tok/s]", "MB/s"];
    let may_be_bar = text.contains("%|") || text.contains("/s") || text.contains("\u{2501}\u{2501}");
    let is_bar = |text: &str| {
        let is_drawn = text.contains("%|") || text.contains("\u{2501}\u{2501}");
        is_drawn || ends.iter().any(|end| text.contains(end))
    };
    if !may_be_bar || !is_bar(text) {
        return None;
    }
    let end = ends.iter().filter_map(|end| Some(text.rfind(end)? + end.len())).max();
    Some(end.and_then(|end| text.get(end..)).unwrap_or_default())
}

/// Returns the dotted name of the exception that a line reports, as Python writes it: `name: message`, or the name alone.
pub(super) fn exception(body: &str) -> Option<&str> {
    let name = body.split([':', ' ', '(']).next().filter(|name| !name.is_empty())?;
    let rest = body.get(name.len()..)?;
    if !(rest.is_empty() || rest.starts_with([':', '('])) {
        return None;
    }
    let is_word = |part: &str| {
        part.bytes().next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let last = name.rsplit('.').next()?;
    let ends = ["Error", "Exception", "Exit", "Interrupt", "Timeout", "Disconnected", "NotFound", "Unavailable"];
    (name.split('.').all(is_word) && ends.iter().any(|end| last.ends_with(end))).then_some(name)
}

struct Tag<'a> {
    writer: &'a str,
    level: Option<Level>,
    rest: &'a str,
}

/// Reads what carries the line: the name of a service of Docker Compose, `vllm-1  | `, a pod of `kubectl logs --prefix`,
/// `[pod/vllm-0/vllm] `, a step of Docker builds, `#22 1200.3 `, the journal, `Jul 01 10:00:00 host vllm[7]: `, the mark of an
/// exception in a report of pytest, `E   `, and that of a workflow's error, `##[error]`.
fn carrier(text: &str) -> Option<Tag<'_>> {
    if let Some(rest) = text.strip_prefix("E  ").filter(|rest| rest.starts_with(' ')) {
        return Some(Tag { writer: "E", level: None, rest });
    }
    if let Some(rest) = text.strip_prefix("##[error]") {
        return Some(Tag { writer: "", level: Some(Level::Error), rest });
    }
    if let Some((writer, rest)) = text.strip_prefix("[pod/").and_then(|tail| tail.split_once(']')) {
        return Some(Tag { writer, level: None, rest });
    }
    if let Some(tail) = text.strip_prefix('#') {
        let (step, tail) = tail.split_once(' ')?;
        let (seconds, rest) = tail.split_at_checked(tail.find(' ')?)?;
        return (is_digits(step) && is_numbers(seconds, '.')).then_some(Tag { writer: step, level: None, rest });
    }
    composed(text).or_else(|| journal(text))
}

/// Reads the name of a service, or nothing but the bar after it: `vllm-1  | Traceback`.
fn composed(text: &str) -> Option<Tag<'_>> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))?;
    let (writer, tail) = text.split_at_checked(end)?;
    let bar = tail.trim_start().strip_prefix('|')?;
    let is_name = writer.starts_with(|c: char| c.is_ascii_alphabetic()) && tail.starts_with(' ');
    (is_name && (bar.is_empty() || bar.starts_with(' '))).then_some(Tag { writer, level: None, rest: bar })
}

/// Reads the moment, host and process of the system's journal.
fn journal(text: &str) -> Option<Tag<'_>> {
    const MONTHS: &[&str] =
        &["Jan ", "Feb ", "Mar ", "Apr ", "May ", "Jun ", "Jul ", "Aug ", "Sep ", "Oct ", "Nov ", "Dec "];
    let tail = text.get(4..).filter(|_| MONTHS.iter().any(|month| text.starts_with(month)))?;
    let (day, tail) = tail.trim_start().split_once(' ')?;
    let (time, rest) = tail.split_once(' ')?;
    let is_moment = is_digits(day) && is_numbers(time.split('.').next().unwrap_or(time), ':');
    is_moment.then(|| of_process(rest)).flatten()
}

/// Reads the host and process that the journal writes after the moment: `host vllm[7]: `.
fn of_process(text: &str) -> Option<Tag<'_>> {
    let (host, tail) = text.trim_start().split_once(' ')?;
    let (writer, rest) = tail.split_once(':')?;
    let (name, id) = writer.strip_suffix(']')?.split_once('[')?;
    let is_process = !host.is_empty() && !name.is_empty() && !name.contains(' ') && is_digits(id);
    is_process.then_some(Tag { writer, level: None, rest })
}

/// Reads a tag: `(Worker_TP0 pid=7)`, `[rank0]:`, `[2025-07-01 10:00:00 TP0]`, `[ERROR]`, `| ` of a group of exceptions, or a
/// moment at the beginning.
fn tag(text: &str) -> Option<Tag<'_>> {
    if let Some(tail) = text.strip_prefix('(') {
        let (writer, rest) = tail.split_once(')')?;
        return writer.contains("pid=").then_some(Tag { writer, level: None, rest });
    }
    if let Some(rest) = text.strip_prefix("| ") {
        return Some(Tag { writer: "|", level: None, rest });
    }
    if let Some(tail) = text.strip_prefix('[') {
        let (inner, rest) = tail.split_once(']')?;
        return bracket(inner, rest.strip_prefix(':').unwrap_or(rest));
    }
    let rest = after_moment(text).or_else(|| after_time(text))?;
    // The log files of Kubernetes: `stderr F `.
    for stream in [" stderr F", " stdout F", " stderr P", " stdout P"] {
        if let Some(rest) = rest.strip_prefix(stream).filter(|rest| rest.is_empty() || rest.starts_with(' ')) {
            return Some(Tag { writer: "", level: None, rest });
        }
    }
    Some(dashed(rest).or_else(|| of_process(rest)).unwrap_or(Tag { writer: "", level: None, rest }))
}

fn bracket<'a>(inner: &'a str, rest: &'a str) -> Option<Tag<'a>> {
    let is_rank = inner.strip_prefix("rank").is_some_and(is_digits);
    if is_rank {
        return Some(Tag { writer: inner, level: None, rest });
    }
    if let Some(level) = level(inner) {
        return Some(Tag { writer: "", level: Some(level), rest });
    }
    if let Some(writer) = after_moment(inner) {
        return Some(Tag { writer: writer.trim(), level: None, rest });
    }
    // The C++ log of PyTorch: `[E528 10:00:00.123456789 ProcessGroupNCCL.cpp:628]`.
    let mut bytes = inner.bytes();
    let letter = bytes.next()?;
    let is_number = bytes.next().is_some_and(|byte| byte.is_ascii_digit()) && inner.contains(".cpp:");
    let level = match letter {
        b'I' => Level::Note,
        b'W' => Level::Warning,
        b'E' | b'F' => Level::Error,
        _ => return None,
    };
    is_number.then_some(Tag { writer: "", level: Some(level), rest })
}

/// Reads what Python's logging puts after the moment: `- vllm - ERROR - `.
fn dashed(rest: &str) -> Option<Tag<'_>> {
    let mut rest = rest.trim_start().strip_prefix("- ")?;
    for _ in 0..3 {
        let (word, tail) = rest.split_once(" - ")?;
        if let Some(level) = level(word.trim()) {
            return Some(Tag { writer: "", level: Some(level), rest: tail });
        }
        rest = tail;
    }
    None
}

/// Reads what a logger puts before its message: `ERROR 06-13 11:42:20 file.py:11] `, `ERROR 03-19 21:04:41 [file.py:256] `,
/// `INFO:     `, `WARNING:root:`, `INFO worker.py:1636 -- `.
fn logger(text: &str) -> Option<Tag<'_>> {
    let (word, tail) = text.split_once([' ', ':', '\t'])?;
    let level = Some(level(word)?);
    if let Some(rest) = tail.strip_prefix("root:") {
        return Some(Tag { writer: "", level, rest });
    }
    let mut rest = tail.trim_start();
    let mut words = rest.splitn(3, ' ');
    if let (Some(day), Some(time)) = (words.next(), words.next())
        && is_numbers(day, '-')
        && is_numbers(time.split('.').next().unwrap_or(time), ':')
    {
        rest = words.next().unwrap_or_default();
    }
    let place = rest.strip_prefix('[').and_then(|inner| inner.split_once(']')).or_else(|| rest.split_once(']'));
    if let Some((writer, message)) = place.filter(|(source, _)| source.contains(".py:") && !source.contains(' ')) {
        return Some(Tag { writer, level, rest: message });
    }
    if let Some((_, message)) = rest.split_once(" -- ").filter(|(source, _)| source.contains(".py:")) {
        return Some(Tag { writer: "", level, rest: message });
    }
    Some(Tag { writer: "", level, rest })
}

fn level(word: &str) -> Option<Level> {
    match word {
        "DEBUG" | "INFO" | "NOTICE" | "TRACE" => Some(Level::Note),
        "WARNING" | "WARN" => Some(Level::Warning),
        "ERROR" | "CRITICAL" | "FATAL" => Some(Level::Error),
        _ => None,
    }
}

/// Returns the level that a message says by its words, whatever its logger says.
fn level_of(body: &str) -> Option<Level> {
    if body.starts_with("warning:") || body.starts_with("Warning:") {
        return Some(Level::Warning);
    }
    // `path/file.py:12: UserWarning: ...`, or without the place.
    let (before, _) = body.split_once("Warning: ")?;
    let kind = before.rsplit(' ').next().unwrap_or_default();
    let place = before.strip_suffix(kind).unwrap_or_default().trim_end();
    let is_plain = kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.' || byte == b'_');
    let is_place = place.is_empty() || (place.ends_with(':') && place.contains(".py:"));
    (is_plain && is_place).then_some(Level::Warning)
}

/// Returns what follows a moment such as `2025-07-01 10:00:00,123`, `2025-07-01T10:00:00.123Z` at the beginning.
fn after_moment(text: &str) -> Option<&str> {
    let day = text.get(..10)?;
    if !(is_numbers(day, '-') || is_numbers(day, '/')) {
        return None;
    }
    let tail = text.get(10..)?;
    let tail = tail.strip_prefix(['T', ' '])?;
    let end = tail.find(|c: char| !(c.is_ascii_digit() || matches!(c, ':' | '.' | ',' | 'Z'))).unwrap_or(tail.len());
    let (time, rest) = tail.split_at_checked(end)?;
    time.contains(':').then(|| after_zone(rest))
}

/// Returns what follows the difference to universal time, such as `+02:00`, or the whole text if it begins with none.
fn after_zone(text: &str) -> &str {
    let Some(tail) = text.strip_prefix(['+', '-']) else { return text };
    let end = tail.find(|c: char| !(c.is_ascii_digit() || c == ':')).unwrap_or(tail.len());
    if end < 4 { text } else { tail.get(end..).unwrap_or_default() }
}

/// Returns what follows a time alone at the beginning: `06:53:43.944 ERROR ...`.
fn after_time(text: &str) -> Option<&str> {
    let (time, _) = text.split_once(' ')?;
    let (whole, fraction) = time.split_once(['.', ',']).unwrap_or((time, "0"));
    let is_time = whole.len() == 8 && is_numbers(whole, ':') && is_digits(fraction);
    is_time.then(|| text.get(time.len()..)).flatten()
}

/// Returns whether a word is numbers with one sign between them, such as `06-13` or `11:42:20`.
fn is_numbers(word: &str, between: char) -> bool {
    word.contains(between) && word.split(between).all(is_digits)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Hashes a writer's tags, one after another (FNV-1a).
fn hash(before: u64, text: &str) -> u64 {
    let begin = before ^ 0xcbf2_9ce4_8422_2325;
    text.bytes().fold(begin, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_tell_the_level_and_leave_the_indentation() {
        for (text, level, indent, body) in [
            ("ValueError: x", Level::Unsaid, 0, "ValueError: x"),
            ("(EngineCore_0 pid=7) ERROR 08-03 11:42:20 [core.py:632]   File \"x\"", Level::Error, 2, "File \"x\""),
            ("ERROR 06-13 11:42:20 llm_engine.py:11] boom", Level::Error, 0, "boom"),
            ("(EngineCore pid=316)     raise x", Level::Unsaid, 4, "raise x"),
            ("[rank0]:   File \"x\"", Level::Unsaid, 2, "File \"x\""),
            ("[2025-07-01 10:00:00 TP0] Scheduler hit", Level::Unsaid, 0, "Scheduler hit"),
            ("2025-03-07 23:50:27,531 - __main__ - WARNING - Attempt 13", Level::Warning, 0, "Attempt 13"),
            ("2024-06-01T12:00:00.123Z ERROR: boom", Level::Error, 0, "boom"),
            ("WARNING:root:late", Level::Warning, 0, "late"),
            ("INFO:     Application startup complete.", Level::Note, 4, "Application startup complete."),
            (
                "/x/serve.py:12: UserWarning: All requests failed.",
                Level::Warning,
                0,
                "/x/serve.py:12: UserWarning: All requests failed.",
            ),
            ("FutureWarning: old", Level::Warning, 0, "FutureWarning: old"),
            ("[E528 10:00:00.123 ProcessGroupNCCL.cpp:628] Watchdog", Level::Error, 0, "Watchdog"),
            ("2023-08-18 01:51:40,123\tINFO worker.py:1636 -- Started", Level::Note, 0, "Started"),
            ("ERROR [core.py:1330] EngineCore failed to start.", Level::Error, 0, "EngineCore failed to start."),
            ("    | ValueError: x", Level::Unsaid, 0, "ValueError: x"),
            ("vllm-1  | ValueError: x", Level::Unsaid, 0, "ValueError: x"),
            ("sglang  |   File \"x\"", Level::Unsaid, 2, "File \"x\""),
            ("vllm-1  |", Level::Unsaid, 0, ""),
            ("Jul  1 10:00:00 host1 vllm[1234]:   File \"x\"", Level::Unsaid, 2, "File \"x\""),
            ("2025-07-01T10:00:00+0200 host1 python3[7]: KeyError: 'x'", Level::Unsaid, 0, "KeyError: 'x'"),
            ("2025-07-01T10:00:00.123456789Z stderr F ValueError: x", Level::Unsaid, 0, "ValueError: x"),
            ("2025-07-01T10:00:00.123456+00:00     raise x", Level::Unsaid, 4, "raise x"),
            ("2025-07-01T10:00:00.1234567Z ##[error]boom", Level::Error, 0, "boom"),
            ("2025/07/01 10:00:00 KeyError: 'x'", Level::Unsaid, 0, "KeyError: 'x'"),
            ("06:53:43.944 ERROR    boom", Level::Error, 0, "boom"),
            ("[pod/vllm-0/vllm] ValueError: x", Level::Unsaid, 0, "ValueError: x"),
            ("#22 1200.3 nvcc error   : boom", Level::Unsaid, 0, "nvcc error   : boom"),
            ("E       ValueError: x", Level::Unsaid, 4, "ValueError: x"),
            ("a table | of words", Level::Unsaid, 0, "a table | of words"),
            ("12:30 lunch", Level::Unsaid, 0, "12:30 lunch"),
            ("", Level::Unsaid, 0, ""),
        ] {
            let line = read(text);
            assert_eq!((line.level, line.body), (level, body), "{text}");
            if level != Level::Note {
                assert_eq!(line.indent, indent, "{text}");
            }
        }
    }

    #[test]
    fn writers_are_told_apart() {
        let writer = |text| read(text).writer;
        assert_ne!(writer("(EngineCore_0 pid=7) x"), writer("(EngineCore_1 pid=8) x"));
        assert_eq!(writer("(EngineCore_0 pid=7) x"), writer("(EngineCore_0 pid=7)     y"));
        assert_eq!(writer("x"), 0);
    }

    #[test]
    fn exceptions_are_known_by_their_names() {
        for (body, name) in [
            ("ValueError: x", Some("ValueError")),
            ("torch.OutOfMemoryError: CUDA out of memory.", Some("torch.OutOfMemoryError")),
            ("KeyboardInterrupt", Some("KeyboardInterrupt")),
            ("AssertionError", Some("AssertionError")),
            ("error: x", None),
            ("RuntimeError happened", None),
            ("The Error: x", None),
            ("12Error: x", None),
            ("", None),
        ] {
            assert_eq!(exception(body), name, "{body}");
        }
    }

    #[test]
    fn what_follows_a_progress_bar_is_left() {
        for (text, left) in [
            ("no bar", None),
            ("Processed prompts:   0%|          | 0/100 [00:00<?, ?it/s]Traceback", Some("Traceback")),
            ("Capturing CUDA graph shapes:  90%|####  | 60/67 [00:10<00:01, 5.1it/s]", Some("")),
            ("Loading:  25% Completed | 1/4 [00:00<00:01,  2.04it/s]", Some("")),
        ] {
            assert_eq!(after_bars(text), left, "{text}");
        }
    }
}
