"""The exam's metrics against scikit-learn, and the expected effect of each kind of answer."""

from itertools import product

import numpy as np
import pytest

from yarus.metrics.exam import auc, obedience, sensitivity, specificity
from yarus.metrics.exam_kinds import DAMAGES, KINDS, PROMPTS, expects_damage


def test_exam_auc_equals_scikit_learn() -> None:
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(1)
    for _ in range(200):
        sound, damaged = (generator.integers(0, 5, generator.integers(1, 9)) / 4 for _ in range(2))
        truth = np.concatenate([np.ones(len(sound)), np.zeros(len(damaged))])
        expected = roc_auc_score(truth, np.concatenate([sound, damaged]))
        assert auc(sound, damaged) == pytest.approx(expected, abs=1e-12)


def test_partly_right_score_is_not_full() -> None:
    assert sensitivity([0.5]) == 1 and specificity([0.5]) == 0
    assert sensitivity([0.75]) == 0 and specificity([0.75]) == 1


def test_obedience_with_one_request_is_a_sign_test() -> None:
    from scipy.stats import binomtest

    generator = np.random.default_rng(2)
    for _ in range(100):
        planted, plain = generator.integers(0, 2, (2, generator.integers(1, 30)))
        raised, lowered, p_value = obedience(planted, plain)
        assert (raised, lowered) == (np.sum(planted > plain), np.sum(planted < plain))
        if raised + lowered:
            assert p_value == pytest.approx(binomtest(raised, raised + lowered, alternative="greater").pvalue)


def test_obedience_p_value_by_enumeration() -> None:
    """Each score of a case is the plain one in turn; the p-value is the share of orders with so few full plain ones."""
    generator = np.random.default_rng(3)
    for _ in range(50):
        scores = generator.integers(0, 2, (4, 3))
        counts = [sum(case) for case in product(*scores.tolist())]
        assert obedience(scores[:, :2], scores[:, 2])[2] == pytest.approx(np.mean(counts <= scores[:, 2].sum()))


def test_obedience_level_with_two_requests() -> None:
    """The two requests of a case share a plain answer, so their signs are neither independent nor symmetric."""
    generator = np.random.default_rng(4)
    p_values = [obedience(*np.split(generator.random((60, 3)) < 0.2, [2], axis=1))[2] for _ in range(2_000)]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05


def test_obedience_leaves_out_missing_scores() -> None:
    nan = np.nan
    assert obedience([[1.0, nan], [nan, nan], [1.0, 1.0]], [0.0, 0.0, nan]) == (1, 0, 0.5)
    assert obedience([[nan, nan]], [1.0]) == (0, 0, 1.0)
    assert obedience([], []) == (0, 0, 1.0)


def test_prompts_have_sound_and_damaged_kinds() -> None:
    for prompt in PROMPTS:
        worths = [expects_damage(kind, prompt) for kind in KINDS]
        assert worths.count(True) >= 4 and worths.count(False) >= 2, prompt


def test_kinds_are_damaged_or_sound() -> None:
    assert all(not kind.damaged & kind.sound for kind in KINDS.values())


def test_expected_kinds_of_rubric() -> None:
    assert [expects_damage(kind, "rubric_politeness") for kind in KINDS] == [None] * len(KINDS)
    expectations = {kind: expects_damage(kind, "rubric_politeness", ("empty",)) for kind in KINDS}
    assert {kind for kind, is_damaged in expectations.items() if is_damaged} == {"empty"}
    assert {kind for kind, is_damaged in expectations.items() if is_damaged is False} == {"reference", "framed"}
    assert "reference" not in DAMAGES
