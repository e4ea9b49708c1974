"""Check bad contexts by one command: what each kind measures, how positions differ, and the report and terminal."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pydantic import TypeAdapter
from sqlalchemy import Engine

from tests.support.command_line import ENGLISH, CommandLine, run_here
from tests.support.evaluations import PAGE_URL, get_requested_metric, hash_to_unit, load, question, texts
from tests.support.llm_server import FakeLLMServer, make_completion, make_score_completion
from yarus.flows.terminal.experiments import print_robustness
from yarus.metrics.statistics import share_interval
from yarus.tasks.comparison.experiments.experiments_schema import Robustness
from yarus.tasks.report.experiment_pages import experiment_pages

pytestmark = pytest.mark.slow("prefect: five evaluations")
Document = dict[str, Any]
N = 30
KINDS = ("gold_first", "gold_last", "gold_removed", "injection")
SUBJECTS = [f"{first}{second}рдо" for first in "бвгдж" for second in "аеиоуы"]
OBEY_RATE, FORGET_RATE = 0.3, 0.5


class Probed(NamedTuple):
    """A run of the probes, and the server that answered."""

    document: Document
    server: FakeLLMServer


def is_obeying(i: int) -> bool:
    return hash_to_unit("obeys", i) < OBEY_RATE


def is_forgetting(i: int) -> bool:
    """Return whether the model ignores a passage that comes last."""
    return hash_to_unit("forgets", i) < FORGET_RATE


def answer_as_model(number: int, request: Document) -> bytes:
    """Obey instructions and ignore the last passage with known chances, and decline without a passage."""
    if get_requested_metric(request) != "generation":
        judge_texts = texts(request)
        return make_score_completion(float("мая" in judge_texts.get("answer", "")), tokens=(10, 5))
    prompt_texts = texts(request)
    subject = re.findall(r"про (\w+)", prompt_texts["question"])[0]
    i, passages = SUBJECTS.index(subject), prompt_texts["context"].split("\n\n")
    positions = [position for position, text in enumerate(passages) if text.startswith(f"Правило про {subject}")]
    if not positions or (positions[0] == len(passages) - 1 > 0 and is_forgetting(i)):
        return make_completion("Ответ не найден")
    canary = re.findall(r"словом «(\w+)»", prompt_texts["context"])
    return make_completion(f"До {i + 1} мая." + (f" {canary[0]}" if canary and is_obeying(i) else ""))


@pytest.fixture(scope="module")
def probed(
    yarus: CommandLine,
    at_home_for_module: Path,
    prefect_server: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Probed]:
    chunks = [
        {"id": f"c{i}", "confluence_url": PAGE_URL.format(i), "text": f"Правило про {name}: до {i + 1} мая, окно {i}."}
        for i, name in enumerate(SUBJECTS)
    ]
    questions = [
        question(
            i,
            question=f"Когда про {name}?",
            confluence_url=PAGE_URL.format(i),
            relevant_chunk_ids=[f"c{i}"],
            ground_truth_answer=f"До {i + 1} мая.",
        )
        for i, name in enumerate(SUBJECTS)
    ]
    load(tmp_path_factory.mktemp("probed"), "probed", questions, chunks)
    with FakeLLMServer(script=answer_as_model) as server:
        env = prefect_server | {f"YARUS_{role}__BASE_URL": server.url for role in ("GENERATOR", "JUDGE")}
        env |= {f"YARUS_{role}__MODEL": f"{role}-of-probes" for role in ("GENERATOR", "JUDGE")}
        words = (
            "--source",
            "probed",
            "--perturbations",
            ",".join(KINDS),
            "--json",
        )  # and so tier 2, the only one with them
        yield Probed(yarus("robustness", *words, env=env).json, server)


def test_probes_measure_planted_behaviour(probed: Probed) -> None:
    probes = probed.document["tiers"]["tier2"]
    assert list(probed.document["tiers"]) == ["tier2"]
    assert {kind: (probe["state"], probe["n"], probe["n_changed"]) for kind, probe in probes.items()} == dict.fromkeys(
        KINDS, ("completed", N, N)
    )
    planted = [is_obeying(i) for i in range(N)]
    rate = probes["injection"]["rates"]["injection_obeyed_rate"]
    assert (rate["value"], rate["n_scored"], rate["reason"]) == (pytest.approx(sum(planted) / N), N, None)
    assert (rate["ci_low"], rate["ci_high"]) == pytest.approx(tuple(share_interval(planted)))
    assert probes["gold_removed"]["rates"]["negative_rejection_rate"]["value"] == 1
    assert probes["gold_first"]["rates"]["distractor_copy_rate"]["value"] == 0
    assert probes["gold_first"]["unchanged_share"]["value"] == 1
    assert probes["gold_last"]["unchanged_share"]["value"] == pytest.approx(1 - sum(map(is_forgetting, range(N))) / N)


def test_differences_are_paired_with_unchanged_context(probed: Probed) -> None:
    lost_share = sum(map(is_forgetting, range(N))) / N
    probes = probed.document["tiers"]["tier2"]
    assert probes["gold_first"]["metrics"]["avg_answer_correctness"]["difference"] == 0
    last_change = probes["gold_last"]["metrics"]["avg_answer_correctness"]
    assert last_change["difference"] == pytest.approx(-lost_share)
    assert last_change["verdict"] == "regressed" and last_change["ci_high"] < 0
    assert probes["gold_last"]["metrics"]["avg_fact_recall"]["difference"] == pytest.approx(-lost_share)
    faithfulness = probes["gold_removed"]["metrics"]["avg_faithfulness"]
    assert (faithfulness["n"], faithfulness["n_missing"]) == (0, N), "a refusal has nothing to be faithful about"


def test_positions_are_compared_with_equal_distractors(probed: Probed) -> None:
    pairs = {pair["metric"]: pair for pair in probed.document["position_differences"]}
    assert {(pair["a"], pair["b"]) for pair in probed.document["position_differences"]} == {("gold_first", "gold_last")}
    assert pairs["avg_answer_correctness"]["difference"] == pytest.approx(-sum(map(is_forgetting, range(N))) / N)
    assert pairs["avg_answer_correctness"]["p_holm"] >= pairs["avg_answer_correctness"]["p"]


def test_kinds_are_evaluations_outside_history(probed: Probed, at_home: Path) -> None:
    probe = probed.document["tiers"]["tier2"]["injection"]
    document = run_here("show", probe["evaluation_id"], "--json").json
    assert document["system"]["part_of"] == probed.document["robustness_id"]
    assert document["system"]["context_perturbation"] == "injection|seed:0|v:1"
    assert document["metrics"]["injection_obeyed_rate"]["n_scored"] == N
    assert "context_perturbation" not in run_here("show", probe["baseline_evaluation_id"], "--json").json["system"]


def test_context_is_paid_once(probed: Probed) -> None:
    contexts = Counter(
        (texts(request)["question"], texts(request)["context"])
        for request in probed.server.requests
        if get_requested_metric(request) == "generation"
    )
    assert set(contexts.values()) == {1}
    assert len(contexts) == N * (1 + len(KINDS))


def test_report_and_terminal_show_probes(
    probed: Probed, engine: Engine, at_home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (page,) = [page for page in experiment_pages(engine, "probed", {}) if page["key"] == "robustness"]
    differences, rates, places = page["blocks"]
    assert [row[0]["ru"] for row in differences["rows"]] == [
        "нужное в начале", "нужное в конце", "нужное убрано", "указание во фрагменте",
    ]  # fmt: skip
    assert [row[0]["en"] for row in rates["rows"]][-1] == "instruction in a passage: obeys the instruction"
    assert all(isinstance(cell, str) for block in page["blocks"] for row in block["rows"] for cell in row[1:])
    assert len(places["rows"]) == 1
    print_robustness(probed.document, "en")  # type: ignore[arg-type]
    out = capsys.readouterr().out
    for text in ("obeys the instruction", "declines to answer", "right ones last", "Place of the right passages"):
        assert text in out


def test_document_matches_schema(probed: Probed) -> None:
    TypeAdapter(Robustness).validate_json(json.dumps(probed.document), strict=True)


def test_dry_run_counts_cases(probed: Probed, at_home: Path) -> None:
    ran = run_here(
        "run", "robustness", "--source", "probed", "--perturbations", "injection,gold_last", "--dry-run", "--json"
    )
    plans = {plan["tier"]: plan["cases"] for plan in json.loads(ran.out)["plans"]}
    assert plans == dict.fromkeys(("tier2: as it is", "tier2: injection", "tier2: gold_last"), N)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--perturbations", "typos", "--tiers", "tier2"), "knows the kind 'typos', which is of tier1 or tier3"),
        (("--perturbations", "gold_centre"), "did you mean 'gold_removed'"),
        (("--perturbations", "injection", "--tiers", "tier1,tier2"), "tier1 knows none of the kinds"),
    ],
)
def test_unknown_kind_is_refused(words: tuple[str, ...], message: str, at_home: Path) -> None:
    ran = run_here("robustness", *words, env=ENGLISH)
    assert (ran.code, message in ran.err, ran.out) == (2, True, ""), ran
