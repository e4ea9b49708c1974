"""What the system under test did with each case, whatever is labelled; and which cases could be measured at all."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa

from yarus.tasks.cases.table import with_columns
from yarus.tasks.cases.vocabulary import CANNOT_BE_MEASURED, Outcome


class Done(NamedTuple):
    """What the system did with a case."""

    outcome: Outcome | None = None
    """None where it was not asked, or only in part: for the ranking of a question whose answer nobody could judge."""
    reason: str | None = None
    """Why it failed or refused."""


def with_failures(cases: pa.Table, failures: Mapping[int, str | None]) -> pa.Table:
    """The cases with those marked at which the system failed, labelled or not; `unmeasurable` keeps what the label was.

    Args:
        cases: n rows.
        failures: number of the case -> why.
    """
    lacking = unmeasurable(cases)
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    for number, why in failures.items():
        if statuses[number] in ("ok", *CANNOT_BE_MEASURED):
            statuses[number], reasons[number] = "sut_error", why
    return with_columns(cases, status=statuses, reason=reasons, unmeasurable=lacking)


def with_outcomes(cases: pa.Table, done: Sequence[Done]) -> pa.Table:
    """The cases with what the system did; a failure is the status of any, a refusal of one that could be measured.

    Args:
        cases: n rows.
        done: what it did with each; where it was not asked, a failure that was marked before stays one.
    """
    cases = with_failures(cases, {number: of.reason for number, of in enumerate(done) if of.outcome == "failed"})
    statuses, reasons = cases["status"].to_pylist(), cases["reason"].to_pylist()
    outcomes = [of.outcome for of in done]
    for number, lacks in enumerate(cases["unmeasurable"].to_pylist()):
        if outcomes[number] == "refused" and statuses[number] == "ok":
            statuses[number], reasons[number] = "sut_refusal", done[number].reason
        elif outcomes[number] is None and statuses[number] == "sut_error" and lacks is None:
            outcomes[number] = "failed"
    return with_columns(cases, status=statuses, reason=reasons, outcome=outcomes)


def unmeasurable(cases: pa.Table) -> list[str | None]:
    """Why each case could not be measured whatever the system does; None where it could.

    Of cases that no system can have failed at, and of those stored by earlier versions, it is the status.
    """
    now = [status if status in CANNOT_BE_MEASURED else None for status in cases["status"].to_pylist()]
    if "unmeasurable" not in cases.column_names:
        return now
    return [known or status for known, status in zip(cases["unmeasurable"].to_pylist(), now, strict=True)]
