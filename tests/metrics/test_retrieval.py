"""Retrieval metrics: values worked out by hand, trec_eval's values on real and generated rankings, and bad input."""

import json
import math
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.examples import for_all, get_example_count
from yarus.metrics.retrieval import gain_matrix, hit_rate, ideal_gains, ndcg, precision, recall, reciprocal_rank

NAN = math.nan
METRICS = ("success", "P", "recall", "ndcg_cut", "recip_rank")


def scores(rankings: Any, relevant: Any, *, k: int, depth: int) -> dict[str, np.ndarray]:
    """Every metric, by trec_eval's names."""
    gains, n_relevant = gain_matrix(rankings, relevant, depth=depth)
    ideal = ideal_gains(relevant, depth=depth)
    return {
        "success": hit_rate(gains, k=k),
        "P": precision(gains, k=k),
        "recall": recall(gains, n_relevant, k=k),
        "ndcg_cut": ndcg(gains, n_relevant, k=k, ideal=ideal),
        "recip_rank": reciprocal_rank(gains),
    }


# DCG discounts: rank 1: 1, rank 2: 1/log2(3) = 0.630930, rank 3: 1/2, rank 4: 0.430677, rank 5: 0.386853. Depth 5.
@for_all(
    "ranking, relevant, k, expected",
    [
        # success, precision, recall, NDCG at k, then the reciprocal rank, which looks beyond k
        ("abc", {"a"}, 1, (1, 1, 1, 1, 1)),
        ("bac", {"a"}, 1, (0, 0, 0, 0, 1 / 2)),
        ("bac", {"a"}, 3, (1, 1 / 3, 1, 0.6309297535714575, 1 / 2)),
        ("bac", {"a", "z"}, 3, (1, 1 / 3, 1 / 2, 0.6309297535714575 / 1.6309297535714575, 1 / 2)),
        ("abc", {"a", "c"}, 3, (1, 2 / 3, 1, 1.5 / 1.6309297535714575, 1)),
        ("abcd", {"a", "b", "c", "d"}, 2, (1, 1, 1 / 2, 1, 1)),  # more relevant than k: the ideal has k of them
        ("ab", {"a"}, 5, (1, 1 / 5, 1, 1, 1)),  # fewer came back: still divided by k
        ("xyzab", {"a"}, 3, (0, 0, 0, 0, 1 / 4)),
        ("xyz", {"a"}, 3, (0, 0, 0, 0, 0)),
        ("uvwxya", {"a"}, 5, (0, 0, 0, 0, 0)),  # beyond the depth
        ("", {"a"}, 3, (0, 0, 0, 0, 0)),  # it answered with nothing though there is something
        ("abc", set(), 3, (NAN,) * 5),  # unlabelled
        ("abc", {"a": 0}, 3, (NAN,) * 5),  # judged, nothing relevant
        ("", set(), 3, (NAN,) * 5),
        (None, {"a"}, 3, (NAN,) * 5),  # the retriever failed
        (None, set(), 3, (NAN,) * 5),
        # 1 + 3 * 0.630930 of 3 + 2 * 0.630930 + 1 * 0.5
        ("abx", {"a": 1, "b": 3, "c": 2}, 3, (1, 2 / 3, 2 / 3, 2.8927892607143724 / 4.761859507142915, 1)),
        ("cxa", {"a": 1, "c": 0}, 3, (1, 1 / 3, 1, 1 / 2, 1 / 3)),  # grade 0 is no hit, and not in the ideal
        ("xa", {"a": 0.25}, 2, (1, 1 / 2, 1, 0.6309297535714575, 1 / 2)),  # any grade above 0 is relevant
        ((7, 3), {3, 9}, 2, (1, 1 / 2, 1 / 2, 0.6309297535714575 / 1.6309297535714575, 1 / 2)),  # ids may be numbers
    ],
)
def test_golden_values(ranking: Any, relevant: Any, k: int, expected: tuple[float, ...]) -> None:
    values = scores([ranking if ranking is None else list(ranking)], [relevant], k=k, depth=5)
    assert [float(values[name][0]) for name in METRICS] == pytest.approx(expected, rel=0, abs=1e-12, nan_ok=True)


def test_gain_matrix_has_grades_by_rank() -> None:
    rankings = [["a", "b"], None, [], ["x", "y", "z", "q"], ["m"]]
    relevant = [{"b", "c"}, {"a"}, frozenset("a"), {"y": 2, "q": 1, "m": 0.5, "n": 0}, set()]
    gains, n_relevant = gain_matrix(rankings, relevant, depth=3)
    np.testing.assert_array_equal(gains, [[0, 1, 0], [NAN] * 3, [0, 0, 0], [0, 2, 0], [NAN] * 3])
    np.testing.assert_array_equal(n_relevant, [2, 1, 1, 3, 0])
    assert gains.dtype == np.float64
    assert np.issubdtype(n_relevant.dtype, np.integer)


def test_ideal_gains_sorted_by_grade() -> None:
    relevant = [{"a": 1, "b": 3, "c": 0, "d": 2, "e": 3}, {"x", "y"}, set(), {"a": 0.5}]
    np.testing.assert_array_equal(ideal_gains(relevant, depth=3), [[3, 3, 2], [1, 1, 0], [0, 0, 0], [0.5, 0, 0]])
    np.testing.assert_array_equal(ideal_gains([{"x", "y"}, {"z"}], depth=1), [[1], [1]])


def test_retrieval_metrics_empty_without_questions() -> None:
    values = scores([], [], k=2, depth=2)
    assert {name: value.shape for name, value in values.items()} == dict.fromkeys(METRICS, (0,))


def test_retrieval_undefined_without_relevant_results() -> None:
    gains = np.zeros((1, 2))
    assert np.isnan(recall(gains, [0], k=2)).all()
    assert np.isnan(ndcg(gains, [0], k=2)).all()
    assert np.isnan(ndcg(gains, [0], k=2, ideal=gains)).all()


def test_metrics_do_not_depend_on_the_layout_of_the_matrix() -> None:
    gains, n_relevant = gain_matrix([list("abcde"), list("edcba")], [{"a", "c"}, {"a"}], depth=5)
    rows = np.ascontiguousarray(gains)
    np.testing.assert_array_equal(reciprocal_rank(rows.tolist()), reciprocal_rank(gains))
    np.testing.assert_array_equal(ndcg(rows, n_relevant, k=4), ndcg(gains, n_relevant, k=4))
    np.testing.assert_array_equal(rows, gains)


# Parity with trec_eval


def trec(rankings: list[list[str]], relevant: list[dict[str, int]], k: int) -> dict[str, list[float]]:
    """pytrec_eval's values; falling scores, so that trec_eval's order of ties has no say."""

    import pytrec_eval

    qrels = {str(row): labels for row, labels in enumerate(relevant)}
    run = {str(row): {name: float(-rank) for rank, name in enumerate(names)} for row, names in enumerate(rankings)}
    measures = {f"{name}.{k}" for name in METRICS[:-1]} | {"recip_rank"}
    values = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    return {
        name: [values[str(row)][name if name == "recip_rank" else f"{name}_{k}"] for row in range(len(rankings))]
        for name in METRICS
    }


def assert_equals_trec(rankings: list[list[str]], relevant: list[dict[str, int]], k: int, depth: int) -> None:
    expected = trec(rankings, relevant, k)
    for name, values in scores(rankings, relevant, k=k, depth=depth).items():
        np.testing.assert_allclose(values, expected[name], rtol=0, atol=1e-9, err_msg=name)


ID = st.sampled_from([f"д{number}" for number in range(15)])
# trec_eval leaves out a question without a ranking and scores one without relevant labels 0; ours differ on purpose.
CASES = st.lists(
    st.tuples(
        st.lists(ID, unique=True, min_size=1, max_size=12),
        st.dictionaries(ID, st.integers(0, 4), min_size=1).filter(lambda labels: any(labels.values())),
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.slow("breadth: graded rankings of XQuAD agree, these are generated")
@given(CASES, st.integers(1, 12))
@settings(max_examples=get_example_count(300))
def test_equals_trec_eval_on_graded_rankings(cases: list[tuple[list[str], dict[str, int]]], k: int) -> None:
    rankings, relevant = map(list, zip(*cases, strict=True))
    assert_equals_trec(rankings, relevant, k, depth=12)


@given(CASES, st.integers(1, 12))
def test_equals_trec_eval_without_grades(cases: list[tuple[list[str], dict[str, int]]], k: int) -> None:
    rankings, graded = map(list, zip(*cases, strict=True))
    gains, n_relevant = gain_matrix(rankings, [set(labels) for labels in graded], depth=12)
    expected = trec(rankings, [dict.fromkeys(labels, 1) for labels in graded], k)
    np.testing.assert_allclose(ndcg(gains, n_relevant, k=k), expected["ndcg_cut"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(recall(gains, n_relevant, k=k), expected["recall"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(reciprocal_rank(gains), expected["recip_rank"], rtol=0, atol=1e-9)


@pytest.mark.parametrize("k", [1, 3, 5, 10])
def test_equals_trec_eval_on_xquad(xquad_ru: Path, k: int) -> None:
    """Every question; the paragraph is the chunk (grade 2), its neighbours in the article are a little relevant."""
    articles = json.loads(xquad_ru.read_text(encoding="utf-8"))["data"]
    pages = [
        [f"{page}:{index}" for index in range(len(article["paragraphs"]))] for page, article in enumerate(articles)
    ]
    chunks = [chunk for page in pages for chunk in page]
    rng, rankings, relevant = random.Random(k), [], []
    for page, article in enumerate(articles):
        for index, paragraph in enumerate(article["paragraphs"]):
            for _ in paragraph["qas"]:
                pool = list(dict.fromkeys(rng.sample(pages[page], 3) + rng.sample(chunks, 7)))
                rankings.append(rng.sample(pool, len(pool)))
                relevant.append({**dict.fromkeys(pages[page], 1), pages[page][index]: 2})
    assert len(rankings) == 1190
    assert_equals_trec(rankings, relevant, k, depth=10)


# Properties


@given(CASES, st.integers(1, 12))
def test_retrieval_range_and_ideal_ranking(cases: list[tuple[list[str], dict[str, int]]], k: int) -> None:
    rankings, relevant = map(list, zip(*cases, strict=True))
    for values in scores(rankings, relevant, k=k, depth=12).values():
        assert ((values >= 0) & (values <= 1)).all()
    best = [sorted(labels, key=lambda name, labels=labels: -labels[name]) for labels in relevant]
    for name in ("success", "recip_rank", "ndcg_cut"):
        assert (scores(best, relevant, k=k, depth=15)[name] == 1).all()
    positive = [{name for name, grade in labels.items() if grade} for labels in relevant]
    gains, n_relevant = gain_matrix(best, positive, depth=15)
    assert (ndcg(gains, n_relevant, k=k) == 1).all()
    assert (recall(gains, n_relevant, k=15) == 1).all()


@given(CASES, st.randoms(use_true_random=False))
def test_retrieval_independent_of_question_order(
    cases: list[tuple[list[str], dict[str, int]]], rng: random.Random
) -> None:
    order = rng.sample(range(len(cases)), len(cases))
    before = scores(*map(list, zip(*cases, strict=True)), k=5, depth=12)
    after = scores(*map(list, zip(*(cases[row] for row in order), strict=True)), k=5, depth=12)
    for name in METRICS:
        np.testing.assert_array_equal(after[name], before[name][order])


# Bad input


@for_all(
    "rankings, relevant, depth, error, message",
    [
        ([["a"]], [], 1, ValueError, "1 rankings but 0 relevant sets"),
        ([["a"]], [{"a"}], 0, ValueError, "depth = 0 is below 1"),
        ([["a"], ["b", "c", "d", "c"]], [{"a"}, {"a"}], 2, ValueError, "ranking 1 has 'c' twice, at ranks 2 and 4"),
        ([["c", "c"]], [set()], 1, ValueError, "ranking 0 has 'c' twice, at ranks 1 and 2"),
        ([["c"], "abc"], [set(), set()], 1, TypeError, "ranking 1 is the text 'abc'"),
        ([["c"], ["c"]], [set(), ["c"]], 1, TypeError, "relevant 1 is ['c']"),
        ([["c"]], [None], 1, TypeError, "relevant 0 is None"),
        ([["c"]], ["c"], 1, TypeError, "relevant 0 is 'c'"),
        ([["c"], ["c"]], [{"b"}, {"c": 1, "d": -1}], 1, ValueError, "relevant 1 has a grade of -1"),
        ([["c"]], [{"c": NAN}], 1, ValueError, "relevant 0 has a grade of nan"),
    ],
)
def test_bad_input_is_refused(rankings: Any, relevant: Any, depth: int, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        gain_matrix(rankings, relevant, depth=depth)


@pytest.mark.parametrize("k", [0, -1, 4])
def test_retrieval_refuses_k_outside_depth(k: int) -> None:
    gains, n_relevant = gain_matrix([["a"]], [{"a"}], depth=3)
    message = f"k = {k} is outside 1 to 3, the depth of the gains"
    for call in (
        lambda: hit_rate(gains, k=k),
        lambda: precision(gains, k=k),
        lambda: recall(gains, n_relevant, k=k),
        lambda: ndcg(gains, n_relevant, k=k),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_retrieval_refuses_bad_shapes() -> None:
    gains = np.ones((2, 3))
    with pytest.raises(ValueError, match=re.escape("gains for 2 questions but n_relevant of shape (1,)")):
        recall(gains, [1], k=1)
    with pytest.raises(ValueError, match=re.escape("gains for 2 questions but n_relevant of shape (3,)")):
        ndcg(gains, [1, 1, 1], k=1)
    with pytest.raises(ValueError, match="gains for 2 questions but ideal gains for 1"):
        ndcg(gains, [1, 1], k=1, ideal=gains[:1])
    with pytest.raises(ValueError, match="k = 3 is outside 1 to 2"):
        ndcg(gains, [1, 1], k=3, ideal=gains[:, :2])
    for shape in ((3,), (2, 0)):
        with pytest.raises(ValueError, match=re.escape(f"gains of shape {shape} are not (questions, ranks)")):
            reciprocal_rank(np.ones(shape))


@pytest.mark.parametrize("grade", [2, 0.5])
def test_ndcg_refuses_grades_without_ideal(grade: float) -> None:
    gains, n_relevant = gain_matrix([["a"], None], [{"a": grade}, {"a": 1}], depth=1)
    with pytest.raises(ValueError, match=f"a gain of {grade} is a grade: give ideal="):
        ndcg(gains, n_relevant, k=1)


def test_ndcg_refuses_grades_beyond_k() -> None:
    gains, n_relevant = gain_matrix([["a", "b"]], [{"a": 1.0, "b": 3.0}], depth=2)
    with pytest.raises(ValueError, match="a gain of 3 is a grade"):
        ndcg(gains, n_relevant, k=1)


def test_gain_matrix_refuses_infinite_grade() -> None:
    with pytest.raises(ValueError, match="finite"):
        gain_matrix([["a"]], [{"a": float("inf")}], depth=1)
