"""Finding on incomplete labels: labelled questions against the others, and the sentences about them."""

from typing import Any

import numpy as np
import pytest

from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation.findings.incomplete import find_incomplete_labels, has_one_label_per_question, sentences
from yarus.tasks.evaluation.findings_schema import LabelledQuestions

N = 400
RANDOM = np.random.default_rng(0)
SURE = RANDOM.permutation(N) / N
HIT = (RANDOM.random(N) < 0.4 + 0.6 * SURE).astype(float)


def compare_labelled(labelled: Any, **more: Any) -> LabelledQuestions | None:
    """Compare questions whose retrieval score increases with their ease."""
    hits = np.where(labelled, HIT, np.nan)
    columns = {
        "question": [" ".join(["слово"] * (3 + row % 7)) for row in range(N)],
        "group": [None] * N,
        "relevant": [["a"] if has else [] for has in labelled],
        "retrieved": [[f"p:{row % 5}", "x"] for row in range(N)],
        "distances": [[1 - sure, 1 - sure / 2] for sure in SURE],
        "hit_rate@1": hits,
        "if_right": [{"hit_rate@1": 1.0} if has else None for has in labelled],
    } | more
    return find_incomplete_labels(make_cases(**columns), ["hit_rate@1"])["questions"]


def test_incomplete_reweights_when_easy_questions_are_labelled() -> None:
    labelled = RANDOM.random(N) < np.where(SURE > 0.5, 0.8, 0.2)
    result = compare_labelled(labelled)
    assert result is not None
    assert {"score", "lead"} & {*result["differ_in"]} and "length" not in result["differ_in"]
    score = result["features"]["score"]
    assert (score["labelled"] or 0) > 0.55 and (score["others"] or 1) < 0.45
    moved = result["reweighted"]["hit_rate@1"]
    assert moved["value"] == pytest.approx(HIT[labelled].mean())
    assert moved["reweighted"] < moved["value"] - 0.03
    assert (moved["ci_low"] or 1) < HIT.mean() < (moved["ci_high"] or 0)


def test_incomplete_finds_nothing_for_random_labels() -> None:
    result = compare_labelled(np.arange(N) % 2 == 0, retrieved=[["p", "x"]] * N)
    assert result is not None
    assert (result["differ_in"], result["reweighted"]) == ([], {})


def test_incomplete_finds_other_topics() -> None:
    result = compare_labelled(np.arange(N) % 5 < 2)
    assert result is not None and result["differ_in"] == ["topic"]
    assert result["features"]["topic"]["labelled"] is None


def test_incomplete_has_no_direction_for_topics() -> None:
    pages = [["p" if row < 100 else f"p:{row}", "x"] for row in range(N)]
    result = compare_labelled(np.arange(N) >= 100, retrieved=pages)
    assert result is not None and "topic" in result["differ_in"]
    assert result["features"]["topic"]["labelled"] is None
    metric = {"value": 0.5}
    summary = {"tier": "tier1", "metrics": dict.fromkeys(("hit_rate@1", "mrr", "ndcg@10", "judged@10"), metric)}
    texts = list(sentences(summary | {"incomplete": {"if_right": {}, "questions": result}}))
    assert "about other pages" in texts[0]["en"]


@pytest.mark.parametrize("labelled", [np.ones(N, dtype=bool), np.zeros(N, dtype=bool)])
def test_incomplete_is_none_when_all_or_none_are_labelled(labelled: Any) -> None:
    assert compare_labelled(labelled) is None


def test_incomplete_only_counts_small_groups() -> None:
    result = compare_labelled(np.arange(N) < 19)
    assert result == {"n": 19, "n_others": N - 19, "differ_in": [], "features": {}, "reweighted": {}}


def test_incomplete_counts_labels_of_headline_stratum() -> None:
    strata = ["confirmed" if row < 100 else "agreement" for row in range(N)]
    result = compare_labelled(np.ones(N, dtype=bool), stratum=strata)
    assert result is not None and (result["n"], result["n_others"]) == (100, 300)


def test_incomplete_skips_missing_distances() -> None:
    result = compare_labelled(np.arange(N) % 2 == 0, distances=[None] * N, retrieved=[None] * N)
    assert result is not None and "score" not in result["features"] and "topic" not in result["features"]


def test_sentences_give_counts_differences_and_bounds() -> None:
    labelled = SURE > 0.3
    metric = {"value": 0.5}
    summary = {
        "tier": "real_users",
        "metrics": dict.fromkeys(("hit_rate@1", "mrr", "ndcg@10", "judged@10"), metric),
        "incomplete": {"if_right": {"hit_rate@1": 0.9, "mrr": 0.5}, "questions": compare_labelled(labelled)},
    }
    russian, english = ([texts[language] for texts in sentences(summary)] for language in ("ru", "en"))
    assert len(russian) == len(english) == 3
    assert "come from the bot itself" in english[0]
    assert "hit_rate@1 0.500–0.900." in english[1] and "mrr" not in english[1]
    assert f"cover {labelled.sum()} questions; the other {N - labelled.sum()} have no usable label" in english[2]
    assert "the retriever is more certain of them" in english[2] and "поиск в них увереннее" in russian[2]
    assert list(sentences({"tier": "tier2", "metrics": {}})) == []


def test_sentences_are_empty_for_tiers_without_rankings() -> None:
    summary = {
        "tier": "tier3",
        "metrics": {},
        "incomplete": {"if_right": {"mrr": 0.9}, "questions": compare_labelled(SURE > 0.3)},
    }
    assert list(sentences(summary)) == []


@pytest.mark.parametrize(
    ("values", "has_one"),
    [
        ({"hit_rate@10": 0.6, "recall@10": 0.6, "hit_rate@1": 0.4, "judged@1": 0.4}, True),  # as in SQuAD
        ({"hit_rate@10": 0.6, "recall@10": 0.5, "hit_rate@1": 0.4, "judged@1": 0.4}, False),  # several labels
        ({"hit_rate@10": 0.6, "recall@10": 0.6, "hit_rate@1": 0.4, "judged@1": 0.7}, False),  # irrelevant ones, too
        ({"hit_rate@10": 0.0, "recall@10": 0.0, "hit_rate@1": 0.0, "judged@1": 0.0}, False),  # nothing was found
        ({"hit_rate@10": 0.6}, False),
    ],
)
def test_one_label_per_question_is_no_gap(values: dict[str, float | None], has_one: bool) -> None:
    assert has_one_label_per_question("tier1", values) == has_one
    assert not has_one_label_per_question("real_users", values)
    metrics: Any = {name: {"value": value} for name, value in values.items()} | {"mrr": {"value": 0.5}}
    metrics |= {"judged@10": {"value": 0.06}} | {name: {"value": None} for name in ("hit_rate@1", "ndcg@10")} | metrics
    document = {"if_right": {"mrr": 0.9}, "questions": None}
    warnings = list(sentences({"tier": "tier1", "metrics": metrics, "incomplete": document}))
    assert bool(warnings) != has_one
