"""Counts false alarms and found slow-downs on the demo's engine.

    cargo build --release -p isobench
    python3 benches/verdicts/run.py aa --out verdicts-aa --runs 40
    python3 benches/verdicts/run.py slow --out verdicts-slow --runs 10 --slow-down 0.03

`aa` runs the baseline against itself, with a seed of its own each time. `slow` gives the engine an agent whose
patch does part of the work twice, and asks whether it is found to be worse. Both write `rows.jsonl`, one row for
each run, and print the counts; a run that was cut short goes on with the same command.
"""

import argparse
import json
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

PATCH = """--- a/tinyserve/engine.py
+++ b/tinyserve/engine.py
@@ -{line},5 +{line},8 @@
     def _decode(self, sequence):
         \"\"\"Returns the next token of a sequence and, with its last one, why it ends.\"\"\"
+        self._decoded = getattr(self, "_decoded", 0) + 1
+        if self._decoded % {every} == 0:
+            self.model.probabilities(sequence.history)
         probabilities = self.model.probabilities(sequence.history)
         end_allowed = not sequence.ignore_eos and sequence.generated >= sequence.min_tokens
         token = sequence.sampler.choose(probabilities, end_allowed)
"""


def isobench(options, *arguments):
    """Runs the program, and returns its exit code. 1 says that some trials failed, which is a result too."""
    command = [options.isobench, *map(str, arguments)]
    code = subprocess.run(command, check=False).returncode
    if code not in (0, 1):
        sys.exit(f"{' '.join(command)}: exit code {code}")
    return code


def lay_down(options):
    """Returns the demo's dataset, laid down once."""
    dataset = options.out / "demo" / "dataset"
    if not dataset.is_dir():
        isobench(options, "demo", "--out", options.out / "demo", "--lay-down", "--quiet")
    return dataset


def add_agent(dataset, slow_down):
    """Adds the agent whose patch is slower by about this share."""
    task = dataset / "task.toml"
    text = task.read_text()
    if 'name = "slower"' in text:
        return
    source = subprocess.run(
        ["git", "-C", str(dataset / "repository"), "show", "baseline:tinyserve/engine.py"],
        check=True, capture_output=True, text=True,
    ).stdout.splitlines()
    line = source.index("    def _decode(self, sequence):") + 1
    patch = PATCH.format(line=line, every=max(1, round(1 / slow_down)))
    (dataset / "patches" / "slower.patch").write_text(patch)
    task.write_text(text + '\n[[agent]]\nname = "slower"\npatch = "patches/slower.patch"\n')


def row(run, of):
    """Returns what a finished run says of one arm against the baseline."""
    judgement = json.loads((run / "derived" / "judgement.json").read_text())
    contrast = next(
        c for c in judgement["tasks"][0]["contrasts"] if c["of"] == of and c["against"] == "baseline"
    )
    keys = ("verdict", "blocks", "estimate", "low", "high", "p", "look", "looks", "reason")
    return {key: contrast.get(key) for key in keys} | {"run": run.name}


def significant(found):
    """Returns whether any look's p was below its level, whatever the margin says."""
    return any(look.get("p") is not None and look["p"] < look["level"] for look in found["looks"] or [])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("aa", "slow"))
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--slow-down", type=float, default=0.03, help="share of the work that is done twice")
    parser.add_argument("--margin", type=float, help="the margin, instead of the demo's 5 %%")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="a key of the task, as for `run`")
    parser.add_argument("--looks", default="6,10,16,24")
    parser.add_argument("--isobench", default=str(ROOT / "target" / "release" / "isobench"))
    options = parser.parse_args()
    options.out = options.out.resolve()
    options.out.mkdir(parents=True, exist_ok=True)
    dataset = lay_down(options)
    arms = ["--against-itself"]
    of = "human"
    if options.what == "slow":
        add_agent(dataset, options.slow_down)
        of = "agent:slower"
        arms = ["--arm", "baseline", "--arm", of, "--allow-unisolated"]
    if options.margin:
        arms += ["--set", f"metric.margin={options.margin}"]
    for change in options.set:
        arms += ["--set", change]
    rows = []
    for seed in range(1, options.runs + 1):
        run = options.out / f"{options.what}-{seed:02}"
        isobench(options, "run", dataset, *arms, "--looks", options.looks, "--seed", seed, "--out", run, "--quiet")
        rows.append(row(run, of))
        with open(options.out / "rows.jsonl", "w", encoding="utf-8") as out:
            out.writelines(json.dumps(one) + "\n" for one in rows)
        print(f"{run.name}: {rows[-1]['verdict']} after {rows[-1]['blocks']} blocks", flush=True)
    counts = {}
    for found in rows:
        counts[found["verdict"]] = counts.get(found["verdict"], 0) + 1
    blocks = sum(found["blocks"] for found in rows) / len(rows)
    print(f"{len(rows)} runs: {counts}; {sum(map(significant, rows))} significant; {blocks:.1f} blocks in the mean")


if __name__ == "__main__":
    main()
