"""Reads a git clone: its main branch, the files at each commit, and where releases branch off."""

from __future__ import annotations

import re
import subprocess
from datetime import datetime, timezone
from typing import Iterator, NamedTuple, Optional

RELEASE = re.compile(r"^v(\d+)\.(\d+)\.(\d+)(?:\.(\d+))?(?:\.?post(\d+))?$")


class Commit(NamedTuple):
    """A commit of the main branch: its full id and its committer date in UTC."""

    id: str
    moment: str


class Release(NamedTuple):
    """A release: its name and the date of the commit of the main branch that it branches off from."""

    name: str
    branched: str


def moment(seconds: int) -> str:
    """Returns seconds since 1970 as a date in UTC."""
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def release_order(name: str) -> tuple[int, ...]:
    """Returns what a release's name sorts by."""
    found = RELEASE.match(name)
    if not found:
        raise ValueError(f"`{name}` isn't the name of a release")
    return tuple(int(part or 0) for part in found.groups())


class Clone:
    """A git clone, bare or not. Nothing in it is changed, and no code of it is run."""

    def __init__(self, path: str) -> None:
        found = subprocess.run(
            ["git", "-C", path, "rev-parse", "--absolute-git-dir"], capture_output=True, text=True, check=False
        )
        if found.returncode != 0:
            raise SystemExit(f"`{path}` isn't a git clone; give one with --clone")
        self.git_dir = found.stdout.strip()
        self._batch = subprocess.Popen(
            ["git", f"--git-dir={self.git_dir}", "cat-file", "--batch"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def git(self, *args: str) -> str:
        """Runs git and returns what it prints."""
        done = subprocess.run(["git", f"--git-dir={self.git_dir}", *args], capture_output=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"git {' '.join(args[:4])}: {done.stderr.decode(errors='replace').strip()}")
        return done.stdout.decode(errors="replace")

    def blob(self, name: str) -> Optional[str]:
        """Returns the text of an object, `ID` or `COMMIT:PATH`; `None` if there is none or it isn't a file."""
        stdin, stdout = self._batch.stdin, self._batch.stdout
        assert stdin is not None and stdout is not None
        stdin.write(name.encode() + b"\n")
        stdin.flush()
        head = stdout.readline().split()
        if head[-1] == b"missing" or len(head) != 3:
            return None
        data = stdout.read(int(head[2]))
        stdout.read(1)
        return data.decode(errors="replace") if head[1] == b"blob" else None

    def tree(self, commit: str, roots: list[str]) -> dict[str, str]:
        """Returns the Python files below `roots` at a commit, as path and object."""
        files = {}
        for line in self.git("ls-tree", "-r", "-z", commit, "--", *roots).split("\0"):
            if line.endswith(".py"):
                head, path = line.split("\t", 1)
                files[path] = head.split()[2]
        return files

    def commit(self, name: str) -> Commit:
        """Returns a commit by any of its names."""
        identity, seconds = self.git("show", "-s", "--format=%H %ct", f"{name}^{{commit}}").split()
        return Commit(identity, moment(int(seconds)))

    def history(self, ref: str, roots: list[str]) -> Iterator[tuple[Commit, dict[str, Optional[str]]]]:
        """Walks the first parents of `ref`, oldest first, with the Python files that each commit changed."""
        out = self.git(
            "log", "--first-parent", "-m", "--reverse", "--root", "--raw", "--no-abbrev", "--no-renames",
            "--format=@%H %ct", ref, "--", *roots,
        )  # fmt: skip
        at: Optional[Commit] = None
        changed: dict[str, Optional[str]] = {}
        for line in out.splitlines():
            if line.startswith("@"):
                if at is not None:
                    yield at, changed
                identity, seconds = line[1:].split()
                at, changed = Commit(identity, moment(int(seconds))), {}
            elif line.startswith(":"):
                head, path = line.split("\t", 1)
                new, status = head.split()[3:5]
                if path.endswith(".py"):
                    changed[path] = None if status == "D" else new
        if at is not None:
            yield at, changed

    def releases(self, ref: str) -> list[Release]:
        """Returns the tagged releases that branch off from `ref`, in the order in which they branch off."""
        rows = []
        chain = dict(line.split() for line in self.git("log", "--first-parent", "--format=%H %ct", ref).splitlines())
        for tag in self.git("tag").split():
            if not RELEASE.match(tag):
                continue
            # The newest commit of the chain that the tag has in its history.
            base = self.git("merge-base", ref, tag).strip()
            if base in chain:
                rows.append(Release(tag, moment(int(chain[base]))))
        return sorted(rows, key=lambda row: (row.branched, release_order(row.name)))
