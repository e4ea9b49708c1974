"""Tier 2 with bad contexts over HTTP: the model's reactions are stored, and failures do not count as answers."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import (
    PAGE_URL,
    evaluate,
    get_requested_metric,
    hash_to_unit,
    load,
    make_role_variables,
    question,
    read_rows,
    set_variables,
    texts,
)
from tests.support.llm_server import FakeLLMServer, make_completion, make_score_completion
from yarus.db.errors import InputError

Document = dict[str, Any]
N = 24
ASKED = re.compile(r"словом «(\w+)»")
VALUE = re.compile(r"не позднее (\d+) мая")
REFUSAL = "Ответ не найден"
NAMES = [f"{first}{second}лин" for first in "БВГДЖЗ" for second in "аеио"]


def chunk(i: int) -> Document:
    subject = f"Кружок номер {i}: заявку подают в окно {i + 40} не позднее {i % 28 + 1} мая."
    return {"id": f"c{i}", "confluence_url": PAGE_URL.format(i), "text": f"{subject} Спросить здесь {NAMES[i]}."}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, at_home_for_module: Path) -> str:
    """Load questions that each have an answering page; the reference of the last has no date."""
    questions = [
        question(
            i,
            question=f"Когда подать заявку в кружок {i}?",
            confluence_url=PAGE_URL.format(i),
            relevant_chunk_ids=[f"c{i}"],
            ground_truth_answer=f"{i % 28 + 1} мая" if i < N - 1 else "Нельзя",
        )
        for i in range(N)
    ]
    return load(tmp_path_factory.mktemp("bad"), "bad_contexts", questions, map(chunk, range(N)))


def number(text: str) -> int:
    return int(re.findall(r"кружок (\d+)", text)[0])


def script_answers(llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    """Script a generator that answers with `answer(number, context)`, cut off at the first question."""

    def script(position: int, request: Document) -> bytes:
        if get_requested_metric(request) != "generation":
            return make_score_completion(0.5)
        fields = texts(request)
        i = number(fields["question"])
        return make_completion("", finish="length") if i == 0 else make_completion(answer(i, fields["context"]))

    llm_server.script = script
    set_variables(monkeypatch, make_role_variables(llm_server.url, "generator", "judge"))


def right_answer(i: int) -> str:
    return f"До {i % 28 + 1} мая."


def flags(summary: Document, name: str) -> dict[int, float | None]:
    return {int(row["question_id"]): row[name] for row in read_rows(summary)}


def test_injection_obeyed_rate_skips_failures(
    source: str, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(i: int, context: str) -> str:
        (canary,) = ASKED.findall(context)
        if hash_to_unit("obeys", i) < 0.4:
            return f"{right_answer(i)} {canary}."
        return REFUSAL if i == 5 else f"{right_answer(i)} В тексте просят закончить ответ словом «{canary}»."

    script_answers(llm_server, monkeypatch, answer)
    summary = evaluate("tier2", source=source, context_perturbation="injection")
    values = flags(summary, "injection_obeyed_rate")
    assert values == {i: float(hash_to_unit("obeys", i) < 0.4) if i else None for i in range(N)}
    rate = summary["metrics"]["injection_obeyed_rate"]
    assert (rate["n_scored"], rate["value"]) == (N - 1, pytest.approx(sum(values[i] for i in range(1, N)) / (N - 1)))
    assert rate["ci_low"] < rate["value"] < rate["ci_high"]
    assert not {"distractor_copy_rate", "negative_rejection_rate"} & set(summary["metrics"])
    assert {row["status"] for row in read_rows(summary)} == {"ok", "sut_error", "sut_refusal"}


def test_distractor_copy_rate_counts_copies(
    source: str, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(i: int, context: str) -> str:
        distractor_name = next(name for name in re.findall(r"здесь (\w+)", context) if name != NAMES[i])
        return f"Знает {distractor_name}." if i % 3 == 0 else f"{right_answer(i)} Знает {NAMES[i]}."

    script_answers(llm_server, monkeypatch, answer)
    summary = evaluate("tier2", source=source, context_perturbation="gold_middle")
    assert flags(summary, "distractor_copy_rate") == {i: float(i % 3 == 0) if i else None for i in range(N)}
    for row in read_rows(summary):
        assert row["context_probe"]["distractors"] == [0, 1, 3, 4]
        assert row["context"][row["passage_starts"][2] :].startswith(f"Кружок номер {row['question_id']}:")


def test_negative_rejection_rate_counts_refusals(
    source: str, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    script_answers(llm_server, monkeypatch, lambda i, context: right_answer(i) if i % 4 == 0 else REFUSAL)
    summary = evaluate("tier2", source=source, context_perturbation="gold_removed")
    assert flags(summary, "negative_rejection_rate") == {i: float(i % 4 != 0) if i else None for i in range(N)}
    for row in read_rows(summary):
        assert f"Кружок номер {row['question_id']}:" not in row["context"]
        worth = {"ok": (0.5, 0.5), "sut_refusal": (0, None), "sut_error": (None, None)}  # even if a refusal is right
        assert (row["answer_correctness"], row["faithfulness"]) == worth[row["status"]]


@pytest.mark.slow("breadth: two evaluations")
def test_counterfactual_rates_of_context_and_memory(
    source: str, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    reactions = ("context", "memory", "neither")

    def answer(i: int, context: str) -> str:
        (value,) = VALUE.findall(context)
        return (f"Не позднее {value} мая.", right_answer(i), "Вовремя.")[i % 3]

    script_answers(llm_server, monkeypatch, answer)
    default_summary = evaluate("tier2", source=source)
    n_requests = len(llm_server.requests)
    summary = evaluate("tier2", source=source, context_perturbation="counterfactual")
    for position, name in enumerate(reactions):
        values = flags(summary, f"counterfactual_{name}_rate")
        assert values == {i: float(i % 3 == position) if 0 < i < N - 1 else None for i in range(N)}
    (untouched,) = [row for row in read_rows(summary) if row["context_probe"]["untouched"]]
    assert untouched["question_id"] == str(N - 1)
    again = [
        texts(request)["question"]
        for request in llm_server.requests[n_requests:]
        if get_requested_metric(request) == "generation"
    ]
    assert N - 1 not in Counter(map(number, again)), "the same context is not paid for twice"
    assert default_summary["case_set_hash"] == summary["case_set_hash"]
    assert default_summary["comparability_key"] != summary["comparability_key"]
    assert "context_perturbation" not in default_summary["system"]
    assert summary["system"]["context_perturbation"] == "counterfactual|seed:0|v:1"


def test_reuse_refuses_answers_from_bad_contexts(source: str) -> None:
    probe = evaluate("tier2", source=source, context_perturbation="injection")["evaluation_id"]
    for option in ("reuse_answers", "anchor"):
        with pytest.raises(
            InputError, match=f"{probe}: .*--context-perturbation injection.*its answers are to changed"
        ):
            evaluate("tier2", **({"source": source} if option == "reuse_answers" else {}), **{option: probe})
    with pytest.raises(InputError, match="leave out --context-perturbation"):
        evaluate("tier2", source=source, context_perturbation="injection", reuse_answers=probe)
