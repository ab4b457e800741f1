//! What `isobench load` does where it isn't told: a load that says something of any server in under a minute.

use isobench_schema::workload::TokenCounter;

/// The length of the window, in seconds.
const WINDOW_S: f64 = 30.0;
/// Lengths in tokens where nothing speaks against them.
const INPUT_TOKENS: u32 = 128;
const OUTPUT_TOKENS: u32 = 64;
/// The shortest answer that still has several gaps between tokens.
const SHORTEST_OUTPUT: u32 = 4;
/// How long one request may take alone, in seconds, so that each place of the loop sees several.
const REQUEST_S: f64 = 5.0;
/// Requests under way.
const CONCURRENCY: u32 = 8;

/// What is known of a server before it is loaded: the answer to one request that was sent alone.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Probe {
    /// Tokens that a prompt and its answer may have together, as the server says.
    pub(crate) max_model_len: Option<u32>,
    /// Whether the ids of an answer's tokens come with it.
    pub(crate) has_token_ids: bool,
    /// Whether the server's `usage` comes with it.
    pub(crate) has_usage: bool,
    /// Whether a tokenizer is given.
    pub(crate) has_tokenizer: bool,
    /// How long the request took, in seconds, and how many tokens were asked of it.
    pub(crate) request_s: f64,
    /// See `request_s`.
    pub(crate) output_tokens: u32,
}

impl Probe {
    /// Returns what is known of a server that wasn't asked: it is taken for a quick one that sends token ids.
    pub(crate) fn unasked() -> Self {
        Self {
            max_model_len: None,
            has_token_ids: true,
            has_usage: false,
            has_tokenizer: false,
            request_s: 0.0,
            output_tokens: 1,
        }
    }
}

/// What is sent where nothing is said.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Defaults {
    /// Requests under way.
    pub(crate) concurrency: u32,
    /// The length of the window, in seconds.
    pub(crate) duration_s: f64,
    /// Tokens of each prompt.
    pub(crate) input_len: u32,
    /// Tokens asked of each answer.
    pub(crate) output_len: u32,
    /// Requests before the window.
    pub(crate) warm_up: u32,
    /// How tokens are counted.
    pub(crate) counter: TokenCounter,
}

/// Returns what is sent to a server of which this is known.
pub(crate) fn plan(probe: &Probe) -> Defaults {
    // Half of a short context is for prompts, and a quarter for answers: templates and special tokens need room too.
    let context = probe.max_model_len.unwrap_or(u32::MAX);
    let input_len = INPUT_TOKENS.min(context / 2).max(1);
    let longest = OUTPUT_TOKENS.min(context / 4).max(1);
    // One token's time bounds the answer from above: what comes before the first token makes it shorter still.
    let token_s = probe.request_s / f64::from(probe.output_tokens.max(1));
    // A power of two, so that a server that is a little slower the next time gets the same load.
    let is_round = |tokens: &u32| *tokens == longest || tokens.is_power_of_two();
    let fits = (1..=longest).rev().filter(is_round).find(|tokens| f64::from(*tokens) * token_s <= REQUEST_S);
    let output_len = fits.unwrap_or(1).max(SHORTEST_OUTPUT.min(longest));
    let request_s = token_s * f64::from(output_len);
    let concurrency = match request_s {
        alone if alone <= REQUEST_S / 2.0 => CONCURRENCY,
        alone if alone <= REQUEST_S => CONCURRENCY / 2,
        _ => 1,
    };
    let counter = match probe {
        Probe { has_token_ids: true, .. } => TokenCounter::TokenIds,
        Probe { has_tokenizer: true, .. } => TokenCounter::Tokenizer,
        Probe { has_usage: true, .. } => TokenCounter::Usage,
        Probe { .. } => TokenCounter::Whitespace,
    };
    Defaults { concurrency, duration_s: WINDOW_S, input_len, output_len, warm_up: concurrency, counter }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FAST: Probe = Probe {
        max_model_len: Some(8192),
        has_token_ids: true,
        has_usage: true,
        has_tokenizer: false,
        request_s: 0.16,
        output_tokens: 16,
    };

    #[test]
    fn a_usual_server_gets_the_usual_load() {
        let found = plan(&FAST);
        let expected = Defaults {
            concurrency: 8,
            duration_s: 30.0,
            input_len: 128,
            output_len: 64,
            warm_up: 8,
            counter: TokenCounter::TokenIds,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn a_short_context_and_a_slow_server_get_less() {
        let check = |probe: Probe, lengths: (u32, u32), concurrency: u32| {
            let found = plan(&probe);
            assert_eq!(((found.input_len, found.output_len), found.concurrency), (lengths, concurrency), "{probe:?}");
        };
        check(Probe { max_model_len: Some(64), ..FAST }, (32, 16), 8);
        check(Probe { max_model_len: Some(1), ..FAST }, (1, 1), 8);
        check(Probe { max_model_len: None, ..FAST }, (128, 64), 8);
        // 0.25 s a token: twenty fit into five seconds, of powers of two sixteen.
        check(Probe { request_s: 4.0, ..FAST }, (128, 16), 4);
        // Two seconds a token: no answer is short enough.
        check(Probe { request_s: 32.0, ..FAST }, (128, 4), 1);
        check(Probe { request_s: 0.0, output_tokens: 0, ..FAST }, (128, 64), 8);
    }

    #[test]
    fn tokens_are_counted_by_what_can_be_trusted_most() {
        let counter = |has_token_ids, has_tokenizer, has_usage| {
            plan(&Probe { has_token_ids, has_usage, has_tokenizer, ..FAST }).counter
        };
        assert_eq!(counter(true, true, true), TokenCounter::TokenIds);
        assert_eq!(counter(false, true, true), TokenCounter::Tokenizer);
        assert_eq!(counter(false, false, true), TokenCounter::Usage);
        assert_eq!(counter(false, false, false), TokenCounter::Whitespace);
    }
}
