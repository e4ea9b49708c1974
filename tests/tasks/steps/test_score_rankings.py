"""Scoring of rankings: metrics of a table of cases, and undefined values."""

from typing import Any

import pyarrow as pa
import pytest

from yarus.metrics.table import grade, metrics_for_tier
from yarus.tasks.cases.rankings import add_metrics
from yarus.tasks.cases.table import make_cases
from yarus.tasks.evaluation.aggregate import MetricValue, aggregate_metrics, compute_coverage


def score_cases(*rows: tuple[str, list[str], list[str] | None], grades: list[list[float]] | None = None) -> pa.Table:
    """Score cases of (status, relevant, retrieved)."""
    n = len(rows)
    case_table = make_cases(
        case_id=[f"s:{number}" for number in range(n)],
        status=[row[0] for row in rows],
        reason=[None if row[0] == "ok" else "why" for row in rows],
        group=[None] * n,
        relevant=[row[1] for row in rows],
        irrelevant=[[]] * n,
        grades=grades or [None] * n,
        retrieved=[row[2] for row in rows],
        latency_ms=[1.0] * n,
        retrieval_latency_ms=[1.0] * n,
    )
    return add_metrics(case_table, {}, 10)


def summarise(scored: pa.Table) -> dict[str, MetricValue]:
    return {
        value.metric.name: value
        for value in aggregate_metrics(metrics_for_tier("tier1"), scored, seed=0, options={"depth": 10}, whole={})
    }


def test_score_matches_metrics_computed_by_hand() -> None:
    # Two relevant, at ranks 2 and 4 of four: DCG = 1/log2(3) + 1/log2(5); ideal = 1 + 1/log2(3).
    scored = score_cases(("ok", ["b", "d"], ["a", "b", "c", "d"])).to_pylist()[0]
    expected = {"hit_rate@1": 0, "hit_rate@5": 1, "mrr": 1 / 2, "recall@3": 1 / 2, "recall@5": 1, "precision@5": 2 / 5}
    assert {name: scored[name] for name in expected} == expected
    assert scored["ndcg@10"] == pytest.approx((0.6309297536 + 0.4306765581) / 1.6309297536)


def test_score_is_0_for_empty_and_none_for_failed_ranking() -> None:
    rows = (("ok", ["a"], ["a"]), ("ok", ["a"], []), ("sut_error", ["a"], None), ("unlabelled", [], ["a"]))
    scored = score_cases(*rows)
    assert scored["mrr"].to_pylist() == [1.0, 0.0, None, None]
    mrr = summarise(scored)["mrr"]
    assert (mrr.value, mrr.n_scored, mrr.n_total) == (0.5, 2, 4)


def test_score_uses_grades_as_gain_in_ndcg_only() -> None:
    scored = score_cases(("ok", ["a", "b"], ["b", "a"]), grades=[[3.0, 1.0]]).to_pylist()[0]
    assert (scored["hit_rate@1"], scored["recall@1"]) == (1.0, 0.5)
    # DCG = 1 + 3/log2(3), ideal = 3 + 1/log2(3)
    assert scored["ndcg@10"] == pytest.approx((1 + 3 * 0.6309297536) / (3 + 0.6309297536))


def test_summarise_gives_reason_when_nothing_was_measured() -> None:
    values = summarise(score_cases(("unlabelled", [], ["a"]), ("unlabelled", [], ["a"]), ("sut_error", ["a"], None)))
    for name in ("mrr", "hit_rate@1", "ndcg@10"):
        row = values[name].row()
        assert (row["value"], row["ci_low"], row["ci_high"], row["grade"]) == (None, None, None, None)
        assert (row["n_scored"], row["n_total"]) == (0, 3)
        assert row["reason"] == "2 of 3 cases are unlabelled"


def test_summarise_keeps_metric_order_and_signatures() -> None:
    values = list(summarise(score_cases(("ok", ["a"], ["a"]))).values())
    assert [value.metric.name for value in values] == [metric.name for metric in metrics_for_tier("tier1")]
    assert all(value.signature.startswith(value.metric.name) for value in values)
    assert grade("hit_rate@1", 1.0) == "excellent"
    assert values[0].row()["grade"] is None, "one case leaves every grade possible, which is none"


@pytest.mark.parametrize(
    ("statuses", "share"),
    [
        ({"ok": 4}, 1.0),
        ({"ok": 3, "sut_error": 1}, 0.75),
        ({"ok": 2, "sut_refusal": 1, "judge_error": 1}, 0.75),  # a refusal is measured
        ({"ok": 1, "unlabelled": 5, "stale_label": 5, "not_applicable": 5}, 1.0),
        ({"skipped_budget": 1, "parse_error": 1}, 0.0),
        ({"unlabelled": 3}, None),
        ({}, None),
    ],
)
def test_coverage_by_status(statuses: dict[str, int], share: float | None) -> None:
    listed = [status for status, n in statuses.items() for _ in range(n)]
    assert compute_coverage(pa.table({"status": pa.array(listed, pa.string())})) == share


def test_percentile_interval_uses_groups_and_is_open_for_few() -> None:
    scored = score_cases(*[("ok", ["a"], ["a"])] * 200)
    slow = [float(100 + number // 10) for number in range(200)]  # those of a page take as long
    timed = scored.set_column(scored.column_names.index("retrieval_latency_ms"), "retrieval_latency_ms", pa.array(slow))
    pages = pa.array([f"page {number // 10}" for number in range(200)])
    grouped = timed.set_column(timed.column_names.index("group"), "group", pages)
    name = "retrieval_latency_ms_p50"
    wide, narrow = (summarise(table)[name] for table in (grouped, timed))
    assert wide.ci_low < narrow.ci_low < narrow.ci_high < wide.ci_high  # type: ignore[operator]
    few = summarise(timed.slice(0, 30))["retrieval_latency_ms_p95"]
    assert few.ci_low is not None and few.ci_high is None


def test_summarise_interval_widens_with_groups() -> None:
    rows: list[Any] = [("ok", ["a"], ["a"] if number < 20 else ["b", "a"]) for number in range(40)]
    alone = score_cases(*rows)
    grouped = alone.set_column(
        alone.column_names.index("group"), "group", pa.array([f"page {number // 10}" for number in range(40)])
    )

    def width(scored: pa.Table) -> float:
        mrr = summarise(scored)["mrr"]
        assert mrr.ci_low is not None
        assert mrr.ci_high is not None
        return mrr.ci_high - mrr.ci_low

    assert width(grouped) > 1.5 * width(alone)


def test_score_counts_duplicates_once() -> None:
    """Of two relevant results one is found, as its duplicate; its second occurrence does not count."""
    cases = make_cases(
        retrieved=[["x", "a2", "a1", "b"]], relevant=[["a1", "a2", "c"]], irrelevant=[["x"]], grades=[None]
    )
    [case] = add_metrics(cases, {"a1": "a1", "a2": "a1"}, 10).to_pylist()
    assert (case["mrr"], case["recall@10"], case["precision@3"]) == (0.5, 0.5, pytest.approx(1 / 3))
    assert case["judged@5"] == pytest.approx(2 / 3)  # of x, a and b
    assert case["bpref"] == 0  # the one that is not relevant stands above it
    [separate] = add_metrics(cases, {}, 10).to_pylist()
    assert separate["recall@10"] == pytest.approx(2 / 3)


def test_score_if_unjudged_results_were_relevant() -> None:
    [case] = score_cases(("ok", ["b", "z"], ["a", "b", "c"])).to_pylist()
    assert (case["hit_rate@1"], case["if_right"]["hit_rate@1"]) == (0, 1)
    assert (case["recall@3"], case["if_right"]["recall@3"]) == (0.5, 0.75)
    assert case["unjudged_above"] == 1
    assert all(case["if_right"][name] >= case[name] for name in case["if_right"])
    assert score_cases(("unlabelled", [], ["a"]))["if_right"].to_pylist() == [None]
