#!/usr/bin/env python3
"""Writes knowledge/packages.toml: what each engine's main branch asked for, over time.

    knowledge/tools/packages.py --clone vllm.git --engine vllm --clone sglang.git --engine sglang

For every commit of the main branch that touches a file of requirements, the file is read as it was then; a new span begins
where the requirements of a package change. Only what the files say is written, nothing is resolved. Releases of packages with
open requirements, with their dates, are taken from PyPI.
"""

import argparse
import json
import re
import tomllib
import urllib.request
from pathlib import Path

from revisions import Clone

KNOWLEDGE = Path(__file__).resolve().parent.parent

# Group of requirements to files, the newest place first.
FILES = {
    "vllm": {
        "common": ["requirements/common.txt", "requirements-common.txt", "requirements.txt"],
        "cuda": ["requirements/cuda.txt", "requirements-cuda.txt"],
        "cpu": ["requirements/cpu.txt", "requirements-cpu.txt"],
        "build": ["requirements/build/cuda.txt", "requirements/build.txt", "requirements-build.txt"],
    },
    "sglang": {},
}
OTHER_FILES = {
    "vllm": ["pyproject.toml", "setup.py", "vllm/envs.py", "Dockerfile", "docker/Dockerfile"],
    "sglang": ["python/pyproject.toml", "docker/Dockerfile"],
}
# Packages whose open requirements broke environments that were made long after a commit.
DATED = """transformers tokenizers numpy outlines lm-format-enforcer xgrammar ray pydantic compressed-tensors fastapi openai
setuptools huggingface-hub numba mistral-common starlette prometheus-fastapi-instrumentator flashinfer-python""".split()
NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)")


def normal(line):
    """Returns a requirement in one spelling, and the package's name; None for what is no requirement."""
    line = re.sub(r"(^|\s)#.*", "", line).strip().rstrip("\\").strip()
    found = NAME.match(line)
    if not found or line.startswith("-"):
        return None
    head, _, marker = line.partition(";")
    if "@" in head or "://" in head:
        text = head.strip()
    else:
        text = re.sub(r"\s+", "", head)
    if marker.strip():
        text += "; " + re.sub(r"\s+", " ", marker.strip()).replace('"', "'")
    return re.sub(r"[-_.]+", "-", found.group(1)).lower(), text


def of_lines(lines):
    packages = {}
    for name, text in filter(None, map(normal, lines)):
        if text not in packages.setdefault(name, []):
            packages[name].append(text)
    return packages


def first(pattern, *texts):
    for text in texts:
        found = re.search(pattern, text or "", re.M)
        if found:
            return found.group(1)
    return None


def of_vllm(read):
    """Returns the packages of each group at one commit."""
    groups = {}
    for group, paths in FILES["vllm"].items():
        for path in paths:
            if (text := read(path)) is not None:
                groups[group] = of_lines(text.splitlines())
                break
    project = read("pyproject.toml")
    if project is not None and "build" not in groups:
        groups["build"] = of_lines(tomllib.loads(project).get("build-system", {}).get("requires", []))
    docker = read("docker/Dockerfile") or read("Dockerfile")
    groups["platform"] = {
        "python": first(r'(?:python_requires\s*=|requires-python\s*=)\s*"([^"]+)"', project, read("setup.py")),
        "wheel-cuda": first(
            r'MAIN_CUDA_VERSION"?[^"\n]*=\s*"(\d+\.\d+)"|"VLLM_MAIN_CUDA_VERSION",\s*"(\d+\.\d+)"', read("setup.py")
        )
        or first(r'VLLM_MAIN_CUDA_VERSION"?,?\s*(?::\s*str\s*=\s*)?"(\d+\.\d+)"', read("vllm/envs.py")),
        "image-cuda": first(r"(?:ARG CUDA_VERSION=|FROM nvidia/cuda:)(\d+\.\d+\.\d+)", docker),
        "image-python": first(r"ARG PYTHON_VERSION=(\d+\.\d+)", docker),
    }
    return groups


def of_sglang(read):
    groups = {}
    if (text := read("python/pyproject.toml")) is not None:
        try:
            project = tomllib.loads(text)
        except tomllib.TOMLDecodeError:
            return None
        extras = project["project"].get("optional-dependencies", {})

        def whole(lines, seen=()):
            for line in lines:
                inner = re.match(r"sglang\[([^]]+)\]", line)
                if not inner:
                    yield line
                elif (name := inner.group(1)) not in seen:
                    yield from whole(extras.get(name, []), (*seen, name))

        groups["common"] = of_lines(project["project"].get("dependencies", []))
        groups["cuda"] = of_lines(list(whole(extras.get("srt", extras.get("all", [])))))
        groups["build"] = of_lines(project.get("build-system", {}).get("requires", []))
        python = project["project"].get("requires-python")
    else:
        python = None
    docker = read("docker/Dockerfile")
    groups["platform"] = {
        "python": python,
        "image-cuda": first(r"^ARG CUDA_VERSION=(\d+\.\d+\.\d+)", docker),
    }
    return groups


def spans(path, engine):
    """Returns, for each group and package, the spans in which its requirements were the same."""
    clone, name = Clone(path), engine["engine"]
    paths = sorted({p for group in FILES[name].values() for p in group} | set(OTHER_FILES[name]))
    arguments = ["log", "--first-parent", "--reverse", "--date=format-local:%Y-%m-%dT%H:%M:%SZ", "--format=%H %cd"]
    touching = [line.split() for line in clone.git(*arguments, engine["main"], "--", *paths).splitlines()]
    answers = clone.objects([f"{commit}:{p}" for commit, _ in touching for p in paths])
    texts = clone.blobs(sorted(set(filter(None, answers))))
    of_engine = {"vllm": of_vllm, "sglang": of_sglang}[name]
    now, out, latest = {}, {}, ""
    for index, (commit, moment) in enumerate(touching):
        there = dict(zip(paths, answers[index * len(paths) : (index + 1) * len(paths)]))
        groups = of_engine(lambda p: texts.get(there.get(p)))
        if groups is None:
            continue
        # A commit that is dated before its parent counts from its parent's date on.
        latest = max(latest, moment)
        found = {
            (group, package): [value] if isinstance(value, str) else value
            for group, packages in groups.items()
            for package, value in packages.items()
            if value
        }
        for key in found.keys() | now.keys():
            if found.get(key) != now.get(key):
                out.setdefault(key, []).append((latest, commit[:12], found.get(key, [])))
        now = found
    head = clone.git("rev-parse", engine["main"]).strip()[:12]
    return name, f"git:{name}@{head}: files of requirements on the main branch", out


def dated(package):
    with urllib.request.urlopen(f"https://pypi.org/pypi/{package}/json", timeout=60) as answer:
        found = json.load(answer)["releases"]
    rows = []
    for version, files in found.items():
        files = [file for file in files if not file["yanked"]]
        if files and re.fullmatch(r"\d+(\.\d+)*(\.post\d+)?", version):
            rows.append((min(file["upload_time_iso_8601"][:10] for file in files), version))
    return [f"{date} {version}" for date, version in sorted(rows) if date >= "2022-06-01"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clone", action="append", required=True, help="a clone, bare or not: its git directory")
    parser.add_argument("--engine", action="append", required=True, choices=["vllm", "sglang"], help="its engine")
    arguments = parser.parse_args()
    engines = {e["engine"]: e for e in tomllib.loads((KNOWLEDGE / "engines.toml").read_text())["engine"]}
    out = [
        "# What each engine's main branch asked for, over time, and when packages with open requirements were released.",
        "# Written by tools/packages.py. A span holds until the next one; an empty one: no longer asked for.",
        "",
    ]
    for path, name in zip(arguments.clone, arguments.engine):
        name, source, found = spans(path, engines[name])
        out += ["[[engine]]", f'engine = "{name}"', f"source = {json.dumps(source)}", ""]
        for (group, package), rows in sorted(found.items()):
            out += ["[[engine.package]]", f'name = "{package}"', f'group = "{group}"', "spans = ["]
            for since, commit, texts in rows:
                out.append(f'  {{ since = "{since}", commit = "{commit}", asks = {json.dumps(texts)} }},')
            out += ["]", ""]
    out += ["[released]", 'source = "PyPI: day of the first upload of each version that isn\'t withdrawn"', ""]
    for package in DATED:
        rows = dated(package)
        out += ["[[released.package]]", f'name = "{package}"', "versions = ["]
        for start in range(0, len(rows), 5):
            out.append("  " + ", ".join(json.dumps(row) for row in rows[start : start + 5]) + ",")
        out += ["]", ""]
    (KNOWLEDGE / "packages.toml").write_text("\n".join(out))


if __name__ == "__main__":
    main()
