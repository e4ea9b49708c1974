"""How anything is printed on a terminal: texts of anybody's, numbers, colours, widths."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from yarus.tasks.config.redaction import harmless
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.numbers import rounded, unit_of

COLOURS = {"excellent": "green", "strong": "green", "good": "cyan", "reasonable": "cyan", "attention": "yellow"}
COLOURS |= {"weak": "yellow", "absent": "yellow", "completed": "green", "running": "cyan"}
WIDTH = 110
LONGEST = 300
"""Of a question: characters that are printed."""


def plain(text: str) -> str:
    """A text of anybody's as it can be printed: no markup, and no character that a terminal obeys."""
    return escape(harmless(text))


def number(name: str, value: float) -> str:
    """A value of a metric; of counts, thousands are parted."""
    unit = unit_of(name)
    return rounded(value, unit, "," if unit == "count" else "")


def tier_name(tier: str, language: str) -> str:
    """What a tier is called in a terminal."""
    return texts(f"tiers.{tier}", language)["terminal"]


def coloured(text: str, key: str) -> str:
    """A text in the colour of a state or a grade, as Rich's markup."""
    colour = COLOURS.get(key, "yellow")
    return f"[{colour}]{text}[/]"


def new_console(width: int = WIDTH) -> Console:
    """A terminal's own width; a fixed one where the output goes into a file or a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=width)


def titled_table(title: str, *heads: str) -> Table:
    """A table under its title, both at the left."""
    return Table(*heads, title=title, box=None, title_justify="left", title_style="bold")


def first_few(names: Sequence[str]) -> str:
    """The first ten names, with a sign for those that are left out."""
    return ", ".join(names[:10]) + (" …" if len(names) > 10 else "")
