#!/usr/bin/env python3
"""Reads from a git clone of vLLM or SGLang which command-line options each program has at each revision.

windows: walks the main branch and writes `knowledge/options/*.toml`, a row for each option and span of time.
at:      reads the options of given commits, each from that commit's own files, and writes them as JSON.
check:   builds the real parsers of given commits with argparse and compares them with what `at` reads.

See README.md beside this file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any, Optional

sys.path.insert(0, str(Path(__file__).parent))

from gitread import Clone, Commit, Release, release_order  # noqa: E402
from calls import Follower  # noqa: E402
from programs import ENGINES, Found, Tool, find, find_with  # noqa: E402
from sources import Sources  # noqa: E402

SPEC = ("names", "takes", "kind", "choices", "default", "required")


class Span:
    """A stretch of the main branch in which something stays as it is."""

    def __init__(self, value: Any, since: Commit) -> None:
        self.value = value
        self.since = since
        self.until: Optional[Commit] = None


class Spans:
    """Spans of several things, each under a key, in the order in which they began."""

    def __init__(self) -> None:
        self.closed: list[tuple[str, Span]] = []
        self.open: dict[str, Span] = {}

    def at(self, commit: Commit, values: dict[str, Any]) -> None:
        """Notes what holds from a commit on."""
        for key in [key for key, span in self.open.items() if values.get(key) != span.value]:
            self.open[key].until = commit
            self.closed.append((key, self.open.pop(key)))
        for key, value in values.items():
            if key not in self.open:
                self.open[key] = Span(value, commit)

    def rows(self) -> list[tuple[str, Span]]:
        """Returns all spans, by key and beginning."""
        both = [*self.closed, *self.open.items()]
        # What a commit of the same second made and unmade holds at no moment.
        kept = [(key, span) for key, span in both if span.until is None or span.until.moment > span.since.moment]
        return sorted(kept, key=lambda row: (row[0], row[1].since.moment))


def windows(args: argparse.Namespace) -> int:
    """Writes the tables."""
    clone, engine = Clone(args.clone), ENGINES[args.engine]
    tip = clone.commit(args.ref)
    releases = table_releases(args.releases, args.engine) or clone.releases(tip.id)
    sources = Sources(clone.blob)
    files: dict[str, str] = {}
    last: dict[str, Found] = {}
    spans = {tool.name: (Spans(), Spans(), Spans()) for tool in engine.tools}
    notes: Counter[str] = Counter()
    commits = read = 0
    reader: Optional[Follower] = None
    for commit, changed in clone.history(tip.id, engine.folders):
        commits += 1
        for path, blob in changed.items():
            if blob is None:
                files.pop(path, None)
            else:
                files[path] = blob
        if args.progress and commits % 500 == 0:
            print(f"{commits} commits, {commit.moment}, {read} read", file=sys.stderr)
        if reader is not None and not stale(reader, changed, sources):
            continue
        # All programs of a revision share a reader, since most of their options come from the same files.
        reader = Follower(files, sources, engine.roots)
        read += 1
        for tool in engine.tools:
            found = find_with(tool, reader)
            last[tool.name] = found
            notes.update(f"{tool.name}: {note}" for note in found.notes)
            options, places, flexible = spans[tool.name]
            options.at(commit, found.options)
            places.at(commit, {path: True for path in found.places})
            flexible.at(commit, {"yes": True} if found.underscores else {})
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    total = 0
    for tool in engine.tools:
        text, rows = table(tool, args.engine, tip, spans[tool.name], releases)
        total += rows
        (out / f"{tool.file}.toml").write_text(text)
        print(f"{tool.name}: {rows} rows, {len(last[tool.name].options)} options at the end, {len(text)} bytes")
    print(f"{commits} commits of {tip.id[:12]} read, {read} of them with changes to the code of parsers, {total} rows")
    if args.notes:
        for note, count in sorted(notes.items()):
            print(f"  {count} x {note}")
    return 0


def stale(reader: Follower, changed: dict[str, Optional[str]], sources: Sources) -> bool:
    """Returns whether a commit touched what options were read from."""
    for path, blob in changed.items():
        if path not in reader.seen:
            continue
        was, now = (sources.get(name) if name else None for name in (reader.seen[path], blob))
        if was is None or now is None:
            return True
        if any(was.text_of(name) != now.text_of(name) for name in reader.used.get(path, ())):
            return True
    # Nothing that counts changed: the next commit is compared with these files.
    reader.seen.update({path: blob for path, blob in changed.items() if path in reader.seen})
    return False


def table_releases(path: Optional[str], engine: str) -> list[Release]:
    """Returns the releases of the table `releases.toml`; none without one."""
    if not path:
        return []
    rows = tomllib.loads(Path(path).read_text()).get("engine", [])
    found = [Release(row["name"], row["branched"]) for group in rows if group["engine"] == engine for row in group["release"]]
    return sorted(found, key=lambda row: (row.branched, release_order(row.name)))


def release_at(moment: str, releases: list[Release]) -> Optional[str]:
    """Returns the first release that branched off at a moment or later."""
    return next((release.name for release in releases if release.branched >= moment), None)


def quoted(text: str) -> str:
    """Returns a text as TOML writes it."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def ends(span: Span, releases: list[Release]) -> list[str]:
    """Returns the fields that say when a row holds."""
    rows = [f"since = {quoted(span.since.moment)}"]
    if span.until:
        rows.append(f"until = {quoted(span.until.moment)}")
    rows.append(f"since-commit = {quoted(span.since.id[:12])}")
    if span.until:
        rows.append(f"until-commit = {quoted(span.until.id[:12])}")
    for name, commit in (("since-release", span.since), ("until-release", span.until)):
        release = release_at(commit.moment, releases) if commit else None
        if release:
            rows.append(f"{name} = {quoted(release)}")
    return rows


def spec_fields(spec: dict[str, Any]) -> list[str]:
    """Returns the fields that say what an option is; those that have their usual value are left out."""
    rows = [f"names = [{', '.join(map(quoted, spec['names']))}]", f"takes = {quoted(spec['takes'])}"]
    if spec["kind"] != "text":
        rows.append(f"kind = {quoted(spec['kind'])}")
    if spec["choices"]:
        rows.append(f"choices = [{', '.join(map(quoted, spec['choices']))}]")
    if spec["default"] is not None:
        rows.append(f"default = {quoted(spec['default'])}")
    if spec["required"]:
        rows.append("required = true")
    return rows


def table(tool: Tool, engine: str, tip: Commit, spans: tuple[Spans, Spans, Spans], releases: list[Release]) -> tuple[str, int]:
    """Returns a program's table as TOML, and how many options it has rows for."""
    options, places, flexible = spans
    lines = [
        f"# Written by knowledge/tools/options.py from the main branch of {engine}; don't edit by hand.",
        f"tool = {quoted(tool.name)}",
        f"source = {quoted(f'git:{engine}@{tip.id[:12]}, first parents, the files that build the parser')}",
    ]
    whens = []
    for _, span in flexible.rows():
        until = f", until = {quoted(span.until.moment)}" if span.until else ""
        whens.append(f"{{ since = {quoted(span.since.moment)}{until} }}")
    lines.append(f"underscores = [{', '.join(whens)}]")
    lines.append("place = [")
    for path, span in places.rows():
        lines.append(f"  {{ {', '.join([f'path = {quoted(path)}', *ends(span, releases)])} }},")
    lines += ["]", "option = ["]
    rows = options.rows()
    for _, span in rows:
        lines.append(f"  {{ {', '.join([*spec_fields(span.value), *ends(span, releases)])} }},")
    lines.append("]")
    return "\n".join(lines) + "\n", len(rows)


def at(args: argparse.Namespace) -> int:
    """Writes the options of given commits."""
    engine = ENGINES[args.engine]
    clone = Clone(args.clone)
    sources = Sources(clone.blob)
    result: dict[str, Any] = json.loads(Path(args.out).read_text()) if args.out and Path(args.out).exists() else {}
    shared = Shared(result.get("specs", []), result.get("sets", {}))
    revisions = {(row["engine"], row["commit"]): row for row in result.get("revisions", [])}
    for name in wanted(args):
        commit = clone.commit(name)
        files = clone.tree(commit.id, engine.folders)
        row: dict[str, Any] = {"engine": args.engine, "commit": commit.id, "moment": commit.moment, "tools": {}}
        for tool in engine.tools:
            found = find(tool, engine, files, sources)
            if found.places or found.stubs:
                row["tools"][tool.name] = tool_row(found, shared)
        revisions[args.engine, commit.id] = row
    rows = sorted(revisions.values(), key=lambda row: (row["engine"], row["moment"], row["commit"]))
    text = compact({"specs": shared.specs, "sets": shared.sets, "revisions": rows})
    if args.out:
        Path(args.out).write_text(text)
        print(f"{len(rows)} revisions, {len(shared.sets)} sets, {len(shared.specs)} specs, {len(text)} bytes")
    else:
        sys.stdout.write(text)
    return 0


class Shared:
    """Options and sets of options, each written once."""

    def __init__(self, specs: list[Any], sets: dict[str, list[int]]) -> None:
        self.specs = specs
        self.sets = sets
        self.known = {json.dumps(spec, sort_keys=True): at for at, spec in enumerate(specs)}

    def add(self, options: dict[str, dict[str, Any]]) -> str:
        """Returns the digest of a set of options."""
        rows = sorted(({key: row[key] for key in SPEC if row[key] or row[key] == ""} for row in options.values()), key=lambda row: row["names"])
        digest = hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:16]
        if digest not in self.sets:
            self.sets[digest] = [self.index(row) for row in rows]
        return digest

    def index(self, row: dict[str, Any]) -> int:
        """Returns the place of one option among all."""
        key = json.dumps(row, sort_keys=True)
        if key not in self.known:
            self.known[key] = len(self.specs)
            self.specs.append(row)
        return self.known[key]


def tool_row(found: Found, shared: Shared) -> dict[str, Any]:
    """Returns what one revision's source says of one program."""
    row: dict[str, Any] = {"places": found.places}
    if found.stubs:
        row["stubs"] = found.stubs
    if found.underscores:
        row["underscores"] = True
    if found.places:
        row["options"] = shared.add(found.options)
    return row


def compact(result: dict[str, Any]) -> str:
    """Returns JSON with one line for each option, set and revision."""

    def line(value: Any) -> str:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)

    specs = ",\n".join(map(line, result["specs"]))
    sets = ",\n".join(f"{line(key)}:{line(value)}" for key, value in sorted(result["sets"].items()))
    rows = ",\n".join(map(line, result["revisions"]))
    return f'{{"specs":[\n{specs}\n],"sets":{{\n{sets}\n}},"revisions":[\n{rows}\n]}}\n'


def wanted(args: argparse.Namespace) -> list[str]:
    """Returns the commits that are asked for."""
    names = list(args.commits)
    if args.commits_from:
        names += Path(args.commits_from).read_text().split()
    if not names:
        raise SystemExit("give commits, or a file of them with --commits-from")
    return names


def main() -> int:
    """Reads the command line and does what it says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    modes = parser.add_subparsers(dest="mode", required=True)
    for name, run in (("windows", windows), ("at", at), ("check", check)):
        mode = modes.add_parser(name)
        mode.set_defaults(run=run)
        mode.add_argument("--clone", required=True, help="a git clone with the whole main branch, bare or not")
        mode.add_argument("--engine", required=True, choices=sorted(ENGINES))
        if name == "windows":
            mode.add_argument("--ref", default="HEAD", help="the newest commit of the main branch to read")
            mode.add_argument("--out", default="knowledge/options", help="the folder that the tables go to")
            mode.add_argument("--releases", help="releases.toml; without it, releases are the clone's tags")
            mode.add_argument("--progress", action="store_true", help="say on stderr how far it is")
            mode.add_argument("--notes", action="store_true", help="print what wasn't followed")
        else:
            mode.add_argument("commits", nargs="*")
            mode.add_argument("--commits-from", help="a file with commits, separated by white space")
        if name == "at":
            mode.add_argument("--out", help="the file that the result goes to; revisions that it has are kept")
    args = parser.parse_args()
    return args.run(args)


def check(args: argparse.Namespace) -> int:
    """Compares with the real parsers."""
    import realparser

    return realparser.check(args.clone, args.engine, wanted(args))


if __name__ == "__main__":
    raise SystemExit(main())
