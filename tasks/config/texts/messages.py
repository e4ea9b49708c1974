"""Translate messages: the English templates in the code, and their versions in other languages."""

import re
import string
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from yarus.db.messages import Words
from yarus.tasks.config.texts import texts

MAX_LENGTH = 2_000
"""Longest stored text to translate, in characters; a longer one is not a message of Yarus."""
MAX_DEPTH = 4
"""Largest depth of messages within messages."""


def told(message: str | BaseException, language: str) -> str:
    """Translate a message.

    Args:
        message: `Words`, an error that holds some, or a message stored as text. Such a text is recognised by its fixed
            parts.
        language: `ru` or `en`.

    Returns:
        The English text if it is not a message of Yarus.
    """
    if isinstance(message, BaseException):
        message = message.args[0] if message.args and isinstance(message.args[0], Words) else str(message)
    if language == "en":
        return str(message)
    return (
        _translate_words(message, language)
        if isinstance(message, Words)
        else _translate_stored(message, language, MAX_DEPTH)
    )


def translate_text(text: str, language: str) -> str:
    """Translate a text without values, such as a paragraph of help; without a translation it stays."""
    return text if language == "en" else message_catalogue(language).get(text, text)


@cache
def message_catalogue(language: str) -> Mapping[str, str]:
    """Return English template -> its translation, with the same placeholders."""
    return {english: text for section in _read_sections(language).values() for english, text in section.items()}


@cache
def _read_sections(language: str) -> dict[str, dict[str, str]]:
    return tomllib.loads((Path(__file__).parent / f"messages.{language}.toml").read_text(encoding="utf-8"))


def _translate_words(message: Words, language: str) -> str:
    if message.template not in message_catalogue(language) and not message.values:
        return _translate_stored(message, language, MAX_DEPTH)  # a message of a library
    template = message_catalogue(language).get(message.template, message.template)
    # Names stay untranslated.
    verbatim = {name for _, name, _, conversion in _split_template(message.template) if conversion == "r"}
    values = {
        name: value if name in verbatim and not isinstance(value, Words) else _translate_value(name, value, language)
        for name, value in message.values.items()
    }
    return template.format(**values) if values else template


def _translate_value(name: str, value: object, language: str) -> object:
    if isinstance(value, Words):
        return _translate_words(value, language)
    if name == "state":
        return texts("states", language).get(str(value), value)
    return translate_value(value, language) if isinstance(value, str) else value


def translate_value(value: str, language: str) -> str:
    """Translate a value that is an English phrase, such as "Permission denied" or a stand-in's name; others stay."""
    return value if language == "en" else _read_sections(language)["values"].get(value, value)


def _translate_stored(text: str, language: str, depth: int) -> str:
    """Translate a stored message."""
    catalogue = message_catalogue(language)
    if text in catalogue or not depth or len(text) > MAX_LENGTH:
        return catalogue.get(text, text)
    for template, pattern in _message_patterns(language):
        if match := pattern.fullmatch(text):
            states = texts("states", language)
            values = {
                name: states.get(value, value) if name == "state" else _translate_stored(value, language, depth - 1)
                for name, value in match.groupdict().items()
            }
            return "".join(
                before + (values[name] if name else "") for before, name, _, _ in _split_template(catalogue[template])
            )
    if prefix := re.match(r"\w+: ", text):  # the name of an error or a metric
        return prefix[0] + _translate_stored(text[prefix.end() :], language, depth - 1)
    parts = text.split("; ")
    return "; ".join(_translate_stored(part, language, depth - 1) for part in parts) if len(parts) > 1 else text


@cache
def _message_patterns(language: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return the patterns of messages with values, those with the most fixed text first."""
    candidates = []
    for template in (*_read_sections(language)["messages"], *_read_sections(language)["metrics"]):
        parts = _split_template(template)
        names = [name for _, name, _, _ in parts if name]
        n_fixed = sum(len(before) for before, *_ in parts)
        if names and n_fixed > len(names) * MIN_FIXED_PER_VALUE:
            candidates.append((n_fixed, template, _compile_pattern(parts)))
    return [(template, pattern) for _, template, pattern in sorted(candidates, key=lambda candidate: -candidate[0])]


MIN_FIXED_PER_VALUE = 5
"""Smallest number of fixed characters per value: a template such as `{path}: {error}` would match anything."""
TemplatePart = tuple[str, str | None, str | None, str | None]
"""Part of a template, as from `string.Formatter`: a text, then name, format and conversion of the following value."""


def _split_template(template: str) -> list[TemplatePart]:
    """Split a template, or a log line with `%s`; a text with invalid braces has no parts."""
    if "{" not in template:
        pieces = LOG_PLACEHOLDER.split(template)
        return [(text, f"v{index}" if index < len(pieces) - 1 else None, "", None) for index, text in enumerate(pieces)]
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        return []
    return parts if all(name is None or name.isidentifier() for _, name, _, _ in parts) else []


LOG_PLACEHOLDER = re.compile(r"%[-+,.\d]*[sdfgr]")


def _compile_pattern(parts: list[TemplatePart]) -> re.Pattern[str]:
    pattern, names = "", set[str]()
    for before, name, _, _ in parts:
        pattern += re.escape(before)
        if name:
            pattern += f"(?P={name})" if name in names else f"(?P<{name}>.*?)"
            names.add(name)
    return re.compile(pattern, re.DOTALL)
