"""Check the promises of `readiness` about a source against what its tiers then measure. Imported by full name."""

import shlex
from typing import Any

import pytest

from tests.support.evaluations import evaluate
from yarus.db.errors import InputError
from yarus.deployments.upkeep.readiness import TierReadiness, read_readiness
from yarus.flows.preflight.night_plan import plan_night
from yarus.tasks.cases.vocabulary import UNMEASURABLE_STATUSES
from yarus.tasks.config.connections import open_source
from yarus.tasks.config.flow_parameters import NightlyParameters
from yarus.tasks.config.tiers import TIERS


def check_promises(name: str) -> dict[str, dict[str, Any]]:
    """Run every promised tier of a source in this process, and check its cases against the promise.

    A nightly run starts those that need no options; it is refused if there is none.

    Args:
        name: name of the source.

    Returns:
        The summaries of the promised tiers.
    """
    promises = {ready.tier: ready for ready in read_readiness(open_source(name))}
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


def check_night(name: str, promises: dict[str, TierReadiness]) -> None:
    """Check that a nightly run starts the tiers promised without options, and gives a reason for the others."""
    expected = [tier for tier in TIERS if (command := promises[tier].command) and not _options(command)]
    if not expected:
        with pytest.raises(InputError, match="nothing to measure"):
            plan_night(NightlyParameters(source=name))
        return
    plan = plan_night(NightlyParameters(source=name))
    assert plan.begun == expected
    assert {tier["tier"] for tier in plan.skipped} == TIERS.keys() - {*expected}
    assert all(tier["reason"] for tier in plan.skipped)


def count_measurable(summary: dict[str, Any]) -> int:
    """Count the cases that could be measured, including those that failed."""
    return sum(n for status, n in summary["statuses"].items() if status not in UNMEASURABLE_STATUSES)


def _options(command: str) -> dict[str, str]:
    """Return the options of a promised command, except its source."""
    words = shlex.split(command)[3:]
    options = {name.removeprefix("--"): value for name, value in zip(words[::2], words[1::2], strict=True)}
    del options["source"]
    return options
