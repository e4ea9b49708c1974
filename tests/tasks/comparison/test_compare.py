"""Comparing evaluations as they are stored: which cases, which metrics, what is refused, what broke, where."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import Engine

from tests.tasks.comparison.conftest import NUMBERS, N, Plant
from yarus.db import journal
from yarus.db.errors import InputError, ResultsUnavailable
from yarus.tasks.cases.table import table
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.slices import kind_of, labels_of
from yarus.tasks.evaluation.result_files import read, write_batches
from yarus.tasks.evaluation.summary import as_json

HITS = (np.arange(N) % 3 > 0).astype(float)
RANKS = 1 / (1 + np.arange(N) % 5)


def metrics(document: dict[str, Any]) -> dict[str, Any]:
    return {name: one for name, one in document["metrics"].items() if one["reason"] is None}


def test_the_document_is_as_agreed(engine: Engine, plant: Plant) -> None:
    a = plant(**{"hit_rate@1": HITS, "mrr": RANKS}, sut_label="1.0")
    b = plant(**{"hit_rate@1": HITS[::-1].copy(), "mrr": RANKS})
    found = compare(engine, a, b)
    assert json.loads(as_json(found))["n_common"] == N
    assert (found["comparable"], found["differs"], found["paired"]) == (True, [], True)
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
    assert tuple(found["a"]) == side
    assert (found["a"]["evaluation_id"], found["a"]["sut_label"], found["b"]["sut_label"]) == (a, "1.0", None)
    compared = metrics(found)
    assert list(compared) == ["hit_rate@1", "mrr", "sut_error_rate", "unlabelled_rate", "stale_label_rate"]
    assert found["metrics"]["ndcg@10"]["reason"] == "it was not measured in a and b"
    assert found["metrics"]["ndcg@10"]["difference"] is None


@pytest.mark.slow("breadth: statsmodels as a second opinion")
def test_yes_and_no_and_holm_agree_with_statsmodels(engine: Engine, plant: Plant) -> None:
    from statsmodels.stats.contingency_tables import mcnemar
    from statsmodels.stats.multitest import multipletests

    worse = np.where(np.arange(N) < 12, 0.0, HITS)
    found = metrics(compare(engine, plant(**{"hit_rate@1": HITS, "mrr": RANKS}),
                            plant(**{"hit_rate@1": worse, "mrr": np.clip(RANKS - 0.02, 0, 1)})))  # fmt: skip
    only_a = int((worse < HITS).sum())
    assert found["hit_rate@1"]["p"] == pytest.approx(mcnemar([[0, only_a], [0, 0]], exact=True).pvalue)
    assert found["hit_rate@1"]["difference"] == pytest.approx((worse - HITS).mean())
    headlines = [one for one in found.values() if one["p_holm"] is not None]
    assert [found["hit_rate@1"], found["mrr"]] == headlines, "only these, though others were compared"
    assert sum(one["p"] is not None for one in found.values()) > 2
    ps, holm = ([one[name] for one in headlines] for name in ("p", "p_holm"))
    assert holm == pytest.approx(multipletests(ps, method="holm")[1].tolist())
    assert [one["verdict"] for one in found.values()][:2] == ["regressed", "regressed"]


def test_only_common_cases_that_both_sides_measured_count(engine: Engine, plant: Plant) -> None:
    a = plant(mrr=np.where(np.arange(N) < 5, np.nan, 0.5))
    ids = [f"planted:{i}" for i in range(N - 1, 9, -1)]  # in another order, without the first ten
    b = plant(n=N - 10, case_id=ids, mrr=np.where(np.arange(N - 10) < 2, np.nan, 0.75))
    found = compare(engine, a, b)
    one = found["metrics"]["mrr"]
    assert (found["n_common"], one["n"], one["n_missing"]) == (50, 48, 2)
    assert (one["a"], one["b"], one["difference"]) == (0.5, 0.75, 0.25)


def test_cases_of_a_group_count_together(engine: Engine, plant: Plant) -> None:
    groups = [f"user {i // 20}" for i in range(N)]
    one = compare(engine, *(plant(mrr=np.full(N, value), group=groups) for value in (0.2, 0.6)))["metrics"]["mrr"]
    assert one["p"] == 2 / 2**3  # three users, whatever they asked
    assert (one["verdict"], one["smallest_detectable"]) == ("inconclusive", None)


def test_the_headline_stratum_is_compared(engine: Engine, plant: Plant) -> None:
    strata = ["confirmed" if i < 30 else "agreement" for i in range(N)]
    a, b = (plant("real_users", stratum=strata, mrr=np.where(np.arange(N) < 30, value, 0.1)) for value in (0.2, 0.4))
    found = compare(engine, a, b)
    assert (found["n_common"], found["metrics"]["mrr"]["difference"]) == (30, pytest.approx(0.2))


def test_cases_that_broke_were_fixed_or_changed_their_status(engine: Engine, plant: Plant) -> None:
    before, after = np.full(N, 0.5), np.full(N, 0.5)
    after[3], after[4], after[5], after[6] = 0.2, 0.25, 1.0, np.nan
    status = ["sut_error" if i == 6 else "ok" for i in range(N)]
    hits = np.where(np.arange(N) == 3, 0.0, 1.0)
    a = plant(**{"mrr": before, "hit_rate@1": np.ones(N)})
    cases = compare(engine, a, plant(**{"mrr": after, "hit_rate@1": hits}, status=status))["cases"]
    [broke] = cases["broke"]  # one line a question, with every metric; a fall of 0.25, the next one, is not larger
    assert broke == {
        "case_id": "planted:3",
        "question": "Когда сдают книгу 3?",
        "moved": [
            {"metric": "hit_rate@1", "before": 1.0, "after": 0.0},
            {"metric": "mrr", "before": 0.5, "after": 0.2},
        ],
        "n": 1,
    }
    assert [(one["case_id"], one["moved"][0]["metric"]) for one in cases["fixed"]] == [("planted:5", "mrr")]
    assert [(one["case_id"], one["before"], one["after"]) for one in cases["changed_status"]] == [
        ("planted:6", "ok", "sut_error")
    ]


def test_of_a_metric_where_less_is_better_a_rise_breaks(engine: Engine, plant: Plant) -> None:
    a, b = (plant("ux", cache_wrong_hit_rate=np.full(N, value)) for value in (0.0, 1.0))
    found = compare(engine, a, b)
    assert len(found["cases"]["broke"]) == N
    assert found["metrics"]["cache_wrong_hit_rate"]["verdict"] == "regressed"


def test_slices_show_where_it_changed(engine: Engine, plant: Plant) -> None:
    questions = ["Где касса?"] * 20 + ["Можно ли сдать экзамен раньше срока, если я болел?"] * 36 + ["Кто?"] * 4
    after = np.where(np.arange(N) < 20, 0.9, 0.5)
    a, b = plant(mrr=np.full(N, 0.5), question=questions), plant(mrr=after, question=questions)
    found = compare(engine, a, b)
    kinds = found["slices"]["type"]
    assert list(kinds) == ["yes-no", "where"]
    assert kinds["where"]["n"] == kinds["where"]["mrr"]["n"] == 20
    assert kinds["where"]["mrr"]["ci_low"] == pytest.approx(0.4)
    assert kinds["yes-no"]["mrr"]["difference"] == 0
    assert found["small_slices"]["type"] == {"values": 1, "cases": 4}


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("Кто ректор?", "who"), ("Во сколько обед?", "when"), ("подскажите, где деканат", "where"),
        ("как и когда подать", "how"), ("Можно ли узнать, где касса?", "yes-no"), ("Какая стипендия?", "other"),
        ("Is it open?", "yes-no"), ("Where and when?", "where"), ("What is it?", "other"), ("показать", "other"),
        ("", None), (None, None), ("<script>как</script>", "how"), ("\u202eкогда", "when"),
    ],
)  # fmt: skip
def test_the_kind_of_a_question(question: str | None, kind: str | None) -> None:
    assert kind_of(question) == kind


def test_a_slice_of_one_value_is_none() -> None:
    cases = table(case_id=["1", "2"], question=["Где?", None], answerable=[True, None])
    assert labels_of(cases) == {}
    several = table(case_id=["1", "2"], question=["Где?", "Кто там?"], answerable=[True, False], cluster=["x", "y"])
    assert labels_of(several) == {
        "topic": ["x", "y"], "length": ["short", "long"], "type": ["where", "who"], "answerable": ["yes", "no"],
    }  # fmt: skip


def test_what_is_not_comparable_is_refused_with_what_differs(engine: Engine, plant: Plant) -> None:
    judge = {"model": "j-1", "temperature": 0}
    a = plant(mrr=RANKS, comparability={"k": 10, "judge": judge, "metrics": ["mrr|v:1", "ndcg|v:1"]})
    b = plant(mrr=RANKS, comparability={"k": 5, "judge": judge | {"model": "j-2"}, "metrics": ["mrr|v:2", "ndcg|v:1"]})
    with pytest.raises(InputError, match=r'judge.model is "j-1" and "j-2"; k is 10 and 5;.*--force'):
        compare(engine, a, b)
    forced = compare(engine, a, b, force=True)
    assert (forced["comparable"], forced["paired"]) == (False, True)
    assert forced["differs"] == [
        {"part": "judge.model", "a": "j-1", "b": "j-2"},
        {"part": "k", "a": 10, "b": 5},
        {"part": "metrics", "a": ["mrr|v:1"], "b": ["mrr|v:2"]},
    ]


def test_other_cases_are_compared_unpaired_by_force(engine: Engine, plant: Plant) -> None:
    a = plant(mrr=RANKS, retrieval_latency_ms=np.arange(N) + 1.0)
    b = plant(n=40, mrr=RANKS[:40] * 0.5, retrieval_latency_ms=np.arange(40) + 5.0, source="other",
              case_id=[f"other:{i}" for i in range(40)], comparability={"cases": {"sha256": "d"}})  # fmt: skip
    with pytest.raises(InputError, match=r'source is "planted" and "other"; cases.sha256 is "c" and "d"'):
        compare(engine, a, b)
    found = compare(engine, a, b, force=True)
    assert (found["paired"], found["n_common"], found["cases"]["broke"], found["slices"]) == (False, 0, [], {})
    assert (found["metrics"]["mrr"]["method"], found["metrics"]["mrr"]["n"]) == ("Welch", 40)
    assert found["metrics"]["retrieval_latency_ms_p50"]["method"] == "independent bootstrap, percentile"
    json.loads(as_json(found))


def test_nothing_in_common_is_said(engine: Engine, plant: Plant) -> None:
    a, b = plant(mrr=RANKS), plant(mrr=RANKS, case_id=[f"new:{i}" for i in range(N)])
    with pytest.raises(InputError, match="no case in common; --force compares them unpaired"):
        compare(engine, a, b)
    assert compare(engine, a, b, force=True)["paired"] is False


def test_other_tiers_are_refused(engine: Engine, plant: Plant) -> None:
    a, b, c = plant(mrr=RANKS), plant("ux"), plant("real_users", mrr=RANKS, stratum=["confirmed"] * N)
    with pytest.raises(InputError, match="tiers tier1 and ux have no metric in common"):
        compare(engine, a, b, force=True)
    with pytest.raises(InputError, match='tier is "tier1" and "real_users"'):
        compare(engine, a, c)
    assert compare(engine, a, c, force=True)["metrics"]["mrr"]["difference"] == 0


@pytest.mark.parametrize("n", [0, 1])
def test_one_case_is_too_few(engine: Engine, plant: Plant, n: int) -> None:
    a, b = (plant(n=n, mrr=RANKS[:n]) for _ in range(2))
    if n == 0:
        with pytest.raises(InputError, match="no case in common"):
            compare(engine, a, b)
    found = compare(engine, a, b, force=n == 0)
    assert found["metrics"]["mrr"]["reason"] is not None
    assert found["metrics"]["mrr"]["verdict"] == "inconclusive"
    assert {one["p"] for one in found["metrics"].values()} == {None}


def test_all_failed_is_no_number(engine: Engine, plant: Plant) -> None:
    a, b = (plant(mrr=np.full(N, np.nan), status=["sut_error"] * N) for _ in range(2))
    found = compare(engine, a, b)["metrics"]
    assert (found["mrr"]["reason"], found["mrr"]["a"]) == ("0 cases were measured on both sides", None)
    assert (found["sut_error_rate"]["a"], found["sut_error_rate"]["difference"]) == (1.0, 0.0)


def test_nothing_that_varies_is_no_difference(engine: Engine, plant: Plant) -> None:
    a, b = (plant(mrr=np.full(N, 0.5)) for _ in range(2))
    one = compare(engine, a, b)["metrics"]["mrr"]
    assert (one["p"], one["ci_low"], one["ci_high"], one["verdict"]) == (1.0, 0.0, 0.0, "no difference shown")


def test_a_metric_of_one_side_has_a_reason(engine: Engine, plant: Plant) -> None:
    found = compare(engine, plant(mrr=RANKS), plant(**{"hit_rate@1": HITS}))["metrics"]
    assert found["mrr"]["reason"] == "it was not measured in b"
    assert found["hit_rate@1"]["reason"] == "it was not measured in a"


@pytest.mark.parametrize("harm", ["deleted", "truncated", "no parquet", "empty"])
def test_a_file_that_is_gone_or_damaged_is_named(engine: Engine, plant: Plant, harm: str) -> None:
    a, b = plant(mrr=RANKS), plant(mrr=RANKS)
    file = Path(journal.find(engine, b)["parquet"])
    content = file.read_bytes()
    if harm == "deleted":
        file.unlink()
    else:
        file.write_bytes({"truncated": content[: len(content) // 2], "no parquet": b"x" * 500, "empty": b""}[harm])
    with pytest.raises(ResultsUnavailable, match=f"evaluation {b}: its file .* cannot be read"):
        compare(engine, a, b)


def test_another_evaluations_file_is_refused(engine: Engine, plant: Plant) -> None:
    a, b = plant(mrr=RANKS), plant(mrr=RANKS)
    mine, theirs = (Path(journal.find(engine, name)["parquet"]) for name in (a, b))
    write_batches([read(str(mine))], mine, evaluation_id=a)
    theirs.write_bytes(mine.read_bytes())
    with pytest.raises(ResultsUnavailable, match=f"evaluation {b}: its file {theirs} holds the cases of .* {a};"):
        compare(engine, a, b)


def test_an_evaluation_without_cases_is_refused(engine: Engine, plant: Plant) -> None:
    a, name = plant(mrr=RANKS), f"compare-failed-{next(NUMBERS)}"
    row = {"id": name, "tier": "tier1", "source": "planted", "parameters": {}, "settings": {}, "versions": {}}
    journal.open_evaluation(engine, row)
    journal.close(engine, name, "failed", error="the disk is full")
    with pytest.raises(InputError, match=f"{name} is failed and has no cases to compare: the disk is full"):
        compare(engine, a, name)


def test_the_previous_one_is_found(engine: Engine, plant: Plant) -> None:
    parts = {"k": next(NUMBERS) + 1_000}
    a, b = (plant(mrr=RANKS, comparability=parts) for _ in range(2))
    assert compare(engine, "previous", b)["a"]["evaluation_id"] == a
    with pytest.raises(InputError, match=f"{a} has no earlier completed one with the same comparability key"):
        compare(engine, "previous", a)
    with pytest.raises(InputError, match=f"{a} has no accepted one before it .*; yarus gate --accept"):
        compare(engine, "baseline", a)


def test_only_the_metrics_asked_for(engine: Engine, plant: Plant) -> None:
    a, b = (plant(**{"mrr": RANKS, "ndcg@5": RANKS, "hit_rate@1": HITS}) for _ in range(2))
    assert list(compare(engine, a, b, only=("ndcg@5",))["metrics"]) == ["ndcg@5"]
    with pytest.raises(InputError, match=r"no metric 'NDCG'; did you mean 'ndcg@10'\?"):
        compare(engine, a, b, only=("NDCG",))
    with pytest.raises(InputError, match=r"no metric of tier1: 'avg_bleu'; there are: .*hit_rate@1"):
        compare(engine, a, b, only=("avg_bleu",))
