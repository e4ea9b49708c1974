"""Counterfactual contexts: whether an answer gives the value that was put into its context, or the original one.

A model that answers from its context gives the changed value, one that answers from memory the original.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from yarus.metrics.facts import check_facts, unsupported_facts

Text = str | None


def follows_context(
    answers: Sequence[Text], originals: Sequence[Text], substitutes: Sequence[Text]
) -> NDArray[np.float64]:
    """Return whether each answer gives the changed value, and not the original.

    Args:
        answers: n texts, None for a missing answer.
        originals: n original sentences, None if nothing was changed.
        substitutes: the same with another number or date.

    Returns:
        float64 (n,), 1 or 0; NaN without an answer, or if no fact of the sentences differs.

    Raises:
        ValueError: different lengths.

    Stored as: `counterfactual_context_rate` (metrics/table/contexts.py).

    Reference: Longpre et al. 2021, Entity-based knowledge conflicts in question answering, EMNLP 2021, arXiv
    2109.05052, whose substitute and original answers these are.

    Example:
        >>> from yarus.metrics.contexts import follows_context
        >>> follows_context(["15 мая", "12.05", "В мае."], ["До 12 мая."] * 3, ["До 15 мая."] * 3)
        array([1., 0., 0.])
    """
    return _match_values(answers, originals, substitutes, (False, True))


def follows_memory(
    answers: Sequence[Text], originals: Sequence[Text], substitutes: Sequence[Text]
) -> NDArray[np.float64]:
    """Return whether each answer gives the original value, which its context did not have, and not the changed one.

    Args:
        answers, originals, substitutes: as in `follows_context`.

    Returns:
        float64 (n,), 1 or 0; NaN as in `follows_context`.

    Raises:
        ValueError: different lengths.

    Stored as: `counterfactual_memory_rate` (metrics/table/contexts.py).

    Example:
        >>> from yarus.metrics.contexts import follows_memory
        >>> follows_memory(["15 мая", "12.05", "В мае."], ["До 12 мая."] * 3, ["До 15 мая."] * 3)
        array([0., 1., 0.])
    """
    return _match_values(answers, originals, substitutes, (True, False))


def follows_neither(
    answers: Sequence[Text], originals: Sequence[Text], substitutes: Sequence[Text]
) -> NDArray[np.float64]:
    """Return whether each answer gives neither value, as a refusal does, or both.

    Args:
        answers, originals, substitutes: as in `follows_context`.

    Returns:
        float64 (n,), 1 or 0; NaN as in `follows_context`.

    Raises:
        ValueError: different lengths.

    Stored as: `counterfactual_neither_rate` (metrics/table/contexts.py).

    Example:
        >>> from yarus.metrics.contexts import follows_neither
        >>> follows_neither(["15 мая, не 12 мая", "12.05", "В мае."], ["До 12 мая."] * 3, ["До 15 мая."] * 3)
        array([1., 0., 1.])
    """
    return _match_values(answers, originals, substitutes, (False, False), (True, True))


def _match_values(
    answers: Sequence[Text], originals: Sequence[Text], substitutes: Sequence[Text], *matching: tuple[bool, bool]
) -> NDArray[np.float64]:
    """Return 1 if what an answer gives of (original, substitute) is one of the matching pairs."""
    gives = (_states_own_facts(answers, originals, substitutes), _states_own_facts(answers, substitutes, originals))
    return np.array([np.nan if None in pair else pair in matching for pair in zip(*gives, strict=True)], np.float64)


def _states_own_facts(answers: Sequence[Text], sentences: Sequence[Text], others: Sequence[Text]) -> list[bool | None]:
    """Return whether each answer states what only the first of two sentences does."""
    own_facts = unsupported_facts(check_facts(sentences, others))
    stated: list[bool | None] = []
    for checks, facts in zip(check_facts(sentences, answers), own_facts, strict=True):
        stated.append(any(check.supported for check in checks if check.fact in facts) if checks and facts else None)
    return stated
