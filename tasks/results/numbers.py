"""Numbers as people read them: rounded here and nowhere else."""

from collections.abc import Mapping
from typing import Any

from metrics.table import METRICS

THIN = "\N{NARROW NO-BREAK SPACE}"
MINUS = "\N{MINUS SIGN}"


def shown(name: str, value: float | None, *, sign: bool = False) -> str:
    """A value of a metric: counts whole, percent and milliseconds with one digit, everything else with three.

    Args:
        name: of the metric, or a column; decides the unit.
        value: as stored; None is a dash.
        sign: write + too, for differences.
    """
    if value is None:
        return "—"
    unit = METRICS[name].unit if name in METRICS else ""
    digits = {"count": 0, "percent": 1, "ms": 1}.get(unit, 3)
    if unit == "ms" and abs(value) >= 100:
        digits = 0
    text = f"{value:{'+' if sign else ''},.{digits}f}".replace(",", THIN).replace("-", MINUS)
    return text + (f"{THIN}ms" if unit == "ms" and not sign else "")


def interval(name: str, metric: Mapping[str, Any]) -> str:
    """The interval of a metric, or nothing."""
    if metric["ci_low"] is None:
        return ""
    return f"{shown(name, metric['ci_low'])}\N{EN DASH}{shown(name, metric['ci_high'])}".replace(f"{THIN}ms", "")
