"""The words that cases and documents about them are made of, for whoever reads a document and touches no table."""

from collections.abc import Mapping
from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from yarus.db.errors import unknown

Unit = Literal["chunk", "page"]
"""What counts as found."""
Twins: TypeAlias = Mapping[str, str]
"""Chunk or page -> the first of those that say the same; what stands alone is not in it."""

Status = Literal[
    "ok",
    "sut_error",
    "sut_refusal",
    "judge_error",
    "parse_error",
    "unlabelled",
    "stale_label",
    "not_applicable",
    "skipped_budget",
]
CANNOT_BE_MEASURED = ("unlabelled", "stale_label", "not_applicable")
"""Statuses of cases that no evaluation could have scored: they are left out of the coverage."""

SEVERITY: tuple[Status, ...] = (
    "sut_error",
    "unlabelled",
    "stale_label",
    "not_applicable",
    "judge_error",
    "parse_error",
    "skipped_budget",
    "sut_refusal",
    "ok",
)
"""Worst first: a case has the worst of its statuses. That the system failed comes before any lack of a label, and what
could not be measured before what a judge was unable to."""

Outcome = Literal["answered", "refused", "failed"]
"""What the system under test did, whatever is labelled and judged."""

MEASURED = ("ok", "sut_refusal")
SAID = ("ok", "judge_error", "parse_error", "skipped_budget")
"""Statuses of cases whose system may have answered and not declined, whatever became of the judging."""
FAILED = ("sut_error", "judge_error", "parse_error", "skipped_budget")
"""Statuses of cases that something stood in the way of; a bad score is a result, and no failure."""
STRATA = ("confirmed", "agreement", "contradicted")
"""Of the real users' cases, by what users said of the answer."""
HEADLINE_STRATUM = "confirmed"
"""The stratum whose metrics are the evaluation's, where a tier has strata."""
LAST_TURN = 2**62
TURNS: Mapping[str, tuple[int, int]] = {
    "standalone": (1, 1),
    "follow_up": (2, LAST_TURN),
    "turn_2": (2, 2),
    "turn_3": (3, 3),
    "turn_4_on": (4, LAST_TURN),
}
"""Of tier 3's cases where the source has dialogs, by first and last turn; a question of no dialog counts as the first.
Turns stand apart where a dialog has more than two."""
STRATA_OF: Mapping[str, tuple[str, ...]] = {"real_users": ("all", *STRATA), "tier3": tuple(TURNS)}
"""Tier -> its strata."""

FREE_TEXTS: tuple[str, ...] = ("question", "asked", "reason", "reference", "context", "answer", "answers", "judge_raw")
FREE_TEXTS += ("judge_reasons", "topic", "path", "text", "gold_context", "exam", "parallel", "passages", "claims")
FREE_TEXTS += ("nuggets", "history", "context_probe", "calls")
"""Columns in which anybody may have written anything, a phone number for example; `group` and `dialog` name users."""


class Note(TypedDict):
    """Something that was met when the cases were made, for people to know; with the figures of its sentence."""

    note: str
    n: NotRequired[int]
    of: NotRequired[int]
    value: NotRequired[float]
    evaluation: NotRequired[str]
    theirs: NotRequired[str]
    """The first three ids that labels name."""
    ours: NotRequired[str]
    """The first three ids of the corpus."""


NO_PAGES = "no pages"
"""The note on an evaluation whose source has no corpus: its system was asked, and what it finds cannot be scored."""


def tier_of_stratum(stratum: str | None) -> str | None:
    """The tier that has a stratum; None of None.

    Raises:
        InputError: no tier has it.
    """
    owners = {name: tier for tier, names in STRATA_OF.items() for name in names}
    if stratum is not None and stratum not in owners:
        raise unknown("stratum", stratum, owners)
    return owners.get(stratum or "")
