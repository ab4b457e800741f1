//! The gaps between the chunks of answers: an exact multiset that needs about a byte for each.
//!
//! A gap is kept in nanoseconds with the tokens of the chunk that ends it. They are gathered, sorted and packed into runs:
//! differences between neighbours in a variable length, repeated ones as a number. A quantile merges the runs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use isobench_schema::record::RequestRecord;

use super::elapsed_ms;
use crate::stats::{Sorted, Weighted, real};

/// How many gaps are gathered before they are packed. More are packed smaller: the nearer neighbours are, the fewer bytes
/// their difference needs. Each needs 8 bytes until then.
const GATHERED: usize = 1 << 21;
/// A gap and its tokens share one word while gathered: gaps up to 2^48 ns (3.3 days), tokens below 2^16.
const GAP_BITS: u32 = 48;
const NS_PER_MS: f64 = 1e6;

/// The gaps of many answers on both clocks.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Gaps that count on both clocks.
    both: GapSet,
    /// Gaps on the token clock only: there were chunks without a token in between.
    tokens: GapSet,
    /// Gaps on the chunk clock only: a chunk without a token ends or begins them.
    chunks: GapSet,
}

impl Gaps {
    /// Takes in an answer and gives each of its gaps to `also`.
    pub(crate) fn take(&mut self, record: &RequestRecord, mut also: impl FnMut(&Gap)) {
        walk(record, |gap| {
            also(&gap);
            let set = match gap.clock {
                Clock::Both => &mut self.both,
                Clock::Tokens => &mut self.tokens,
                Clock::Chunks => &mut self.chunks,
            };
            set.push(gap);
        });
    }

    /// Packs what is still gathered, and frees its room.
    pub(crate) fn seal(&mut self) {
        for set in [&mut self.both, &mut self.tokens, &mut self.chunks] {
            set.pack();
            set.gathered = Vec::new();
        }
    }

    /// Returns the inter-token latencies in milliseconds: a chunk of k tokens that comes a gap g after the chunk with tokens
    /// before it stands for k gaps of g/k.
    pub(crate) fn by_token(&self) -> GapView<'_> {
        GapView { sets: [&self.both, &self.tokens], clock: Clock::Tokens }
    }

    /// Returns the inter-chunk latencies in milliseconds: one gap for each chunk after the first.
    pub(crate) fn by_chunk(&self) -> GapView<'_> {
        GapView { sets: [&self.both, &self.chunks], clock: Clock::Chunks }
    }

    /// Returns whether both clocks show the same: every chunk had one token.
    pub(crate) fn clocks_agree(&self) -> bool {
        self.tokens.is_empty() && self.chunks.is_empty() && !self.both.has_several
    }
}

/// The clocks that a gap counts on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    /// The token clock and the chunk clock.
    Both,
    /// The token clock.
    Tokens,
    /// The chunk clock.
    Chunks,
}

/// A gap between two chunks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// When it began and ended, in nanoseconds of the records' clock.
    pub(crate) from_ns: u64,
    /// See `from_ns`.
    pub(crate) to_ns: u64,
    /// The tokens of the chunk that ends it; 1 where it counts on the chunk clock only.
    pub(crate) tokens: u32,
    /// The clocks that it counts on.
    pub(crate) clock: Clock,
}

impl Gap {
    /// Returns its length in milliseconds.
    pub(crate) fn ms(&self) -> f64 {
        elapsed_ms(self.from_ns, self.to_ns)
    }
}

/// Gives every gap of an answer to `take`.
///
/// On the token clock the first chunk with a token starts and gives none, and a chunk without a token doesn't stop it. On
/// the chunk clock every chunk after the first one ends a gap.
pub(crate) fn walk(record: &RequestRecord, mut take: impl FnMut(Gap)) {
    let mut chunk_before: Option<u64> = None;
    let mut token_before: Option<u64> = None;
    for (&to_ns, &tokens) in record.chunk_ns.iter().zip(&record.chunk_tokens) {
        let (chunk, token) = (chunk_before.replace(to_ns), token_before);
        if tokens > 0 {
            token_before = Some(to_ns);
        }
        let token = token.filter(|_| tokens > 0);
        // The chunk before had tokens exactly if both clocks began at it; equal times of two chunks make no difference.
        match (token, chunk) {
            (Some(from_ns), Some(chunk)) if from_ns == chunk => {
                take(Gap { from_ns, to_ns, tokens, clock: Clock::Both });
            }
            (token, chunk) => {
                if let Some(from_ns) = token {
                    take(Gap { from_ns, to_ns, tokens, clock: Clock::Tokens });
                }
                if let Some(from_ns) = chunk {
                    take(Gap { from_ns, to_ns, tokens: 1, clock: Clock::Chunks });
                }
            }
        }
    }
}

/// A multiset of gaps with their tokens.
#[derive(Debug, Default)]
struct GapSet {
    gathered: Vec<u64>,
    runs: Vec<Run>,
    /// Gaps that don't fit into a word: clocks that ran backwards, and chunks of very many tokens.
    odd: Vec<(f64, u32)>,
    chunks: u64,
    tokens: u64,
    has_several: bool,
}

/// Sorted gaps that chunks of the same number of tokens end.
#[derive(Debug)]
struct Run {
    tokens: u32,
    packed: Box<[u8]>,
}

impl GapSet {
    fn is_empty(&self) -> bool {
        self.chunks == 0
    }

    fn push(&mut self, gap: Gap) {
        self.chunks += 1;
        self.tokens += u64::from(gap.tokens);
        self.has_several |= gap.tokens != 1;
        let length = gap.to_ns.checked_sub(gap.from_ns).filter(|length| length >> GAP_BITS == 0);
        match (length, u16::try_from(gap.tokens)) {
            (Some(length), Ok(tokens)) => {
                self.gathered.push(u64::from(tokens) << GAP_BITS | length);
                if self.gathered.len() >= GATHERED {
                    self.pack();
                }
            }
            (None, _) | (_, Err(_)) => self.odd.push((gap.ms(), gap.tokens)),
        }
    }

    /// Packs what is gathered.
    fn pack(&mut self) {
        self.gathered.sort_unstable();
        pack(&self.gathered, &mut self.runs);
        self.gathered.clear();
    }
}

/// Packs sorted words into runs, one for each number of tokens.
fn pack(sorted: &[u64], runs: &mut Vec<Run>) {
    let tokens_of = |word: u64| word >> GAP_BITS;
    for same in sorted.chunk_by(|a, b| tokens_of(*a) == tokens_of(*b)) {
        let Some(first) = same.first() else { continue };
        let mut packed = Vec::new();
        // One less than a gap of 0, so that no first difference is 0.
        let mut before = (tokens_of(*first) << GAP_BITS) - 1;
        for equal in same.chunk_by(|a, b| a == b) {
            let (Some(word), Ok(times)) = (equal.first(), u64::try_from(equal.len())) else { continue };
            put(&mut packed, word - before);
            // A difference of 0 stands for repetitions, whose number follows.
            if times > 1 {
                put(&mut packed, 0);
                put(&mut packed, times - 1);
            }
            before = *word;
        }
        let tokens = u32::try_from(tokens_of(*first)).unwrap_or(u32::MAX);
        runs.push(Run { tokens, packed: packed.into_boxed_slice() });
    }
}

/// Appends a number in groups of seven bits, the lowest first (LEB128).
fn put(packed: &mut Vec<u8>, mut number: u64) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or(0);
        number >>= 7;
        if number == 0 {
            packed.push(low);
            return;
        }
        packed.push(low | 0x80);
    }
}

/// Takes a number off the front.
fn get(packed: &mut &[u8]) -> Option<u64> {
    let (mut number, mut shift) = (0, 0);
    loop {
        let (byte, rest) = packed.split_first()?;
        *packed = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
        shift += 7;
    }
}

/// Gaps on one clock, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GapView<'a> {
    sets: [&'a GapSet; 2],
    clock: Clock,
}

impl GapView<'_> {
    /// Returns the value of a gap and the number of times that it counts.
    fn value(self, gap_ms: f64, tokens: u32) -> (f64, u64) {
        match self.clock {
            Clock::Both | Clock::Tokens => (gap_ms / f64::from(tokens), u64::from(tokens)),
            Clock::Chunks => (gap_ms, 1),
        }
    }

    fn odd(self) -> Weighted {
        let odd = self.sets.iter().flat_map(|set| &set.odd);
        Weighted::new(odd.map(|(gap_ms, tokens)| self.value(*gap_ms, *tokens)).collect())
    }
}

impl Sorted for GapView<'_> {
    fn total(&self) -> u64 {
        let of = |set: &&GapSet| match self.clock {
            Clock::Both | Clock::Tokens => set.tokens,
            Clock::Chunks => set.chunks,
        };
        self.sets.iter().map(of).sum()
    }

    fn each(&self, pass: &mut dyn FnMut(f64, u64)) {
        let mut rest = Vec::new();
        for set in self.sets {
            let mut gathered = set.gathered.clone();
            gathered.sort_unstable();
            pack(&gathered, &mut rest);
        }
        let odd = self.odd();
        let runs = self.sets.iter().flat_map(|set| &set.runs).chain(&rest);
        let mut heap: BinaryHeap<Reverse<Cursor<'_>>> =
            runs.filter_map(|run| Cursor::packed(*self, run)).chain(Cursor::plain(odd.values())).map(Reverse).collect();
        while let Some(mut next) = heap.peek_mut() {
            let Reverse(cursor) = &mut *next;
            for _ in 0..cursor.times {
                pass(cursor.value, cursor.weight);
            }
            if !cursor.advance() {
                PeekMut::pop(next);
            }
        }
    }
}

/// A place in a run.
#[derive(Debug)]
struct Cursor<'a> {
    /// The value at it, the number of times that this counts, and how often it is there.
    value: f64,
    weight: u64,
    times: u64,
    rest: Rest<'a>,
}

/// What follows a place in a run.
#[derive(Debug)]
enum Rest<'a> {
    Packed { view: GapView<'a>, tokens: u32, gap_ns: u64, packed: &'a [u8] },
    Plain(&'a [(f64, u64)]),
}

impl<'a> Cursor<'a> {
    fn packed(view: GapView<'a>, run: &'a Run) -> Option<Self> {
        // The first difference is one more than the first gap.
        Self::first(Rest::Packed { view, tokens: run.tokens, gap_ns: u64::MAX, packed: &run.packed })
    }

    fn plain(values: &'a [(f64, u64)]) -> Option<Self> {
        Self::first(Rest::Plain(values))
    }

    fn first(rest: Rest<'a>) -> Option<Self> {
        let mut cursor = Self { value: 0.0, weight: 0, times: 0, rest };
        cursor.advance().then_some(cursor)
    }

    /// Goes on to the next value; returns whether there is one.
    fn advance(&mut self) -> bool {
        let next = match &mut self.rest {
            Rest::Packed { view, tokens, gap_ns, packed } => get(packed).and_then(|difference| {
                *gap_ns = gap_ns.wrapping_add(difference);
                let mut times = 1;
                if let Some(repetitions) = packed.strip_prefix(&[0]) {
                    *packed = repetitions;
                    times += get(packed)?;
                }
                let (value, weight) = view.value(real(*gap_ns) / NS_PER_MS, *tokens);
                Some((value, weight, times))
            }),
            Rest::Plain(values) => values.split_first().map(|((value, weight), rest)| {
                *values = rest;
                (*value, *weight, 1)
            }),
        };
        let Some((value, weight, times)) = next else { return false };
        (self.value, self.weight, self.times) = (value, weight, times);
        true
    }
}

impl Ord for Cursor<'_> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.value.total_cmp(&other.value).then_with(|| self.weight.cmp(&other.weight))
    }
}

impl PartialOrd for Cursor<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cursor<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Cursor<'_> {}

#[cfg(test)]
mod tests;
