"""Follows the code that builds a command-line parser, without running it.

It reads the source of a revision the way Python would run it, as far as values are written in the source: names, imports,
classes, loops over lists, calls of functions that a parser is handed to. What it can't know stays `Unknown` with its source
text. A condition that it can't know has both branches followed, so that an option that is added on some platforms only is there.
"""

from __future__ import annotations

import ast
import builtins
import posixpath
from typing import Any, Callable, Optional

import hints
from sources import Scope, Source, Sources
from values import (
    MISSING, Class, External, Field, Function, Instance, Member, Module, Option, Parser, Stop, Subparsers, Super, Unknown, is_unknown,
)  # fmt: skip

DEPTH = 120
COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: a is b or a == b,
    ast.IsNot: lambda a, b: not (a is b or a == b),
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}


def holds_parser(values: Any) -> bool:
    """Returns whether a parser is among some values."""
    return any(isinstance(value, (Parser, Subparsers)) for value in values)


class Reader:
    """Follows code at one commit. `files` maps each path to its object; the paths that it looked at are in `seen`."""

    def __init__(self, files: dict[str, str], sources: Sources, roots: list[str]) -> None:
        self.files = files
        self.sources = sources
        self.roots = roots
        self.seen: dict[str, Optional[str]] = {}
        self.used: dict[str, set[str]] = {}
        self.globals: dict[tuple[str, str], Any] = {}
        self.open: set[tuple[str, str]] = set()
        self.depth = 0
        self.notes: list[str] = []
        # Kept by `fields.vllm_keywords`: the keywords of each class's fields.
        self.keywords: dict[Any, dict[str, dict[str, Any]]] = {}

    # Files and names.

    def source(self, path: str) -> Optional[Source]:
        """Returns a file; `None` if it isn't there."""
        blob = self.files.get(path)
        self.seen[path] = blob
        return self.sources.get(blob) if blob else None

    def locate(self, dotted: str, near: str) -> Optional[Module]:
        """Returns the file of a module: beside the importing script, or below a root."""
        relative = dotted.replace(".", "/")
        for base in [posixpath.dirname(near), *self.roots]:
            for path in (f"{relative}.py", f"{relative}/__init__.py"):
                full = posixpath.normpath(posixpath.join(base, path))
                if full in self.files:
                    return Module(full)
                if base in self.roots:
                    self.seen.setdefault(full, None)
        return None

    def imported(self, node: Any, alias: ast.alias, near: str) -> Any:
        """Returns what an import binds."""
        if isinstance(node, ast.Import):
            dotted = alias.name if alias.asname else alias.name.split(".")[0]
            return self.locate(dotted, near) or External(dotted)
        base = node.module or ""
        if node.level:
            folder = posixpath.dirname(near)
            for _ in range(node.level - 1):
                folder = posixpath.dirname(folder)
            base_path = posixpath.join(folder, base.replace(".", "/")) if base else folder
            for root in sorted(self.roots, key=len, reverse=True):
                if base_path.startswith(root):
                    base = base_path[len(root) :].strip("/").replace("/", ".")
                    break
        inside = self.locate(f"{base}.{alias.name}", near)
        module = self.locate(base, near)
        if module is not None:
            found = self.module_name(module.path, alias.name)
            if found is not None:
                return found[0]
            return inside or Unknown(alias.name)
        return inside or External(f"{base}.{alias.name}")

    def module_name(self, path: str, name: str) -> Optional[tuple[Any]]:
        """Returns what a module's top level binds a name to, in a tuple; `None` if it doesn't."""
        key = (path, name)
        if key in self.globals:
            return (self.globals[key],)
        source = self.source(path)
        self.used.setdefault(path, set()).add(name)
        if source is None or key in self.open:
            return None
        self.open.add(key)
        try:
            rows = source.bindings.get(name)
            if rows is None:
                for star in source.stars:
                    module = self.locate(star.module or "", path) if not star.level else None
                    found = self.module_name(module.path, name) if module else None
                    if found is not None:
                        self.globals[key] = found[0]
                        return found
                return None
            value = self.bound(path, rows)
            self.globals[key] = value
            return (value,)
        finally:
            self.open.discard(key)

    def bound(self, path: str, rows: list[tuple[str, Any]]) -> Any:
        """Returns the value that a module's bindings of one name come to."""
        value: Any = None
        for kind, node in rows:
            if kind == "definition":
                made = Class(path, node) if isinstance(node, ast.ClassDef) else Function(path, node, None, None, None)
                value = made
            elif kind == "import":
                value = self.imported(node[0], node[1], path)
            elif kind == "value":
                value = self.eval(node, Scope(path, {}))
            else:
                added = self.eval(node, Scope(path, {}))
                both = type(value) is type(added) and isinstance(value, (list, tuple))
                value = value + added if both else Unknown(node)
        return value

    def lookup(self, name: str, scope: Scope) -> Any:
        """Returns what a name means in a scope."""
        at: Optional[Scope] = scope
        while at is not None:
            if name in at.names:
                return at.names[name]
            at = at.parent
        found = self.module_name(scope.path, name)
        if found is not None:
            return found[0]
        return External(f"builtins.{name}") if hasattr(builtins, name) else Unknown(name)

    # Classes.

    def bases(self, cls: Class) -> list[Any]:
        """Returns a class's bases."""
        return [self.eval(base, Scope(cls.path, {})) for base in cls.node.bases]

    def method(self, cls: Class, name: str) -> Optional[tuple[Class, Any]]:
        """Returns the class that defines an attribute, and its node."""
        self.used.setdefault(cls.path, set()).add(f"{cls.name}.{name}")
        for node in reversed(cls.node.body):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
                return cls, node
            if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
                return cls, node.value
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                return cls, node
        for base in self.bases(cls):
            found = self.method(base, name) if isinstance(base, Class) else None
            if found is not None:
                return found
        return None

    def derives(self, cls: Any, name: str, depth: int = 0) -> bool:
        """Returns whether a class derives from one whose name ends so."""
        if isinstance(cls, External):
            return cls.name.split(".")[-1] == name
        if not isinstance(cls, Class) or depth > 8:
            return False
        return cls.name == name or any(self.derives(base, name, depth + 1) for base in self.bases(cls))

    def fields(self, cls: Class) -> list[Field]:
        """Returns a data class's fields, the bases' first."""
        rows: dict[str, Field] = {}
        for base in reversed(self.bases(cls)):
            if isinstance(base, Class):
                rows.update({field.name: field for field in self.fields(base)})
        for node in cls.node.body:
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            text = ast.unparse(node.annotation)
            if "ClassVar" in text or text.startswith("InitVar") or ".InitVar" in text:
                continue
            default = MISSING if node.value is None else self.field_default(node.value, cls)
            rows[node.target.id] = Field(node.target.id, node.annotation, default, cls.path)
        return list(rows.values())

    def field_default(self, node: ast.expr, cls: Class) -> Any:
        """Returns the default that the value of a data class's field stands for."""
        scope = self.class_scope(cls)
        if isinstance(node, ast.Call):
            called = self.eval(node.func, scope)
            if isinstance(called, External) and called.name.split(".")[-1] in ("field", "Field"):
                for keyword in node.keywords:
                    if keyword.arg == "default":
                        return self.eval(keyword.value, scope)
                    if keyword.arg == "default_factory":
                        return self.made(keyword.value, scope)
                return self.eval(node.args[0], scope) if node.args else MISSING
            if isinstance(called, Function) and called.node.name == "get_field" and len(node.args) == 2:
                of, name = self.eval(node.args[0], scope), self.eval(node.args[1], scope)
                if isinstance(of, Class):
                    return next((field.default for field in self.fields(of) if field.name == name), MISSING)
        return self.eval(node, scope)

    def made(self, factory: ast.expr, scope: Scope) -> Any:
        """Returns what a default factory makes."""
        if isinstance(factory, ast.Lambda):
            return self.eval(factory.body, scope)
        value = self.eval(factory, scope)
        if isinstance(value, External) and value.name.startswith("builtins."):
            return {"list": [], "dict": {}, "set": set(), "tuple": ()}.get(value.name[9:], Unknown(factory))
        if isinstance(value, Function):
            made = self.call(value, [], {}, ast.unparse(factory) + "()")
            return made
        return Unknown(ast.unparse(factory) + "()")

    def class_scope(self, cls: Class) -> Scope:
        """Returns the names that a class's body sees: its own earlier values too."""
        names: dict[str, Any] = {}
        scope = Scope(cls.path, names)
        for node in cls.node.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Constant):
                names[node.targets[0].id] = node.value.value
        return scope

    def members(self, cls: Class) -> list[Member]:
        """Returns the members of an enumeration."""
        rows = []
        for node in cls.node.body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if not name.startswith("_"):
                    value = self.eval(node.value, Scope(cls.path, {}))
                    if isinstance(value, Unknown) and value.source.endswith("auto()"):
                        value = len(rows) + 1
                    rows.append(Member(cls, name, value))
        return rows

    def attribute(self, of: Any, name: str, text: Any) -> Any:
        """Returns an attribute of a value."""
        if isinstance(of, Module):
            found = self.module_name(of.path, name)
            if found is not None:
                return found[0]
            if of.path.endswith("/__init__.py"):
                dotted = posixpath.dirname(of.path)
                for path in (f"{dotted}/{name}.py", f"{dotted}/{name}/__init__.py"):
                    if path in self.files:
                        return Module(path)
            return Unknown(text)
        if isinstance(of, External):
            return External(f"{of.name}.{name}") if of.name != "sys" or name != "argv" else []
        if isinstance(of, Parser) and name == "_actions":
            return [Option(["--help", "-h"], {"action": "help"}), *of.options]
        if isinstance(of, Option):
            return of.dest() if name == "dest" else of.names if name == "option_strings" else of.keywords.get(name)
        if isinstance(of, Member) and name in ("name", "value"):
            return of.name if name == "name" else of.value
        if isinstance(of, (Class, Instance)):
            return self.class_attribute(of, name, text)
        return Unknown(text)

    def class_attribute(self, of: Any, name: str, text: Any) -> Any:
        """Returns an attribute of a class or of an object of one."""
        cls = of if isinstance(of, Class) else of.of
        if name in ("__name__", "__doc__"):
            return cls.name if name == "__name__" else ""
        if isinstance(of, Class) and self.derives(cls, "Enum"):
            member = next((member for member in self.members(cls) if member.name == name), None)
            if member is not None:
                return member
        found = self.method(cls, name)
        if found is None:
            return Unknown(text)
        home, node = found
        if isinstance(node, ast.FunctionDef):
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            owner = None if "staticmethod" in marks else (cls if "classmethod" in marks else of)
            if isinstance(of, Class) and owner is of and "classmethod" not in marks:
                owner = None
            return Function(home.path, node, None, owner, home)
        if isinstance(node, ast.ClassDef):
            return Class(home.path, node)
        if isinstance(node, ast.AnnAssign):
            default = MISSING if node.value is None else self.field_default(node.value, home)
            return Unknown(text) if default == MISSING else default
        return self.eval(node, self.class_scope(home))

    # Expressions.

    def eval(self, node: ast.expr, scope: Scope) -> Any:
        """Returns the value of an expression."""
        if self.depth > DEPTH:
            return Unknown(node)
        self.depth += 1
        try:
            return self._eval(node, scope)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, Stop, RecursionError):
            return Unknown(node)
        finally:
            self.depth -= 1

    def _eval(self, node: ast.expr, scope: Scope) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Name):
            return self.lookup(node.id, scope)
        if isinstance(node, ast.Attribute):
            of = self.eval(node.value, scope)
            if isinstance(of, Super):
                return self.super_attribute(of, node.attr)
            return self.attribute(of, node.attr, node)
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            items: list[Any] = []
            for item in node.elts:
                if isinstance(item, ast.Starred):
                    items.extend(self.iterate(self.eval(item.value, scope)))
                else:
                    items.append(self.eval(item, scope))
            return items if isinstance(node, ast.List) else tuple(items) if isinstance(node, ast.Tuple) else set(items)
        if isinstance(node, ast.Dict):
            made: dict[Any, Any] = {}
            for key, value in zip(node.keys, node.values, strict=True):
                if key is None:
                    inner = self.eval(value, scope)
                    if not isinstance(inner, dict):
                        raise Stop
                    made.update(inner)
                else:
                    made[self.eval(key, scope)] = self.eval(value, scope)
            return made
        if isinstance(node, ast.JoinedStr):
            return self.joined(node, scope)
        if isinstance(node, ast.Call):
            return self.eval_call(node, scope)
        if isinstance(node, ast.Subscript):
            return self.subscript(node, scope)
        if isinstance(node, ast.BinOp):
            return self.binary(node, scope)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node, scope)
        if isinstance(node, ast.BoolOp):
            return self.logical(node, scope)
        if isinstance(node, ast.Compare):
            return self.compare(node, scope)
        if isinstance(node, ast.IfExp):
            test = self.truth(self.eval(node.test, scope))
            return Unknown(node) if test is None else self.eval(node.body if test else node.orelse, scope)
        if isinstance(node, ast.Lambda):
            return Unknown(node)
        if isinstance(node, (ast.ListComp, ast.GeneratorExp, ast.SetComp, ast.DictComp)):
            return self.comprehension(node, scope)
        return Unknown(node)

    def joined(self, node: ast.JoinedStr, scope: Scope) -> Any:
        """Returns the text of an f-string whose parts are known."""
        parts = []
        for part in node.values:
            value = self.eval(part.value, scope) if isinstance(part, ast.FormattedValue) else self.eval(part, scope)
            if not isinstance(value, (str, int, float)) or isinstance(part, ast.FormattedValue) and part.format_spec:
                return Unknown(node)
            parts.append(str(value))
        return "".join(parts)

    def subscript(self, node: ast.Subscript, scope: Scope) -> Any:
        """Returns `a[b]`, of values or of types."""
        of = self.eval(node.value, scope)
        if isinstance(of, (dict, list, tuple, str)):
            if isinstance(node.slice, ast.Slice):
                ends = [None if part is None else self.eval(part, scope) for part in (node.slice.lower, node.slice.upper)]
                return of[ends[0] : ends[1]] if not isinstance(of, dict) else Unknown(node)
            return of[self.eval(node.slice, scope)]
        hint = hints.read(node, self, scope)
        return hint if hint is not None else Unknown(node)

    def binary(self, node: ast.BinOp, scope: Scope) -> Any:
        """Returns `a + b` and the like, or a union of types."""
        left, right = self.eval(node.left, scope), self.eval(node.right, scope)
        if isinstance(node.op, ast.BitOr) and not isinstance(left, (dict, set, int)):
            hint = hints.read(node, self, scope)
            return hint if hint is not None else Unknown(node)
        if is_unknown(left) and not isinstance(left, (list, tuple)) or is_unknown(right) and not isinstance(right, (list, tuple)):
            return Unknown(node)
        kinds: dict[type, Callable[[Any, Any], Any]] = {
            ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
            ast.Div: lambda a, b: a / b, ast.FloorDiv: lambda a, b: a // b, ast.LShift: lambda a, b: a << b,
            ast.BitOr: lambda a, b: a | b, ast.Mod: lambda a, b: a % b,
        }  # fmt: skip
        if isinstance(node.op, ast.Pow) and isinstance(left, int) and isinstance(right, int) and abs(right) < 64:
            return left**right
        return kinds[type(node.op)](left, right)

    def unary(self, node: ast.UnaryOp, scope: Scope) -> Any:
        """Returns `-a` or `not a`."""
        value = self.eval(node.operand, scope)
        if isinstance(node.op, ast.Not):
            truth = self.truth(value)
            return Unknown(node) if truth is None else not truth
        return -value if isinstance(node.op, ast.USub) else Unknown(node)

    def logical(self, node: ast.BoolOp, scope: Scope) -> Any:
        """Returns `a and b` or `a or b`, as Python does, if enough of it is known."""
        value: Any = None
        unknown = False
        stop = isinstance(node.op, ast.Or)
        for part in node.values:
            value = self.eval(part, scope)
            truth = self.truth(value)
            if truth is None:
                unknown = True
            elif truth is stop:
                return value if not unknown else (stop if stop is False else Unknown(node))
        return Unknown(node) if unknown else value

    def compare(self, node: ast.Compare, scope: Scope) -> Any:
        """Returns `a == b` and the like."""
        left, right = self.eval(node.left, scope), self.eval(node.comparators[0], scope)
        if len(node.ops) > 1 or isinstance(left, Unknown) or is_unknown(right):
            return Unknown(node)
        return COMPARE[type(node.ops[0])](left, right)

    def truth(self, value: Any) -> Optional[bool]:
        """Returns whether a value counts as true; `None` if that isn't known."""
        if isinstance(value, Unknown) or isinstance(value, External):
            return None
        return bool(value) if isinstance(value, (str, int, float, list, tuple, dict, set, type(None))) else True

    def comprehension(self, node: Any, scope: Scope) -> Any:
        """Returns a list, set, dictionary or sequence that a comprehension makes."""
        rows: list[Any] = []

        def walk(at: int, names: dict[str, Any]) -> None:
            inner = Scope(scope.path, names, scope)
            if at == len(node.generators):
                if isinstance(node, ast.DictComp):
                    rows.append((self.eval(node.key, inner), self.eval(node.value, inner)))
                else:
                    rows.append(self.eval(node.elt, inner))
                return
            part = node.generators[at]
            for item in self.iterate(self.eval(part.iter, inner)):
                bound = dict(names)
                self.assign(part.target, item, Scope(scope.path, bound, scope))
                tests = [self.truth(self.eval(test, Scope(scope.path, bound, scope))) for test in part.ifs]
                if None in tests:
                    raise Stop
                if all(tests):
                    walk(at + 1, bound)

        walk(0, {})
        if isinstance(node, ast.DictComp):
            return dict(rows)
        return set(rows) if isinstance(node, ast.SetComp) else rows

    def iterate(self, value: Any) -> list[Any]:
        """Returns the items of a value that can be looped over."""
        if isinstance(value, Class) and self.derives(value, "Enum"):
            return list(self.members(value))
        if isinstance(value, (list, tuple, dict, set, frozenset, range, str)):
            items = list(value)
            return sorted(items, key=repr) if isinstance(value, (set, frozenset)) else items
        if type(value).__name__ in ("dict_items", "dict_keys", "dict_values", "enumerate", "zip", "list_reverseiterator"):
            return list(value)
        raise Stop

    # Calls and statements: `calls.Follower`.

    def eval_call(self, node: ast.Call, scope: Scope) -> Any:
        """Returns what a call gives."""
        raise NotImplementedError

    def call(self, function: Function, args: list[Any], keywords: dict[str, Any], text: Any) -> Any:
        """Returns what a function of the repository gives."""
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Any, scope: Scope) -> None:
        """Binds a name, several names, or an item."""
        if isinstance(target, ast.Name):
            scope.names[target.id] = value
        elif isinstance(target, (ast.Tuple, ast.List)):
            try:
                items = self.iterate(value)
            except Stop:
                items = []
            for at, name in enumerate(target.elts):
                self.assign(name, items[at] if at < len(items) else Unknown(name), scope)
        elif isinstance(target, ast.Attribute):
            of = self.eval(target.value, scope)
            if isinstance(of, Option):
                of.keywords[target.attr] = value
        elif isinstance(target, ast.Subscript):
            of = self.eval(target.value, scope)
            if isinstance(of, dict):
                of[self.eval(target.slice, scope)] = value

    def super_attribute(self, of: Super, name: str) -> Any:
        """Returns an attribute by way of `super()`."""
        for base in self.bases(of.home):
            found = self.method(base, name) if isinstance(base, Class) else None
            if found is not None and isinstance(found[1], ast.FunctionDef):
                return Function(found[0].path, found[1], None, of.owner, found[0])
        return Unknown(f"super().{name}")
