"""One run of one client against the truth server, and what came of it as one row."""

import dataclasses
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field

from machine import NORMAL
from peers import Load, Place
from statistics_of import mean, percentile, shape


@dataclass(frozen=True)
class Trial:
    """What one client is run on. `cell` is unique within its bench."""

    bench: str
    cell: str
    load: Load
    settings: dict = field(default_factory=dict)
    neighbour: bool = False
    cores: tuple = ()
    profiled: bool = False
    timeout_s: float = 300
    # For clients that are too slow for `load` in the time there is.
    slow_requests: int | None = None
    only: tuple = ()
    tokenizer: str | None = None

    def load_for(self, peer):
        if peer.is_slow and self.slow_requests:
            return dataclasses.replace(self.load, requests=self.slow_requests)
        return self.load

    def is_for(self, peer):
        return not self.only or peer.name in self.only


def truth_of(records, statistics, requests):
    """Returns what the server saw of the last `requests` requests: those before were warm-up.

    Requests that it refused have no tokens and do not count.
    """
    kept = [r for r in (records[-requests:] if requests else records) if r.tokens]
    found = {
        "requests": len(kept),
        "tokens": sum(r.tokens for r in kept),
        "events": statistics.get("events"),
        "in_flight": statistics.get("maxactive"),
        "connections": statistics.get("accepts"),
        "late_max_ms": statistics.get("late_max_ms"),
    }
    if not kept:
        return found
    first = [(r.first - r.arrived) / 1e6 for r in kept]
    per_token = [(r.last - r.first) / 1e6 / (r.tokens - 1) for r in kept if r.tokens > 1]
    span = (max(r.last for r in kept) - kept[0].arrived) / 1e9
    gaps = statistics.get("itl_ms") or {}
    return {
        **found,
        "mean_ttft_ms": mean(first), "p99_ttft_ms": percentile(first, 99),
        "mean_tpot_ms": mean(per_token), "p99_tpot_ms": percentile(per_token, 99),
        "mean_itl_ms": gaps.get("mean"), "p99_itl_ms": gaps.get("p99"),
        "mean_e2el_ms": mean([(r.last - r.arrived) / 1e6 for r in kept]),
        "span_s": span, "output_throughput": found["tokens"] / span if span else None,
    }


def usage_of(usage, records, requests, statistics):
    """Returns what the client used, over its life and over the load alone."""
    kept = [r for r in (records[-requests:] if requests else records) if r.tokens]
    found = {
        "wall_s": (usage.ended_ns - usage.started_ns) / 1e9, "cpu_s": usage.cpu_s,
        "peak_rss_mb": usage.peak_rss_mb, "processes": usage.most_processes,
        "others_cpu": usage.others_cpu, "exit_code": usage.exit_code,
    }
    if kept:
        start, end = kept[0].arrived, max(r.last for r in kept)
        load_cpu = usage.cpu_between(start, end)
        tokens = sum(r.tokens for r in kept)
        # A client that stops by time leaves tokens of unfinished requests out of the record.
        if not requests and statistics.get("events"):
            tokens = statistics["events"]
        found |= {
            "first_request_ms": (records[0].arrived - usage.started_ns) / 1e6,
            "first_connection_ms": (min(r.connected for r in records) - usage.started_ns) / 1e6,
            "load_cpu_s": load_cpu,
            "tokens_per_cpu_s": tokens / load_cpu if load_cpu > 0 else None,
            "end_s": (usage.ended_ns - end) / 1e9,
        }
    return found


def profile_of(data):
    """Returns the shares of the samples of `perf` in the kernel and elsewhere."""
    report = ["perf", "report", "-i", data, "--no-children", "-g", "none"]
    by_object = subprocess.run([*report, "--sort", "dso"], capture_output=True, text=True, check=False)
    shares = re.findall(r"^\s*([\d.]+)%\s+(\S+)", by_object.stdout, re.MULTILINE)
    kernel = sum(float(share) for share, name in shares if name.startswith("[kernel"))
    return {"kernel": kernel / 100, "rest": sum(float(share) for share, _ in shares) / 100 - kernel / 100}


def execute(trial, peer, repeat, bench):
    """Runs a client once and returns the row; what goes wrong is in the row, not raised."""
    machine, server = bench.machine, bench.server
    load = trial.load_for(peer)
    folder = os.path.join(bench.out, "work", f"{trial.bench}-{trial.cell}-{peer.name}-{repeat}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    place = Place(server.url, bench.peers, bench.isobench, folder,
                  trial.tokenizer or bench.model_folder)
    row = {
        "bench": trial.bench, "cell": trial.cell, "client": peer.name, "repeat": repeat,
        "load": dataclasses.asdict(load), "settings": trial.settings,
        "neighbour": trial.neighbour, "loadavg": os.getloadavg()[0],
    }
    server.set(**trial.settings)
    neighbour = machine.neighbour(machine.client_cores[0]) if trial.neighbour else None
    try:
        with open(place.out("output.txt"), "wb") as output:
            command = peer.command(load, place)
            if trial.profiled:
                command = ["perf", "record", "-q", "-F", "499", "-o", place.out("perf.data"), "--", *command]
            usage = machine.run(
                command, trial.timeout_s,
                NORMAL if trial.neighbour else None, set(trial.cores) or None,
                stdout=output, stderr=output, env=peer.environment(place), cwd=folder)
    finally:
        if neighbour:
            machine.end_neighbour(neighbour)
    records, statistics = server.records(), server.statistics()
    counted = 0 if peer.name == "wrk" else load.requests
    row["truth"] = truth_of(records, statistics, counted)
    row["usage"] = usage_of(usage, records, counted, statistics)
    if trial.profiled:
        row["profile"] = profile_of(place.out("perf.data"))
    if load.rate:
        row["arrivals"] = shape([r.arrived / 1e9 for r in records[-counted:]])
    try:
        row["reported"] = peer.read(load, place)
    except (OSError, KeyError, ValueError, IndexError, TypeError) as error:
        row["reported"] = {}
        row["error"] = f"no result: {type(error).__name__}: {error}"
    if usage.timed_out:
        row["error"] = f"ended after {trial.timeout_s:.0f} s"
    # An exit code alone is no error: a client may end so to say that its result is not valid.
    if "error" not in row and not bench.keep:
        shutil.rmtree(folder)
    return row
