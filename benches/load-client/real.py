"""Real servers: the same load by each client on vLLM's CPU build, twice, and llama.cpp's server.

No one knows the truth here. Beside the clients' figures stand the server's own means over the same
run, from the sums in its `/metrics`: they end where the server hands a token over, so that a client
must be a little above them. Each launch is warmed up first, and clients take turns; each run has
prompts of its own. Ours asks the server for its counts, and for token ids where it gives them. On
vLLM what clients have above the server is mostly the time from the request's arrival to the
server's own clock, the same for all of them within what differs from run to run. llama.cpp has no
such means; clients written in Rust send it token ids there and the others text, whose length in its
model's tokens is another, so that first tokens compare only within the two pairs.

Usage: real.py --out FOLDER [--servers vllm-0.32,llama] and most options of run.py
"""

import argparse
import dataclasses
import http.client
import json
import os
import re
import shutil
import sys
import time
from dataclasses import dataclass, field

from machine import Machine, NotPossible, end
from peers import NAMES, Load
from run import Bench, chosen, common_arguments, facts, installed
from table import LABELS, by_cell, markdown, medians, quiet

PORT = 18100
START_S = 600
WARM_UP_SEED = 1000


class NotServed(Exception):
    """A real server did not come up; the text says where its output is."""


@dataclass(frozen=True)
class RealServer:
    name: str
    title: str
    program: str
    flags: tuple
    environment: dict = field(default_factory=dict)
    # The pairs of sum and count that hold the server's own means, by our name; the first that is
    # there counts.
    sums: dict = field(default_factory=dict)
    loads: tuple = (Load(64, 4), Load(192, 16))


def vllm(name, title, place, core, overlay=None):
    environment = {
        "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": str(core),
        "VLLM_CPU_SGL_KERNEL": "0",
    }
    if overlay:
        environment["PYTHONPATH"] = place.program(overlay)
    return RealServer(
        name, title, place.program("venv-vllm", "bin", "python"),
        ("-m", "vllm.entrypoints.cli.main", "serve", place.tokenizer, "--load-format", "dummy",
         "--host", "127.0.0.1", "--port", str(PORT), "--served-model-name", place.model, "--dtype",
         "bfloat16", "--enforce-eager", "--max-model-len", "2048", "--max-num-seqs", "32"),
        environment,
        {"mean_ttft_ms": ("vllm:time_to_first_token_seconds",),
         "mean_itl_ms": ("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds"),
         "mean_e2el_ms": ("vllm:e2e_request_latency_seconds",)})


def llama(place):
    folder = place.program("llama")
    found = [name for name in os.listdir(folder) if name.endswith(".gguf")] if os.path.isdir(
        folder) else []
    return RealServer(
        "llama", "llama.cpp, SmolLM2 135M", os.path.join(folder, "llama-server"),
        ("-m", os.path.join(folder, found[0] if found else "none.gguf"), "--host", "127.0.0.1",
         "--port", str(PORT), "--alias", place.model, "--parallel", "16", "--ctx-size", "8192",
         "--threads", "1", "--threads-http", "2"),
        # It is slow on one core, and its `/tokenize` is not what vLLM's Rust client expects. The
        # tokenizer that prompts are made with is not its model's, so that ours must not count.
        loads=tuple(Load(4 * streams, streams, output_len=32, token_ids=True, counter="usage")
                    for streams in (4, 16)))


def servers(place, core):
    return [
        vllm("vllm-0.32", "vLLM 0.32.0 on a CPU", place, core),
        vllm("vllm-0.28", "vLLM 0.28.0 on a CPU", place, core, "vllm-0.28.0"),
        llama(place),
    ]


def get(path, timeout_s=10):
    connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=timeout_s)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def start(server, machine, out):
    log = os.path.join(out, f"{server.name}.log")
    with open(log, "wb") as file:
        child, started = machine.spawn(
            "server", [server.program, *server.flags], [machine.server_core], stdout=file,
            stderr=file, env={**os.environ, **server.environment}, cwd=out)
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and child.poll() is None:
        try:
            if get("/health")[0] == 200:
                seconds = (time.monotonic_ns() - started) / 1e9
                print(f"{server.name}: healthy after {seconds:.0f} s", flush=True)
                return child
        except OSError:
            pass
        time.sleep(0.5)
    machine.groups["server"].kill()
    raise NotServed(f"`{server.name}` did not get healthy; see {log}")


def total(text, name):
    """Returns the sum of one metric over all its labels."""
    return sum(map(float, re.findall(rf"^{name}(?:{{[^}}]*}})? (\S+)$", text, re.M)))


def totals(server):
    """Returns the (sum, count) pairs of the server's own histograms, over all their labels."""
    if not server.sums:
        return {}
    text, found = get("/metrics")[1], {}
    for ours, names in server.sums.items():
        for name in names:
            pair = [total(text, f"{name}_sum"), total(text, f"{name}_count")]
            if pair[1]:
                found[ours] = pair
                break
    return found


def between(before, after):
    """Returns the server's own means in ms over what came between two readings."""
    found = {}
    for name, (total, count) in after.items():
        total_before, count_before = before.get(name, (0, 0))
        if count > count_before:
            found[name] = (total - total_before) / (count - count_before) * 1e3
    return found


def execute(server, peer, load, repeat, bench):
    """Runs one client once on a running server and returns the row."""
    cell = f"{server.name}-{load.streams}"
    folder = os.path.join(bench.out, "work", f"real-{cell}-{peer.name}-{repeat}")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    place = dataclasses.replace(bench.place(), url=f"http://127.0.0.1:{PORT}", folder=folder)
    before = totals(server)
    with open(place.out("output.txt"), "wb") as output:
        usage = bench.machine.run(peer.command(load, place), 300, stdout=output, stderr=output,
                                  env=peer.environment(place), cwd=folder)
    row = {
        "bench": "real", "cell": cell, "client": peer.name, "repeat": repeat,
        "title": f"{server.title}, {load.streams} streams", "load": dataclasses.asdict(load),
        "truth": between(before, totals(server)),
        "usage": {"wall_s": (usage.ended_ns - usage.started_ns) / 1e9, "cpu_s": usage.cpu_s,
                  "others_cpu": usage.others_cpu, "exit_code": usage.exit_code},
    }
    try:
        row["reported"] = peer.read(load, place)
    except (OSError, KeyError, ValueError, IndexError, TypeError) as error:
        row["reported"], row["error"] = {}, f"no result: {type(error).__name__}: {error}"
    if usage.timed_out:
        row["error"] = "ended after 300 s"
    return row


FIGURES = ("completed", "failed", "total_output_tokens", "mean_ttft_ms", "p99_ttft_ms",
           "mean_tpot_ms", "mean_itl_ms", "p99_itl_ms", "mean_e2el_ms", "output_throughput")


def tables(rows):
    parts = []
    for _, members in by_cell(rows):
        lines = []
        for client, runs in members:
            good = [r for r in runs if "error" not in r]
            lines.append([LABELS[client], f"{len(good)}/{len(runs)}", *(
                quiet(medians(good, lambda r, f=f: r["reported"].get(f)), 0 if f in FIGURES[:3]
                      else 1) for f in FIGURES)])
            own = {f: medians(good, lambda r, f=f: r["truth"].get(f)) for f in FIGURES}
            if any(own.values()):
                lines.append(["– the server over the same runs", "",
                              *(quiet(own[f], 1) if own[f] else "" for f in FIGURES)])
        head = ["client", "runs", "completed", "failed", "tokens", "mean TTFT, ms", "p99 TTFT, ms",
                "mean TPOT, ms", "mean ITL, ms", "p99 ITL, ms", "mean E2EL, ms", "tokens/s"]
        title = members[0][1][0]["title"]
        parts.append(f"### {title}\n\n{markdown(head, lines)}")
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    common_arguments(parser)
    parser.add_argument("--servers", default="vllm-0.32,vllm-0.28,llama")
    options = parser.parse_args()
    bench = Bench(options)
    os.makedirs(bench.out, exist_ok=True)
    clients = [p for p in installed(bench, chosen(options.clients, NAMES, "client"))
               if p.reports_latency]
    found = facts(bench, clients)
    try:
        with Machine(
            options.server_core, options.client_cores, options.priority
        ) as bench.machine:
            known = servers(bench.place(), bench.machine.server_core)
            names = chosen(options.servers, [s.name for s in known], "server")
            with open(os.path.join(bench.out, "machine.json"), "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1)
            with open(os.path.join(bench.out, "rows.jsonl"), "w", encoding="utf-8") as file:
                for server in (s for s in known if s.name in names):
                    if not os.path.exists(server.program):
                        print(f"left out: {server.name}: no `{server.program}`")
                        continue
                    try:
                        launch(server, clients, options.repeats, bench, file)
                    except NotServed as error:
                        print(f"left out: {error}")
    except NotPossible as error:
        sys.exit(f"real.py: {error}")


def launch(server, clients, repeats, bench, file):
    """Starts a server, warms it up, and lets the clients take turns on it."""
    child = start(server, bench.machine, bench.out)
    try:
        for _ in range(2):
            # Prompts that come again would be answered from the server's prefix cache.
            load = dataclasses.replace(server.loads[-1], seed=WARM_UP_SEED)
            execute(server, clients[0], load, "warm-up", bench)
        for repeat in range(repeats):
            for load in server.loads:
                for peer in clients:
                    load = dataclasses.replace(load, seed=1 + repeat)
                    row = execute(server, peer, load, repeat, bench)
                    print(json.dumps(row), file=file, flush=True)
                    said = row["reported"].get("mean_ttft_ms")
                    print(f"{row['cell']:14} {peer.name:14} #{repeat} "
                          f"{row['usage']['wall_s']:6.1f} s, TTFT {quiet(said, 1)} ms for "
                          f"{quiet(row['truth'].get('mean_ttft_ms'), 1)} ms "
                          f"{row.get('error', '')}", flush=True)
    finally:
        end(child)
        bench.machine.groups["server"].kill()


if __name__ == "__main__":
    main()
