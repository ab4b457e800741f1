"""Accuracy: what a client reports over what the server did, at 1 to 1,024 streams.

The server answers with 64 tokens, the first after 50 ms and the others 10 ms apart. The bias of a
figure is reported over true, less one. `kept` is the share of the offered load (streams times 64
tokens in 680 ms) that reached the server: a closed loop offers less when its client is slow. The
variant with a neighbour runs client and a busy process on one core, both at normal priority; there
the last column says in how many runs the client itself called its result invalid. Ours asks the
kernel for real-time scheduling where it may; in the last variants it may not.
"""

from peers import Load
from table import LABELS, by_cell, cell_title, markdown, medians, percent, quiet
from trial import Trial

TTFT_MS, ITL_MS, TOKENS = 50, 10, 64
SETTINGS = {"ttft_us": TTFT_MS * 1000, "itl_us": ITL_MS * 1000}
REQUEST_S = (TTFT_MS + (TOKENS - 1) * ITL_MS) / 1000
# streams: requests of a fast client, requests of a slow one
SIZES = {1: (24, 12), 64: (512, 256), 512: (4096, 2048), 1024: (8192, 2048)}
FIGURES = ("mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "p99_itl_ms",
           "mean_e2el_ms")


def trials(bench):
    found = []
    for streams, (requests, slow) in SIZES.items():
        load = Load(requests, streams, output_len=TOKENS, duration_s=8 * REQUEST_S)
        found.append(Trial("accuracy", f"{streams}", load, SETTINGS, slow_requests=slow,
                           only=bench.with_latency))
    load = Load(SIZES[64][0], 64, output_len=TOKENS, duration_s=8 * REQUEST_S)
    found.append(Trial("accuracy", "64-neighbour", load, SETTINGS, neighbour=True,
                       slow_requests=SIZES[64][1], only=bench.with_latency))
    load = Load(SIZES[512][0], 512, output_len=TOKENS, duration_s=8 * REQUEST_S)
    found.append(Trial("accuracy", "512-neighbour", load, SETTINGS, neighbour=True,
                       slow_requests=SIZES[512][1], only=bench.with_latency))
    for streams in (64, 512):
        load = Load(SIZES[streams][0], streams, output_len=TOKENS, unprivileged=True)
        found.append(Trial("accuracy", f"{streams}-unprivileged", load, SETTINGS, neighbour=True,
                           only=("isobench",)))
    return found


def bias(reported, row, figure):
    """Returns the bias of a figure in percent, None when one of the two is missing."""
    said, true = reported.get(figure), row["truth"].get(figure)
    return (said / true - 1) * 100 if said is not None and true else None


def biases(rows, reported):
    return [percent(medians(rows, lambda r, f=f: bias(reported(r), r, f))) for f in FIGURES]


def kept(row):
    offered = row["load"]["streams"] * TOKENS / REQUEST_S
    found = row["truth"].get("output_throughput")
    return found / offered * 100 if found else None


def bound(row):
    """Returns 100 when the client itself called this run invalid, 0 when not, None if it can't."""
    validity = row["reported"].get("validity")
    return None if validity is None else 100.0 * (validity == "client-bound")


def tables(rows):
    parts = []
    for cell, members in by_cell(rows):
        has_neighbour = any(row["neighbour"] for _, runs in members for row in runs)
        lines = []
        for client, runs in members:
            good = [r for r in runs if "error" not in r]
            line = [LABELS[client], f"{len(good)}/{len(runs)}"]
            line += biases(good, lambda r: r["reported"])
            reported = medians(good, lambda r: r["reported"].get("p99_ttft_ms"))
            true = medians(good, lambda r: r["truth"].get("p99_ttft_ms"))
            line.append("–" if reported is None or true is None else f"{reported:.1f} / {true:.1f}")
            line.append(quiet(medians(good, kept), 1))
            line.append(quiet(medians(good, lambda r: r["usage"].get("load_cpu_s", 0) * 1e6
                                      / max(r["truth"].get("tokens") or 1, 1)), 1))
            if has_neighbour:
                line.append(quiet(medians(good, bound), 0))
            lines.append(line)
            if any("from_send" in r["reported"] for r in good):
                line = ["– its times from the send", "",
                        *biases(good, lambda r: r["reported"].get("from_send", {}))]
                lines.append(line + [""] * (len(lines[-1]) - len(line)))
        head = ["client", "runs", "mean TTFT", "p99 TTFT", "mean TPOT", "p99 TPOT", "p99 ITL",
                "mean E2EL", "p99 TTFT reported / true, ms", "load kept, %", "CPU µs / token"]
        if has_neighbour:
            head.append("called invalid, %")
        parts.append(f"### {cell_title(cell, 'streams')}\n\n{markdown(head, lines)}")
    return "\n\n".join(parts)
