"""The gate's file: pinned baselines and rules, checked word by word before anything is judged."""

import math
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

from yarus.db.errors import InputError, unknown
from yarus.db.words import Words
from yarus.metrics.metric import INFINITE, Metric
from yarus.metrics.table import metric as declared
from yarus.tasks.cases.table import COLUMNS
from yarus.tasks.cases.vocabulary import tier_of_stratum
from yarus.tasks.config.settings import settings
from yarus.tasks.config.tiers import TIERS

FILE = Path("gate.toml")
Kind = Literal["floor", "ceiling", "no regression"]
UNITS = {
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
        measures=COLUMNS[name].meaning,
        formula="mean over the cases that have it",
        high=INFINITE,
        better="lower",
        unit=unit,
        signature=f"{name}|mean|v:1",
        undefined="no case has it",
        trust="Full where it was counted.",
        reading="A mean a case.",
    )
    for name, unit in UNITS.items()
}
"""What a case takes: per-case columns that are no metrics of quality, gated by their mean."""


class Rule(NamedTuple):
    """One thing that must hold."""

    metric: str
    kind: Kind
    bound: float | None = None
    """The floor, the ceiling, or the largest tolerated loss; None: any loss that is shown is one too many."""
    tier: str | None = None
    """None: every tier that has the metric."""
    stratum: str | None = None


class Policy(NamedTuple):
    """What a gate file says."""

    file: str | None
    """None: the rules that hold without one."""
    baselines: Mapping[str, str]
    """Tier -> evaluation."""
    rules: tuple[Rule, ...]


def read_policy(path: Path | None = None) -> Policy:
    """Reads a gate file; without one, no headline metric of a tier may get worse than in the evaluation before.

    Args:
        path: the file; None: `gate.toml` where it is there.

    Raises:
        InputError: the file is not there or not TOML, or has an unknown key, metric, tier or stratum, or a bound that
            the metric cannot have; the place and the nearest match are named.
    """
    if path is None and not FILE.exists():
        regressions = (
            Rule(metric, "no regression", tier=name) for name, tier in TIERS.items() for metric in tier.headlines
        )
        return Policy(None, {}, tuple(regressions))
    path = path or FILE
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # TOML and UTF-8 errors are ValueErrors that name the line
        raise InputError("gate file {path}: {error}", path=path, error=error) from None
    _known_keys(content, ("baseline", "rule"), f"{path}:")
    rules = content.get("rule")
    if not isinstance(rules, list) or not all(isinstance(rule, dict) for rule in rules):
        raise InputError("gate file {path}: expected rules, each begun by a line [[rule]]", path=path)
    found = [
        rule
        for number, given in enumerate(rules, 1)
        for rule in _rules(given, Words("{path}: rule {number}:", path=path, number=number))
    ]
    return Policy(str(path), _baselines(content.get("baseline", {}), path), tuple(dict.fromkeys(found)))


def policy_set() -> Policy | None:
    """What every evaluation is judged by when it ends, of YARUS_GATE_FILE; None where that is not set.

    Raises:
        InputError: the file cannot be used.
    """
    file = settings().gate_file
    return read_policy(file) if file else None


def measure(name: str) -> Metric:
    """The declaration of what a rule names: a metric, or a cost.

    Raises:
        InputError: neither; the nearest is named.
    """
    if name in COSTS:
        return COSTS[name]
    try:
        return declared(name)
    except ValueError as error:
        if get_close_matches(name, COSTS, n=1):
            raise unknown("metric", name, COSTS) from None
        raise InputError(str(error)) from None


def _baselines(given: Any, path: Path) -> Mapping[str, str]:
    if not isinstance(given, dict) or not all(isinstance(name, str) for name in given.values()):
        raise InputError(
            'gate file {path}: expected [baseline] with lines like tier1 = "the id of an evaluation"', path=path
        )
    for tier in given:
        if tier not in TIERS:
            raise InputError("gate file {path}: [baseline]: {error}", path=path, error=unknown("tier", tier, TIERS))
    return given


def _rules(given: dict[str, Any], place: str) -> Iterable[Rule]:
    """A rule for every bound that is given; where none is, no regression."""
    _known_keys(given, ("metric", "floor", "ceiling", "margin", "tier", "stratum"), place)
    for name in ("metric", "tier", "stratum"):
        if not isinstance(given.get(name, ""), str):
            raise InputError(
                "gate file {place} {name} = {given!r}: expected a name in quotes",
                place=place,
                name=name,
                given=given[name],
            )
    if "metric" not in given:
        raise InputError('gate file {place} it names no metric; add a line like metric = "mrr"', place=place)
    try:
        metric = measure(given["metric"])
        tier, stratum = given.get("tier"), given.get("stratum")
        _check_place(metric, tier, stratum)
        bounds = {name: _bound(metric, name, given[name]) for name in ("floor", "ceiling", "margin") if name in given}
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
        return [Rule(metric.name, "no regression", None, tier, stratum)]
    return [Rule(metric.name, kinds[name], bound, tier, stratum) for name, bound in bounds.items()]


def _check_place(metric: Metric, tier: str | None, stratum: str | None) -> None:
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


def _bound(metric: Metric, name: str, given: Any) -> float:
    """The bound as a number that can be met and can be missed."""
    if isinstance(given, bool) or not isinstance(given, int | float) or not math.isfinite(given):
        raise InputError("{name} = {given!r}: expected a number", name=name, given=given)
    wrong = {"floor": Words("lower"), "ceiling": Words("higher")}.get(name)
    if metric.better == wrong:
        other = "ceiling" if name == "floor" else "floor"
        raise InputError(
            "{name} = {given}: {metric} is better when it is {wrong}; give a {other}",
            name=name,
            given=given,
            metric=metric.name,
            wrong=wrong,
            other=other,
        )
    low, high = (0.0, metric.high - metric.low) if name == "margin" else (metric.low, metric.high)
    if not low <= given <= high or (name == "margin" and given == high):
        raise InputError(
            "{name} = {given}: {metric} lies between {low:g} and {high:g}",
            name=name,
            given=given,
            metric=metric.name,
            low=metric.low,
            high=metric.high,
        )
    return float(given)


def _known_keys(given: dict[str, Any], known: tuple[str, ...], place: str) -> None:
    for name in given:
        if name not in known:
            raise InputError("gate file {place} {error}", place=place, error=unknown("key", name, known))
