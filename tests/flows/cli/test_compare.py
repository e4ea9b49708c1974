"""`yarus compare` as people and scripts use it: a night with itself, two retrievers, and what is refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, here
from tests.support.evaluations import evaluate
from yarus.__main__ import cli
from yarus.tasks.comparison.compare import compare
from yarus.tasks.comparison.totals import NOT_COMPARED
from yarus.tasks.config.tiers import TIERS

Night = dict[str, dict[str, Any]]
pytestmark = pytest.mark.slow("breadth: comparisons of a night; test_gate.py and tests/tasks/comparison have others")


@pytest.fixture(scope="module")
def searched(home: Path, night: Night) -> str:
    """The sample by text search; its id. In this process, without Prefect, which is slow."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("YARUS_HOME", str(home))
        by_text: str = evaluate("tier1", source="sample", retriever="fulltext")["evaluation_id"]
    return by_text


@pytest.fixture
def retrievers(at_home: Path, night: Night, searched: str) -> tuple[str, str]:
    """The sample by dense vectors, in the night, and by text search; their ids."""
    return night["tier1"]["evaluation_id"], searched


def run(*words: str, language: str = "ru") -> Result:
    """The command in this process; an error is raised as `main` would get it."""
    result = CliRunner(env={"YARUS_LANGUAGE": language}).invoke(cli, ["compare", *words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    return result


@pytest.mark.parametrize(
    "tier",
    TIERS,
)
def test_an_evaluation_equals_itself_in_every_metric(engine: Engine, at_home: Path, night: Night, tier: str) -> None:
    """Both sides have the values that the tier itself stored: they are recomputed from the same cases in one way."""
    name = night[tier]["evaluation_id"]
    found = compare(engine, name, name)["metrics"]
    stored = night[tier]["metrics"]
    assert set(found) == set(stored)
    for metric, one in found.items():
        if metric in NOT_COMPARED:
            assert (one["reason"], one["a"]) == (NOT_COMPARED[metric], None)
        elif stored[metric]["value"] is None:
            assert (one["a"], one["difference"], one["p"]) == (None, None, None), metric
        else:
            assert one["a"] == one["b"] == pytest.approx(stored[metric]["value"], rel=1e-9, abs=1e-12), metric
            assert (one["difference"], one["p"]) == (0, 1), metric
            assert one["verdict"] in ("no difference shown", "inconclusive")


def test_two_retrievers_are_comparable_and_told_apart(at_home: Path, retrievers: tuple[str, str]) -> None:
    document = json.loads(run(*retrievers, "--json").stdout)
    assert (document["comparable"], document["paired"]) == (True, True)
    assert {side: document[side]["system"]["retriever"] for side in "ab"} == {"a": "dense", "b": "fulltext"}
    for one in document["metrics"].values():
        assert one["p"] is not None
        assert one["verdict"] in ("improved", "regressed", "changed", "no difference shown", "inconclusive")
        assert one["p_holm"] is None or one["p"] <= one["p_holm"] <= 1
        assert one["ci_low"] <= one["difference"] <= one["ci_high"]
    tested = {*TIERS["tier1"].headlines} - {"sut_error_rate"}  # neither side failed
    assert {name for name, one in document["metrics"].items() if one["p_holm"] is not None} == tested
    hits = document["metrics"]["hit_rate@1"]
    listed = [
        [case for case in document["cases"][kind] if "hit_rate@1" in (one["metric"] for one in case["moved"])]
        for kind in ("broke", "fixed")
    ]
    moved = [sum(case["n"] for case in some) for some in listed]
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
def test_people_get_a_table_and_a_verdict_in_words(
    at_home: Path, retrievers: tuple[str, str], language: str, words: tuple[str, ...]
) -> None:
    shown = run(*retrievers, language=language).stdout
    for word in (*words, "hit_rate@1", *retrievers):
        assert word in shown
    last = " ".join(shown.split("\n\n")[-1].split())
    assert ("hit_rate@1" in last) and ("245" in last)


@pytest.mark.parametrize(("only", "named"), [((), TIERS["tier1"].headlines), (("recall@1",), ("recall@1",))])
def test_the_margins_behind_the_verdicts_are_said(
    at_home: Path, retrievers: tuple[str, str], only: tuple[str, ...], named: tuple[str, ...]
) -> None:
    words = [word for name in only for word in ("--metric", name)]
    found = json.loads(run(*retrievers, *words, "--json").stdout)["metrics"]
    shown = run(*retrievers, *words, language="en").stdout
    (line,) = (line for line in shown.splitlines() if line.startswith("Differences within these margins do not matter"))
    assert re.findall(r"(\S+) ±(\d+\.\d+)", line) == [(name, f"{found[name]['margin']:.3f}") for name in named]


def test_one_metric_and_one_slice(at_home: Path, retrievers: tuple[str, str]) -> None:
    document = json.loads(run(*retrievers, "--metric", "mrr", "--slice", "type", "--json").stdout)
    assert (list(document["metrics"]), list(document["slices"])) == (["mrr"], ["type"])
    everything = json.loads(run(*retrievers, "--json").stdout)["metrics"]
    assert document["metrics"]["mrr"] == everything["mrr"], "adjusted for the headline metrics, however few are shown"
    shown = run(*retrievers, "--metric", "mrr", "--slice", "type").stdout
    assert "тип вопроса" in shown
    assert "длина вопроса" not in shown


def test_what_is_refused_has_exit_code_2(at_home: Path, retrievers: tuple[str, str], night: Night) -> None:
    refused = here("compare", retrievers[0], night["real_users"]["evaluation_id"], env=ENGLISH)
    assert (refused.code, refused.out) == (2, "")
    assert 'tier is "tier1" and "real_users"' in refused.err
    for words, said in (
        ((retrievers[0], "nobody"), "no evaluation 'nobody'"),
        ((*retrievers, "--metric", "NDCG@10"), "did you mean 'ndcg@10'"),
        ((*retrievers, "--slice", "topics"), "did you mean 'topic'"),
    ):
        with pytest.raises(ValueError, match=said):
            run(*words)


def test_what_is_forced_is_marked(at_home: Path, retrievers: tuple[str, str], night: Night) -> None:
    words = (retrievers[0], night["real_users"]["evaluation_id"], "--force")
    assert json.loads(run(*words, "--json").stdout)["comparable"] is False
    assert "NOT COMPARABLE" in run(*words, language="en").stdout
