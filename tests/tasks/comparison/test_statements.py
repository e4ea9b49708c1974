"""What comparisons say: which settings differ, what is proven, what a p of its own says, what was not compared."""

from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, update

from tests.tasks.comparison.conftest import N, Plant
from yarus.db import journal
from yarus.db.tables import evaluation
from yarus.tasks.comparison.changes import line, statements
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.since import since_accepted

HALF = np.tile([0.0, 1.0], N // 2)


def of_kind(found: Any, kind: str, language: str = "ru") -> str:
    """The line of that kind; nothing where it is not said."""
    return next((line(one, language) for one in found if one["kind"] == kind), "")


def resolve(engine: Engine, name: str, accepted: bool = False, **columns: Any) -> None:
    with engine.begin() as connection:
        if accepted:
            columns["accepted_at"] = evaluation.c.started_at
        connection.execute(update(evaluation).where(evaluation.c.id == name).values(**columns))


def test_a_loss_of_what_is_no_headline_is_said_and_never_that_nothing_changed(engine: Engine, plant: Plant) -> None:
    """Headlines of tier 3 stay; its hit rate and its errors do not."""
    lost = np.where(np.arange(N) < 30, 0.0, 1.0)
    a = plant("tier3", e2e_score=HALF, **{"hit_rate@1": np.ones(N)})
    b = plant("tier3", e2e_score=HALF, **{"hit_rate@1": lost})
    found = compare(engine, a, b)
    assert found["metrics"]["hit_rate@1"]["verdict"] == "regressed"
    said = found["statements"]
    assert of_kind(said, "regressed") == of_kind(said, "improved") == ""
    assert "хуже hit_rate@1 −0.500" in of_kind(said, "alone")
    assert of_kind(said, "nothing") == (
        "Главные метрики: исключено изменение больше чем на 0.050 по avg_e2e_score (−0.032 … +0.032)."
    )
    assert "случайно изменилось бы около" in of_kind(said, "alone")


def test_what_is_proven_comes_with_both_values_and_before_what_is_not_adjusted(engine: Engine, plant: Plant) -> None:
    a = plant(mrr=np.full(N, 0.75), **{"recall@5": np.full(N, 0.5)})
    b = plant(mrr=np.full(N, 0.25), **{"recall@5": np.full(N, 1.0)})
    said = compare(engine, a, b)["statements"]
    assert [one["kind"] for one in said] == ["regressed", "alone", "reach"]
    assert of_kind(said, "regressed") == "Стало хуже: mrr 0.750 → 0.250 (−0.500)."
    assert of_kind(said, "regressed", "en") == "Worse: mrr 0.750 → 0.250 (−0.500)."
    assert of_kind(said, "alone").startswith("Без поправки на число метрик: лучше recall@5 +0.500 (")


def test_a_change_that_no_digit_shows_is_not_said(engine: Engine, plant: Plant) -> None:
    said, times = {}, np.linspace(0.1, 0.12, N)
    for slower in (0.04, 0.2):
        a = plant(mrr=HALF, retrieval_latency_ms=times)
        b = plant(mrr=HALF, retrieval_latency_ms=times + slower)
        found = compare(engine, a, b)
        assert found["metrics"]["retrieval_latency_ms_p50"]["verdict"] == "regressed"
        said[slower] = of_kind(found["statements"], "alone")
    assert said[0.04] == "" and "retrieval_latency_ms_p50 +0.2" in said[0.2]


def test_too_few_to_exclude_a_change_is_not_no_change(engine: Engine, plant: Plant) -> None:
    few = {"n": 8, "case_id": [f"planted:{i}" for i in range(8)]}
    a, b = plant(mrr=HALF[:8], **few), plant(mrr=HALF[:8] * 0.5, **few)
    assert "вопросов мало, чтобы исключить" in of_kind(compare(engine, a, b)["statements"], "nothing")


def test_settings_that_differ_are_said_after_the_verdict(engine: Engine, plant: Plant) -> None:
    a, b = plant(mrr=HALF, sut_label="v1"), plant(mrr=HALF, sut_label="v2")
    dense = {"retriever": "dense", "embedder_identity": "e5|v:1", "vectors": "computed", "corpus": "a" * 64}
    text = {"retriever": "fulltext", "corpus": "b" * 64, "batch_size": 3, "index_recall": 0.9}
    resolve(engine, a, resolved=dense, versions={"yarus": "1"}, settings={"sut_service": {"request": "x"}})
    resolve(engine, b, resolved=text, versions={"yarus": "2"}, settings={"sut_service": {"request": "y"}})
    found = compare(engine, a, b)
    assert found["changed_settings"] == [
        {"name": "sut_label", "a": "v1", "b": "v2"},
        {"name": "retriever", "a": "dense", "b": "fulltext"},
        {"name": "corpus", "a": "a" * 64, "b": "b" * 64},
        {"name": "sut_service.request", "a": "x", "b": "y"},
        {"name": "versions.yarus", "a": "1", "b": "2"},
    ]
    assert [one["kind"] for one in found["statements"]][:2] == ["nothing", "settings"]
    told = of_kind(found["statements"], "settings")
    assert told.startswith("Изменили: версия системы (sut_label): v1 → v2, поиск (retriever): dense → fulltext, ")
    assert "корпус (corpus): aaaaaaaa → bbbbbbbb" in told


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        ({"generator": "m1"}, {"generator": "m2"}, ["generator"]),
        ({"generator_prompt": "a.txt|1"}, {"generator_prompt": "a.txt|2"}, ["generator_prompt"]),
        ({"sut": "http://one"}, {"sut": "http://two"}, ["sut"]),
        ({"embedder": "a", "embedder_identity": "a|1"}, {"embedder": "b", "embedder_identity": "b|1"}, ["embedder"]),
        ({"embedder_identity": "a|1"}, {"embedder_identity": "a|2"}, ["embedder_identity"]),
        ({}, {"reranker": "bge", "reranker_identity": "bge|1", "rerank_depth": 50}, ["reranker"]),
        ({"rerank_depth": 50, "reranker": "b"}, {"rerank_depth": 20, "reranker": "b"}, ["rerank_depth"]),
        ({"source_loaded_at": "1", "n_batches": 2}, {"source_loaded_at": "2"}, []),
    ],
)
def test_what_was_set_is_told_from_what_follows_of_it(
    engine: Engine, plant: Plant, before: Any, after: Any, names: list[str]
) -> None:
    a, b = plant(mrr=HALF), plant(mrr=HALF)
    for name, resolved in ((a, before), (b, after)):
        resolve(engine, name, resolved=resolved)
    assert [one["name"] for one in compare(engine, a, b)["changed_settings"]] == names


def test_a_first_evaluation_of_a_new_unit_is_no_first_evaluation(engine: Engine, plant: Plant) -> None:
    """Twenty labels more flip the unit, and the key with it: nothing is accepted, and that is said."""
    source = "flipped"
    a = plant(mrr=HALF, source=source, comparability={"unit": "page"})
    b = plant(mrr=HALF, source=source, comparability={"unit": "chunk"})
    found = since_accepted(engine, journal.find(engine, b))
    assert found is not None and "metrics" not in found
    assert found["a"]["evaluation_id"] == a
    said = statements([found])
    assert [one["kind"] for one in said] == ["not compared"]
    assert of_kind(said, "not compared") == "Не сравнить: что считается найденным (unit): page → chunk."
    assert since_accepted(engine, journal.find(engine, a)) is None


def test_what_is_aside_is_held_against_nothing_of_another_key(engine: Engine, plant: Plant) -> None:
    plant(mrr=HALF, source="asides", comparability={"unit": "page", "k": 3})
    b = plant(mrr=HALF, source="asides", comparability={"unit": "chunk", "k": 3})
    resolve(engine, b, resolved={"part_of": "sweep-1"})
    assert since_accepted(engine, journal.find(engine, b)) is None


def test_several_tiers_are_named_and_one_change_of_a_setting_is_said_once(engine: Engine, plant: Plant) -> None:
    found = []
    for tier, column in (("tier1", "mrr"), ("tier3", "e2e_score")):
        a, b = (plant(tier, **{column: np.full(N, value)}) for value in (0.75, 0.25))
        for name, retriever in ((a, "dense"), (b, "fulltext")):
            resolve(engine, name, resolved={"retriever": retriever})
        found.append(compare(engine, a, b))
    said = statements(found, named=True)
    assert of_kind(said, "settings") == "Изменили: поиск (retriever): dense → fulltext."
    assert of_kind(said, "regressed") == (
        "Стало хуже: поиск — mrr 0.750 → 0.250 (−0.500); вся система — avg_e2e_score 0.750 → 0.250 (−0.500)."
    )
