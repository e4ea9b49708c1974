"""Collect every text in the code that people read: messages, help, forms, log lines."""

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
TRANSLATED_CALLS = (*ERRORS, "Words", "Check", "Rejected", "MissingVerdict", "UsageError", "OSError", "build_error")
"""Calls whose arguments must not be assembled from texts and values, because they could not be translated."""
LEVELS = ("info", "warning", "error", "exception")
SKIPPED_PATHS = ("db/messages.py", "tasks/systems/yarus_worker/")
"""Files that handle messages, or run in the user's Python."""


class MessageText(NamedTuple):
    """An English text, and its place."""

    text: str
    place: str


def find_code_messages() -> Iterator[MessageText]:
    """Yield templates of errors and words, beginnings of `unknown`, and log lines."""
    for path, tree in _modules():
        unknown = {id(_get_first_argument(call)) for call in _calls(tree) if _get_callee(call) == "unknown"}
        for call in _calls(tree):
            place = f"{path.relative_to(ROOT)}:{call.lineno}"
            if id(call) not in unknown:
                yield from (MessageText(text, place) for text in _find_templates(call))


def find_assembled_messages() -> Iterator[str]:
    """Yield places where a message is an f-string or a sum, so that it cannot be translated."""
    for path, tree in _modules():
        for call in _calls(tree):
            arguments = call.args if _get_callee(call) in TRANSLATED_CALLS and path.name != "errors.py" else []
            if any(isinstance(argument, ast.JoinedStr | ast.BinOp) for argument in arguments):
                yield f"{path.relative_to(ROOT)}:{call.lineno}"


def find_callees() -> set[str]:
    """Return the names of everything that is called."""
    return {_get_callee(call) for _, tree in _modules() for call in _calls(tree)}


def find_help_texts() -> Iterator[MessageText]:
    """Yield the paragraphs of every command's help, and the help of its options."""
    from yarus.__main__ import cli

    for words, command in commands(cli):
        place = f"yarus {' '.join(words)} --help"
        for paragraph in paragraphs("\n\n".join(filter(None, (command.help, command.epilog)))):
            yield MessageText(paragraph, place)
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.help:
                yield MessageText(parameter.help, f"{place}: {parameter.opts[0]}")


def find_parameter_texts() -> Iterator[MessageText]:
    """Yield titles and descriptions of parameters, and the purpose of each flow."""
    from yarus.tasks.config.flow_parameters import FLOWS
    from yarus.tasks.dataset.synthesis.generator import SynthesisParameters

    for name, model in {**FLOWS, "synthesize": SynthesisParameters}.items():
        yield MessageText(inspect.cleandoc(model.__doc__ or ""), name)
        for parameter, field in model.model_fields.items():
            for text in (field.title, field.description):
                if text:
                    yield MessageText(text, f"{name}.{parameter}")


def find_form_texts() -> Iterator[MessageText]:
    """Yield what the forms of the Prefect UI show beside the parameters of a tier."""
    from prefect.utilities.callables import parameter_schema

    from yarus.deployments.registration import load_deployments, load_flow

    for deployment in load_deployments():
        for text in _find_schema_texts(parameter_schema(load_flow(deployment)).model_dump_for_openapi()):
            yield MessageText(text, f"the form of {deployment['name']}")


def _find_schema_texts(schema: object) -> Iterator[str]:
    """Yield titles and descriptions in a schema, without examples and titles that are names of models."""
    from yarus.tasks.config.flow_parameters import FLOWS
    from yarus.tasks.config.forms import EXAMPLES_PREFIX

    if isinstance(schema, list):
        for part in schema:
            yield from _find_schema_texts(part)
    elif isinstance(schema, dict):
        for key in ("title", "description"):
            if isinstance(text := schema.get(key), str) and text not in {kind.__name__ for kind in FLOWS.values()}:
                yield text.partition(EXAMPLES_PREFIX)[0]
        for part in schema.values():
            yield from _find_schema_texts(part)


def find_metric_texts() -> Iterator[MessageText]:
    """Yield the reasons why a metric is not measured."""
    from yarus.metrics.table import METRICS

    for name, metric in METRICS.items():
        for clause in metric.undefined.split("; "):
            yield MessageText(clause, f"metric {name}")
    for text in ("no metric {name}; did you mean {near}?", "no metric {name}; there are: {names}"):
        yield MessageText(text, "yarus.metrics.table.get_metric")


def list_click_texts() -> Iterator[MessageText]:
    """Yield the messages of click itself."""
    spec = importlib.util.find_spec("click")
    assert spec is not None
    assert spec.submodule_search_locations
    for path in sorted(Path(spec.submodule_search_locations[0]).glob("*.py")):
        for call in _calls(ast.parse(path.read_text(encoding="utf-8"))):
            if _get_callee(call) in ("_", gettext.ngettext.__name__):
                for argument in call.args:
                    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                        yield MessageText(argument.value, f"click/{path.name}:{call.lineno}")


def commands(group: click.Command, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Yield every command with the words that name it."""
    yield words, group
    for name, command in group.commands.items() if isinstance(group, click.Group) else ():
        yield from commands(command, (*words, name))


def paragraphs(text: str) -> list[str]:
    """Return the paragraphs of a help, each on one line, without examples of commands."""
    return [
        " ".join(part.split()) for part in re.split(r"\n\s*\n", inspect.cleandoc(text)) if not part.startswith("\b")
    ]


def list_placeholders(text: str) -> list[str]:
    """Return the sorted names of values in a template, or its `%` signs."""
    signs = re.findall(r"%[-+,.\d]*[sdfgr]", text)
    return sorted(signs) or sorted({name for _, name, _, _ in string.Formatter().parse(text) if name})


def has_no_words(text: str) -> bool:
    """Return whether a text has no English words: only values, names of options, settings and files, or signs."""
    bare = re.sub(r"\{[^{}]*\}|%[-+,.\d]*[sdfgr]", " ", text)
    bare = re.sub(r"--[\w-]+|`[^`]*`|\b[A-Z][A-Z_0-9]+\b|\S*[/=_]\S*|\S+[.:]\w\S*|chmod\s+\S+", " ", bare)
    return not re.search(r"[A-Za-z]{2,}", bare)


def _modules() -> Iterator[tuple[Path, ast.Module]]:
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.py")):
            if not str(path.relative_to(ROOT)).startswith(SKIPPED_PATHS):
                yield path, ast.parse(path.read_text(encoding="utf-8"))


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def _get_callee(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")


def _find_templates(call: ast.Call) -> Iterator[str]:
    name = _get_callee(call)
    if name in (*ERRORS, "Words", "UsageError") and call.args:
        yield from _get_constant(call.args[0])
    elif name == "unknown" and call.args:
        yield from (f"no {text}" for text in _get_constant(_unwrap_words(call.args[0])))
        for hint in (*call.args[3:], *(word.value for word in call.keywords if word.arg == "hint")):
            yield from _get_constant(hint)
    elif name == "resolve_id":
        for word in call.keywords:
            yield from _get_constant(word.value)
    elif name in LEVELS and ast.unparse(call.func).startswith(("log.", "logging.getLogger('yarus').")):
        yield from _get_constant(call.args[0])


def _get_first_argument(call: ast.Call) -> ast.expr | None:
    return call.args[0] if call.args else None


def _unwrap_words(node: ast.expr) -> ast.expr:
    return node.args[0] if isinstance(node, ast.Call) and _get_callee(node) == "Words" else node


def _get_constant(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value


def read_catalogue_texts(*names: str) -> set[str]:
    """Return the English texts of sections of the catalogue."""
    import tomllib

    sections = tomllib.loads((ROOT / "tasks/config/texts/messages.ru.toml").read_text(encoding="utf-8"))
    return {text for name in names for text in sections[name]}
