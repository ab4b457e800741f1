#!/usr/bin/env python3
"""Writes argument lists with what Python's own argparse says of them, as a test of the emulation in crates/plan/tests/support.

The lists are drawn at random, with a fixed seed, from words that argparse treats in different ways. The result depends on the
version of Python: use 3.11.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from typing import Any, NoReturn

PARSERS: dict[str, Any] = {
    "client": {
        "underscores": True,
        "options": [
            {"names": ["--model"], "takes": "one", "required": True},
            {"names": ["--num-prompts"], "takes": "one", "kind": "whole"},
            {"names": ["--num-iters"], "takes": "one", "kind": "whole"},
            {"names": ["--request-rate"], "takes": "one", "kind": "number"},
            {"names": ["--backend"], "takes": "one", "choices": ["openai", "tgi", "vllm"]},
            {"names": ["--save-result"], "takes": "nothing"},
            {"names": ["--save"], "takes": "nothing"},
            {"names": ["--metadata"], "takes": "any"},
            {"names": ["--lora-modules"], "takes": "one-or-more"},
            {"names": ["--seed"], "takes": "one", "kind": "whole"},
        ],
    },
    "engine": {
        "underscores": True,
        "options": [
            {"names": ["--tensor-parallel-size", "-tp"], "takes": "one", "kind": "whole"},
            {"names": ["--pipeline-parallel-size", "-pp"], "takes": "one", "kind": "whole"},
            {"names": ["--quantization", "-q"], "takes": "one", "choices": ["awq", "fp8"]},
            {"names": ["--block-size"], "takes": "one", "kind": "whole", "choices": ["8", "16", "32"]},
            {"names": ["--enable-prefix-caching"], "takes": "nothing-or-no"},
            {"names": ["--enforce-eager"], "takes": "nothing"},
            {"names": ["--rope-scaling"], "takes": "one", "kind": "json"},
            {"names": ["--use-v2-block-manager"], "takes": "at-most-one"},
            {"names": ["--swap-space"], "takes": "one", "kind": "number"},
            {"names": ["--enable-chunked-prefill"], "takes": "one", "kind": "bool"},
        ],
    },
    "strict": {
        "underscores": False,
        "options": [
            {"names": ["--model-path"], "takes": "one", "required": True},
            {"names": ["--batch-size"], "takes": "one-or-more", "kind": "whole"},
            {"names": ["--tp-size", "--tp"], "takes": "one", "kind": "whole", "required": True},
            {"names": ["--disable-radix-cache"], "takes": "nothing"},
            {"names": ["--dtype"], "takes": "one", "choices": ["auto", "half"]},
        ],
    },
}
WORDS = [
    "1", "-1", "-1.5", "-.5", "1e3", "inf", "x", "", "-", "--", "a b", "-a b", "fp8", "awq", "vllm", "16", "017", "1_000", " 3 ", "{}",
    '{"a": 1}', "[", "NaN", "nan", "None", "true", "-x", "-t", "-tp4", "-tp=4", "-q=fp8", "-qfp8", "-pp", "--nu", "--num", "--num-p",
    "--no-enable-prefix-caching", "--no-enable", "--no-en=1", "--unknown", "--unknown=1", "--save=1", "--save-result=", "--seed=-5",
    "--model_path", "--num_prompts=2", "--batch_size", "--enable", "--enable-p", "--dtype=half", "--dtype=x", "--d", "--tp", "--t", "é",
]  # fmt: skip
TYPES = {"whole": int, "number": float, "bool": bool, "json": json.loads, "text": str}
NARGS = {"at-most-one": "?", "one-or-more": "+", "any": "*"}


class Refused(Exception):
    """Raised instead of leaving the program."""


class Parser(argparse.ArgumentParser):
    """A parser that says what it refuses."""

    def error(self, message: str) -> NoReturn:
        raise Refused(message)


def build(options: list[dict[str, Any]]) -> Parser:
    """Returns the real parser of some options."""
    parser = Parser()
    for row in options:
        takes, kind = row["takes"], row.get("kind", "text")
        words: dict[str, Any] = {}
        if takes == "nothing":
            words["action"] = "store_true"
        elif takes == "nothing-or-no":
            words["action"] = argparse.BooleanOptionalAction
        else:
            words["type"] = TYPES[kind]
            if takes in NARGS:
                words["nargs"] = NARGS[takes]
            if "choices" in row:
                words["choices"] = [TYPES[kind](choice) for choice in row["choices"]]
        parser.add_argument(*row["names"], required=row.get("required", False), **words)
    return parser


def dashes(args: list[str]) -> list[str]:
    """Returns arguments with dashes for underscores in names of options, as vLLM's own parser class has it."""
    rows = []
    for arg in args:
        name, equals, value = arg.partition("=")
        rows.append("--" + name[2:].replace("_", "-") + equals + value if arg.startswith("--") else arg)
    return rows


def says(parser: Parser, args: list[str]) -> Any:
    """Returns what argparse refuses with; `None` if it accepts."""
    try:
        parser.parse_args(args)
    except Refused as refused:
        return str(refused)
    return None


def main() -> None:
    """Writes the cases."""
    draw = random.Random(20240625)
    cases = []
    for name, given in PARSERS.items():
        parser = build(given["options"])
        own = [option for row in given["options"] for option in row["names"]]
        needed = [[row["names"][0], "1"] for row in given["options"] if row.get("required")]
        for at in range(400):
            args = [word for pair in needed for word in pair] if at % 4 else []
            for _ in range(draw.randint(0, 4)):
                args.append(draw.choice(own if draw.random() < 0.6 else WORDS))
                row = next((row for row in given["options"] if args[-1] in row["names"]), None)
                if row is not None and not row["takes"].startswith("nothing") and draw.random() < 0.8:
                    args.append(draw.choice(row.get("choices", []) + WORDS[:24]))
            cases.append([name, args, says(parser, dashes(args) if given["underscores"] else args)])
    rows = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    parsers = json.dumps(PARSERS, separators=(",", ":"))
    sys.stdout.write(f'{{"python":"{sys.version.split()[0]}","parsers":{parsers},"cases":[\n{rows}\n]}}\n')


if __name__ == "__main__":
    main()
