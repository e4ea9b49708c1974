"""Which questions a label would teach most about, from the cases of evaluations.

Each reason is worth 0 to 1, and a question the sum of its reasons:

    disagreement  how far judges' scores for it lie apart, in one evaluation or between several; a gate's decision
                  against the user's score counts as 1
    uncertainty   how near a judge's score is to the middle: 1 - |2 score - 1|
    failure       1 where retrieval found nothing relevant, the system failed or refused, or the answer scored below 0.5
    unlabelled    0.5 where nothing is labelled: a label makes the question count at all; `none relevant` is one
"""

from collections.abc import Mapping, Sequence
from typing import Any

Case = Mapping[str, Any]
JUDGED = ("faithfulness", "answer_relevance", "answer_correctness", "e2e_score")
FAILED = ("sut_error", "sut_refusal", "judge_error", "parse_error")
LOW = 0.5
UNLABELLED = 0.5


def priority(cases: Sequence[Case], *, answerable: bool | None = None) -> dict[str, float]:
    """The reasons to label a question, by name, without those worth nothing.

    Args:
        cases: the question's rows in the named evaluations; none where no evaluation asked it.
        answerable: as annotated; False: people have said that nothing in the corpus is relevant.
    """
    reasons = {
        "disagreement": _disagreement(cases),
        "uncertainty": max((_uncertainty(case) for case in cases), default=0.0),
        "failure": float(any(map(_failed, cases))),
        "unlabelled": UNLABELLED if any(_unlabelled(case, answerable) for case in cases) else 0.0,
    }
    return {name: round(worth, 3) for name, worth in reasons.items() if worth > 0}


def _disagreement(cases: Sequence[Case]) -> float:
    scores = {metric: [case[metric] for case in cases if case.get(metric) is not None] for metric in JUDGED}
    apart = [max(given) - min(given) for given in scores.values() if given]
    apart += [abs(case["mean_abs_difference"]) for case in cases if case.get("mean_abs_difference") is not None]
    apart += [
        float(case["decision"] != case["shown"])
        for case in cases
        if case.get("decision") is not None and case.get("shown") is not None
    ]
    return max(apart, default=0.0)


def _uncertainty(case: Case) -> float:
    scores = (case[metric] for metric in JUDGED if case.get(metric) is not None)
    return max((1 - abs(2 * score - 1) for score in scores), default=0.0)


def _unlabelled(case: Case, answerable: bool | None) -> bool:
    """Whether people have not said yet what the case is measured by; of rankings that is what is relevant."""
    lacks = "unlabelled" in (case.get("status"), case.get("unmeasurable"))
    return lacks and not ("relevant" in case and answerable is False)


def _failed(case: Case) -> bool:
    missed = any(case.get(name) == 0 for name in ("hit_rate@10", "e2e_score"))
    low = any(case[name] < LOW for name in JUDGED if case.get(name) is not None)
    return missed or low or case.get("status") in FAILED or case.get("failure") is not None
