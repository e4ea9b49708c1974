"""Claims through real evaluations: how many calls, what is measured, and what a judge's mistakes leave unmeasured."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluation_history import source_name
from tests.support.evaluations import evaluate, load, question, roles, rows_of, use, value
from tests.support.llm_server import FakeLLMServer, says, scores

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
    """Sentences are claims; a source supports one whose first and last word it has. `spoil` changes its replies."""

    def __init__(self) -> None:
        self.score = scores(0.9)
        self.spoil: Callable[[str, Document, Document], Any] = lambda asked, given, reply: reply

    def __call__(self, number: int, request: Document) -> bytes:
        asked, given = asks_for(request), parts(request)
        if asked == "score":
            return self.score
        if asked == "claims":
            reply = {"claims": [{"sentence": i, "claim": text} for i, text in enumerate(given.values(), 1)]}
        else:
            claims = {name: text for name, text in given.items() if re.fullmatch("[0-9a-f]{4,}", name)}
            sources = given.keys() - claims.keys()
            reply = {
                "verdicts": [
                    {"id": name, "supported_by": sorted(of for of in sources if said(text, given[of]))}
                    for name, text in claims.items()
                ]
            }
        reply = self.spoil(asked, given, reply)
        return reply if isinstance(reply, bytes) else says(json.dumps(reply, ensure_ascii=False))


def said(claim: str, source: str) -> bool:
    return set(re.findall(r"\w+", claim.lower())) <= set(re.findall(r"\w+", source.lower()))


@pytest.fixture
def judge(at_home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeLLMServer]:
    server = FakeLLMServer(script=Judge())
    server.start()
    use(monkeypatch, roles(server.url, "judge"))
    yield server
    server.stop()


@pytest.fixture
def source(judge: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "claiming.py").write_text(BOT, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    references = [f"Правило {i} велит сдать книгу. Сдать книгу до мая." for i in range(N)]
    return load(tmp_path, source_name(), [question(i, ground_truth_answer=references[i]) for i in range(N)])


def run(source: str, **more: Any) -> Document:
    return evaluate("tier3", **{"source": source, "sut": "claiming:answer", "claims": True} | more)


def counted(server: FakeLLMServer) -> dict[str, int]:
    kinds = [asks_for(request) for request in server.requests]
    return {kind: kinds.count(kind) for kind in ("claims", "support")}


def test_what_is_measured(judge: FakeLLMServer, source: str) -> None:
    summary = run(source)
    rows = {int(row["question_id"]): row for row in rows_of(summary)}
    assert {row["status"] for row in rows.values()} == {"ok", "sut_refusal"}
    names = ("claim_precision", "claim_recall", "claim_faithfulness", "hallucination", "context_precision")
    names += ("retrieved_claim_recall", "context_utilization", "noise_sensitivity", "self_knowledge")
    assert [rows[0][name] for name in names] == [0.5, 0.5, 0.5, 0.5, 0.5, 1, 0.5, 0, 0]
    assert [rows[5][name] for name in names] == [0.5, 0.5, *[None] * 7]  # it does not say what it read
    assert [rows[9][name] for name in names] == [None, 0, None, None, 1, 1, 0, None, None]  # it declined
    assert value(summary, "avg_claim_precision") == 0.5 and value(summary, "avg_claim_recall") == pytest.approx(0.45)
    (opened,) = [claim for claim in rows[0]["claims"] if claim["claim"] == "Окно всегда открыто."]
    assert opened == {"of": "answer", "claim": "Окно всегда открыто.", "sentence": "Окно всегда открыто."} | {
        "supported_by": []
    }
    shared = [claim for claim in rows[0]["claims"] if claim["claim"] == "Правило 0 велит сдать книгу."]
    assert [(claim["of"], claim["supported_by"]) for claim in shared] == [
        ("answer", ["passage_1", "reference"]),
        ("reference", ["answer", "passage_1"]),
    ]


def test_two_calls_a_case_and_one_a_reference_that_is_new(judge: FakeLLMServer, source: str) -> None:
    first = run(source)
    assert counted(judge) == {"claims": 9 + N, "support": N}  # one declined, and claims nothing
    run(source)
    assert counted(judge) == {"claims": 9 + N, "support": N}
    again = evaluate("tier3", again=first["evaluation_id"])
    assert counted(judge) == {"claims": 2 * 9 + N, "support": 2 * N}  # references are split once for all
    assert value(again, "avg_claim_precision") == 0.5


def test_nobody_is_asked_who_did_not_ask(judge: FakeLLMServer, source: str) -> None:
    plain = run(source, claims=False)
    assert counted(judge) == {"claims": 0, "support": 0}
    assert "avg_claim_precision" not in plain["metrics"] and "claims" not in rows_of(plain)[0]
    asked = run(source)
    assert plain["comparability_key"] != asked["comparability_key"]  # whoever checks them decides the numbers


def test_a_claim_without_a_verdict_is_left_out(judge: FakeLLMServer, source: str) -> None:
    def forget(asked: str, given: Document, reply: Any) -> Any:
        kept = [one for one in reply.get("verdicts", ()) if given[one["id"]] != "Окно всегда открыто."]
        return {"verdicts": kept} if asked == "support" else reply

    judge.script.spoil = forget
    rows = rows_of(run(source))
    assert [rows[0][name] for name in ("claim_precision", "claim_faithfulness", "hallucination")] == [1, 1, 0]
    assert [one["supported_by"] for one in rows[0]["claims"] if one["claim"] == "Окно всегда открыто."] == [None]
    assert rows[0]["status"] == "ok"


@pytest.mark.slow("breadth: more of what cannot be read")
@pytest.mark.parametrize("spoilt", ["claims", "support"])
def test_a_judge_that_cannot_be_read_measures_nothing(judge: FakeLLMServer, source: str, spoilt: str) -> None:
    judge.script.spoil = lambda asked, given, reply: says("Не знаю.") if asked == spoilt else reply
    rows = rows_of(run(source))
    assert [row["status"] for row in rows] == ["parse_error"] * 9 + ["sut_refusal"]  # a refusal stays one
    assert all(row["claim_precision"] is None and row["context_precision"] is None for row in rows)
    assert rows[0]["e2e_score"] == 0.9
    assert rows[9]["claim_recall"] == (None if spoilt == "claims" else 0)  # what was declined has none of them


def test_renumbered_claims_are_no_verdicts(judge: FakeLLMServer, source: str) -> None:
    def renumber(asked: str, given: Document, reply: Any) -> Any:
        return (
            {"verdicts": [one | {"id": str(i)} for i, one in enumerate(reply["verdicts"])]}
            if asked == "support"
            else reply
        )

    judge.script.spoil = renumber
    assert {row["status"] for row in rows_of(run(source))} == {"parse_error", "sut_refusal"}


@pytest.mark.slow("breadth: two evaluations")
def test_claims_are_measured_whatever_became_of_another_prompt(judge: FakeLLMServer, source: str) -> None:
    judge.script.score = says("Не знаю.")
    rows = rows_of(run(source))
    assert rows[0]["status"] == "parse_error" and rows[0]["e2e_score"] is None
    assert rows[0]["claim_precision"] == 0.5


@pytest.mark.slow("breadth: another tier")
def test_tier_2_checks_against_the_ideal_context(judge: FakeLLMServer, source: str) -> None:
    summary = evaluate("tier2", source=source, claims=True)
    rows = rows_of(summary)
    assert summary["metrics"]["avg_claim_faithfulness"]["n_scored"] == sum(row["status"] == "ok" for row in rows) > 0
    assert all(row["passage_starts"] == [0] for row in rows)


@pytest.mark.slow("breadth: two evaluations")
def test_answers_that_are_reused_keep_their_passages(judge: FakeLLMServer, source: str) -> None:
    first = run(source, claims=False)
    again = rows_of(run(source, reuse_answers=first["evaluation_id"]))
    assert again[0]["context_precision"] == 0.5


def test_the_offline_stand_in_checks_words(at_home: Path, tmp_path: Path) -> None:
    name = load(tmp_path, source_name(), [question(i) for i in range(N)])
    summary = evaluate("tier3", source=name, claims=True)
    assert value(summary, "avg_claim_faithfulness") == 1  # it repeats a sentence of its context
    assert summary["metrics"]["avg_claim_faithfulness"]["judge"] == "stand-in"
