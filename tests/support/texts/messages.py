"""Every text of the product that people read and that stands in its code: messages, help, forms, lines of the log."""

import ast
import gettext
import importlib.util
import inspect
import re
import string
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click

ROOT = Path(__file__).parents[3]
FOLDERS = ("yarus", "flows", "tasks", "db", "deployments")
ERRORS = ("InputError", "DatabaseUnavailable", "ModelUnavailable", "ResultsUnavailable", "SourceChanged")
ERRORS += ("ServerUnavailable", "BadValue", "NothingFailedError", "NothingToMeasureError")
"""Calls whose first argument is a message."""
TOLD = ("Check", "Rejected", "NoVerdict", "UsageError", "OSError", "unreadable", *ERRORS, "Words")
"""Calls none of whose arguments may be put together from texts and values: it could not be told in another language."""
LEVELS = ("info", "warning", "error", "exception")
UNSAID = ("db/words.py", "tasks/systems/yarus_worker/")
"""Where messages are handled, or made by a Python of the user's."""


class Said(NamedTuple):
    """A text in English, and where it stands."""

    text: str
    place: str


def in_code() -> Iterator[Said]:
    """Templates of errors and of words, beginnings of `unknown`, and lines of the log."""
    for path, tree in _modules():
        unknown = {id(_beginning(call)) for call in _calls(tree) if _name(call) == "unknown"}
        for call in _calls(tree):
            place = f"{path.relative_to(ROOT)}:{call.lineno}"
            if id(call) not in unknown:
                yield from (Said(text, place) for text in _templates(call))


def put_together() -> Iterator[str]:
    """Where a message is made of an f-string or a sum, so that it cannot be told in another language."""
    for path, tree in _modules():
        for call in _calls(tree):
            given = call.args if _name(call) in TOLD and path.name != "errors.py" else []
            if any(isinstance(one, ast.JoinedStr | ast.BinOp) for one in given):
                yield f"{path.relative_to(ROOT)}:{call.lineno}"


def of_help() -> Iterator[Said]:
    """The paragraphs of every command's help, and what its options say."""
    from yarus.__main__ import cli

    for words, command in commands(cli):
        place = f"yarus {' '.join(words)} --help"
        for paragraph in paragraphs(command.help or ""):
            yield Said(paragraph, place)
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.help:
                yield Said(parameter.help, f"{place}: {parameter.opts[0]}")


def of_parameters() -> Iterator[Said]:
    """Titles and descriptions of parameters, and what each flow is for."""
    from yarus.tasks.config.flow_parameters import FLOWS
    from yarus.tasks.dataset.synthesis.generator import Synthesis

    for name, model in {**FLOWS, "synthesize": Synthesis}.items():
        yield Said(inspect.cleandoc(model.__doc__ or ""), name)
        for parameter, field in model.model_fields.items():
            for text in (field.title, field.description):
                if text:
                    yield Said(text, f"{name}.{parameter}")


def of_forms() -> Iterator[Said]:
    """What the forms of the Prefect UI show beside the parameters of a tier."""
    from prefect.utilities.callables import parameter_schema

    from yarus.deployments.registration import declared, flow_of

    for deployment in declared():
        for text in _told_in(parameter_schema(flow_of(deployment)).model_dump_for_openapi()):
            yield Said(text, f"the form of {deployment['name']}")


def _told_in(schema: object) -> Iterator[str]:
    """Titles and descriptions in a schema; examples are values, and a title that is the name of a model is not "
    "shown."""
    from yarus.tasks.config.flow_parameters import FLOWS
    from yarus.tasks.config.forms import EXAMPLES

    if isinstance(schema, list):
        for part in schema:
            yield from _told_in(part)
    elif isinstance(schema, dict):
        for key in ("title", "description"):
            if isinstance(text := schema.get(key), str) and text not in {kind.__name__ for kind in FLOWS.values()}:
                yield text.partition(EXAMPLES)[0]
        for part in schema.values():
            yield from _told_in(part)


def of_metrics() -> Iterator[Said]:
    """When a metric is not measured."""
    from yarus.metrics.table import METRICS

    for name, metric in METRICS.items():
        for clause in metric.undefined.split("; "):
            yield Said(clause, f"metric {name}")
    for text in ("no metric {name}; did you mean {near}?", "no metric {name}; there are: {names}"):
        yield Said(text, "yarus.metrics.table.metric")


def of_click() -> Iterator[Said]:
    """What click itself says."""
    spec = importlib.util.find_spec("click")
    assert spec is not None
    assert spec.submodule_search_locations
    for path in sorted(Path(spec.submodule_search_locations[0]).glob("*.py")):
        for call in _calls(ast.parse(path.read_text(encoding="utf-8"))):
            if _name(call) in ("_", gettext.ngettext.__name__):
                for one in call.args:
                    if isinstance(one, ast.Constant) and isinstance(one.value, str):
                        yield Said(one.value, f"click/{path.name}:{call.lineno}")


def commands(group: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command with the words that name it."""
    yield words, group
    for name, command in group.commands.items() if isinstance(group, click.Group) else ():
        yield from commands(command, (*words, name))


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a help, each on one line; examples of commands are none."""
    return [
        " ".join(part.split()) for part in re.split(r"\n\s*\n", inspect.cleandoc(text)) if not part.startswith("\b")
    ]


def placeholders(text: str) -> list[str]:
    """The names of values in a template, or its `%` signs, in order of the alphabet."""
    signs = re.findall(r"%[-+,.\d]*[sdfgr]", text)
    return sorted(signs) or sorted({name for _, name, _, _ in string.Formatter().parse(text) if name})


def wordless(text: str) -> bool:
    """Whether nothing in it is English: only values, names of options, settings and files, or signs."""
    bare = re.sub(r"\{[^{}]*\}|%[-+,.\d]*[sdfgr]", " ", text)
    bare = re.sub(r"--[\w-]+|`[^`]*`|\b[A-Z][A-Z_0-9]+\b|\S*[/=_]\S*|\S+[.:]\w\S*|chmod\s+\S+", " ", bare)
    return not re.search(r"[A-Za-z]{2,}", bare)


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not str(path.relative_to(ROOT)).startswith(UNSAID):
                yield path, ast.parse(path.read_text(encoding="utf-8"))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _templates(call: ast.Call) -> Iterator[str]:
    name = _name(call)
    if name in (*ERRORS, "Words", "UsageError") and call.args:
        yield from _constant(call.args[0])
    elif name == "unknown" and call.args:
        yield from (f"no {text}" for text in _constant(_within(call.args[0])))
        for hint in (*call.args[3:], *(word.value for word in call.keywords if word.arg == "hint")):
            yield from _constant(hint)
    elif name == "the_one":
        for word in call.keywords:
            yield from _constant(word.value)
    elif name in LEVELS and ast.unparse(call.func).startswith(("log.", "logging.getLogger('yarus').")):
        yield from _constant(call.args[0])


def _beginning(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else None


def _within(node: ast.expr) -> ast.expr:
    return node.args[0] if isinstance(node, ast.Call) and _name(node) == "Words" else node


def _constant(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def section(*names: str) -> set[str]:
    """The English texts of sections of the catalogue."""
    import tomllib

    found = tomllib.loads((ROOT / "tasks/config/texts/messages.ru.toml").read_text(encoding="utf-8"))
    return {text for name in names for text in found[name]}
