"""Check `--retry-failed`: only failed cases are evaluated again, outside the history."""

import json
from pathlib import Path

import pytest
from sqlalchemy import Engine, text

from tests.support.command_line import Document, assert_refused, run_here
from tests.support.evaluation_history import make_source_name, write_evaluation_with_cases
from tests.support.evaluations import answer_steadily, evaluate, load, question, read_rows, set_variables
from tests.support.json_schemas import check_json
from tests.support.llm_server import JSON_HEADER, Action, FakeLLMServer, make_response
from yarus.db import journal
from yarus.db.errors import InputError
from yarus.tasks.config.parameters import Tier1, Tier3
from yarus.tasks.evaluation.repeats import NothingFailedError, resolve_repeated_parameters
from yarus.tasks.report.entries import find_newest

N = 12
DOWN = {0, 1, 2}
"""Questions that the system answers with HTTP 500 at first."""
MUTE = 5
"""The question for which the judge gives no verdict at first."""


def get_number(request: Document) -> int:
    return int(request["question"].split()[3].strip(","))


def answer(request: Document) -> bytes:
    return make_response(
        200, json.dumps({"answer": f"Сдать книгу {get_number(request)}."}, ensure_ascii=False), JSON_HEADER
    )


@pytest.fixture
def first(judge: FakeLLMServer, service: FakeLLMServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    """Evaluate with four failing cases: three in the system, one in the judge."""

    def judge_script(number: int, request: Document) -> bytes | Action:
        prompt = request["messages"][0]["content"]
        return make_response(200, "{}") if f"Сдать книгу {MUTE}." in prompt else answer_steadily(number, request)

    service.script = lambda _, request: make_response(500, "broken") if get_number(request) in DOWN else answer(request)
    judge.script = judge_script
    set_variables(monkeypatch, {"YARUS_SUT_LABEL": "v1"})
    source = load(tmp_path, make_source_name(), [question(i) for i in range(N)])
    return evaluate("tier3", source=source, sut=service.url, k=3, name="первый")


@pytest.mark.slow("wait: retries of a server that fails")
def test_only_failed_cases_are_asked_again(
    first: Document, judge: FakeLLMServer, service: FakeLLMServer, engine: Engine
) -> None:
    assert {int(row["question_id"]) for row in read_rows(first) if row["status"] != "ok"} == {*DOWN, MUTE}
    service.script = lambda _, request: make_response(500, "broken") if get_number(request) == 0 else answer(request)
    judge.script = answer_steadily
    n_asked, n_judged = len(service.requests), len(judge.requests)
    again = evaluate("tier3", source=first["source"], retry_failed="last")
    assert sorted(get_number(request) for request in service.requests[n_asked:])[-3:] == [1, 2, MUTE]
    assert {get_number(request) for request in service.requests[n_asked:]} == {*DOWN, MUTE}
    assert {int(row["question_id"]) for row in read_rows(again)} == {*DOWN, MUTE}
    assert again["failed_again"] == {"of": first["evaluation_id"], "n": 4, "asked": 4, "succeeded": 3}
    assert (again["system"]["k"], again["name"]) == (3, None)  # it keeps the parameters, but not the name
    assert len(judge.requests) > n_judged
    # Once more: the case of that evaluation that still fails; then no case fails.
    service.script = lambda _, request: answer(request)
    n_bought = len(judge.requests)
    last = evaluate("tier3", source=first["source"], retry_failed="last")
    assert last["failed_again"] == {"of": again["evaluation_id"], "n": 1, "asked": 1, "succeeded": 1}
    assert len(judge.requests) - n_bought <= 2  # one answer, by as many prompts
    with pytest.raises(NothingFailedError, match="no case failed"):
        resolve_repeated_parameters(engine, Tier3(source=first["source"], retry_failed="last"))
    ids = [again["evaluation_id"], last["evaluation_id"]]
    _assert_outside_history(engine, first, ids)
    output = run_here("show", again["evaluation_id"]).out
    assert f"3 из 4 вопросов, которые не удались в {first['evaluation_id']}" in " ".join(output.split())
    refusal = run_here("run", "tier3", "--source", first["source"], "--retry-failed")
    assert (refusal.code, "прогонять снова нечего" in refusal.out) == (0, True)
    document = run_here("run", "tier3", "--source", first["source"], "--retry-failed", "--json")
    assert (document.code, check_json("run TIER --retry-failed", document.out)) == (
        0,
        {"failed_in": last["evaluation_id"], "failed": 0},
    )
    with engine.connect() as connection:
        n_evaluations = connection.scalar(
            text("SELECT count(*) FROM yarus.evaluation WHERE source = :s"), {"s": first["source"]}
        )
    assert n_evaluations == 3


def _assert_outside_history(engine: Engine, first: Document, ids: list[str]) -> None:
    """Check that each has another key, cannot be a baseline, and is in no history and no report."""
    for name in ids:
        row = journal.find_evaluation(engine, name)
        assert row["comparability_key"] != first["comparability_key"]
        assert row["accepted_at"] is None
        with pytest.raises(InputError, match=r"is a part of|is invalid"):
            journal.accept_baseline(engine, name)
        refusal = rf"{name} covers only the failed cases"
        for mark in ("again", "confirms"):
            with pytest.raises(InputError, match=f"{refusal}|is invalid; name"):
                resolve_repeated_parameters(engine, Tier3(**{mark: name}))  # type: ignore[arg-type]
    assert not {*ids} & {*find_newest(engine)}
    with engine.connect() as connection:
        for view in ("latest", "trend"):
            view_ids = set(connection.scalars(text(f"SELECT evaluation_id FROM yarus.{view}")))
            assert not {*ids} & view_ids, view


def test_unsuitable_evaluation_is_refused(engine: Engine, at_home: Path, tmp_path: Path) -> None:
    source = make_source_name()
    broken = write_evaluation_with_cases(engine, tmp_path, source, {"mrr": [None, 1.0], "status": ["sut_error", "ok"]},
                        statuses={"ok": 1, "sut_error": 1}, parameters={"source": source})  # fmt: skip
    bad = write_evaluation_with_cases(engine, tmp_path, source, {"mrr": [0.0, 0.0]}, night=1, statuses={"ok": 2})
    with pytest.raises(NothingFailedError):  # bad scores are results
        resolve_repeated_parameters(engine, Tier1(retry_failed=bad))
    for parameters, message in (
        (Tier3(retry_failed=broken), f"it is of tier1 and '{source}': yarus run tier1 --retry-failed {broken}"),
        (Tier1(retry_failed=broken, source="other"), f"it is of tier1 and '{source}'"),
        (Tier1(retry_failed="last", source="nowhere"), "no finished evaluation of tier1 and 'nowhere' yet"),
        (Tier1(retry_failed=broken, recheck=bad), "--recheck and --retry-failed cannot be combined"),
    ):
        with pytest.raises(InputError, match=message):
            resolve_repeated_parameters(engine, parameters)
    repeat, _ = resolve_repeated_parameters(engine, Tier1(retry_failed=broken, retriever="fulltext", name="снова"))
    assert (repeat.source, repeat.retriever, repeat.name, repeat.retry_failed) == (source, "fulltext", "снова", broken)
    assert_refused(run_here("run", "tier0", "--retry-failed"), 2, ("retry_failed",))
