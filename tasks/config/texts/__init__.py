"""Texts shown to people: one file per language, with one section per screen."""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = ("ru", "en")
TranslatedText = dict[str, str]
"""Language -> text."""


_PLURAL_FIELD = re.compile(r"\{(\w+):([^{}|]+(?:\|[^{}|]+)+)\}")


class Phrase(str):
    """A text in which a word agrees with a number: `{n} {n:вопрос|вопроса|вопросов}`, `{n} {n:question|questions}`."""

    def format(self, *values: object, **keyword_values: object) -> str:
        """Format the text with values."""
        template = _PLURAL_FIELD.sub(lambda match: plural_form(keyword_values[match[1]], match[2].split("|")), self)
        return template.format(*values, **keyword_values)


def plural_form(number: object, forms: Sequence[str]) -> str:
    """Return the word form for a whole number with or without separators: two forms in English, three in Russian.

    Example:
        >>> from yarus.tasks.config.texts import plural_form
        >>> [plural_form(n, ("вопрос", "вопроса", "вопросов")) for n in (1, 22, 374, 11)]
        ['вопрос', 'вопроса', 'вопроса', 'вопросов']
    """
    n = int("".join(filter(str.isdigit, str(number))))
    if len(forms) == 2:
        return forms[n != 1]
    singular, few, many = forms
    if n % 100 in range(11, 15):
        return many
    return singular if n % 10 == 1 else few if n % 10 in range(2, 5) else many


class TextSection(dict[str, str]):
    """The texts of a section by key; the error for a missing key names the section."""

    def __init__(self, section: str, language: str, entries: dict[str, Any]) -> None:
        super().__init__({key: Phrase(text) if isinstance(text, str) else text for key, text in entries.items()})
        self.place = f"[{section}] of tasks/config/texts/{language}.toml"

    def __missing__(self, key: str) -> str:
        raise LookupError(f"no text {key!r} in {self.place}")


@cache
def texts(section: str, language: str) -> TextSection:
    """Return the texts of a section, such as `terminal` or `tiers.tier1`, in one language.

    Raises:
        LookupError: no such section; a missing key of the result raises it too.
    """
    entries = _read_file(language)
    for part in section.split("."):
        if part not in entries:
            raise LookupError(f"no section [{section}] in tasks/config/texts/{language}.toml")
        entries = entries[part]
    return TextSection(section, language, entries)


def translations(section: str, key: str, **values: object) -> TranslatedText:
    """Return a text in every language, formatted with values."""
    return {language: texts(section, language)[key].format(**values) for language in LANGUAGES}


@cache
def _read_file(language: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{language}.toml").read_text(encoding="utf-8"))
