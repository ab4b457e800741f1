"""Writes a tiny Llama model folder: configuration and tokenizer, no weights.

    python3 make_model.py OUT

The weights are left to the engine (`load-format = "dummy"`), so the folder is a few hundred kilobytes. The tokenizer
is a byte-level BPE that is built by rule, not trained: the same bytes come out on every machine and with every
Python, and no library is needed. Token ids mean nothing to a model with dummy weights; what matters is that every
id below the vocabulary size is valid and can be turned into text.
"""

import json
import sys
from pathlib import Path

SPECIAL_TOKENS = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
# Load generators that draw token ids at random often take them from the first 10,000.
VOCABULARY_SIZE = 12_000
CONTEXT_TOKENS = 4_096

CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": VOCABULARY_SIZE,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 64,
    "max_position_embeddings": CONTEXT_TOKENS,
    "hidden_act": "silu",
    "rms_norm_eps": 1e-6,
    "rope_theta": 10000.0,
    "attention_bias": False,
    "mlp_bias": False,
    "tie_word_embeddings": True,
    "initializer_range": 0.02,
    "use_cache": True,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "torch_dtype": "bfloat16",
}

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)


def byte_alphabet():
    """Returns the 256 printable characters that stand for the 256 bytes in a byte-level BPE, in byte order."""
    printable = set(range(0x21, 0x7F)) | set(range(0xA1, 0xAD)) | set(range(0xAE, 0x100))
    spare = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(spare)) for byte in range(256)]


def merge_rules(count):
    """Returns the first `count` merges: letter pairs, a space before a letter, then pairs of syllables."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    vowels = "aeiou"
    space = byte_alphabet()[ord(" ")]
    syllables = [left + right for left in letters if left not in vowels for right in vowels]
    rules = [(left, right) for left in letters for right in letters]
    rules += [(space, letter) for letter in letters]
    rules += [(left, right) for left in syllables for right in syllables]
    rules += [(space + letter, syllable) for letter in letters for syllable in syllables]
    if len(rules) < count:
        raise ValueError(f"the rules give {len(rules)} merges, {count} are needed")
    return rules[:count]


def tokenizer():
    """Returns the tokenizer in the format of the `tokenizers` library."""
    tokens = SPECIAL_TOKENS + byte_alphabet()
    merges = merge_rules(VOCABULARY_SIZE - len(tokens))
    tokens += [left + right for left, right in merges]
    vocabulary = {token: number for number, token in enumerate(tokens)}
    if len(vocabulary) != VOCABULARY_SIZE:
        raise ValueError(f"the vocabulary has {len(vocabulary)} different tokens, {VOCABULARY_SIZE} are needed")
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": number,
                "content": token,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for number, token in enumerate(SPECIAL_TOKENS)
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": vocabulary,
            "merges": [list(rule) for rule in merges],
        },
    }


def write_model(folder):
    """Writes the model into `folder`, which is made if it isn't there."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "config.json": CONFIG,
        "generation_config.json": {"bos_token_id": 1, "eos_token_id": 2},
        "tokenizer.json": tokenizer(),
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": "<s>",
            "eos_token": "</s>",
            "unk_token": "<unk>",
            "model_max_length": CONTEXT_TOKENS,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
    }
    for name, content in files.items():
        text = json.dumps(content, ensure_ascii=False, indent=1) + "\n"
        (folder / name).write_bytes(text.encode("utf-8"))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: make_model.py OUT")
    write_model(sys.argv[1])
