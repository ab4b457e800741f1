"""Parsed files, what their top levels bind, and the names of a function that is being followed."""

from __future__ import annotations

import ast
from typing import Any, Callable, Optional

# How many parsed files are kept.
KEPT = 400
# Stands for a file's `if` statements of the top level, among them the one that is run as a program.
MAIN = "if"


class Source:
    """One file: its tree and what its top level binds."""

    def __init__(self, text: str) -> None:
        self.tree = ast.parse(text)
        self.lines = text.split("\n")
        self.digests: dict[str, str] = {}
        self.bindings: dict[str, list[tuple[str, Any]]] = {}
        self.stars: list[ast.ImportFrom] = []
        # Kept by `fields.rules` and `calls.Follower.call`.
        self.rules: Any = None
        self.lengths: dict[Any, tuple[int, bool]] = {}
        self._bind(self.tree.body)

    def text_of(self, name: str) -> str:
        """Returns the text of what was looked at under a name: a binding of the top level, `CLASS.METHOD`, or the main block."""
        if name not in self.digests:
            self.digests[name] = self._text_of(name)
        return self.digests[name]

    def _text_of(self, name: str) -> str:
        if name == MAIN:
            return "\n".join(self._span(node) for node in self.tree.body if isinstance(node, ast.If))
        top, _, inner = name.partition(".")
        texts = [ast.unparse(star) for star in self.stars]
        for kind, node in self.bindings.get(top, []):
            if kind == "import":
                texts.append(ast.unparse(node[0]))
            elif not isinstance(node, ast.ClassDef):
                texts.append(self._span(node))
            elif inner:
                texts += [self._span(part) for part in node.body if getattr(part, "name", None) == inner]
            else:
                texts += [ast.unparse(part) for part in [*node.bases, *node.decorator_list]]
                texts += [self._span(part) for part in node.body if not isinstance(part, ast.FunctionDef)]
        return "\n".join(texts)

    def _span(self, node: Any) -> str:
        first = min([node.lineno, *(mark.lineno for mark in getattr(node, "decorator_list", []))])
        return "\n".join(self.lines[first - 1 : node.end_lineno])

    def _bind(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                self.bindings.setdefault(node.name, []).append(("definition", node))
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        self.bindings.setdefault(target.id, []).append(("value", node.value))
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self.bindings.setdefault(node.target.id, []).append(("value", node.value))
            elif isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                self.bindings.setdefault(node.target.id, []).append(("add", node.value))
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                if isinstance(node, ast.ImportFrom) and node.names[0].name == "*":
                    self.stars.append(node)
                    continue
                for alias in node.names:
                    name = alias.asname or alias.name.split(".")[0]
                    self.bindings.setdefault(name, []).append(("import", (node, alias)))
            elif isinstance(node, ast.If):
                checking = "TYPE_CHECKING" in ast.unparse(node.test)
                if not checking and "__name__" not in ast.unparse(node.test):
                    self._bind(node.body)
                self._bind(node.orelse)
            elif isinstance(node, ast.Try):
                before = set(self.bindings)
                self._bind(node.body)
                first = set(self.bindings) - before
                for handler in node.handlers:
                    fallback = Source.__new__(Source)
                    fallback.bindings, fallback.stars = {}, []
                    fallback._bind(handler.body)
                    for name, rows in fallback.bindings.items():
                        if name not in first:
                            self.bindings.setdefault(name, []).extend(rows)
            elif isinstance(node, ast.With):
                self._bind(node.body)


class Sources:
    """Parsed files by object, shared by all commits."""

    def __init__(self, read: Callable[[str], Optional[str]]) -> None:
        self.read = read
        self.kept: dict[str, Optional[Source]] = {}

    def get(self, blob: str) -> Optional[Source]:
        """Returns a parsed file; `None` if it isn't Python of this version."""
        if blob in self.kept:
            # The least recently used come first.
            self.kept[blob] = self.kept.pop(blob)
            return self.kept[blob]
        while len(self.kept) >= KEPT:
            del self.kept[next(iter(self.kept))]
        text = self.read(blob)
        try:
            self.kept[blob] = Source(text) if text is not None else None
        except (SyntaxError, ValueError):
            self.kept[blob] = None
        return self.kept[blob]


class Scope:
    """The names of a function that is being followed."""

    def __init__(self, path: str, names: dict[str, Any], parent: Optional["Scope"] = None) -> None:
        self.path = path
        self.names = names
        self.parent = parent
        self.home: Any = parent.home if parent else None
        self.owner: Any = parent.owner if parent else None
