"""Bad contexts by one command: what each kind shows, how the places differ, and what stands in report and terminal."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import TypeAdapter
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, CommandLine, here
from tests.support.evaluations import PAGE, chance, load, metric_of, question, texts
from tests.support.llm_server import FakeLLMServer, says, scores
from yarus.flows.terminal.experiments import print_robustness
from yarus.metrics.statistics import share_interval
from yarus.tasks.comparison.experiments.experiments_schema import Robustness
from yarus.tasks.report.experiment_pages import pages

pytestmark = pytest.mark.slow("prefect: five evaluations")
Document = dict[str, Any]
N = 30
KINDS = ("gold_first", "gold_last", "gold_removed", "injection")
SUBJECTS = [f"{first}{second}рдо" for first in "бвгдж" for second in "аеиоуы"]
OBEYS, FORGETS = 0.3, 0.5


class Probed(NamedTuple):
    """A run of the probes, and the server that answered."""

    document: Document
    server: FakeLLMServer


def obeys(i: int) -> bool:
    return chance("obeys", i) < OBEYS


def forgets(i: int) -> bool:
    """Whether the model does not see a passage that stands last."""
    return chance("forgets", i) < FORGETS


def model(place: int, request: Document) -> bytes:
    """Obeys instructions, does not see what stands last, both with a known chance, and declines without a passage."""
    if metric_of(request) != "generation":
        given = texts(request)
        return scores(float("мая" in given.get("answer", "")), tokens=(10, 5))
    asked = texts(request)
    subject = re.findall(r"про (\w+)", asked["question"])[0]
    i, passages = SUBJECTS.index(subject), asked["context"].split("\n\n")
    found = [place for place, text in enumerate(passages) if text.startswith(f"Правило про {subject}")]
    if not found or (found[0] == len(passages) - 1 > 0 and forgets(i)):
        return says("Ответ не найден")
    canary = re.findall(r"словом «(\w+)»", asked["context"])
    return says(f"До {i + 1} мая." + (f" {canary[0]}" if canary and obeys(i) else ""))


@pytest.fixture(scope="module")
def probed(
    yarus: CommandLine,
    at_home_for_module: Path,
    prefect_server: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Probed]:
    chunks = [
        {"id": f"c{i}", "confluence_url": PAGE.format(i), "text": f"Правило про {name}: до {i + 1} мая, окно {i}."}
        for i, name in enumerate(SUBJECTS)
    ]
    questions = [
        question(
            i,
            question=f"Когда про {name}?",
            confluence_url=PAGE.format(i),
            relevant_chunk_ids=[f"c{i}"],
            ground_truth_answer=f"До {i + 1} мая.",
        )
        for i, name in enumerate(SUBJECTS)
    ]
    load(tmp_path_factory.mktemp("probed"), "probed", questions, chunks)
    with FakeLLMServer(script=model) as server:
        env = prefect_server | {f"YARUS_{role}__BASE_URL": server.url for role in ("GENERATOR", "JUDGE")}
        env |= {f"YARUS_{role}__MODEL": f"{role}-of-probes" for role in ("GENERATOR", "JUDGE")}
        words = ("--source", "probed", "--kinds", ",".join(KINDS), "--json")  # and so tier 2, which alone knows them
        yield Probed(yarus("robustness", *words, env=env).json, server)


def test_what_was_done_is_what_is_measured(probed: Probed) -> None:
    found = probed.document["tiers"]["tier2"]
    assert list(probed.document["tiers"]) == ["tier2"]
    assert {kind: (said["state"], said["n"], said["n_changed"]) for kind, said in found.items()} == dict.fromkeys(
        KINDS, ("completed", N, N)
    )
    planted = [obeys(i) for i in range(N)]
    rate = found["injection"]["rates"]["injection_obeyed_rate"]
    assert (rate["value"], rate["n_scored"], rate["reason"]) == (pytest.approx(sum(planted) / N), N, None)
    assert (rate["ci_low"], rate["ci_high"]) == pytest.approx(tuple(share_interval(planted)))
    assert found["gold_removed"]["rates"]["negative_rejection_rate"]["value"] == 1
    assert found["gold_first"]["rates"]["distractor_copy_rate"]["value"] == 0
    assert found["gold_first"]["same"]["value"] == 1
    assert found["gold_last"]["same"]["value"] == pytest.approx(1 - sum(map(forgets, range(N))) / N)


def test_differences_are_paired_with_the_context_as_it_was(probed: Probed) -> None:
    lost = sum(map(forgets, range(N))) / N
    found = probed.document["tiers"]["tier2"]
    assert found["gold_first"]["metrics"]["avg_answer_correctness"]["difference"] == 0
    last = found["gold_last"]["metrics"]["avg_answer_correctness"]
    assert last["difference"] == pytest.approx(-lost)
    assert last["verdict"] == "regressed" and last["ci_high"] < 0
    assert found["gold_last"]["metrics"]["avg_fact_recall"]["difference"] == pytest.approx(-lost)
    faith = found["gold_removed"]["metrics"]["avg_faithfulness"]
    assert (faith["n"], faith["n_missing"]) == (0, N), "a refusal has nothing to be faithful about"


def test_places_differ_among_the_same_distractors(probed: Probed) -> None:
    pairs = {pair["metric"]: pair for pair in probed.document["places"]}
    assert {(pair["a"], pair["b"]) for pair in probed.document["places"]} == {("gold_first", "gold_last")}
    assert pairs["avg_answer_correctness"]["difference"] == pytest.approx(-sum(map(forgets, range(N))) / N)
    assert pairs["avg_answer_correctness"]["p_holm"] >= pairs["avg_answer_correctness"]["p"]


def test_every_kind_is_an_evaluation_apart_from_the_history(probed: Probed, at_home: Path) -> None:
    said = probed.document["tiers"]["tier2"]["injection"]
    shown = here("show", said["evaluation_id"], "--json").json
    assert shown["system"]["part_of"] == probed.document["robustness_id"]
    assert shown["system"]["context_perturbation"] == "injection|seed:0|v:1"
    assert shown["metrics"]["injection_obeyed_rate"]["n_scored"] == N
    assert "context_perturbation" not in here("show", said["asked_as_is"], "--json").json["system"]


def test_no_context_is_paid_for_twice(probed: Probed) -> None:
    asked = Counter(
        (texts(one)["question"], texts(one)["context"])
        for one in probed.server.requests
        if metric_of(one) == "generation"
    )
    assert set(asked.values()) == {1}
    assert len(asked) == N * (1 + len(KINDS))


def test_the_report_and_the_terminal_show_them(
    probed: Probed, engine: Engine, at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (page,) = [page for page in pages(engine, "probed", {}) if page["key"] == "robustness"]
    differences, rates, places = page["blocks"]
    assert [row[0]["ru"] for row in differences["rows"]] == [
        "нужное в начале", "нужное в конце", "нужное убрано", "указание во фрагменте",
    ]  # fmt: skip
    assert [row[0]["en"] for row in rates["rows"]][-1] == "instruction in a passage: obeys the instruction"
    assert all(isinstance(cell, str) for block in page["blocks"] for row in block["rows"] for cell in row[1:])
    assert len(places["rows"]) == 1
    print_robustness(probed.document, "en")  # type: ignore[arg-type]
    out = capsys.readouterr().out
    for said in ("obeys the instruction", "declines to answer", "right ones last", "Place of the right passages"):
        assert said in out


def test_the_document_is_as_declared(probed: Probed) -> None:
    TypeAdapter(Robustness).validate_json(json.dumps(probed.document), strict=True)


def test_what_it_would_ask_is_said_before(probed: Probed, at_home: Path) -> None:
    ran = here("run", "robustness", "--source", "probed", "--kinds", "injection,gold_last", "--dry-run", "--json")
    plans = {plan["tier"]: plan["cases"] for plan in json.loads(ran.out)["plans"]}
    assert plans == dict.fromkeys(("tier2: as it is", "tier2: injection", "tier2: gold_last"), N)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--kinds", "typos", "--tiers", "tier2"), "knows the kind 'typos', which is of tier1 or tier3"),
        (("--kinds", "gold_centre"), "did you mean 'gold_removed'"),
        (("--kinds", "injection", "--tiers", "tier1,tier2"), "tier1 knows none of the kinds"),
    ],
)
def test_a_kind_that_no_tier_knows_is_said_at_once(words: tuple[str, ...], said: str, at_home: Path) -> None:
    ran = here("robustness", *words, env=ENGLISH)
    assert (ran.code, said in ran.err, ran.out) == (2, True, ""), ran
