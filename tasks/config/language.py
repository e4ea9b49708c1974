"""The language of the locale, in which Yarus prints if YARUS_LANGUAGE is not set. Imports nothing: the help uses it."""

import os
from typing import Literal

LOCALE_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Variables of the locale; the first that is not empty decides."""


def locale_language() -> Literal["ru", "en"]:
    """Return Russian if the locale is `ru…`, else English."""
    locale = next(filter(None, map(os.environ.get, LOCALE_VARIABLES)), "")
    return "ru" if locale.lower().startswith("ru") else "en"
