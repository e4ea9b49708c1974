"""The metrics of a judge's exam: the discrimination of each prompt."""

from yarus.metrics.exam_kinds import PROMPTS
from yarus.metrics.metric import RUBRIC_PREFIX, Metric

EXAM_VERSION = 1
"""The version of how damaged answers are made: another version is another exam."""
PARTS = ("exam_auc", "exam_sensitivity", "exam_specificity")
_TRUST = (
    "High for the damage that was planted, which is coarser than what systems do wrong: a judge that fails here is of "
    "no use, one that passes still needs people's labels."
)
_UNDEFINED = "no exam was held of this prompt, no case could be damaged so, or the judge gave no readable score"


def exam_metrics(prompt: str) -> tuple[Metric, ...]:
    """Return the three rows of a judged prompt, or of a user-defined rubric.

    Example:
        >>> from yarus.metrics.table.exam import exam_metrics
        >>> [row.name for row in exam_metrics("gate")]
        ['exam_auc_gate', 'exam_sensitivity_gate', 'exam_specificity_gate']
    """
    return (
        _exam_metric(
            "auc",
            prompt,
            f"Whether the judge's {prompt} scores tell sound answers from damaged ones of the same case.",
            "share of pairs (sound, damaged) of a case in which the sound one scores higher, equal ones one half; mean "
            "over cases",
            "0.5 is what any judge reaches that does not read. Over 0.9 excellent, 0.7 to 0.9 good; below 0.7 the "
            "prompt's scores have no grade.",
            equals="sklearn.metrics.roc_auc_score, case by case",
            source="Hanley and McNeil 1982, The meaning and use of the area under a ROC curve",
            thresholds=(0.7, 0.9),
        ),
        _exam_metric(
            "sensitivity",
            prompt,
            f"Share of the damaged answers that the {prompt} prompt did not give a full score.",
            "mean over cases of [score < 0.75] over their damaged answers",
            "1: every damage was caught. A judge that is never content reaches it too: read it beside the specificity.",
        ),
        _exam_metric(
            "specificity",
            prompt,
            f"Share of the sound answers that the {prompt} prompt gave a full score.",
            "mean over cases of [score >= 0.75] over their sound answers",
            "1: nothing sound was marked down. A judge that is always content reaches it too: see the sensitivity.",
        ),
    )


def exam_metric(name: str) -> Metric:
    """Return the exam metric with a stored name.

    Raises:
        KeyError: no exam metric has this name.

    Example:
        >>> from yarus.metrics.table.exam import exam_metric
        >>> exam_metric("exam_auc_rubric_politeness").column
        'exam_auc_rubric_politeness'
    """
    for part in PARTS:
        prompt = name.removeprefix(f"{part}_")
        if prompt != name and (prompt in PROMPTS or prompt.startswith(RUBRIC_PREFIX)):
            return next(row for row in exam_metrics(prompt) if row.name == name)
    raise KeyError(name)


def _exam_metric(part: str, prompt: str, measures: str, formula: str, reading: str, **more: object) -> Metric:
    name = f"exam_{part}_{prompt}"
    return Metric(
        name=name,
        tiers=("judge",),
        function=f"exam.{part}",
        column=name,
        measures=measures,
        formula=formula,
        kind="hybrid",
        opinion=prompt,
        checked=True,
        signature=f"{name}|full:0.75|twins:{EXAM_VERSION}|v:1",
        undefined=_UNDEFINED,
        trust=_TRUST,
        reading=reading,
        **more,  # type: ignore[arg-type]
    )


EXAM = tuple(row for prompt in PROMPTS for row in exam_metrics(prompt))
