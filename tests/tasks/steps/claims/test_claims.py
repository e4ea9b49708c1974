"""Claims in real evaluations: number of calls, metrics, and undefined values after a judge's mistakes."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluation_history import make_source_name
from tests.support.evaluations import evaluate, get_value, load, make_role_variables, question, read_rows, set_variables
from tests.support.llm_server import FakeLLMServer, make_completion, make_score_completion

Document = dict[str, Any]
N = 10
TAGGED = re.compile(r"<(\w+)-([0-9a-f]{8})>\n(.*?)\n</\1-\2>", re.DOTALL)
BOT = """
def answer(question):
    i = question.split()[3].strip(",")
    if i == "9":
        return {"answer": "Ответ не найден", "urls": [], "contexts": ["Правило 9 велит сдать книгу 9 до мая."]}
    told = "Правило " + i + " велит сдать книгу. Окно всегда открыто."
    contexts = ["Правило " + i + " велит сдать книгу " + i + " до мая.", "Читальный зал на втором этаже."]
    return {"answer": told, "urls": [], "contexts": None if i == "5" else contexts}
"""


def parts(request: Document) -> dict[str, str]:
    return {name: text for name, _, text in TAGGED.findall(request["messages"][0]["content"])}


def asks_for(request: Document) -> str:
    names = parts(request)
    if "sentence_1" in names:
        return "claims"
    return "score" if {"question", "answer"} <= names.keys() else "support"


class Judge:
    """A judge: sentences are claims, supported by sources with all their words. `spoil` changes its replies."""

    def __init__(self) -> None:
        self.score = make_score_completion(0.9)
        self.spoil: Callable[[str, Document, Document], Any] = lambda kind, texts, reply: reply

    def __call__(self, number: int, request: Document) -> bytes:
        kind, texts = asks_for(request), parts(request)
        if kind == "score":
            return self.score
        if kind == "claims":
            reply = {"claims": [{"sentence": i, "claim": text} for i, text in enumerate(texts.values(), 1)]}
        else:
            claims = {name: text for name, text in texts.items() if re.fullmatch("[0-9a-f]{4,}", name)}
            sources = texts.keys() - claims.keys()
            reply = {
                "verdicts": [
                    {"id": name, "supported_by": sorted(key for key in sources if is_contained(text, texts[key]))}
                    for name, text in claims.items()
                ]
            }
        reply = self.spoil(kind, texts, reply)
        return reply if isinstance(reply, bytes) else make_completion(json.dumps(reply, ensure_ascii=False))


def is_contained(claim: str, source: str) -> bool:
    return set(re.findall(r"\w+", claim.lower())) <= set(re.findall(r"\w+", source.lower()))


@pytest.fixture
def judge(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    server = FakeLLMServer(script=Judge())
    server.start()
    set_variables(monkeypatch, make_role_variables(server.url, "judge"))
    yield server
    server.stop()


@pytest.fixture
def source(judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "claiming.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    references = [f"Правило {i} велит сдать книгу. Сдать книгу до мая." for i in range(N)]
    return load(tmp_path, make_source_name(), [question(i, ground_truth_answer=references[i]) for i in range(N)])


def run(source: str, **more: Any) -> Document:
    return evaluate("tier3", **{"source": source, "sut": "claiming:answer", "claims": True} | more)


def count_calls(server: FakeLLMServer) -> dict[str, int]:
    kinds = [asks_for(request) for request in server.requests]
    return {kind: kinds.count(kind) for kind in ("claims", "support")}


def test_claim_metrics_of_answers_and_refusals(judge: FakeLLMServer, source: str) -> None:
    summary = run(source)
    rows = {int(row["question_id"]): row for row in read_rows(summary)}
    assert {row["status"] for row in rows.values()} == {"ok", "sut_refusal"}
    names = ("claim_precision", "claim_recall", "claim_faithfulness", "hallucination", "context_precision")
    names += ("retrieved_claim_recall", "context_utilization", "noise_sensitivity", "self_knowledge")
    assert [rows[0][name] for name in names] == [0.5, 0.5, 0.5, 0.5, 0.5, 1, 0.5, 0, 0]
    assert [rows[5][name] for name in names] == [0.5, 0.5, *[None] * 7]  # its contexts are unknown
    assert [rows[9][name] for name in names] == [None, 0, None, None, 1, 1, 0, None, None]  # it declined
    assert get_value(summary, "avg_claim_precision") == 0.5 and get_value(summary, "avg_claim_recall") == pytest.approx(
        0.45
    )
    (opened,) = [claim for claim in rows[0]["claims"] if claim["claim"] == "Окно всегда открыто."]
    assert opened == {"of": "answer", "claim": "Окно всегда открыто.", "sentence": "Окно всегда открыто."} | {
        "supported_by": []
    }
    shared = [claim for claim in rows[0]["claims"] if claim["claim"] == "Правило 0 велит сдать книгу."]
    assert [(claim["of"], claim["supported_by"]) for claim in shared] == [
        ("answer", ["passage_1", "reference"]),
        ("reference", ["answer", "passage_1"]),
    ]


def test_claims_need_two_calls_per_case_and_one_per_reference(judge: FakeLLMServer, source: str) -> None:
    first = run(source)
    assert count_calls(judge) == {"claims": 9 + N, "support": N}  # one declined, and has no claims
    run(source)
    assert count_calls(judge) == {"claims": 9 + N, "support": N}
    again = evaluate("tier3", repeat_of=first["evaluation_id"])
    assert count_calls(judge) == {"claims": 2 * 9 + N, "support": 2 * N}  # references are split once for all
    assert get_value(again, "avg_claim_precision") == 0.5


def test_claims_need_no_calls_when_not_requested(judge: FakeLLMServer, source: str) -> None:
    without_claims = run(source, claims=False)
    assert count_calls(judge) == {"claims": 0, "support": 0}
    assert "avg_claim_precision" not in without_claims["metrics"] and "claims" not in read_rows(without_claims)[0]
    with_claims = run(source)
    # The checking judge determines the numbers.
    assert without_claims["comparability_key"] != with_claims["comparability_key"]


def test_claim_metrics_skip_claims_without_verdict(judge: FakeLLMServer, source: str) -> None:
    def forget(kind: str, texts: Document, reply: Any) -> Any:
        verdicts = [entry for entry in reply.get("verdicts", ()) if texts[entry["id"]] != "Окно всегда открыто."]
        return {"verdicts": verdicts} if kind == "support" else reply

    judge.script.spoil = forget
    rows = read_rows(run(source))
    assert [rows[0][name] for name in ("claim_precision", "claim_faithfulness", "hallucination")] == [1, 1, 0]
    assert [entry["supported_by"] for entry in rows[0]["claims"] if entry["claim"] == "Окно всегда открыто."] == [None]
    assert rows[0]["status"] == "ok"


@pytest.mark.slow("breadth: more of what cannot be read")
@pytest.mark.parametrize("spoilt", ["claims", "support"])
def test_claim_metrics_are_none_after_unreadable_replies(judge: FakeLLMServer, source: str, spoilt: str) -> None:
    judge.script.spoil = lambda kind, texts, reply: make_completion("Не знаю.") if kind == spoilt else reply
    rows = read_rows(run(source))
    assert [row["status"] for row in rows] == ["parse_error"] * 9 + ["sut_refusal"]  # a refusal stays one
    assert all(row["claim_precision"] is None and row["context_precision"] is None for row in rows)
    assert rows[0]["e2e_score"] == 0.9
    assert rows[9]["claim_recall"] == (None if spoilt == "claims" else 0)  # a refusal has none of them


def test_renumbered_claims_have_no_verdicts(judge: FakeLLMServer, source: str) -> None:
    def renumber(kind: str, texts: Document, reply: Any) -> Any:
        return (
            {"verdicts": [entry | {"id": str(i)} for i, entry in enumerate(reply["verdicts"])]}
            if kind == "support"
            else reply
        )

    judge.script.spoil = renumber
    assert {row["status"] for row in read_rows(run(source))} == {"parse_error", "sut_refusal"}


@pytest.mark.slow("breadth: two evaluations")
def test_claim_metrics_survive_failure_of_other_prompt(judge: FakeLLMServer, source: str) -> None:
    judge.script.score = make_completion("Не знаю.")
    rows = read_rows(run(source))
    assert rows[0]["status"] == "parse_error" and rows[0]["e2e_score"] is None
    assert rows[0]["claim_precision"] == 0.5


@pytest.mark.slow("breadth: another tier")
def test_claims_in_tier_2_use_the_ideal_context(judge: FakeLLMServer, source: str) -> None:
    summary = evaluate("tier2", source=source, claims=True)
    rows = read_rows(summary)
    assert summary["metrics"]["avg_claim_faithfulness"]["n_scored"] == sum(row["status"] == "ok" for row in rows) > 0
    assert all(row["passage_starts"] == [0] for row in rows)


@pytest.mark.slow("breadth: two evaluations")
def test_reused_answers_keep_their_passages(judge: FakeLLMServer, source: str) -> None:
    first = run(source, claims=False)
    again = read_rows(run(source, reuse_answers=first["evaluation_id"]))
    assert again[0]["context_precision"] == 0.5


def test_claims_stand_in_compares_words(at_home: Path, tmp_path: Path) -> None:
    name = load(tmp_path, make_source_name(), [question(i) for i in range(N)])
    summary = evaluate("tier3", source=name, claims=True)
    assert get_value(summary, "avg_claim_faithfulness") == 1  # it repeats a sentence of its context
    assert summary["metrics"]["avg_claim_faithfulness"]["judge"] == "stand-in"
