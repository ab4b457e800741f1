"""The programs whose options are read, where each is, and what their options come to as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

from calls import Follower
from fields import kind_of
from sources import Scope, Sources
from values import Class, Conversion, External, Function, Instance, Member, Option, Parser, Stop, Subparsers, is_unknown, shown


@dataclass(frozen=True)
class Place:
    """A file that a program is in, and how its parser comes about.

    `main`: the file is run. `function`: a function of it is handed a parser. `subcommand`: its parser is the child `child` of
    the parser that the file's `main` or its class's `subparser_init` builds.
    """

    path: str
    way: str
    child: str = ""
    beside: str = ""


@dataclass(frozen=True)
class Tool:
    """A program: its name, its table's file name, and its places, the one that counts first."""

    name: str
    file: str
    places: tuple[Place, ...]


@dataclass(frozen=True)
class Engine:
    """An engine: the folders that hold its Python files, where imports start, and its programs."""

    folders: list[str]
    roots: list[str]
    tools: list[Tool]


def _script(name: str, *older: str) -> Tool:
    places = tuple(Place(path, "main") for path in (f"benchmarks/{name}.py", *older))
    return Tool(f"{name}.py", name.replace("_", "-"), places)


def _bench(name: str) -> Tool:
    place = Place(f"vllm/benchmarks/{name}.py", "function", beside=f"vllm/entrypoints/cli/benchmark/{name}.py")
    return Tool(f"vllm bench {name}", f"vllm-bench-{name}", (place,))


def _module(name: str, *paths: str) -> Tool:
    places = tuple(Place(f"python/sglang/{path}.py", "main") for path in paths)
    return Tool(f"sglang.{name}", f"sglang-{name.replace('_', '-')}", places)


ENGINES = {
    "vllm": Engine(
        ["vllm", "cacheflow", "benchmarks", "benchmark"],
        [""],
        [
            _script("benchmark_serving"),
            _script("benchmark_throughput"),
            _script("benchmark_latency", "benchmark/benchmark_latency.py"),
            _script("benchmark_prefix_caching"),
            _bench("serve"),
            _bench("throughput"),
            _bench("latency"),
            Tool(
                "vllm serve",
                "vllm-serve",
                (
                    Place("vllm/entrypoints/openai/api_server.py", "main"),
                    Place("vllm/scripts.py", "subcommand", "serve"),
                    Place("vllm/entrypoints/cli/serve.py", "subcommand", "serve"),
                ),
            ),
        ],
    ),
    "sglang": Engine(
        ["python"],
        ["python"],
        [
            _module("bench_serving", "bench_serving", "benchmark/serving"),
            _module("bench_one_batch", "bench_one_batch", "bench_latency", "benchmark/one_batch"),
            _module("bench_one_batch_server", "bench_one_batch_server", "benchmark/one_batch_server"),
            _module("bench_offline_throughput", "bench_offline_throughput", "benchmark/offline_throughput"),
            _module("launch_server", "launch_server"),
        ],
    ),
}


@dataclass
class Found:
    """What one revision's source says of one program."""

    # The places that build a parser.
    places: list[str]
    # The places that are there but build none: stubs.
    stubs: list[str]
    underscores: bool
    # By main name.
    options: dict[str, dict[str, Any]]
    # What wasn't followed.
    notes: list[str]


def find(tool: Tool, engine: Engine, files: dict[str, str], sources: Sources) -> Found:
    """Reads one program at one revision, given its files."""
    return find_with(tool, Follower(files, sources, engine.roots))


def find_with(tool: Tool, reader: Follower) -> Found:
    """Reads one program by a reader that may have read others of the same revision."""
    reader.notes.clear()
    found = Found([], [], False, {}, [])
    for place in tool.places:
        parser = parser_of(place, reader)
        if parser is None or not parser.options:
            if reader.files.get(place.path) and place.way == "main":
                found.stubs.append(place.path)
            continue
        found.places.append(place.path)
        found.underscores = found.underscores or parser.flexible()
        for option in parser.options:
            row = spec(option, reader)
            if not any(name in known["names"] for known in found.options.values() for name in row["names"]):
                found.options[row["names"][0]] = row
    found.notes = sorted(set(reader.notes))
    return found


def parser_of(place: Place, reader: Follower) -> Optional[Parser]:
    """Returns the parser of a program at one place; `None` if there is none."""
    if reader.source(place.path) is None:
        return None
    if place.way == "main":
        return reader.main(place.path)
    if place.way == "function":
        # A module of the package is a program only once the command line has a subcommand for it.
        if reader.source(place.beside) is None:
            return None
        return from_function(place.path, reader)
    return from_subcommand(place, reader)


def flexible(reader: Follower, near: str) -> Parser:
    """Returns an empty parser of the class that a file uses."""
    for path in (near, "vllm/utils/argparse_utils.py", "vllm/utils/__init__.py", "vllm/utils.py"):
        found = reader.module_name(path, "FlexibleArgumentParser")
        if found is not None and isinstance(found[0], Class):
            return Parser(found[0])
    return Parser(External("argparse.ArgumentParser"))


def from_function(path: str, reader: Follower) -> Optional[Parser]:
    """Returns a parser that a module's `add_cli_args` has filled."""
    found = reader.module_name(path, "add_cli_args")
    if found is None or not isinstance(found[0], Function):
        return None
    # A subcommand's parser is of the class of the whole command's parser.
    command = next((near for near in ("vllm/entrypoints/cli/main.py", "vllm/scripts.py") if near in reader.files), path)
    parser = flexible(reader, command)
    reader.built(_call_body(), _call_scope(path, found[0], parser))
    return parser


def from_subcommand(place: Place, reader: Follower) -> Optional[Parser]:
    """Returns the parser of a subcommand."""
    found = reader.module_name(place.path, "ServeSubcommand")
    if found is not None and isinstance(found[0], Class):
        method = reader.method(found[0], "subparser_init")
        if method is None:
            return None
        top = flexible(reader, place.path)
        function = Function(method[0].path, method[1], None, Instance(found[0]), method[0])
        reader.built(_call_body(), _call_scope(place.path, function, Subparsers(top)))
        return top.children.get(place.child)
    top = reader.main(place.path)
    return top.children.get(place.child) if top is not None else None


def _call_body() -> list[Any]:
    import ast

    return ast.parse("called(handed)").body


def _call_scope(path: str, function: Function, handed: Any) -> Scope:
    return Scope(path, {"called": function, "handed": handed})


# Options as data.


def spec(option: Option, reader: Follower) -> dict[str, Any]:
    """Returns an option as a row: names, how many values, of what kind, which, the default, whether it must be given."""
    words = option.keywords
    long = [name for name in option.names if name.startswith("--")]
    short = [name for name in option.names if not name.startswith("--")]
    row: dict[str, Any] = {"names": [*long, *short], "takes": takes(words, reader)}
    kind = kind_of(words.get("type"))
    if row["takes"] in ("nothing", "nothing-or-no"):
        kind = "text"
    row["kind"] = kind
    row["choices"] = choices(words, reader)
    default = words.get("default")
    if "default" not in words and words.get("action") in ("store_true", "store_false"):
        default = words["action"] == "store_false"
    row["default"] = shown(default)
    row["required"] = words.get("required") is True
    return row


def takes(words: dict[str, Any], reader: Follower) -> str:
    """Returns how many values an option takes."""
    action = words.get("action")
    if isinstance(action, str) and action in (
        "store_true", "store_false", "store_const", "append_const", "count", "help", "version",
    ):  # fmt: skip
        return "nothing"
    if reader.derives(action, "BooleanOptionalAction"):
        return "nothing-or-no"
    if any(reader.derives(action, name) for name in ("_StoreTrueAction", "_StoreFalseAction", "_StoreConstAction")):
        return "nothing"
    nargs = words.get("nargs")
    if nargs is None and isinstance(action, Class):
        nargs = action_nargs(action, reader)
    if isinstance(nargs, External):
        nargs = {"REMAINDER": "*", "ZERO_OR_MORE": "*", "ONE_OR_MORE": "+", "OPTIONAL": "?"}.get(nargs.name.split(".")[-1])
    by_text = {"?": "at-most-one", "+": "one-or-more", "*": "any", "...": "any"}
    if isinstance(nargs, str):
        return by_text.get(nargs, "one")
    if isinstance(nargs, int):
        return "nothing" if nargs == 0 else "one" if nargs == 1 else "one-or-more"
    return "one"


def action_nargs(action: Class, reader: Follower) -> Any:
    """Returns how many values an action of the repository takes by its own constructor."""
    import ast

    found = reader.method(action, "__init__")
    if found is None or not isinstance(found[1], ast.FunctionDef):
        return None
    node = found[1]
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and ast.unparse(inner.func).endswith("__init__"):
            for word in inner.keywords:
                if word.arg == "nargs" and isinstance(word.value, ast.Constant):
                    return word.value.value
    names = [arg.arg for arg in node.args.args]
    defaults = dict(zip(names[len(names) - len(node.args.defaults) :], node.args.defaults, strict=True))
    given = defaults.get("nargs")
    return given.value if isinstance(given, ast.Constant) else None


def choices(words: dict[str, Any], reader: Follower) -> list[str]:
    """Returns the values that an option allows, sorted; none if any is allowed or they aren't known."""
    given = words.get("choices")
    if given is None:
        return []
    try:
        values = reader.iterate(given)
    except Stop:
        reader.notes.append(f"choices `{given}` aren't known"[:120])
        return []
    rows = set()
    for value in values:
        if isinstance(value, Member):
            value = value.value
        if value is None:
            kind = words.get("type")
            nullable = isinstance(kind, Conversion) and kind.optional or isinstance(kind, Function) and "null" in kind.node.name
            if nullable:
                rows.add("None")
            continue
        if is_unknown(value):
            reader.notes.append(f"choice `{value}` isn't known"[:120])
            return []
        rows.add(str(value))
    if words.get("type") == External("builtins.int"):
        return sorted(rows, key=lambda text: (len(text), text))
    return sorted(rows)
