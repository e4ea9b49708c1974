"""Counterfactual contexts: whether an answer gives the value that was put into its context, or the one that was there.

A model that answers from its context gives the changed value, one that answers from memory the original.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.facts import held_against, lost

Text = str | None


def follows_context(
    answers: Sequence[Text], originals: Sequence[Text], substitutes: Sequence[Text]
) -> NDArray[np.float64]:
    """Whether an answer gives the changed value, and not the original.

    Args:
        answers: n texts, None where there is none.
        originals: n sentences as they were, None where nothing was changed.
        substitutes: the same with another number or date.

    Returns:
        float64 (n,), 1 or 0; NaN without an answer, or where no fact of the sentences differs.

    Raises:
        ValueError: they differ in length.

    Stored as: `counterfactual_context_rate` (metrics/table/contexts.py).

    Reference: Longpre et al. 2021, Entity-based knowledge conflicts in question answering, EMNLP 2021, arXiv
    2109.05052, whose substitute and original answers these are.

    Example:
        >>> from yarus.metrics.contexts import follows_context
        >>> follows_context(["15 мая", "12.05", "В мае."], ["До 12 мая."] * 3, ["До 15 мая."] * 3)
        array([1., 0., 0.])
    """
    return _given(answers, originals, substitutes, (False, True))


def follows_memory(
    answers: Sequence[Text], originals: Sequence[Text], substitutes: Sequence[Text]
) -> NDArray[np.float64]:
    """Whether an answer gives the original value, which its context did not have, and not the changed one.

    Args:
        answers, originals, substitutes: as `follows_context` takes them.

    Returns:
        float64 (n,), 1 or 0; NaN as there.

    Raises:
        ValueError: they differ in length.

    Stored as: `counterfactual_memory_rate` (metrics/table/contexts.py).

    Example:
        >>> from yarus.metrics.contexts import follows_memory
        >>> follows_memory(["15 мая", "12.05", "В мае."], ["До 12 мая."] * 3, ["До 15 мая."] * 3)
        array([0., 1., 0.])
    """
    return _given(answers, originals, substitutes, (True, False))


def follows_neither(
    answers: Sequence[Text], originals: Sequence[Text], substitutes: Sequence[Text]
) -> NDArray[np.float64]:
    """Whether an answer gives neither value, as a refusal does, or both.

    Args:
        answers, originals, substitutes: as `follows_context` takes them.

    Returns:
        float64 (n,), 1 or 0; NaN as there.

    Raises:
        ValueError: they differ in length.

    Stored as: `counterfactual_neither_rate` (metrics/table/contexts.py).

    Example:
        >>> from yarus.metrics.contexts import follows_neither
        >>> follows_neither(["15 мая, не 12 мая", "12.05", "В мае."], ["До 12 мая."] * 3, ["До 15 мая."] * 3)
        array([1., 0., 1.])
    """
    return _given(answers, originals, substitutes, (False, False), (True, True))


def _given(
    answers: Sequence[Text], originals: Sequence[Text], substitutes: Sequence[Text], *wanted: tuple[bool, bool]
) -> NDArray[np.float64]:
    """1 where what an answer gives of (original, substitute) is one of those wanted."""
    both = (_gives(answers, originals, substitutes), _gives(answers, substitutes, originals))
    return np.array([np.nan if None in pair else pair in wanted for pair in zip(*both, strict=True)], np.float64)


def _gives(answers: Sequence[Text], stating: Sequence[Text], other: Sequence[Text]) -> list[bool | None]:
    """Whether an answer states what only one of two sentences does."""
    own = lost(held_against(stating, other))
    found: list[bool | None] = []
    for held, facts in zip(held_against(stating, answers), own, strict=True):
        found.append(any(one.supported for one in held if one.fact in facts) if held and facts else None)
    return found
