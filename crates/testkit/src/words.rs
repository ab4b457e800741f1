//! The words that the fake engine answers with: a chain that the prompt alone decides.

/// The vocabulary. A token's id is its place in it.
pub const WORDS: [&str; 128] = [
    "able", "about", "above", "across", "after", "again", "air", "also", "always", "animal", "answer", "apple",
    "around", "back", "base", "because", "been", "before", "began", "begin", "being", "below", "between", "big",
    "bird", "black", "blue", "boat", "body", "book", "both", "boy", "bring", "build", "call", "came", "car", "care",
    "carry", "change", "city", "clear", "close", "cold", "color", "come", "common", "complete", "contain", "correct",
    "country", "cover", "cross", "day", "dark", "deep", "develop", "differ", "direct", "dog", "door", "down", "draw",
    "drive", "early", "earth", "east", "easy", "eat", "end", "enough", "even", "every", "example", "eye", "face",
    "fact", "family", "far", "farm", "fast", "father", "feel", "few", "field", "figure", "final", "find", "fine",
    "fire", "first", "fish", "five", "fly", "follow", "food", "foot", "force", "form", "found", "four", "free",
    "friend", "from", "front", "full", "game", "gave", "girl", "give", "gold", "good", "govern", "great", "green",
    "ground", "group", "grow", "half", "hand", "happen", "hard", "head", "hear", "heat", "help", "here", "high",
];

/// Returns the ids of the tokens that answer a prompt, without end.
pub fn answer(prompt: &str) -> impl Iterator<Item = u32> {
    // FNV-1a of the prompt, then a splitmix64 sequence from there.
    let hash = prompt
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let mut state = hash;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let [first, ..] = (mixed ^ (mixed >> 31)).to_le_bytes();
        u32::from(first) % 128
    })
}

/// Returns the text of a token: a space and a word.
pub fn text(id: u32) -> String {
    let word = usize::try_from(id).ok().and_then(|place| WORDS.get(place));
    format!(" {}", word.unwrap_or(&"unknown"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prompt_alone_decides_the_answer() {
        let words = |prompt| answer(prompt).take(8).map(text).collect::<String>();
        assert_eq!(words("one"), words("one"));
        assert_ne!(words("one"), words("two"));
        assert_eq!(words("one").split_whitespace().count(), 8);
    }

    #[test]
    fn no_word_is_there_twice() {
        assert_eq!(WORDS.iter().collect::<std::collections::BTreeSet<_>>().len(), WORDS.len());
    }
}
