//! Objectives for single requests, such as `ttft<200ms && tpot<=50ms`: a request that meets its objective is good, and
//! goodput counts the good ones.
//!
//! ```text
//! objective  = any | pairs
//! any        = all { "||" all }
//! all        = not { "&&" not }
//! not        = [ "!" ] ( "(" any ")" | comparison )
//! comparison = metric ( "<" | "<=" | ">" | ">=" ) number [ "us" | "ms" | "s" ]
//! pairs      = metric ":" number { ( " " | "," ) metric ":" number }
//! ```
//!
//! The second form is that of `vllm bench serve --goodput`: upper bounds in milliseconds, all of which must hold.
//!
//! | metric | what is compared |
//! | --- | --- |
//! | `ttft`, `ttfc` | time to the first token, to the first content, from the scheduled send |
//! | `e2el` | end-to-end latency, from the scheduled send |
//! | `tpot` | time per output token after the first |
//! | `itl_p99`, `itl_max` | 99th percentile (type 7) and maximum of the request's inter-token latencies |
//! | `icl_max` | maximum of its inter-chunk latencies |
//! | `tokens`, `input_tokens` | tokens of the answer, of the prompt |
//!
//! An answer of one token has no gap, and its `tpot`, `itl_p99`, `itl_max` and `icl_max` count as 0, as in vLLM. An answer
//! without any token has no `ttft`, and no comparison of that holds.

mod parser;

use std::fmt;

pub use parser::ParseObjectiveError;

/// What a request is asked to be like.
#[derive(Debug, Clone, PartialEq)]
pub struct Objective {
    text: String,
    rule: Rule,
}

/// A condition.
#[derive(Debug, Clone, PartialEq)]
enum Rule {
    Is(Comparison),
    Not(Box<Rule>),
    All(Vec<Rule>),
    Any(Vec<Rule>),
}

/// A bound of one number.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Comparison {
    metric: RequestMetric,
    relation: Relation,
    bound: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Relation {
    Below,
    UpTo,
    Above,
    From,
}

/// A number of a single request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestMetric {
    /// Time to first token, in milliseconds.
    Ttft,
    /// Time to first content, in milliseconds.
    Ttfc,
    /// Time per output token after the first, in milliseconds.
    Tpot,
    /// End-to-end latency, in milliseconds.
    E2el,
    /// 99th percentile of the inter-token latencies, in milliseconds.
    ItlP99,
    /// The longest inter-token latency, in milliseconds.
    ItlMax,
    /// The longest inter-chunk latency, in milliseconds.
    IclMax,
    /// Tokens of the answer.
    Tokens,
    /// Tokens of the prompt.
    InputTokens,
}

/// Upper bounds, in milliseconds, all of which must hold.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct UpperBounds {
    /// Of the time to first token.
    pub ttft_ms: Option<f64>,
    /// Of the time per output token after the first.
    pub tpot_ms: Option<f64>,
    /// Of the end-to-end latency.
    pub e2el_ms: Option<f64>,
}

impl RequestMetric {
    /// Every metric with its name.
    const NAMES: [(&'static str, Self); 9] = [
        ("ttft", Self::Ttft),
        ("ttfc", Self::Ttfc),
        ("tpot", Self::Tpot),
        ("e2el", Self::E2el),
        ("itl_p99", Self::ItlP99),
        ("itl_max", Self::ItlMax),
        ("icl_max", Self::IclMax),
        ("tokens", Self::Tokens),
        ("input_tokens", Self::InputTokens),
    ];

    /// Returns whether it is a duration.
    fn is_duration(self) -> bool {
        match self {
            Self::Tokens | Self::InputTokens => false,
            Self::Ttft | Self::Ttfc | Self::Tpot | Self::E2el | Self::ItlP99 | Self::ItlMax | Self::IclMax => true,
        }
    }
}

impl Objective {
    /// Reads an objective in either form.
    ///
    /// # Errors
    /// Returns what can't be read, and where.
    pub fn parse(text: &str) -> Result<Self, ParseObjectiveError> {
        Ok(Self { text: text.to_owned(), rule: parser::parse(text)? })
    }

    /// Returns the objective as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether a request meets it. `number` returns the request's number, or `None` if it has none.
    pub fn is_met(&self, mut number: impl FnMut(RequestMetric) -> Option<f64>) -> bool {
        self.rule.holds(&mut number)
    }

    /// Returns the upper bounds of `ttft`, `tpot` and `e2el`, if the objective is that all of some of these hold and nothing
    /// else, which is what vLLM and SGLang can express.
    pub fn upper_bounds(&self) -> Option<UpperBounds> {
        let rules = match &self.rule {
            Rule::All(rules) => rules.as_slice(),
            single @ (Rule::Is(_) | Rule::Not(_) | Rule::Any(_)) => std::slice::from_ref(single),
        };
        let mut bounds = UpperBounds::default();
        for rule in rules {
            let Rule::Is(Comparison { metric, relation: Relation::UpTo, bound }) = rule else { return None };
            let own = match metric {
                RequestMetric::Ttft => &mut bounds.ttft_ms,
                RequestMetric::Tpot => &mut bounds.tpot_ms,
                RequestMetric::E2el => &mut bounds.e2el_ms,
                RequestMetric::Ttfc
                | RequestMetric::ItlP99
                | RequestMetric::ItlMax
                | RequestMetric::IclMax
                | RequestMetric::Tokens
                | RequestMetric::InputTokens => return None,
            };
            *own = Some(own.map_or(*bound, |other| other.min(*bound)));
        }
        Some(bounds)
    }

    /// Returns whether the objective needs the percentile of a request's gaps, which costs a sort of them.
    pub(crate) fn needs_percentile(&self) -> bool {
        self.rule.names(RequestMetric::ItlP99)
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl Rule {
    fn holds(&self, number: &mut impl FnMut(RequestMetric) -> Option<f64>) -> bool {
        match self {
            Self::Is(Comparison { metric, relation, bound }) => number(*metric).is_some_and(|value| match relation {
                Relation::Below => value < *bound,
                Relation::UpTo => value <= *bound,
                Relation::Above => value > *bound,
                Relation::From => value >= *bound,
            }),
            Self::Not(rule) => !rule.holds(number),
            Self::All(rules) => rules.iter().all(|rule| rule.holds(number)),
            Self::Any(rules) => rules.iter().any(|rule| rule.holds(number)),
        }
    }

    fn names(&self, wanted: RequestMetric) -> bool {
        match self {
            Self::Is(comparison) => comparison.metric == wanted,
            Self::Not(rule) => rule.names(wanted),
            Self::All(rules) | Self::Any(rules) => rules.iter().any(|rule| rule.names(wanted)),
        }
    }
}

#[cfg(test)]
mod tests;
