#!/usr/bin/env python3
"""Writes knowledge/releases.toml and knowledge/commits.toml from clones of the engines.

    knowledge/tools/revisions.py --clone vllm.git --engine vllm --clone sglang.git --engine sglang

The commits are those of knowledge/tools/commits.txt (`ENGINE ROLE ID`). What is looked for in a revision (native tree,
scripts) stands in knowledge/engines.toml. Releases that a clone has no tag of are taken from PyPI, by name and date of upload
alone. The rules are those of `docs/formats.md`, "Facts about revisions".
"""

import argparse
import hashlib
import json
import re
import subprocess
import tomllib
import urllib.request
from pathlib import Path

KNOWLEDGE = Path(__file__).resolve().parent.parent
RELEASE = re.compile(r"v\d+(\.\d+)+(\.post\d+)?")


class Clone:
    """A clone that is only read, with a few processes for any number of commits."""

    def __init__(self, path):
        self.path = path

    def git(self, *arguments, lines=()):
        stdin = "".join(f"{line}\n" for line in lines)
        command = ["git", f"--git-dir={self.path}", *arguments]
        environment = {"TZ": "UTC", "PATH": "/usr/bin:/bin:/usr/local/bin", "GIT_NO_REPLACE_OBJECTS": "1"}
        done = subprocess.run(command, input=stdin.encode(), capture_output=True, check=True, env=environment)
        return done.stdout.decode(errors="replace")

    def objects(self, names):
        """Returns the id of each `COMMIT:PATH`, or None."""
        answers = self.git("cat-file", "--batch-check=%(objectname) %(objecttype)", lines=names).splitlines()
        return [None if answer.endswith(" missing") else answer.split()[0] for answer in answers]

    def blobs(self, ids):
        """Returns the text of each blob."""
        texts = {}
        for start in range(0, len(ids), 200):
            texts.update(self._blobs(ids[start : start + 200]))
        return texts

    def _blobs(self, ids):
        command = ["git", f"--git-dir={self.path}", "cat-file", "--batch"]
        done = subprocess.run(command, input="".join(f"{i}\n" for i in ids).encode(), capture_output=True, check=True)
        texts, rest = {}, done.stdout
        for identity in ids:
            head, rest = rest.split(b"\n", 1)
            if head.endswith(b"missing"):
                continue
            size = int(head.split()[2])
            texts[identity], rest = rest[:size].decode(errors="replace"), rest[size + 1 :]
        return texts


class History:
    """The main branch, and where other commits branch off it."""

    def __init__(self, clone, main, starts):
        lines = clone.git("rev-list", "--first-parent", "--parents", "--stdin", lines=[main, *starts]).splitlines()
        self.parent = {}
        for line in lines:
            commit, *parents = line.split()
            self.parent[commit] = parents[0] if parents else None
        chain, commit = [], clone.git("rev-parse", f"{main}^{{commit}}").strip()
        while commit:
            chain.append(commit)
            commit = self.parent.get(commit)
        self.place = {commit: place for place, commit in enumerate(reversed(chain))}

    def branch_point(self, commit):
        while commit and commit not in self.place:
            commit = self.parent.get(commit)
        return commit


def native_key(paths, objects):
    """Returns the key of a native tree: see `docs/formats.md`, "The native key"."""
    there = dict(zip([path["path"] for path in paths], objects))
    text = "".join(
        f"{path['path']} {there[path['path']]}\n"
        for path in paths
        if there[path["path"]] and not there.get(path.get("unless"))
    )
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def native_keys(clone, engine, commits):
    paths = engine["native"]
    answers = clone.objects([f"{commit}:{path['path']}" for commit in commits for path in paths])
    count = len(paths)
    return [native_key(paths, answers[i * count : (i + 1) * count]) for i in range(len(commits))]


def scripts(clone, engine, commits):
    """Returns, for each commit, the known scripts that are there and are more than a note of where they have gone."""
    paths, stub = engine["scripts"], engine.get("stub")
    answers = clone.objects([f"{commit}:{path}" for commit in commits for path in paths])
    texts = clone.blobs(sorted({answer for answer in answers if answer}))
    real = {answer for answer, text in texts.items() if not (stub and stub in text)}
    count = len(paths)
    return [
        [path for path, answer in zip(paths, answers[i * count : (i + 1) * count]) if answer in real]
        for i in range(len(commits))
    ]


def dates(clone, commits):
    """Returns the committer date in UTC and the subject of each commit."""
    arguments = ["log", "--no-walk=unsorted", "--stdin", "--date=format-local:%Y-%m-%dT%H:%M:%SZ"]
    lines = clone.git(*arguments, "--format=%H%x09%cd%x09%s", lines=commits).splitlines()
    return {commit: (date, subject) for commit, date, subject in (line.split("\t", 2) for line in lines)}


def changed_files(clone, commits):
    """Returns the files that each commit changes against its first parent, renames as removal and addition."""
    arguments = ["log", "--no-walk=unsorted", "--stdin", "--first-parent", "--root", "-m", "--no-renames"]
    arguments = [argument for argument in arguments if argument != "--root"]
    text = clone.git(*arguments, "--name-only", "--format=%x01%H", "-z", lines=commits)
    files = {}
    for record in text.split("\x01")[1:]:
        commit, *paths = record.replace("\n", "\0").split("\0")
        files[commit] = sorted(path for path in paths if path)
    return files


def tags(clone):
    """Returns the commit of each release's tag, release candidates left out."""
    form = "--format=%(refname:strip=2) %(objectname) %(*objectname)"
    lines = [line.split() for line in clone.git("for-each-ref", form, "refs/tags").splitlines()]
    return {name: ids[-1] for name, *ids in lines if RELEASE.fullmatch(name)}


def releases(clone, engine, history, tagged):
    """Returns the rows of releases with a tag, oldest first: by where they branched off, then by when they were tagged."""
    points = {name: history.branch_point(commit) for name, commit in tagged.items()}
    when = dates(clone, sorted({*tagged.values(), *filter(None, points.values())}))
    names = [name for name in tagged if points[name]]
    names.sort(key=lambda name: (history.place[points[name]], when[tagged[name]][0], version(name)))
    keys = native_keys(clone, engine, [tagged[name] for name in names])
    return [
        {
            "name": name,
            "branched": when[points[name]][0],
            "tagged": when[tagged[name]][0],
            "commit": tagged[name][:12],
            "native-key": key,
        }
        for name, key in zip(names, keys)
    ]


def version(name):
    return [int(part) for part in re.findall(r"\d+", name)]


def uploads(package, known, after):
    """Returns the releases on PyPI that the clone has no tag of, newer than `after`, as name and date of upload."""
    with urllib.request.urlopen(f"https://pypi.org/pypi/{package}/json", timeout=60) as answer:
        found = json.load(answer)["releases"]
    rows = []
    for name, files in found.items():
        name = f"v{name}"
        if files and RELEASE.fullmatch(name) and name not in known and version(name) > version(after):
            first = min(file["upload_time_iso_8601"][:19] + "Z" for file in files)
            rows.append({"name": name, "tagged": first})
    return sorted(rows, key=lambda row: row["tagged"])


def first_and_last(history, tagged, commit):
    """Returns the newest release that branched off no later than a commit, and the first release that contains it."""
    place = history.place[history.branch_point(commit)]
    rows = [(history.place[history.branch_point(tag)], version(name), name) for name, tag in tagged.items()]
    before = max((row for row in rows if row[0] < place), default=None)
    containing = min((row for row in rows if row[0] >= place), default=None)
    return before and before[2], containing and containing[2]


def write_releases(path, tables):
    out = ["# Releases of each engine, oldest first. Written by tools/revisions.py.", ""]
    for engine, rows, source in tables:
        out += ["[[engine]]", f'engine = "{engine}"', f"source = {json.dumps(source)}", "release = ["]
        for row in rows:
            out.append("  { " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in row.items()) + " },")
        out += ["]", ""]
    path.write_text("\n".join(out))


def write_commits(path, tables):
    out = ["# Commits whose facts are known without a clone. Written by tools/revisions.py from tools/commits.txt.", ""]
    for engine, rows, source in tables:
        out += ["[[engine]]", f'engine = "{engine}"', f"source = {json.dumps(source)}", ""]
        # The sets of scripts repeat: each is written once.
        sets = sorted({tuple(row["scripts"]) for row in rows})
        out.append("script-sets = [")
        out += ["  [" + ", ".join(json.dumps(script) for script in scripts) + "]," for scripts in sets]
        out += ["]", ""]
        for row in rows:
            row["scripts"] = sets.index(tuple(row["scripts"]))
            out.append("[[engine.commit]]")
            out += [f"{key} = {toml(value)}" for key, value in row.items() if value is not None]
            out.append("")
    path.write_text("\n".join(out))


def toml(value):
    if isinstance(value, list) and len(value) > 1:
        return "[\n" + "".join(f"  {json.dumps(item, ensure_ascii=False)},\n" for item in value) + "]"
    return json.dumps(value, ensure_ascii=False)


def listed(engine):
    rows = [line.split() for line in (KNOWLEDGE / "tools" / "commits.txt").read_text().splitlines()]
    return [(role, commit) for name, role, commit in (row for row in rows if row and row[0] != "#") if name == engine]


def engine_tables(path, engine):
    clone, name = Clone(path), engine["engine"]
    wanted = listed(name)
    commits = [commit for _, commit in wanted]
    roles = {commit: role for role, commit in wanted}
    tagged = tags(clone)
    history = History(clone, engine["main"], [*tagged.values(), *commits])
    head = clone.git("rev-parse", engine["main"]).strip()[:12]
    rows = releases(clone, engine, history, tagged)
    newest = rows[-1]["name"]
    later = uploads(engine["package"], tagged, newest)
    source = f"git:{name}@{head}: tags to {newest}"
    if later:
        source += f"; from {later[0]['name']} on PyPI's dates of upload, the branch points not being known"
    when, files = dates(clone, commits), changed_files(clone, commits)
    facts = []
    for commit, key, there in zip(commits, native_keys(clone, engine, commits), scripts(clone, engine, commits)):
        before, containing = first_and_last(history, {row["name"]: tagged[row["name"]] for row in rows}, commit)
        facts.append(
            {
                "id": commit,
                "parent": history.parent[commit],
                "committed": when[commit][0],
                "subject": when[commit][1],
                "after": before,
                "first": containing or (later[0]["name"] if later else None),
                "native": key,
                "scripts": there,
                "files": files.get(commit, []) if "human" in roles[commit] else None,
            }
        )
    facts.sort(key=lambda fact: fact["committed"])
    return (name, rows + later, source), (name, facts, f"git:{name}@{head}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clone", action="append", required=True, help="a clone, bare or not: its git directory")
    parser.add_argument("--engine", action="append", required=True, choices=["vllm", "sglang"], help="its engine")
    arguments = parser.parse_args()
    if len(arguments.clone) != len(arguments.engine):
        parser.error("give --engine once for each --clone")
    engines = tomllib.loads((KNOWLEDGE / "engines.toml").read_text())["engine"]
    by_name = {engine["engine"]: engine for engine in engines}
    tables = [engine_tables(path, by_name[name]) for path, name in zip(arguments.clone, arguments.engine)]
    write_releases(KNOWLEDGE / "releases.toml", [release for release, _ in tables])
    write_commits(KNOWLEDGE / "commits.toml", [commit for _, commit in tables])


if __name__ == "__main__":
    main()
