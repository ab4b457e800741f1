"""Follows calls and statements: functions that build a parser, and the parser's own methods."""

from __future__ import annotations

import ast
import itertools
from typing import Any, Optional

import fields
from reader import Reader, holds_parser
from sources import MAIN, Scope
from values import (
    Built, Class, Conversion, External, Function, Hint, Instance, Option, Parser, Returned, Stop, Subparsers, Super, Unknown,
    is_unknown,
)  # fmt: skip

SAFE_METHODS = {
    str: {"replace", "lower", "upper", "format", "join", "split", "strip", "title", "startswith", "endswith", "lstrip", "rstrip"},
    dict: {"items", "keys", "values", "get", "pop", "update", "copy", "setdefault"},
    list: {"append", "extend", "copy", "index", "insert", "remove", "sort", "pop"},
    tuple: {"index", "count"},
    set: {"add", "union", "copy", "update", "difference", "discard"},
}
PLAIN = {"list": list, "tuple": tuple, "sorted": sorted, "set": set, "frozenset": frozenset, "len": len, "str": str, "int": int,
         "float": float, "bool": bool, "range": range, "enumerate": enumerate, "zip": zip, "min": min, "max": max, "sum": sum,
         "dict": dict, "reversed": reversed}  # fmt: skip
# A function without a parser among its arguments is followed only if it is this short.
SHORT = 30


class Next(Exception):
    """Raised by `continue`."""


class Leave(Exception):
    """Raised by `break`."""


class Follower(Reader):
    """A reader that follows calls."""

    def main(self, path: str) -> Optional[Parser]:
        """Returns the parser that a script builds when it is run; `None` if it builds none."""
        source = self.source(path)
        if source is None:
            return None
        self.used.setdefault(path, set()).add(MAIN)
        scope = Scope(path, {})
        for node in source.tree.body:
            if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
                built = self.built(node.body, scope)
                if built is not None:
                    return built
        return None

    def built(self, body: list[ast.stmt], scope: Scope) -> Optional[Parser]:
        """Returns the parser that some statements have read the command line with."""
        try:
            self.run(body, scope)
        except Built as built:
            return built.parser
        except (Returned, Stop):
            pass
        return None

    # Calls.

    def eval_call(self, node: ast.Call, scope: Scope) -> Any:
        """Returns what a call gives."""
        text = node
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return Super(scope.home, scope.owner)
        args, keywords = self.arguments(node, scope)
        if isinstance(node.func, ast.Attribute):
            of = self.eval(node.func.value, scope)
            if isinstance(of, Parser):
                return self.parser_call(of, node.func.attr, args, keywords)
            if isinstance(of, Subparsers):
                child = Parser(of.of.kind)
                if node.func.attr == "add_parser" and args and isinstance(args[0], str):
                    of.of.children[args[0]] = child
                return child
            for kind, methods in SAFE_METHODS.items():
                if isinstance(of, kind) and node.func.attr in methods:
                    return getattr(of, node.func.attr)(*args, **keywords)
        called = self.eval(node.func, scope)
        if isinstance(called, External):
            return self.external(called, args, keywords, text)
        if isinstance(called, Class):
            return Parser(called) if self.derives(called, "ArgumentParser") else Instance(called)
        if isinstance(called, Function):
            special = fields.special(self, called, args, keywords)
            return self.call(called, args, keywords, text) if special is None else special
        if holds_parser([*args, *keywords.values()]):
            self.notes.append(f"a parser is handed to `{ast.unparse(node)[:80]}`, which isn't followed")
            return next((arg for arg in args if isinstance(arg, Parser)), Unknown(text))
        return Unknown(text)

    def arguments(self, node: ast.Call, scope: Scope) -> tuple[list[Any], dict[str, Any]]:
        """Returns the values of a call's arguments."""
        args: list[Any] = []
        for arg in node.args:
            if isinstance(arg, ast.Starred):
                try:
                    args.extend(self.iterate(self.eval(arg.value, scope)))
                except Stop:
                    args.append(Unknown(arg))
            else:
                args.append(self.eval(arg, scope))
        keywords: dict[str, Any] = {}
        for keyword in node.keywords:
            if keyword.arg in ("help", "description", "metavar"):
                continue
            value = self.eval(keyword.value, scope)
            if keyword.arg is not None:
                keywords[keyword.arg] = value
            elif isinstance(value, dict):
                keywords.update(value)
            else:
                self.notes.append(f"`**{ast.unparse(keyword.value)[:60]}` isn't known")
        return args, keywords

    def external(self, called: External, args: list[Any], keywords: dict[str, Any], text: Any) -> Any:
        """Returns what a call of something outside the repository gives."""
        name = called.name.split(".")[-1]
        if name == "ArgumentParser":
            return Parser(called)
        if name == "get_args" and args:
            return list(args[0].args) if isinstance(args[0], Hint) else Unknown(text)
        if name == "getattr" and len(args) >= 2 and isinstance(args[1], str):
            found = self.attribute(args[0], args[1], text)
            return args[2] if isinstance(found, Unknown) and len(args) > 2 else found
        if name in ("cast", "deepcopy", "copy") and args:
            return args[-1]
        if called.name == "itertools.permutations" and args and not is_unknown(args[0]):
            return [tuple(row) for row in itertools.permutations(*args, **keywords)]
        if name == "exit":
            raise Returned(None)
        if called.name.startswith("builtins.") and name in PLAIN:
            if name == "dict":
                return dict(*args, **keywords)
            ready = [self.iterate(arg) if isinstance(arg, Class) else arg for arg in args]
            if name in ("list", "tuple", "sorted", "len") and len(ready) == 1 and isinstance(ready[0], (dict, list, tuple)):
                return PLAIN[name](ready[0]) if name != "sorted" or not is_unknown(ready[0]) else Unknown(text)
            if any(is_unknown(arg) for arg in ready) or keywords:
                return Unknown(text)
            return PLAIN[name](*ready)
        if holds_parser([*args, *keywords.values()]):
            self.notes.append(f"a parser is handed to `{called.name}`, which isn't in the repository")
            return next((arg for arg in args if isinstance(arg, Parser)), Unknown(text))
        return Unknown(text)

    def parser_call(self, parser: Parser, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
        """Does what a parser's method does."""
        if name == "add_argument":
            if not args or not all(isinstance(arg, str) for arg in args):
                self.notes.append("an option's name isn't known")
                return None
            known = {known for option in parser.options for known in option.names}
            if not known & set(args) and args[0].startswith("-"):
                parser.options.append(Option(list(args), keywords))
            return None
        if name in ("add_argument_group", "add_mutually_exclusive_group"):
            return parser
        if name == "add_subparsers":
            return Subparsers(parser)
        if name == "set_defaults":
            for option in parser.options:
                if option.dest() in keywords:
                    option.keywords["default"] = keywords[option.dest()]
            return None
        if name in ("parse_args", "parse_known_args", "parse_intermixed_args"):
            raise Built(parser)
        return Unknown(name)

    def call(self, function: Function, args: list[Any], keywords: dict[str, Any], text: Any) -> Any:
        """Returns what a function of the repository gives."""
        node = function.node
        handed = holds_parser([*args, *keywords.values()]) or isinstance(function.owner, (Parser, Subparsers))
        length, builds = self.measure(function)
        if not isinstance(node, ast.FunctionDef) or not (handed or builds or length <= SHORT or self.entered <= 1):
            return Unknown(text)
        scope = Scope(function.path, self.parameters(function, args, keywords), function.scope)
        scope.home, scope.owner = function.home, function.owner
        self.entered += 1
        try:
            self.run(node.body, scope)
        except Returned as returned:
            return returned.value
        finally:
            self.entered -= 1
        return None

    def measure(self, function: Function) -> tuple[int, bool]:
        """Returns how many statements a function has, and whether it reads a command line itself."""
        source, node = self.source(function.path), function.node
        if source is None:
            return 0, False
        if node not in source.lengths:
            inside = list(ast.walk(node))
            names = {inner.attr for inner in inside if isinstance(inner, ast.Attribute)}
            source.lengths[node] = (sum(isinstance(inner, ast.stmt) for inner in inside), bool(names & {"parse_args", "parse_known_args"}))
        return source.lengths[node]

    def parameters(self, function: Function, args: list[Any], keywords: dict[str, Any]) -> dict[str, Any]:
        """Returns the names that a function's parameters bind."""
        given = function.node.args
        home = Scope(function.path, {}, function.scope)
        positional = [arg.arg for arg in [*given.posonlyargs, *given.args]]
        names: dict[str, Any] = {name: Unknown(name) for name in positional}
        for name, default in zip(positional[len(positional) - len(given.defaults) :], given.defaults, strict=True):
            names[name] = self.eval(default, home)
        for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            names[arg.arg] = Unknown(arg.arg) if default is None else self.eval(default, home)
        bound = ([] if function.owner is None else [function.owner]) + args
        names.update(zip(positional, bound, strict=False))
        if given.vararg:
            names[given.vararg.arg] = bound[len(positional) :]
        rest = {name: value for name, value in keywords.items() if name not in names}
        names.update({name: value for name, value in keywords.items() if name in names})
        if given.kwarg:
            names[given.kwarg.arg] = rest
        return names

    # Statements.

    entered = 0

    def run(self, body: list[ast.stmt], scope: Scope) -> None:
        """Follows statements."""
        for node in body:
            self.statement(node, scope)

    def statement(self, node: ast.stmt, scope: Scope) -> None:
        """Follows one statement."""
        if isinstance(node, ast.Expr):
            self.eval(node.value, scope)
        elif isinstance(node, ast.Assign):
            value = self.eval(node.value, scope)
            for target in node.targets:
                self.assign(target, value, scope)
        elif isinstance(node, ast.AnnAssign):
            if node.value is not None:
                self.assign(node.target, self.eval(node.value, scope), scope)
        elif isinstance(node, ast.AugAssign):
            joined = ast.BinOp(left=_loaded(node.target), op=node.op, right=node.value)
            self.assign(node.target, self.eval(ast.fix_missing_locations(ast.copy_location(joined, node)), scope), scope)
        elif isinstance(node, ast.Return):
            raise Returned(None if node.value is None else self.eval(node.value, scope))
        elif isinstance(node, ast.Raise):
            raise Returned(Unknown("raise"))
        elif isinstance(node, ast.If):
            self.branch(node, scope)
        elif isinstance(node, ast.For):
            self.loop(node, scope)
        elif isinstance(node, (ast.Try, ast.With)):
            self.run(node.body, scope)
            if isinstance(node, ast.Try):
                self.run([*node.orelse, *node.finalbody], scope)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                name = alias.asname or alias.name.split(".")[0]
                scope.names[name] = self.imported(node, alias, scope.path)
        elif isinstance(node, ast.FunctionDef):
            scope.names[node.name] = Function(scope.path, node, scope, None, None)
        elif isinstance(node, ast.ClassDef):
            scope.names[node.name] = Class(scope.path, node)
        elif isinstance(node, ast.Delete):
            self.delete(node, scope)
        elif isinstance(node, ast.Continue):
            raise Next
        elif isinstance(node, ast.Break):
            raise Leave

    def branch(self, node: ast.If, scope: Scope) -> None:
        """Follows a condition; both ways if it isn't known."""
        truth = self.truth(self.eval(node.test, scope))
        if truth is not None:
            self.run(node.body if truth else node.orelse, scope)
            return
        for body in (node.body, node.orelse):
            try:
                self.run(body, scope)
            except Returned:
                if not holds_parser(_names(scope)):
                    raise Returned(Unknown(node.test)) from None
            except (Next, Leave):
                pass

    def loop(self, node: ast.For, scope: Scope) -> None:
        """Follows a loop over what is written in the source."""
        try:
            items = self.iterate(self.eval(node.iter, scope))
        except Stop:
            if holds_parser(_names(scope)):
                self.notes.append(f"a loop over `{ast.unparse(node.iter)[:60]}` isn't followed")
            return
        for item in items:
            self.assign(node.target, item, scope)
            try:
                self.run(node.body, scope)
            except Next:
                continue
            except Leave:
                return
        self.run(node.orelse, scope)

    def delete(self, node: ast.Delete, scope: Scope) -> None:
        """Takes an item out of a dictionary."""
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                of, key = self.eval(target.value, scope), self.eval(target.slice, scope)
                if isinstance(of, dict):
                    of.pop(key, None)


def _names(scope: Scope) -> list[Any]:
    rows: list[Any] = []
    at: Optional[Scope] = scope
    while at is not None:
        rows.extend(at.names.values())
        at = at.parent
    return rows


def _loaded(target: ast.expr) -> ast.expr:
    return ast.parse(ast.unparse(target), mode="eval").body


__all__ = ["Conversion", "Follower"]
