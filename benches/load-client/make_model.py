"""Make the model folder of the bench: a tokenizer, a word list, and a model without weights.

The tokenizer is a byte-level BPE, of 16,000 entries if nothing else is said, trained on the
standard library of the interpreter that runs this. `words.txt` holds the words that are a single
token when a space stands before them: a server that answers with these words answers exactly one
token a word, so that a client which counts by tokenizing arrives at the server's own count.
`config.json` describes a two-layer model, so that a real engine can serve the same folder with
dummy weights.

Needs the `tokenizers` package. Usage: make_model.py FOLDER [ENTRIES]
"""

import glob
import json
import os
import re
import sys
import sysconfig

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

VOCABULARY = 16_000
CONTEXT = 4_096
SPECIAL = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
CHAT = (
    "{% for m in messages %}{{'<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n'}}"
    "{% endfor %}{% if add_generation_prompt %}{{'<|im_start|>assistant\n'}}{% endif %}"
)


def train(entries):
    """Returns the tokenizer, trained on the standard library's own text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    library = sysconfig.get_paths()["stdlib"]
    # A large vocabulary needs more text: the library's packages and their tests too.
    deep = "/**/*.py" if entries > VOCABULARY else "/*.py"
    files = sorted(glob.glob(library + deep, recursive=True))
    trainer = trainers.BpeTrainer(
        vocab_size=entries,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(map(text_of, files), trainer)
    return tokenizer


def text_of(path):
    # Some of the library's tests are deliberately not UTF-8.
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def single_token_words(tokenizer):
    """Returns the plain words that are one token behind a space, in alphabetical order."""
    words = [entry[1:] for entry in tokenizer.get_vocab() if re.fullmatch("Ġ[a-z]{2,}", entry)]
    return sorted(w for w in words if len(tokenizer.encode(" " + w).ids) == 1)


def write_json(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    tokenizer = train(int(sys.argv[2]) if len(sys.argv) > 2 else VOCABULARY)
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    words = single_token_words(tokenizer)
    with open(os.path.join(folder, "words.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(words) + "\n")
    write_json(folder, "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "model_max_length": CONTEXT,
        "chat_template": CHAT,
        "clean_up_tokenization_spaces": False,
    })
    write_json(folder, "config.json", {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 128,
        "head_dim": 64,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "vocab_size": tokenizer.get_vocab_size(),
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_theta": 10000.0,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
        "bos_token_id": 1,
        "eos_token_id": 2,
        "initializer_range": 0.02,
        "use_cache": True,
        "attention_bias": False,
        "mlp_bias": False,
    })
    write_json(folder, "generation_config.json", {"bos_token_id": 1, "eos_token_id": 2})
    print(f"{folder}: {tokenizer.get_vocab_size()} entries, {len(words)} single-token words")


if __name__ == "__main__":
    main()
