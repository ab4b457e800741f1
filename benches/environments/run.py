"""Tells from a run what the environment of each arm cost, and how many times cheaper that is than a build.

    python3 run.py RUN [--build-s SECONDS]

RUN is the folder of a run in a fresh cache. Only the standard library is imported.
"""

import argparse
import json
from pathlib import Path


def main():
    parser = argparse.ArgumentParser(description="Tells what the environments of a run cost.")
    parser.add_argument("run", type=Path, help="folder of a run that began with an empty cache")
    parser.add_argument("--build-s", type=float, help="how long a build of the engine takes, to compare with")
    arguments = parser.parse_args()
    known = set()
    print("| launch | environment | what | a build takes |\n| --- | --- | --- | --- |")
    for arm, seconds in launches(arguments.run):
        what = "again, from the cache" if arm in known else "first of the run" if not known else "a further arm"
        known.add(arm)
        ratio = f"{arguments.build_s / seconds:.0f} times as long" if arguments.build_s else ""
        print(f"| {arm} | {seconds:.1f} s | {what} | {ratio} |")


def launches(run):
    """Yields the arm of each launch and the seconds that its environment took, its static proof included."""
    for line in (run / "events.jsonl").read_text().splitlines():
        for record in ended(json.loads(line)):
            milliseconds = record.get("timeline", {}).get("environment_ms")
            if milliseconds is not None:
                yield record["launch"]["arm"], milliseconds / 1000.0


def ended(event):
    """Returns the records of launches that an event holds, wherever it holds them."""
    held = event.get("launches")
    if held is None:
        held = next((value["launches"] for value in event.values() if isinstance(value, dict) and "launches" in value), [])
    return held


if __name__ == "__main__":
    main()
