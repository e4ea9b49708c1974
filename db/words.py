"""What a person is told, apart from the values in it, so that it can be told in another language."""

from collections.abc import Iterable, Mapping
from typing import Self


class Words(str):
    """A text in English that knows what it was made of: a template and the values that were put in.

    Values may themselves be words, or errors that have some: see tasks/config/texts/messages.py, which translates them.
    """

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, object]

    def __new__(cls, template: str, /, **values: object) -> Self:
        """Puts the values in; without any the template is the text, whatever braces it has. Words stay as they are."""
        of = template if isinstance(template, Words) else None
        kept = of.values if of else {name: _kept(value) for name, value in values.items()}
        pattern = of.template if of else template
        words = super().__new__(cls, pattern.format(**kept) if kept else pattern)
        words.template, words.values = pattern, kept
        return words

    def __reduce__(self) -> tuple[object, ...]:
        """For pickle: what they were made of."""
        return _again, (type(self), self.template, self.values)


def joined(parts: Iterable[str], between: str = "; ") -> Words:
    """Words one after the other."""
    some = {f"part{number}": part for number, part in enumerate(parts)}
    return Words(between.join(f"{{{name}}}" for name in some), **some)


def _again(kind: type[Words], template: str, values: Mapping[str, object]) -> Words:
    return kind(template, **values)


def _kept(value: object) -> object:
    """The value; of an error of somebody else's only its words, for not every one can be pickled."""
    if not isinstance(value, BaseException):
        return value
    words = value.args[0] if value.args else None
    return words if isinstance(words, Words) else str(value)
