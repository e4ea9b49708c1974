"""Read and check the gate file: pinned baselines and rules."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

from yarus.db.errors import InputError, unknown
from yarus.db.messages import Words
from yarus.metrics.metric import UNBOUNDED, Metric
from yarus.metrics.table import get_metric
from yarus.tasks.cases.table import CASE_COLUMNS
from yarus.tasks.cases.vocabulary import tier_of_stratum
from yarus.tasks.config.settings import get_settings
from yarus.tasks.config.tiers import TIERS

DEFAULT_FILE = Path("gate.toml")
Kind = Literal["floor", "ceiling", "no regression"]
COST_UNITS = {
    "cost_usd": "USD",
    "latency_ms": "ms",
    "retrieval_latency_ms": "ms",
    "tokens_in": "count",
    "tokens_out": "count",
}
COSTS = {
    name: Metric(
        name=name,
        tiers=tuple(TIERS),
        column=name,
        measures=CASE_COLUMNS[name].meaning,
        formula="mean over the cases that have it",
        high=UNBOUNDED,
        better="lower",
        unit=unit,
        signature=f"{name}|mean|v:1",
        undefined="no case has it",
        trust="Full where it was counted.",
        reading="A mean a case.",
    )
    for name, unit in COST_UNITS.items()
}
"""Costs of a case: per-case columns that are not quality metrics, gated by their mean."""


class GateRule(NamedTuple):
    """One condition of the gate."""

    metric: str
    kind: Kind
    bound: float | None = None
    """The floor, the ceiling, or the largest tolerated loss; None: no loss that is shown is tolerated."""
    tier: str | None = None
    """None: every tier that has the metric."""
    stratum: str | None = None


class GateRules(NamedTuple):
    """The content of a gate file."""

    file: str | None
    """None: the rules that apply without a file."""
    baselines: Mapping[str, str]
    """Tier -> evaluation."""
    rules: tuple[GateRule, ...]


def read_gate_rules(path: Path | None = None) -> GateRules:
    """Read a gate file; without one, no headline metric of a tier may get worse than in the evaluation before.

    Args:
        path: the file; None: `gate.toml` if it exists.

    Raises:
        InputError: the file does not exist or is not TOML, or has an unknown key, metric, tier or stratum, or a bound
            that the metric cannot have; the message has the place and the nearest match.
    """
    if path is None and not DEFAULT_FILE.exists():
        regressions = (
            GateRule(metric, "no regression", tier=name) for name, tier in TIERS.items() for metric in tier.headlines
        )
        return GateRules(None, {}, tuple(regressions))
    path = path or DEFAULT_FILE
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # TOML and UTF-8 errors are ValueErrors that name the line
        raise InputError("gate file {path}: {error}", path=path, error=error) from None
    _check_keys(content, ("baseline", "rule"), f"{path}:")
    rules = content.get("rule")
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise InputError("gate file {path}: expected rules, each begun by a line [[rule]]", path=path)
    parsed_rules = [
        rule
        for position, table in enumerate(rules, 1)
        for rule in _parse_rules(table, Words("{path}: rule {number}:", path=path, number=position))
    ]
    return GateRules(str(path), _check_baselines(content.get("baseline", {}), path), tuple(dict.fromkeys(parsed_rules)))


def configured_gate_rules() -> GateRules | None:
    """Return the rules of YARUS_GATE_FILE, which every evaluation is judged by when it ends; None if it is not set.

    Raises:
        InputError: the file cannot be used.
    """
    file = get_settings().gate_file
    return read_gate_rules(file) if file else None


def find_measure(name: str) -> Metric:
    """Return the declaration of the metric or cost that a rule names.

    Raises:
        InputError: there is no such metric or cost; the nearest is named.
    """
    if name in COSTS:
        return COSTS[name]
    try:
        return get_metric(name)
    except ValueError as error:
        if get_close_matches(name, COSTS, n=1):
            raise unknown("metric", name, COSTS) from None
        raise InputError(str(error)) from None


def _check_baselines(content: Any, path: Path) -> Mapping[str, str]:
    if not isinstance(content, dict) or not all(isinstance(name, str) for name in content.values()):
        raise InputError(
            'gate file {path}: expected [baseline] with lines like tier1 = "the id of an evaluation"', path=path
        )
    for tier in content:
        if tier not in TIERS:
            raise InputError("gate file {path}: [baseline]: {error}", path=path, error=unknown("tier", tier, TIERS))
    return content


def _parse_rules(table: dict[str, Any], place: str) -> Iterable[GateRule]:
    """Return one rule per given bound; without a bound, a no-regression rule."""
    _check_keys(table, ("metric", "floor", "ceiling", "margin", "tier", "stratum"), place)
    for name in ("metric", "tier", "stratum"):
        if not isinstance(table.get(name, ""), str):
            raise InputError(
                "gate file {place} {name} = {given!r}: expected a name in quotes",
                place=place,
                name=name,
                given=table[name],
            )
    if "metric" not in table:
        raise InputError('gate file {place} it names no metric; add a line like metric = "mrr"', place=place)
    try:
        metric = find_measure(table["metric"])
        tier, stratum = table.get("tier"), table.get("stratum")
        _check_tier(metric, tier, stratum)
        bounds = {
            name: _check_bound(metric, name, table[name]) for name in ("floor", "ceiling", "margin") if name in table
        }
    except InputError as error:
        raise InputError("gate file {place} {error}", place=place, error=error) from None
    kinds: dict[str, Kind] = {"floor": "floor", "ceiling": "ceiling", "margin": "no regression"}
    if (not bounds or "margin" in bounds) and metric.better == "neither":
        raise InputError(
            "gate file {place} of {metric} neither direction is better; give a floor or ceiling",
            place=place,
            metric=metric.name,
        )
    if not bounds:
        return [GateRule(metric.name, "no regression", None, tier, stratum)]
    return [GateRule(metric.name, kinds[name], bound, tier, stratum) for name, bound in bounds.items()]


def _check_tier(metric: Metric, tier: str | None, stratum: str | None) -> None:
    if tier is not None and tier not in TIERS:
        raise unknown("tier", tier, TIERS)
    owner = tier_of_stratum(stratum)
    tier = tier or owner
    if tier is not None and tier not in metric.tiers:
        raise InputError(
            "{tier} has no metric {metric!r}; it is measured by: {tiers}",
            tier=tier,
            metric=metric.name,
            tiers=", ".join(metric.tiers),
        )
    if owner not in (None, tier):
        raise InputError(
            "stratum {stratum!r}: only {owner} has it, not {tier}", stratum=stratum, owner=owner, tier=tier
        )


def _check_bound(metric: Metric, name: str, value: Any) -> float:
    """Return the bound as a number that the metric can reach and can miss."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InputError("{name} = {given!r}: expected a number", name=name, given=value)
    wrong_direction = {"floor": Words("lower"), "ceiling": Words("higher")}.get(name)
    if metric.better == wrong_direction:
        other_bound = "ceiling" if name == "floor" else "floor"
        raise InputError(
            "{name} = {given}: {metric} is better when it is {wrong}; give a {other}",
            name=name,
            given=value,
            metric=metric.name,
            wrong=wrong_direction,
            other=other_bound,
        )
    low, high = (0.0, metric.high - metric.low) if name == "margin" else (metric.low, metric.high)
    if not low <= value <= high or (name == "margin" and value == high):
        raise InputError(
            "{name} = {given}: {metric} lies between {low:g} and {high:g}",
            name=name,
            given=value,
            metric=metric.name,
            low=metric.low,
            high=metric.high,
        )
    return float(value)


def _check_keys(table: dict[str, Any], allowed: tuple[str, ...], place: str) -> None:
    for name in table:
        if name not in allowed:
            raise InputError("gate file {place} {error}", place=place, error=unknown("key", name, allowed))
