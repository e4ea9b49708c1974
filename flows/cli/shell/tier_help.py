"""What `yarus run --help` tells of the tiers, and `yarus run TIER --help` of the parameters of one."""

import inspect
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.forms import described
from yarus.tasks.config.texts.messages import translated

ELSEWHERE = ("sweep", "robustness")
"""Flows with commands of their own."""
WIDTH, NAME = 76, 16
"""Characters of a line, and of a tier's name in it."""
TYPES = {"integer": "INTEGER", "number": "FLOAT", "string": "TEXT"}


def with_tiers(run: click.Command, arguments: Sequence[str], language: str) -> None:
    """Adds to the help of `run` the parameters of the tier that is named, or all tiers where none is."""
    tiers = [name for name in FLOWS if name not in ELSEWHERE]
    chosen = next((word for word in arguments if word in tiers), None)
    if chosen is None:
        lines = [_line(name, _purpose(name, language)) for name in tiers]
        hint = translated("Its parameters: yarus run TIER --help.", language)
        run.epilog = "\n".join(["\b", translated("Tiers:", language), *lines, "", hint])
        return
    run.help = _purpose(chosen, language)
    fields = FLOWS[chosen].model_json_schema()["properties"]
    own = [option for option in run.params if option.name not in fields]
    run.params = [*(_option(name, field, language) for name, field in fields.items()), *own]


def _line(tier: str, purpose: str) -> str:
    """A tier and what it is for, no wider than the rest of the help."""
    return textwrap.fill(purpose, WIDTH, initial_indent=f"  {tier:<{NAME}}", subsequent_indent=" " * (NAME + 2))


def _purpose(tier: str, language: str) -> str:
    return translated(inspect.cleandoc(FLOWS[tier].__doc__ or ""), language)


def _option(name: str, field: Mapping[str, Any], language: str) -> click.Option:
    default = field.get("default")
    if isinstance(default, list):
        default = ",".join(map(str, default))
    elif isinstance(default, bool):
        default = str(default).lower()
    said = described(field["description"], language)
    if default is not None:
        said += f" [{translated('default: {default}', language).format(default=default)}]"
    return click.Option([f"--{name.replace('_', '-')}"], metavar=_values(field, language), help=said)


def _values(field: Mapping[str, Any], language: str) -> str:
    """What can be given, as the help shows it: `a|b`, a range, or the name of a type."""
    kind = next((one for one in field.get("anyOf", ()) if one.get("type") != "null"), field)
    if kind.get("type") == "array":
        return f"{_values(kind['items'], language)},…"
    if "enum" in kind:
        return "|".join(map(str, kind["enum"]))
    if kind.get("type") == "boolean":
        return "true|false"
    if "minimum" in kind and "maximum" in kind:
        return f"{kind['minimum']}..{kind['maximum']}"
    return translated(TYPES.get(kind.get("type", "string"), "TEXT"), language)
