//! The words that worded prompts are made of.

use super::draw::Draws;

/// Common English words, in alphabetical order. A change of this list changes every worded prompt.
#[rustfmt::skip]
pub(crate) const WORDS: [&str; 856] = [
    "able", "about", "above", "across", "act", "add", "after", "again", "age", "ago", "agree", "air", "all", "allow",
    "alone", "along", "already", "also", "always", "among", "amount", "and", "animal", "answer", "any", "appear",
    "apple", "area", "arm", "army", "around", "arrive", "art", "ask", "autumn", "away", "baby", "back", "bad", "bag",
    "ball", "bank", "base", "basket", "bath", "bear", "beat", "beautiful", "because", "become", "bed", "before",
    "begin", "behind", "believe", "bell", "below", "beside", "best", "better", "between", "big", "bird", "black",
    "blood", "blow", "blue", "board", "boat", "body", "bone", "book", "both", "bottle", "bottom", "bowl", "box",
    "boy", "branch", "brave", "bread", "break", "bridge", "bright", "bring", "broad", "brother", "brown", "brush",
    "build", "burn", "busy", "but", "butter", "button", "buy", "cake", "call", "calm", "camp", "can", "captain",
    "car", "card", "care", "carry", "case", "catch", "cause", "centre", "certain", "chain", "chair", "chance",
    "change", "cheap", "child", "choose", "church", "circle", "city", "class", "clean", "clear", "climb", "clock",
    "close", "cloth", "cloud", "coal", "coast", "coat", "coin", "cold", "collect", "colour", "come", "common",
    "company", "complete", "cook", "cool", "copper", "copy", "corn", "corner", "cost", "cotton", "could", "count",
    "country", "course", "cover", "cow", "cross", "crowd", "cry", "cup", "cut", "dance", "danger", "dark", "daughter",
    "day", "dead", "deal", "dear", "decide", "deep", "deer", "depend", "desk", "did", "different", "dinner", "direct",
    "discover", "dish", "distance", "divide", "doctor", "dog", "door", "double", "doubt", "down", "draw", "dream",
    "dress", "drink", "drive", "drop", "dry", "during", "dust", "duty", "each", "early", "earth", "east", "easy",
    "eat", "edge", "egg", "eight", "either", "electric", "end", "engine", "enjoy", "enough", "enter", "equal", "even",
    "evening", "event", "ever", "every", "example", "except", "expect", "explain", "eye", "face", "fact", "fair",
    "fall", "family", "famous", "far", "farm", "fast", "father", "favour", "fear", "feather", "feed", "feel", "few",
    "field", "fight", "fill", "final", "find", "fine", "finger", "finish", "fire", "first", "fish", "five", "flag",
    "flat", "floor", "flow", "flower", "fly", "follow", "food", "foot", "force", "forest", "forget", "form",
    "forward", "four", "free", "fresh", "friend", "from", "front", "fruit", "full", "further", "game", "garden",
    "gate", "gather", "gentle", "give", "glad", "glass", "gold", "good", "grand", "grass", "great", "green", "grey",
    "ground", "group", "grow", "guess", "guide", "hair", "half", "hall", "hammer", "hand", "happen", "happy",
    "harbour", "hard", "hat", "have", "head", "health", "hear", "heart", "heat", "heavy", "help", "her", "here",
    "high", "hill", "history", "hold", "hole", "holiday", "home", "honey", "hope", "horse", "hospital", "hot", "hour",
    "house", "how", "human", "hundred", "hungry", "hurry", "ice", "idea", "important", "inch", "indeed", "inside",
    "instead", "iron", "island", "join", "journey", "judge", "jump", "just", "keep", "kettle", "key", "kind", "king",
    "kitchen", "knee", "knife", "knock", "know", "ladder", "lady", "lake", "lamp", "land", "language", "large",
    "last", "late", "laugh", "law", "lay", "lead", "leaf", "learn", "leather", "leave", "left", "leg", "lesson",
    "let", "letter", "level", "library", "lie", "life", "lift", "light", "like", "line", "lion", "list", "listen",
    "little", "live", "local", "long", "look", "lose", "loud", "love", "low", "lucky", "machine", "main", "make",
    "man", "many", "map", "mark", "market", "master", "matter", "may", "meal", "mean", "measure", "meat", "meet",
    "member", "memory", "metal", "middle", "might", "mile", "milk", "mill", "mind", "minute", "mirror", "miss", "mix",
    "modern", "moment", "money", "month", "moon", "more", "morning", "most", "mother", "mountain", "mouth", "move",
    "much", "music", "must", "name", "narrow", "nation", "nature", "near", "neat", "necessary", "neck", "need",
    "needle", "neighbour", "nest", "never", "new", "news", "next", "nice", "night", "nine", "noise", "none", "noon",
    "north", "nose", "note", "nothing", "notice", "now", "number", "object", "ocean", "off", "offer", "office",
    "often", "oil", "old", "once", "one", "only", "open", "orange", "order", "other", "our", "out", "over", "own",
    "page", "paint", "pair", "paper", "parent", "park", "part", "party", "pass", "past", "path", "pay", "peace",
    "pencil", "people", "perhaps", "person", "picture", "piece", "place", "plain", "plan", "plant", "plate", "play",
    "please", "plenty", "pocket", "point", "police", "poor", "possible", "post", "potato", "pound", "power",
    "present", "press", "pretty", "price", "prince", "print", "prison", "prize", "problem", "produce", "promise",
    "proper", "proud", "public", "pull", "pupil", "pure", "purpose", "push", "put", "quarter", "queen", "question",
    "quick", "quiet", "quite", "race", "radio", "railway", "rain", "raise", "reach", "read", "ready", "real",
    "reason", "receive", "record", "red", "remember", "repair", "repeat", "reply", "report", "rest", "result",
    "return", "rice", "rich", "ride", "right", "ring", "rise", "river", "road", "rock", "roll", "roof", "room",
    "root", "rope", "rose", "rough", "round", "row", "rule", "run", "sad", "safe", "sail", "salt", "same", "sand",
    "save", "say", "scale", "school", "science", "sea", "search", "season", "seat", "second", "secret", "see", "seed",
    "seem", "sell", "send", "sense", "serious", "serve", "seven", "several", "shade", "shake", "shape", "share",
    "sharp", "sheep", "sheet", "shelf", "shine", "ship", "shirt", "shoe", "shop", "shore", "short", "should",
    "shoulder", "show", "shut", "side", "sign", "silence", "silver", "simple", "since", "sing", "sister", "six",
    "size", "skin", "sky", "sleep", "slow", "small", "smell", "smile", "smoke", "smooth", "snow", "soap", "soft",
    "soil", "soldier", "some", "son", "song", "soon", "sort", "sound", "soup", "south", "space", "speak", "special",
    "speed", "spell", "spend", "spoon", "spread", "spring", "square", "stage", "stairs", "stand", "star", "start",
    "station", "stay", "steam", "steel", "step", "stick", "still", "stone", "stop", "store", "storm", "story",
    "straight", "strange", "stream", "street", "strong", "student", "study", "subject", "such", "sudden", "sugar",
    "suit", "summer", "sun", "sure", "surprise", "sweet", "swim", "table", "tail", "take", "talk", "tall", "taste",
    "teach", "team", "tell", "temple", "ten", "tent", "than", "thank", "that", "the", "theatre", "them", "then",
    "there", "they", "thick", "thin", "thing", "think", "third", "this", "those", "though", "thousand", "thread",
    "three", "through", "ticket", "tie", "time", "tin", "tired", "today", "together", "tomorrow", "too", "tool",
    "tooth", "top", "touch", "toward", "tower", "town", "trade", "train", "travel", "tree", "trip", "trouble", "true",
    "trust", "try", "turn", "twelve", "twenty", "two", "type", "under", "understand", "until", "upon", "use", "usual",
    "valley", "value", "vegetable", "very", "village", "visit", "voice", "wait", "walk", "wall", "want", "war",
    "warm", "wash", "watch", "water", "wave", "way", "weak", "wear", "weather", "week", "weight", "welcome", "well",
    "west", "wet", "what", "wheel", "when", "where", "which", "while", "white", "who", "whole", "why", "wide", "wife",
    "wild", "will", "win", "wind", "window", "wine", "winter", "wire", "wise", "wish", "with", "without", "woman",
    "wonder", "wood", "wool", "word", "work", "world", "worth", "would", "write", "wrong", "yard", "year", "yellow",
    "yes", "yesterday", "yet", "young",
];

/// Draws so many words and puts them behind a text, a space before each but the text's first.
pub(crate) fn push_words(text: &mut String, count: u32, draws: &mut Draws) {
    let bound = u32::try_from(WORDS.len()).unwrap_or(u32::MAX);
    for _ in 0..count {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(WORDS.get(draws.below(bound) as usize).copied().unwrap_or("word"));
    }
}
