"""Terms of cases and of documents about them, for code that reads no table."""

from collections.abc import Mapping
from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from yarus.db.errors import unknown

Unit = Literal["chunk", "page"]
"""Unit of retrieval: what counts as a result."""
Duplicates: TypeAlias = Mapping[str, str]
"""Chunk or page -> the first of its duplicates; without entries for those that have none."""

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
UNMEASURABLE_STATUSES = ("unlabelled", "stale_label", "not_applicable")
"""Statuses of cases that no evaluation can score; coverage leaves them out."""

STATUSES_BY_SEVERITY: tuple[Status, ...] = (
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
"""Statuses, worst first; a case gets the worst of its statuses. A failure of the system precedes missing labels, and
these precede failures of a judge."""

Outcome = Literal["answered", "refused", "failed"]
"""Outcome of a question to the system under test, independent of labels and judging."""

MEASURED_STATUSES = ("ok", "sut_refusal")
ANSWERED_STATUSES = ("ok", "judge_error", "parse_error", "skipped_budget")
"""Statuses of cases that the system may have answered, whether or not judging succeeded."""
FAILED_STATUSES = ("sut_error", "judge_error", "parse_error", "skipped_budget")
"""Statuses of cases that failed technically; a bad score is a result, not a failure."""
USER_STRATA = ("confirmed", "agreement", "contradicted")
"""Strata of the real users' cases, by the users' ratings of the answer."""
HEADLINE_STRATUM = "confirmed"
"""The stratum whose metrics are the evaluation's, if a tier has strata."""
LAST_TURN = 2**62
TURN_STRATA: Mapping[str, tuple[int, int]] = {
    "standalone": (1, 1),
    "follow_up": (2, LAST_TURN),
    "turn_2": (2, 2),
    "turn_3": (3, 3),
    "turn_4_on": (4, LAST_TURN),
}
"""Strata of tier 3's cases, by first and last turn, if the source has dialogs; single questions are first turns.
Turns have their own strata if a dialog has more than two."""
STRATA_OF: Mapping[str, tuple[str, ...]] = {"real_users": ("all", *USER_STRATA), "tier3": tuple(TURN_STRATA)}
"""Tier -> its strata."""

FREE_TEXTS: tuple[str, ...] = ("question", "asked", "reason", "reference", "context", "answer", "answers", "judge_raw")
FREE_TEXTS += ("judge_reasons", "topic", "path", "text", "gold_context", "exam", "parallel", "passages", "claims")
FREE_TEXTS += ("nuggets", "history", "context_probe", "calls")
"""Columns with free text, which may contain anything, such as a phone number; `group` and `dialog` name users."""


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


NO_PAGES_NOTE = "no pages"
"""The note on an evaluation whose source has no corpus: its system answered, but its results cannot be scored."""


def tier_of_stratum(stratum: str | None) -> str | None:
    """Return the tier that has a stratum; None for None.

    Raises:
        InputError: no tier has it.
    """
    tier_by_stratum = {stratum_name: tier for tier, strata in STRATA_OF.items() for stratum_name in strata}
    if stratum is not None and stratum not in tier_by_stratum:
        raise unknown("stratum", stratum, tier_by_stratum)
    return tier_by_stratum.get(stratum or "")
