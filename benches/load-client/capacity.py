"""Capacity: how many tokens a client reads per second of its own CPU time.

The server sends 64 tokens as fast as the client takes them, one event at a time. Tokens per client
CPU second is the figure to compare: start-up and report writing are left out, and children count.
"""

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
    # Two workers get a core each where there are three; else they share the client's, for a worker
    # on the server's core would take its time from what it is measured against.
    free = [core for core in bench.all_cores if core != bench.machine.server_core]
    cores = tuple(free[-2:])
    for streams in (256, 1024):
        load = Load(SIZES[streams][0], streams, output_len=TOKENS, workers=2)
        found.append(Trial("capacity", f"{streams}-two-workers", load, cores=cores,
                           only=("isobench", "wrk")))
        if len(cores) < 2:
            # Each on a core of its own after all, with the server beside one of them.
            found.append(Trial("capacity", f"{streams}-two-cores", load, cores=bench.all_cores,
                               only=("isobench", "wrk")))
    # Where the time goes: samples of the whole life of a client, at the rates above.
    for streams in (256, 1024):
        load = Load(SIZES[streams][0], streams, output_len=TOKENS)
        found.append(Trial("capacity", f"{streams}-profile", load, profiled=True,
                           only=("isobench", "wrk")))
    return found


def profile(members):
    """Returns the table of where a client's time goes, in microseconds for each token."""
    lines = []
    for client, runs in members:
        good = [r for r in runs if "error" not in r]
        rate = medians(good, lambda r: r["usage"].get("tokens_per_cpu_s"))
        kernel, rest = (medians(good, lambda r, f=f: r["profile"][f]) for f in ("kernel", "rest"))
        lines.append([LABELS[client], f"{len(good)}/{len(runs)}", quiet(1e6 / rate, 2),
                      quiet(1e6 * kernel / rate, 2), quiet(1e6 * rest / rate, 2),
                      quiet(100 * kernel, 0)])
    head = ["client", "runs", "us of CPU a token", "in the kernel", "in the client", "kernel's share (%)"]
    return ("Samples by `perf` of the whole run. What a client spends itself is what it does with a "
            "token: wrk finds the end of the answer, isobench reads each event, counts its tokens and "
            f"keeps their times.\n\n{markdown(head, lines)}")


def tables(rows):
    parts, one_worker = [], {}
    for cell, members in by_cell(rows):
        streams, _, rest = cell.partition("-")
        if rest == "profile":
            parts.append(f"### {cell_title(cell, 'streams')}\n\n{profile(members)}")
            continue
        found = {}
        for client, runs in members:
            good = [r for r in runs if "error" not in r]
            found[client] = medians(good, lambda r: r["usage"].get("tokens_per_cpu_s"))
            if not rest:
                one_worker[client, streams] = found[client]
        lines = []
        for client, runs in members:
            good = [r for r in runs if "error" not in r]
            lines.append([
                LABELS[client], f"{len(good)}/{len(runs)}", quiet(found[client], 0),
                over(found[client], found.get("wrk")),
                *([over(found[client], one_worker.get((client, streams)))] if rest else []),
                *(quiet(medians(good, lambda r, f=f: r["truth"].get(f)), 0)
                  for f in ("output_throughput", "in_flight", "connections")),
            ])
        head = ["client", "runs", "tokens per CPU second", "over wrk",
                *(["over one worker"] if rest else []), "tokens per second", "most in flight",
                "connections"]
        parts.append(f"### {cell_title(cell, 'streams')}\n\n{markdown(head, lines)}")
    return "\n\n".join(parts)


def over(value, base):
    return quiet(value / base if value and base else None, 2)
