"""Check `yarus compare` for people and scripts: a night with itself, two retrievers, and refusals."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, run_here
from tests.support.evaluations import evaluate
from yarus.__main__ import cli
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.metric_values import NOT_COMPARED
from yarus.tasks.config.tiers import TIERS

Night = dict[str, dict[str, Any]]
pytestmark = pytest.mark.slow("breadth: comparisons of a night; test_gate.py and tests/tasks/comparison have others")


@pytest.fixture(scope="module")
def searched(home: Path, night: Night) -> str:
    """Evaluate the sample with text search, in this process without Prefect, and return the id."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        by_text: str = evaluate("tier1", source="sample", retriever="fulltext")["evaluation_id"]
    return by_text


@pytest.fixture
def retrievers(at_home: Path, night: Night, searched: str) -> tuple[str, str]:
    """Return the ids of the sample's evaluations with dense vectors and with text search."""
    return night["tier1"]["evaluation_id"], searched


def run(*words: str, language: str = "ru") -> Result:
    """Run the command in this process; raise its error as `main` would get it."""
    result = CliRunner(env={"YARUS_LANGUAGE": language}).invoke(cli, ["compare", *words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.mark.parametrize(
    "tier",
    TIERS,
)
def test_evaluation_equals_itself_in_every_metric(engine: Engine, at_home: Path, night: Night, tier: str) -> None:
    """Check that both sides have the tier's stored values, because both are recomputed from the same cases."""
    evaluation_id = night[tier]["evaluation_id"]
    compared = compare(engine, evaluation_id, evaluation_id)["metrics"]
    stored = night[tier]["metrics"]
    assert set(compared) == set(stored)
    for metric, change in compared.items():
        if metric in NOT_COMPARED:
            assert (change["reason"], change["a"]) == (NOT_COMPARED[metric], None)
        elif stored[metric]["value"] is None:
            assert (change["a"], change["difference"], change["p"]) == (None, None, None), metric
        else:
            assert change["a"] == change["b"] == pytest.approx(stored[metric]["value"], rel=1e-9, abs=1e-12), metric
            assert (change["difference"], change["p"]) == (0, 1), metric
            assert change["verdict"] in ("no difference shown", "inconclusive")


def test_two_retrievers_are_compared_by_case(at_home: Path, retrievers: tuple[str, str]) -> None:
    document = json.loads(run(*retrievers, "--json").stdout)
    assert (document["comparable"], document["paired"]) == (True, True)
    assert {side: document[side]["system"]["retriever"] for side in "ab"} == {"a": "dense", "b": "fulltext"}
    for change in document["metrics"].values():
        assert change["p"] is not None
        assert change["verdict"] in ("improved", "regressed", "changed", "no difference shown", "inconclusive")
        assert change["p_holm"] is None or change["p"] <= change["p_holm"] <= 1
        assert change["ci_low"] <= change["difference"] <= change["ci_high"]
    tested = {*TIERS["tier1"].headlines} - {"sut_error_rate"}  # neither side failed
    assert {name for name, change in document["metrics"].items() if change["p_holm"] is not None} == tested
    hits = document["metrics"]["hit_rate@1"]
    case_lists = [
        [
            case
            for case in document["cases"][kind]
            if "hit_rate@1" in (move["metric"] for move in case["metric_changes"])
        ]
        for kind in ("regressed_cases", "improved_cases")
    ]
    moved = [sum(case["n"] for case in entries) for entries in case_lists]
    assert (moved[1] - moved[0]) / hits["n"] == pytest.approx(hits["difference"])
    assert {"length", "type"} <= set(document["slices"])
    assert document == json.loads(run(*retrievers, "--json").stdout)  # the same to the last digit


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("ru", ("Сравнение", "Вывод", "Сломалось вопросов", "Изменили: поиск (retriever): dense → fulltext")),
        ("en", ("Verdict", "Questions that broke", "Changed: search (retriever): dense → fulltext")),
    ],
)
def test_comparison_prints_table_and_verdict(
    at_home: Path, retrievers: tuple[str, str], language: str, words: tuple[str, ...]
) -> None:
    output = run(*retrievers, language=language).stdout
    for word in (*words, "hit_rate@1", *retrievers):
        assert word in output
    last = " ".join(output.split("\n\n")[-1].split())
    assert ("hit_rate@1" in last) and ("245" in last)


@pytest.mark.parametrize(("only", "named"), [((), TIERS["tier1"].headlines), (("recall@1",), ("recall@1",))])
def test_comparison_prints_margins(
    at_home: Path, retrievers: tuple[str, str], only: tuple[str, ...], named: tuple[str, ...]
) -> None:
    words = [word for name in only for word in ("--metric", name)]
    metrics = json.loads(run(*retrievers, *words, "--json").stdout)["metrics"]
    text = run(*retrievers, *words, "--all", language="en").stdout
    (line,) = (line for line in text.splitlines() if line.startswith("Differences within these margins do not matter"))
    assert re.findall(r"(\S+) ±(\d+\.\d+)", line) == [(name, f"{metrics[name]['margin']:.3f}") for name in named]


def test_comparison_shows_one_metric_and_one_slice(at_home: Path, retrievers: tuple[str, str]) -> None:
    document = json.loads(run(*retrievers, "--metric", "mrr", "--slice", "type", "--json").stdout)
    assert (list(document["metrics"]), list(document["slices"])) == (["mrr"], ["type"])
    all_metrics = json.loads(run(*retrievers, "--json").stdout)["metrics"]
    assert document["metrics"]["mrr"] == all_metrics["mrr"], "adjusted for the headline metrics, however few are shown"
    output = run(*retrievers, "--metric", "mrr", "--slice", "type").stdout
    assert "тип вопроса" in output
    assert "длина вопроса" not in output


def test_refusal_has_exit_code_2(at_home: Path, retrievers: tuple[str, str], night: Night) -> None:
    refusal = run_here("compare", retrievers[0], night["real_users"]["evaluation_id"], env=ENGLISH)
    assert (refusal.code, refusal.out) == (2, "")
    assert "their tiers differ, tier1 and real_users; choose two evaluations of one tier" in refusal.err
    for words, message in (
        ((retrievers[0], "nobody"), "no evaluation 'nobody'"),
        ((*retrievers, "--metric", "NDCG@10"), "did you mean 'ndcg@10'"),
        ((*retrievers, "--slice", "topics"), "did you mean 'topic'"),
    ):
        with pytest.raises(ValueError, match=message):
            run(*words)


def test_forced_comparison_is_marked(at_home: Path, retrievers: tuple[str, str], night: Night) -> None:
    words = (retrievers[0], night["real_users"]["evaluation_id"], "--force")
    assert json.loads(run(*words, "--json").stdout)["comparable"] is False
    assert "NOT COMPARABLE" in run(*words, language="en").stdout
