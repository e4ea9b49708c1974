"""Makes docs/json.md from the types of the documents that commands print with `--json`; `python docs/generate.py` writes it."""
# ruff: noqa: E501  # prose is as wide as the page

import ast
import inspect
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Literal, NotRequired, Union, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import BaseModel

from yarus.db.former_keys import FORMER_KEYS
from yarus.flows.cli.framework.command_schema import DOCUMENTS
from yarus.tasks.cases.table import CASE_COLUMNS
from yarus.tasks.evaluation.config import DumpedAs

TARGET = Path(__file__).with_name("json.md")
INTRODUCTION = """# What `--json` prints

With `--json` a command prints one JSON document on stdout, and nothing else there; logs and progress go to stderr. Numbers are never
rounded, moments are ISO 8601 (of `runs` with a space between date and time), and what is not known or not measured is `null`. A key marked *optional* is left out where it does not
apply; all others are always there. This page is made of the types of the documents (`python docs/generate.py`), and tests hold real
output against them.

If a key has a former name, it is printed beside the new one, with the same value, in this release only. Documents that Python functions
return have only the new names.

`show` prints the document of `run` without `gate`; `run sweep` and `run robustness` print those of `sweep` and `robustness`.
"""
NAMES = {str: "text", int: "integer", float: "number", bool: "true or false", Any: "anything", type(None): "null"}


def render() -> str:
    """Return the whole of docs/json.md."""
    types = list(dict.fromkeys(one for document in DOCUMENTS.values() for one in declared(document)))
    rows = [f"| `yarus {command}` | {_words(document)} |" for command, document in DOCUMENTS.items()]
    table = "\n".join(["| Command | Document |", "| --- | --- |", *rows])
    columns = [f"| `{name}` | {_cell(column.meaning)} |" for name, column in CASE_COLUMNS.items()]
    cases = "\n".join(
        ["| Key | |", "| --- | --- |", *columns, "| every per-case metric | under its name without `avg_` |"]
    )
    parts = [INTRODUCTION, table, *map(_section, types)]
    parts.append(f"## Case\n\nThe columns of the evaluation's file, of which each tier has its own.\n\n{cases}")
    return "\n\n".join(part.strip() for part in parts) + "\n"


def declared(kind: Any) -> Iterator[type]:
    """Return the types with keys that a type consists of, itself first, in the order of the page."""
    if _has_keys(kind):
        yield kind
        for hint in get_type_hints(kind, include_extras=True).values():
            yield from declared(hint)
    elif kind != Literal:
        for part in get_args(kind):
            yield from declared(part.model if isinstance(part, DumpedAs) else part)


def _has_keys(kind: Any) -> bool:
    return isinstance(kind, type) and bool(is_typeddict(kind) or getattr(kind, "__annotations__", None))


def _section(kind: type) -> str:
    meanings, rows = _meanings(kind), []
    is_model = issubclass(kind, BaseModel)  # whose keys are left out, not null
    for name, hint in get_type_hints(kind, include_extras=True).items():
        if is_model and name == "notes":  # which are printed beside it
            continue
        optional = is_model or get_origin(hint) is NotRequired or name in getattr(kind, "__optional_keys__", ())
        words = _words(hint).removesuffix(" or null") if is_model else _words(hint)
        former = f" (formerly `{FORMER_KEYS[name]}`)" if name in FORMER_KEYS else ""
        label = f"`{name}`{former}{' *optional*' if optional else ''}"
        rows.append(f"| {label} | {words} | {_cell(meanings.get(name, ''))} |")
    table = "\n".join(["| Key | Type | |", "| --- | --- | --- |", *rows])
    return f"## {kind.__name__}\n\n{' '.join((inspect.getdoc(kind) or '').split())}\n\n{table}"


def _meanings(kind: type) -> dict[str, str]:
    """Key -> the text under it, in the class and those that it is made of."""
    found: dict[str, str] = {}
    for base in getattr(kind, "__orig_bases__", kind.__bases__):
        if _has_keys(base):
            found |= _meanings(base)
    try:
        source = inspect.getsource(kind)
    except OSError:  # made by a call: it has no texts
        return found
    for field, text in pairwise(ast.parse(source).body[0].body):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(text, ast.Expr):
            found[field.target.id] = str(ast.literal_eval(text.value))
    return found


def _words(kind: Any) -> str:
    """Return a type as people read it."""
    parts = get_args(kind)
    origin = get_origin(kind)
    if origin is NotRequired:
        return _words(parts[0])
    if origin is Annotated:  # an object in JSON, made of a model
        return _words(kind.__metadata__[0].model)
    if origin in (Union, UnionType):
        return " or ".join(map(_words, parts))
    if origin is Literal:
        return ", ".join(f"`{part}`" for part in parts)
    if origin is list:
        return f"list of {_words(parts[0])}"
    if origin is dict:
        return f"object: {_words(parts[0])} → {_words(parts[1])}"
    return NAMES.get(kind) or f"[{kind.__name__}](#{kind.__name__.lower()})"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
