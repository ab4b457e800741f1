"""Runs the bench of load clients: benches, clients and repeats as asked, taking turns.

Writes `rows.jsonl`, one row per run, and `machine.json` into the folder `--out`; page.py makes the
page of them. A client that is not installed is named and left out. Needs root and Linux.
"""

import argparse
import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
import time

import accuracy
import capacity
import faults
import pacing
import start
from machine import HIGHEST, Machine, NotPossible
from peers import ALL, NAMES, Place
from server import NoAnswer, TruthServer
from trial import execute

BENCHES = {module.__name__: module for module in (accuracy, pacing, capacity, start, faults)}
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Bench:
    """What all trials share: the machine, the server, and where things are."""

    def __init__(self, options):
        self.peers = os.path.abspath(options.peers)
        self.isobench = os.path.abspath(options.isobench)
        self.out = os.path.abspath(options.out)
        self.keep = options.keep
        self.model_folder = os.path.join(self.peers, "model")
        self.large_model_folder = os.path.join(self.peers, "model-large")
        self.with_latency = tuple(p.name for p in ALL if p.reports_latency)
        self.with_rate = self.with_latency
        self.all_cores = tuple(sorted(os.sched_getaffinity(0)))
        self.fresh_seed = int(time.time())
        self.machine = self.server = None
        self.said = set()

    def say_once(self, text):
        if text not in self.said:
            self.said.add(text)
            print(text, flush=True)

    def place(self):
        return Place("", self.peers, self.isobench, self.out, self.model_folder)


def common_arguments(parser):
    """Adds what every entry of the bench takes."""
    parser.add_argument("--out", required=True, help="folder for the rows")
    parser.add_argument("--clients", default=",".join(NAMES), help="clients, joined by commas")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each client in each cell")
    parser.add_argument("--isobench", default=os.path.join(ROOT, "target", "release", "isobench"))
    parser.add_argument("--peers", default=os.environ.get("ISOBENCH_PEERS", "./peers"),
                        help="folder of install-peers.sh; or ISOBENCH_PEERS")
    parser.add_argument("--server-core", type=int)
    parser.add_argument("--client-cores", type=lambda text: [int(c) for c in text.split(",")],
                        help="cores of the client, joined by commas; the last one")
    parser.add_argument("--priority", type=int, default=HIGHEST,
                        help="nice value of server and client; above 0 to be kind to others while "
                             "trying something out: times then mean little")
    parser.add_argument("--keep", action="store_true", help="keep each run's files")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    common_arguments(parser)
    parser.add_argument("--only", default=",".join(BENCHES), help="benches, joined by commas")
    parser.add_argument("--cells", default="", help="cells of the benches, joined by commas; all")
    parser.add_argument("--slow-repeats", type=int, help="the same for clients written in Python")
    parser.add_argument("--slow-cells", default="", help="cells for them, joined by commas; all")
    parser.add_argument("--server", default=os.path.join(
        ROOT, "target", "release", "isobench-truth-server"), help="the truth server's program")
    return parser.parse_args()


def chosen(text, known, kind):
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            sys.exit(f"run.py: there is no {kind} `{name}`; there are {', '.join(known)}")
    return names


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.machine()


def installed(bench, names):
    """Returns the clients of these names that are installed, and names those that are not."""
    found = []
    for peer in ALL:
        if peer.name in names:
            if peer.is_there(bench.place()):
                found.append(peer)
            else:
                print(f"left out: {peer.name}: no `{peer.program_file(bench.place())}`")
    return found


def facts(bench, clients):
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    revision = subprocess.run(
        ["git", "-C", HERE, "describe", "--always", "--dirty"], capture_output=True, text=True)
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "machine": f"{cpu_model()}, {len(bench.all_cores)} cores, {memory:.0f} GiB, Linux "
                   f"{platform.release()}",
        "revision": revision.stdout.strip(),
        "command": f"benches/load-client/{os.path.basename(sys.argv[0])} "
                   + shlex.join(sys.argv[1:]),
        "versions": {peer.name: peer.version(bench.place()) for peer in clients},
    }


def schedule(benches, clients, options, bench):
    """Yields (trial, peer, repeat): within a repeat, all clients take their turn in each cell."""
    known = [trial.cell for name in benches for trial in BENCHES[name].trials(bench)]
    cells = chosen(options.cells, known, "cell")
    slow_cells = chosen(options.slow_cells, known, "cell")
    slow = options.repeats if options.slow_repeats is None else options.slow_repeats
    for repeat in range(options.repeats):
        bench.fresh_seed += 1
        for name in benches:
            for trial in BENCHES[name].trials(bench):
                if cells and trial.cell not in cells:
                    continue
                for peer in clients:
                    if peer.is_slow and slow_cells and trial.cell not in slow_cells:
                        continue
                    if trial.is_for(peer) and repeat < (slow if peer.is_slow else options.repeats):
                        yield trial, peer, repeat


def line(row):
    usage, reported = row["usage"], row["reported"]
    text = f"{row['bench']:9} {row['cell']:14} {row['client']:14} #{row['repeat']}"
    text += f" {usage['wall_s']:6.1f} s, others {usage['others_cpu']:.2f} cores"
    if "mean_ttft_ms" in reported and "mean_ttft_ms" in row["truth"]:
        text += f", TTFT {reported['mean_ttft_ms']:.1f} for {row['truth']['mean_ttft_ms']:.1f} ms"
    if usage.get("tokens_per_cpu_s"):
        text += f", {usage['tokens_per_cpu_s']:,.0f} tok/CPU-s"
    return text + (f" -- {row['error']}" if "error" in row else "")


def main():
    options = arguments()
    benches = chosen(options.only, BENCHES, "bench")
    names = chosen(options.clients, NAMES, "client")
    bench = Bench(options)
    os.makedirs(bench.out, exist_ok=True)
    clients = installed(bench, names)
    found = facts(bench, clients)
    try:
        with Machine(
            options.server_core, options.client_cores, options.priority
        ) as bench.machine:
            with TruthServer(
                bench.machine, os.path.abspath(options.server),
                os.path.join(bench.model_folder, "words.txt"),
                os.path.join(bench.out, "server.log"),
            ) as bench.server:
                with open(os.path.join(bench.out, "machine.json"), "w", encoding="utf-8") as file:
                    json.dump(found, file, indent=1)
                with open(os.path.join(bench.out, "rows.jsonl"), "w", encoding="utf-8") as file:
                    for trial, peer, repeat in schedule(benches, clients, options, bench):
                        row = execute(trial, peer, repeat, bench)
                        print(json.dumps(row), file=file, flush=True)
                        print(line(row), flush=True)
    except (NotPossible, NoAnswer) as error:
        sys.exit(f"run.py: {error}")


if __name__ == "__main__":
    main()
