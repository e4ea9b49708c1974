"""Print a metric's history for people: a small plot, and sentences about breaks, changes and exits from the band."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rich.markup import escape
from rich.text import Text

from yarus.flows.terminal.printing import format_metric, get_tier_name, make_console
from yarus.metrics.statistics.ewma import WARM_UP
from yarus.tasks.comparison.bands import Trend
from yarus.tasks.config.texts import texts

HEIGHT = 9
Night = Mapping[str, Any]
"""A point of the history, as `yarus.tasks.comparison.bands.TrendNight` declares it."""
MARGIN = 14
"""Columns left of the plot, for the axis."""
MAX_CHANGES = 6
"""Maximum number of breaks and new versions that are described; the newest are."""
BAND, VALUE, OUT, INVALID, BREAK, ACCEPTED = "░", "●", "◆", "×", "┊", "─"


def print_trend(document: Trend, language: str, *, anchor: bool) -> None:
    """Print the document of `yarus.tasks.comparison.trend.trend`; `anchor`: whether it was requested."""
    words = texts("trend", language)
    console = make_console()
    names = {
        "metric": document["metric"],
        "tier": get_tier_name(document["tier"], language),
        "source": document["source"] or "—",
    }
    names["metric"] += f" ({texts('strata', language)[document['stratum']]})" if document["stratum"] else ""
    console.print(f"\n[bold]{escape(words['history'].format(**names))}[/]")
    if not document["nights"]:
        message = words["no anchor" if anchor else "none"].format(tier=document["tier"])
        console.print(escape(message), soft_wrap=True)
        return
    nights = document["nights"]
    dates = {"first": _format_date(nights[0]), "last": _format_date(nights[-1])}
    console.print(
        words["newest nights" if document["has_earlier"] else "nights"].format(n=len(nights), **dates), style="dim"
    )
    accepted = document["accepted"]
    level = accepted["value"] if accepted else None
    for line in plot_history(nights, width=console.width - MARGIN, name=document["metric"], accepted=level):
        console.print(line, no_wrap=True, crop=True)
    signs = {"value": VALUE, "out": OUT, "invalid": INVALID, "band": BAND, "break": BREAK, "accepted": ACCEPTED}
    console.print(words["legend"].format(**signs), style="dim")
    for sentence in describe_history(document, words):
        console.print(escape(sentence), soft_wrap=True)


def plot_history(
    nights: Sequence[Night], *, width: int, name: str, accepted: float | None = None, height: int = HEIGHT
) -> Iterator[Text]:
    """Yield the lines of a plot of the newest nights that fit, one per column.

    Args:
        nights: points of the document, oldest first.
        width: columns of the plot itself.
        name: metric, which decides the format of the numbers.
        accepted: the level that is drawn as a line.
        height: lines of the plot.
    """
    columns = _make_columns(nights)[-max(1, width) :]
    plotted = [night for night in columns if night is not None]
    figures = [night[part] for night in plotted for part in ("value", "band_low", "band_high")]
    values: list[float] = [figure for figure in (*figures, accepted) if figure is not None]
    if not values:
        return
    low, high = min(values), max(values)
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.05 * max(1.0, abs(low)), high + 0.05 * max(1.0, abs(high))

    def find_row(figure: float) -> int:
        return round((figure - low) / (high - low) * (height - 1))

    for row in range(height - 1, -1, -1):
        level = low + (high - low) * row / (height - 1)
        label = format_metric(name, level) if row in (0, (height - 1) // 2, height - 1) else ""
        line = Text(f"{label:>{MARGIN - 4}} ┤ ")
        for night in columns:
            line.append(*_draw_cell(night, row, find_row, is_level=accepted is not None and find_row(accepted) == row))
        yield line
    first, last = _format_date(plotted[0]), _format_date(plotted[-1])
    yield Text(" " * (MARGIN - 2) + f"{first}{last:>{max(len(columns) - len(first), len(last) + 1)}}", style="dim")


def describe_history(document: Trend, words: dict[str, str]) -> Iterator[str]:
    """Yield sentences about the newest night, the first one out of the band, breaks, versions and noise."""
    nights: Sequence[Night] = document["nights"]
    name = document["metric"]
    if not nights[-1]["is_out_of_band"]:
        yield _describe_newest(nights, name, words)
    first = next((night for night in nights if night["evaluation_id"] == document["first_out_of_band"]), None)
    if first is not None:
        band = {part: format_metric(name, first[part]) for part in ("band_low", "band_high", "smoothed")}
        yield words["out"].format(
            date=_format_date(first),
            id=_describe(first),
            side=words[first["side"]],
            smoothed=band["smoothed"],
            low=band["band_low"],
            high=band["band_high"],
            now=words["still" if nights[-1]["is_out_of_band"] else "back"],
        )
    changes = [line for pair in pairwise(nights) for line in _list_changes(*pair, words)]
    yield from changes[-MAX_CHANGES:]
    if len(changes) > MAX_CHANGES:
        yield words["more"].format(n=len(changes) - MAX_CHANGES)
    if document["anchor"]:
        yield words["anchor"].format(anchor=document["anchor"])
    if (accepted := document["accepted"]) is not None:
        yield words["accepted"].format(value=format_metric(name, accepted["value"]), id=accepted["evaluation_id"])
    if document["noise"] is not None:
        yield words["noise"].format(
            band=format_metric(name, document["noise"]["band"]), pairs=document["noise"]["pairs"]
        )


def _list_changes(before: Night, night: Night, words: dict[str, str]) -> Iterator[str]:
    """Yield what changed from one night to the next, apart from the value."""
    if night["is_break"]:
        yield words["break"].format(date=_format_date(night), id=_describe(night), before=_describe(before))
    if night["sut_label"] != before["sut_label"]:
        old, new = (point["sut_label"] or words["no label"] for point in (before, night))
        yield words["label"].format(date=_format_date(night), before=old, after=new)


def _describe_newest(nights: Sequence[Night], name: str, words: dict[str, str]) -> str:
    newest = nights[-1]
    if newest["state"] != "completed":
        return words["invalid"]
    if newest["value"] is None:
        return words["unmeasured"]
    if newest["band_low"] is None:
        line = [
            night
            for night in nights
            if night["comparability_key"] == newest["comparability_key"] and night["state"] == "completed"
        ]
        measured = [night for night in line[:-1] if night["value"] is not None]
        return words["warm up"].format(wanted=WARM_UP, n=len(measured))
    figures = {part: format_metric(name, newest[f"band_{part}"]) for part in ("low", "high")}
    return words["calm"].format(**figures, smoothed=format_metric(name, newest["smoothed"]))


def _make_columns(nights: Sequence[Night]) -> list[Night | None]:
    """Return one column per night, and an empty one before each break."""
    columns: list[Night | None] = []
    for night in nights:
        if night["is_break"]:
            columns.append(None)
        columns.append(night)
    return columns


def _draw_cell(night: Night | None, row: int, find_row: Any, *, is_level: bool) -> tuple[str, str]:
    """Return a character and its style."""
    if night is None:
        return BREAK, "dim"
    if night["value"] is not None and find_row(night["value"]) == row:
        if night["state"] != "completed":
            return INVALID, "yellow"
        return (OUT, "bold red") if night["is_out_of_band"] else (VALUE, "cyan")
    if is_level:
        return ACCEPTED, "green"
    if night["band_low"] is not None and find_row(night["band_low"]) <= row <= find_row(night["band_high"]):
        return BAND, "dim"
    return " ", ""


def _describe(night: Night) -> str:
    """Return the evaluation's name, if it has one, and its id."""
    return f"{night['name']} ({night['evaluation_id']})" if night["name"] else str(night["evaluation_id"])


def _format_date(night: Night) -> str:
    return str(night["started_at"])[:10]
