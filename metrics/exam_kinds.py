"""The kinds of answers in a judge's exam, and the expected effect of each on the scores.

A kind states for which judged prompts it is damaged (the score must be low) and for which it is sound (the score must
be full); it is not used for the others.
"""

from typing import NamedTuple

FULL_SCORE = 0.75
"""Least full score: nearer to 1 than to 0.5, which the prompts call partly right."""
PROMPTS = ("faithfulness", "answer_relevance", "answer_correctness", "e2e_score", "gate")
"""The judged prompts of every installation; users may add rubrics."""
_USEFUL = frozenset({"answer_correctness", "e2e_score", "gate"})


class AnswerKind(NamedTuple):
    """A kind of answer in an exam."""

    damaged: frozenset[str]
    """Prompts whose score it must lower."""
    sound: frozenset[str]
    """Prompts whose score it must not lower."""


KINDS: dict[str, AnswerKind] = {
    "reference": AnswerKind(frozenset(), frozenset(PROMPTS)),
    "framed": AnswerKind(frozenset(), frozenset(PROMPTS)),
    "sentence": AnswerKind(frozenset(), frozenset({"faithfulness"})),
    "shorter": AnswerKind(frozenset(), frozenset({"faithfulness"})),
    "number": AnswerKind(_USEFUL | {"faithfulness"}, frozenset({"answer_relevance"})),
    "entity": AnswerKind(_USEFUL | {"faithfulness"}, frozenset({"answer_relevance"})),
    "negation": AnswerKind(_USEFUL | {"faithfulness"}, frozenset()),
    "half": AnswerKind(_USEFUL - {"gate"}, frozenset()),
    "irrelevant": AnswerKind(_USEFUL | {"answer_relevance"}, frozenset({"faithfulness"})),
    "other_question": AnswerKind(_USEFUL | {"answer_relevance"}, frozenset()),
    "other_page": AnswerKind(_USEFUL | {"answer_relevance", "faithfulness"}, frozenset()),
    "question": AnswerKind(_USEFUL | {"answer_relevance"}, frozenset()),
    "empty": AnswerKind(_USEFUL | {"answer_relevance"}, frozenset()),
    "instructed": AnswerKind(_USEFUL | {"answer_relevance", "faithfulness"}, frozenset()),
    "instructed_context": AnswerKind(frozenset({"faithfulness", "gate"}), frozenset()),
}
"""The reference, the same after opening words, a sentence of the context, a part of the answer in whole sentences; a
changed number or date, an exchanged name, an added or removed negation, half of the reference, a true sentence that
does not answer, the answer to another question of the same page, of another page, the question repeated, an empty
phrase; and the answer of another page again, with a request for a high score in it or in the context."""
INSTRUCTED_KINDS = {"instructed": "other_page", "instructed_context": "other_page"}
"""Kinds that ask the judge for a high score -> the kind with the same answer and no request. They show whether the
judge obeys; they do not count for its sensitivity."""
DAMAGES = tuple(name for name, kind in KINDS.items() if kind.damaged)
"""The kinds that are damaged for some prompt: those that a rubric may name."""


def expects_damage(kind: str, prompt: str, lowered_by: tuple[str, ...] = ()) -> bool | None:
    """Return whether an answer of a kind is damaged for a prompt (True) or sound (False); None if it is not used.

    Args:
        kind: in `KINDS`.
        prompt: in `PROMPTS`, or a rubric.
        lowered_by: for a rubric, the kinds that must lower its score; a reference and the same framed must not.

    Example:
        >>> from yarus.metrics.exam_kinds import expects_damage
        >>> [expects_damage("number", name) for name in ("faithfulness", "answer_relevance")]
        [True, False]
        >>> expects_damage("half", "gate") is None
        True
    """
    if prompt not in PROMPTS:
        return True if kind in lowered_by else False if lowered_by and kind in ("reference", "framed") else None
    definition = KINDS[kind]
    return True if prompt in definition.damaged else False if prompt in definition.sound else None
