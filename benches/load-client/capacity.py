"""Capacity: how many tokens a client reads per second of its own CPU time.

The server sends 64 tokens as fast as the client takes them, one event at a time. Tokens per client
CPU second is the figure to compare: start-up and report writing are left out, and children count.
"""

import os

from peers import Load
from table import LABELS, by_cell, cell_title, markdown, medians, quiet
from trial import Trial

TOKENS = 64
# streams: requests of a fast client, requests of a slow one
SIZES = {16: (16_000, 1_000), 256: (16_384, 2_048), 1024: (16_384, 2_048)}


def trials(bench):
    found = []
    for streams, (requests, slow) in SIZES.items():
        load = Load(requests, streams, output_len=TOKENS)
        found.append(Trial("capacity", f"{streams}", load, slow_requests=slow))
    # Two workers get two cores: the last two, of which one is the server's on a small machine.
    cores = tuple(sorted(os.sched_getaffinity(0) | set(bench.all_cores))[-2:])
    for streams in (256, 1024):
        load = Load(SIZES[streams][0], streams, output_len=TOKENS, workers=2)
        found.append(Trial("capacity", f"{streams}-two-workers", load, cores=cores,
                           only=("isobench", "wrk")))
    return found


def tables(rows):
    parts = []
    for cell, members in by_cell(rows):
        base = None
        lines = []
        for client, runs in members:
            good = [r for r in runs if "error" not in r]
            per_cpu = medians(good, lambda r: r["usage"].get("tokens_per_cpu_s"))
            if client == "wrk":
                base = per_cpu
            lines.append([
                LABELS[client], f"{len(good)}/{len(runs)}", per_cpu,
                quiet(medians(good, lambda r: r["truth"].get("output_throughput")), 0),
                quiet(medians(good, lambda r: r["truth"].get("in_flight")), 0),
                quiet(medians(good, lambda r: r["truth"].get("connections")), 0),
            ])
        for line in lines:
            ratio = line[2] / base if base and line[2] else None
            line[2] = quiet(line[2], 0)
            line.insert(3, quiet(ratio, 2))
        head = ["client", "runs", "tokens per CPU second", "over wrk", "tokens per second",
                "most in flight", "connections"]
        parts.append(f"### {cell_title(cell, 'streams')}\n\n{markdown(head, lines)}")
    return "\n\n".join(parts)
