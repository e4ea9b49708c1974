"""The answers that a judge is examined with, by kind, and what each must do to its scores.

A kind says for which judged prompts it is damaged (the score must be low) and for which it is sound (the score must be
full); for the others it is not asked about.
"""

from typing import NamedTuple

FULL = 0.75
"""Scores from here on are full ones: nearer to 1 than to 0.5, which the prompts call partly right."""
PROMPTS = ("faithfulness", "answer_relevance", "answer_correctness", "e2e_score", "gate")
"""The judged prompts that every installation has; beside them there are the user's rubrics."""
_USEFUL = frozenset({"answer_correctness", "e2e_score", "gate"})


class Kind(NamedTuple):
    """A kind of answer in an exam."""

    damaged: frozenset[str]
    """Prompts whose score it must lower."""
    sound: frozenset[str]
    """Prompts whose score it must not lower."""


KINDS: dict[str, Kind] = {
    "reference": Kind(frozenset(), frozenset(PROMPTS)),
    "framed": Kind(frozenset(), frozenset(PROMPTS)),
    "sentence": Kind(frozenset(), frozenset({"faithfulness"})),
    "shorter": Kind(frozenset(), frozenset({"faithfulness"})),
    "number": Kind(_USEFUL | {"faithfulness"}, frozenset({"answer_relevance"})),
    "entity": Kind(_USEFUL | {"faithfulness"}, frozenset({"answer_relevance"})),
    "negation": Kind(_USEFUL | {"faithfulness"}, frozenset()),
    "half": Kind(_USEFUL - {"gate"}, frozenset()),
    "irrelevant": Kind(_USEFUL | {"answer_relevance"}, frozenset({"faithfulness"})),
    "other_question": Kind(_USEFUL | {"answer_relevance"}, frozenset()),
    "other_page": Kind(_USEFUL | {"answer_relevance", "faithfulness"}, frozenset()),
    "question": Kind(_USEFUL | {"answer_relevance"}, frozenset()),
    "empty": Kind(_USEFUL | {"answer_relevance"}, frozenset()),
    "instructed": Kind(_USEFUL | {"answer_relevance", "faithfulness"}, frozenset()),
    "instructed_context": Kind(frozenset({"faithfulness", "gate"}), frozenset()),
}
"""The reference, the same after opening words, a sentence of the context, a part of the answer in whole sentences; a
number or date changed, a name exchanged, a negation put in or out, a half left out, a true sentence that does not
answer, the answer to another question of the same page, of another page, the question repeated, an empty phrase; and
the answer of another page once more, where it or the context asks the judge for a high score."""
PLANTED = {"instructed": "other_page", "instructed_context": "other_page"}
"""Kinds that ask the judge for a high score -> the kind with the same answer and no request. They show whether the
judge obeys; they do not count for how well it tells answers apart."""
DAMAGES = tuple(name for name, kind in KINDS.items() if kind.damaged)
"""The kinds that are damaged for some prompt: what a rubric may name."""


def expected(kind: str, prompt: str, lowered_by: tuple[str, ...] = ()) -> bool | None:
    """Whether an answer of that kind is damaged for a prompt: True, or False where it is sound; None: it is not asked.

    Args:
        kind: of `KINDS`.
        prompt: of `PROMPTS`, or a rubric.
        lowered_by: of a rubric, the kinds that must lower its score; a reference and the same framed must not.

    Example:
        >>> from yarus.metrics.exam_kinds import expected
        >>> expected("number", "faithfulness"), expected("number", "answer_relevance"), expected("half", "gate")
        (True, False, None)
    """
    if prompt not in PROMPTS:
        return True if kind in lowered_by else False if lowered_by and kind in ("reference", "framed") else None
    of = KINDS[kind]
    return True if prompt in of.damaged else False if prompt in of.sound else None
