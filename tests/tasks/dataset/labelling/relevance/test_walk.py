"""Which results people are asked about, and what is made of their answers: by hand, and by worlds of known truth."""

import numpy as np
import pytest

from yarus.tasks.cases.labels import NO_TWINS
from yarus.tasks.cases.rankings import Pool, score, seen
from yarus.tasks.cases.table import floats, table
from yarus.tasks.dataset.labelling.relevance.walk import is_whole, metrics_by_people, wanted

NAMES = ("hit_rate@1", "mrr", "recall@10", "ndcg@10", "precision@10")


def pool(ranks: str, others: str = "") -> Pool:
    """A result a sign: + and - labelled so, a digit the judge's grade; `others` have found more."""
    found: Pool = []
    for place, sign in enumerate(ranks + others):
        label = {"+": True, "-": False}.get(sign)
        rank = place + 1 if place < len(ranks) else None
        found.append(
            {"result": str(place), "rank": rank, "label": label, "grade": None if label is not None else int(sign)}
        )
    return found


def asked(of: Pool, relevant: str, *, whole: bool = False) -> str:
    """The places that people are asked about, who say the truth."""
    said: dict[str, bool] = {}
    for one in wanted(of, said, whole=whole):
        said[one["result"]] = one["result"] in relevant
    return "".join(said)


@pytest.mark.parametrize(
    ("ranks", "others", "relevant", "expected"),
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
def test_what_people_are_asked_about(ranks: str, others: str, relevant: str, expected: str) -> None:
    of = pool(ranks, others)
    assert asked(of, relevant) == expected
    assert asked(of, relevant, whole=True) == "".join(one["result"] for one in of if one["label"] is None)


def world(seed: int, n: int = 400, most: float = 0.9) -> tuple[list[Pool], list[dict[str, bool]]]:
    """Questions with several relevant results, and a judge that overlooks some and invents some."""
    rng = np.random.default_rng(seed)
    truth = rng.random((n, 10)) < rng.random((n, 1)) * np.linspace(most, 0.2, 10)
    grades = np.where(truth, 3 * (rng.random(truth.shape) < 0.8), 2 * (rng.random(truth.shape) < 0.1))
    pools = [pool("".join(map(str, row))) for row in grades.astype(int)]
    return pools, [{str(place): bool(yes) for place, yes in enumerate(row)} for row in truth]


def estimated(pools: list[Pool], truth: list[dict[str, bool]], names: list[str]) -> dict[str, float]:
    """The mean of what people say, who are asked about what is wanted and nothing else."""
    said: list[dict[str, bool]] = []
    for name, of, true in zip(names, pools, truth, strict=True):
        known: dict[str, bool] = {}
        for one in wanted(of, known, whole=is_whole(name)):
            known[one["result"]] = true[one["result"]]
        said.append(known)
    cases = table(case_id=names, pooled=pools)
    found = metrics_by_people(cases, said, np.ones(len(pools)), NAMES, 10)
    return {name: float(values.mean()) for name, values in found.items()}


def true_means(pools: list[Pool], truth: list[dict[str, bool]]) -> dict[str, float]:
    scored = score(seen(table(pooled=pools), truth), NO_TWINS, 10)
    return {name: float(floats(scored, name).mean()) for name in NAMES}


@pytest.mark.slow("simulation: many walks")
def test_a_third_of_the_results_tells_the_metrics_without_bias() -> None:
    """What the first relevant result decides is exact; the rest, over draws of the whole ones, right on average."""
    pools, truth = world(0)
    true = true_means(pools, truth)
    draws = [estimated(pools, truth, [f"{draw} {number}" for number in range(400)]) for draw in range(40)]
    for name in ("hit_rate@1", "mrr", "recall@10"):  # a pool of one retriever has all of it, or nothing
        assert [of[name] for of in draws] == pytest.approx([true[name]] * 40)
    for name in ("ndcg@10", "precision@10"):
        values = np.array([of[name] for of in draws])
        assert abs(values.mean() - true[name]) < 3 * values.std(ddof=1) / len(draws) ** 0.5 + 0.002
        assert values.std(ddof=1) > 0


def test_too_few_whole_ones_tell_nothing() -> None:
    pools, truth = world(1, n=12)
    names = [name for name in map(str, range(1_000)) if not is_whole(name)][:10]
    names += [name for name in map(str, range(1_000)) if is_whole(name)][:2]
    assert np.isnan(estimated(pools, truth, names)["ndcg@10"])
