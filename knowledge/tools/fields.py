"""Options that come from the fields of data classes: vLLM's `get_kwargs` and SGLang's `add_cli_args_from_dataclass`.

The rules of both changed over time. They are read from the revision's own function: which words it holds says which rules it has.
"""

from __future__ import annotations

import ast
from typing import Any, Optional

import hints
from sources import Scope
from values import MISSING, Class, Conversion, External, Function, Hint, Instance, Option, Parser, Unknown

KINDS = {"int": "whole", "float": "number", "bool": "bool", "str": "text", "loads": "json"}


def kind_of(value: Any) -> str:
    """Returns what an option's `type` reads."""
    if isinstance(value, Conversion):
        return value.kind
    if isinstance(value, External):
        if value.name in ("builtins.int", "builtins.float", "builtins.bool", "json.loads", "orjson.loads"):
            return KINDS[value.name.split(".")[-1]]
        return "text"
    if isinstance(value, Function):
        name = value.node.name
        if name in ("nullable_int", "optional_int", "positive_int", "non_negative_int", "pos_int", "nonneg_int"):
            return "whole"
        if name in ("optional_float", "nullable_float", "positive_float", "_positive_finite_float"):
            return "number"
    return "text"


def special(reader: Any, function: Function, args: list[Any], keywords: dict[str, Any]) -> Any:
    """Returns what a function gives that isn't followed line by line; `None` if it is."""
    name = function.node.name
    if name in ("get_kwargs", "_compute_kwargs") and len(args) == 1 and isinstance(args[0], Class):
        return vllm_keywords(reader, function, args[0])
    if name in ("optional_type", "parse_type", "optional_arg", "nullable_type") and len(args) == 1:
        return Conversion(kind_of(args[0]), name != "parse_type")
    if name == "add_cli_args_from_dataclass" and len(args) >= 2 and isinstance(args[0], Parser) and isinstance(args[1], Class):
        wanted = keywords.get("fields")
        sglang_options(reader, args[0], args[1], wanted if isinstance(wanted, list) else None)
        return args[0]
    return None


def rules(reader: Any, function: Function) -> tuple[str, set[str]]:
    """Returns the text of `get_kwargs` and of what it calls, and the fields whose numbers may be written like `16k`."""
    source = reader.source(function.path)
    if source.rules is not None:
        return source.rules
    texts, readable = [], set()
    for name in ("get_kwargs", "_compute_kwargs", "literal_to_kwargs"):
        found = reader.module_name(function.path, name)
        if found is None and function.node.name == name:
            found = (function,)
        if found is not None and isinstance(found[0], Function):
            node = found[0].node
            texts.append(ast.unparse(node))
            for inner in ast.walk(node):
                if isinstance(inner, (ast.Set, ast.Tuple)) and all(isinstance(part, ast.Constant) for part in inner.elts):
                    readable.update(part.value for part in inner.elts if isinstance(part, ast.Constant))
                if isinstance(inner, ast.Compare) and ast.unparse(inner).startswith("name == "):
                    readable.add(ast.unparse(inner)[9:-1])
    # A function inside another one isn't its file's only one of that name.
    found = ("\n".join(texts), readable)
    if function.scope is None:
        source.rules = found
    return found


def vllm_keywords(reader: Any, function: Function, cls: Class) -> dict[str, dict[str, Any]]:
    """Returns the keywords of `add_argument` for each field of one of vLLM's configuration classes."""
    if cls not in reader.keywords:
        reader.keywords[cls] = fresh_keywords(reader, function, cls)
    # Callers change what they get.
    return {name: dict(row) for name, row in reader.keywords[cls].items()}


def fresh_keywords(reader: Any, function: Function, cls: Class) -> dict[str, dict[str, Any]]:
    """Reads them."""
    text, readable = rules(reader, function)
    readable = readable if "human_readable_int" in text else set()
    rows: dict[str, dict[str, Any]] = {}
    for field in reader.fields(cls):
        hint = hints.annotation(field.annotation, reader, Scope(field.path, {}))
        row: dict[str, Any] = {"default": field.default}
        if "is_optional" in text:
            first_rules(row, hint, text)
        elif "contains_type" in text:
            later_rules(reader, row, hint, text, field.name if field.name in readable else None)
        rows[field.name] = row
    return rows


def first_rules(row: dict[str, Any], hint: Any, text: str) -> None:
    """Adds what the rules of April 2025 say, which look at a single type."""
    members = hints.members(hint)
    optional = None in members
    if "BooleanOptionalAction" not in text:
        if hint == External("builtins.bool"):
            return
        row["type"] = Conversion("text", True) if optional or hints.find(members, "str") else hint
        return
    first = members[:1] if optional else members
    if optional and isinstance(hint, Hint) and len(hint.args) == 2:
        first = hints.members(hint.args[0])
    if hints.find(first, "bool"):
        row["action"] = External("argparse.BooleanOptionalAction")
    elif hints.find(first, "Literal"):
        row["choices"] = list(hints.find(first, "Literal").args)
        row["type"] = Conversion(literal_kind(row["choices"]), False)
    elif hints.find(first, "tuple") and "can_be_type(field_type, tuple)" in text:
        row["type"], row["nargs"] = hints.find(first, "tuple").args[0], "+"
    elif hints.find(first, "int"):
        row["type"] = Conversion("whole", optional)
    elif hints.find(first, "float"):
        row["type"] = Conversion("number", optional)
    else:
        # `optional_dict` reads JSON or `key=value` pairs.
        row["type"] = Conversion("text", optional)


def later_rules(reader: Any, row: dict[str, Any], hint: Any, text: str, readable: Optional[str]) -> None:
    """Adds what the rules since 2025-04-28 say, which look at all types of a union."""
    members = hints.members(hint)
    optional = None in members
    data = next((row for row in members if isinstance(row, Class) and is_data_class(reader, row)), None)
    if data is not None and "is_dataclass" in text:
        from_cli = "from_cli" in text and reader.method(data, "from_cli") is not None
        row["type"] = Conversion("text" if from_cli else "json", False)
    elif len(members) == 3 and optional and hints.find(members, "bool") and hints.find(members, "str") and "'?'" in text:
        row["type"], row["nargs"] = Conversion("text", False), "?"
        return
    elif hints.find(members, "bool"):
        row["action"] = External("argparse.BooleanOptionalAction")
        return
    elif hints.find(members, "Literal"):
        values = list(hints.find(members, "Literal").args)
        row["type"] = Conversion(literal_kind(values), False)
        if not ("'metavar'" in text and hints.find(members, "str")):
            row["choices"] = values
    elif collection(members) is not None:
        elements(row, collection(members))
    elif hints.find(members, "int"):
        row["type"] = Conversion("text" if readable else "whole", False)
    elif hints.find(members, "float"):
        row["type"] = Conversion("number", False)
    elif hints.find(members, "dict"):
        mixed = "union_dict_and_str" in text and (hints.find(members, "str") or any(not_builtin(row) for row in members))
        row["type"] = Conversion("text" if mixed else "json", False)
    else:
        row["type"] = Conversion("text", False)
    if optional:
        row["type"] = Conversion(row["type"].kind if isinstance(row["type"], Conversion) else kind_of(row["type"]), True)
        if row.get("choices"):
            row["choices"] = [*row["choices"], "None"]


def collection(members: list[Any]) -> Any:
    """Returns the tuple, list or set among some types."""
    return next((found for name in ("tuple", "list", "set") if (found := hints.find(members, name)) is not None), None)


def elements(row: dict[str, Any], hint: Any) -> None:
    """Adds what a list of values takes."""
    args = hint.args if isinstance(hint, Hint) else []
    element = args[0] if args else Unknown("element")
    if isinstance(element, Hint) and element.origin == "Literal":
        row["choices"], row["type"] = list(element.args), Conversion(literal_kind(element.args), False)
    else:
        row["type"] = Conversion("text", False) if isinstance(element, Hint) else element
    fixed = isinstance(hint, Hint) and hint.origin == "tuple" and Ellipsis not in args
    row["nargs"] = len(args) if fixed else "+"


def not_builtin(hint: Any) -> bool:
    """Returns whether a type's module isn't `builtins`; `dict[str, Any]` counts as `dict`."""
    if isinstance(hint, Hint):
        return hint.origin not in ("dict", "list", "tuple", "set", "type")
    return not hints.is_builtin(hint)


def is_data_class(reader: Any, cls: Class) -> bool:
    """Returns whether a class, or a base of it, is a data class."""
    marks = [ast.unparse(mark) for mark in cls.node.decorator_list]
    if any(mark.split("(")[0].split(".")[-1] in ("dataclass", "config") for mark in marks):
        return True
    return any(isinstance(base, Class) and is_data_class(reader, base) for base in reader.bases(cls))


def literal_kind(values: list[Any]) -> str:
    """Returns the kind of the values of a `Literal`."""
    first = values[0] if values else ""
    return "whole" if isinstance(first, int) and not isinstance(first, bool) else "text"


def sglang_options(reader: Any, parser: Parser, cls: Class, wanted: Optional[list[str]]) -> None:
    """Adds an option for each field of one of SGLang's data classes that carries one."""
    for field in reader.fields(cls):
        if wanted is not None and field.name not in wanted:
            continue
        hint = hints.annotation(field.annotation, reader, Scope(field.path, {}))
        if not isinstance(hint, Hint) or hint.origin != "Annotated":
            continue
        given = argument(reader, field, cls)
        if given is None or given.get("no_cli") is True:
            continue
        name = given.get("cli_name") or "--" + field.name.replace("_", "-")
        names = [name, *(given.get("aliases") or [])]
        keywords = sglang_keywords(hint.args[0], given, field.default, names)
        if name.lstrip("-").replace("-", "_") != field.name:
            keywords["dest"] = field.name
        parser.options.append(Option(names, keywords))


def argument(reader: Any, field: Any, cls: Class) -> Optional[dict[str, Any]]:
    """Returns what the `Arg(...)` or the bare text of a field's annotation says; `None` if it has neither."""
    node = field.annotation
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        node = ast.parse(node.value, mode="eval").body
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Tuple):
        return None
    scope = Scope(field.path, {})
    for part in node.slice.elts[1:]:
        if isinstance(part, ast.Call):
            made = reader.eval(part.func, scope)
            if isinstance(made, Class) and made.name == "Arg":
                return {word.arg: reader.eval(word.value, scope) for word in part.keywords if word.arg}
        elif isinstance(part, (ast.Constant, ast.JoinedStr, ast.BinOp)):
            return {}
    return None


def sglang_keywords(kind: Any, given: dict[str, Any], default: Any, names: list[str]) -> dict[str, Any]:
    """Returns the keywords of `add_argument` for one field."""
    row: dict[str, Any] = {} if default == MISSING else {"default": default}
    if given.get("action") is not None:
        row["action"] = given["action"]
        row.update(given.get("action_kwargs") if isinstance(given.get("action_kwargs"), dict) else {})
        return row
    inner = kind
    if isinstance(kind, Hint) and kind.origin == "Union":
        rest = [arg for arg in kind.args if arg is not None]
        inner = rest[0] if len(rest) == 1 and len(rest) < len(kind.args) else kind
    parse = given.get("type_parser")
    scalar = inner if isinstance(inner, External) and inner.name in ("builtins.int", "builtins.float") else External("builtins.str")
    if isinstance(inner, Hint) and inner.origin == "Literal":
        row["choices"] = given.get("choices") or list(inner.args)
        row["type"] = parse or Conversion(literal_kind(inner.args), False)
    elif isinstance(inner, Hint) and inner.origin == "list" and parse is None:
        element = inner.args[0] if inner.args else External("builtins.str")
        row["type"], row["nargs"] = element, given.get("nargs") or "+"
        row["choices"] = given.get("choices") or []
    elif inner == External("builtins.bool"):
        row["action"] = "store_true"
    else:
        row["type"] = parse or scalar
        row["choices"] = given.get("choices") or []
        if given.get("nargs"):
            row["nargs"] = given["nargs"]
        needed = given.get("required")
        row["required"] = needed is True or needed is None and default == MISSING
    if "const" in given:
        row["const"] = given["const"]
    return row


__all__ = ["Instance", "kind_of", "special"]
