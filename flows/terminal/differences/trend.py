"""A history for people: a small plot, and in words what broke, what changed and what left its band."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from rich.markup import escape
from rich.text import Text

from yarus.flows.terminal.printing import new_console, number, tier_name
from yarus.metrics.statistics.ewma import WARM_UP
from yarus.tasks.comparison.bands import Trend
from yarus.tasks.config.texts import texts

HEIGHT = 9
Night = Mapping[str, Any]
"""As `yarus.tasks.comparison.bands.TrendNight` declares it."""
MARGIN = 14
"""Columns left of the plot, for the axis."""
SHOWN = 6
"""Breaks and new versions that are told in words, the newest."""
BAND, VALUE, OUT, INVALID, BREAK, ACCEPTED = "░", "●", "◆", "×", "┊", "─"


def print_trend(document: Trend, language: str, *, anchor: bool) -> None:
    """The document of `yarus.tasks.comparison.trend.trend`; whether the anchor was asked for."""
    words = texts("trend", language)
    console = new_console()
    names = {
        "metric": document["metric"],
        "tier": tier_name(document["tier"], language),
        "source": document["source"] or "—",
    }
    names["metric"] += f" ({texts('strata', language)[document['stratum']]})" if document["stratum"] else ""
    console.print(f"\n[bold]{escape(words['history'].format(**names))}[/]")
    if not document["nights"]:
        said = words["no anchor" if anchor else "none"].format(tier=document["tier"])
        console.print(escape(said), soft_wrap=True)
        return
    nights = document["nights"]
    dates = {"first": _date(nights[0]), "last": _date(nights[-1])}
    console.print(words["newest nights" if document["more"] else "nights"].format(n=len(nights), **dates), style="dim")
    accepted = document["accepted"]
    level = accepted["value"] if accepted else None
    for line in plot(nights, width=console.width - MARGIN, name=document["metric"], accepted=level):
        console.print(line, no_wrap=True, crop=True)
    signs = {"value": VALUE, "out": OUT, "invalid": INVALID, "band": BAND, "break": BREAK, "accepted": ACCEPTED}
    console.print(words["legend"].format(**signs), style="dim")
    for sentence in sentences(document, words):
        console.print(escape(sentence), soft_wrap=True)


def plot(
    nights: Sequence[Night], *, width: int, name: str, accepted: float | None = None, height: int = HEIGHT
) -> Iterator[Text]:
    """The newest nights that fit, one a column, as lines of characters.

    Args:
        nights: of the document, oldest first.
        width: columns of the plot itself.
        name: the metric, which decides how its numbers are written.
        accepted: the level that is drawn as a line.
        height: lines of the plot.
    """
    columns = _columns(nights)[-max(1, width) :]
    shown = [night for night in columns if night is not None]
    figures = [night[part] for night in shown for part in ("value", "band_low", "band_high")]
    known: list[float] = [figure for figure in (*figures, accepted) if figure is not None]
    if not known:
        return
    low, high = min(known), max(known)
    if high - low < 1e-9 * max(1.0, abs(high)):
        low, high = low - 0.05 * max(1.0, abs(low)), high + 0.05 * max(1.0, abs(high))

    def row_of(figure: float) -> int:
        return round((figure - low) / (high - low) * (height - 1))

    for row in range(height - 1, -1, -1):
        at = low + (high - low) * row / (height - 1)
        label = number(name, at) if row in (0, (height - 1) // 2, height - 1) else ""
        line = Text(f"{label:>{MARGIN - 4}} ┤ ")
        for night in columns:
            line.append(*_cell(night, row, row_of, is_accepted=accepted is not None and row_of(accepted) == row))
        yield line
    first, last = _date(shown[0]), _date(shown[-1])
    yield Text(" " * (MARGIN - 2) + f"{first}{last:>{max(len(columns) - len(first), len(last) + 1)}}", style="dim")


def sentences(document: Trend, words: dict[str, str]) -> Iterator[str]:
    """What the history says: the newest night, the first one out of the band, breaks, versions, noise."""
    nights: Sequence[Night] = document["nights"]
    name = document["metric"]
    if not nights[-1]["out"]:
        yield _newest(nights, name, words)
    first = next((night for night in nights if night["evaluation_id"] == document["first_out"]), None)
    if first is not None:
        band = {part: number(name, first[part]) for part in ("band_low", "band_high", "smoothed")}
        yield words["out"].format(
            date=_date(first),
            id=_called(first),
            side=words[first["side"]],
            smoothed=band["smoothed"],
            low=band["band_low"],
            high=band["band_high"],
            now=words["still" if nights[-1]["out"] else "back"],
        )
    changes = [line for pair in pairwise(nights) for line in _changes(*pair, words)]
    yield from changes[-SHOWN:]
    if len(changes) > SHOWN:
        yield words["more"].format(n=len(changes) - SHOWN)
    if document["anchor"]:
        yield words["anchor"].format(anchor=document["anchor"])
    if (accepted := document["accepted"]) is not None:
        yield words["accepted"].format(value=number(name, accepted["value"]), id=accepted["evaluation_id"])
    if document["noise"] is not None:
        yield words["noise"].format(band=number(name, document["noise"]["band"]), pairs=document["noise"]["pairs"])


def _changes(before: Night, night: Night, words: dict[str, str]) -> Iterator[str]:
    """What changed from one night to the next beside the value."""
    if night["break"]:
        yield words["break"].format(date=_date(night), id=_called(night), before=_called(before))
    if night["sut_label"] != before["sut_label"]:
        old, new = (one["sut_label"] or words["no label"] for one in (before, night))
        yield words["label"].format(date=_date(night), before=old, after=new)


def _newest(nights: Sequence[Night], name: str, words: dict[str, str]) -> str:
    newest = nights[-1]
    if newest["state"] != "completed":
        return words["invalid"]
    if newest["value"] is None:
        return words["unmeasured"]
    if newest["band_low"] is None:
        line = [
            n for n in nights if n["comparability_key"] == newest["comparability_key"] and n["state"] == "completed"
        ]
        measured = [night for night in line[:-1] if night["value"] is not None]
        return words["warm up"].format(wanted=WARM_UP, n=len(measured))
    figures = {part: number(name, newest[f"band_{part}"]) for part in ("low", "high")}
    return words["calm"].format(**figures, smoothed=number(name, newest["smoothed"]))


def _columns(nights: Sequence[Night]) -> list[Night | None]:
    """One a night, and an empty one before each break."""
    columns: list[Night | None] = []
    for night in nights:
        if night["break"]:
            columns.append(None)
        columns.append(night)
    return columns


def _cell(night: Night | None, row: int, row_of: Any, *, is_accepted: bool) -> tuple[str, str]:
    """A character and its style."""
    if night is None:
        return BREAK, "dim"
    if night["value"] is not None and row_of(night["value"]) == row:
        if night["state"] != "completed":
            return INVALID, "yellow"
        return (OUT, "bold red") if night["out"] else (VALUE, "cyan")
    if is_accepted:
        return ACCEPTED, "green"
    if night["band_low"] is not None and row_of(night["band_low"]) <= row <= row_of(night["band_high"]):
        return BAND, "dim"
    return " ", ""


def _called(night: Night) -> str:
    """The evaluation by its name, where it has one, and its id."""
    return f"{night['name']} ({night['evaluation_id']})" if night["name"] else str(night["evaluation_id"])


def _date(night: Night) -> str:
    return str(night["started_at"])[:10]
