"""Pacing: what a client sends when it is asked for Poisson arrivals.

Times are the server's own: the moments at which it had read each request. The answers are short (8
tokens, the first after 5 ms, then 1 ms apart), so that few streams are open at a time. Beside the
figures stands what 95 of 100 Poisson processes of that length show. Each client draws one process
from its seed and sends it again in each run; what ours says of its own release stands last.
"""

from peers import Load
from statistics_of import poisson
from table import LABELS, by_cell, markdown, medians, quiet
from trial import Trial

SETTINGS = {"ttft_us": 5000, "itl_us": 1000}
SECONDS, SLOW_SECONDS = 10, 4
RATES = (500, 2000)


def trials(bench):
    return [
        Trial("pacing", f"{rate}", Load(rate * SECONDS, rate=float(rate), output_len=8), SETTINGS,
              slow_requests=rate * SLOW_SECONDS, only=bench.with_rate)
        for rate in RATES
    ]


def release(row):
    """Returns the p99 of how late the client itself says it released requests, in ms."""
    return row["reported"].get("audit", {}).get("lateness_ms", {}).get("p99")


def off_drawn(row):
    """Returns how far the client says its rate was off the drawn schedule's, in percent."""
    error = row["reported"].get("audit", {}).get("pacing", {}).get("rate_error")
    return None if error is None else 100 * error


def tables(rows):
    parts = []
    for cell, members in by_cell(rows):
        rate = int(cell)
        expected = poisson(rate * SECONDS, float(rate))
        lines = [[
            "a Poisson process of 10 s, 95 %", "",
            *(f"{low:.2f}–{high:.2f}" for low, high in (
                expected["rate"], expected["gap_cv"], expected["dispersion"])),
            "{:.1f}–{:.1f}".format(*(100 * x for x in expected["close_share"])), "", "", "",
        ]]
        for client, runs in members:
            good = [r for r in runs if "error" not in r and r.get("arrivals")]

            true = medians(good, lambda r: r["truth"].get("p99_ttft_ms"))
            said = medians(good, lambda r: r["reported"].get("p99_ttft_ms"))
            lines.append([
                LABELS[client], f"{len(good)}/{len(runs)}",
                *(quiet(medians(good, lambda r, f=f: r["arrivals"][f]), digits)
                  for f, digits in (("rate", 1), ("gap_cv", 2), ("dispersion", 2))),
                quiet(medians(good, lambda r: 100 * r["arrivals"]["close_share"]), 1),
                "–" if said is None or true is None else f"{said:.1f} / {true:.1f}",
                quiet(medians(good, off_drawn), 5), quiet(medians(good, release), 3),
            ])
        head = ["client", "runs", "sent, 1/s", "CV of gaps", "dispersion of 100-ms counts",
                "gaps under 50 µs, %", "p99 TTFT reported / true, ms",
                "own rate off the drawn one, %", "own p99 lateness of release, ms"]
        parts.append(f"### {rate:,} requests a second\n\n{markdown(head, lines)}")
    return "\n\n".join(parts)
