"""Turns the rows of a run into the page `docs/load-client.md`.

Usage: page.py FOLDER... > docs/load-client.md, with the folders that `run.py --out` and
`real.py --out` wrote; the machine is that of the first, and what several have measured that of the
last.
"""

import json
import os
import re
import sys

import accuracy
import capacity
import faults
import pacing
import real
import start
from table import LABELS, markdown

BENCHES = {
    "accuracy": ("Accuracy", accuracy), "pacing": ("Pacing", pacing),
    "capacity": ("Capacity", capacity), "start": ("Start and memory", start),
    "faults": ("Wire faults", faults), "real": ("Real servers", real),
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


def latest(folders):
    """Returns the rows of all folders; of what several have measured, those of the last one."""
    found = {}
    for rows in folders:
        of_folder = {}
        for row in rows:
            of_folder.setdefault((row["bench"], row["cell"], row["client"]), []).append(row)
        found |= of_folder
    return [row for of_cell in found.values() for row in of_cell]


def facts_of(folder):
    with open(os.path.join(folder, "machine.json"), encoding="utf-8") as file:
        return json.load(file)


def versions(facts):
    found = {name: version for each in facts for name, version in each["versions"].items()}
    lines = [f"| {LABELS[name]} | {found[name]} |" for name in LABELS if name in found]
    return "\n".join(["| client | version |", "| --- | --- |", *lines])


def command(facts):
    """Returns how a run was called, without where its files lay."""
    return re.sub(r" --(out|peers|server|isobench) \S+", "", facts["command"])


def noise(rows):
    """Returns how much of the machine others used in the median run and in the worst, in cores."""
    others = sorted(r["usage"]["others_cpu"] for r in rows
                    if "others_cpu" in r["usage"] and not r.get("neighbour"))
    return f"{others[len(others) // 2]:.2f} and {others[-1]:.2f}" if others else "–"


def runs(folders, facts):
    lines = [[each["date"], each["revision"], f"`{command(each)}`", str(len(rows)), noise(rows)]
             for each, rows in ((each, rows_of(folder)) for each, folder in zip(facts, folders))]
    head = ["date", "revision", "command", "runs", "cores taken by others, median and worst"]
    return markdown(head, lines)


def page(folders):
    rows = latest(rows_of(folder) for folder in folders)
    facts = [facts_of(folder) for folder in folders]
    parts = [HEAD, f"Machine: {facts[0]['machine']}.", "", runs(folders, facts), "",
             versions(facts), ""]
    for name, (title, module) in BENCHES.items():
        found = [row for row in rows if row["bench"] == name]
        if found:
            about = module.__doc__.split("\n\n")[1].strip()
            parts += [f"## {title}", "", about, "", module.tables(found), ""]
    return "\n".join(parts).rstrip() + "\n"


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.stdout.write(page(sys.argv[1:]))
