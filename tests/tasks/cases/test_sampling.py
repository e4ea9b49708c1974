"""Samples: unbiased, stratified, and stable when the log grows."""

from collections import Counter
from random import Random
from statistics import mean

import pytest

from yarus.tasks.cases.dialogs import DialogTurn, sample_whole_dialogs
from yarus.tasks.cases.sampling import stratified_sample

LIMIT, NEW = 200, 8


def make_ids(n: int) -> list[str]:
    return [f"q{number}" for number in range(n)]


def make_strata(n: int, seed: int, n_topics: int = 60) -> list[str]:
    """Return topics of very different sizes, with three scores."""
    generator = Random(seed)
    sizes = [generator.paretovariate(1) for _ in range(n_topics)]
    return [f"{topic}|{generator.choice([5, None, 1])}" for topic in generator.choices(range(n_topics), sizes, k=n)]


@pytest.mark.slow("simulation: many samples")
def test_sample_keeps_the_share_of_each_stratum() -> None:
    """For 700 of 1,000, an unstratified sample of 100 has a standard deviation of 4.3."""
    strata = ["a"] * 700 + ["b"] * 250 + ["c"] * 50
    for seed in range(200):
        counts = Counter(strata[number] for number in stratified_sample(make_ids(1000), strata, 100, seed))
        assert all(abs(counts[name] - share) <= 4 for name, share in (("a", 70), ("b", 25), ("c", 5))), (seed, counts)


def test_sample_is_seeded_ascending_and_unique() -> None:
    ids, strata = make_ids(500), [str(number % 7) for number in range(500)]
    first = stratified_sample(ids, strata, 60, 1)
    assert first == stratified_sample(ids, strata, 60, 1) == sorted(set(first))
    assert len(first) == 60
    assert first != stratified_sample(ids, strata, 60, 2)
    assert (
        stratified_sample(ids, strata, None, 0)
        == stratified_sample(ids, strata, 500, 0)
        == stratified_sample(ids, strata, 501, 0)
    )
    assert stratified_sample(ids, strata, None, 0) == list(range(500))
    assert stratified_sample(ids, strata, 1, 0) != stratified_sample(ids, strata, 1, 3)
    assert stratified_sample([], [], 5, 0) == []


@pytest.mark.slow("simulation: many samples")
def test_sample_draws_cases_with_equal_probability() -> None:
    strata = ["a"] * 35 + ["b"] * 15 + ["c"] * 6 + ["d"] * 3 + ["e"]
    drawn = Counter(strata[row] for seed in range(4000) for row in stratified_sample(make_ids(60), strata, 17, seed))
    for stratum, n in Counter(strata).items():
        assert drawn[stratum] / 4000 / n == pytest.approx(17 / 60, abs=0.03), stratum


def test_sample_is_independent_of_the_log_order() -> None:
    ids, strata = make_ids(300), make_strata(300, 0)
    order = Random(1).sample(range(300), 300)
    mixed = stratified_sample([ids[number] for number in order], [strata[number] for number in order], 40, 3)
    assert {ids[order[number]] for number in mixed} == {ids[number] for number in stratified_sample(ids, strata, 40, 3)}


def test_sample_replaces_few_when_questions_are_removed() -> None:
    n_replaced = []
    for seed in range(40):
        ids, strata = make_ids(1_000), make_strata(1_000, seed)
        removed = set(Random(seed).sample(ids, NEW))
        remaining = [row for row in range(1_000) if ids[row] not in removed]
        after = stratified_sample([ids[row] for row in remaining], [strata[row] for row in remaining], LIMIT, seed)
        kept_ids = {ids[remaining[row]] for row in after}
        n_replaced.append(len({ids[row] for row in stratified_sample(ids, strata, LIMIT, seed)} - removed - kept_ids))
    assert mean(n_replaced) <= 2


def test_sample_whole_dialogs_keeps_most_dialogs() -> None:
    def log(n: int) -> tuple[list[dict[str, object]], list[DialogTurn]]:
        rows = [{"question_id": str(row), "cluster": str(row // 3 % 9), "score": 5} for row in range(n)]
        return rows, [DialogTurn(f"dialog {row // 3}", row % 3 + 1) for row in range(n)]

    before, after = (sample_whole_dialogs(*log(n), 90, 0) for n in (900, 909))
    assert len(set(before) - set(after)) <= 9
    assert Counter(row // 3 for row in after).most_common()[-1][1] == 3  # whole dialogs
