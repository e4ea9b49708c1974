"""Samples: fair, of every stratum its share, and with the same members when the log grows."""

from collections import Counter
from random import Random
from statistics import mean

import pytest

from yarus.tasks.cases.dialogs import Place, sampled_whole
from yarus.tasks.cases.sampling import sampled

LIMIT, NEW = 200, 8


def names(n: int) -> list[str]:
    return [f"q{number}" for number in range(n)]


def topics(n: int, seed: int, topics: int = 60) -> list[str]:
    """Topics of very different size, with three scores."""
    chance = Random(seed)
    sizes = [chance.paretovariate(1) for _ in range(topics)]
    return [f"{topic}|{chance.choice([5, None, 1])}" for topic in chance.choices(range(topics), sizes, k=n)]


@pytest.mark.slow("simulation: many samples")
def test_every_stratum_keeps_its_share_but_for_a_few_cases() -> None:
    """Of 700 in 1,000 a sample of 100 that knows no strata is off by 4.3 as a standard deviation."""
    strata = ["a"] * 700 + ["b"] * 250 + ["c"] * 50
    for seed in range(200):
        counts = Counter(strata[number] for number in sampled(names(1000), strata, 100, seed))
        assert all(abs(counts[name] - share) <= 4 for name, share in (("a", 70), ("b", 25), ("c", 5))), (seed, counts)


def test_it_is_seeded_ascending_and_without_repeats() -> None:
    ids, strata = names(500), [str(number % 7) for number in range(500)]
    first = sampled(ids, strata, 60, 1)
    assert first == sampled(ids, strata, 60, 1) == sorted(set(first))
    assert len(first) == 60
    assert first != sampled(ids, strata, 60, 2)
    assert sampled(ids, strata, None, 0) == sampled(ids, strata, 500, 0) == sampled(ids, strata, 501, 0)
    assert sampled(ids, strata, None, 0) == list(range(500))
    assert sampled(ids, strata, 1, 0) != sampled(ids, strata, 1, 3)
    assert sampled([], [], 5, 0) == []


@pytest.mark.slow("simulation: many samples")
def test_every_case_is_as_likely() -> None:
    strata = ["a"] * 35 + ["b"] * 15 + ["c"] * 6 + ["d"] * 3 + ["e"]
    drawn = Counter(strata[number] for seed in range(4000) for number in sampled(names(60), strata, 17, seed))
    for stratum, n in Counter(strata).items():
        assert drawn[stratum] / 4000 / n == pytest.approx(17 / 60, abs=0.03), stratum


def test_the_order_of_the_log_does_not_matter() -> None:
    ids, strata = names(300), topics(300, 0)
    order = Random(1).sample(range(300), 300)
    mixed = sampled([ids[number] for number in order], [strata[number] for number in order], 40, 3)
    assert {ids[order[number]] for number in mixed} == {ids[number] for number in sampled(ids, strata, 40, 3)}


def test_a_log_that_loses_questions_replaces_hardly_more_than_those() -> None:
    more = []
    for seed in range(40):
        ids, strata = names(1_000), topics(1_000, seed)
        gone = set(Random(seed).sample(ids, NEW))
        left = [number for number in range(1_000) if ids[number] not in gone]
        after = sampled([ids[number] for number in left], [strata[number] for number in left], LIMIT, seed)
        kept = {ids[left[number]] for number in after}
        more.append(len({ids[number] for number in sampled(ids, strata, LIMIT, seed)} - gone - kept))
    assert mean(more) <= 2


def test_dialogs_keep_their_members_too() -> None:
    def log(n: int) -> tuple[list[dict[str, object]], list[Place]]:
        rows = [{"question_id": str(row), "cluster": str(row // 3 % 9), "score": 5} for row in range(n)]
        return rows, [Place(f"dialog {row // 3}", row % 3 + 1) for row in range(n)]

    before, after = (sampled_whole(*log(n), 90, 0) for n in (900, 909))
    assert len(set(before) - set(after)) <= 9
    assert Counter(row // 3 for row in after).most_common()[-1][1] == 3  # whole ones
