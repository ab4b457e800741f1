"""Start and memory: from the start of the process to the first request at the server.

512 streams; the moment before the program begins is taken in the process that becomes it. Memory is
the peak of the anonymous memory of all of a client's processes. Ours is run three ways: with
prompts that an earlier run has prepared and tokens counted by the server's word, so that no tokenizer is
loaded; and with a tokenizer of 128,000 entries that counts the tokens, with prompts prepared anew
or before. SGLang's clients start here without the package around them, whose import takes many
seconds more; see `install-peers.sh`.
"""

import os

from peers import Load
from table import LABELS, by_cell, markdown, medians, quiet
from trial import Trial

SETTINGS = {"ttft_us": 50_000, "itl_us": 10_000}
# The columns by their names in `usage`, with their decimals.
FIGURES = (("first_request_ms", 1), ("first_connection_ms", 1), ("peak_rss_mb", 1),
           ("processes", 0), ("end_s", 2))
TITLES = {
    "512": "512 streams",
    "512-large": "512 streams, tokenizer of 128,000 entries, prompts not seen before",
    "512-large-again": "512 streams, tokenizer of 128,000 entries, the same prompts again",
}


def trials(bench):
    found = [Trial("start", "512", Load(1024, 512, counter="usage"), SETTINGS)]
    large = bench.large_model_folder
    if os.path.isdir(large):
        load = Load(1024, 512, seed=bench.fresh_seed)
        found += [Trial("start", cell, load, SETTINGS, tokenizer=large,
                        only=("isobench", "vllm-rs"))
                  for cell in ("512-large", "512-large-again")]
    return found


def tables(rows):
    parts = []
    for cell, members in by_cell(rows):
        lines = []
        for client, runs in members:
            good = [r for r in runs if "error" not in r]
            lines.append([
                LABELS[client], f"{len(good)}/{len(runs)}",
                *(quiet(medians(good, lambda r, f=f: r["usage"].get(f)), digits)
                  for f, digits in FIGURES),
            ])
        head = ["client", "runs", "first request, ms", "first connection, ms", "peak memory, MB",
                "processes", "last token to exit, s"]
        parts.append(f"### {TITLES[cell]}\n\n{markdown(head, lines)}")
    return "\n\n".join(parts)
