"""What is wrong with a table that people have filled in, in their language."""

from typing import Any

from yarus.db.errors import InputError
from yarus.tasks.config.settings import settings
from yarus.tasks.texts import texts


def said(name: str, /, **values: Any) -> str:
    """What is wrong, in the language of the settings."""
    return texts("annotation.problems", settings().language)[name].format(**values)


def wrong(name: str, /, **values: Any) -> InputError:
    """The error that says so."""
    return InputError(said(name, **values))


def unusable(name: str, path: object, error: OSError) -> InputError:
    """The error for a file that the system does not let us read or write."""
    why = texts("annotation.problems", settings().language).get(type(error).__name__, error.strerror or error)
    return wrong(name, path=path, why=why)
