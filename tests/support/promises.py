"""What `readiness` promises of a source, held against what its tiers then measure. Imported by full name."""

import shlex
from typing import Any

import pytest

from tests.support.evaluations import evaluate
from yarus.db.errors import InputError
from yarus.deployments.upkeep.readiness import Ready, readiness
from yarus.flows.before.night_plan import plan_night
from yarus.tasks.cases.vocabulary import CANNOT_BE_MEASURED
from yarus.tasks.config.connections import source
from yarus.tasks.config.flow_parameters import Nightly
from yarus.tasks.config.tiers import TIERS


def check_promises(name: str) -> dict[str, dict[str, Any]]:
    """Run every tier that is promised of a source, in this process, and hold its cases against the promise.

    A night begins those and no others; one over a source of which nothing is promised is refused.

    Args:
        name: of the source.

    Returns:
        The summaries of the promised tiers.
    """
    promises = {ready.tier: ready for ready in readiness(source(name))}
    assert promises.keys() == TIERS.keys()
    check_night(name, promises)
    summaries = {}
    for tier, ready in promises.items():
        if ready.command is None:
            assert ready.questions == 0 and ready.missing is not None, ready
            continue
        summary = summaries[tier] = evaluate(tier, source=name, **_options(ready.command))
        assert summary["state"] == "completed", (name, tier, summary["error"])
        assert count_measurable(summary) == ready.questions, (name, tier, summary["statuses"])
    return summaries


def check_night(name: str, promises: dict[str, Ready]) -> None:
    """A night begins what is promised without options, and gives a reason for each of the others."""
    expected = [tier for tier in TIERS if (command := promises[tier].command) and not _options(command)]
    if not expected:
        with pytest.raises(InputError, match="nothing to measure"):
            plan_night(Nightly(source=name))
        return
    plan = plan_night(Nightly(source=name))
    assert plan.begun == expected
    assert {tier["tier"] for tier in plan.skipped} == TIERS.keys() - {*expected}
    assert all(tier["reason"] for tier in plan.skipped)


def count_measurable(summary: dict[str, Any]) -> int:
    """The cases of an evaluation that could be measured, whether anything failed or not."""
    return sum(n for status, n in summary["statuses"].items() if status not in CANNOT_BE_MEASURED)


def _options(command: str) -> dict[str, str]:
    """The options of a promised command beside its source."""
    words = shlex.split(command)[3:]
    options = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    del options["source"]
    return options
