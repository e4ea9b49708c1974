"""Claims about verdicts and intervals with few repetitions: the short form of `make simulate`."""

from importlib import import_module

import pytest

from benchmarks.simulations import Area, Claim, incomplete
from benchmarks.simulations.__main__ import AREAS, table

EFFORT = {
    "verdicts": 0.05,
    "baselines": 0.03,
    "samples": 0.03,
    "intervals": 0.03,
    "differences": 0.1,
    "grades": 0.1,
    "trends": 0.1,
    "exams": 0.1,
    "corrected": 0.02,
    "users": 0.01,
    "crashes": 0.01,
    "incomplete": 0.25,
    "filled": 0.1,
    "alarms": 0.01,
    "moving_topics": 0.01,
    "explained": 0.1,
    "showing": 0.1,
    "facts": 0.2,
    "probes": 0.03,
    "topics": 0.1,
}
CHEAP = ("verdicts", "baselines", "samples")
REST = pytest.mark.slow("simulation: an area takes 4 to 25 s")


@pytest.mark.parametrize("area", [pytest.param(area, marks=() if area in CHEAP else REST) for area in EFFORT])
def test_every_claim_holds(area: str) -> None:
    module: Area = import_module(f"benchmarks.simulations.{area}")  # type: ignore[assignment]
    claims = list(module.claims(EFFORT[area]))
    if area in ("incomplete", "filled", "facts") and not incomplete.XQUAD.exists():
        pytest.skip(f"needs XQuAD at {incomplete.XQUAD}")
    assert claims
    assert [claim for claim in claims if not claim.holds] == []


def test_areas_have_short_form() -> None:
    assert set(EFFORT) == set(AREAS)


def test_claim_holds_within_chance() -> None:
    """300 of 10,000 at most: 3 % +- 0.17 % of chance."""
    assert Claim("fails", 0, 0.03, 0.034, 10_000).holds
    assert not Claim("fails", 0, 0.03, 0.036, 10_000).holds
    assert not Claim("held", 0.93, 0.97, 0.9, 10_000).holds
    assert not Claim("nights", 0, 2, 2.01, 300, is_share=False).holds
    assert "NO" in "".join(table("area", [Claim("nights", 0, 2, 3, 300, is_share=False)]).columns[-1].cells)
