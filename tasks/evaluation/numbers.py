"""Numbers and grades as people and programs read them: rounded here and nowhere else."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from yarus.metrics.table import METRICS
from yarus.tasks.config.texts import LANGUAGES, Text, translations

T = TypeVar("T")
THIN = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"
DIGITS = {"count": 0, "percent": 1, "ms": 1, "USD": 6}
"""After the point, by unit; three of every other."""


def unit_of(name: str) -> str:
    """The unit of a metric; none for what is no metric of the table, as a rubric of the user's own."""
    return METRICS[name].unit if name in METRICS else ""


def rounded(value: float, unit: str, how: str = "") -> str:
    """A value with its unit's digits; `how` is "," to part thousands, "+" to sign it, or both."""
    return f"{value:{how}.{DIGITS.get(unit, 3)}f}"


def percent(share: float) -> str:
    """A share as a whole percentage."""
    return f"{share:.0%}".replace("%", " %")


def shown(name: str, value: float | None, *, sign: bool = False) -> str:
    """A value of a metric: counts whole, percent and milliseconds with one digit, everything else with three.

    Args:
        name: of the metric, or a column; decides the unit.
        value: as stored; None is a dash.
        sign: write + too, for differences.
    """
    if value is None:
        return "—"
    unit = unit_of(name)
    digits = "count" if unit == "ms" and abs(value) >= 100 else unit
    text = rounded(value, digits, "+," if sign else ",").replace(",", THIN).replace("-", MINUS)
    return text + (f"{THIN}ms" if unit == "ms" and not sign else "")


def typeset(text: str) -> str:
    """A text of the terminal as pages show it: numbers below 0 with the sign that numbers above it are as wide as."""
    return re.sub(r"(?<![\w-])-(?=\d)", MINUS, text)


def interval(name: str, metric: Mapping[str, Any]) -> str:
    """The interval of a metric, or nothing; `≥` where it is open above."""
    if metric["ci_low"] is None:
        return ""
    if metric["ci_high"] is None:
        return f"≥{THIN}{shown(name, metric['ci_low'])}"
    return f"{shown(name, metric['ci_low'])}\N{EN DASH}{shown(name, metric['ci_high'])}".replace(f"{THIN}ms", "")


def plain_interval(metric: Mapping[str, Any], write: Callable[[float], str]) -> str:
    """The interval of a metric in plain text, or nothing; `≥` where it is open above.

    Args:
        metric: with `ci_low` and `ci_high`.
        write: how a value of it is written.
    """
    if metric["ci_low"] is None:
        return ""
    if metric["ci_high"] is None:
        return f"≥ {write(metric['ci_low'])}"
    return f"{write(metric['ci_low'])} – {write(metric['ci_high'])}"


def between(name: str, found: Mapping[str, Any]) -> str:
    """The interval of a difference, or nothing."""
    if found["ci_low"] is None:
        return ""
    return f"{shown(name, found['ci_low'], sign=True)} … {shown(name, found['ci_high'], sign=True)}"


def finite(value: T) -> T:
    """The value or document with None for every number in it, at any depth, that JSON has not: NaN, infinity."""
    found: Any = value
    if isinstance(value, float):
        found = float(value) if math.isfinite(value) else None
    elif isinstance(value, dict):
        found = {name: finite(part) for name, part in value.items()}
    elif isinstance(value, list | tuple):
        found = [finite(part) for part in value]
    return found  # type: ignore[no-any-return]


def grade_text(metric: Mapping[str, Any]) -> Text | None:
    """The grade of a metric, or both between which its interval lies: "Good – Excellent"; None where it has none.

    In its place stands why a judge's opinion has none (the judge is a stand-in, or has passed no exam), or that there
    are too few cases: every grade is possible.

    Args:
        metric: with `judge`, `grade`, `grade_high` and `ungraded`, as `evaluation.summary.summary` gives it.
    """
    if metric["judge"] not in (None, "passed"):
        return translations("standings", metric["judge"])
    low, high = metric["grade"], metric["grade_high"]
    if low is None:
        return translations("guidance", "too few to grade") if metric["ungraded"] else None
    names = [translations("grades", name) for name in dict.fromkeys((low, high))]
    return {language: " \N{EN DASH} ".join(name[language] for name in names) for language in LANGUAGES}
