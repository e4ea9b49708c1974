"""Metrics of incomplete labels: equal to trec_eval, tight bounds, and selection bias."""

import itertools
import math

import numpy as np
import pytest

from yarus.metrics import incomplete, retrieval
from yarus.metrics.incomplete.selection import compare_feature, inverse_propensity_mean, labelling_propensities

RUNS, DEPTH = 10_000, 10


def draw_runs(seed: int) -> tuple[list[list[str]], list[dict[str, int]]]:
    """Return rankings of ten of thirty, and judgements of up to twelve; grades 0 to 2."""
    rng = np.random.default_rng(seed)
    rankings = [[f"d{index}" for index in rng.permutation(30)[: rng.integers(0, DEPTH + 1)]] for _ in range(RUNS)]
    judged = [
        {f"d{index}": int(rng.integers(0, 3)) for index in rng.permutation(30)[: rng.integers(1, 13)]} for _ in rankings
    ]
    return rankings, judged


def run_trec(rankings: list[list[str]], judged: list[dict[str, int]], *measures: str) -> dict[int, dict[str, float]]:
    import pytrec_eval

    qrels = {str(row): ids for row, ids in enumerate(judged)}
    run = {str(row): {name: -float(rank) for rank, name in enumerate(ids)} for row, ids in enumerate(rankings) if ids}
    return {int(row): ids for row, ids in pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run).items()}


def test_bpref_and_inf_ap_equal_trec_eval() -> None:
    rankings, judged = draw_runs(seed=1)
    matrix, n_relevant, n_irrelevant = incomplete.judgement_matrix(rankings, judged, depth=DEPTH)
    marked = [dict.fromkeys(run, -1) | labels for run, labels in zip(rankings, judged, strict=True)]
    for pooled, in_file in ((False, judged), (True, marked)):  # trec_eval's mark of what was in the pool and not judged
        ours = {"bpref": incomplete.bpref(matrix, n_relevant, n_irrelevant)}
        ours["infAP"] = incomplete.inf_ap(matrix, n_relevant, pooled=pooled)
        trec_values = run_trec(rankings, in_file, *ours)
        compared = [row for row in trec_values if n_relevant[row]]
        assert len(compared) > 8_000
        for measure, values in ours.items():
            expected = [trec_values[row][measure] for row in compared]
            np.testing.assert_allclose(values[compared], expected, rtol=0, atol=1e-12, err_msg=f"{measure}, {pooled=}")


def test_infap_with_complete_judgements_is_average_precision() -> None:
    rankings, judged = draw_runs(seed=2)
    complete = [dict.fromkeys(run, 0) | labels for run, labels in zip(rankings, judged, strict=True)]
    matrix, n_relevant, _ = incomplete.judgement_matrix(rankings, complete, depth=DEPTH)
    trec_values = run_trec(rankings, complete, "map")
    rows = [row for row in trec_values if n_relevant[row]]
    np.testing.assert_allclose(
        incomplete.inf_ap(matrix, n_relevant)[rows], [trec_values[row]["map"] for row in rows], rtol=0, atol=1e-4
    )


def test_bounds_are_tight_over_all_assignments() -> None:
    rng = np.random.default_rng(3)
    for _ in range(150):
        codes = rng.choice([-1, -1, 0, 1, 2], 6)
        ranking = list("abcdef")
        judged = {name: int(code) for name, code in zip(ranking, codes, strict=True) if code >= 0} | {"z": 1}
        grade = max(1, *judged.values())
        matrix, n_relevant, _ = incomplete.judgement_matrix([ranking], [judged], depth=6)
        ideal = retrieval.ideal_gains([judged], depth=6)
        k = int(rng.integers(1, 7))
        bounds = {
            "hit_rate": retrieval.hit_rate(incomplete.gains_if_unjudged_relevant(matrix), k=k)[0],
            "recall": incomplete.recall_upper_bound(matrix, n_relevant, k=k)[0],
            "ndcg": incomplete.ndcg_upper_bound(matrix, ideal, k=k)[0],
        }
        reached = dict.fromkeys(bounds, 0.0)
        unknown = [name for name in ranking if name not in judged]
        for size in range(len(unknown) + 1):
            for right in itertools.combinations(unknown, size):
                completed = judged | dict.fromkeys(right, grade)
                gains, total = retrieval.gain_matrix([ranking], [completed], depth=6)
                best = retrieval.ideal_gains([completed], depth=6)
                values = {
                    "hit_rate": retrieval.hit_rate(gains, k=k)[0],
                    "recall": retrieval.recall(gains, total, k=k)[0],
                    "ndcg": retrieval.ndcg(gains, total, k=k, ideal=best)[0],
                }
                reached = {name: max(value, reached[name]) for name, value in values.items()}
        assert bounds == pytest.approx(reached, abs=1e-12)


def test_ranks_beyond_ranking_are_not_unjudged() -> None:
    matrix, n_relevant, _ = incomplete.judgement_matrix([["a"], [], None], [{"a": 1}] * 3, depth=5)
    assert incomplete.judged(matrix, k=5) == pytest.approx([1, math.nan, math.nan], nan_ok=True)
    assert incomplete.recall_upper_bound(matrix, n_relevant, k=5) == pytest.approx([1, 0, math.nan], nan_ok=True)
    assert incomplete.gains_if_unjudged_relevant(matrix)[1].tolist() == [0] * 5


def test_compare_feature_false_alarm_rate() -> None:
    rng = np.random.default_rng(4)
    p_values = [compare_feature(rng.exponential(size=200), rng.random(200) < 0.3, [None] * 200).p for _ in range(1_000)]
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.05, abs=0.03)


def test_compare_feature_by_user() -> None:
    """Twenty questions per user, alike, labelled together: without users each would count alone."""
    rng = np.random.default_rng(5)
    users = np.repeat(np.arange(40), 20)
    p_by_user, p_without_users = [], []
    for _ in range(300):
        feature = rng.normal(size=40)[users] + 0.1 * rng.normal(size=800)
        labelled = (rng.random(40) < 0.5)[users]
        p_by_user.append(compare_feature(feature, labelled, users.tolist()).p < 0.05)
        p_without_users.append(compare_feature(feature, labelled, [None] * 800).p < 0.05)
    assert np.mean(p_by_user) < 0.11
    assert np.mean(p_without_users) > 0.4


def test_compare_feature_of_kinds() -> None:
    kinds = np.eye(3)[np.arange(300) % 3]
    labelled = np.arange(300) % 3 == 0
    assert compare_feature(kinds, labelled | (np.arange(300) % 7 == 0), [None] * 300).p < 1e-6
    assert math.isnan(compare_feature(np.ones(50), np.arange(50) < 25, [None] * 50).p)
    with pytest.raises(ValueError, match="3 questions, but of 2"):
        compare_feature([1, 2, 3], [True, False], [None] * 3)


def test_reweighted_mean_removes_selection_bias() -> None:
    """Easy questions are answered in 90 % and labelled in 80 %, hard ones in 50 % and 20 %: 70 % of all."""
    rng = np.random.default_rng(6)
    covered, raw = [], []
    for _ in range(200):
        easy = rng.random(800) < 0.5
        labelled = rng.random(800) < np.where(easy, 0.8, 0.2)
        values = np.where(labelled, rng.random(800) < np.where(easy, 0.9, 0.5), np.nan)
        reweighted = inverse_propensity_mean(values, labelling_propensities(easy.astype(float), labelled), [None] * 800)
        covered.append(reweighted.interval.low <= 0.7 <= reweighted.interval.high)
        raw.append(np.nanmean(values))
    assert np.mean(raw) == pytest.approx(0.82, abs=0.01)
    assert 0.9 <= np.mean(covered) <= 1
