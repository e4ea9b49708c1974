"""Words that people read: a file a language, in it a section a screen."""

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

LANGUAGES = ("ru", "en")
Text = dict[str, str]
"""Language -> text."""


class Section(dict[str, str]):
    """The texts of a section by key; where one is missing the error says which."""

    def __init__(self, section: str, language: str, found: dict[str, str]) -> None:
        super().__init__(found)
        self.place = f"[{section}] of tasks/texts/{language}.toml"

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
            raise LookupError(f"no section [{section}] in tasks/texts/{language}.toml")
        found = found[part]
    return Section(section, language, found)


def translations(section: str, key: str, **values: object) -> Text:
    """A text in every language, with values put in."""
    return {language: texts(section, language)[key].format(**values) for language in LANGUAGES}


@cache
def _file(language: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{language}.toml").read_text(encoding="utf-8"))
