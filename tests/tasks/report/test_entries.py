"""Evaluations in a report."""

from typing import Any

import pytest

from yarus.tasks.report.entries import ReportEntry


@pytest.mark.parametrize(
    ("resolved", "is_auxiliary"),
    [({"again": "tier1-1"}, True), ({"anchor": "tier3-1"}, True), ({"part_of": "sweep-1"}, False), (None, False)],
)
def test_repeats_and_anchors_are_auxiliary(resolved: dict[str, str] | None, is_auxiliary: bool) -> None:
    row: Any = {"tier": "tier1", "resolved": resolved}
    summary: Any = {"tier": "tier1"}
    assert ReportEntry("tier1", row, summary).is_auxiliary == is_auxiliary
