"""Compares what is read from source with the parsers that Python's own argparse builds.

Each program's parser code is executed as it is at a commit, in a process of its own, with everything that it imports from outside
the repository, and most of what it imports from inside, replaced by stand-ins that accept anything. What comes out of a stand-in
(a list of choices, for example) isn't compared.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import importlib.abc
import importlib.machinery
import importlib.metadata
import json
import linecache
import multiprocessing.connection
import re
import subprocess
import sys
import types
import typing
from pathlib import Path
from typing import Any, Optional

sys.path.insert(0, str(Path(__file__).parent))

from gitread import Clone  # noqa: E402
from programs import ENGINES, Place, find  # noqa: E402
from sources import Sources  # noqa: E402

# Modules of the repositories that are executed as they are; all others are stand-ins. The longest match counts.
REAL = [
    "vllm.engine.arg_utils", "vllm.config", "vllm.utils", "vllm.entrypoints.openai.cli_args", "vllm.entrypoints.openai.api_server",
    "vllm.entrypoints.openai.tool_parsers", "vllm.entrypoints.cli.types", "vllm.entrypoints.cli.serve", "vllm.entrypoints.utils",
    "vllm.benchmarks", "vllm.scripts", "vllm.executor.executor_base", "vllm.model_executor.layers.quantization",
    "vllm.model_executor.model_loader", "vllm.transformers_utils.utils", "vllm.entrypoints.constants", "sglang.srt.utils.common", "sglang.srt.lora.lora_registry",
    "sglang.bench_serving", "sglang.bench_one_batch", "sglang.bench_one_batch_server", "sglang.bench_offline_throughput",
    "sglang.bench_latency", "sglang.launch_server", "sglang.benchmark", "sglang.srt.server_args", "sglang.srt.arg_groups",
    "sglang.srt.entrypoints.http_server", "sglang.srt.function_call", "sglang.srt.reasoning_parser",
    "sglang.srt.parser.reasoning_parser",
    "backend_request_func", "benchmark_utils", "benchmark_dataset",
]  # fmt: skip
EMPTY = ["vllm.model_executor.layers.quantization.", "vllm.model_executor.model_loader."]
# What a machine with a CUDA device says.
KNOWN = {
    "vllm.platforms.current_platform.device_type": "cuda",
    "vllm.platforms.current_platform.device_name": "cuda",
    "vllm.entrypoints.chat_utils.ChatTemplateContentFormatOption": typing.Literal["auto", "string", "openai"],
}


class Done(Exception):
    """Raised when a program reads its command line."""

    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


class StandIn:
    """Accepts whatever is done with it."""

    def __init__(self, name: str) -> None:
        object.__setattr__(self, "_name", name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__") and name not in ("__version__", "__name__", "__qualname__", "__doc__"):
            raise AttributeError(name)
        if name in ("__name__", "__qualname__", "__version__", "__doc__"):
            return "0.0.0" if name == "__version__" else self._name
        return KNOWN.get(f"{self._name}.{name}") or StandIn(f"{self._name}.{name}")

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        # A decorator gives back what it decorates, and a function that is handed a parser gives the parser back.
        if len(args) == 1 and not keywords and isinstance(args[0], (type, types.FunctionType, argparse.ArgumentParser)):
            return args[0]
        return StandIn(f"{self._name}()")

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __iter__(self) -> Any:
        return iter([StandInText(self._name)])

    def __getitem__(self, key: Any) -> Any:
        return StandIn(f"{self._name}[]")

    def __instancecheck__(self, instance: Any) -> bool:
        return False

    def __contains__(self, item: Any) -> bool:
        return False

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0

    def __index__(self) -> int:
        return 0

    def __int__(self) -> int:
        return 0

    def __float__(self) -> float:
        return 0.0

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *args: Any) -> bool:
        return False

    def __hash__(self) -> int:
        return hash(self._name)

    def _self(self, *args: Any) -> Any:
        return self

    def _no(self, *args: Any) -> bool:
        return False

    __add__ = __radd__ = __sub__ = __mul__ = __rmul__ = __truediv__ = __floordiv__ = __or__ = __ror__ = __and__ = _self
    __rshift__ = __lshift__ = __neg__ = _self
    __lt__ = __le__ = __gt__ = __ge__ = _no


class StandInText(str):
    """An item of a stand-in, where a text is wanted."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


class StandInModule(types.ModuleType):
    """A module that has whatever is asked of it."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []
        self.__all__: list[str] = []

    def __iter__(self) -> Any:
        return iter([])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        return KNOWN.get(full) or StandIn(full)


def pydantic() -> dict[str, types.ModuleType]:
    """Returns stand-ins for what the configuration classes need of pydantic."""
    top, inner, fields = (StandInModule(name) for name in ("pydantic", "pydantic.dataclasses", "pydantic.fields"))

    def dataclass(cls: Any = None, **keywords: Any) -> Any:
        return dataclasses.dataclass(cls, kw_only=True) if cls is not None else dataclass

    def field(default: Any = dataclasses.MISSING, *, default_factory: Any = dataclasses.MISSING, **keywords: Any) -> Any:
        if default is Ellipsis or default is dataclasses.MISSING and default_factory is dataclasses.MISSING:
            return dataclasses.field()
        if default_factory is not dataclasses.MISSING:
            return dataclasses.field(default_factory=default_factory)
        return dataclasses.field(default=default)

    class SkipValidation:
        def __class_getitem__(cls, item: Any) -> Any:
            return typing.Annotated[item, "SkipValidation"]

    class FieldInfo:
        pass

    class BaseModel:
        pass

    def decorator(*args: Any, **keywords: Any) -> Any:
        return lambda function: function

    for module in (top, fields):
        module.Field, module.FieldInfo = field, FieldInfo
    top.SkipValidation, top.BaseModel, top.ConfigDict, top.dataclasses = SkipValidation, BaseModel, dict, inner
    top.field_validator = top.model_validator = top.validator = top.root_validator = decorator
    top.ValidationError = type("ValidationError", (Exception,), {})
    inner.dataclass = dataclass
    return {"pydantic": top, "pydantic.dataclasses": inner, "pydantic.fields": fields}


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the repository's modules in git, and stand-ins for the rest."""

    def __init__(self, clone: Clone, files: dict[str, str], roots: list[str]) -> None:
        self.clone, self.files, self.roots = clone, files, roots

    def path(self, name: str) -> Optional[str]:
        """Returns the file of a module that is executed."""
        if not any(name == real or name.startswith(real + ".") for real in REAL):
            return None
        if any(name.startswith(empty) for empty in EMPTY):
            return None
        for root in self.roots:
            base = f"{root}/{name.replace('.', '/')}".lstrip("/")
            for path in (f"{base}.py", f"{base}/__init__.py"):
                if path in self.files:
                    return path
        return None

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        top = name.split(".")[0]
        if top in sys.stdlib_module_names:
            return None
        package = True
        if (found := self.path(name)) is not None:
            package = found.endswith("/__init__.py")
        return importlib.machinery.ModuleSpec(name, self, is_package=package)

    def create_module(self, spec: Any) -> Any:
        return None if self.path(spec.name) else StandInModule(spec.name)

    def exec_module(self, module: Any) -> None:
        path = self.path(module.__name__)
        if path is not None:
            execute(self.clone.blob(self.files[path]) or "", path, module)


def execute(text: str, path: str, module: Any) -> None:
    """Executes a file as a module, findable for `inspect`."""
    name = f"<git:{path}>"
    module.__file__ = name
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec", dont_inherit=True), module.__dict__)


def real(clone_path: str, engine_name: str, commit: str, place: Place) -> list[dict[str, Any]]:
    """Returns the options of the parser that a program builds."""
    engine = ENGINES[engine_name]
    clone = Clone(clone_path)
    files = clone.tree(commit, engine.folders)
    sys.argv = [place.path]
    sys.modules.update(pydantic())
    sys.meta_path.insert(0, Finder(clone, files, [*engine.roots, "benchmarks"]))

    def stop(self: Any, *args: Any, **keywords: Any) -> Any:
        raise Done(self)

    original = argparse.ArgumentParser.parse_args
    argparse.ArgumentParser.parse_args = argparse.ArgumentParser.parse_known_args = stop  # type: ignore[method-assign]
    escape = re.escape
    re.escape = lambda text: escape(text) if isinstance(text, (str, bytes)) else ""  # type: ignore[assignment]
    importlib.metadata.version = lambda name: "0.0.0"  # type: ignore[assignment]
    asyncio.set_event_loop_policy = lambda policy: None  # type: ignore[assignment]
    try:
        parser = build(clone, files, place, engine.roots)
    finally:
        argparse.ArgumentParser.parse_args = original  # type: ignore[method-assign]
    return [shown(action) for action in parser._actions if action.option_strings and action.dest != "help"]


def build(clone: Clone, files: dict[str, str], place: Place, roots: list[str]) -> argparse.ArgumentParser:
    """Executes a program until its parser is complete."""
    if place.way == "main":
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        module.__package__ = ""
        try:
            execute(clone.blob(files[place.path]) or "", place.path, module)
        except Done as done:
            return done.parser
        raise RuntimeError("no command line was read")
    root = next(root for root in sorted(roots, key=len, reverse=True) if place.path.startswith(root))
    name = place.path[len(root) :].strip("/").removesuffix(".py").replace("/", ".")
    module = importlib.import_module(name)
    kind = getattr(sys.modules.get("vllm.utils.argparse_utils") or importlib.import_module("vllm.utils"), "FlexibleArgumentParser")
    if not isinstance(kind, type):
        kind = argparse.ArgumentParser
    parser = kind()
    if place.way == "function":
        module.add_cli_args(parser)
        return parser
    if hasattr(module, "ServeSubcommand") and isinstance(module.ServeSubcommand, type):
        subparsers = parser.add_subparsers()
        made = module.ServeSubcommand()
        made.subparser_init(subparsers)
        return subparsers.choices[place.child]
    try:
        module.main()
    except Done as done:
        actions = [action for action in done.parser._actions if isinstance(action, argparse._SubParsersAction)]
        return actions[0].choices[place.child]
    raise RuntimeError("no command line was read")


def shown(action: Any) -> dict[str, Any]:
    """Returns an option as data; choices only if no stand-in is among them."""
    names = [name for name in action.option_strings if not name.startswith("--no-") or len(action.option_strings) == 1]
    if not isinstance(action, argparse.BooleanOptionalAction):
        names = list(action.option_strings)
    row: dict[str, Any] = {"names": names, "required": action.required}
    if isinstance(action, argparse.BooleanOptionalAction):
        row["takes"] = "nothing-or-no"
    elif action.nargs == 0:
        row["takes"] = "nothing"
    else:
        texts = {None: "one", "?": "at-most-one", "+": "one-or-more", "*": "any", "...": "any", 1: "one"}
        row["takes"] = texts.get(action.nargs, "one-or-more")
    choices = action.choices
    if choices is not None and not isinstance(choices, StandIn):
        values = [getattr(value, "value", value) for value in choices if value is not None]
        # An empty list is what the arguments of a stand-in for a `Literal` come to.
        if values and not any(isinstance(value, (StandIn, StandInText)) for value in values):
            row["choices"] = sorted(map(str, values))
    else:
        row["choices"] = [] if choices is None else None
    return row


def check(clone_path: str, engine_name: str, commits: list[str]) -> int:
    """Prints where both differ, and how many programs and options were compared."""
    engine = ENGINES[engine_name]
    clone = Clone(clone_path)
    sources = Sources(clone.blob)
    programs = options = skipped = different = 0
    for name in commits:
        commit = clone.commit(name)
        files = clone.tree(commit.id, engine.folders)
        for tool in engine.tools:
            found = find(tool, engine, files, sources)
            rows: dict[str, Any] = {}
            failed = []
            for place in tool.places:
                if place.path in found.places:
                    got = run_apart(clone_path, engine_name, commit.id, place)
                    if isinstance(got, str):
                        failed.append(f"{place.path}: {got}")
                    else:
                        for row in got:
                            rows.setdefault(row["names"][0], row)
            if failed or not found.places:
                skipped += len(failed) > 0
                for text in failed:
                    print(f"{commit.id[:12]} {commit.moment} {tool.name}: not compared, {text}")
                continue
            programs += 1
            options += len(rows)
            for text in differences(found.options, list(rows.values())):
                different += 1
                print(f"{commit.id[:12]} {commit.moment} {tool.name}: {text}")
    print(f"{len(commits)} commits: {programs} programs compared, {options} options, {different} differences; {skipped} not compared")
    return 1 if different else 0


# Options whose choices are registered by decorators when modules are imported; they are read as any value.
REGISTERED = {"--tool-call-parser", "--reasoning-parser"}


def differences(read: dict[str, Any], rows: list[dict[str, Any]]) -> list[str]:
    """Returns how what was read differs from the real options."""
    texts = []
    by_name = {name: row for row in read.values() for name in row["names"]}
    seen = set()
    for row in rows:
        mine = next((by_name[name] for name in row["names"] if name in by_name), None)
        if mine is None:
            texts.append(f"{row['names']} isn't read")
            continue
        seen.add(mine["names"][0])
        for key in ("required", "takes"):
            if mine[key] != row[key]:
                texts.append(f"{row['names'][0]}: {key} is {row[key]!r}, read as {mine[key]!r}")
        if sorted(mine["names"]) != sorted(row["names"]):
            texts.append(f"names are {row['names']}, read as {mine['names']}")
        wanted = row.get("choices")
        if row["names"][0] in REGISTERED and not mine["choices"]:
            continue
        if wanted is not None and sorted(set(wanted) - {"None"}) != sorted(set(mine["choices"]) - {"None"}):
            texts.append(f"{row['names'][0]}: choices are {wanted}, read as {mine['choices']}")
    texts += [f"{name} is read, but not there" for name in read if name not in seen]
    return texts


def run_apart(clone_path: str, engine: str, commit: str, place: Place) -> Any:
    """Returns a program's real options, built in a process of its own; a text if that failed."""
    call = [sys.executable, "-I", __file__, clone_path, engine, commit, place.path, place.way, place.child, place.beside]
    done = subprocess.run(call, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no reason given"])[-1][:200]
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    ARGS = sys.argv[1:]
    OUT = sys.stdout
    sys.stdout = sys.stderr
    print(json.dumps(real(ARGS[0], ARGS[1], ARGS[2], Place(*ARGS[3:7]))), file=OUT)
