"""Messages in the language of whoever reads them: the English that the code says, and what it is in another."""

import re
import string
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from yarus.db.words import Words
from yarus.tasks.config.texts import texts

LONGEST = 2_000
"""Characters of a stored text that is looked up; a longer one is no message of ours."""
DEEPEST = 4
"""Messages within messages."""


def told(said: str | BaseException, language: str) -> str:
    """A message in a language.

    Args:
        said: words of ours, an error with some, or a message that was stored as a text: that one is recognised by what
            stands between its values.
        language: `ru` or `en`.

    Returns:
        The English where it is no message of ours.
    """
    if isinstance(said, BaseException):
        said = said.args[0] if said.args and isinstance(said.args[0], Words) else str(said)
    if language == "en":
        return str(said)
    return _told(said, language) if isinstance(said, Words) else _recognised(said, language, DEEPEST)


def translated(text: str, language: str) -> str:
    """A text without values, such as a paragraph of help: its translation, or itself."""
    return text if language == "en" else catalogue(language).get(text, text)


@cache
def catalogue(language: str) -> Mapping[str, str]:
    """English template -> the same in a language, with the same placeholders."""
    return {english: text for section in _sections(language).values() for english, text in section.items()}


@cache
def _sections(language: str) -> dict[str, dict[str, str]]:
    return tomllib.loads((Path(__file__).parent / f"messages.{language}.toml").read_text(encoding="utf-8"))


def _told(words: Words, language: str) -> str:
    if words.template not in catalogue(language) and not words.values:
        return _recognised(words, language, DEEPEST)  # what a library of ours says
    template = catalogue(language).get(words.template, words.template)
    quoted = {name for _, name, _, conversion in _parts(words.template) if conversion == "r"}  # names: they stay
    values = {
        name: value if name in quoted and not isinstance(value, Words) else _value(name, value, language)
        for name, value in words.values.items()
    }
    return template.format(**values) if values else template


def _value(name: str, value: object, language: str) -> object:
    if isinstance(value, Words):
        return _told(value, language)
    if name == "state":
        return texts("states", language).get(str(value), value)
    return named(value, language) if isinstance(value, str) else value


def named(value: str, language: str) -> str:
    """A value that comes in English words, such as "Permission denied" or the name of a stand-in; others stay."""
    return value if language == "en" else _sections(language)["values"].get(value, value)


def _recognised(text: str, language: str, depth: int) -> str:
    """A stored message in another language."""
    known = catalogue(language)
    if text in known or not depth or len(text) > LONGEST:
        return known.get(text, text)
    for template, pattern in _patterns(language):
        if found := pattern.fullmatch(text):
            states = texts("states", language)
            given = {
                name: states.get(value, value) if name == "state" else _recognised(value, language, depth - 1)
                for name, value in found.groupdict().items()
            }
            return "".join(before + (given[name] if name else "") for before, name, _, _ in _parts(known[template]))
    if kind := re.match(r"\w+: ", text):  # of an error, or a metric
        return kind[0] + _recognised(text[kind.end() :], language, depth - 1)
    parts = text.split("; ")
    return "; ".join(_recognised(part, language, depth - 1) for part in parts) if len(parts) > 1 else text


@cache
def _patterns(language: str) -> list[tuple[str, re.Pattern[str]]]:
    """What recognises a message with values, those with the most words of their own first."""
    found = []
    for template in (*_sections(language)["messages"], *_sections(language)["metrics"]):
        parts = _parts(template)
        names = [name for _, name, _, _ in parts if name]
        own = sum(len(before) for before, *_ in parts)
        if names and own > len(names) * OWN:
            found.append((own, template, _pattern(parts)))
    return [(template, pattern) for _, template, pattern in sorted(found, key=lambda one: -one[0])]


OWN = 5
"""A message with fewer letters of its own by value is recognised nowhere: `{path}: {error}` is anything."""
Part = tuple[str, str | None, str | None, str | None]
"""What `string.Formatter` finds: a text, and the name, format and conversion of the value behind it."""


def _parts(template: str) -> list[Part]:
    """The parts of a template, or of a line of the log with its `%s`; of a text that only has braces, none."""
    if "{" not in template:
        texts = SIGN.split(template)
        return [(text, f"v{place}" if place < len(texts) - 1 else None, "", None) for place, text in enumerate(texts)]
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        return []
    return parts if all(name is None or name.isidentifier() for _, name, _, _ in parts) else []


SIGN = re.compile(r"%[-+,.\d]*[sdfgr]")


def _pattern(parts: list[Part]) -> re.Pattern[str]:
    said, seen = "", set[str]()
    for before, name, _, _ in parts:
        said += re.escape(before)
        if name:
            said += f"(?P={name})" if name in seen else f"(?P<{name}>.*?)"
            seen.add(name)
    return re.compile(said, re.DOTALL)
