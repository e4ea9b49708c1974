"""Messages that keep their template and values, so that they can be translated later."""

from collections.abc import Iterable, Mapping
from typing import Self


class Words(str):
    """An English text that keeps the template and the values it was made from.

    Values may themselves be `Words`, or errors that hold some; tasks/config/texts/messages.py translates them.
    """

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, /, **values: object) -> Self:
        """Format the template; without values it is the text, braces included. `Words` stay as they are."""
        original = template if isinstance(template, Words) else None
        stored_values = original.values if original else {name: _to_picklable(value) for name, value in values.items()}
        pattern = original.template if original else template
        message = super().__new__(cls, pattern.format(**stored_values) if stored_values else pattern)
        message.template, message.values = pattern, stored_values
        return message

    def __reduce__(self) -> tuple[object, ...]:
        """Return how pickle restores the text: from template and values."""
        return _restore, (type(self), self.template, self.values)


def join_messages(parts: Iterable[str], separator: str = "; ") -> Words:
    """Join texts into one message."""
    values = {f"part{number}": part for number, part in enumerate(parts)}
    return Words(separator.join(f"{{{name}}}" for name in values), **values)


def _restore(kind: type[Words], template: str, values: Mapping[str, object]) -> Words:
    return kind(template, **values)


def _to_picklable(value: object) -> object:
    """Return the value; for an error of another package only its message, because some cannot be pickled."""
    if not isinstance(value, BaseException):
        return value
    words = value.args[0] if value.args else None
    return words if isinstance(words, Words) else str(value)
