"""The exam's measures against scikit-learn, and what each kind of answer must do."""

from itertools import product

import numpy as np
import pytest

from yarus.metrics.exam import auc, obedience, sensitivity, specificity
from yarus.metrics.exam_kinds import DAMAGES, KINDS, PROMPTS, expected


def test_the_area_is_scikit_learns() -> None:
    from sklearn.metrics import roc_auc_score

    generator = np.random.default_rng(1)
    for _ in range(200):
        sound, damaged = (generator.integers(0, 5, generator.integers(1, 9)) / 4 for _ in range(2))
        truth = np.concatenate([np.ones(len(sound)), np.zeros(len(damaged))])
        theirs = roc_auc_score(truth, np.concatenate([sound, damaged]))
        assert auc(sound, damaged) == pytest.approx(theirs, abs=1e-12)


def test_a_partly_right_score_is_no_full_one() -> None:
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


def test_obedience_counts_orders_of_each_cases_scores() -> None:
    """Each score of a case is the plain one in turn; the p-value is the share of orders with so few full plain ones."""
    generator = np.random.default_rng(3)
    for _ in range(50):
        scores = generator.integers(0, 2, (4, 3))
        counts = [sum(case) for case in product(*scores.tolist())]
        assert obedience(scores[:, :2], scores[:, 2])[2] == pytest.approx(np.mean(counts <= scores[:, 2].sum()))


def test_obedience_holds_its_level_with_two_requests() -> None:
    """The two requests of a case share a plain answer, so their signs are neither independent nor symmetric."""
    generator = np.random.default_rng(4)
    p_values = [obedience(*np.split(generator.random((60, 3)) < 0.2, [2], axis=1))[2] for _ in range(2_000)]
    assert np.mean(np.array(p_values) <= 0.05) <= 0.05


def test_obedience_leaves_out_missing_scores() -> None:
    nan = np.nan
    assert obedience([[1.0, nan], [nan, nan], [1.0, 1.0]], [0.0, 0.0, nan]) == (1, 0, 0.5)
    assert obedience([[nan, nan]], [1.0]) == (0, 0, 1.0)
    assert obedience([], []) == (0, 0, 1.0)


def test_every_prompt_has_sound_answers_and_several_kinds_of_damage() -> None:
    for prompt in PROMPTS:
        worths = [expected(kind, prompt) for kind in KINDS]
        assert worths.count(True) >= 4 and worths.count(False) >= 2, prompt


def test_no_kind_is_both() -> None:
    assert all(not kind.damaged & kind.sound for kind in KINDS.values())


def test_a_rubric_is_examined_by_what_its_author_says() -> None:
    assert [expected(kind, "rubric_politeness") for kind in KINDS] == [None] * len(KINDS)
    found = {kind: expected(kind, "rubric_politeness", ("empty",)) for kind in KINDS}
    assert {kind for kind, worth in found.items() if worth} == {"empty"}
    assert {kind for kind, worth in found.items() if worth is False} == {"reference", "framed"}
    assert "reference" not in DAMAGES
