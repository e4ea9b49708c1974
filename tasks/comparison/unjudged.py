"""Two rankings that people have not judged equally far: how much of their difference that could be."""

import pyarrow as pa
import pyarrow.compute as pc

from yarus.metrics.metric import Metric
from yarus.metrics.statistics.differences.numbers import Number
from yarus.metrics.statistics.differences.paired import compare_numbers
from yarus.tasks.cases.table import floats
from yarus.tasks.comparison.common_cases import Pairs, groups_of
from yarus.tasks.results.incomplete.documents import Bounds, UnequallyJudged

SHARE = "judged@10"
CHANCE = 0.05


def unequally_judged(pairs: Pairs, headlines: list[Metric], seed: int) -> UnequallyJudged | None:
    """Whether the sides' shares of judged results differ by more than chance, and what that leaves of differences.

    Args:
        pairs: the common cases.
        headlines: of which bounds are told.
        seed: of the draws.

    Returns:
        None where the shares do not differ by more than chance, or are not known, or no headline rests on them.
    """
    a, b = (floats(side, SHARE) for side in pairs)
    one = compare_numbers({SHARE: Number(a=a, b=b, better="neither")}, seed=seed, groups=groups_of(pairs.a))[SHARE]
    if not one.comparison.p < CHANCE or any("if_right" not in side.column_names for side in pairs):
        return None
    found = {row.name: _bounds(row.name, *pairs) for row in headlines if _has(row.name, pairs)}
    bounds = {name: both for name, both in found.items() if both}
    return {"a": one.a, "b": one.b, "p": one.comparison.p, "bounds": bounds} if bounds else None


def _has(name: str, pairs: Pairs) -> bool:
    return all(name in {field.name for field in side["if_right"].type} for side in pairs)


def _bounds(name: str, a: pa.Table, b: pa.Table) -> Bounds | None:
    """The difference if every unjudged result of the one side were wrong and every one of the other right."""
    lowest = [floats(side, name) for side in (a, b)]
    highest = [
        pc.struct_field(side["if_right"].combine_chunks(), name).to_numpy(zero_copy_only=False) for side in (a, b)
    ]
    both = (lowest[0] + lowest[1]) == (lowest[0] + lowest[1])
    if not both.any():
        return None
    return {
        "low": float((lowest[1] - highest[0])[both].mean()),
        "high": float((highest[1] - lowest[0])[both].mean()),
    }
