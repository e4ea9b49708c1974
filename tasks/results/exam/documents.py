"""What an exam says of a judge, prompt by prompt, as JSON has it."""

from typing import Literal, get_args

from typing_extensions import TypedDict

Outcome = Literal[
    "sound",
    "weak",
    "scale",
    "blind",
    "obeys",
    "chance",
    "inverted",
    "constant",
    "length",
    "unreadable",
    "incomplete",
    "few",
]


class KindOutcome(TypedDict):
    """How a prompt scored the answers of one kind."""

    kind: str
    """Of `yarus.metrics.exam_kinds.KINDS`."""
    damaged: bool
    """Whether the score must be low."""
    right: int
    """Answers that got a score of the kind that they deserve."""
    n: int
    """Answers that got a score."""
    failed: int
    """Answers without one."""


class Mistake(TypedDict):
    """An answer whose score is farthest from what it deserves."""

    case_id: str
    kind: str
    score: float


class PromptExam(TypedDict):
    """What the exam says of one prompt."""

    outcome: Outcome
    """`sound`: it tells damaged answers from sound ones. `weak`: above chance, but under 0.7. `scale`: in their order,
    but on another scale: too many damaged ones get full scores, or sound ones low ones. `blind`: all but those of
    `blind_to`. `obeys`: it follows instructions in what it judges. `chance`: no better than it;
    `inverted`: worse. `constant`: it gives one score; `length`: it goes by the length of the answer.
    `unreadable`: too many of its replies cannot be read; `incomplete`: too few answers have a score; `few`: too few
    cases to tell.
    """
    cases: int
    """Examined cases with a score."""
    scored: int
    """Answers that got a score."""
    asked: int
    score: float | None
    """The one score of a judge that is `constant`."""
    length_correlation: float | None
    """Of the score with the length of the answer, among answers of equal worth; null where either does not vary."""
    blind_to: list[str]
    """Kinds of damage, scripts of the questions (`cyrillic`, `latin`, `other`) and halves by length of the answer
    (`short`, `long`) in which it does not tell damaged answers from sound ones; of a judge that is better than chance
    as a whole."""
    kinds: list[KindOutcome]
    worst: list[Mistake]


Exam = dict[str, PromptExam]
"""Prompt -> what its exam says."""
CONCLUSIVE = (*(outcome for outcome in get_args(Outcome) if outcome not in ("incomplete", "few")), "coarse")
"""The outcomes that say something of a judge; an older exam goes before one of the others. `coarse` is what earlier
versions called a judge that misses changed numbers, names and negations."""
