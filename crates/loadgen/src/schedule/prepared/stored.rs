//! How schedules lie in a file: a head, an index, and the bytes of requests.
//!
//! The head is a mark, the lengths of index and bytes (8 bytes each, the lowest first), and the SHA-256 digest of the index.
//! The index is the length of a JSON text (4 bytes), the text, which describes each schedule, and then each schedule's
//! entries of [`ENTRY`] bytes.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use isobench_schema::ids::Digest;
use isobench_schema::record::{Phase, Turn};
use isobench_schema::workload::{Api, TokenCounter};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::schedule::bodies::{Bodies, Span};
use crate::schedule::{Entry, Input, Pace, Schedule, Schedules};

const MARK: &[u8; 20] = b"isobench prepared 2\n";
const HEAD: usize = MARK.len() + 8 + 8 + 32;

/// Bytes of an entry.
const ENTRY: usize = 56;

/// The longest index, in bytes: entries of some ten million requests.
const LONGEST_INDEX: u64 = 1 << 30;

/// The number that stands for no model.
const NO_MODEL: u16 = u16::MAX;
/// The number that stands for no turn, as session and as turn.
const NO_TURN: u32 = u32::MAX;

const PHASES: [Phase; 5] = [Phase::First, Phase::ProbeBefore, Phase::WarmUp, Phase::Measure, Phase::ProbeAfter];

/// A schedule without its entries and bytes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Described {
    phase: Phase,
    api: Api,
    counter: TokenCounter,
    pace: Pace,
    models: Vec<String>,
    entries: usize,
    bytes: u64,
    input: Option<Input>,
    left_out: u64,
    again: u64,
    digest: Digest,
}

/// Writes schedules.
pub(super) fn write(schedules: &Schedules, file: &mut File) -> io::Result<()> {
    let all = PHASES.map(|phase| schedules.phase(phase));
    let described: Vec<Described> = all
        .iter()
        .map(|schedule| Described {
            phase: schedule.phase,
            api: schedule.api,
            counter: schedule.counter,
            pace: schedule.pace,
            models: schedule.models.clone(),
            entries: schedule.entries.len(),
            bytes: schedule.bodies.length(),
            input: schedule.input.clone(),
            left_out: schedule.left_out,
            again: schedule.again,
            digest: schedule.digest.clone(),
        })
        .collect();
    let text = serde_json::to_vec(&described)?;
    let length = u32::try_from(text.len()).map_err(|_too_long| io::ErrorKind::FileTooLarge)?;
    let mut index = length.to_le_bytes().to_vec();
    index.extend_from_slice(&text);
    for entry in all.iter().flat_map(|schedule| &schedule.entries) {
        write_entry(entry, &mut index);
    }
    let bytes: u64 = described.iter().map(|one| one.bytes).sum();
    let mut out = BufWriter::with_capacity(1 << 20, file);
    out.write_all(MARK)?;
    out.write_all(&(index.len() as u64).to_le_bytes())?;
    out.write_all(&bytes.to_le_bytes())?;
    out.write_all(&Sha256::digest(&index))?;
    out.write_all(&index)?;
    for schedule in all {
        schedule.bodies.copy(&mut out)?;
    }
    out.flush()
}

/// Reads schedules. The bytes of their requests stay in the file.
pub(super) fn read(file: File) -> io::Result<Schedules> {
    let mut head = [0; HEAD];
    file.read_exact_at(&mut head, 0)?;
    let mut head = Reader(&head);
    if head.take(MARK.len())? != MARK {
        return Err(damaged("it has another mark"));
    }
    let (length, bytes) = (head.u64()?, head.u64()?);
    let begin = (HEAD as u64).checked_add(length).ok_or_else(|| damaged("its index is too long"))?;
    if length > LONGEST_INDEX || begin.checked_add(bytes) != Some(file.metadata()?.len()) {
        return Err(damaged("it has another length"));
    }
    let mut index = vec![0; usize::try_from(length).map_err(|_too_long| io::ErrorKind::FileTooLarge)?];
    file.read_exact_at(&mut index, HEAD as u64)?;
    if *head.take(32)? != *Sha256::digest(&index) {
        return Err(damaged("its index has another digest"));
    }
    let mut index = Reader(&index);
    let text = index.u32()?;
    let described: Vec<Described> = serde_json::from_slice(index.take(text as usize)?)?;
    let file = Arc::new(file);
    let mut at = begin;
    let mut described = described.into_iter();
    Schedules::of(|phase| {
        let one = described.next().filter(|one| one.phase == phase).ok_or_else(|| damaged("a phase is missing"))?;
        let mut entries = Vec::with_capacity(one.entries.min(index.0.len() / ENTRY));
        for _ in 0..one.entries {
            entries.push(read_entry(&mut index)?);
        }
        let bodies = Bodies::stored(Arc::clone(&file), at, one.bytes);
        at += one.bytes;
        Ok(Schedule {
            phase,
            api: one.api,
            counter: one.counter,
            pace: one.pace,
            models: one.models,
            entries,
            bodies,
            input: one.input,
            left_out: one.left_out,
            again: one.again,
            digest: one.digest,
        })
    })
}

fn write_entry(entry: &Entry, out: &mut Vec<u8>) {
    let (session, turn) = entry.turn.map_or((NO_TURN, NO_TURN), |turn| (turn.session, turn.turn));
    out.extend_from_slice(&entry.offset_ns.to_le_bytes());
    out.extend_from_slice(&entry.think_ns.to_le_bytes());
    for number in [entry.input_tokens, entry.output_tokens, session, turn, entry.body.length, entry.tail.length] {
        out.extend_from_slice(&number.to_le_bytes());
    }
    // What comes after the body follows it.
    out.extend_from_slice(&entry.body.at.to_le_bytes());
    out.extend_from_slice(&entry.model.unwrap_or(NO_MODEL).to_le_bytes());
    // To a multiple of eight.
    out.extend_from_slice(&[0; 6]);
}

fn read_entry(index: &mut Reader<'_>) -> io::Result<Entry> {
    let (offset_ns, think_ns) = (index.u64()?, index.u64()?);
    let (input_tokens, output_tokens) = (index.u32()?, index.u32()?);
    let (session, turn) = (index.u32()?, index.u32()?);
    let (body, tail) = (index.u32()?, index.u32()?);
    let at = index.u64()?;
    let model = index.u16()?;
    index.take(6)?;
    Ok(Entry {
        offset_ns,
        think_ns,
        input_tokens,
        output_tokens,
        turn: (session != NO_TURN || turn != NO_TURN).then_some(Turn { session, turn }),
        model: (model != NO_MODEL).then_some(model),
        body: Span { at, length: body },
        tail: Span { at: at + u64::from(body), length: tail },
    })
}

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Bytes that are read from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> io::Result<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(count).ok_or_else(|| damaged("its index is too short"))?;
        self.0 = rest;
        Ok(front)
    }

    fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        self.take(N)?.try_into().map_err(|_other_length| damaged("its index is too short"))
    }

    fn u64(&mut self) -> io::Result<u64> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn u32(&mut self) -> io::Result<u32> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u16(&mut self) -> io::Result<u16> {
        Ok(u16::from_le_bytes(self.array()?))
    }
}
