"""Help of `yarus run --help`, which lists the tiers, and of `yarus run TIER --help`, which lists parameters."""

import inspect
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import click

from yarus.tasks.config.flow_parameters import FLOWS
from yarus.tasks.config.forms import translate_description
from yarus.tasks.config.texts.messages import translate_text

OWN_COMMANDS = ("sweep", "robustness")
"""Flows that have their own commands."""
EXPERT_PARAMETERS = {"seed", "runner", "recheck", "repeat_of", "anchor", "reuse_answers", "perturbation", "pool"}
EXPERT_PARAMETERS |= {"context_perturbation", "distance", "vectors", "rerank_depth", "logprobs", "context_tokens"}
EXPERT_PARAMETERS |= {"bias_probes", "merge_duplicates", "parallel_source"}
"""Parameters that only --help-all shows."""
WIDTH, COLUMN = 76, 16
"""Characters of a line, and of a tier's name in it."""
TYPE_NAMES = {"integer": "INTEGER", "number": "FLOAT", "string": "TEXT"}


def add_tier_help(run: click.Command, arguments: Sequence[str], language: str) -> None:
    """Add to the help of `run` the parameters of the named tier, or the list of tiers if none is named."""
    tiers = [name for name in FLOWS if name not in OWN_COMMANDS]
    chosen = next((word for word in arguments if word in tiers), None)
    if chosen is None:
        lines = [_format_tier_line(name, _purpose(name, language)) for name in tiers]
        hint = translate_text("Its parameters: yarus run TIER --help.", language)
        run.epilog = "\n".join(["\b", translate_text("Tiers:", language), *lines, "", hint])
        return
    if run.name == "run":
        run.help = _purpose(chosen, language)
    fields = FLOWS[chosen].model_json_schema()["properties"]
    run_options = [option for option in run.params if option.name not in fields]
    run.params = [*(_make_option(name, field, language) for name, field in fields.items()), *run_options]


def _format_tier_line(tier: str, purpose: str) -> str:
    """Return a line with a tier and its purpose, no wider than the rest of the help."""
    return textwrap.fill(purpose, WIDTH, initial_indent=f"  {tier:<{COLUMN}}", subsequent_indent=" " * (COLUMN + 2))


def _purpose(tier: str, language: str) -> str:
    return translate_text(inspect.cleandoc(FLOWS[tier].__doc__ or ""), language)


def _make_option(name: str, field: Mapping[str, Any], language: str) -> click.Option:
    default = field.get("default")
    if isinstance(default, list):
        default = ",".join(map(str, default))
    elif isinstance(default, bool):
        default = str(default).lower()
    help_text = translate_description(field["description"], language)
    if default is not None:
        help_text += f" [{translate_text('default: {default}', language).format(default=default)}]"
    option, is_expert = f"--{name.replace('_', '-')}", name in EXPERT_PARAMETERS
    return click.Option([option], metavar=_format_values(field, language), help=help_text, hidden=is_expert)


def _format_values(field: Mapping[str, Any], language: str) -> str:
    """Return the possible values as the help shows them: `a|b`, a range, or the name of a type."""
    kind = next((variant for variant in field.get("anyOf", ()) if variant.get("type") != "null"), field)
    if kind.get("type") == "array":
        return f"{_format_values(kind['items'], language)},…"
    if "enum" in kind:
        return "|".join(map(str, kind["enum"]))
    if kind.get("type") == "boolean":
        return "true|false"
    if "minimum" in kind and "maximum" in kind:
        return f"{kind['minimum']}..{kind['maximum']}"
    return translate_text(TYPE_NAMES.get(kind.get("type", "string"), "TEXT"), language)
