"""Results that people judge, and metrics from their judgements: small examples and simulations."""

import numpy as np
import pytest

from yarus.tasks.cases.labels import NO_DUPLICATES
from yarus.tasks.cases.rankings import Pool, add_metrics, relabel_cases
from yarus.tasks.cases.table import float_column, make_cases
from yarus.tasks.dataset.labelling.relevance.result_order import (
    estimate_people_metrics,
    is_fully_judged,
    results_to_judge,
)

NAMES = ("hit_rate@1", "mrr", "recall@10", "ndcg@10", "precision@10")


def make_pool(ranks: str, unranked: str = "") -> Pool:
    """Return a pool with one result per sign: + and - are labels, digits are grades; `unranked` have no rank."""
    results: Pool = []
    for index, sign in enumerate(ranks + unranked):
        label = {"+": True, "-": False}.get(sign)
        rank = index + 1 if index < len(ranks) else None
        results.append(
            {"result": str(index), "rank": rank, "label": label, "grade": None if label is not None else int(sign)}
        )
    return results


def judged_results(pooled: Pool, relevant: str, *, judge_all: bool = False) -> str:
    """Return the indices of the results that people judge, if they label the truth."""
    judgements: dict[str, bool] = {}
    for result in results_to_judge(pooled, judgements, whole=judge_all):
        judgements[result["result"]] = result["result"] in relevant
    return "".join(judgements)


@pytest.mark.parametrize(
    ("ranks", "unranked", "relevant", "expected"),
    [
        pytest.param("0000", "", "1", "01", id="down to the first relevant one"),
        pytest.param("0000", "", "", "0123", id="to the end where there is none"),
        pytest.param("0+00", "", "", "0", id="down to a label"),
        pytest.param("+000", "", "", "", id="nothing where the label comes first"),
        pytest.param("-000", "", "1", "1", id="what is labelled is not asked about"),
        pytest.param("3020", "", "0", "02", id="also what the judge calls relevant"),
        pytest.param("3010", "", "0", "0", id="of the same subject is not relevant"),
        pytest.param("+0", "023", "", "34", id="of others what the judge calls relevant"),
    ],
)
def test_results_to_judge_are_selected_in_order(ranks: str, unranked: str, relevant: str, expected: str) -> None:
    pooled = make_pool(ranks, unranked)
    assert judged_results(pooled, relevant) == expected
    assert judged_results(pooled, relevant, judge_all=True) == "".join(
        result["result"] for result in pooled if result["label"] is None
    )


def simulate_questions(
    seed: int, n: int = 400, max_probability: float = 0.9
) -> tuple[list[Pool], list[dict[str, bool]]]:
    """Return questions with several relevant results, and a judge that misses some and invents some."""
    generator = np.random.default_rng(seed)
    truth = generator.random((n, 10)) < generator.random((n, 1)) * np.linspace(max_probability, 0.2, 10)
    grades = np.where(truth, 3 * (generator.random(truth.shape) < 0.8), 2 * (generator.random(truth.shape) < 0.1))
    pools = [make_pool("".join(map(str, row))) for row in grades.astype(int)]
    return pools, [{str(index): bool(is_relevant) for index, is_relevant in enumerate(row)} for row in truth]


def estimate_means(pools: list[Pool], truth: list[dict[str, bool]], names: list[str]) -> dict[str, float]:
    """Return the mean of people's judgements when they judge only the required results."""
    judgements: list[dict[str, bool]] = []
    for case_id, pooled, true_judgements in zip(names, pools, truth, strict=True):
        case_judgements: dict[str, bool] = {}
        for result in results_to_judge(pooled, case_judgements, whole=is_fully_judged(case_id)):
            case_judgements[result["result"]] = true_judgements[result["result"]]
        judgements.append(case_judgements)
    cases = make_cases(case_id=names, pooled=pools)
    metrics = estimate_people_metrics(cases, judgements, np.ones(len(pools)), NAMES, 10)
    return {name: float(values.mean()) for name, values in metrics.items()}


def true_means(pools: list[Pool], truth: list[dict[str, bool]]) -> dict[str, float]:
    scored = add_metrics(relabel_cases(make_cases(pooled=pools), truth), NO_DUPLICATES, 10)
    return {name: float(float_column(scored, name).mean()) for name in NAMES}


@pytest.mark.slow("simulation: many walks")
def test_partial_judgements_estimate_metrics_without_bias() -> None:
    """Metrics of the first relevant result are exact; others are unbiased over samples of fully judged questions."""
    pools, truth = simulate_questions(0)
    true_values = true_means(pools, truth)
    draws = [estimate_means(pools, truth, [f"{draw} {number}" for number in range(400)]) for draw in range(40)]
    for name in ("hit_rate@1", "mrr", "recall@10"):  # with a pool of one retriever, these are exact
        assert [means[name] for means in draws] == pytest.approx([true_values[name]] * 40)
    for name in ("ndcg@10", "precision@10"):
        values = np.array([means[name] for means in draws])
        assert abs(values.mean() - true_values[name]) < 3 * values.std(ddof=1) / len(draws) ** 0.5 + 0.002
        assert values.std(ddof=1) > 0


def test_estimate_is_nan_when_few_questions_are_fully_judged() -> None:
    pools, truth = simulate_questions(1, n=12)
    names = [name for name in map(str, range(1_000)) if not is_fully_judged(name)][:10]
    names += [name for name in map(str, range(1_000)) if is_fully_judged(name)][:2]
    assert np.isnan(estimate_means(pools, truth, names)["ndcg@10"])
