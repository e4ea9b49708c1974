"""Whether two evaluations compare: the parts in which their keys differ, and how that is refused."""

import json
from typing import Any

from sqlalchemy.engine import RowMapping

from yarus.db.errors import InputError
from yarus.db.words import Words, joined
from yarus.tasks.comparison.changes.changed_settings import flat
from yarus.tasks.comparison.documents import KeyDifference


def differences(a: RowMapping, b: RowMapping) -> list[KeyDifference]:
    """The parts of the comparability key in which two evaluations differ, with both values; none if they compare.

    Of lists (the metrics' signatures) only the entries that differ are given. Where the tiers differ, only they are.
    """
    if a["comparability_key"] is not None and a["comparability_key"] == b["comparability_key"]:
        return []
    if a["tier"] != b["tier"]:
        return [{"part": "tier", "a": a["tier"], "b": b["tier"]}]
    one, other = (dict(flat(row["comparability"] or {})) for row in (a, b))
    names = sorted(name for name in {**one, **other} if one.get(name) != other.get(name))
    parts = [_apart(name, one.get(name), other.get(name)) for name in names]
    if a["source"] != b["source"]:
        parts.insert(0, {"part": "source", "a": a["source"], "b": b["source"]})
    return parts or [{"part": "comparability_key", "a": a["comparability_key"], "b": b["comparability_key"]}]


def same_cases(part: str) -> bool:
    """Whether the case set may be the same although this part of the key differs."""
    return part != "source" and part.split(".")[0] != "cases"


def _apart(part: str, a: Any, b: Any) -> KeyDifference:
    if isinstance(a, list) and isinstance(b, list):
        a, b = [entry for entry in a if entry not in b], [entry for entry in b if entry not in a]
    return {"part": part, "a": a, "b": b}


def refusal(a: RowMapping, b: RowMapping, differs: list[KeyDifference]) -> InputError:
    """The error that says why two evaluations cannot be compared, and what to do."""
    named = {part["part"]: part for part in differs}
    if unit := named.get("unit"):
        return InputError(
            "evaluations {before} and {after} cannot be compared: one counts a {of_before} as found, the other a "
            "{of_after}. Run one of them as the other was run: --unit {of_before}, or --unit {of_after}. --force sets "
            "the numbers side by side",
            before=a["id"],
            after=b["id"],
            of_before=unit["a"],
            of_after=unit["b"],
        )
    return InputError(
        "evaluations {before} and {after} cannot be compared: {differs}. --force compares them anyway",
        before=a["id"],
        after=b["id"],
        differs=joined(
            Words(
                "{part} is {before} and {after}",
                part=part["part"],
                before=json.dumps(part["a"], ensure_ascii=False),
                after=json.dumps(part["b"], ensure_ascii=False),
            )
            for part in differs
        ),
    )
