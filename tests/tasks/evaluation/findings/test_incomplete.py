"""Who is measured: labelled questions against the others, and what is said of them."""

from typing import Any

import numpy as np
import pytest

from yarus.tasks.cases.table import table
from yarus.tasks.evaluation.findings.incomplete import incomplete, sentences
from yarus.tasks.evaluation.findings_schema import LabelledQuestions

N = 400
RANDOM = np.random.default_rng(0)
SURE = RANDOM.permutation(N) / N
HIT = (RANDOM.random(N) < 0.4 + 0.6 * SURE).astype(float)


def found(labelled: Any, **given: Any) -> LabelledQuestions | None:
    """Of questions that the retriever is the surer of the easier they are."""
    hits = np.where(labelled, HIT, np.nan)
    columns = {
        "question": [" ".join(["слово"] * (3 + row % 7)) for row in range(N)],
        "group": [None] * N,
        "relevant": [["a"] if has else [] for has in labelled],
        "retrieved": [[f"p:{row % 5}", "x"] for row in range(N)],
        "distances": [[1 - sure, 1 - sure / 2] for sure in SURE],
        "hit_rate@1": hits,
        "if_right": [{"hit_rate@1": 1.0} if has else None for has in labelled],
    } | given
    return incomplete(table(**columns), ["hit_rate@1"])["questions"]


def test_labels_where_retrieval_is_easy_are_seen_and_the_headline_moves() -> None:
    labelled = RANDOM.random(N) < np.where(SURE > 0.5, 0.8, 0.2)
    told = found(labelled)
    assert told is not None
    assert {"score", "lead"} & {*told["differ_in"]} and "length" not in told["differ_in"]
    score = told["features"]["score"]
    assert (score["labelled"] or 0) > 0.55 and (score["others"] or 1) < 0.45
    moved = told["reweighted"]["hit_rate@1"]
    assert moved["value"] == pytest.approx(HIT[labelled].mean())
    assert moved["reweighted"] < moved["value"] - 0.03
    assert (moved["ci_low"] or 1) < HIT.mean() < (moved["ci_high"] or 0)


def test_labels_at_random_are_not_called_other() -> None:
    told = found(np.arange(N) % 2 == 0, retrieved=[["p", "x"]] * N)
    assert told is not None
    assert (told["differ_in"], told["reweighted"]) == ([], {})


def test_other_topics_are_seen() -> None:
    told = found(np.arange(N) % 5 < 2)
    assert told is not None and told["differ_in"] == ["topic"]
    assert told["features"]["topic"]["labelled"] is None


def test_one_frequent_topic_has_no_more_and_no_less() -> None:
    pages = [["p" if row < 100 else f"p:{row}", "x"] for row in range(N)]
    told = found(np.arange(N) >= 100, retrieved=pages)
    assert told is not None and "topic" in told["differ_in"]
    assert told["features"]["topic"]["labelled"] is None
    metric = {"value": 0.5}
    summary = {"tier": "tier1", "metrics": dict.fromkeys(("hit_rate@1", "mrr", "ndcg@10", "judged@10"), metric)}
    said = list(sentences(summary | {"incomplete": {"if_right": {}, "questions": told}}))
    assert "about other pages" in said[0]["en"]


@pytest.mark.parametrize("labelled", [np.ones(N, dtype=bool), np.zeros(N, dtype=bool)])
def test_where_all_or_none_have_labels_there_is_nothing_to_compare(labelled: Any) -> None:
    assert found(labelled) is None


def test_too_few_of_either_kind_are_only_counted() -> None:
    told = found(np.arange(N) < 19)
    assert told == {"n": 19, "n_others": N - 19, "differ_in": [], "features": {}, "reweighted": {}}


def test_only_the_headline_stratum_counts_as_labelled() -> None:
    strata = ["confirmed" if row < 100 else "agreement" for row in range(N)]
    told = found(np.ones(N, dtype=bool), stratum=strata)
    assert told is not None and (told["n"], told["n_others"]) == (100, 300)


def test_a_retriever_that_failed_or_gives_no_distance_leaves_a_question_in_the_middle() -> None:
    told = found(np.arange(N) % 2 == 0, distances=[None] * N, retrieved=[None] * N)
    assert told is not None and "score" not in told["features"] and "topic" not in told["features"]


def test_the_sentences_name_counts_differences_and_bounds_in_both_languages() -> None:
    labelled = SURE > 0.3
    metric = {"value": 0.5}
    summary = {
        "tier": "real_users",
        "metrics": dict.fromkeys(("hit_rate@1", "mrr", "ndcg@10", "judged@10"), metric),
        "incomplete": {"if_right": {"hit_rate@1": 0.9, "mrr": 0.5}, "questions": found(labelled)},
    }
    russian, english = ([said[language] for said in sentences(summary)] for language in ("ru", "en"))
    assert len(russian) == len(english) == 3
    assert "the system's own" in english[0]
    assert "hit_rate@1 0.500–0.900." in english[1] and "mrr" not in english[1]
    assert f"of {labelled.sum()} questions; the other {N - labelled.sum()} have no label that counts" in english[2]
    assert "the retriever is surer of them" in english[2] and "поиск в них увереннее" in russian[2]
    assert list(sentences({"tier": "tier2", "metrics": {}})) == []


def test_a_tier_whose_headlines_are_no_rankings_has_no_sentence() -> None:
    summary = {"tier": "tier3", "metrics": {}, "incomplete": {"if_right": {"mrr": 0.9}, "questions": found(SURE > 0.3)}}
    assert list(sentences(summary)) == []
