//! The telling lines of an engine's log, with their places.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use isobench_analysis::classify::Classifier;
use isobench_schema::failure::EvidenceLine;
use rustix::fs::{Mode, OFlags};

/// How much of a log's end is searched.
const END: u64 = 256 * 1024;
/// How many of the last lines are kept.
const LAST_LINES: usize = 12;

/// Returns the lines that tell most of a log: those that show why the engine failed, from all of it, then the last ones.
/// A log that is absent, empty or no plain file has none.
pub(crate) fn telling_lines(path: &Path, name: &str) -> Vec<EvidenceLine> {
    let Ok((first, text)) = end_of(path) else { return Vec::new() };
    let mut telling: Vec<EvidenceLine> = why(path, name).unwrap_or_default();
    let lines: Vec<(u64, &str)> = (first..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()).collect();
    // The classifier leaves out what loggers add; where the line itself is at hand, it is shown as it stands.
    for told in &mut telling {
        if let Some((line, text)) = lines.iter().find(|(line, _)| told.line == Some(*line)) {
            *told = EvidenceLine::new(name, Some(*line), text);
        }
    }
    let skipped = lines.len().saturating_sub(LAST_LINES);
    for (line, text) in lines.into_iter().skip(skipped) {
        if telling.iter().all(|told| told.line != Some(line)) {
            telling.push(EvidenceLine::new(name, Some(line), text));
        }
    }
    telling
}

/// Returns the lines that show why the engine failed, as far as its log says it.
fn why(path: &Path, name: &str) -> io::Result<Vec<EvidenceLine>> {
    let classifier = Classifier::new();
    let mut reader = classifier.log(name);
    let file = open(path)?;
    // No further than now: an engine that lives may write faster than this reads.
    let length = file.metadata()?.len();
    let mut file = BufReader::with_capacity(1 << 18, file.take(length));
    loop {
        let bytes = file.fill_buf()?;
        if bytes.is_empty() {
            break;
        }
        let read = bytes.len();
        reader.feed(bytes);
        file.consume(read);
    }
    let cause = classifier.classify(&[reader.finish()], None);
    Ok(cause.evidence.into_iter().map(|line| EvidenceLine::new(line.file, Some(line.line), &line.text)).collect())
}

/// Opens a log, which the engine may have replaced by a pipe, that would block, or by a link.
fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
    }
    Ok(file)
}

/// Returns the number of the first line of a file's end, and that end, which begins with a whole line.
fn end_of(path: &Path) -> io::Result<(u64, String)> {
    let mut file = open(path)?;
    let length = file.metadata()?.len();
    let start = length.saturating_sub(END);
    let mut first = 1;
    if start > 0 {
        let mut reader = BufReader::with_capacity(1 << 20, file.try_clone()?.take(start));
        loop {
            let bytes = reader.fill_buf()?;
            if bytes.is_empty() {
                break;
            }
            first += bytes.split(|&byte| byte == b'\n').skip(1).map(|_| 1).sum::<u64>();
            let read = bytes.len();
            reader.consume(read);
        }
        file.seek(SeekFrom::Start(start))?;
    }
    let mut bytes = Vec::new();
    file.take(END).read_to_end(&mut bytes)?;
    if start > 0 {
        // The first line of the end is most likely cut.
        let cut = bytes.iter().position(|&byte| byte == b'\n').map_or(bytes.len(), |place| place + 1);
        bytes.drain(..cut);
        first += 1;
    }
    Ok((first, String::from_utf8_lossy(&bytes).into_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(log: &str, expected: &[(u64, &str)]) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        std::fs::write(&path, log).unwrap();
        let lines = telling_lines(&path, "server.stderr");
        let found: Vec<(u64, &str)> = lines.iter().map(|line| (line.line.unwrap(), line.text.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn the_error_comes_first() {
        let log = "start\nTraceback (most recent call last):\n  File \"x.py\"\nValueError: no such flag\n\nbye\n";
        let expected = [
            (4, "ValueError: no such flag"),
            (1, "start"),
            (2, "Traceback (most recent call last):"),
            (3, "  File \"x.py\""),
            (6, "bye"),
        ];
        check(log, &expected);
        check("", &[]);
    }

    #[test]
    fn a_pipe_or_link_in_the_place_of_a_log_tells_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (log, pipe, link) = (folder.path().join("log"), folder.path().join("pipe"), folder.path().join("link"));
        std::fs::write(&log, "said\n").unwrap();
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        std::os::unix::fs::symlink(&log, &link).unwrap();
        for (path, lines) in [(&log, 1), (&pipe, 0), (&link, 0), (&folder.path().to_owned(), 0)] {
            assert_eq!(telling_lines(path, "server.stderr").len(), lines, "{}", path.display());
        }
    }

    #[test]
    fn a_long_log_keeps_its_line_numbers() {
        let mut log = "0123456789abcdef\n".repeat(40_000);
        log.push_str("OSError: last\n");
        let lines_before = 40_000;
        let mut expected = vec![(lines_before + 1, "OSError: last")];
        expected.extend((lines_before - 10..=lines_before).map(|line| (line, "0123456789abcdef")));
        check(&log, &expected);
    }
}
