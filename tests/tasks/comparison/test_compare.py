"""Comparisons of stored evaluations: cases, metrics, errors, changed cases and slices."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.tasks.comparison.conftest import NUMBERS, N, Plant
from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.tasks.cases.table import make_cases
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.slices import question_kind, slice_labels
from yarus.tasks.evaluation.result_files import read_results, write_batches
from yarus.tasks.evaluation.summary import to_json

HITS = (np.arange(N) % 3 > 0).astype(float)
RANKS = 1 / (1 + np.arange(N) % 5)


def compared_metrics(document: dict[str, Any]) -> dict[str, Any]:
    return {name: metric for name, metric in document["metrics"].items() if metric["reason"] is None}


def test_compare_returns_the_documented_fields(engine: Engine, plant: Plant) -> None:
    a = plant(**{"hit_rate@1": HITS, "mrr": RANKS}, sut_label="1.0")
    b = plant(**{"hit_rate@1": HITS[::-1].copy(), "mrr": RANKS})
    result = compare(engine, a, b)
    assert json.loads(to_json(result))["n_common"] == N
    assert (result["comparable"], result["key_differences"], result["paired"]) == (True, [], True)
    side = (
        "evaluation_id",
        "name",
        "started_at",
        "tier",
        "source",
        "sut_label",
        "state",
        "error",
        "comparability_key",
        "system",
    )
    assert tuple(result["a"]) == side
    assert (result["a"]["evaluation_id"], result["a"]["sut_label"], result["b"]["sut_label"]) == (a, "1.0", None)
    compared = compared_metrics(result)
    assert list(compared) == ["hit_rate@1", "mrr", "sut_error_rate", "unlabelled_rate", "stale_label_rate"]
    assert result["metrics"]["ndcg@10"]["reason"] == "it was not measured in a and b"
    assert result["metrics"]["ndcg@10"]["difference"] is None


@pytest.mark.slow("breadth: statsmodels as a second opinion")
def test_compare_agrees_with_statsmodels(engine: Engine, plant: Plant) -> None:
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests

    worse = np.where(np.arange(N) < 12, 0.0, HITS)
    results = compared_metrics(compare(engine, plant(**{"hit_rate@1": HITS, "mrr": RANKS}),
                            plant(**{"hit_rate@1": worse, "mrr": np.clip(RANKS - 0.02, 0, 1)})))  # fmt: skip
    only_a = int((worse < HITS).sum())
    assert results["hit_rate@1"]["p"] == pytest.approx(mcnemar([[0, only_a], [0, 0]], exact=True).pvalue)
    assert results["hit_rate@1"]["difference"] == pytest.approx((worse - HITS).mean())
    headlines = [metric for metric in results.values() if metric["p_holm"] is not None]
    assert [results["hit_rate@1"], results["mrr"]] == headlines, "only these, though others were compared"
    assert sum(metric["p"] is not None for metric in results.values()) > 2
    ps, holm = ([metric[name] for metric in headlines] for name in ("p", "p_holm"))
    assert holm == pytest.approx(multipletests(ps, method="holm")[1].tolist())
    assert [metric["verdict"] for metric in results.values()][:2] == ["regressed", "regressed"]


def test_compare_uses_cases_measured_on_both_sides(engine: Engine, plant: Plant) -> None:
    a = plant(mrr=np.where(np.arange(N) < 5, np.nan, 0.5))
    ids = [f"planted:{i}" for i in range(N - 1, 9, -1)]  # in another order, without the first ten
    b = plant(n=N - 10, case_id=ids, mrr=np.where(np.arange(N - 10) < 2, np.nan, 0.75))
    comparison = compare(engine, a, b)
    metric = comparison["metrics"]["mrr"]
    assert (comparison["n_common"], metric["n"], metric["n_missing"]) == (50, 48, 2)
    assert (metric["a"], metric["b"], metric["difference"]) == (0.5, 0.75, 0.25)


def test_compare_counts_groups_as_units(engine: Engine, plant: Plant) -> None:
    groups = [f"user {i // 20}" for i in range(N)]
    metric = compare(engine, *(plant(mrr=np.full(N, value), group=groups) for value in (0.2, 0.6)))["metrics"]["mrr"]
    assert metric["p"] == 2 / 2**3  # three users are three units
    assert (metric["verdict"], metric["min_detectable_effect"]) == ("inconclusive", None)


def test_compare_uses_the_headline_stratum(engine: Engine, plant: Plant) -> None:
    strata = ["confirmed" if i < 30 else "agreement" for i in range(N)]
    a, b = (plant("real_users", stratum=strata, mrr=np.where(np.arange(N) < 30, value, 0.1)) for value in (0.2, 0.4))
    comparison = compare(engine, a, b)
    assert (comparison["n_common"], comparison["metrics"]["mrr"]["difference"]) == (30, pytest.approx(0.2))


def test_compare_lists_broken_fixed_and_changed_cases(engine: Engine, plant: Plant) -> None:
    before, after = np.full(N, 0.5), np.full(N, 0.5)
    after[3], after[4], after[5], after[6] = 0.2, 0.25, 1.0, np.nan
    status = ["sut_error" if i == 6 else "ok" for i in range(N)]
    hits = np.where(np.arange(N) == 3, 0.0, 1.0)
    a = plant(**{"mrr": before, "hit_rate@1": np.ones(N)})
    cases = compare(engine, a, plant(**{"mrr": after, "hit_rate@1": hits}, status=status))["cases"]
    [broke] = cases[
        "regressed_cases"
    ]  # one entry per question with every metric; the fall of 0.25 of the next case is too small
    assert broke == {
        "case_id": "planted:3",
        "question": "Когда сдают книгу 3?",
        "metric_changes": [
            {"metric": "hit_rate@1", "before": 1.0, "after": 0.0},
            {"metric": "mrr", "before": 0.5, "after": 0.2},
        ],
        "n": 1,
    }
    assert [(case["case_id"], case["metric_changes"][0]["metric"]) for case in cases["improved_cases"]] == [
        ("planted:5", "mrr")
    ]
    assert [(case["case_id"], case["before"], case["after"]) for case in cases["changed_status"]] == [
        ("planted:6", "ok", "sut_error")
    ]


def test_increase_breaks_a_case_when_lower_is_better(engine: Engine, plant: Plant) -> None:
    a, b = (plant("ux", cache_wrong_hit_rate=np.full(N, value)) for value in (0.0, 1.0))
    comparison = compare(engine, a, b)
    assert len(comparison["cases"]["regressed_cases"]) == N
    assert comparison["metrics"]["cache_wrong_hit_rate"]["verdict"] == "regressed"


def test_slices_locate_the_change(engine: Engine, plant: Plant) -> None:
    questions = ["Где касса?"] * 20 + ["Можно ли сдать экзамен раньше срока, если я болел?"] * 36 + ["Кто?"] * 4
    after = np.where(np.arange(N) < 20, 0.9, 0.5)
    a, b = plant(mrr=np.full(N, 0.5), question=questions), plant(mrr=after, question=questions)
    comparison = compare(engine, a, b)
    kinds = comparison["slices"]["type"]
    assert list(kinds) == ["yes-no", "where"]
    assert kinds["where"]["n"] == kinds["where"]["mrr"]["n"] == 20
    assert kinds["where"]["mrr"]["ci_low"] == pytest.approx(0.4)
    assert kinds["yes-no"]["mrr"]["difference"] == 0
    assert comparison["small_slices"]["type"] == {"values": 1, "cases": 4}


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Кто ректор?", "who"), ("Во сколько обед?", "when"), ("подскажите, где деканат", "where"),
        ("как и когда подать", "how"), ("Можно ли узнать, где касса?", "yes-no"), ("Какая стипендия?", "other"),
        ("Is it open?", "yes-no"), ("Where and when?", "where"), ("What is it?", "other"), ("показать", "other"),
        ("", None), (None, None), ("<script>как</script>", "how"), ("\u202eкогда", "when"),
    ],
)  # fmt: skip
def test_kind_of_question(question: str | None, kind: str | None) -> None:
    assert question_kind(question) == kind


def test_labels_of_omits_slices_with_one_value() -> None:
    cases = make_cases(case_id=["1", "2"], question=["Где?", None], answerable=[True, None])
    assert slice_labels(cases) == {}
    both = make_cases(case_id=["1", "2"], question=["Где?", "Кто там?"], answerable=[True, False], cluster=["x", "y"])
    assert slice_labels(both) == {
        "topic": ["x", "y"], "length": ["short", "long"], "type": ["where", "who"], "answerable": ["yes", "no"],
    }  # fmt: skip


def test_compare_names_differences_of_the_key(engine: Engine, plant: Plant) -> None:
    judge = {"model": "j-1", "temperature": 0}
    a = plant(mrr=RANKS, comparability={"k": 10, "judge": judge, "metrics": ["mrr|v:1", "ndcg|v:1"]})
    b = plant(mrr=RANKS, comparability={"k": 5, "judge": judge | {"model": "j-2"}, "metrics": ["mrr|v:2", "ndcg|v:1"]})
    with pytest.raises(InputError, match=r'judge.model is "j-1" and "j-2"; k is 10 and 5;.*--force'):
        compare(engine, a, b)
    forced = compare(engine, a, b, force=True)
    assert (forced["comparable"], forced["paired"]) == (False, True)
    assert forced["key_differences"] == [
        {"part": "judge.model", "a": "j-1", "b": "j-2"},
        {"part": "k", "a": 10, "b": 5},
        {"part": "metrics", "a": ["mrr|v:1"], "b": ["mrr|v:2"]},
    ]


def test_compare_is_unpaired_for_other_cases_when_forced(engine: Engine, plant: Plant) -> None:
    a = plant(mrr=RANKS, retrieval_latency_ms=np.arange(N) + 1.0)
    b = plant(n=40, mrr=RANKS[:40] * 0.5, retrieval_latency_ms=np.arange(40) + 5.0, source="other",
              case_id=[f"other:{i}" for i in range(40)], comparability={"cases": {"sha256": "d"}})  # fmt: skip
    with pytest.raises(InputError, match=r'source is "planted" and "other"; cases.sha256 is "c" and "d"'):
        compare(engine, a, b)
    result = compare(engine, a, b, force=True)
    assert (result["paired"], result["n_common"], result["cases"]["regressed_cases"], result["slices"]) == (
        False,
        0,
        [],
        {},
    )
    assert (result["metrics"]["mrr"]["method"], result["metrics"]["mrr"]["n"]) == ("Welch", 40)
    assert result["metrics"]["retrieval_latency_ms_p50"]["method"] == "independent bootstrap, percentile"
    json.loads(to_json(result))


def test_compare_rejects_evaluations_without_common_cases(engine: Engine, plant: Plant) -> None:
    a, b = plant(mrr=RANKS), plant(mrr=RANKS, case_id=[f"new:{i}" for i in range(N)])
    with pytest.raises(InputError, match="no case in common; --force compares them unpaired"):
        compare(engine, a, b)
    assert compare(engine, a, b, force=True)["paired"] is False


def test_compare_rejects_other_tiers(engine: Engine, plant: Plant) -> None:
    a, b, c = plant(mrr=RANKS), plant("ux"), plant("real_users", mrr=RANKS, stratum=["confirmed"] * N)
    with pytest.raises(InputError, match="tiers tier1 and ux have no metric in common"):
        compare(engine, a, b, force=True)
    with pytest.raises(InputError, match="their tiers differ, tier1 and real_users; choose two"):
        compare(engine, a, c)
    assert compare(engine, a, c, force=True)["metrics"]["mrr"]["difference"] == 0


@pytest.mark.parametrize("n", [0, 1])
def test_compare_is_inconclusive_for_one_case(engine: Engine, plant: Plant, n: int) -> None:
    a, b = (plant(n=n, mrr=RANKS[:n]) for _ in range(2))
    if n == 0:
        with pytest.raises(InputError, match="no case in common"):
            compare(engine, a, b)
    comparison = compare(engine, a, b, force=n == 0)
    assert comparison["metrics"]["mrr"]["reason"] is not None
    assert comparison["metrics"]["mrr"]["verdict"] == "inconclusive"
    assert {metric["p"] for metric in comparison["metrics"].values()} == {None}


def test_metric_is_null_when_all_cases_failed(engine: Engine, plant: Plant) -> None:
    a, b = (plant(mrr=np.full(N, np.nan), status=["sut_error"] * N) for _ in range(2))
    results = compare(engine, a, b)["metrics"]
    assert (results["mrr"]["reason"], results["mrr"]["a"]) == ("0 cases were measured on both sides", None)
    assert (results["sut_error_rate"]["a"], results["sut_error_rate"]["difference"]) == (1.0, 0.0)


def test_constant_metric_has_no_difference(engine: Engine, plant: Plant) -> None:
    a, b = (plant(mrr=np.full(N, 0.5)) for _ in range(2))
    mrr = compare(engine, a, b)["metrics"]["mrr"]
    assert (mrr["p"], mrr["ci_low"], mrr["ci_high"], mrr["verdict"]) == (1.0, 0.0, 0.0, "no difference shown")


def test_metric_missing_on_one_side_has_a_reason(engine: Engine, plant: Plant) -> None:
    results = compare(engine, plant(mrr=RANKS), plant(**{"hit_rate@1": HITS}))["metrics"]
    assert results["mrr"]["reason"] == "it was not measured in b"
    assert results["hit_rate@1"]["reason"] == "it was not measured in a"


@pytest.mark.parametrize("harm", ["deleted", "truncated", "no parquet", "empty"])
def test_compare_names_missing_or_damaged_files(engine: Engine, plant: Plant, harm: str) -> None:
    a, b = plant(mrr=RANKS), plant(mrr=RANKS)
    file = Path(journal.find_evaluation(engine, b)["parquet"])
    content = file.read_bytes()
    if harm == "deleted":
        file.unlink()
    else:
        file.write_bytes({"truncated": content[: len(content) // 2], "no parquet": b"x" * 500, "empty": b""}[harm])
    with pytest.raises(ResultsUnavailable, match=f"evaluation {b}: its file .* cannot be read"):
        compare(engine, a, b)


def test_compare_rejects_file_of_another_evaluation(engine: Engine, plant: Plant) -> None:
    a, b = plant(mrr=RANKS), plant(mrr=RANKS)
    file_a, file_b = (Path(journal.find_evaluation(engine, name)["parquet"]) for name in (a, b))
    write_batches([read_results(str(file_a))], file_a, evaluation_id=a)
    file_b.write_bytes(file_a.read_bytes())
    with pytest.raises(ResultsUnavailable, match=f"evaluation {b}: its file {file_b} holds the cases of .* {a};"):
        compare(engine, a, b)


def test_compare_rejects_evaluation_without_cases(engine: Engine, plant: Plant) -> None:
    a, name = plant(mrr=RANKS), f"compare-failed-{next(NUMBERS)}"
    row = {"id": name, "tier": "tier1", "source": "planted", "parameters": {}, "settings": {}, "versions": {}}
    journal.open_evaluation(engine, row)
    journal.finish_evaluation(engine, name, "failed", error="the disk is full")
    with pytest.raises(InputError, match=f"{name} is failed and has no cases to compare: the disk is full"):
        compare(engine, a, name)


def test_compare_resolves_previous_and_baseline(engine: Engine, plant: Plant) -> None:
    parts = {"k": next(NUMBERS) + 1_000}
    a, b = (plant(mrr=RANKS, comparability=parts) for _ in range(2))
    assert compare(engine, "previous", b)["a"]["evaluation_id"] == a
    with pytest.raises(InputError, match=f"{a} has no earlier completed one with the same comparability key"):
        compare(engine, "previous", a)
    with pytest.raises(
        InputError, match=f"{a} has no accepted one before it .*; accept one: yarus gate --accept EVALUATION"
    ):
        compare(engine, "baseline", a)


def test_compare_returns_only_requested_metrics(engine: Engine, plant: Plant) -> None:
    a, b = (plant(**{"mrr": RANKS, "ndcg@5": RANKS, "hit_rate@1": HITS}) for _ in range(2))
    assert list(compare(engine, a, b, only=("ndcg@5",))["metrics"]) == ["ndcg@5"]
    with pytest.raises(InputError, match=r"no metric 'NDCG'; did you mean 'ndcg@10'\?"):
        compare(engine, a, b, only=("NDCG",))
    with pytest.raises(InputError, match=r"no metric of tier1: 'avg_bleu'; there are: .*hit_rate@1"):
        compare(engine, a, b, only=("avg_bleu",))
