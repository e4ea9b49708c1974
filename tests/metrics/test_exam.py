"""The exam's measures against scikit-learn, and what each kind of answer must do."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from metrics.exam import auc, sensitivity, specificity
from metrics.exam_kinds import DAMAGES, KINDS, PROMPTS, expected


def test_the_area_is_scikit_learns() -> None:
    generator = np.random.default_rng(1)
    for _ in range(200):
        sound, damaged = (generator.integers(0, 5, generator.integers(1, 9)) / 4 for _ in range(2))
        truth = np.concatenate([np.ones(len(sound)), np.zeros(len(damaged))])
        theirs = roc_auc_score(truth, np.concatenate([sound, damaged]))
        assert auc(sound, damaged) == pytest.approx(theirs, abs=1e-12)


def test_a_partly_right_score_is_no_full_one() -> None:
    assert sensitivity([0.5]) == 1 and specificity([0.5]) == 0
    assert sensitivity([0.75]) == 0 and specificity([0.75]) == 1


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
