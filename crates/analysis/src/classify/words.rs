//! Words that say what kind of line it is, whatever signature it shows. They are searched for together with all phrases.

/// What a word says of its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word {
    /// It repeats what the program was given, such as a prompt: nothing in it is the program's own.
    Echo,
    /// Whoever writes it goes on: it tries again, or does without.
    GoesOn,
    /// Something went wrong.
    Error,
    /// A traceback begins.
    Traceback,
    /// The next traceback belongs to the one before.
    Chain,
    /// The next traceback is of an exception that nobody minded.
    Ignored,
}

/// Every word with what it says.
pub(super) const WORDS: &[(&str, Word)] = &[
    ("Namespace(", Word::Echo),
    ("ServerArgs(", Word::Echo),
    ("GenerateReqInput(", Word::Echo),
    ("Received request", Word::Echo),
    ("prompt: '", Word::Echo),
    ("prompt: \"", Word::Echo),
    ("\"prompt\":", Word::Echo),
    ("'prompt':", Word::Echo),
    ("prompt=", Word::Echo),
    ("Prompt: ", Word::Echo),
    ("Generated text:", Word::Echo),
    ("generated_text", Word::Echo),
    ("HEAD is now at ", Word::Echo),
    ("Previous HEAD position was ", Word::Echo),
    ("etrying", Word::GoesOn),
    ("thrown while requesting ", Word::GoesOn),
    ("will retry", Word::GoesOn),
    ("will be retried", Word::GoesOn),
    ("Failed to import from vllm.", Word::GoesOn),
    ("rror:", Word::Error),
    ("fatal:", Word::Error),
    ("FATAL", Word::Error),
    ("ailed to ", Word::Error),
    ("Failed to", Word::Error),
    ("failed:", Word::Error),
    ("Exception", Word::Error),
    ("Traceback (most recent call last)", Word::Traceback),
    ("The above exception was the direct cause", Word::Chain),
    ("During handling of the above exception", Word::Chain),
    ("Exception ignored in", Word::Ignored),
    ("--- Logging error ---", Word::Ignored),
];

/// What the first bytes of a line hold that is nothing but a request, which may be as long as its prompt.
pub(super) const REQUESTS: &[&[u8]] = &[b"Received request ", b"GenerateReqInput("];
