"""Tier 3 over dialogs: what the bot is sent, how dialogs stay whole, and what the judge is asked of follow-ups."""

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import Engine, select

from tests.support.evaluations import PAGE, Document, evaluate, load, question, rows_of, steady, texts, use, value
from tests.support.llm_server import JSON, FakeLLMServer, http, scores
from yarus.db.tables import evaluation
from yarus.flows.before import dry_run
from yarus.tasks.config.parameters import Tier3
from yarus.tasks.evaluation import batch, work_folder
from yarus.tasks.evaluation.run import Run

ASKS = '{"messages": ["$history", {"role": "user", "content": "$question"}]}'


def replies(**parts: Any) -> bytes:
    return http(200, json.dumps(parts, ensure_ascii=False), JSON)


def turn(dialog: int, number: int, **more: Any) -> Document:
    """A question of a dialog, about page `dialog`."""
    own = {"id": f"{dialog}-{number}", "question": f"Диалог {dialog}, вопрос {number}?", "confluence_url": None}
    return question(dialog, dialog_id=f"d{dialog}", turn=number, answer=None, score=None) | own | more


def answering(number: int, request: Document) -> bytes:
    """Says what it was asked, and how much was said before."""
    *before, last = request["messages"]
    return replies(answer=f"Сказал на «{last['content']}» после {len(before)}.", urls=[PAGE.format(1)], contexts=["да"])


@pytest.fixture
def remembering(service: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    """A bot that is told of the dialog, eight questions at once."""
    service.script = answering
    use(monkeypatch, {"YARUS_SUT_SERVICE__REQUEST": ASKS, "YARUS_SUT_SERVICE__CONCURRENCY": "8"})
    return service


def lines(history: list[Document] | None) -> list[str]:
    return [message["content"] for message in history or []]


def test_the_bot_hears_its_own_answers_and_its_failures_leave_the_question(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path
) -> None:
    def script(number: int, request: Document) -> bytes:
        failing = request["messages"][-1]["content"] == "Диалог 2, вопрос 1?"
        return http(500, "нет") if failing else answering(number, request)

    remembering.script = script
    # Mixed up, and the log's own answers, which nobody was told of by this service.
    rows = [turn(d, n, answer="ответ из журнала") for n in (1, 2, 3) for d in range(6)]
    summary = evaluate("tier3", source=load(tmp_path, "dialogs_heard", rows), sut=f"{remembering.url}/ask")
    assert remembering.most_in_flight > 1
    found = {row["question_id"]: row for row in rows_of(summary)}
    assert len(found) == 18
    for name, row in found.items():
        dialog, number = map(int, name.split("-"))
        said: list[str] = []
        for n in range(1, number):
            said.append(f"Диалог {dialog}, вопрос {n}?")
            failed = dialog == 2 and n == 1
            said += [] if failed else [f"Сказал на «{said[-1]}» после {len(said) - 1}."]
        assert lines(row["history"]) == said
        [sent] = [r for r in remembering.requests if r["messages"][-1]["content"] == row["question"]]
        assert lines(sent["messages"]) == [*said, row["question"]]
        assert (row["dialog"], row["turn"]) == (f"d{dialog}", number)
    assert (found["2-1"]["status"], found["2-2"]["status"]) == ("sut_error", "ok")
    assert summary["system"]["takes_history"] is True
    assert "журнала" not in json.dumps(remembering.requests, ensure_ascii=False)


def test_turns_without_a_label_are_asked_and_a_changed_question_is_what_was_said(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path
) -> None:
    nothing = {"ground_truth_answer": None, "answerable": None, "relevant_chunk_ids": None}
    source = load(tmp_path, "dialogs_changed", [turn(1, 1, **nothing), turn(1, 2), turn(1, 3)])
    summary = evaluate("tier3", source=source, sut=remembering.url, perturbation="lower")
    first, second, third = rows_of(summary)
    assert [row["status"] for row in (first, second, third)] == ["unlabelled", "ok", "ok"]
    assert lines(third["history"])[::2] == ["диалог 1, вопрос 1?", "диалог 1, вопрос 2?"]
    asked = [texts(request) for request in judge.requests]
    heard = [of for of in asked if "question_1" in of]
    assert len(heard) == 2  # the judge keeps to what was meant
    assert {of["question_1"] for of in heard} == {"Диалог 1, вопрос 1?"}


def test_dialogs_stay_whole_in_batches_in_samples_and_in_groups(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[Document]] = []

    def kept(*given: Any, **more: Any) -> Run:
        run = original(*given, **more)
        file = pq.ParquetFile(run.work / "cases.parquet")
        seen.extend(file.read_row_group(n).to_pylist() for n in range(run.n_batches))
        assert file.num_row_groups == run.n_batches
        return run

    original: Callable[..., Run] = work_folder.keep_loaded
    monkeypatch.setattr("yarus.tasks.steps.answer_cases.keep_loaded", kept)
    # 40 dialogs of 7: neither 100 nor 200 ends one. Every second is by one user; the others are about two pages each.
    rows = [
        turn(d, n, user_id=d if d % 2 else None, relevant_chunk_ids=[f"c{(d + n) % 10}"])
        for n in range(1, 8)
        for d in range(40)
    ]
    source = load(tmp_path, "dialogs_whole", rows)
    summary = evaluate("tier3", source=source, sut=remembering.url)
    assert [len(batch) for batch in seen] == [105, 105, 70]
    batches = [{row["dialog"] for row in batch} for batch in seen]
    assert not any(one & other for one, other in pairwise(batches))
    assert [row["turn"] for batch in seen for row in batch] == [*range(1, 8)] * 40
    groups = {row["dialog"]: row["group"] for row in rows_of(summary)}
    assert (groups["d3"], groups["d4"]) == ("user 3", "dialog d4")
    assert all(len(row["history"] or []) == 2 * (row["turn"] - 1) for row in rows_of(summary))
    some = rows_of(evaluate("tier3", source=source, sut=remembering.url, limit=35))
    turns: dict[str, list[int]] = defaultdict(list)
    for row in some:
        turns[row["dialog"]].append(row["turn"])
    assert set(map(tuple, turns.values())) == {tuple(range(1, 8))} and len(turns) == 5


def test_follow_ups_are_judged_by_a_prompt_of_their_own_and_stand_apart(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path
) -> None:
    def script(number: int, request: Document) -> bytes:
        heard = texts(request)
        if "question_1" not in heard:
            return scores(0.5)
        return scores(0.2 if heard["question"].endswith("2?") else 0.8)

    def bot(number: int, request: Document) -> bytes:
        last = request["messages"][-1]["content"]
        ways = {"Диалог 0, вопрос 2?": "Ответ не найден", "Диалог 1, вопрос 1?": ""}
        return replies(
            answer=ways.get(last, f"Ответ на {last}"), path="hidden" if "Диалог 2, вопрос 1" in last else None
        )

    judge.script, remembering.script = script, bot
    alone = turn(7, 1, dialog_id=None, turn=None, id="alone")
    rows = [turn(d, n) for d in range(4) for n in (1, 2, 3)]
    source = load(tmp_path, "dialogs_judged", [*rows, alone])
    summary = evaluate("tier3", source=source, sut=remembering.url)
    found = {row["question_id"]: row for row in rows_of(summary)}
    used = {name: row["history_use"] for name, row in found.items()}
    assert {name: used[name] for name in ("0-1", "alone", "0-2", "0-3", "1-2", "1-3")} == {
        "0-1": None, "alone": None, "0-2": 0.0, "0-3": 0.8, "1-2": 0.2, "1-3": 0.8,
    }  # fmt: skip
    assert value(summary, "avg_history_use") == pytest.approx((0 + 3 * 0.2 + 4 * 0.8) / 8)
    heard = {of["question"]: of for of in map(texts, judge.requests) if "question_1" in of}
    assert heard["Диалог 0, вопрос 3?"] == {
        "question_1": "Диалог 0, вопрос 1?", "answer_1": "Ответ на Диалог 0, вопрос 1?",
        "question_2": "Диалог 0, вопрос 2?", "answer_2": "Ответ не найден",
        "question": "Диалог 0, вопрос 3?", "answer": "Ответ на Диалог 0, вопрос 3?",
    }  # fmt: skip
    for hidden in ("Диалог 1, вопрос 2?", "Диалог 2, вопрос 2?"):  # it was empty, or the gate hid it
        assert {*heard[hidden]} == {"question_1", "question", "answer"}
    assert [*summary["strata"]] == ["standalone", "follow_up", "turn_2", "turn_3", "turn_4_on"]
    totals = [summary["strata"][name]["avg_e2e_score"]["n_total"] for name in summary["strata"]]
    assert totals == [5, 8, 4, 4, 0]
    assert summary["strata"]["turn_2"]["avg_history_use"]["value"] == pytest.approx(0.6 / 4)
    assert summary["strata"]["turn_4_on"]["avg_e2e_score"]["reason"] == "no case"
    assert summary["metrics"]["avg_e2e_score"]["n_total"] == 13


def test_a_source_without_dialogs_is_as_it_was(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path
) -> None:
    rows = [question(i, dialog_id=f"d{i}", turn=1) for i in range(4)]  # nothing follows anything
    summary = evaluate("tier3", source=load(tmp_path, "dialogs_single", rows), sut=remembering.url)
    assert "strata" not in summary and "avg_history_use" not in summary["metrics"]
    assert {"dialog", "turn", "history", "history_use"}.isdisjoint(rows_of(summary)[0])
    assert {"dialogs", "takes_history", "n_batches"}.isdisjoint(summary["system"])


def test_stored_answers_are_judged_in_their_dialogs(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path
) -> None:
    source = load(tmp_path, "dialogs_stored", [turn(d, n) for d in range(2) for n in (1, 2)])
    first = evaluate("tier3", source=source, sut=remembering.url)
    asked, judge.script = len(remembering.requests), steady
    again = evaluate("tier3", source=source, reuse_answers=first["evaluation_id"])
    assert len(remembering.requests) == asked
    assert again["system"]["takes_history"] is True
    for one, other in zip(rows_of(first), rows_of(again), strict=True):
        assert (one["history"], one["history_use"]) == (other["history"], other["history_use"])


def test_our_own_system_forgets_and_the_stand_in_judges_by_words(at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "dialogs_own", [turn(d, n) for d in range(3) for n in (1, 2)])
    summary = evaluate("tier3", source=source, sut="local")
    rows = rows_of(summary)
    assert summary["system"]["takes_history"] is False and "history" not in rows[0]
    assert [row["history_use"] is None for row in rows] == [True, False] * 3
    assert all(0 <= row["history_use"] <= 1 for row in rows[1::2])


def test_an_estimate_counts_the_calls_about_follow_ups(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path
) -> None:
    source = load(tmp_path, "dialogs_estimated", [turn(d, n) for d in range(3) for n in (1, 2, 3)])
    parameters = Tier3(source=source, sut=remembering.url)
    planned = asyncio.run(dry_run.plan("tier3", parameters)).roles["judge"].calls
    evaluate("tier3", source=source, sut=remembering.url)
    assert planned == len(judge.requests) == 9 * 2 + 6


@pytest.mark.slow("breadth: a dialog that is resumed")
def test_a_dialog_that_was_cut_off_is_asked_again_from_its_first_turn(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    source = load(tmp_path, "dialogs_cut_off", [turn(d, n) for n in (1, 2, 3) for d in range(60)])
    kept = batch.keep_batch

    def one_only(run: Run, number: int, cases: Any) -> None:
        if number:
            raise OSError("the disk is full")
        kept(run, number, cases)

    with monkeypatch.context() as patch:
        patch.setattr(batch, "keep_batch", one_only)
        patch.setattr("yarus.tasks.evaluation.batches.IN_FLIGHT", 1)
        with pytest.raises(OSError, match="the disk is full"):
            evaluate("tier3", source=source, sut=remembering.url)
    remembering.requests.clear()
    with engine.connect() as connection:
        newest = select(evaluation.c.id).where(evaluation.c.source == source).order_by(evaluation.c.started_at.desc())
        left = connection.scalars(newest).first()
    rows = rows_of(evaluate("tier3", source=source, resume=left))
    asked = [request["messages"][-1]["content"] for request in remembering.requests]
    anew = {question.split(",")[0] for question in asked}
    assert len(anew) == 26  # the first batch has 34 dialogs, the first 102 questions
    assert sorted(asked) == sorted(f"{dialog}, вопрос {n}?" for dialog in anew for n in (1, 2, 3))
    assert len(rows) == 180
    assert all(len(row["history"] or []) == 2 * (row["turn"] - 1) for row in rows)


def test_the_judge_reads_dialogs_without_personal_data(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(monkeypatch, {"YARUS_MASK_CALLS": "true"})
    rows = [turn(1, 1, question="Я Олег Кузнецов, 8 (927) 123-45-67, когда пересдача?"), turn(1, 2)]
    _, second = rows_of(evaluate("tier3", source=load(tmp_path, "dialogs_masked", rows), sut=remembering.url))
    assert second["history_use"] is not None and "123-45-67" in lines(second["history"])[0]
    heard = [of for of in map(texts, judge.requests) if "question_1" in of]
    assert len(heard) == 1 and heard[0]["question_1"].endswith("когда пересдача?")
    assert not any(secret in json.dumps(judge.requests, ensure_ascii=False) for secret in ("Кузнецов", "123-45-67"))
