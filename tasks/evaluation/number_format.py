"""Format numbers and grades for people and programs; no other module rounds."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from yarus.metrics.table import METRICS
from yarus.tasks.config.texts import LANGUAGES, TranslatedText, translations

T = TypeVar("T")
THIN_SPACE = "\N{NARROW NO-BREAK SPACE}"
MINUS_SIGN = "\N{MINUS SIGN}"
DIGITS = {"count": 0, "percent": 1, "ms": 1, "USD": 6}
"""Digits after the decimal point, by unit; other units have three."""


def metric_unit(name: str) -> str:
    """Return the unit of a metric, or an empty string if the table has no such metric, e.g. a user's own rubric."""
    return METRICS[name].unit if name in METRICS else ""


def format_rounded(value: float, unit: str, how: str = "") -> str:
    """Format a value with the digits of its unit.

    Args:
        value: the number.
        unit: as in `DIGITS`.
        how: "," to separate thousands, "+" to write the sign, or both.
    """
    return f"{value:{how}.{DIGITS.get(unit, 3)}f}"


def format_percent(share: float) -> str:
    """Format a share as a whole percentage."""
    return f"{share:.0%}".replace("%", " %")


def format_metric(name: str, value: float | None, *, sign: bool = False) -> str:
    """Format a metric value: counts with no decimals, percent and milliseconds with one, others with three.

    Args:
        name: of the metric, or a column.
        value: as stored; None is a dash.
        sign: write + too, for differences.
    """
    if value is None:
        return "—"
    unit = metric_unit(name)
    digits = "count" if unit == "ms" and abs(value) >= 100 else unit
    text = format_rounded(value, digits, "+," if sign else ",").replace(",", THIN_SPACE).replace("-", MINUS_SIGN)
    return text + (f"{THIN_SPACE}ms" if unit == "ms" and not sign else "")


def use_minus_sign(text: str) -> str:
    """Replace the hyphen before numbers by a minus sign, which is as wide as a plus, for HTML pages."""
    return re.sub(r"(?<![\w-])-(?=\d)", MINUS_SIGN, text)


def format_interval(name: str, metric: Mapping[str, Any]) -> str:
    """Format the interval of a metric, or return an empty string; `≥` if it has no upper end."""
    if metric["ci_low"] is None:
        return ""
    if metric["ci_high"] is None:
        return f"≥{THIN_SPACE}{format_metric(name, metric['ci_low'])}"
    return f"{format_metric(name, metric['ci_low'])}\N{EN DASH}{format_metric(name, metric['ci_high'])}".replace(
        f"{THIN_SPACE}ms", ""
    )


def format_plain_interval(metric: Mapping[str, Any], write: Callable[[float], str]) -> str:
    """Format the interval of a metric in plain text, or return an empty string; `≥` if it has no upper end.

    Args:
        metric: with `ci_low` and `ci_high`.
        write: how a value of it is written.
    """
    if metric["ci_low"] is None:
        return ""
    if metric["ci_high"] is None:
        return f"≥ {write(metric['ci_low'])}"
    return f"{write(metric['ci_low'])} – {write(metric['ci_high'])}"


def format_difference_interval(name: str, difference: Mapping[str, Any]) -> str:
    """Format the interval of a difference, or return an empty string."""
    if difference["ci_low"] is None:
        return ""
    low, high = (format_metric(name, difference[key], sign=True) for key in ("ci_low", "ci_high"))
    return f"{low} … {high}"


def replace_non_finite(value: T) -> T:
    """Replace numbers that JSON does not have (NaN, infinity) by None, at any depth."""
    result: Any = value
    if isinstance(value, float):
        result = float(value) if math.isfinite(value) else None
    elif isinstance(value, dict):
        result = {name: replace_non_finite(part) for name, part in value.items()}
    elif isinstance(value, list | tuple):
        result = [replace_non_finite(part) for part in value]
    return result  # type: ignore[no-any-return]


def format_grade(metric: Mapping[str, Any]) -> TranslatedText | None:
    """Return the grade of a metric, or both ends of its range ("Good – Excellent"), or None if it has none.

    If the value is the opinion of a judge that has not passed an exam, the text says so instead. If there are too few
    cases, so that every grade is possible, the text says that.

    Args:
        metric: with `judge`, `grade`, `grade_high` and `ungraded`, as `evaluation.summary.read_summary` gives it.
    """
    if metric["judge"] not in (None, "passed"):
        return translations("standings", metric["judge"])
    low, high = metric["grade"], metric["grade_high"]
    if low is None:
        return translations("guidance", "too few to grade") if metric["ungraded"] else None
    names = [translations("grades", name) for name in dict.fromkeys((low, high))]
    return {language: " \N{EN DASH} ".join(name[language] for name in names) for language in LANGUAGES}
