"""Wire faults and oddities: what each client makes of them, beside what is right.

16 requests, 4 at a time, 64 tokens, the first after 50 ms and the others 10 ms apart. A cell holds
mean TTFT / mean time per output token / mean inter-token latency in ms, then completed + failed
requests, and the tokens of a completed request where they are not 64. It is bold where it is wrong:
other counts than are right, or a mean that is off the server's own by more than 25 % (first token)
or 5 % (the other two). A stream that breaks its own protocol (an error, an end that isn't one,
tokens after the end or too few) is right to fail; one in an encoding that wasn't asked for may fail
or be read. A client that gives up where all requests fail misleads nobody, and counts as right.
"""

from dataclasses import dataclass

from peers import Load
from table import LABELS, by_cell, markdown, medians
from trial import Trial

REQUESTS, STREAMS, TOKENS = 16, 4, 64
BASE = {"ttft_us": 50_000, "itl_us": 10_000}
# Wide enough for an interpreter's own delay at four streams; faults move figures by far more.
TTFT_BOUND, TPOT_BOUND = 0.25, 0.05


@dataclass(frozen=True)
class Fault:
    """What the server does, and how many of the requests are right to count as completed."""

    name: str
    title: str
    settings: dict
    chat: bool = False
    completed: int = REQUESTS
    # The mean gap between tokens where it isn't the mean time per output token: the tokens of the
    # first event have no gaps.
    itl_ms: float | None = None
    # Whether to read the answers is as right as to refuse them.
    may_be_read: bool = False


FAULTS = (
    Fault("plain", "nothing", {}),
    Fault("role", "role chunk on arrival", {"role": 2}, chat=True),
    Fault("empty", "empty text chunk on arrival", {"empty": 1}),
    Fault("four", "four tokens per event", {"tpc": 4}, itl_ms=10),
    Fault("split", "each event in two packets, 1 ms apart", {"split_us": 1000}),
    Fault("utf8", "the same, cut inside a character", {"split_us": 1000, "utf8": 1}),
    Fault("comments", "comments to keep alive", {"ka": 1}),
    Fault("crlf", "lines end with CR LF", {"crlf": 1}),
    Fault("error", "error event after 10 tokens", {"errmid": 10}, completed=0),
    Fault("abort", "connection closed after 10 tokens", {"abort": 10}, completed=0),
    Fault("nodone", "no `[DONE]`", {"nodone": 1}),
    Fault("nousage", "no usage", {"nousage": 1}),
    Fault("reasoning", "first 32 tokens are reasoning", {"reason": 32}, chat=True),
    Fault("reasoning-new", "the same, in the newer field", {"reason": 32, "reason_field": 1},
          chat=True),
    Fault("tool", "first 32 tokens are a tool call", {"tool": 32}, chat=True),
    Fault("bytes", "each byte in a packet of its own", {"split_bytes": 1}),
    Fault("lines", "three `data:` lines per event", {"lines": 3}),
    Fault("cr", "lines end with CR", {"cr": 1}),
    Fault("huge", "an event of 1 MB", {"huge": 1_000_000}),
    Fault("joined", "eight events in one packet", {"coalesce": 8}),
    Fault("four-nousage", "four tokens per event, no usage", {"tpc": 4, "nousage": 1},
          itl_ms=10),
    Fault("wrong-usage", "usage claims 6 tokens too many", {"wrongusage": 6}),
    Fault("short", "20 tokens too few, all well by its word", {"short": 20}, completed=0),
    Fault("cut", "ends without finish reason or `[DONE]`", {"nofinish": 1, "nodone": 1},
          completed=0),
    Fault("after", "a token after the end", {"after_done": 1}, completed=0),
    Fault("refused", "every second request gets status 500", {"http_every": 2}, completed=8),
    Fault("reset", "connection reset after 10 tokens", {"rst": 10}, completed=0),
    Fault("length", "stream with a content length", {"framing": "length"}),
    Fault("close", "end told by closing", {"framing": "close"}),
    Fault("extensions", "chunk extensions and trailers", {"chunkext": 1, "trailers": 1}),
    Fault("idle", "connection closed after each answer unannounced", {"close_idle": 1}),
    Fault("gzip", "stream sent as gzip unasked", {"gzip": 1}, completed=0,
          may_be_read=True),
)
BY_NAME = {fault.name: fault for fault in FAULTS}


def trials(bench):
    found = []
    for fault in FAULTS:
        unknown = [key for key in fault.settings if key not in bench.server.rest]
        if unknown:
            bench.say_once(f"left out: fault {fault.name}: the server has no `{unknown[0]}`")
            continue
        load = Load(REQUESTS, STREAMS, output_len=TOKENS, chat=fault.chat)
        found.append(Trial("faults", fault.name, load, {**BASE, **fault.settings},
                           timeout_s=120, only=bench.with_latency))
    return found


def is_off(value, true, bound):
    return value is not None and true and abs(value / true - 1) > bound


def answer(fault, runs):
    """Returns the cell of one client: the middle of its runs, and whether it is right."""
    reported = [r for r in runs if r["reported"].get("completed") is not None]
    if not reported:
        error = runs[-1].get("error", "")
        if error.startswith("ended"):
            return f"**{error}**"
        # A client that gives up where all requests fail misleads nobody.
        text = "gives up without a result"
        return text if fault.completed == 0 else f"**{text}**"

    def of(name):
        return medians(reported, lambda r: r["reported"].get(name))

    completed, failed, tokens = of("completed"), of("failed"), of("total_output_tokens")
    ttft, tpot, itl = of("mean_ttft_ms"), of("mean_tpot_ms"), of("mean_itl_ms")
    right = REQUESTS if fault.may_be_read and completed else fault.completed
    wrong = completed != right
    each = tokens / completed if tokens is not None and completed else None
    if completed and right:
        true = reported[-1]["truth"]
        wrong = (wrong or ttft is None or is_off(ttft, true.get("mean_ttft_ms"), TTFT_BOUND)
                 or is_off(tpot, true.get("mean_tpot_ms"), TPOT_BOUND)
                 or is_off(itl, fault.itl_ms or true.get("mean_tpot_ms"), TPOT_BOUND)
                 or (each is not None and round(each) != TOKENS))
    parts = []
    if completed:
        parts.append(" / ".join("–" if x is None else f"{x:.1f}" for x in (ttft, tpot, itl)))
    parts.append(f"{completed:.0f} + {'?' if failed is None else round(failed)}")
    if each is not None and round(each) != TOKENS:
        parts.append(f"{each:.0f} tokens")
    text = ", ".join(parts)
    return f"**{text}**" if wrong else text


def tables(rows):
    cells = by_cell(rows)
    clients = [name for name in LABELS if any(name == c for _, m in cells for c, _ in m)]
    lines, right, all_of = [], dict.fromkeys(clients, 0), dict.fromkeys(clients, 0)
    for cell, members in cells:
        found = {client: answer(BY_NAME[cell], runs) for client, runs in members}
        for client, text in found.items():
            right[client] += not text.startswith("**")
            all_of[client] += 1
        lines.append([BY_NAME[cell].title, *(found.get(client, "–") for client in clients)])
    lines.append(["right", *(f"{right[c]} of {all_of[c]}" for c in clients)])
    return markdown(["what the server does", *(LABELS[c] for c in clients)], lines)
