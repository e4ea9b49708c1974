"""Check tier 3 over dialogs: the history sent to the bot, whole dialogs, and the judge of follow-ups."""

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

from tests.support.evaluations import (
    PAGE_URL,
    Document,
    answer_steadily,
    evaluate,
    get_value,
    load,
    question,
    read_rows,
    set_variables,
    texts,
)
from tests.support.llm_server import JSON_HEADER, FakeLLMServer, make_response, make_score_completion
from yarus.db.tables import evaluation
from yarus.flows.preflight import dry_run
from yarus.tasks.config.parameters import Tier3
from yarus.tasks.evaluation import batch, work_folder
from yarus.tasks.evaluation.run import EvaluationRun

HISTORY_REQUEST = '{"messages": ["$history", {"role": "user", "content": "$question"}]}'


def replies(**parts: Any) -> bytes:
    return make_response(200, json.dumps(parts, ensure_ascii=False), JSON_HEADER)


def turn(dialog: int, number: int, **more: Any) -> Document:
    """Return a question of a dialog, about page `dialog`."""
    values = {"id": f"{dialog}-{number}", "question": f"Диалог {dialog}, вопрос {number}?", "confluence_url": None}
    return question(dialog, dialog_id=f"d{dialog}", turn=number, answer=None, score=None) | values | more


def answer_with_history(number: int, request: Document) -> bytes:
    """Answer with the question, and with the number of messages before it."""
    *before, last = request["messages"]
    return replies(
        answer=f"Сказал на «{last['content']}» после {len(before)}.", urls=[PAGE_URL.format(1)], contexts=["да"]
    )


@pytest.fixture
def remembering(service: FakeLLMServer, monkeypatch: pytest.MonkeyPatch) -> FakeLLMServer:
    """Configure a bot that gets the history of the dialog, eight questions at once."""
    service.script = answer_with_history
    set_variables(monkeypatch, {"YARUS_SUT_SERVICE__REQUEST": HISTORY_REQUEST, "YARUS_SUT_SERVICE__CONCURRENCY": "8"})
    return service


def list_contents(history: list[Document] | None) -> list[str]:
    return [message["content"] for message in history or []]


def test_bot_gets_its_own_answers_as_history(judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path) -> None:
    def script(number: int, request: Document) -> bytes:
        failing = request["messages"][-1]["content"] == "Диалог 2, вопрос 1?"
        return make_response(500, "нет") if failing else answer_with_history(number, request)

    remembering.script = script
    # In mixed order, with answers in the log that this service never gave.
    rows = [turn(d, n, answer="ответ из журнала") for n in (1, 2, 3) for d in range(6)]
    summary = evaluate("tier3", source=load(tmp_path, "dialogs_heard", rows), sut=f"{remembering.url}/ask")
    assert remembering.most_in_flight > 1
    rows_by_id = {row["question_id"]: row for row in read_rows(summary)}
    assert len(rows_by_id) == 18
    for name, row in rows_by_id.items():
        dialog, number = map(int, name.split("-"))
        expected: list[str] = []
        for n in range(1, number):
            expected.append(f"Диалог {dialog}, вопрос {n}?")
            failed = dialog == 2 and n == 1
            expected += [] if failed else [f"Сказал на «{expected[-1]}» после {len(expected) - 1}."]
        assert list_contents(row["history"]) == expected
        [sent] = [r for r in remembering.requests if r["messages"][-1]["content"] == row["question"]]
        assert list_contents(sent["messages"]) == [*expected, row["question"]]
        assert (row["dialog"], row["turn"]) == (f"d{dialog}", number)
    assert (rows_by_id["2-1"]["status"], rows_by_id["2-2"]["status"]) == ("sut_error", "ok")
    assert summary["system"]["takes_history"] is True
    assert "журнала" not in json.dumps(remembering.requests, ensure_ascii=False)


def test_unlabelled_turns_are_asked_and_perturbed(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path
) -> None:
    nothing = {"ground_truth_answer": None, "answerable": None, "relevant_chunk_ids": None}
    source = load(tmp_path, "dialogs_changed", [turn(1, 1, **nothing), turn(1, 2), turn(1, 3)])
    summary = evaluate("tier3", source=source, sut=remembering.url, perturbation="lower")
    first, second, third = read_rows(summary)
    assert [row["status"] for row in (first, second, third)] == ["unlabelled", "ok", "ok"]
    assert list_contents(third["history"])[::2] == ["диалог 1, вопрос 1?", "диалог 1, вопрос 2?"]
    judge_texts = [texts(request) for request in judge.requests]
    with_history = [parts for parts in judge_texts if "question_1" in parts]
    assert len(with_history) == 2  # the judge gets the unperturbed question
    assert {parts["question_1"] for parts in with_history} == {"Диалог 1, вопрос 1?"}


def test_dialogs_stay_whole_in_batches_and_samples(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[Document]] = []

    def keep_loaded_and_record(*arguments: Any, **more: Any) -> EvaluationRun:
        run = original(*arguments, **more)
        file = pq.ParquetFile(run.work / "cases.parquet")
        seen.extend(file.read_row_group(n).to_pylist() for n in range(run.n_batches))
        assert file.num_row_groups == run.n_batches
        return run

    original: Callable[..., EvaluationRun] = work_folder.save_loaded
    monkeypatch.setattr("yarus.tasks.steps.answer_cases.save_loaded", keep_loaded_and_record)
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
    assert not any(dialogs & next_dialogs for dialogs, next_dialogs in pairwise(batches))
    assert [row["turn"] for batch in seen for row in batch] == [*range(1, 8)] * 40
    groups = {row["dialog"]: row["group"] for row in read_rows(summary)}
    assert (groups["d3"], groups["d4"]) == ("user 3", "dialog d4")
    assert all(len(row["history"] or []) == 2 * (row["turn"] - 1) for row in read_rows(summary))
    sampled = read_rows(evaluate("tier3", source=source, sut=remembering.url, limit=35))
    turns: dict[str, list[int]] = defaultdict(list)
    for row in sampled:
        turns[row["dialog"]].append(row["turn"])
    assert set(map(tuple, turns.values())) == {tuple(range(1, 8))} and len(turns) == 5


def test_follow_ups_have_own_prompt_and_stratum(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path
) -> None:
    def script(number: int, request: Document) -> bytes:
        parts = texts(request)
        if "question_1" not in parts:
            return make_score_completion(0.5)
        return make_score_completion(0.2 if parts["question"].endswith("2?") else 0.8)

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
    rows_by_id = {row["question_id"]: row for row in read_rows(summary)}
    history_use = {name: row["history_use"] for name, row in rows_by_id.items()}
    assert {name: history_use[name] for name in ("0-1", "alone", "0-2", "0-3", "1-2", "1-3")} == {
        "0-1": None, "alone": None, "0-2": 0.0, "0-3": 0.8, "1-2": 0.2, "1-3": 0.8,
    }  # fmt: skip
    assert get_value(summary, "avg_history_use") == pytest.approx((0 + 3 * 0.2 + 4 * 0.8) / 8)
    follow_up_texts = {parts["question"]: parts for parts in map(texts, judge.requests) if "question_1" in parts}
    assert follow_up_texts["Диалог 0, вопрос 3?"] == {
        "question_1": "Диалог 0, вопрос 1?", "answer_1": "Ответ на Диалог 0, вопрос 1?",
        "question_2": "Диалог 0, вопрос 2?", "answer_2": "Ответ не найден",
        "question": "Диалог 0, вопрос 3?", "answer": "Ответ на Диалог 0, вопрос 3?",
    }  # fmt: skip
    for hidden in ("Диалог 1, вопрос 2?", "Диалог 2, вопрос 2?"):  # the first answer was empty, or hidden by the gate
        assert {*follow_up_texts[hidden]} == {"question_1", "question", "answer"}
    assert [*summary["strata"]] == ["standalone", "follow_up", "turn_2", "turn_3", "turn_4_on"]
    totals = [summary["strata"][name]["avg_e2e_score"]["n_total"] for name in summary["strata"]]
    assert totals == [5, 8, 4, 4, 0]
    assert summary["strata"]["turn_2"]["avg_history_use"]["value"] == pytest.approx(0.6 / 4)
    assert summary["strata"]["turn_4_on"]["avg_e2e_score"]["reason"] == "no case"
    assert summary["metrics"]["avg_e2e_score"]["n_total"] == 13


def test_source_without_dialogs_is_unchanged(judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path) -> None:
    rows = [question(i, dialog_id=f"d{i}", turn=1) for i in range(4)]  # single turns, without follow-ups
    summary = evaluate("tier3", source=load(tmp_path, "dialogs_single", rows), sut=remembering.url)
    assert "strata" not in summary and "avg_history_use" not in summary["metrics"]
    assert {"dialog", "turn", "history", "history_use"}.isdisjoint(read_rows(summary)[0])
    assert {"dialogs", "takes_history", "n_batches"}.isdisjoint(summary["system"])


def test_stored_answers_are_judged_in_dialogs(judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path) -> None:
    source = load(tmp_path, "dialogs_stored", [turn(d, n) for d in range(2) for n in (1, 2)])
    first = evaluate("tier3", source=source, sut=remembering.url)
    n_requests, judge.script = len(remembering.requests), answer_steadily
    again = evaluate("tier3", source=source, reuse_answers=first["evaluation_id"])
    assert len(remembering.requests) == n_requests
    assert again["system"]["takes_history"] is True
    for row, rejudged in zip(read_rows(first), read_rows(again), strict=True):
        assert (row["history"], row["history_use"]) == (rejudged["history"], rejudged["history_use"])


def test_local_system_takes_no_history(at_home: Path, tmp_path: Path) -> None:
    source = load(tmp_path, "dialogs_own", [turn(d, n) for d in range(3) for n in (1, 2)])
    summary = evaluate("tier3", source=source, sut="local")
    rows = read_rows(summary)
    assert summary["system"]["takes_history"] is False and "history" not in rows[0]
    assert [row["history_use"] is None for row in rows] == [True, False] * 3
    assert all(0 <= row["history_use"] <= 1 for row in rows[1::2])


def test_estimate_counts_follow_up_calls(judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path) -> None:
    source = load(tmp_path, "dialogs_estimated", [turn(d, n) for d in range(3) for n in (1, 2, 3)])
    parameters = Tier3(source=source, sut=remembering.url)
    planned = asyncio.run(dry_run.plan_calls("tier3", parameters)).roles["judge"].calls
    evaluate("tier3", source=source, sut=remembering.url)
    assert planned == len(judge.requests) == 9 * 2 + 6


@pytest.mark.slow("breadth: a dialog that is resumed")
def test_resumed_dialog_restarts_at_first_turn(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine
) -> None:
    source = load(tmp_path, "dialogs_cut_off", [turn(d, n) for n in (1, 2, 3) for d in range(60)])
    original = batch.save_batch

    def one_only(run: EvaluationRun, number: int, cases: Any) -> None:
        if number:
            raise OSError("the disk is full")
        original(run, number, cases)

    with monkeypatch.context() as patch:
        patch.setattr(batch, "save_batch", one_only)
        patch.setattr("yarus.tasks.evaluation.batches.PARALLEL_BATCHES", 1)
        with pytest.raises(OSError, match="the disk is full"):
            evaluate("tier3", source=source, sut=remembering.url)
    remembering.requests.clear()
    with engine.connect() as connection:
        newest = select(evaluation.c.id).where(evaluation.c.source == source).order_by(evaluation.c.started_at.desc())
        unfinished_id = connection.scalars(newest).first()
    rows = read_rows(evaluate("tier3", source=source, resume=unfinished_id))
    questions = [request["messages"][-1]["content"] for request in remembering.requests]
    dialogs = {question.split(",")[0] for question in questions}
    assert len(dialogs) == 26  # the first batch has 34 dialogs, the first 102 questions
    assert sorted(questions) == sorted(f"{dialog}, вопрос {n}?" for dialog in dialogs for n in (1, 2, 3))
    assert len(rows) == 180
    assert all(len(row["history"] or []) == 2 * (row["turn"] - 1) for row in rows)


def test_judge_reads_dialogs_without_personal_data(
    judge: FakeLLMServer, remembering: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_variables(monkeypatch, {"YARUS_MASK_MODEL_INPUT": "true"})
    rows = [turn(1, 1, question="Я Олег Кузнецов, 8 (927) 123-45-67, когда пересдача?"), turn(1, 2)]
    _, second = read_rows(evaluate("tier3", source=load(tmp_path, "dialogs_masked", rows), sut=remembering.url))
    assert second["history_use"] is not None and "123-45-67" in list_contents(second["history"])[0]
    with_history = [parts for parts in map(texts, judge.requests) if "question_1" in parts]
    assert len(with_history) == 1 and with_history[0]["question_1"].endswith("когда пересдача?")
    assert not any(secret in json.dumps(judge.requests, ensure_ascii=False) for secret in ("Кузнецов", "123-45-67"))
