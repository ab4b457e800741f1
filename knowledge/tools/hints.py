"""Types as annotations write them."""

from __future__ import annotations

import ast
from typing import Any, Optional

from values import Class, External, Hint, Unknown

ORIGINS = {
    "Optional": "Union", "Union": "Union", "Literal": "Literal", "Annotated": "Annotated", "A": "Annotated",
    "SkipValidation": "Annotated", "List": "list", "list": "list", "Dict": "dict", "dict": "dict", "Mapping": "Mapping",
    "Tuple": "tuple", "tuple": "tuple", "Set": "set", "set": "set", "Type": "type", "type": "type", "Callable": "Callable",
    "Sequence": "Sequence", "Iterable": "Iterable", "Final": "Annotated", "partial": "partial",
}  # fmt: skip


def annotation(node: ast.expr, reader: Any, scope: Any) -> Any:
    """Returns the type that an annotation names."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    if isinstance(node, ast.Constant) and node.value is Ellipsis:
        return Ellipsis
    if isinstance(node, (ast.Subscript, ast.BinOp)):
        found = read(node, reader, scope)
        return found if found is not None else Unknown(node)
    return reader.eval(node, scope)


def read(node: ast.expr, reader: Any, scope: Any) -> Optional[Hint]:
    """Returns the type that `X[...]` or `X | Y` is; `None` if it is no type that is known."""
    if isinstance(node, ast.BinOp):
        return Hint("Union", flat([annotation(node.left, reader, scope), annotation(node.right, reader, scope)]))
    if not isinstance(node, ast.Subscript):
        return None
    of = reader.eval(node.value, scope)
    name = of.name.split(".")[-1] if isinstance(of, External) else None
    origin = ORIGINS.get(name) if name else None
    if origin is None:
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if origin == "Literal":
        values: list[Any] = []
        for part in parts:
            value = reader.eval(part, scope)
            values.extend(value.args if isinstance(value, Hint) and value.origin == "Literal" else [value])
        return Hint("Literal", values)
    if origin == "Annotated":
        return Hint("Annotated", [annotation(parts[0], reader, scope), *(reader.eval(part, scope) for part in parts[1:])])
    args = [annotation(part, reader, scope) for part in parts]
    if name == "Optional":
        args.append(None)
    return Hint(origin, flat(args) if origin == "Union" else args)


def flat(args: list[Any]) -> list[Any]:
    """Returns the members of a union, those of unions inside it too."""
    rows: list[Any] = []
    for arg in args:
        rows.extend(arg.args if isinstance(arg, Hint) and arg.origin == "Union" else [arg])
    return rows


def members(hint: Any) -> list[Any]:
    """Returns the types that a value may have: a union's members, an annotated type's own."""
    if isinstance(hint, Hint) and hint.origin == "Annotated":
        return members(hint.args[0])
    if isinstance(hint, Hint) and hint.origin == "Union":
        return [inner for arg in hint.args for inner in members(arg)]
    return [hint]


def find(rows: list[Any], name: str) -> Any:
    """Returns the first of some types that is the named one; `None` if there is none."""
    for row in rows:
        if isinstance(row, Hint) and row.origin == name:
            return row
        if isinstance(row, External) and row.name in (f"builtins.{name}", f"typing.{name}", f"typing.{name.capitalize()}"):
            return row
    return None


def is_builtin(hint: Any) -> bool:
    """Returns whether a type's module is `builtins`."""
    return hint is None or isinstance(hint, External) and hint.name.startswith("builtins.")


def is_class(hint: Any) -> bool:
    """Returns whether a type is a class of the repository."""
    return isinstance(hint, Class)
