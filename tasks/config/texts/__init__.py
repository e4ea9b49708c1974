"""Words that people read: a file a language, in it a section a screen."""

import re
import tomllib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = ("ru", "en")
Text = dict[str, str]
"""Language -> text."""


_BY_NUMBER = re.compile(r"\{(\w+):([^{}|]+(?:\|[^{}|]+)+)\}")


class Phrase(str):
    """A text in which a word can go by a number: `{n} {n:вопрос|вопроса|вопросов}`, `{n} {n:question|questions}`."""

    def format(self, *values: object, **named: object) -> str:
        """With values put in."""
        chosen = _BY_NUMBER.sub(lambda found: plural(named[found[1]], found[2].split("|")), self)
        return chosen.format(*values, **named)


def plural(number: object, forms: Sequence[str]) -> str:
    """The word that goes with a whole number, whose thousands may be parted: of two forms in English, three in Russian.

    Example:
        >>> from yarus.tasks.config.texts import plural
        >>> [plural(n, ("вопрос", "вопроса", "вопросов")) for n in (1, 22, 374, 11)]
        ['вопрос', 'вопроса', 'вопроса', 'вопросов']
    """
    n = int("".join(filter(str.isdigit, str(number))))
    if len(forms) == 2:
        return forms[n != 1]
    one, few, many = forms
    if n % 100 in range(11, 15):
        return many
    return one if n % 10 == 1 else few if n % 10 in range(2, 5) else many


class Section(dict[str, str]):
    """The texts of a section by key; where one is missing the error says which."""

    def __init__(self, section: str, language: str, found: dict[str, Any]) -> None:
        super().__init__({key: Phrase(text) if isinstance(text, str) else text for key, text in found.items()})
        self.place = f"[{section}] of tasks/config/texts/{language}.toml"

    def __missing__(self, key: str) -> str:
        raise LookupError(f"no text {key!r} in {self.place}")


@cache
def texts(section: str, language: str) -> Section:
    """The texts of a section, such as `terminal` or `tiers.tier1`, in one language.

    Raises:
        LookupError: there is no such section; a key that it does not have raises one too.
    """
    found = _file(language)
    for part in section.split("."):
        if part not in found:
            raise LookupError(f"no section [{section}] in tasks/config/texts/{language}.toml")
        found = found[part]
    return Section(section, language, found)


def translations(section: str, key: str, **values: object) -> Text:
    """A text in every language, with values put in."""
    return {language: texts(section, language)[key].format(**values) for language in LANGUAGES}


@cache
def _file(language: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{language}.toml").read_text(encoding="utf-8"))
