"""Print on a terminal: escape texts, format numbers, choose colours and widths."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from yarus.tasks.config.redaction import escape_control_characters
from yarus.tasks.config.texts import texts
from yarus.tasks.evaluation.number_format import format_rounded, metric_unit

COLOURS = {"excellent": "green", "strong": "green", "good": "cyan", "reasonable": "cyan", "attention": "yellow"}
COLOURS |= {"weak": "yellow", "absent": "yellow", "completed": "green", "running": "cyan"}
WIDTH = 110
MAX_QUESTION = 300
"""Maximum number of characters of a question that are printed."""


def clean(text: str) -> str:
    """Return an untrusted text without markup and without control characters."""
    return escape(escape_control_characters(text))


def format_metric(name: str, value: float) -> str:
    """Format a metric's value; counts get thousands separators."""
    unit = metric_unit(name)
    return format_rounded(value, unit, "," if unit == "count" else "")


def get_tier_name(tier: str, language: str) -> str:
    """Return a tier's name for the terminal."""
    return texts(f"tiers.{tier}", language)["terminal"]


def add_colour(text: str, key: str) -> str:
    """Return a text in the colour of a state or a grade, as Rich's markup."""
    colour = COLOURS.get(key, "yellow")
    return f"[{colour}]{text}[/]"


def make_console(width: int = WIDTH) -> Console:
    """Return a console as wide as the terminal; of a fixed width if the output is a file or a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=width)


def make_titled_table(title: str, *heads: str) -> Table:
    """Return a table with a title, both aligned to the left."""
    return Table(*heads, title=title, box=None, title_justify="left", title_style="bold")


def join_first(names: Sequence[str], limit: int = 10, separator: str = ", ") -> str:
    """Join the first names, and mark that others are left out."""
    return separator.join([*names[:limit], *(["…"] if len(names) > limit else [])])
