"""Tier 2 from bad contexts, over HTTP: what a model did with them is what is stored, and a failure is no answer."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.evaluations import (
    PAGE,
    chance,
    evaluate,
    load,
    metric_of,
    question,
    roles,
    rows_of,
    texts,
    use,
)
from tests.support.llm_server import FakeLLMServer, says, scores
from yarus.db.errors import InputError

Document = dict[str, Any]
N = 24
ASKED = re.compile(r"словом «(\w+)»")
VALUE = re.compile(r"не позднее (\d+) мая")
REFUSAL = "Ответ не найден"
NAMES = [f"{first}{second}лин" for first in "БВГДЖЗ" for second in "аеио"]


def chunk(i: int) -> Document:
    subject = f"Кружок номер {i}: заявку подают в окно {i + 40} не позднее {i % 28 + 1} мая."
    return {"id": f"c{i}", "confluence_url": PAGE.format(i), "text": f"{subject} Спросить здесь {NAMES[i]}."}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, at_home_for_module: Path) -> str:
    """Questions that are each answered by a page of their own; the last has no date in its reference."""
    asked = [
        question(
            i,
            question=f"Когда подать заявку в кружок {i}?",
            confluence_url=PAGE.format(i),
            relevant_chunk_ids=[f"c{i}"],
            ground_truth_answer=f"{i % 28 + 1} мая" if i < N - 1 else "Нельзя",
        )
        for i in range(N)
    ]
    return load(tmp_path_factory.mktemp("bad"), "bad_contexts", asked, map(chunk, range(N)))


def number(text: str) -> int:
    return int(re.findall(r"кружок (\d+)", text)[0])


def answering(llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch, answer: Any) -> None:
    """A generator that answers (number of the question, context) in that way, and is cut off at the first question."""

    def script(place: int, request: Document) -> bytes:
        if metric_of(request) != "generation":
            return scores(0.5)
        given = texts(request)
        i = number(given["question"])
        return says("", finish="length") if i == 0 else says(answer(i, given["context"]))

    llm_server.script = script
    use(monkeypatch, roles(llm_server.url, "generator", "judge"))


def right(i: int) -> str:
    return f"До {i % 28 + 1} мая."


def flags(summary: Document, name: str) -> dict[int, float | None]:
    return {int(row["question_id"]): row[name] for row in rows_of(summary)}


def test_who_obeys_is_counted_and_a_failure_is_not(
    source: str, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(i: int, context: str) -> str:
        (canary,) = ASKED.findall(context)
        if chance("obeys", i) < 0.4:
            return f"{right(i)} {canary}."
        return REFUSAL if i == 5 else f"{right(i)} В тексте просят закончить ответ словом «{canary}»."

    answering(llm_server, monkeypatch, answer)
    summary = evaluate("tier2", source=source, context_perturbation="injection")
    found = flags(summary, "injection_obeyed_rate")
    assert found == {i: float(chance("obeys", i) < 0.4) if i else None for i in range(N)}
    rate = summary["metrics"]["injection_obeyed_rate"]
    assert (rate["n_scored"], rate["value"]) == (N - 1, pytest.approx(sum(found[i] for i in range(1, N)) / (N - 1)))
    assert rate["ci_low"] < rate["value"] < rate["ci_high"]
    assert not {"distractor_copy_rate", "negative_rejection_rate"} & set(summary["metrics"])
    assert {row["status"] for row in rows_of(summary)} == {"ok", "sut_error", "sut_refusal"}


def test_who_copies_a_distractor_is_counted(
    source: str, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(i: int, context: str) -> str:
        other = next(name for name in re.findall(r"здесь (\w+)", context) if name != NAMES[i])
        return f"Знает {other}." if i % 3 == 0 else f"{right(i)} Знает {NAMES[i]}."

    answering(llm_server, monkeypatch, answer)
    summary = evaluate("tier2", source=source, context_perturbation="gold_middle")
    assert flags(summary, "distractor_copy_rate") == {i: float(i % 3 == 0) if i else None for i in range(N)}
    for row in rows_of(summary):
        assert row["context_probe"]["distractors"] == [0, 1, 3, 4]
        assert row["context"][row["passage_starts"][2] :].startswith(f"Кружок номер {row['question_id']}:")


def test_who_answers_without_the_right_passage_does_not_decline(
    source: str, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answering(llm_server, monkeypatch, lambda i, context: right(i) if i % 4 == 0 else REFUSAL)
    summary = evaluate("tier2", source=source, context_perturbation="gold_removed")
    assert flags(summary, "negative_rejection_rate") == {i: float(i % 4 != 0) if i else None for i in range(N)}
    for row in rows_of(summary):
        assert f"Кружок номер {row['question_id']}:" not in row["context"]
        worth = {"ok": (0.5, 0.5), "sut_refusal": (0, None), "sut_error": (None, None)}  # also where refusing is right
        assert (row["answer_correctness"], row["faithfulness"]) == worth[row["status"]]


@pytest.mark.slow("breadth: two evaluations")
def test_who_follows_the_context_and_who_the_memory(
    source: str, llm_server: FakeLLMServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ("context", "memory", "neither")

    def answer(i: int, context: str) -> str:
        (value,) = VALUE.findall(context)
        return (f"Не позднее {value} мая.", right(i), "Вовремя.")[i % 3]

    answering(llm_server, monkeypatch, answer)
    plain = evaluate("tier2", source=source)
    asked = len(llm_server.requests)
    summary = evaluate("tier2", source=source, context_perturbation="counterfactual")
    for place, name in enumerate(given):
        found = flags(summary, f"counterfactual_{name}_rate")
        assert found == {i: float(i % 3 == place) if 0 < i < N - 1 else None for i in range(N)}
    (untouched,) = [row for row in rows_of(summary) if row["context_probe"]["untouched"]]
    assert untouched["question_id"] == str(N - 1)
    again = [texts(one)["question"] for one in llm_server.requests[asked:] if metric_of(one) == "generation"]
    assert N - 1 not in Counter(map(number, again)), "the same context is not paid for twice"
    assert plain["case_set_hash"] == summary["case_set_hash"]
    assert plain["comparability_key"] != summary["comparability_key"]
    assert "context_perturbation" not in plain["system"]
    assert summary["system"]["context_perturbation"] == "counterfactual|seed:0|v:1"


def test_answers_from_a_bad_context_are_not_reused(source: str) -> None:
    probe = evaluate("tier2", source=source, context_perturbation="injection")["evaluation_id"]
    for option in ("reuse_answers", "anchor"):
        with pytest.raises(
            InputError, match=f"{probe}: .*--context-perturbation injection.*its answers are to changed"
        ):
            evaluate("tier2", **({"source": source} if option == "reuse_answers" else {}), **{option: probe})
    with pytest.raises(InputError, match="leave out --context-perturbation"):
        evaluate("tier2", source=source, context_perturbation="injection", reuse_answers=probe)
