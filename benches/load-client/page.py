"""Turns the rows of a run into the page `docs/load-client.md`.

Usage: page.py FOLDER > docs/load-client.md, with the folder that `run.py --out` wrote.
"""

import json
import os
import sys

import accuracy
import capacity
import faults
import pacing
import start
from table import LABELS

BENCHES = {
    "accuracy": ("Accuracy", accuracy), "pacing": ("Pacing", pacing),
    "capacity": ("Capacity", capacity), "start": ("Start and memory", start),
    "faults": ("Wire faults", faults),
}
HEAD = """\
# The load client beside its peers

<!-- Written by benches/load-client/page.py from the rows of a run; don't edit. -->

Each client ran on one core against the truth server on another, on loopback; figures are medians
over the runs, which took turns. `benches/load-client/README.md` says how to install the peers and
run this again.
"""


def rows_of(folder):
    with open(os.path.join(folder, "rows.jsonl"), encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def facts_of(folder):
    with open(os.path.join(folder, "machine.json"), encoding="utf-8") as file:
        return json.load(file)


def versions(facts):
    lines = [f"| {LABELS[name]} | {version} |" for name, version in facts["versions"].items()]
    return "\n".join(["| client | version |", "| --- | --- |", *lines])


def noise(rows):
    """Returns a sentence on how much of the machine others used during the runs."""
    others = sorted(r["usage"]["others_cpu"] for r in rows if "others_cpu" in r["usage"])
    if not others:
        return ""
    middle, most = others[len(others) // 2], others[-1]
    return (f"During the runs, other processes and stolen time took {middle:.2f} cores in the "
            f"median run and {most:.2f} in the worst.")


def page(folder):
    rows, facts = rows_of(folder), facts_of(folder)
    parts = [HEAD, f"- Date: {facts['date']}", f"- Machine: {facts['machine']}",
             f"- Revision: {facts['revision']}", f"- Command: `{facts['command']}`",
             f"- {noise(rows)}", "", versions(facts), ""]
    for name, (title, module) in BENCHES.items():
        found = [row for row in rows if row["bench"] == name]
        if found:
            about = module.__doc__.split("\n\n", 1)[1].strip()
            parts += [f"## {title}", "", about, "", module.tables(found), ""]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.stdout.write(page(sys.argv[1]))
