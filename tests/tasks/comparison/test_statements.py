"""Statements of comparisons: changed settings, proven and unadjusted changes, and what was not compared."""

from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine, update

from tests.tasks.comparison.conftest import N, Plant
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.db.tables import evaluation
from yarus.flows.terminal.comparisons.markdown import format_comparison_markdown
from yarus.tasks.comparison.baseline_comparison import compare_with_accepted
from yarus.tasks.comparison.changes import build_statements, format_statement
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.gate import gate
from yarus.tasks.comparison.gate_rules import read_gate_rules

HALF = np.tile([0.0, 1.0], N // 2)


def line_of_kind(statements: Any, kind: str, language: str = "ru") -> str:
    """Return the statement of that kind as a line; empty if there is none."""
    return next((format_statement(statement, language) for statement in statements if statement["kind"] == kind), "")


def resolve(engine: Engine, name: str, accepted: bool = False, **columns: Any) -> None:
    with engine.begin() as connection:
        if accepted:
            columns["accepted_at"] = evaluation.c.started_at
        connection.execute(update(evaluation).where(evaluation.c.id == name).values(**columns))


def test_statements_name_lost_hit_rate_of_tier3(engine: Engine, plant: Plant) -> None:
    """Compare with equal headline metrics, but a lower hit rate, which Holm's method includes; the gate's does not."""
    lost = np.where(np.arange(N) < 30, 0.0, 1.0)
    a = plant("tier3", e2e_score=HALF, **{"hit_rate@1": np.ones(N)})
    b = plant("tier3", e2e_score=HALF, **{"hit_rate@1": lost})
    comparison = compare(engine, a, b)
    hits = comparison["metrics"]["hit_rate@1"]
    assert hits["verdict"] == "regressed" and hits["p_holm"] == pytest.approx(2 * hits["p"])
    for lines in (comparison["statements"], build_statements([comparison])):
        assert line_of_kind(lines, "regressed") == "Стало хуже: hit_rate@1 1.000 → 0.500 (−0.500)."
        assert line_of_kind(lines, "improved") == line_of_kind(lines, "nothing") == line_of_kind(lines, "alone") == ""
    assert "**Worse: hit\\_rate@1" in format_comparison_markdown(comparison, "en").replace("\u200b", "")
    rules = gate(engine, b, read_gate_rules(), baseline=a)["rules"]
    assert "hit_rate@1" not in [rule["metric"] for rule in rules]


def test_statements_name_losses_of_other_metrics(engine: Engine, plant: Plant) -> None:
    """Compare with equal headline metrics, but a lower recall."""
    lost = np.where(np.arange(N) < 30, 0.0, 1.0)
    a = plant(mrr=HALF, **{"recall@5": np.ones(N)})
    b = plant(mrr=HALF, **{"recall@5": lost})
    comparison = compare(engine, a, b)
    assert comparison["metrics"]["recall@5"]["verdict"] == "regressed"
    lines = comparison["statements"]
    assert line_of_kind(lines, "regressed") == line_of_kind(lines, "improved") == ""
    assert "хуже recall@5 −0.500" in line_of_kind(lines, "alone")
    assert line_of_kind(lines, "nothing") == (
        "Главные метрики: исключено изменение больше чем на 0.050 по mrr (−0.032 … +0.032)."
    )
    assert "случайно изменилось бы около" in line_of_kind(lines, "alone")


def test_proven_changes_come_before_unadjusted_ones(engine: Engine, plant: Plant) -> None:
    a = plant(mrr=np.full(N, 0.75), **{"recall@5": np.full(N, 0.5)})
    b = plant(mrr=np.full(N, 0.25), **{"recall@5": np.full(N, 1.0)})
    lines = compare(engine, a, b)["statements"]
    assert [statement["kind"] for statement in lines] == ["regressed", "alone", "reach"]
    assert line_of_kind(lines, "regressed") == "Стало хуже: mrr 0.750 → 0.250 (−0.500)."
    assert line_of_kind(lines, "regressed", "en") == "Worse: mrr 0.750 → 0.250 (−0.500)."
    assert line_of_kind(lines, "alone").startswith("Без поправки на число метрик: лучше recall@5 +0.500 (")


def test_changes_rounded_to_zero_are_omitted(engine: Engine, plant: Plant) -> None:
    lines, times = {}, np.linspace(0.1, 0.12, N)
    for slower in (0.04, 0.2):
        a = plant(mrr=HALF, retrieval_latency_ms=times)
        b = plant(mrr=HALF, retrieval_latency_ms=times + slower)
        comparison = compare(engine, a, b)
        assert comparison["metrics"]["retrieval_latency_ms_p50"]["verdict"] == "regressed"
        lines[slower] = line_of_kind(comparison["statements"], "alone")
    assert lines[0.04] == "" and "retrieval_latency_ms_p50 +0.2" in lines[0.2]


def test_few_cases_do_not_exclude_a_change(engine: Engine, plant: Plant) -> None:
    few = {"n": 8, "case_id": [f"planted:{i}" for i in range(8)]}
    a, b = plant(mrr=HALF[:8], **few), plant(mrr=HALF[:8] * 0.5, **few)
    assert "вопросов слишком мало, чтобы исключить" in line_of_kind(compare(engine, a, b)["statements"], "nothing")


def test_changed_settings_follow_the_verdict(engine: Engine, plant: Plant) -> None:
    a, b = plant(mrr=HALF, sut_label="v1"), plant(mrr=HALF, sut_label="v2")
    dense = {"retriever": "dense", "embedder_identity": "e5|v:1", "vectors": "computed", "corpus": "a" * 64}
    text = {"retriever": "fulltext", "corpus": "b" * 64, "batch_size": 3, "index_recall": 0.9}
    resolve(engine, a, resolved=dense, versions={"yarus": "1"}, settings={"sut_service": {"request": "x"}})
    resolve(engine, b, resolved=text, versions={"yarus": "2"}, settings={"sut_service": {"request": "y"}})
    comparison = compare(engine, a, b)
    assert comparison["changed_settings"] == [
        {"name": "sut_label", "a": "v1", "b": "v2"},
        {"name": "retriever", "a": "dense", "b": "fulltext"},
        {"name": "corpus", "a": "a" * 64, "b": "b" * 64},
        {"name": "sut_service.request", "a": "x", "b": "y"},
        {"name": "versions.yarus", "a": "1", "b": "2"},
    ]
    assert [statement["kind"] for statement in comparison["statements"]][:2] == ["nothing", "settings"]
    line = line_of_kind(comparison["statements"], "settings")
    assert line.startswith("Изменили: версия системы (sut_label): v1 → v2, поиск (retriever): dense → fulltext, ")
    assert "корпус (corpus): aaaaaaaa → bbbbbbbb" in line


def test_changed_settings_have_present_names(engine: Engine, plant: Plant) -> None:
    a = plant(mrr=HALF)
    b = plant(mrr=HALF, comparability={"judge": {"mask_calls": True}})
    resolve(engine, b, resolved={"labels": "filled"}, settings={"refusals": "Sorry", "mask_calls": True})
    lines = compare(engine, a, b, force=True)["statements"]
    settings = line_of_kind(lines, "settings", "en")
    assert "labels (labels): — → llm" in settings and "refusal_phrases: — → Sorry" in settings
    assert "mask_model_input: — → true" in settings
    assert "judge.mask_model_input: — → true" in line_of_kind(lines, "measured otherwise", "en")
    with pytest.raises(InputError, match=r"judge\.mask_model_input is null and true"):
        compare(engine, a, b)


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
def test_changed_settings_omit_derived_ones(
    engine: Engine, plant: Plant, before: Any, after: Any, names: list[str]
) -> None:
    a, b = plant(mrr=HALF), plant(mrr=HALF)
    for name, resolved in ((a, before), (b, after)):
        resolve(engine, name, resolved=resolved)
    assert [setting["name"] for setting in compare(engine, a, b)["changed_settings"]] == names


def test_since_accepted_explains_changed_units(engine: Engine, plant: Plant) -> None:
    """Compare after new labels changed the unit and thereby the key: nothing is accepted, and the statement explains
    it.
    """
    source = "flipped"
    a = plant(mrr=HALF, source=source, comparability={"unit": "page"})
    b = plant(mrr=HALF, source=source, comparability={"unit": "chunk"})
    comparison = compare_with_accepted(engine, journal.find_evaluation(engine, b))
    assert comparison is not None and "metrics" not in comparison
    assert comparison["a"]["evaluation_id"] == a
    not_compared = build_statements([comparison])
    assert [statement["kind"] for statement in not_compared] == ["not compared"]
    assert line_of_kind(not_compared, "not compared") == "Не сравнить: что считается найденным (unit): page → chunk."
    assert compare_with_accepted(engine, journal.find_evaluation(engine, a)) is None


def test_since_accepted_is_none_for_sweep_arms(engine: Engine, plant: Plant) -> None:
    plant(mrr=HALF, source="asides", comparability={"unit": "page", "k": 3})
    b = plant(mrr=HALF, source="asides", comparability={"unit": "chunk", "k": 3})
    resolve(engine, b, resolved={"part_of": "sweep-1"})
    assert compare_with_accepted(engine, journal.find_evaluation(engine, b)) is None


def test_statements_of_tiers_name_shared_settings_once(engine: Engine, plant: Plant) -> None:
    comparisons = []
    for tier, column in (("tier1", "mrr"), ("tier3", "e2e_score")):
        a, b = (plant(tier, **{column: np.full(N, value)}) for value in (0.75, 0.25))
        for name, retriever in ((a, "dense"), (b, "fulltext")):
            resolve(engine, name, resolved={"retriever": retriever})
        comparisons.append(compare(engine, a, b))
    lines = build_statements(comparisons, named=True)
    assert line_of_kind(lines, "settings") == "Изменили: поиск (retriever): dense → fulltext."
    assert line_of_kind(lines, "regressed") == (
        "Стало хуже: поиск — mrr 0.750 → 0.250 (−0.500); вся система — avg_e2e_score 0.750 → 0.250 (−0.500)."
    )
