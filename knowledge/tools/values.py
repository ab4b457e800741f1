"""The values that the reader of parser code works with: what a program's source says before anything runs."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Optional


class Unknown:
    """A value that only running the program would give. It keeps its source: text, or an expression."""

    def __init__(self, source: Any) -> None:
        self._source = source

    @property
    def source(self) -> str:
        """Returns its source text."""
        return self._source if isinstance(self._source, str) else ast.unparse(self._source)

    def __repr__(self) -> str:
        return self.source


@dataclass(frozen=True)
class External:
    """A name of a module that isn't in the repository, such as `argparse.BooleanOptionalAction` or `builtins.int`."""

    name: str


@dataclass(frozen=True)
class Module:
    """A file of the repository."""

    path: str


@dataclass(frozen=True)
class Function:
    """A function of the repository, bound to a class or object if `owner` is given."""

    path: str
    node: Any
    scope: Any
    owner: Any
    home: Any


@dataclass(frozen=True)
class Class:
    """A class of the repository."""

    path: str
    node: Any

    @property
    def name(self) -> str:
        """Returns its name."""
        return self.node.name


@dataclass(frozen=True)
class Instance:
    """An object of a class of the repository; its attributes aren't followed."""

    of: Class


@dataclass(frozen=True)
class Super:
    """What `super()` gives inside a method of `home`."""

    home: Class
    owner: Any


@dataclass(frozen=True)
class Member:
    """A member of an enumeration."""

    of: Class
    name: str
    value: Any


class Hint:
    """A type in an annotation: its origin (`Union`, `Literal`, `list`, ...) and its arguments."""

    def __init__(self, origin: str, args: list[Any]) -> None:
        self.origin = origin
        self.args = args


@dataclass(frozen=True)
class Conversion:
    """A function that reads a value: the kind of value, and whether `None` or nothing is read too."""

    kind: str
    optional: bool


class Option:
    """One `add_argument` call, as far as the source says it."""

    def __init__(self, names: list[str], keywords: dict[str, Any]) -> None:
        self.names = names
        self.keywords = keywords

    def dest(self) -> str:
        """Returns the attribute that the value goes to."""
        given = self.keywords.get("dest")
        if isinstance(given, str):
            return given
        long = [name for name in self.names if name.startswith("--")]
        return (long or self.names)[0].lstrip("-").replace("-", "_")


class Parser:
    """A parser that is being built; its argument groups are itself."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.options: list[Option] = []
        self.children: dict[str, Parser] = {}

    def flexible(self) -> bool:
        """Returns whether it takes `_` for `-` in names."""
        return isinstance(self.kind, Class) and self.kind.name == "FlexibleArgumentParser"


@dataclass(frozen=True)
class Subparsers:
    """What `add_subparsers` gives."""

    of: Parser


class Built(Exception):
    """Raised when a program reads its command line: the parser is complete."""

    def __init__(self, parser: Parser) -> None:
        super().__init__()
        self.parser = parser


class Returned(Exception):
    """Raised by a `return`."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value


class Stop(Exception):
    """Raised where code can't be followed any further."""


@dataclass(frozen=True)
class Field:
    """One field of a data class."""

    name: str
    annotation: ast.expr
    default: Any
    path: str


MISSING = External("dataclasses.MISSING")


def is_unknown(value: Any) -> bool:
    """Returns whether a value, or a part of it, isn't known."""
    if isinstance(value, (Unknown, External, Function, Class, Instance, Hint, Parser, Module, Conversion)):
        return True
    if isinstance(value, (list, tuple, set, frozenset)):
        return any(is_unknown(item) for item in value)
    if isinstance(value, dict):
        return any(is_unknown(item) for item in value.values())
    return False


def shown(value: Any, source: Optional[ast.expr] = None) -> Optional[str]:
    """Returns a default as text: strings as they are, other values as Python prints them, the rest as source."""
    if isinstance(value, Member):
        value = value.value if isinstance(value.value, (str, int, float)) else f"{value.of.name}.{value.name}"
    if value is None or value == MISSING or value == External("argparse.SUPPRESS"):
        return None
    if isinstance(value, str):
        return value
    if isinstance(value, Unknown):
        return value.source
    if is_unknown(value):
        return ast.unparse(source) if source is not None else None
    if isinstance(value, (set, frozenset)):
        return "{" + ", ".join(sorted(map(repr, value))) + "}"
    return repr(value)
